"""Files that are truncated or have wrong bytes, as after a power cut: they must be detected, named and remade."""

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

from drills.integrity import broken_files, differences, leftovers
from drills.jobs import Job, References, find_job, output_hashes
from drills.readers import read_with, reading_commands
from drills.stage import Stage, exit_problems, kill_orphans

RUNS = ("ask masked", "tune", "memorize")
UNHARMED = ("log.txt", "lock")
"""Files whose content does not matter."""
STORES = ("import more", "infer")


def drill(stage: Stage, references: References) -> None:
    """Damage every file of finished runs, of unfinished runs and of knowledge bases, and read damaged runs."""
    tasks: list[tuple[Callable[..., None], tuple[object, ...]]] = []
    for name in RUNS:
        job = find_job(name)
        files = _files(references[job].workdir / job.output)
        tasks += [
            (_damage_finished, (stage, references, job, file, damage)) for file, damage in zip(files, cycle(DAMAGES))
        ]
    asked = find_job("ask masked")
    for number, file in enumerate(_files(references[asked].workdir / "run")):
        damage = list(DAMAGES)[number % len(DAMAGES)]
        tasks.append((_damage_and_read, (stage, references, asked, file, damage, number)))
    for name in STORES:
        tasks += [(_damage_store, (stage, references, find_job(name), damage)) for damage in DAMAGES]
    tasks += [
        (_damage_unfinished, (stage, references, find_job(name), damage))
        for name in (*RUNS, "pretrain")
        for damage in DAMAGES
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
    """Zero a page, as if it was never written."""
    start = draw.randrange(len(content) or 1)
    return content[:start] + bytes(min(4096, len(content) - start)) + content[start + 4096 :]


def _flipped(content: bytes, draw: random.Random) -> bytes:
    changed = bytearray(content)
    for position in draw.sample(range(len(changed)), min(3, len(changed))):
        changed[position] ^= 1 << draw.randrange(8)
    return bytes(changed)


DAMAGES = {
    "cut": _cut,
    "flipped": _flipped,
    "emptied": _emptied,
    "zeroed": _zeroed,
    "without its last byte": _last_byte_lost,
}


def _files(folder: Path) -> list[str]:
    names = sorted(str(file.relative_to(folder)) for file in folder.rglob("*") if file.is_file())
    return [name for name in names if Path(name).name not in UNHARMED]


def _damage(file: Path, damage: str, draw: random.Random) -> bool:
    """Damage a file; return whether its meaning has changed."""
    content = file.read_bytes()
    changed = DAMAGES[damage](content, draw)
    file.write_bytes(changed)
    return _meaning(changed, file.suffix) != _meaning(content, file.suffix)


def _meaning(content: bytes, suffix: str) -> object:
    """Return the content of a file; JSON is parsed, as blanks do not matter there."""
    if suffix == ".json":
        with suppress(ValueError):
            return json.loads(content)
    return content


def _damage_finished(stage: Stage, references: References, job: Job, name: str, damage: str) -> None:
    """Damage a file of a finished run; the same command must name and remake it."""
    workdir = stage.new_folder("damaged")
    shutil.copytree(references[job].workdir / job.output, workdir / job.output)
    if not _damage(workdir / job.output / name, damage, stage.draw("finished", job.name, name)):
        return
    result = stage.finish(job.arguments, workdir)
    problems = exit_problems(result, 0)
    if Path(name).name not in result.output:
        problems.append("the damage was not named")
    problems += (
        differences(references[job].content_hashes, output_hashes(job, workdir))
        + broken_files(workdir)
        + leftovers(workdir)
    )
    stage.record("damage", "finished runs", f"{job.name}: {name} {damage}", problems, workdir)


def _damage_and_read(stage: Stage, references: References, job: Job, name: str, damage: str, number: int) -> None:
    """Damage a file of a finished run; a command that reads it must say so, or not need it."""
    workdir = stage.new_folder("damaged")
    for folder in ("run", "other"):
        shutil.copytree(references[job].workdir / "run", workdir / folder)
    if not _damage(workdir / "run" / name, damage, stage.draw("read", name)):
        return
    commands = reading_commands(workdir / "run", workdir / "other", workdir)
    command = commands[number % len(commands)]
    result = read_with(stage, command, workdir)
    problems = exit_problems(result, 0, 2)
    if result.code == 2 and Path(name).name not in result.last_line:
        problems.append(f"the damage is not named: {result.last_line!r}")
    if result.code == 0 and name in ("questions.parquet", "answers.parquet", "run.json"):
        problems.append("the damage was not noticed")
    stage.record(
        "damage", "readers", f"merkhet {command[0]}: {name} {damage} (exit code {result.code})", problems, workdir
    )


def _damage_store(stage: Stage, references: References, job: Job, damage: str) -> None:
    """Damage a knowledge base, or the write-ahead log that a kill left; the command must name it."""
    draw = stage.draw("store", job.name, damage)
    workdir = stage.new_folder("damaged")
    job.prepare(references.materials, workdir)
    _damage(workdir / "kb.duckdb", damage, draw)
    result = stage.finish(job.arguments, workdir)
    problems = exit_problems(result, 0, 2)
    if result.code == 2 and "kb.duckdb" not in result.last_line:
        problems.append(f"the knowledge base is not named: {result.last_line!r}")
    if result.code == 0:
        problems += differences(references[job].content_hashes, output_hashes(job, workdir))
    stage.record(
        "damage", "knowledge bases", f"{job.name}: kb.duckdb {damage} (exit code {result.code})", problems, workdir
    )
    workdir = stage.new_folder("damaged")
    job.prepare(references.materials, workdir)
    if not _kill_when_written(stage, job, workdir, "kb.duckdb.wal"):
        shutil.rmtree(workdir)
        return
    _damage(workdir / "kb.duckdb.wal", damage, draw)
    result = stage.finish(job.arguments, workdir)
    problems = exit_problems(result, 0, 2)
    if result.code == 0:
        problems += differences(references[job].content_hashes, output_hashes(job, workdir))
    elif "kb.duckdb" not in result.last_line:
        problems.append(f"the log is not named: {result.last_line!r}")
    stage.record(
        "damage", "knowledge bases", f"{job.name}: its .wal {damage} (exit code {result.code})", problems, workdir
    )


def _damage_unfinished(stage: Stage, references: References, job: Job, damage: str) -> None:
    """Damage all unfinished work of a killed run."""
    workdir = stage.new_folder("damaged")
    if not _kill_when_written(stage, job, workdir, "run/.merkhet/work/*/*/**/*.*"):
        shutil.rmtree(workdir)
        return
    draw = stage.draw("unfinished", job.name, damage)
    files = [file for file in (workdir / "run" / ".merkhet" / "work").rglob("*") if file.is_file() and _is_final(file)]
    for file in files:
        _damage(file, damage, draw)
    # A step that was finished before the kill does not need its work any more.
    needed = [file.name for file in files if file.suffix in (".parquet", ".pt") and not _was_done(workdir, file)]
    result = stage.finish(job.arguments, workdir)
    problems = exit_problems(result, 0)
    if needed and not any(name in result.output for name in needed):
        problems.append(f"the damage of {', '.join(needed)} was not named")
    problems += (
        differences(references[job].content_hashes, output_hashes(job, workdir))
        + broken_files(workdir)
        + leftovers(workdir)
    )
    names = ", ".join(sorted(file.name for file in files)) or "nothing"
    stage.record("damage", "unfinished runs", f"{job.name}: {names} {damage}", problems, workdir)


def _was_done(workdir: Path, file: Path) -> bool:
    step = file.relative_to(workdir / "run" / ".merkhet" / "work").parts[0]
    return (workdir / "run" / ".merkhet" / "steps" / f"{step}.json").is_file()


def _is_final(file: Path) -> bool:
    return not file.name.endswith(".tmp")


def _kill_when_written(stage: Stage, job: Job, workdir: Path, pattern: str) -> bool:
    """Kill a job as soon as it has written a file that matches a pattern; return whether it has."""
    running = stage.start(job.arguments, workdir)
    while running.wait(0.01) is None:
        if any(_is_final(path) for path in workdir.glob(pattern)):
            time.sleep(stage.draw("stopped", str(workdir)).random() / 4)
            if running.process.poll() is None:
                running.kill()
                kill_orphans(running.mark)
            break
    return any(_is_final(path) for path in workdir.glob(pattern))
