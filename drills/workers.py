"""SIGKILL of single processes: one of two that memorize together, who started them, one of Ray's actors, its node."""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

from drills.jobs import TOGETHER, Job, Undisturbeds, job_called, made_by
from drills.stage import Running, Stage, complaints, orphans
from drills.wholeness import broken, differences, leftovers

TIMES = 4
RAY_WORKER, RAY_NODE = "ray::Worker", "/raylet/raylet "
RAY = Job(
    "ask on Ray",
    "ask",
    (*job_called("ask masked").arguments, "--engine", "ray", "--cores-per-worker", "1"),
    "run",
    job_called("ask masked").prepare,
)


def drill(stage: Stage, undisturbed: Undisturbeds) -> None:
    """Kill one process of a command a few times: a worker, then the one that has started the workers."""
    for number in range(TIMES):
        for victim in ("a worker", "the one that started them"):
            if not stage.late:
                _kill(stage, undisturbed, TOGETHER, TOGETHER, victim, number, "merkhet.training")
    if find_spec("ray") is None:
        stage.skip("workers on Ray", "Ray is not installed (pip install 'merkhet[ray]')")
        return
    for number in range(TIMES):
        for victim, called in (("a worker", RAY_WORKER), ("the node", RAY_NODE)):
            if not stage.late:
                _kill(stage, undisturbed, RAY, job_called("ask masked"), victim, number, called)


def _kill(stage: Stage, undisturbed: Undisturbeds, job: Job, same: Job, victim: str, number: int, called: str) -> None:
    expected = undisturbed[same]
    place = stage.place("workers")
    job.prepare(undisturbed.materials, place)
    draw = stage.draw("workers", job.name, victim, number)
    running = stage.start(job.arguments, place)
    workers: list[int] = []
    until = time.monotonic() + 120
    while not workers and running.process.poll() is None and time.monotonic() < until:
        workers = _called(running, called)
        time.sleep(0.05)
    time.sleep(draw.random() * 4)
    workers = _called(running, called) or workers
    if victim == "the one that started them":
        _end(running.process.pid)
    elif workers:
        _end(draw.choice(workers))
    ended = running.wait() or running.kill()
    left = orphans(running.mark, 60.0)
    problems = [f"{len(left)} processes went on"] if left else []
    problems += [f"at the kill: {one}" for one in broken(place)]
    # Ray's workers are replaced, and the run goes on.
    problems += complaints(ended, *((0,) if called == RAY_WORKER else (0, 1, 2, -signal.SIGKILL)))
    again = stage.finish(job.arguments, place)
    problems += complaints(again, 0) + differences(expected.contents, made_by(job, place)) + leftovers(place)
    what = f"{job.name}: {victim} of {len(workers)} killed (exit code {ended.code})"
    stage.note("workers", job.kind, what, problems, place)


def _end(process: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(process, signal.SIGKILL)


def _called(running: Running, what: str) -> list[int]:
    """The processes that a command has started and whose command line holds something, but not torchrun itself."""
    found = []
    for pid in running.family():
        try:
            line = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        # Ray calls its workers so; others have that name among what they are given.
        if line.startswith(what) if what == RAY_WORKER else what in line and "torch.distributed.run" not in line:
            found.append(pid)
    return found
