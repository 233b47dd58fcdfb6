"""A folder that cannot be written to: every command that writes says so; a finished run in it can still be read."""

from __future__ import annotations

import shutil
from pathlib import Path

from drills.disks import small_disk, why_not
from drills.jobs import JOBS, Undisturbeds, job_called
from drills.readers import read_with, reading_commands
from drills.stage import Stage, complaints

ENOUGH = 256 << 20


def drill(stage: Stage, undisturbed: Undisturbeds) -> None:
    """Every job, then every other command that writes, on a disk that is read-only; then readers of a run on it."""
    reason = why_not(stage.folder / "mounting")
    if reason:
        stage.skip("read_only", f"a tmpfs cannot be mounted ({reason})")
        return
    finished = undisturbed[job_called("ask masked")].place / "run"
    with small_disk(stage.place("read-only"), ENOUGH) as disk:
        place = disk.place
        (place / "empty").mkdir()
        for job in JOBS:
            (place / job.name.replace(" ", "-")).mkdir()
            job.prepare(undisturbed.materials, place / job.name.replace(" ", "-"))
        shutil.copytree(finished, place / "run")
        shutil.copytree(finished, place / "other")
        disk.remount("ro")
        for job in JOBS:
            arguments = [one.replace("../materials", str(undisturbed.materials)) for one in job.arguments]
            _refused(stage, job.name, arguments, place / job.name.replace(" ", "-"))
        for arguments in _others(place):
            _refused(stage, " ".join(arguments[:2]), arguments, place)
        elsewhere = stage.place("elsewhere")
        for command in reading_commands(place / "run", place / "other", elsewhere):
            ended = read_with(stage, command, elsewhere)
            stage.note("read_only", "readers", f"merkhet {command[0]} of a run there", complaints(ended, 0))


def _refused(stage: Stage, name: str, arguments: list[str], place: Path) -> None:
    ended = stage.finish(arguments, place)
    problems = complaints(ended, 2)
    if not problems and not any(word in ended.last_line for word in ("cannot be written", "read-only", "cannot be")):
        problems.append(f"the last line does not say what is wrong: {ended.last_line!r}")
    stage.note("read_only", "writers", f"{name}: {ended.last_line}", problems)


def _others(place: Path) -> list[list[str]]:
    """What else writes; all of it into the read-only disk."""
    empty = place / "empty"
    return [
        ["report", str(place / "run"), "--predictions"],
        ["tables", str(place / "run"), "--out", str(empty / "tables")],
        ["figures", str(place / "run"), "--as", "svg", "--out", str(empty / "figures")],
        ["compare", str(place / "run"), str(place / "other"), "--out", str(empty / "compared.html")],
        ["knowledge", "export", str(place / "infer" / "kb.duckdb"), "--out", str(empty / "facts.csv")],
        ["knowledge", "export", str(place / "infer" / "kb.duckdb"), "--out", str(empty / "facts")],
        ["build", "quickstart", "--limit", "12", "--out", str(place / "new" / "questions")],
    ]
