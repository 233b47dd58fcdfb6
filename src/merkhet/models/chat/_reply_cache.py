"""Replies that were had once, kept on disk: nothing that was answered is asked again, whatever happened since."""

from __future__ import annotations

import json
import sqlite3
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from merkhet.core.errors import InputError, first_line
from merkhet.core.files import cache_folder
from merkhet.core.ids import digest

FILE = "replies.sqlite"


class KeptReplies:
    """The replies of endpoints by what was asked: endpoint, model and the whole request.

    Several processes may share the file. Each reply is on disk when :meth:`keep` returns, so that a process which is
    killed loses none.
    """

    def __init__(self, file: Path | None = None) -> None:
        self.file = file or cache_folder() / "chat" / FILE
        self.file.parent.mkdir(parents=True, exist_ok=True)
        self.lock = threading.Lock()
        try:
            self.store = sqlite3.connect(self.file, timeout=60.0, check_same_thread=False, isolation_level=None)
            self.store.execute("pragma journal_mode = wal")
            self.store.execute("pragma synchronous = normal")
            self.store.execute(
                "create table if not exists replies "
                "(key text primary key, endpoint text, model text, request text, reply text, kept real)"
            )
        except sqlite3.DatabaseError as error:
            raise self._failure(error) from error

    def _failure(self, error: Exception) -> InputError:
        """What a user can do about an error of SQLite."""
        code = getattr(error, "sqlite_errorcode", None)
        if code == sqlite3.SQLITE_FULL:
            return InputError(f"{self.file}: the disk is full. Free some space there, or set MERKHET_CACHE elsewhere.")
        if code is not None and code & 0xFF in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM):
            return InputError(
                f"{self.file} cannot be written to ({first_line(error)}). Set MERKHET_CACHE to a folder that can."
            )
        return InputError(f"{self.file} is damaged ({first_line(error)}). Remove it; replies are then asked for anew.")

    def find(self, keys: Sequence[str]) -> dict[str, dict[str, Any]]:
        """The replies to these requests that are kept."""
        found = {}
        try:
            with self.lock:
                for start in range(0, len(keys), 500):
                    some = list(keys[start : start + 500])
                    marks = ", ".join("?" * len(some))
                    rows = self.store.execute(f"select key, reply from replies where key in ({marks})", some)
                    found.update({key: json.loads(reply) for key, reply in rows})
        except (sqlite3.DatabaseError, ValueError, TypeError) as error:
            raise self._failure(error) from error
        return found

    def keep(self, key: str, endpoint: str, request: Mapping[str, Any], reply: Mapping[str, Any]) -> None:
        """Keep a reply; the first one stays if there are two."""
        row = (key, endpoint, request["model"], _text(request), _text(reply), time.time())
        try:
            with self.lock:
                self.store.execute("insert or ignore into replies values (?, ?, ?, ?, ?, ?)", row)
        except sqlite3.DatabaseError as error:
            raise self._failure(error) from error

    def close(self) -> None:
        """Close the file."""
        with self.lock:
            self.store.close()


def key_of(endpoint: str, request: Mapping[str, Any]) -> str:
    """What a reply is kept under: the endpoint and all that it was sent."""
    return digest(["merkhet reply", 1, endpoint, dict(request)])


def _text(content: Mapping[str, Any]) -> str:
    return json.dumps(content, ensure_ascii=False, sort_keys=True)
