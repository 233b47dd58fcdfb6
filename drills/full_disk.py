"""A disk that gets full: a small tmpfs, from too small to nearly enough; then room is made, and the command goes on."""

from __future__ import annotations

from pathlib import Path

from drills.disks import PAGE, small_disk, used, why_not
from drills.jobs import JOBS, Job, Undisturbeds, made_by
from drills.stage import Ended, Stage, complaints
from drills.wholeness import broken, differences, final_files, leftovers

SHARES = (0.02, 0.35, 0.8)
"""Of the room that the command needs beyond what is there before."""
ENOUGH = 256 << 20


def drill(stage: Stage, undisturbed: Undisturbeds) -> None:
    """Every job on disks of several sizes; then those that need the temporary folder with that one full."""
    reason = why_not(stage.folder / "mounting")
    if reason:
        stage.skip("full_disk", f"a tmpfs cannot be mounted ({reason})")
        return
    for job in JOBS:
        for share in SHARES:
            if not stage.late:
                _fill(stage, undisturbed, job, share)
    _fill_temporary(stage, undisturbed)


def _fill(stage: Stage, undisturbed: Undisturbeds, job: Job, share: float) -> None:
    expected = undisturbed[job]
    place = stage.place("full")
    before = stage.place("before")
    job.prepare(undisturbed.materials, before)
    there = used(before)
    size = there + PAGE + int(share * max(0, used(expected.place) - there))
    with small_disk(place, ENOUGH) as disk:
        job.prepare(undisturbed.materials, place)
        old = {file: file.read_bytes() for file in final_files(place)}
        disk.remount(f"size={size}")
        ended = stage.finish(job.arguments, place, {"TMPDIR": str(place)} if share == SHARES[0] else {})
        problems = _said_full(ended) if ended.code else []
        problems += complaints(ended, 0, 2) + broken(place)
        problems += [f"half-written: {one}" for one in leftovers(place) if "/work" not in one and ".wal" not in one]
        if job.made.endswith(".duckdb") is False:
            problems += [
                f"{file.name} was there before, and has changed"
                for file, content in old.items()
                if ended.code and (not file.is_file() or file.read_bytes() != content) and file.name != "log.txt"
            ]
        disk.remount(f"size={ENOUGH}")
        again = stage.finish(job.arguments, place)
        problems += [f"with room again: {one}" for one in complaints(again, 0)]
        problems += differences(expected.contents, made_by(job, place)) + leftovers(place)
    stage.note("full_disk", job.kind, f"{job.name} with {size >> 10} KiB (exit code {ended.code})", problems)


def _said_full(ended: Ended) -> list[str]:
    full = "disk is full" in ended.last_line
    return [] if full else [f"the last line does not say that the disk is full: {ended.last_line!r}"]


def _fill_temporary(stage: Stage, undisturbed: Undisturbeds) -> None:
    """The temporary folder is full: for what is built there, and for processes that train together."""
    for name, size, arguments in (
        ("build kmir", 64 << 10, ("build", "kmir", "--knowledge", "countries", "--limit", "20", "--out", "questions")),
        ("memorize by two", 2 * PAGE, ("memorize", "../materials/together.yaml", "--out", "run", "--quiet")),
    ):
        place = stage.place("full")
        temporary: Path = stage.place("temporary")
        with small_disk(temporary, size):
            ended = stage.finish(arguments, place, {"TMPDIR": str(temporary)})
        problems = complaints(ended, 2) + _said_full(ended)
        if name == "build kmir" and any(place.iterdir()):
            problems.append("something was written although nothing could be built")
        stage.note("full_disk", "TMPDIR", f"{name} with {size >> 10} KiB for temporary files", problems, place)
