"""The memory limit of DuckDB: the share of a process's limit that Python and Arrow leave."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path

import duckdb

from merkhet.core.errors import InputError, first_line
from merkhet.core.files import scratch_folder

_RESERVED_BYTES = 500 * 10**6
"""Bytes reserved for Python, its libraries and the Arrow tables of questions."""
_IN_MEMORY_DIVISOR = 2
"""A database in memory gets DuckDB's share divided by this number: a knowledge base is usually open beside it."""
_BYTES_PER_THREAD = 128 * 10**6
"""Memory that each thread of DuckDB needs; with less, sorts and joins of several threads run out of memory."""
_POWERS = {"k": 1, "m": 2, "g": 3, "t": 4}


@dataclass(frozen=True)
class _Limit:
    share: int
    """Bytes that DuckDB may use."""
    folder: Path
    """Folder for temporary databases and for what exceeds the limit."""


_current: ContextVar[_Limit | None] = ContextVar("memory_limit", default=None)


@contextmanager
def limited_memory(memory: str | None) -> Iterator[None]:
    """Limit the databases that are opened in a ``with`` block, so that the process needs about ``memory`` in total.

    ``memory`` is an amount such as ``1GB``. None sets no limit.
    """
    if memory is None:
        yield
        return
    with scratch_folder("limited") as folder:
        token = _current.set(_Limit(duckdb_share(memory), folder))
        try:
            yield
        finally:
            _current.reset(token)


def duckdb_share(memory: str) -> int:
    """Return how many bytes of a process's ``memory`` DuckDB may use: all but a reserve, and at least a half."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([kmgt])(i?)b", memory.strip().lower())
    if match is None:
        raise ValueError(f"not an amount of memory: {memory!r}")
    size = int(float(match[1]) * (1024 if match[3] else 1000) ** _POWERS[match[2]])
    return max(size - _RESERVED_BYTES, size // 2)


def current_share() -> int | None:
    """Return how many bytes DuckDB may use under the current limit; None without a limit."""
    limit = _current.get()
    return None if limit is None else limit.share


def open_duckdb(path: Path, *, read_only: bool = False) -> duckdb.DuckDBPyConnection:
    """Connect to a database file under the current memory limit."""
    connection = duckdb.connect(str(path), read_only=read_only)
    if (share := current_share()) is not None:
        limit_connection(connection, share)
    return connection


def open_temporary() -> duckdb.DuckDBPyConnection:
    """Connect to a new, empty database: in memory, or in a temporary file under a memory limit."""
    limit = _current.get()
    if limit is None:
        return duckdb.connect()
    return open_duckdb(Path(tempfile.mkdtemp(dir=limit.folder)) / "temporary.duckdb")


@contextmanager
def open_in_memory() -> Iterator[duckdb.DuckDBPyConnection]:
    """Connect to a new database in memory, for queries on Arrow tables; it spills to disk under a memory limit.

    Raises:
        InputError: The memory limit is too low.
    """
    limit = _current.get()
    with duckdb.connect() as connection:
        if limit is not None:
            limit_connection(connection, limit.share // _IN_MEMORY_DIVISOR)
            quoted = str(limit.folder).replace("'", "''")
            connection.execute(f"set temp_directory = '{quoted}'")
        try:
            yield connection
        except duckdb.OutOfMemoryException as error:
            raise InputError(f"out of memory ({first_line(error)}). Raise the limit with --memory.") from error


def limit_connection(connection: duckdb.DuckDBPyConnection, share: int) -> None:
    """Limit the memory of a connection to ``share`` bytes; what exceeds them is kept on disk."""
    [(threads,)] = connection.execute("select current_setting('threads')").fetchall()
    connection.execute(f"set memory_limit = '{share}B'")
    connection.execute(f"set threads = {max(1, min(int(threads), share // _BYTES_PER_THREAD))}")
    connection.execute("set allocator_flush_threshold = '16MB'")
