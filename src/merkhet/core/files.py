"""Atomic writing, reading of small files, and temporary folders."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import platform
import re
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from merkhet.core import interrupts
from merkhet.core.errors import InputError, MerkhetError
from merkhet.core.redaction import redact
from merkhet.core.text_formats import parse_json, parse_yaml

UTF_16_MARKS = (b"\xff\xfe", b"\xfe\xff")
"""Byte order marks at the start of a UTF-16 file."""
_temporary_paths: set[str] = set()
"""Temporary files and folders of this process, which an interrupt removes."""
_DISK_FULL = re.compile(r"No space left on device|^\d+ requested and \d+ written$")
"""Messages about a full disk from libraries that set no error number; the second is numpy's."""
_REMOVALS = 50
"""Maximum number of times to remove a folder to which other threads still write."""


def _remove_temporary_paths() -> None:
    for path in list(_temporary_paths):
        for _ in range(_REMOVALS):
            shutil.rmtree(path, ignore_errors=True)
            with suppress(OSError):
                os.unlink(path)  # noqa: PTH108
            if not os.path.lexists(path):
                break


interrupts.before_exit.append(_remove_temporary_paths)


@contextmanager
def atomic_path(target: Path) -> Iterator[Path]:
    """Yield a temporary path that replaces the target when the block succeeds and is removed otherwise.

    Content and rename are synced to disk: a killed process or a power cut leaves either the old or the new file.

    Raises:
        InputError: The disk is full, or the folder cannot be written to. Nothing is left behind.
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
            _temporary_paths.discard(str(temporary.absolute()))


def temporary_path(target: Path) -> Path:
    """Return a hidden temporary path beside ``target``, which an interrupt removes.

    Temporary files that killed processes have left beside the target are removed first.
    """
    prefix, suffix = f".{target.name}.{_machine_id()}-", ".tmp"
    _remove_leftovers(target.parent, prefix, suffix)
    path = target.with_name(f"{prefix}{os.getpid()}{suffix}")
    if path.is_dir():  # Left by an earlier process with the same id.
        shutil.rmtree(path, ignore_errors=True)
    _temporary_paths.add(str(path.absolute()))
    return path


@contextmanager
def scratch_folder(purpose: str, parent: Path | str | None = None) -> Iterator[Path]:
    """Yield a temporary folder that is removed at the end; first remove folders left by killed processes.

    ``parent`` is the folder in which it is created: by default, the temporary folder of the system.
    """
    parent = Path(parent or tempfile.gettempdir())
    prefix = f"merkhet-{purpose}-{_machine_id()}-"
    _remove_leftovers(parent, prefix, "")
    folder = parent / f"{prefix}{os.getpid()}-{secrets.token_hex(4)}"
    with removed_at_interrupt(folder):
        folder.mkdir(mode=0o700)
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def removed_at_interrupt(path: Path) -> Iterator[None]:
    """Let an interrupt of the command remove a file or folder that the block creates, and removes itself at its end."""
    name = str(path.absolute())
    _temporary_paths.add(name)
    try:
        yield
    finally:
        _temporary_paths.discard(name)


def _machine_id() -> str:
    """Return an id of this machine; on a shared disk, processes of other machines cannot be checked."""
    return hashlib.sha256(platform.node().encode()).hexdigest()[:6]


def _remove_leftovers(folder: Path, prefix: str, suffix: str) -> None:
    """Remove files and folders named after a dead process: ``prefix``, process id, …, ``suffix``."""
    if os.name != "posix":  # On Windows, os.kill(process, 0) ends the process.
        return
    with suppress(OSError):
        for entry in list(os.scandir(folder)):
            if not (entry.name.startswith(prefix) and entry.name.endswith(suffix)):
                continue
            process = re.match(r"\d+", entry.name[len(prefix) :])
            if process is None or _is_alive(process.group()):
                continue
            with suppress(OSError):
                shutil.rmtree(entry.path) if entry.is_dir(follow_symlinks=False) else Path(entry.path).unlink()


def _is_alive(process: str) -> bool:
    try:
        os.kill(int(process), 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        pass
    return True


def sync_folder(folder: Path) -> None:
    """Sync a folder's entries to disk, to make renames durable; do nothing where this is unsupported."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def read_yaml(path: Path, holds: str) -> Any:
    """Read a YAML file; ``holds`` describes its content in the error about a missing file.

    Raises:
        InputError: The file is missing, not UTF-8 or not YAML.
    """
    if not path.is_file():
        raise InputError(f"there is no file {path}; it should hold {holds}")
    try:
        return parse_yaml(path.read_text(encoding="utf-8"), str(path))
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not UTF-8 text (byte {error.start}). Save it as UTF-8.") from error


def refuse_foreign_folder(folder: Path, marker: str) -> None:
    """Raise InputError for a folder that is not empty and lacks the file ``marker``."""
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is not a folder. Choose another path with --out.")
    if folder.is_dir() and not (folder / marker).exists() and any(folder.iterdir()):
        raise InputError(f"{folder} holds other files. Choose a new or empty folder with --out.")


def is_disk_full(error: BaseException) -> bool:
    """Return whether an error, or an error that caused it, reports a full disk."""
    cause: BaseException | None = error
    while cause is not None:
        number = getattr(cause, "errno", None)
        if number in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG) or _DISK_FULL.search(str(cause)):
            return True
        cause = cause.__context__
    return False


def disk_full_error(target: Path) -> InputError:
    """Return the error to raise for a full disk."""
    return InputError(f"{target}: the disk is full. Free some space there, or choose another folder with --out.")


def explain_write_error(error: Exception, target: Path) -> InputError | None:
    """Return a one-line error for a full disk or missing permission; None for any other cause."""
    if is_disk_full(error):
        return disk_full_error(target)
    if not isinstance(error, OSError):
        return None
    failed = Path(error.filename) if isinstance(error.filename, str) else target
    concerns_target = failed.is_relative_to(target.parent) or target.is_relative_to(failed)
    if concerns_target and error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        reason = "the file system is read-only" if error.errno == errno.EROFS else "you may not write there"
        return InputError(f"{target} cannot be written to: {reason}. Choose another path with --out.")
    return None


def write_text(target: Path, text: str) -> None:
    """Write a text file atomically, without secrets."""
    with atomic_path(target) as path:
        path.write_text(redact(text), encoding="utf-8")


def write_json(target: Path, content: Any) -> None:
    """Write indented JSON atomically; equal content gives equal bytes."""
    write_text(target, json.dumps(content, ensure_ascii=False, indent=2, allow_nan=False) + "\n")


def file_digest(path: Path) -> str:
    """Return the SHA-256 of a file's bytes, in hex."""
    state = hashlib.sha256()
    with open(path, "rb") as handle:
        while block := handle.read(1 << 18):
            state.update(block)
    return state.hexdigest()


def path_exists(path: Path) -> bool:
    """Return whether a file or folder exists; False for an invalid or inaccessible path."""
    try:
        return path.exists()
    except OSError:
        return False


def cache_folder() -> Path:
    """Return the cache folder shared by all runs: $MERKHET_CACHE, or merkhet in the user's cache folder."""
    configured = os.environ.get("MERKHET_CACHE")
    if configured:
        return Path(configured)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "merkhet"


def parse_json_object(line: bytes, where: str, remedy: str = "Download the file again.") -> dict[str, Any]:
    """Parse a line as a JSON object; raise InputError, with file and row (``where``), for other content."""
    content = parse_json(line, where, remedy)
    if not isinstance(content, dict):
        raise InputError(f"{where}: a row must be a JSON object, got {type(content).__name__}")
    return content
