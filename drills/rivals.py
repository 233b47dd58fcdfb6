"""Several processes on one folder or one knowledge base at once, with readers among them."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

from drills.jobs import Job, Undisturbeds, job_called, made_by
from drills.stage import Ended, Stage, complaints
from drills.wholeness import differences, leftovers

WRITERS = ("ask masked", "import", "import more", "infer", "build", "memorize")
TIMES = 3


def drill(stage: Stage, undisturbed: Undisturbeds) -> None:
    """Two to four at once, started within a moment of each other, several times each; then readers beside a writer."""
    for name in WRITERS:
        for time_ in range(TIMES):
            if not stage.late:
                _writers(stage, undisturbed, job_called(name), time_)
    _readers(stage, undisturbed)


def _writers(stage: Stage, undisturbed: Undisturbeds, job: Job, time_: int) -> None:
    expected = undisturbed[job]
    place = stage.place("rivals")
    job.prepare(undisturbed.materials, place)
    draw = stage.draw("rivals", job.name, time_)
    running = []
    for _ in range(draw.randint(2, 4)):
        running.append(stage.start(job.arguments, place))
        # At once the first time; later ones while the others are already at work, too.
        time.sleep(draw.random() * expected.seconds / 2 if time_ else 0.0)
    ended = [one.wait() or one.kill() for one in running]
    problems = [problem for one in ended for problem in _refused_or_done(one)]
    if all(one.code for one in ended):
        problems.append("none of them got through")
    problems += differences(expected.contents, made_by(job, place))
    again = stage.finish(job.arguments, place)
    problems += complaints(again, 0) + differences(expected.contents, made_by(job, place)) + leftovers(place)
    codes = ", ".join(str(one.code) for one in ended)
    stage.note("rivals", job.kind, f"{len(ended)} × {job.name} (exit codes {codes})", problems, place)


def _refused_or_done(ended: Ended) -> list[str]:
    found = complaints(ended, 0, 2)
    if ended.code == 2 and not any(word in ended.last_line for word in ("another merkhet", "in use")):
        found.append(f"the refusal says {ended.last_line!r}")
    return found


def _readers(stage: Stage, undisturbed: Undisturbeds) -> None:
    """A finished run is read while the same command makes parts of it anew."""
    job = job_called("ask masked")
    expected = undisturbed[job]
    commands = (
        ("report", "run", "--out", "elsewhere.html"),
        ("compare", "run", "other", "--out", "elsewhere.html"),
        ("tables", "run", "--out", "tables"),
        ("figures", "run", "--as", "svg", "--out", "figures"),
    )
    for number, command in enumerate(commands):
        if stage.late:
            return
        place = stage.place("rivals")
        for name in ("run", "other"):
            shutil.copytree(expected.place / "run", place / name)
        _take_away(place / "run")
        writer = stage.start(job.arguments, place)
        time.sleep(stage.draw("readers", number).random() * expected.seconds / 2)
        read = stage.finish(command, place)
        problems = complaints(read, 0, 2)
        wrote = writer.wait() or writer.kill()
        problems += complaints(wrote, 0) + differences(expected.contents, made_by(job, place))
        stage.note("rivals", "readers", f"merkhet {command[0]} beside a run (exit code {read.code})", problems, place)


def _take_away(run: Path) -> None:
    """Let there be something to do again."""
    for name in ("scores.parquet", "findings.json"):
        (run / name).unlink()
