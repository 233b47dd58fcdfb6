"""Files cut off at random places or with wrong bytes, as after a power cut: detected, named, made anew."""

from __future__ import annotations

import json
import random
import shutil
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import cycle
from pathlib import Path

from drills.jobs import Job, Undisturbeds, job_called, made_by
from drills.readers import read_with, reading_commands
from drills.stage import Stage, complaints, orphans
from drills.wholeness import broken, differences, leftovers

RUNS = ("ask masked", "tune", "memorize")
UNHARMED = ("log.txt", "lock")
"""Files whose content decides nothing."""
STORES = ("import more", "infer")


def drill(stage: Stage, undisturbed: Undisturbeds) -> None:
    """Every file of finished runs, of unfinished ones and of knowledge bases; then runs with damage, read."""
    tasks: list[tuple[Callable[..., None], tuple[object, ...]]] = []
    for name in RUNS:
        job = job_called(name)
        files = _files(undisturbed[job].place / job.made)
        tasks += [(_finished, (stage, undisturbed, job, file, way)) for file, way in zip(files, cycle(WAYS))]
    asked = job_called("ask masked")
    for number, file in enumerate(_files(undisturbed[asked].place / "run")):
        way = list(WAYS)[number % len(WAYS)]
        tasks.append((_read, (stage, undisturbed, asked, file, way, number)))
    for name in STORES:
        tasks += [(_store, (stage, undisturbed, job_called(name), way)) for way in WAYS]
    tasks += [
        (_unfinished, (stage, undisturbed, job_called(name), way)) for name in (*RUNS, "pretrain") for way in WAYS
    ]
    with ThreadPoolExecutor(stage.jobs) as pool:
        for done in [pool.submit(_unless_late, stage, task, arguments) for task, arguments in tasks]:
            done.result()


def _unless_late(stage: Stage, task: Callable[..., None], arguments: tuple[object, ...]) -> None:
    if not stage.late:
        task(*arguments)


def _emptied(content: bytes, draw: random.Random) -> bytes:
    return b""


def _cut(content: bytes, draw: random.Random) -> bytes:
    return content[: draw.randrange(len(content) or 1)]


def _last_byte_lost(content: bytes, draw: random.Random) -> bytes:
    return content[:-1]


def _zeroed(content: bytes, draw: random.Random) -> bytes:
    """A page that was never written."""
    start = draw.randrange(len(content) or 1)
    return content[:start] + bytes(min(4096, len(content) - start)) + content[start + 4096 :]


def _flipped(content: bytes, draw: random.Random) -> bytes:
    changed = bytearray(content)
    for place in draw.sample(range(len(changed)), min(3, len(changed))):
        changed[place] ^= 1 << draw.randrange(8)
    return bytes(changed)


WAYS = {
    "cut": _cut,
    "flipped": _flipped,
    "emptied": _emptied,
    "zeroed": _zeroed,
    "without its last byte": _last_byte_lost,
}


def _files(folder: Path) -> list[str]:
    found = sorted(str(file.relative_to(folder)) for file in folder.rglob("*") if file.is_file())
    return [name for name in found if Path(name).name not in UNHARMED]


def _damage(file: Path, way: str, draw: random.Random) -> bool:
    """Damage a file; whether that has changed it."""
    content = file.read_bytes()
    changed = WAYS[way](content, draw)
    file.write_bytes(changed)
    return _meaning(changed, file.suffix) != _meaning(content, file.suffix)


def _meaning(content: bytes, suffix: str) -> object:
    """What a file says: JSON says the same with a blank more or less."""
    if suffix == ".json":
        with suppress(ValueError):
            return json.loads(content)
    return content


def _finished(stage: Stage, undisturbed: Undisturbeds, job: Job, name: str, way: str) -> None:
    """A file of a finished run is damaged; the same command names it and makes it anew."""
    place = stage.place("damaged")
    shutil.copytree(undisturbed[job].place / job.made, place / job.made)
    if not _damage(place / job.made / name, way, stage.draw("finished", job.name, name)):
        return
    ended = stage.finish(job.arguments, place)
    problems = complaints(ended, 0)
    if Path(name).name not in ended.said:
        problems.append("the damage was not named")
    problems += differences(undisturbed[job].contents, made_by(job, place)) + broken(place) + leftovers(place)
    stage.note("damage", "finished runs", f"{job.name}: {name} {way}", problems, place)


def _read(stage: Stage, undisturbed: Undisturbeds, job: Job, name: str, way: str, number: int) -> None:
    """A file of a finished run is damaged; a command that reads it says so, or has no need of it."""
    place = stage.place("damaged")
    for folder in ("run", "other"):
        shutil.copytree(undisturbed[job].place / "run", place / folder)
    if not _damage(place / "run" / name, way, stage.draw("read", name)):
        return
    commands = reading_commands(place / "run", place / "other", place)
    command = commands[number % len(commands)]
    ended = read_with(stage, command, place)
    problems = complaints(ended, 0, 2)
    if ended.code == 2 and Path(name).name not in ended.last_line:
        problems.append(f"the damage is not named: {ended.last_line!r}")
    if ended.code == 0 and name in ("questions.parquet", "answers.parquet", "run.json"):
        problems.append("the damage was not noticed")
    stage.note("damage", "readers", f"merkhet {command[0]}: {name} {way} (exit code {ended.code})", problems, place)


def _store(stage: Stage, undisturbed: Undisturbeds, job: Job, way: str) -> None:
    """A knowledge base is damaged: the file itself, which is said, or the log that a kill has left beside it."""
    draw = stage.draw("store", job.name, way)
    place = stage.place("damaged")
    job.prepare(undisturbed.materials, place)
    _damage(place / "kb.duckdb", way, draw)
    ended = stage.finish(job.arguments, place)
    problems = complaints(ended, 0, 2)
    if ended.code == 2 and "kb.duckdb" not in ended.last_line:
        problems.append(f"the knowledge base is not named: {ended.last_line!r}")
    if ended.code == 0:
        problems += differences(undisturbed[job].contents, made_by(job, place))
    stage.note("damage", "knowledge bases", f"{job.name}: kb.duckdb {way} (exit code {ended.code})", problems, place)
    place = stage.place("damaged")
    job.prepare(undisturbed.materials, place)
    if not _stopped_when(stage, job, place, "kb.duckdb.wal"):
        shutil.rmtree(place)
        return
    _damage(place / "kb.duckdb.wal", way, draw)
    ended = stage.finish(job.arguments, place)
    problems = complaints(ended, 0, 2)
    if ended.code == 0:
        problems += differences(undisturbed[job].contents, made_by(job, place))
    elif "kb.duckdb" not in ended.last_line:
        problems.append(f"the log is not named: {ended.last_line!r}")
    stage.note("damage", "knowledge bases", f"{job.name}: its .wal {way} (exit code {ended.code})", problems, place)


def _unfinished(stage: Stage, undisturbed: Undisturbeds, job: Job, way: str) -> None:
    """All unfinished work of a run that was killed is damaged."""
    place = stage.place("damaged")
    if not _stopped_when(stage, job, place, "run/.merkhet/work/*/*/**/*.*"):
        shutil.rmtree(place)
        return
    draw = stage.draw("unfinished", job.name, way)
    files = [one for one in (place / "run" / ".merkhet" / "work").rglob("*") if one.is_file() and _is_final(one)]
    for file in files:
        _damage(file, way, draw)
    # A step that was done when the kill came has no use for its work any more.
    kept = [one.name for one in files if one.suffix in (".parquet", ".pt") and not _was_done(place, one)]
    ended = stage.finish(job.arguments, place)
    problems = complaints(ended, 0)
    if kept and not any(name in ended.said for name in kept):
        problems.append(f"the damage of {', '.join(kept)} was not named")
    problems += differences(undisturbed[job].contents, made_by(job, place)) + broken(place) + leftovers(place)
    names = ", ".join(sorted(one.name for one in files)) or "nothing"
    stage.note("damage", "unfinished runs", f"{job.name}: {names} {way}", problems, place)


def _was_done(place: Path, file: Path) -> bool:
    step = file.relative_to(place / "run" / ".merkhet" / "work").parts[0]
    return (place / "run" / ".merkhet" / "steps" / f"{step}.json").is_file()


def _is_final(file: Path) -> bool:
    return not file.name.endswith(".tmp")


def _stopped_when(stage: Stage, job: Job, place: Path, pattern: str) -> bool:
    """Kill a job as soon as it has written a file; whether it has."""
    running = stage.start(job.arguments, place)
    while running.wait(0.01) is None:
        if any(_is_final(one) for one in place.glob(pattern)):
            time.sleep(stage.draw("stopped", str(place)).random() / 4)
            if running.process.poll() is None:
                running.kill()
                orphans(running.mark)
            break
    return any(_is_final(one) for one in place.glob(pattern))
