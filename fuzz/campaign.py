"""A campaign: shares out the inputs, keeps processes at work, ends those that hang, and gathers what was found."""

from __future__ import annotations

import base64
import contextlib
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fuzz.harness import LIMIT, input_name
from fuzz.status import read_status, told_findings
from fuzz.targets import Target

_ROOT = Path(__file__).resolve().parent.parent
_PATIENCE = 6 * LIMIT
"""A worker that is at one input for so long is ended: its own alarm could not ring."""
_STARTING = 120.0
_WAYS = {"plain": 0.35, "structured": 0.45, "guided": 0.2}
_GUIDED_SECONDS = 90.0


@dataclass
class Job:
    """So many inputs of one reader, made in one way; ``chunk`` counts on where a worker had to be ended."""

    target: str
    way: str
    count: int
    chunk: int = 0


@dataclass
class Finding:
    """Something that should not be: what, where, how often, and the smallest input that does it."""

    target: str
    kind: str
    where: str
    told: str
    data: bytes
    by_command: bool
    times: int = 1


@dataclass
class Tally:
    """What came of the inputs of one reader."""

    inputs: int = 0
    accepted: int = 0
    refused: int = 0
    slowest: float = 0.0
    ways: Counter[str] = field(default_factory=Counter)


class _Worker:
    """A process at a job, in a folder of its own."""

    def __init__(self, job: Job, module: str, folder: Path, seed: int, seconds: float) -> None:
        self.job, self.folder, self.began = job, folder, time.time()
        folder.mkdir(parents=True)
        drawn = f"{seed} {job.target} {job.chunk}"
        words = (str(folder), module, job.target, job.way, str(job.count), drawn, f"{seconds:.0f}")
        paths = os.pathsep.join([str(_ROOT), str(_ROOT / "src"), os.environ.get("PYTHONPATH", "")])
        environment = {**os.environ, "PYTHONPATH": paths, "OMP_NUM_THREADS": "1", "PYTHONHASHSEED": "0"}
        with open(folder / "said", "wb") as said:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "fuzz.worker", *words],
                stdout=said,
                stderr=said,
                env=environment,
                start_new_session=True,
            )

    def trouble(self, stop: bool) -> str | None:
        """What kind of end it needs or had: hang, crash, start; None while all is well, "" at a good end."""
        status = read_status(self.folder)
        code = self.process.poll()
        if code is not None:
            at_input = status["began"] > 0
            if code == 0 or (self.job.way == "guided" and not at_input and status["inputs"]):
                return ""
            return f"crash ({signal.Signals(-code).name})" if code < 0 else f"crash (exit code {code})"
        if status["began"] and time.time() - status["began"] > _PATIENCE:
            self.end()
            return "hang"
        if not status["inputs"] and not status["began"] and time.time() - self.began > _STARTING:
            self.end()
            return "start"
        if stop or (self.job.way == "guided" and time.time() - self.began > _GUIDED_SECONDS + 30):
            self.end()
            return ""
        return None

    def end(self) -> None:
        """End the process and what it started."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


class Campaign:
    """So many inputs over some readers."""

    def __init__(
        self, targets: Mapping[str, Target], inputs: int, seed: int, keep: Path, *, guided: bool, workers: int
    ) -> None:
        self.targets, self.inputs, self.seed, self.keep, self.workers = targets, inputs, seed, keep, workers
        self.tallies = {name: Tally() for name in targets}
        self.findings: dict[tuple[str, str, str], Finding] = {}
        self.jobs = self._share_out(guided)

    @property
    def tried(self) -> int:
        """How many inputs were tried."""
        return sum(tally.inputs for tally in self.tallies.values())

    def _share_out(self, guided: bool) -> list[Job]:
        whole = sum(target.share for target in self.targets.values())
        jobs = []
        left = self.inputs
        for place, (name, target) in enumerate(self.targets.items()):
            own = left if place == len(self.targets) - 1 else round(self.inputs * target.share / whole)
            left -= own
            ways = {way: part for way, part in _WAYS.items() if self._has(target, way, guided)}
            parts = {way: round(own * part / sum(ways.values())) for way, part in ways.items()}
            parts["plain"] += own - sum(parts.values())
            jobs += [Job(name, way, count) for way, count in parts.items() if count > 0]
        # Shuffled, so that a run which ends early has been everywhere, more or less.
        random.Random(self.seed).shuffle(jobs)
        return jobs

    @staticmethod
    def _has(target: Target, way: str, guided: bool) -> bool:
        return way == "plain" or (target.grammar is not None if way == "structured" else guided and target.guided)

    def run(self, seconds: float) -> None:
        """Work until all inputs are tried, or the time is over."""
        until = time.time() + seconds
        home = Path(tempfile.mkdtemp(prefix="merkhet-fuzz-", dir="/dev/shm" if Path("/dev/shm").is_dir() else None))
        active: list[_Worker] = []
        number, told = 0, 0.0
        waiting = list(self.jobs)
        try:
            while waiting or active:
                stop = time.time() > until
                if stop:
                    waiting.clear()
                while waiting and len(active) < self.workers:
                    number += 1
                    job = waiting.pop(0)
                    module = self.targets[job.target].module
                    active.append(_Worker(job, module, home / str(number), self.seed, _GUIDED_SECONDS))
                time.sleep(0.1)
                for worker in list(active):
                    trouble = worker.trouble(stop)
                    if trouble is not None:
                        active.remove(worker)
                        again = self._gather(worker, trouble)
                        waiting[:0] = [again] if again and not stop else []
                if time.time() - told > 2:
                    told = time.time()
                    self._say(active, waiting, until)
        finally:
            for worker in active:
                worker.end()
            shutil.rmtree(home, ignore_errors=True)
        sys.stdout.write("\n")

    def _gather(self, worker: _Worker, trouble: str) -> Job | None:
        """Count what a worker did, and give the rest of its job back."""
        job, status = worker.job, read_status(worker.folder)
        tally = self.tallies[job.target]
        tally.inputs += status["inputs"]
        tally.ways[job.way] += status["inputs"]
        tally.accepted += status["accepted"]
        tally.refused += status["refused"]
        tally.slowest = max(tally.slowest, status["slowest"])
        for one in told_findings(worker.folder):
            self._found(
                one["target"], one["kind"], one["where"], one["told"], base64.b64decode(one["input"]), one["command"]
            )
        if trouble:
            current = worker.folder / "current"
            said = (worker.folder / "said").read_text(encoding="utf-8", errors="replace")[-3000:]
            data = current.read_bytes() if current.is_file() else b""
            self._found(job.target, trouble, job.way if trouble == "start" else "", said, data, False)
            tally.inputs += 1
            if job.chunk > 8 or (job.way == "guided" and not status["inputs"]):
                return None
        shutil.rmtree(worker.folder, ignore_errors=True)
        left = job.count - status["inputs"] - (1 if trouble else 0)
        # What coverage did not reach in its time is tried in the plain way.
        if left > 0 and (trouble or job.way != "plain"):
            return Job(job.target, "plain" if job.way == "guided" and not trouble else job.way, left, job.chunk + 1)
        return None

    def _found(self, target: str, kind: str, where: str, told: str, data: bytes, by_command: bool) -> None:
        key = (target, kind, where)
        known = self.findings.get(key)
        if known is None:
            self.findings[key] = known = Finding(target, kind, where, told, data, by_command)
            sys.stdout.write(f"\n{target}: {kind} {where} ({len(data):,} bytes)\n")
        else:
            known.times += 1
            if len(data) >= len(known.data):
                return
            known.told, known.data, known.by_command = told, data, by_command
        self.keep.mkdir(parents=True, exist_ok=True)
        name = input_name(target, f"{key}".encode())
        (self.keep / f"{name}.bin").write_bytes(data)
        (self.keep / f"{name}.txt").write_text(
            f"{target}: {kind} {where}\nby command: {by_command}\n\n{told}\n", "utf-8"
        )

    def _say(self, active: list[_Worker], waiting: list[Job], until: float) -> None:
        at = sum(read_status(worker.folder)["inputs"] for worker in active)
        names = ", ".join(f"{worker.job.target} ({worker.job.way})" for worker in active)
        counts = f"{self.tried + at:>8,} of {self.inputs:,} inputs, {len(self.findings)} findings"
        line = f"{counts}, {until - time.time():,.0f} s left: {names}"
        width = shutil.get_terminal_size((120, 24)).columns - 1
        sys.stdout.write("\r" + line[:width].ljust(width) if sys.stdout.isatty() else f"{line}\n")
        sys.stdout.flush()

    def table(self) -> str:
        """A row for each reader: inputs, what came of them, and the slowest."""
        found = Counter(one.target for one in self.findings.values())
        head = ("reader", "inputs", "accepted", "refused", "findings", "slowest")
        rows: list[tuple[Any, ...]] = [
            (name, f"{t.inputs:,}", f"{t.accepted:,}", f"{t.refused:,}", str(found[name]), f"{t.slowest:.2f} s")
            for name, t in self.tallies.items()
        ]
        every = self.tallies.values()
        whole = [sum(getattr(t, name) for t in every) for name in ("inputs", "accepted", "refused")]
        rows.append(
            (
                "all",
                *(f"{count:,}" for count in whole),
                str(sum(found.values())),
                f"{max((t.slowest for t in every), default=0):.2f} s",
            )
        )
        widths = [max(len(row[place]) for row in (head, *rows)) for place in range(len(head))]
        lines = [
            "  ".join(
                cell.ljust(width) if not n else cell.rjust(width)
                for n, (cell, width) in enumerate(zip(row, widths, strict=True))
            )
            for row in (head, *rows)
        ]
        ways = Counter[str]()
        for tally in every:
            ways.update(tally.ways)
        lines.append("by way: " + ", ".join(f"{way} {count:,}" for way, count in ways.items()))
        kinds = Counter(one.kind for one in self.findings.values())
        if kinds:
            lines.append("findings by kind: " + ", ".join(f"{kind} {count}" for kind, count in kinds.most_common()))
        return "\n".join(lines)
