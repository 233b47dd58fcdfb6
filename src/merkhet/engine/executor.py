"""Execution of plans. A step resumes after a kill, and its outputs are reused until a dependency changes."""

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
from merkhet.core.redaction import redact_message
from merkhet.core.version import __version__
from merkhet.engine.plan import AnyStep, Plan, StepContext, step_identity
from merkhet.engine.shared_tables import release_tables

try:
    import fcntl
except ImportError:  # Not a Unix system: no lock protects a folder from two runs at once.
    fcntl = None  # type: ignore[assignment]

logger = logging.getLogger("merkhet.engine")

INTERNAL = ".merkhet"
"""Folder within a run for unfinished work and the records of steps. All other files of a run are for users."""

LEARNED = "learned.json"
"""File name of a training record. The step that writes it owns all files in the same folder."""


@dataclass(frozen=True)
class Outcome:
    """Names of the executed steps, and names of the steps whose outputs were reused."""

    done: tuple[str, ...]
    reused: tuple[str, ...]


def execute(
    plan: Plan,
    folder: Path,
    home: Path,
    progress: Progress,
    supply: Callable[[AnyStep, Path], bool] = lambda step, work: False,
) -> Outcome:
    """Execute the steps of a plan in a run's folder; the same call resumes after a kill.

    If the folder is new and no step finishes, the folder is removed.

    Args:
        home: Folder that the study's paths are relative to.
        supply: Function called with a step and its work folder before the step runs. It may write unfinished work
            into the work folder; or it writes all outputs of the step and returns True, and the step is skipped.
    """
    refuse_foreign_folder(folder, INTERNAL)
    is_new = not folder.exists()
    try:
        with _locked(folder):
            try:
                with _logging_to(folder, progress):
                    return _execute(plan, folder, home, progress, supply)
            finally:
                release_tables(folder)
                # Remove the folder while the lock is held; without the lock, another run may be using it.
                if is_new and not any((folder / INTERNAL / "steps").glob("*.json")):
                    shutil.rmtree(folder, ignore_errors=True)
    except MerkhetError:
        raise
    except Exception as error:
        if is_new:
            with suppress(OSError):  # rmdir() removes empty folders only.
                (folder / INTERNAL).rmdir()
                folder.rmdir()
        raise (explain_write_error(error, folder) or error) from error


def _execute(
    plan: Plan,
    folder: Path,
    home: Path,
    progress: Progress,
    supply: Callable[[AnyStep, Path], bool],
) -> Outcome:
    done, reused = [], []
    _remove_leftovers(folder)
    for step in _steps(plan, folder):
        key = _key(step, folder)
        if _is_done(step, key, folder):
            reused.append(step.name)
            logger.info("%s: unchanged, reused", step.name)
            _print_summary(step, folder, progress)
            continue
        started = time.perf_counter()
        logger.info("%s: begins", step.name)
        work = folder / INTERNAL / "work" / _file_name(step.name) / key[:24]
        _prepare_work_folder(work)
        if not supply(step, work):
            step.function(StepContext(step, folder, work, home, progress))
        _record(step, key, folder, time.perf_counter() - started)
        shutil.rmtree(work.parent, ignore_errors=True)
        done.append(step.name)
        _print_summary(step, folder, progress)
    # Work folders of steps that are no longer planned, or that were killed before they cleaned up.
    shutil.rmtree(folder / INTERNAL / "work", ignore_errors=True)
    return Outcome(tuple(done), tuple(reused))


def _print_summary(step: AnyStep, folder: Path, progress: Progress) -> None:
    for line in step.summarize(folder) if step.summarize else ():
        progress.say(line)


def _steps(plan: Plan | None, folder: Path) -> Iterator[AnyStep]:
    """Yield the steps of a plan and of its following plans.

    A following plan is made when all steps of the plan before it are done.
    """
    while plan is not None:
        yield from plan.steps
        plan = plan.then(folder) if plan.then else None


def _key(step: AnyStep, folder: Path) -> str:
    contents = {}
    for name in step.inputs:
        if not (folder / name).is_file():
            raise MerkhetError(f"the step {step.name} needs {folder / name}, which no earlier step has written")
        contents[name] = file_digest(folder / name)
    return digest([__version__, step_identity(step), contents])


def is_recorded(step: AnyStep, folder: Path) -> bool:
    """Check whether a folder records a step with its present inputs, and whether the step's outputs are intact."""
    try:
        record = json.loads(_record_file(step, folder).read_bytes())
        same = record["key"] == _key(step, folder)
        return same and all(file_digest(folder / name) == record["outputs"].get(name) for name in step.outputs)
    except (OSError, ValueError, KeyError, TypeError, MerkhetError):
        return False


def _is_done(step: AnyStep, key: str, folder: Path) -> bool:
    """Check whether a step was done with the cache key ``key``, and whether its outputs are intact.

    Outputs that are missing or damaged are logged as warnings.
    """
    file = _record_file(step, folder)
    try:
        record = json.loads(file.read_bytes())
        check = record.pop("check", None)
        if check is not None and check != digest(record):
            raise ValueError("the checksum does not match")
        known, outputs = record["key"], {**record["outputs"], **record.get("beside", {})}
    except FileNotFoundError:
        return False
    except (ValueError, KeyError, TypeError):
        logger.warning("%s is damaged; the step %s runs again", file.relative_to(folder), step.name)
        return False
    if known != key:
        return False
    for name in (*step.outputs, *record.get("beside", {})):
        if not (folder / name).is_file():
            logger.warning("%s is missing and is written again", name)
        elif file_digest(folder / name) != outputs.get(name):
            logger.warning("%s is damaged or was changed, and is written again", name)
        else:
            continue
        return False
    return True


def _record(step: AnyStep, key: str, folder: Path, seconds: float) -> None:
    """Write the record of a finished step, with hashes of its outputs to detect later damage."""
    missing = [name for name in step.outputs if not (folder / name).is_file()]
    if missing:
        raise MerkhetError(f"the step {step.name} ended without writing {missing[0]}")
    outputs = {name: file_digest(folder / name) for name in step.outputs}
    companions = {
        str(file.relative_to(folder)): file_digest(file)
        for name in step.outputs
        if Path(name).name == LEARNED
        for file in sorted((folder / name).parent.rglob("*"))
        if file.is_file() and str(file.relative_to(folder)) not in outputs
    }
    content = {
        "key": key,
        "outputs": outputs,
        **({"beside": companions} if companions else {}),
        "seconds": round(seconds, 3),
    }
    write_json(_record_file(step, folder), {**content, "check": digest(content)})
    logger.info("%s: done in %.1f s", step.name, seconds)


def _record_file(step: AnyStep, folder: Path) -> Path:
    return folder / INTERNAL / "steps" / f"{_file_name(step.name)}.json"


def _file_name(name: str) -> str:
    safe = "".join(letter if letter.isalnum() or letter in "-_." else "-" for letter in name)
    safe = safe.encode()[:200].decode(errors="ignore")  # Most file systems refuse longer names.
    return safe if safe == name else f"{safe}-{digest(name)[:8]}"


def _prepare_work_folder(work: Path) -> None:
    """Create a step's work folder, and remove unfinished work that the step did for other inputs."""
    if work.parent.is_dir():
        for folder in work.parent.iterdir():
            if folder != work:
                shutil.rmtree(folder, ignore_errors=True)
    work.mkdir(parents=True, exist_ok=True)


def _remove_leftovers(folder: Path) -> None:
    """Remove half-written files of a killed process. The lock on the folder ensures that no process writes them."""
    for leftover in [*folder.rglob(".*.tmp"), *folder.rglob(".*.part")]:
        if leftover.is_dir():
            shutil.rmtree(leftover, ignore_errors=True)
        else:
            leftover.unlink(missing_ok=True)


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Lock a run's folder against other processes. The lock is released when this process ends, even if killed."""
    with _lock_file(folder) as handle:
        try:
            if fcntl is not None:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            handle.seek(0)
            raise _in_use(folder, handle.read().strip()) from error
        if not os.fstat(handle.fileno()).st_nlink:  # The previous holder has just removed the folder.
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
        raise InputError(f"{folder} cannot be written to; choose another folder with --out") from error


def _in_use(folder: Path, process: str) -> InputError:
    return InputError(
        f"another merkhet process ({process or 'unknown'}) is writing to {folder}; wait for it, or choose another --out"
    )


class _LogFile(logging.FileHandler):
    """Log file of a run. It drops lines while the disk is full, because steps report a full disk themselves."""

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802
        """Ignore a write error. The default handler would print a traceback to standard error."""

    def close(self) -> None:
        """Close the file, and ignore an error while its last line is written."""
        with suppress(OSError):
            super().close()


class _LogFormatter(logging.Formatter):
    """Log formatter that removes secrets from messages, from their arguments and from tracebacks."""

    def format(self, record: logging.LogRecord) -> str:
        """Format a log record without secrets."""
        return redact_message(super().format(record))


class _WarningPrinter(logging.Handler):
    """Log handler that prints warnings as progress messages."""

    def __init__(self, progress: Progress) -> None:
        super().__init__(logging.WARNING)
        self.progress = progress

    def emit(self, record: logging.LogRecord) -> None:
        """Print the message of a log record."""
        self.progress.say(redact_message(f"  {record.getMessage()}"))


@contextmanager
def _logging_to(folder: Path, progress: Progress) -> Iterator[None]:
    handler = _LogFile(folder / "log.txt", encoding="utf-8")
    handler.setFormatter(_LogFormatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    root = logging.getLogger("merkhet")
    level = root.level
    handlers = (handler, _WarningPrinter(progress))
    for log_handler in handlers:
        root.addHandler(log_handler)
    root.setLevel(logging.INFO)
    root.propagate = False
    try:
        yield
    finally:
        for log_handler in handlers:
            root.removeHandler(log_handler)
            log_handler.close()
        root.setLevel(level)
