"""SIGKILL of a command at random moments, restarted until it finishes and compared with the undisturbed result."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import count

from drills.integrity import broken_files, differences, leftovers
from drills.jobs import JOBS, Job, References, output_hashes
from drills.stage import Stage, exit_problems, kill_orphans

SHARES = {"build": 0.3, "report": 0.15, "ask": 0.25, "train": 0.3}
"""Shares of the kills by kind of command; quick ones come first."""
MOST_IN_A_ROW = 3


def drill(stage: Stage, references: References) -> None:
    """Kill all jobs, ``stage.kills`` times in total; several chains of kills run at once."""
    for job in JOBS:
        references[job]
    with ThreadPoolExecutor(stage.jobs) as pool:
        for done in [
            pool.submit(_kill_often, stage, references, job, kills) for job, kills in _divide_kills(stage.kills)
        ]:
            done.result()


def _divide_kills(kills: int) -> list[tuple[Job, int]]:
    kills_by_job = []
    for kind, share in SHARES.items():
        of_kind = [job for job in JOBS if job.kind == kind]
        total = round(share * kills)
        kills_by_job += [
            (job, total // len(of_kind) + (number < total % len(of_kind))) for number, job in enumerate(of_kind)
        ]
    return kills_by_job


def _kill_often(stage: Stage, references: References, job: Job, kills: int) -> None:
    done = 0
    for chain in count():
        if done >= kills or stage.late:
            return
        draw = stage.draw("kills", job.name, chain)
        done += _chain(stage, references, job, [draw.random() for _ in range(min(draw.randint(1, 3), kills - done))])


def _chain(stage: Stage, references: References, job: Job, moments: list[float]) -> int:
    """Kill a job at shares of its duration, start after start, then let it finish; return the number of kills."""
    expected = references[job]
    workdir = stage.new_folder("killed")
    job.prepare(references.materials, workdir)
    killed: list[str] = []
    problems: list[str] = []
    for moment in moments:
        running = stage.start(job.arguments, workdir)
        if running.wait(moment * expected.seconds) is None:
            killed.append(f"{moment * expected.seconds:.2f} s")
            running.kill()
            orphans = kill_orphans(running.mark)
            problems += [f"{len(orphans)} processes went on after the kill"] if orphans else []
            problems += [f"at the kill: {problem}" for problem in broken_files(workdir)]
        else:
            break
    result = stage.finish(job.arguments, workdir)
    problems += exit_problems(result, 0)
    problems += differences(expected.content_hashes, output_hashes(job, workdir)) + leftovers(workdir)
    description = f"{job.name} killed at {', '.join(killed)}" if killed else f"{job.name} ended before the kill"
    for number in range(len(killed)):
        last = number == len(killed) - 1
        stage.record("kills", job.kind, description, problems if last else [], workdir if last else None)
    return len(killed)
