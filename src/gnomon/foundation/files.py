"""Files that are there whole or not at all."""

from __future__ import annotations

import csv
import errno
import hashlib
import io
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from gnomon.foundation.errors import InputError


@contextmanager
def atomic_path(target: Path) -> Iterator[Path]:
    """A path to write to; it takes the target's place when the block ends well, else it is removed.

    The bytes are on disk before the name is: a process killed at any instant leaves the old file or the new one.
    A full disk is said in one line (InputError), and leaves nothing behind.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        yield temporary
        with open(temporary, "rb+") as handle:
            os.fsync(handle.fileno())
        os.replace(temporary, target)
    except OSError as error:
        if is_disk_full(error):
            raise disk_full(target) from error
        raise
    finally:
        temporary.unlink(missing_ok=True)


def read_yaml(path: Path, holds: str) -> Any:
    """The content of a YAML file that should hold something; refuses one that is not there, or is no YAML."""
    import yaml

    if not path.is_file():
        raise InputError(f"there is no file {path}; it should hold {holds}")
    try:
        return yaml.safe_load(path.read_text(encoding="utf-8"))
    except yaml.YAMLError as error:
        raise InputError(f"{path} is not valid YAML: {' '.join(str(error).split())}") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not UTF-8 text (byte {error.start}). Save it as UTF-8.") from error


def refuse_foreign_folder(folder: Path, own: str) -> None:
    """Refuse to write into a folder that holds somebody's files: one that is not empty and lacks gnomon's own mark."""
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is not a folder. Choose another place with --out.")
    if folder.is_dir() and not (folder / own).exists() and any(folder.iterdir()):
        raise InputError(f"{folder} holds other files. Choose a new or empty folder with --out.")


def is_disk_full(error: OSError) -> bool:
    """Whether an error says that there is no room left (Arrow wraps the number into its text)."""
    return error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG) or "No space left on device" in str(error)


def disk_full(target: Path) -> InputError:
    """The error for a disk without room."""
    return InputError(f"{target}: the disk is full. Free some space there, or choose another folder with --out.")


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


def cache_folder() -> Path:
    """Where things made once are kept between runs: $GNOMON_CACHE, or gnomon in the user's cache folder."""
    given = os.environ.get("GNOMON_CACHE")
    if given:
        return Path(given)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "gnomon"


def parse_object(line: bytes, where: str) -> dict[str, Any]:
    """The JSON object of a line in somebody's file; refuses what is none in a line that names the place."""
    try:
        content = json.loads(line)
    except UnicodeDecodeError as error:
        raise InputError(f"{where}: the text is not UTF-8; fetch the file anew") from error
    except json.JSONDecodeError as error:
        raise InputError(
            f"{where}: not valid JSON ({error.msg} at column {error.colno}). Fetch the file anew."
        ) from error
    if not isinstance(content, dict):
        raise InputError(f"{where}: a row is a JSON object, and this is {type(content).__name__}")
    return content


def csv_rows(path: Path) -> Any:
    """A csv.reader over a file that somebody has saved: commas, semicolons or tabs stand between cells."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not UTF-8 text (byte {error.start}). Save it as CSV UTF-8.") from error
    head = text.partition("\n")[0]
    return csv.reader(io.StringIO(text, newline=""), delimiter=max(",;\t", key=head.count))
