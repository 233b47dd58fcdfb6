"""Executes a plan: each step once, resumed where it was, reused while nothing it depends on has changed."""

from __future__ import annotations

import json
import logging
import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from gnomon.foundation import (
    GnomonError,
    InputError,
    Progress,
    digest,
    file_digest,
    load_part,
    refuse_foreign_folder,
    write_json,
)
from gnomon.foundation.files import disk_full, is_disk_full
from gnomon.foundation.version import __version__
from gnomon.runs.plan import Plan, Step, StepContext

try:
    import fcntl
except ImportError:  # Not a Unix system: two runs in one folder cannot be kept apart there.
    fcntl = None  # type: ignore[assignment]

logger = logging.getLogger("gnomon.runs")

INTERNAL = ".gnomon"
"""The folder within a run that holds unfinished work and what was done; everything beside it is for people."""


@dataclass(frozen=True)
class Outcome:
    """Which steps were done and which were reused."""

    done: tuple[str, ...]
    reused: tuple[str, ...]


def execute(
    plan: Plan, folder: Path, home: Path, progress: Progress, after: Callable[[Step], None] = lambda step: None
) -> Outcome:
    """Do the steps of a plan in a run's folder. Killed at any moment and called again, it goes on where it was.

    ``after`` is told of each step that is done or reused. A folder that was not there before is removed again if not
    a single step could be done.
    """
    refuse_foreign_folder(folder, INTERNAL)
    fresh = not folder.exists()
    try:
        return _execute(plan, folder, home, progress, after)
    except OSError as error:
        raise (disk_full(folder) if is_disk_full(error) else error) from error
    finally:
        if fresh and folder.exists() and not any((folder / INTERNAL / "steps").glob("*.json")):
            shutil.rmtree(folder)


def _execute(plan: Plan, folder: Path, home: Path, progress: Progress, after: Callable[[Step], None]) -> Outcome:
    done, reused = [], []
    with _locked(folder), _log_file(folder):
        _remove_leftovers(folder)
        for step in _steps(plan, folder):
            key = _key(step, folder)
            if _is_done(step, key, folder):
                reused.append(step.name)
                logger.info("%s: nothing has changed, reused", step.name)
                after(step)
                continue
            started = time.perf_counter()
            logger.info("%s: begins", step.name)
            work = folder / INTERNAL / "work" / _file_name(step.name) / key[:24]
            _forget_other_work(work)
            load_part(step.action)(StepContext(step, folder, work, home, progress))
            _record(step, key, folder, time.perf_counter() - started)
            shutil.rmtree(work.parent, ignore_errors=True)
            done.append(step.name)
            after(step)
    return Outcome(tuple(done), tuple(reused))


def _steps(plan: Plan | None, folder: Path) -> Iterator[Step]:
    """The steps of a plan and of those that follow it, each asked for when the one before is done."""
    while plan is not None:
        yield from plan.steps
        plan = plan.then(folder) if plan.then else None


def _key(step: Step, folder: Path) -> str:
    contents = {}
    for name in step.inputs:
        if not (folder / name).is_file():
            raise GnomonError(f"the step {step.name} needs {folder / name}, which no earlier step has made")
        contents[name] = file_digest(folder / name)
    return digest([__version__, step.action, step.params, contents, step.outputs])


def _is_done(step: Step, key: str, folder: Path) -> bool:
    try:
        record = json.loads(_record_file(step, folder).read_text(encoding="utf-8"))
    except (FileNotFoundError, json.JSONDecodeError):
        return False
    if record.get("key") != key:
        return False
    return all(
        (folder / name).is_file() and file_digest(folder / name) == record["outputs"].get(name) for name in step.outputs
    )


def _record(step: Step, key: str, folder: Path, seconds: float) -> None:
    missing = [name for name in step.outputs if not (folder / name).is_file()]
    if missing:
        raise GnomonError(f"the step {step.name} has ended without writing {missing[0]}")
    outputs = {name: file_digest(folder / name) for name in step.outputs}
    write_json(_record_file(step, folder), {"key": key, "outputs": outputs, "seconds": round(seconds, 3)})
    logger.info("%s: done in %.1f s", step.name, seconds)


def _record_file(step: Step, folder: Path) -> Path:
    return folder / INTERNAL / "steps" / f"{_file_name(step.name)}.json"


def _file_name(name: str) -> str:
    safe = "".join(letter if letter.isalnum() or letter in "-_." else "-" for letter in name)
    safe = safe.encode()[:200].decode(errors="ignore")  # Longer names of files are refused by most file systems.
    return safe if safe == name else f"{safe}-{digest(name)[:8]}"


def _forget_other_work(work: Path) -> None:
    """Unfinished work for other inputs is of no use any more."""
    if work.parent.is_dir():
        for other in work.parent.iterdir():
            if other != work:
                shutil.rmtree(other, ignore_errors=True)
    work.mkdir(parents=True, exist_ok=True)


def _remove_leftovers(folder: Path) -> None:
    """Half-written files of a process that was killed; the lock says that nobody writes them any more."""
    for leftover in folder.rglob(".*.tmp"):
        leftover.unlink(missing_ok=True)


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """One run at a time in a folder; the lock goes with the process, however it ends."""
    try:
        (folder / INTERNAL).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        if is_disk_full(error):
            raise
        raise InputError(f"{folder} cannot be written to. Choose another place with --out.") from error
    with open(folder / INTERNAL / "lock", "a+") as handle:
        try:
            if fcntl is not None:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            handle.seek(0)
            other = handle.read().strip() or "unknown"
            raise InputError(
                f"another gnomon (process {other}) is writing to {folder}. Wait for it, or choose another --out."
            ) from error
        handle.truncate(0)
        handle.write(str(os.getpid()))
        handle.flush()
        yield


@contextmanager
def _log_file(folder: Path) -> Iterator[None]:
    handler = logging.FileHandler(folder / "log.txt", encoding="utf-8")
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    root = logging.getLogger("gnomon")
    before = root.level
    root.addHandler(handler)
    root.setLevel(logging.INFO)
    root.propagate = False
    try:
        yield
    finally:
        root.removeHandler(handler)
        root.setLevel(before)
        handler.close()
