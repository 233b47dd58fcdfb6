"""Tools of all drills: commands in their own sessions, kills, orphaned processes, and counts of survived faults."""

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
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from drills.fork_server import ForkedProcess, ForkServer

MARK = "MERKHET_DRILL"
"""Environment variable of every command, by which the processes it started are found."""
TIMEOUT = 300.0


@dataclass(frozen=True)
class CommandResult:
    """Result of a command."""

    code: int
    """Exit code; -9 after a kill."""
    output: str
    seconds: float

    @property
    def last_line(self) -> str:
        """Last line of the output, where an error message is."""
        lines = [line for line in self.output.splitlines() if line.strip()]
        return lines[-1] if lines else ""


class RunningCommand:
    """A command of merkhet in its own session."""

    def __init__(
        self,
        arguments: Sequence[str],
        workdir: Path,
        output_file: Path,
        mark: str,
        environment: Mapping[str, str],
        fork_server: ForkServer | None = None,
    ) -> None:
        self.mark = mark
        self.started = time.monotonic()
        self.output_file = output_file
        marked_environment = {**environment, MARK: mark}
        output_file.touch()  # A command may be killed before it opens the file.
        if fork_server is not None:
            self.process: ForkedProcess | subprocess.Popen[bytes] = fork_server.start(
                arguments, workdir, output_file, mark, marked_environment
            )
            return
        with open(self.output_file, "wb") as output:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "merkhet", *arguments],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=workdir,
                env={**os.environ, "PYTHONUNBUFFERED": "1", **marked_environment},
                start_new_session=True,
            )

    def wait(self, seconds: float = TIMEOUT) -> CommandResult | None:
        """Wait for the result; return None if the command still runs after ``seconds``."""
        try:
            code = self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None
        return CommandResult(
            code, self.output_file.read_text(encoding="utf-8", errors="replace"), time.monotonic() - self.started
        )

    def kill(self) -> CommandResult:
        """Kill the process group with SIGKILL."""
        with suppress(ProcessLookupError):  # It may have ended since the caller looked.
            os.killpg(self.process.pid, signal.SIGKILL)
        result = self.wait()
        assert result is not None
        return result

    def family(self) -> list[int]:
        """Return the running processes that the command started, directly or not."""
        return [pid for pid in marked_processes(self.mark) if pid != self.process.pid]


def marked_processes(mark: str) -> list[int]:
    """Return the running processes whose environment has the mark of a command."""
    variable = f"{MARK}={mark}".encode()
    pids = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            if (
                variable in (entry / "environ").read_bytes().split(b"\0")
                and b"\nState:\tZ" not in (entry / "status").read_bytes()
            ):
                pids.append(int(entry.name))
        except OSError:
            continue
    return sorted(pids)


def kill_orphans(mark: str, patience: float = 20.0) -> list[int]:
    """Return and kill the processes of a finished command that still run after ``patience`` seconds."""
    deadline = time.monotonic() + patience
    while (pids := marked_processes(mark)) and time.monotonic() < deadline:
        time.sleep(0.1)
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue
    return pids


@dataclass
class Tally:
    """Count of one kind of fault, and the failures after it."""

    drill: str
    kind: str
    moments: int = 0
    failures: list[str] = field(default_factory=list)

    @property
    def survived(self) -> int:
        """Number of faults without a failure."""
        return self.moments - len(self.failures)


class Stage:
    """Environment of drills: a folder, a seed, a deadline, and the counts."""

    def __init__(
        self, folder: Path, seed: int, minutes: float, kills: int, jobs: int, fork_server: ForkServer | None = None
    ) -> None:
        self.fork_server = fork_server
        self.folder, self.seed, self.kills, self.jobs = folder, seed, kills, jobs
        self.deadline = time.monotonic() + 60 * minutes
        self.tallies: dict[tuple[str, str], Tally] = {}
        self.skipped: list[str] = []
        self.started: list[RunningCommand] = []
        self.lock = threading.Lock()
        self.count = 0

    def draw(self, *parts: object) -> random.Random:
        """Return a generator that depends only on the seed and its purpose."""
        return random.Random(f"{self.seed} {parts}")

    @property
    def late(self) -> bool:
        """Whether the deadline has passed."""
        return time.monotonic() > self.deadline

    def new_folder(self, name: str) -> Path:
        """Make a new folder for one fault."""
        with self.lock:
            self.count += 1
            folder = self.folder / f"{name}-{self.count:04d}"
        folder.mkdir(parents=True)
        return folder

    def start(
        self,
        arguments: Sequence[str],
        workdir: Path,
        environment: Mapping[str, str] | None = None,
        *,
        fresh: bool = False,
    ) -> RunningCommand:
        """Start a command in a working directory; if ``fresh``, in a new Python that has imported nothing."""
        with self.lock:
            self.count += 1
            mark = f"{os.getpid()}-{self.count}"
        outputs = self.folder / "outputs"
        outputs.mkdir(exist_ok=True)
        # A forked process cannot preload a library.
        fork_server = None if fresh or (environment and "LD_PRELOAD" in environment) else self.fork_server
        running = RunningCommand(arguments, workdir, outputs / f"{mark}.txt", mark, environment or {}, fork_server)
        with self.lock:
            self.started = [started for started in self.started if started.process.poll() is None] + [running]
        return running

    def end(self) -> None:
        """Kill the commands that still run."""
        with self.lock:
            for running in self.started:
                if running.process.poll() is None:
                    with suppress(ProcessLookupError):
                        os.killpg(running.process.pid, signal.SIGKILL)

    def finish(
        self, arguments: Sequence[str], workdir: Path, environment: Mapping[str, str] | None = None
    ) -> CommandResult:
        """Run a command to its end; kill it at the timeout, with exit code -9."""
        running = self.start(arguments, workdir, environment)
        result = running.wait()
        if result is None:
            result = running.kill()
            kill_orphans(running.mark, 0.0)
        return result

    def record(
        self, drill: str, kind: str, description: str, problems: Sequence[str], workdir: Path | None = None
    ) -> None:
        """Count and print the outcome of one fault; remove its working directory if there is no problem."""
        with self.lock:
            tally = self.tallies.setdefault((drill, kind), Tally(drill, kind))
            tally.moments += 1
            if problems:
                tally.failures.append(f"{description}: " + "; ".join(problems))
            print_line(
                f"{drill} {kind} {tally.moments}: {description}: " + ("; ".join(problems) if problems else "survived")
            )
        if workdir is not None and not problems:
            shutil.rmtree(workdir, ignore_errors=True)

    def skip(self, drill: str, reason: str) -> None:
        """Record that a drill is skipped."""
        with self.lock:
            self.skipped.append(f"{drill}: {reason}")
        print_line(f"{drill}: skipped, {reason}")


def print_line(line: str) -> None:
    """Print a line at once."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def exit_problems(result: CommandResult, *codes: int) -> list[str]:
    """Return what is wrong with a result: an exit code that is not among ``codes``, a traceback."""
    problems = [] if result.code in codes else [f"exit code {result.code}, last line {result.last_line!r}"]
    return problems + (["a traceback"] if "Traceback (most recent call last)" in result.output else [])
