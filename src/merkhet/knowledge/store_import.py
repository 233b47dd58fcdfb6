"""Atomic and idempotent import of sources into the file of a knowledge base."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path

import duckdb

from merkhet.core.errors import InputError
from merkhet.core.files import disk_full_error, file_digest, is_disk_full, removed_at_interrupt, sync_folder
from merkhet.core.ids import content_id
from merkhet.core.progress import Progress, SilentProgress
from merkhet.core.redaction import display_address, redact
from merkhet.core.version import __version__
from merkhet.knowledge._staging import Staged, merge_staged, stage_chunks
from merkhet.knowledge.database import connect, explain_error, in_use_error, sql_literals
from merkhet.knowledge.memory_limit import current_share
from merkhet.knowledge.source_lookup import STORE_SUFFIX, read_source, resolve_source
from merkhet.knowledge.source_reader import ReadContext

try:
    import fcntl
except ImportError:  # Without Unix locks, two imports may create the same store at once.
    fcntl = None  # type: ignore[assignment]

MEMORY = "800MB"
_REMEDY = "Nothing was imported. Correct the row, or pass --skip-bad to skip and count bad rows."
_MAX_HASHED_BYTES = 1 << 30  # Larger files are identified by size: hashing a dump takes minutes.


@dataclass(frozen=True)
class ImportSummary:
    """The outcome of importing one source."""

    place: str
    """The location as the caller passed it, without credentials."""
    source: str
    """The registered name of the source."""
    facts: int
    """The number of good facts from the source."""
    added: int
    """The number of facts that were new to the store."""
    repeated: int
    """The number of duplicate facts within the source."""
    names: int
    """The number of names that were new to the store."""
    bad: int
    """The number of rejected rows."""
    examples: list[str] = field(default_factory=list)
    """Locations of the first rejected rows, with reasons."""
    left_out: dict[str, int] = field(default_factory=dict)
    """The number of well-formed rows that were skipped, by kind."""


def import_knowledge(
    locations: Sequence[str],
    into: Path,
    *,
    languages: Sequence[str] = (),
    predicates: Sequence[str] = (),
    options: dict[str, str] | None = None,
    skip_bad: bool = False,
    memory: str = MEMORY,
    progress: Progress | None = None,
) -> list[ImportSummary]:
    """Import facts and names into the file of a knowledge base; a missing file is created.

    Either all sources are imported or none: a bad row, a broken file or a killed process leaves the file unchanged.
    A repeated import of the same source adds no facts or names.

    Args:
        locations: Packs, files, folders or addresses of SPARQL endpoints.
        into: The file of the knowledge base.
        languages: Languages of names to import; empty for all.
        predicates: Predicates to import; empty for all.
        options: Options that the sources define.
        skip_bad: Whether bad rows are skipped and counted; otherwise bad rows end the import.
        memory: Memory limit of DuckDB, unless :func:`limited_memory` sets one.
        progress: Receiver of progress reports.

    Raises:
        InputError: A source cannot be read completely, or has a bad row; the message states file and line.
    """
    if into.suffix != STORE_SUFFIX:
        raise InputError(f"{into}: the file name of a knowledge base must end in {STORE_SUFFIX}")
    if into.is_dir():
        raise InputError(f"{into} is a folder, and a knowledge base is a file. Choose another name with --into.")
    if not locations:
        raise InputError("nothing to import: name a file, a folder, a pack or the address of a SPARQL endpoint")
    for location in locations:
        _, path = resolve_source(location)
        if isinstance(path, Path) and path.resolve() == into.resolve():
            raise InputError(f"{into} cannot be imported into itself; name another file with --into")
    with _staging_connection(into) as connection:
        if current_share() is None:
            connection.execute(f"set memory_limit = '{memory}'")
        staged_sources = []
        for index, location in enumerate(locations):
            context = ReadContext(
                tuple(languages), tuple(predicates), options or {}, skip_bad, _REMEDY, progress or SilentProgress()
            )
            area = f"staging.source_{index}"
            staged_sources.append(
                (location, context, area, stage_chunks(connection, area, read_source(location, context), context))
            )
        connection.execute("begin")
        summaries = []
        for location, context, area, staged in staged_sources:
            merge_staged(connection, area, staged)
            summaries.append(_record(connection, location, context, staged))
        connection.execute("commit")
    return summaries


@contextmanager
def _staging_connection(into: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """Connect to the store, and attach a staging database in a temporary folder next to the store.

    A new store is created in the temporary folder and moved to ``into`` at the end.
    """
    with _locked_staging_folder(into) as folder:
        target = into if into.exists() else folder / into.name
        connection: duckdb.DuckDBPyConnection | None = None
        try:
            connection = connect(target, read_only=False)
            connection.execute(f"set temp_directory = {sql_literals(folder / 'spilled')}")
            connection.execute(f"attach {sql_literals(folder / 'staging.duckdb')} as staging")
            yield connection
            _drop_staging(connection)
            connection.execute("detach staging")
            if target != into:
                # Fold the write-ahead log into the file before it is renamed.
                connection.execute("checkpoint")
            connection.close()
            if target != into:
                os.replace(target, into)
                sync_folder(into.parent)
        except duckdb.Error as error:
            raise explain_error(error, into) from error
        finally:
            if connection is not None:
                connection.close()


@contextmanager
def _locked_staging_folder(into: Path) -> Iterator[Path]:
    """Create an empty, locked folder next to the store, and remove the folder at the end.

    The lock prevents two imports into one store at the same time.
    """
    parent = into.parent
    created_parents = [ancestor for ancestor in (parent, *parent.parents) if not ancestor.exists()]
    folder = parent / f".{into.name}.importing"
    try:
        parent.mkdir(parents=True, exist_ok=True)
        folder.mkdir(exist_ok=True)
        lock = open(folder / "lock", "a")  # noqa: SIM115
    except OSError as error:
        raise (
            disk_full_error(into)
            if is_disk_full(error)
            else InputError(
                f"{into} cannot be created: {error.strerror} ({error.filename}). Choose another path with --into."
            )
        ) from error
    with lock:
        try:
            if fcntl is not None:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise in_use_error(into) from error
        if not os.fstat(lock.fileno()).st_nlink:  # Another import has just removed the folder.
            raise in_use_error(into)
        try:
            for leftover in folder.iterdir():
                if leftover.name != "lock":
                    shutil.rmtree(leftover) if leftover.is_dir() else leftover.unlink()
            with removed_at_interrupt(folder):
                yield folder
        except OSError as error:
            if is_disk_full(error):
                raise disk_full_error(into) from error
            raise
        finally:
            # Still under the lock: once it is released, the folder may belong to another import.
            shutil.rmtree(folder, ignore_errors=True)
            with suppress(OSError):
                for ancestor in created_parents:
                    ancestor.rmdir()


def _drop_staging(connection: duckdb.DuckDBPyConnection) -> None:
    """Drop all staging schemas; otherwise DuckDB would write them to disk before the file is deleted."""
    areas = "select schema_name from duckdb_schemas() where database_name = 'staging' and schema_name != 'main'"
    for (area,) in connection.execute(f"{areas} and not internal").fetchall():
        connection.execute(f"drop schema staging.{area} cascade")


def _record(
    connection: duckdb.DuckDBPyConnection, location: str, context: ReadContext, staged: Staged
) -> ImportSummary:
    source, path = resolve_source(location)
    settings = {
        "languages": list(context.languages),
        "predicates": list(context.predicates),
        "skip_bad": context.skip_bad,
        **context.options,
    }
    content = _describe_content(path)
    key = content_id("i", source, content, settings)
    # The record of a repeated import, which adds nothing, keeps the counts of the first import.
    previous = connection.execute("delete from imports where import_id = ? returning added, names", [key]).fetchall()
    added, names = previous[0] if previous else (0, 0)
    connection.execute(
        "insert into imports values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [
            key,
            display_address(path) if isinstance(path, str) else path.name,
            source,
            content,
            redact(json.dumps({**settings, **_public_addresses(context.options)}, ensure_ascii=False)),
            __version__,
            datetime.now(timezone.utc).isoformat(timespec="seconds"),
            staged.facts,
            staged.added + added,
            staged.names + names,
            context.bad,
            json.dumps(context.left_out, ensure_ascii=False),
        ],
    )
    return ImportSummary(
        place=display_address(location) if isinstance(path, str) else location,
        source=source,
        facts=staged.facts,
        added=staged.added,
        repeated=staged.repeated,
        names=staged.names,
        bad=context.bad,
        examples=context.examples,
        left_out=dict(context.left_out),
    )


def _public_addresses(options: Mapping[str, str]) -> dict[str, str]:
    """Return the options that are addresses with a query, which may hold a key, without the query."""
    return {name: display_address(text) for name, text in options.items() if "://" in text and "?" in text}


def _describe_content(path: Path | str) -> str:
    """Describe imported content: the hashes of files (sizes if over 1 GiB), or the address of an endpoint."""
    if isinstance(path, str):
        return display_address(path)
    files = sorted(file for file in path.rglob("*") if file.is_file()) if path.is_dir() else [path]
    parts = []
    for file in files:
        size = file.stat().st_size
        parts.append(
            f"{file.name} sha256:{file_digest(file)}" if size <= _MAX_HASHED_BYTES else f"{file.name} {size} bytes"
        )
    return ", ".join(parts)
