"""Cache of chat replies on disk, which avoids sending a request twice."""

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
from merkhet.core.redaction import redact

FILE = "replies.sqlite"


class ReplyCache:
    """A SQLite file with the replies of endpoints; the key is a hash of the endpoint and the complete request.

    Several processes may share the file. A reply is on disk when :meth:`store` returns, so a killed process loses no
    stored reply.
    """

    def __init__(self, file: Path | None = None) -> None:
        self.file = file or cache_folder() / "chat" / FILE
        self.file.parent.mkdir(parents=True, exist_ok=True)
        self.lock = threading.Lock()
        try:
            self.database = sqlite3.connect(self.file, timeout=60.0, check_same_thread=False, isolation_level=None)
            self.database.execute("pragma journal_mode = wal")
            self.database.execute("pragma synchronous = normal")
            self.database.execute(
                "create table if not exists replies "
                "(key text primary key, endpoint text, model text, request text, reply text, kept real)"
            )
        except sqlite3.DatabaseError as error:
            raise self._failure(error) from error

    def _failure(self, error: Exception) -> InputError:
        """Turn a SQLite error into an InputError that says what to do."""
        code = getattr(error, "sqlite_errorcode", None)
        if code == sqlite3.SQLITE_FULL:
            return InputError(f"{self.file}: the disk is full. Free some space there, or set MERKHET_CACHE elsewhere.")
        if code is not None and code & 0xFF in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM):
            return InputError(
                f"{self.file} cannot be written to ({first_line(error)}). Set MERKHET_CACHE to a folder that can."
            )
        return InputError(f"{self.file} is damaged ({first_line(error)}). Remove it; replies are then requested again.")

    def find(self, keys: Sequence[str]) -> dict[str, dict[str, Any]]:
        """Return the cached replies by key; keys without a cached reply are missing."""
        replies = {}
        try:
            with self.lock:
                for start in range(0, len(keys), 500):
                    chunk = list(keys[start : start + 500])
                    marks = ", ".join("?" * len(chunk))
                    rows = self.database.execute(f"select key, reply from replies where key in ({marks})", chunk)
                    replies.update({key: json.loads(redact(reply)) for key, reply in rows})
        except (sqlite3.DatabaseError, ValueError, TypeError) as error:
            raise self._failure(error) from error
        return replies

    def store(self, key: str, endpoint: str, request: Mapping[str, Any], reply: Mapping[str, Any]) -> None:
        """Store a reply unless the cache already has a reply with this key; neither shows a secret."""
        texts = (endpoint, request["model"], _to_json(request), _to_json(reply))
        row = (key, *map(redact, texts), time.time())
        try:
            with self.lock:
                self.database.execute("insert or ignore into replies values (?, ?, ?, ?, ?, ?)", row)
        except sqlite3.DatabaseError as error:
            raise self._failure(error) from error

    def close(self) -> None:
        with self.lock:
            self.database.close()


def reply_key(endpoint: str, request: Mapping[str, Any]) -> str:
    """Return the cache key of a reply: a hash of the endpoint and the complete request."""
    return digest(["merkhet reply", 1, endpoint, dict(request)])


def _to_json(content: Mapping[str, Any]) -> str:
    return json.dumps(content, ensure_ascii=False, sort_keys=True)
