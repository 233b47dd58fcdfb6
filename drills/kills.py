"""SIGKILL of a whole command at random moments, started again until it gets through, against the undisturbed result."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import count

from drills.jobs import JOBS, Job, Undisturbeds, made_by
from drills.stage import Stage, complaints, orphans
from drills.wholeness import broken, differences, leftovers

SHARES = {"build": 0.3, "report": 0.15, "ask": 0.25, "train": 0.3}
"""How the kills are divided over the kinds of commands; the quick ones come first."""
MOST_IN_A_ROW = 3


def drill(stage: Stage, undisturbed: Undisturbeds) -> None:
    """Kill as often as the stage says, divided over all jobs; several chains of kills go on at once."""
    for job in JOBS:
        undisturbed[job]
    with ThreadPoolExecutor(stage.jobs) as pool:
        for done in [pool.submit(_kill_often, stage, undisturbed, job, kills) for job, kills in _divided(stage.kills)]:
            done.result()


def _divided(kills: int) -> list[tuple[Job, int]]:
    found = []
    for kind, share in SHARES.items():
        own = [job for job in JOBS if job.kind == kind]
        wanted = round(share * kills)
        found += [(job, wanted // len(own) + (number < wanted % len(own))) for number, job in enumerate(own)]
    return found


def _kill_often(stage: Stage, undisturbed: Undisturbeds, job: Job, kills: int) -> None:
    done = 0
    for chain in count():
        if done >= kills or stage.late:
            return
        draw = stage.draw("kills", job.name, chain)
        done += _chain(stage, undisturbed, job, [draw.random() for _ in range(min(draw.randint(1, 3), kills - done))])


def _chain(stage: Stage, undisturbed: Undisturbeds, job: Job, moments: list[float]) -> int:
    """Kill a job at these shares of its duration, one start after the other, then let it finish; how many kills."""
    expected = undisturbed[job]
    place = stage.place("killed")
    job.prepare(undisturbed.materials, place)
    killed: list[str] = []
    problems: list[str] = []
    for moment in moments:
        running = stage.start(job.arguments, place)
        if running.wait(moment * expected.seconds) is None:
            killed.append(f"{moment * expected.seconds:.2f} s")
            running.kill()
            left = orphans(running.mark)
            problems += [f"{len(left)} processes went on after the kill"] if left else []
            problems += [f"at the kill: {one}" for one in broken(place)]
        else:
            break
    ended = stage.finish(job.arguments, place)
    problems += complaints(ended, 0)
    problems += differences(expected.contents, made_by(job, place)) + leftovers(place)
    what = f"{job.name} killed at {', '.join(killed)}" if killed else f"{job.name} ended before the kill"
    for number in range(len(killed)):
        last = number == len(killed) - 1
        stage.note("kills", job.kind, what, problems if last else [], place if last else None)
    return len(killed)
