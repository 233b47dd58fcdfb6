"""Executes a plan: each step once, resumed where it was, reused while nothing it depends on has changed."""

from __future__ import annotations

import json
import logging
import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from merkhet.core.errors import InputError, MerkhetError
from merkhet.core.files import explain_write_error, file_digest, is_disk_full, refuse_foreign_folder, write_json
from merkhet.core.ids import digest
from merkhet.core.progress import Progress
from merkhet.core.version import __version__
from merkhet.engine.plan import AnyStep, Plan, StepContext, step_identity

try:
    import fcntl
except ImportError:  # Not a Unix system: two runs in one folder cannot be kept apart there.
    fcntl = None  # type: ignore[assignment]

logger = logging.getLogger("merkhet.engine")

INTERNAL = ".merkhet"
"""The folder within a run that holds unfinished work and what was done; everything beside it is for people."""

LEARNED = "learned.json"
"""Where a step writes this, the whole folder around it is what it has made."""


@dataclass(frozen=True)
class Outcome:
    """Which steps were done and which were reused."""

    done: tuple[str, ...]
    reused: tuple[str, ...]


def execute(
    plan: Plan,
    folder: Path,
    home: Path,
    progress: Progress,
    supplied: Callable[[AnyStep, Path], bool] = lambda step, work: False,
) -> Outcome:
    """Do the steps of a plan in a run's folder. Killed at any moment and called again, it goes on where it was.

    A new folder is removed again if not a single step could be done.

    Args:
        plan: Steps to execute.
        folder: The run's folder.
        home: Folder that the study's paths are relative to.
        progress: Receives messages and the summary of each step.
        supplied: Called before a step runs. It may fill the work folder with unfinished work, or write all outputs
            of the step and return True.
    """
    refuse_foreign_folder(folder, INTERNAL)
    fresh = not folder.exists()
    try:
        with _locked(folder):
            try:
                with _log_file(folder, progress):
                    return _execute(plan, folder, home, progress, supplied)
            finally:
                # While the lock is held: a folder that somebody else works in is not this run's to remove.
                if fresh and not any((folder / INTERNAL / "steps").glob("*.json")):
                    shutil.rmtree(folder, ignore_errors=True)
    except MerkhetError:
        raise
    except Exception as error:
        if fresh:
            with suppress(OSError):  # Empty ones alone.
                (folder / INTERNAL).rmdir()
                folder.rmdir()
        raise (explain_write_error(error, folder) or error) from error


def _execute(
    plan: Plan,
    folder: Path,
    home: Path,
    progress: Progress,
    supplied: Callable[[AnyStep, Path], bool],
) -> Outcome:
    done, reused = [], []
    _remove_leftovers(folder)
    for step in _steps(plan, folder):
        key = _key(step, folder)
        if _is_done(step, key, folder):
            reused.append(step.name)
            logger.info("%s: nothing has changed, reused", step.name)
            _print_summary(step, folder, progress)
            continue
        started = time.perf_counter()
        logger.info("%s: begins", step.name)
        work = folder / INTERNAL / "work" / _file_name(step.name) / key[:24]
        _forget_other_work(work)
        if not supplied(step, work):
            step.function(StepContext(step, folder, work, home, progress))
        _record(step, key, folder, time.perf_counter() - started)
        shutil.rmtree(work.parent, ignore_errors=True)
        done.append(step.name)
        _print_summary(step, folder, progress)
    # Of steps that are no more, or were done when a kill kept them from clearing up.
    shutil.rmtree(folder / INTERNAL / "work", ignore_errors=True)
    return Outcome(tuple(done), tuple(reused))


def _print_summary(step: AnyStep, folder: Path, progress: Progress) -> None:
    for line in step.summarize(folder) if step.summarize else ():
        progress.say(line)


def _steps(plan: Plan | None, folder: Path) -> Iterator[AnyStep]:
    """The steps of a plan and of those that follow it, each asked for when the one before is done."""
    while plan is not None:
        yield from plan.steps
        plan = plan.then(folder) if plan.then else None


def _key(step: AnyStep, folder: Path) -> str:
    contents = {}
    for name in step.inputs:
        if not (folder / name).is_file():
            raise MerkhetError(f"the step {step.name} needs {folder / name}, which no earlier step has made")
        contents[name] = file_digest(folder / name)
    return digest([__version__, step_identity(step), contents])


def is_recorded(step: AnyStep, folder: Path) -> bool:
    """Whether a folder's records say that a step was done with the inputs that are there, and its outputs are whole."""
    try:
        record = json.loads(_record_file(step, folder).read_bytes())
        same = record["key"] == _key(step, folder)
        return same and all(file_digest(folder / name) == record["outputs"].get(name) for name in step.outputs)
    except (OSError, ValueError, KeyError, TypeError, MerkhetError):
        return False


def _is_done(step: AnyStep, key: str, folder: Path) -> bool:
    """Whether a step was done with these very inputs; what it had made and is damaged now is named."""
    file = _record_file(step, folder)
    try:
        record = json.loads(file.read_bytes())
        check = record.pop("check", None)
        if check is not None and check != digest(record):
            raise ValueError("it is not what was written")
        known, outputs = record["key"], {**record["outputs"], **record.get("beside", {})}
    except FileNotFoundError:
        return False
    except (ValueError, KeyError, TypeError):
        logger.warning("%s was damaged: the step %s is done anew", file.relative_to(folder), step.name)
        return False
    if known != key:
        return False
    for name in (*step.outputs, *record.get("beside", {})):
        if not (folder / name).is_file():
            logger.warning("%s was gone, and is made anew", name)
        elif file_digest(folder / name) != outputs.get(name):
            logger.warning("%s was damaged or changed, and is made anew", name)
        else:
            continue
        return False
    return True


def _record(step: AnyStep, key: str, folder: Path, seconds: float) -> None:
    """Write what a step has made, after it: whatever a power cut takes of that is missed by its hash."""
    missing = [name for name in step.outputs if not (folder / name).is_file()]
    if missing:
        raise MerkhetError(f"the step {step.name} has ended without writing {missing[0]}")
    outputs = {name: file_digest(folder / name) for name in step.outputs}
    beside = {
        str(file.relative_to(folder)): file_digest(file)
        for name in step.outputs
        if Path(name).name == LEARNED
        for file in sorted((folder / name).parent.rglob("*"))
        if file.is_file() and str(file.relative_to(folder)) not in outputs
    }
    content = {"key": key, "outputs": outputs, **({"beside": beside} if beside else {}), "seconds": round(seconds, 3)}
    write_json(_record_file(step, folder), {**content, "check": digest(content)})
    logger.info("%s: done in %.1f s", step.name, seconds)


def _record_file(step: AnyStep, folder: Path) -> Path:
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
    for leftover in [*folder.rglob(".*.tmp"), *folder.rglob(".*.part")]:
        if leftover.is_dir():
            shutil.rmtree(leftover, ignore_errors=True)
        else:
            leftover.unlink(missing_ok=True)


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """One run at a time in a folder; the lock goes with the process, however it ends."""
    with _lock_file(folder) as handle:
        try:
            if fcntl is not None:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            handle.seek(0)
            raise _in_use(folder, handle.read().strip()) from error
        if not os.fstat(handle.fileno()).st_nlink:  # Whoever held it has just cleared the folder away.
            raise _in_use(folder, "")
        handle.truncate(0)
        handle.write(str(os.getpid()))
        handle.flush()
        yield


def _lock_file(folder: Path) -> TextIO:
    try:
        (folder / INTERNAL).mkdir(parents=True, exist_ok=True)
        return open(folder / INTERNAL / "lock", "a+", encoding="utf-8")
    except OSError as error:
        if is_disk_full(error):
            raise
        raise InputError(f"{folder} cannot be written to. Choose another place with --out.") from error


def _in_use(folder: Path, process: str) -> InputError:
    return InputError(
        f"another merkhet process ({process or 'unknown'}) is writing to {folder}. Wait for it, or choose another --out"
    )


class _LogFile(logging.FileHandler):
    """The run's log; a line that finds no room on the disk is lost, and what cannot do without room says so."""

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802
        """Nothing: the default is a traceback on standard error."""

    def close(self) -> None:
        """Close the file, whether or not its last line can be written."""
        with suppress(OSError):
            super().close()


class _Said(logging.Handler):
    """Warnings, said to whoever watches the run."""

    def __init__(self, progress: Progress) -> None:
        super().__init__(logging.WARNING)
        self.progress = progress

    def emit(self, record: logging.LogRecord) -> None:
        """Say a warning."""
        self.progress.say(f"  {record.getMessage()}")


@contextmanager
def _log_file(folder: Path, progress: Progress) -> Iterator[None]:
    handler = _LogFile(folder / "log.txt", encoding="utf-8")
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    root = logging.getLogger("merkhet")
    before = root.level
    handlers = (handler, _Said(progress))
    for one in handlers:
        root.addHandler(one)
    root.setLevel(logging.INFO)
    root.propagate = False
    try:
        yield
    finally:
        for one in handlers:
            root.removeHandler(one)
            one.close()
        root.setLevel(before)
