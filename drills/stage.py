"""What every drill needs: commands in sessions of their own, kills, leftover processes, and counts of what survived."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from drills.forge import Forge, Forked

MARK = "MERKHET_DRILL"
"""Set for every command, so that what it has started is found wherever it went."""
LONGEST = 300.0


@dataclass(frozen=True)
class Ended:
    """How a command has ended: its exit code (-9 after a kill), and all it said."""

    code: int
    said: str
    seconds: float

    @property
    def last_line(self) -> str:
        """The line that an error would be."""
        lines = [line for line in self.said.splitlines() if line.strip()]
        return lines[-1] if lines else ""


class Running:
    """A command of merkhet in a session of its own."""

    def __init__(
        self,
        arguments: Sequence[str],
        place: Path,
        said: Path,
        mark: str,
        more: Mapping[str, str],
        forge: Forge | None = None,
    ) -> None:
        self.mark = mark
        self.started = time.monotonic()
        self.said = said
        marked = {**more, MARK: mark}
        if forge is not None:
            self.process: Forked | subprocess.Popen[bytes] = forge.start(arguments, place, said, mark, marked)
            return
        with open(self.said, "wb") as output:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "merkhet", *arguments],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=place,
                env={**os.environ, "PYTHONUNBUFFERED": "1", **marked},
                start_new_session=True,
            )

    def wait(self, seconds: float = LONGEST) -> Ended | None:
        """How it has ended; None if it is still running after so long."""
        try:
            code = self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None
        return Ended(code, self.said.read_text(encoding="utf-8", errors="replace"), time.monotonic() - self.started)

    def kill(self) -> Ended:
        """SIGKILL the whole process group."""
        os.killpg(self.process.pid, signal.SIGKILL)
        ended = self.wait()
        assert ended is not None
        return ended

    def family(self) -> list[int]:
        """The processes that this command has started, directly or not, and that still run."""
        return [pid for pid in marked(self.mark) if pid != self.process.pid]


def marked(mark: str) -> list[int]:
    """The processes whose environment says that they belong to a command."""
    wanted = f"{MARK}={mark}".encode()
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            if (
                wanted in (entry / "environ").read_bytes().split(b"\0")
                and b"\nState:\tZ" not in (entry / "status").read_bytes()
            ):
                found.append(int(entry.name))
        except OSError:
            continue
    return sorted(found)


def orphans(mark: str, patience: float = 20.0) -> list[int]:
    """What a command has left running once it is gone; what is just ending is given some time, then killed."""
    until = time.monotonic() + patience
    while (found := marked(mark)) and time.monotonic() < until:
        time.sleep(0.1)
    for pid in found:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue
    return found


@dataclass
class Tally:
    """How often one kind of fault was made, and what did not survive it."""

    drill: str
    kind: str
    moments: int = 0
    failures: list[str] = field(default_factory=list)

    @property
    def survived(self) -> int:
        """The moments after which all was as it should be."""
        return self.moments - len(self.failures)


class Stage:
    """Where drills happen: a folder, a seed, a time limit, and the counts."""

    def __init__(
        self, folder: Path, seed: int, minutes: float, kills: int, jobs: int, forge: Forge | None = None
    ) -> None:
        self.forge = forge
        self.folder, self.seed, self.kills, self.jobs = folder, seed, kills, jobs
        self.until = time.monotonic() + 60 * minutes
        self.tallies: dict[tuple[str, str], Tally] = {}
        self.skipped: list[str] = []
        self.started: list[Running] = []
        self.lock = threading.Lock()
        self.count = 0

    def draw(self, *what: object) -> random.Random:
        """Chance that hangs on the seed and what it is for alone."""
        return random.Random(f"{self.seed} {what}")

    @property
    def late(self) -> bool:
        """Whether the time is up."""
        return time.monotonic() > self.until

    def place(self, name: str) -> Path:
        """A new folder for one moment."""
        with self.lock:
            self.count += 1
            folder = self.folder / f"{name}-{self.count:04d}"
        folder.mkdir(parents=True)
        return folder

    def start(self, arguments: Sequence[str], place: Path, more: Mapping[str, str] | None = None) -> Running:
        """Start a command of merkhet with a place as its current folder."""
        with self.lock:
            self.count += 1
            mark = f"{os.getpid()}-{self.count}"
        said = self.folder / "said"
        said.mkdir(exist_ok=True)
        # What is loaded before the program is can only be given to a new one.
        forge = None if more and "LD_PRELOAD" in more else self.forge
        running = Running(arguments, place, said / f"{mark}.txt", mark, more or {}, forge)
        with self.lock:
            self.started = [one for one in self.started if one.process.poll() is None] + [running]
        return running

    def end(self) -> None:
        """End what is still running."""
        with self.lock:
            for running in self.started:
                if running.process.poll() is None:
                    os.killpg(running.process.pid, signal.SIGKILL)

    def finish(self, arguments: Sequence[str], place: Path, more: Mapping[str, str] | None = None) -> Ended:
        """Let a command come to its end; one that does not is killed, and its exit code is -9."""
        running = self.start(arguments, place, more)
        ended = running.wait()
        if ended is None:
            ended = running.kill()
            orphans(running.mark, 0.0)
        return ended

    def note(self, drill: str, kind: str, what: str, problems: Sequence[str], place: Path | None = None) -> None:
        """Count one moment, say how it went, and clear its place away where all went well."""
        with self.lock:
            tally = self.tallies.setdefault((drill, kind), Tally(drill, kind))
            tally.moments += 1
            if problems:
                tally.failures.append(f"{what}: " + "; ".join(problems))
            say(f"{drill} {kind} {tally.moments}: {what}: " + ("; ".join(problems) if problems else "survived"))
        if place is not None and not problems:
            shutil.rmtree(place, ignore_errors=True)

    def skip(self, drill: str, why: str) -> None:
        """Say that a drill cannot be had here."""
        with self.lock:
            self.skipped.append(f"{drill}: {why}")
        say(f"{drill}: skipped, {why}")


def say(line: str) -> None:
    """A line for whoever watches."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def complaints(ended: Ended, *codes: int) -> list[str]:
    """What is wrong with how a command ended: another exit code than those wanted, a traceback."""
    found = [] if ended.code in codes else [f"exit code {ended.code}, last line {ended.last_line!r}"]
    return found + (["a traceback"] if "Traceback (most recent call last)" in ended.said else [])
