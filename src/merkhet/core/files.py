"""Files that are there whole or not at all."""

from __future__ import annotations

import csv
import errno
import hashlib
import io
import json
import os
import platform
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from merkhet.core.errors import InputError, MerkhetError
from merkhet.core.text_formats import parse_json, parse_yaml


@contextmanager
def atomic_path(target: Path) -> Iterator[Path]:
    """A path to write to; it takes the target's place when the block ends well, else it is removed.

    The bytes are on disk before the name is, and the name before this returns: a process killed at any instant, or a
    power cut, leaves the old file or the new one. A full disk and a folder that cannot be written to are said in one
    line (InputError), and leave nothing behind.
    """
    temporary: Path | None = None
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary = temporary_path(target)
        yield temporary
        with open(temporary, "rb+") as handle:
            os.fsync(handle.fileno())
        os.replace(temporary, target)
        sync_folder(target.parent)
    except MerkhetError:
        raise
    except Exception as error:
        raise (explain_write_error(error, target) or error) from error
    finally:
        if temporary is not None:
            with suppress(OSError):
                temporary.unlink(missing_ok=True)


def temporary_path(target: Path) -> Path:
    """A hidden neighbour of a file or folder, to make it in; what killed processes have left of theirs is removed."""
    begin, end = f".{target.name}.{_machine()}-", ".tmp"
    _remove_of_dead(target.parent, begin, end)
    own = target.with_name(f"{begin}{os.getpid()}{end}")
    if own.is_dir():  # Of a process that had the same number.
        shutil.rmtree(own, ignore_errors=True)
    return own


@contextmanager
def scratch_folder(purpose: str) -> Iterator[Path]:
    """A folder in the temporary folder, gone at the end; what killed processes have left of theirs is removed."""
    begin = f"merkhet-{purpose}-{_machine()}-"
    _remove_of_dead(Path(tempfile.gettempdir()), begin, "")
    with tempfile.TemporaryDirectory(prefix=f"{begin}{os.getpid()}-", ignore_cleanup_errors=True) as folder:
        yield Path(folder)


def _machine() -> str:
    """What tells this machine from others: on a shared disk, nothing is known of the processes of those."""
    return hashlib.sha256(platform.node().encode()).hexdigest()[:6]


def _remove_of_dead(folder: Path, begin: str, end: str) -> None:
    """Remove what is named after a process that is no more: ``begin``, its number, and ``end`` or something more."""
    if os.name != "posix":  # Elsewhere, to ask for a process is to end it.
        return
    with suppress(OSError):
        for entry in list(os.scandir(folder)):
            if not (entry.name.startswith(begin) and entry.name.endswith(end)):
                continue
            process = re.match(r"\d+", entry.name[len(begin) :])
            if process is None or _is_alive(process.group()):
                continue
            with suppress(OSError):
                shutil.rmtree(entry.path) if entry.is_dir(follow_symlinks=False) else Path(entry.path).unlink()


def _is_alive(process: str) -> bool:
    """Whether a process is there still."""
    try:
        os.kill(int(process), 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        pass
    return True


def sync_folder(folder: Path) -> None:
    """Have the names in a folder on disk, so that a power cut does not undo a renaming; where folders can be synced."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def read_yaml(path: Path, holds: str) -> Any:
    """The content of a YAML file that should hold something; refuses one that is not there, or is no YAML."""
    if not path.is_file():
        raise InputError(f"there is no file {path}; it should hold {holds}")
    try:
        return parse_yaml(path.read_text(encoding="utf-8"), str(path))
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not UTF-8 text (byte {error.start}). Save it as UTF-8.") from error


def refuse_foreign_folder(folder: Path, own: str) -> None:
    """Refuse to write into a folder that holds somebody's files: one that is not empty and lacks merkhet's own mark."""
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is not a folder. Choose another place with --out.")
    if folder.is_dir() and not (folder / own).exists() and any(folder.iterdir()):
        raise InputError(f"{folder} holds other files. Choose a new or empty folder with --out.")


def is_disk_full(error: BaseException) -> bool:
    """Whether an error says that there is no room left, or came of one that does: libraries wrap what they are told."""
    seen: BaseException | None = error
    while seen is not None:
        number = getattr(seen, "errno", None)
        if number in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG) or "No space left on device" in str(seen):
            return True
        seen = seen.__context__
    return False


def disk_full_error(target: Path) -> InputError:
    """The error for a disk without room."""
    return InputError(f"{target}: the disk is full. Free some space there, or choose another folder with --out.")


def explain_write_error(error: Exception, target: Path) -> InputError | None:
    """What a user can do about a failed writing: about a full disk, or a place that is not theirs to write to."""
    if is_disk_full(error):
        return disk_full_error(target)
    if not isinstance(error, OSError):
        return None
    failed = Path(error.filename) if isinstance(error.filename, str) else target
    about = failed.is_relative_to(target.parent) or target.is_relative_to(failed)
    if about and error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        reason = "the file system is read-only" if error.errno == errno.EROFS else "you may not write there"
        return InputError(f"{target} cannot be written to: {reason}. Choose another place with --out.")
    return None


def write_text(target: Path, text: str) -> None:
    """Write a text file in one piece."""
    with atomic_path(target) as path:
        path.write_text(text, encoding="utf-8")


def write_json(target: Path, content: Any) -> None:
    """Write JSON that people can read and that is the same for the same content."""
    write_text(target, json.dumps(content, ensure_ascii=False, indent=2, allow_nan=False) + "\n")


def file_digest(path: Path) -> str:
    """SHA-256 of a file's bytes, in hex."""
    with open(path, "rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest() if hasattr(hashlib, "file_digest") else _digest(handle)


def _digest(handle: Any) -> str:
    state = hashlib.sha256()
    while block := handle.read(1 << 20):
        state.update(block)
    return state.hexdigest()


def path_exists(path: Path) -> bool:
    """Whether there is a file or folder; what no file can be called, or may not be looked for, is not there."""
    try:
        return path.exists()
    except OSError:
        return False


def cache_folder() -> Path:
    """Where things made once are kept between runs: $MERKHET_CACHE, or merkhet in the user's cache folder."""
    given = os.environ.get("MERKHET_CACHE")
    if given:
        return Path(given)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "merkhet"


def parse_json_object(line: bytes, where: str) -> dict[str, Any]:
    """The JSON object of a line in somebody's file; refuses what is none in a line that names the place."""
    content = parse_json(line, where, "Fetch the file anew.")
    if not isinstance(content, dict):
        raise InputError(f"{where}: a row is a JSON object, and this is {type(content).__name__}")
    return content


def read_csv_rows(path: Path) -> Any:
    """A csv.reader over a file that somebody has saved: commas, semicolons or tabs stand between cells."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not UTF-8 text (byte {error.start}). Save it as CSV UTF-8.") from error
    head = text.partition("\n")[0]
    return csv.reader(io.StringIO(text, newline=""), delimiter=max(",;\t", key=head.count))
