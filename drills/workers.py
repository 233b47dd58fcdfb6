"""SIGKILL of single processes: one of two that memorize together, their parent, one of Ray's actors, its node."""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

from drills.integrity import broken_files, differences, leftovers
from drills.jobs import TOGETHER, Job, References, find_job, output_hashes
from drills.stage import RunningCommand, Stage, exit_problems, kill_orphans

TIMES = 4
RAY_WORKER, RAY_NODE = "ray::Worker", "/raylet/raylet "
RAY = Job(
    "ask on Ray",
    "ask",
    (*find_job("ask masked").arguments, "--engine", "ray", "--cores-per-worker", "1"),
    "run",
    find_job("ask masked").prepare,
)


def drill(stage: Stage, references: References) -> None:
    """Kill one process of a command several times: a worker, then the parent of the workers."""
    for number in range(TIMES):
        for victim in ("a worker", "the one that started them"):
            if not stage.late:
                _kill(stage, references, TOGETHER, TOGETHER, victim, number, "merkhet.training")
    if find_spec("ray") is None:
        stage.skip("workers on Ray", "Ray is not installed (pip install 'merkhet[ray]')")
        return
    for number in range(TIMES):
        for victim, command_line in (("a worker", RAY_WORKER), ("the node", RAY_NODE)):
            if not stage.late:
                _kill(stage, references, RAY, find_job("ask masked"), victim, number, command_line)


def _kill(
    stage: Stage, references: References, job: Job, reference_job: Job, victim: str, number: int, command_line: str
) -> None:
    expected = references[reference_job]
    workdir = stage.new_folder("workers")
    job.prepare(references.materials, workdir)
    draw = stage.draw("workers", job.name, victim, number)
    running = stage.start(job.arguments, workdir)
    workers: list[int] = []
    deadline = time.monotonic() + 120
    while not workers and running.process.poll() is None and time.monotonic() < deadline:
        workers = _find_processes(running, command_line)
        time.sleep(0.05)
    time.sleep(draw.random() * 4)
    workers = _find_processes(running, command_line) or workers
    if victim == "the one that started them":
        _kill_process(running.process.pid)
    elif workers:
        _kill_process(draw.choice(workers))
    result = running.wait() or running.kill()
    orphans = kill_orphans(running.mark, 60.0)
    problems = [f"{len(orphans)} processes went on"] if orphans else []
    problems += [f"at the kill: {problem}" for problem in broken_files(workdir)]
    # Ray replaces its workers, and the run continues.
    problems += exit_problems(result, *((0,) if command_line == RAY_WORKER else (0, 1, 2, -signal.SIGKILL)))
    rerun = stage.finish(job.arguments, workdir)
    problems += (
        exit_problems(rerun, 0) + differences(expected.content_hashes, output_hashes(job, workdir)) + leftovers(workdir)
    )
    description = f"{job.name}: {victim} of {len(workers)} killed (exit code {result.code})"
    stage.record("workers", job.kind, description, problems, workdir)


def _kill_process(process: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(process, signal.SIGKILL)


def _find_processes(running: RunningCommand, command_line: str) -> list[int]:
    """Return the processes started by a command whose command line has a text, without torchrun itself."""
    pids = []
    for pid in running.family():
        try:
            line = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        # Ray's workers begin with the name; other processes have it among their arguments.
        if (
            line.startswith(command_line)
            if command_line == RAY_WORKER
            else command_line in line and "torch.distributed.run" not in line
        ):
            pids.append(pid)
    return pids
