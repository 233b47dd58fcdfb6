"""The user's consent to foreign code and sent secrets, asked for once and remembered in the user's cache."""

from __future__ import annotations

import hmac
import json
import os
import secrets
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from merkhet.core.errors import FaultsError, MerkhetError
from merkhet.core.files import cache_folder, write_json
from merkhet.core.ids import digest
from merkhet.core.text import printable

FOLDER = "consent"
_KEY_FILE = "key"
_KEY_SIZE = 32
_REMEDY = (
    "Nothing was run or sent. If you trust the author, repeat the command with --trust (in Python: trust=True), once: "
    "merkhet remembers it until this file or the code changes."
)


@dataclass(frozen=True)
class Permission:
    """Something that a file may cause only with the user's consent, such as running code or sending a secret."""

    action: str
    """What the file causes, as the predicate of a sentence: ``imports my_package.scores:gain (metrics)``."""
    identity: tuple[str, ...]
    """What the consent depends on: names, and the hashes of the code files."""


class ConsentError(FaultsError):
    """A file needs permissions that the user has not given; the message has one line for every permission."""

    def __str__(self) -> str:
        # Unlike other faults, permissions are never left out: a user consents to all of them.
        return "\n".join([*self.faults, self.remedy])


def require_consent(permissions: Sequence[Permission], where: str, content: str, *, trust: bool) -> None:
    """Announce the permissions that a file needs, and check that the user has given them.

    With ``trust``, the permissions are announced on standard error and remembered. Permissions that were given before
    to the same content are not announced again.

    Args:
        where: Path of the file, for the announcements.
        content: Hash of the file. Consent ends when it changes.

    Raises:
        ConsentError: The user has not given all permissions. The error announces those that are missing.
    """
    unique = dict.fromkeys(permissions)
    missing = list(unique) if trust else [entry for entry in unique if not _is_remembered(entry, content)]
    if not missing:
        return
    lines = [announcement(where, permission.action) for permission in missing]
    if not trust:
        raise ConsentError(lines, len(lines), _REMEDY)
    announce(lines)
    remember_consent(missing, where, content)


def announcement(where: str, action: str) -> str:
    """Make the line that announces what a file causes; unprintable characters are escaped."""
    return " ".join(printable(f"{where} {action}").split())


def announce(lines: Sequence[str]) -> None:
    """Print announcements on standard error, even if no progress is shown."""
    for line in lines:
        sys.stderr.write(f"merkhet: {line}\n")
    sys.stderr.flush()


def remember_consent(permissions: Sequence[Permission], where: str, content: str) -> None:
    """Store permissions that the user has given; if the cache cannot be written to, say so and go on."""
    try:
        folder = cache_folder() / FOLDER
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(0o700)
        key = _read_key(folder) or _make_key(folder)
        for permission in permissions:
            record = {"file": str(Path(where).resolve()), "permission": permission.action, "content": content}
            write_json(folder / f"{_record_name(key, permission, content)}.json", record)
    except (OSError, MerkhetError) as error:
        announce([f"the consent cannot be remembered ({printable(error)}), and is needed again next time"])


def _is_remembered(permission: Permission, content: str) -> bool:
    folder = cache_folder() / FOLDER
    with suppress(OSError, ValueError):
        key = _read_key(folder)
        if key is not None:
            record = json.loads((folder / f"{_record_name(key, permission, content)}.json").read_bytes())
            return isinstance(record, dict) and record.get("content") == content
    return False


def _record_name(key: bytes, permission: Permission, content: str) -> str:
    """Name the record of a consent; only someone with the key can compute the name."""
    return hmac.digest(key, digest([content, *permission.identity]).encode(), "sha256").hex()


def _read_key(folder: Path) -> bytes | None:
    """Return the secret key that signs records of consent; None if another user could have written its file.

    The key includes the inode and the change time of its file, which no archive can set: records that came with
    somebody else's files are of another key, even if the user's cache is among these files.
    """
    file = folder / _KEY_FILE
    for _ in range(20):  # Another process may just be writing the key.
        try:
            content, status = file.read_bytes(), file.stat(follow_symlinks=False)
        except OSError:
            return None
        if len(content) == _KEY_SIZE:
            break
        time.sleep(0.01)
    else:
        return None
    if os.name == "posix" and (status.st_uid != os.geteuid() or status.st_mode & 0o022):
        return None
    return content + f"{status.st_ino} {status.st_ctime_ns}".encode()


def _make_key(folder: Path) -> bytes:
    """Write a key, in place of a damaged one; records of earlier keys are no longer valid."""
    file = folder / _KEY_FILE
    for _ in range(2):
        with suppress(FileExistsError):  # It is damaged, or another process has just written it.
            handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            try:
                os.write(handle, secrets.token_bytes(_KEY_SIZE))
            finally:
                os.close(handle)
        key = _read_key(folder)
        if key is not None:
            return key
        file.unlink(missing_ok=True)
    raise OSError(f"{file} cannot be read")
