"""Import of knowledge into a store's file: whole or not at all, and the same when it is done twice."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import duckdb

from merkhet.core.errors import InputError
from merkhet.core.files import disk_full_error, file_digest, is_disk_full, sync_folder
from merkhet.core.ids import content_id
from merkhet.core.progress import Progress, SilentProgress
from merkhet.core.version import __version__
from merkhet.knowledge._sparql_client import display_address
from merkhet.knowledge._staging import Staged, merge, stage
from merkhet.knowledge.database import connect, explain_error, in_use_error
from merkhet.knowledge.source_lookup import STORE_SUFFIX, read_source, resolve_source
from merkhet.knowledge.source_reader import ReadContext

try:
    import fcntl
except ImportError:  # Not a Unix system: two imports that make the same store cannot be kept apart there.
    fcntl = None  # type: ignore[assignment]

MEMORY = "800MB"
_REMEDY = "Nothing was imported. Mend it, or pass --skip-bad to leave out such rows (they are counted)."
_DIGESTED = 1 << 30  # Larger files are known by their size: reading a whole dump twice costs minutes.


@dataclass(frozen=True)
class ImportSummary:
    """What an import of one place did."""

    place: str
    source: str
    facts: int
    added: int
    repeated: int
    names: int
    bad: int
    examples: list[str] = field(default_factory=list)
    left_out: dict[str, int] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


def import_knowledge(
    places: Sequence[str],
    into: Path,
    *,
    languages: Sequence[str] = (),
    predicates: Sequence[str] = (),
    options: dict[str, str] | None = None,
    skip_bad: bool = False,
    memory: str = MEMORY,
    progress: Progress | None = None,
) -> list[ImportSummary]:
    """Bring the facts and names of places into a knowledge base's file, which is made if it is not there.

    All places or none: a bad row, a broken file or a killed process leaves the file as it was. Importing the same
    again changes nothing. Refuses bad rows by file and line, unless they are to be skipped and counted.
    """
    if into.suffix != STORE_SUFFIX:
        raise InputError(f"{into}: a knowledge base is a file that ends in {STORE_SUFFIX}")
    if into.is_dir():
        raise InputError(f"{into} is a folder, and a knowledge base is a file. Choose another name with --into.")
    if not places:
        raise InputError("say what to import: a file, a folder, a pack's name or the address of a SPARQL endpoint")
    for place in places:
        _, where = resolve_source(place)
        if isinstance(where, Path) and where.resolve() == into.resolve():
            raise InputError(f"{into} cannot be imported into itself")
    with _workshop(into) as connection:
        connection.execute(f"set memory_limit = '{memory}'")
        staged = []
        for number, place in enumerate(places):
            context = ReadContext(
                tuple(languages), tuple(predicates), options or {}, skip_bad, _REMEDY, progress or SilentProgress()
            )
            area = f"staging.place_{number}"
            staged.append((place, context, area, stage(connection, area, read_source(place, context), context)))
        connection.execute("begin")
        done = []
        for place, context, area, taken in staged:
            merge(connection, area, taken)
            done.append(_record(connection, place, context, taken))
        connection.execute("commit")
    return done


@contextmanager
def _workshop(into: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """A connection to the store, with a staging area in a folder beside it that goes away at the end.

    The store is touched by one transaction alone. A new one is made in that folder and takes its name at the end.
    """
    with _folder_beside(into) as folder:
        target = into if into.exists() else folder / into.name
        connection: duckdb.DuckDBPyConnection | None = None
        try:
            connection = connect(target, read_only=False)
            connection.execute(f"set temp_directory = '{_quoted(folder / 'spilled')}'")
            connection.execute(f"attach '{_quoted(folder / 'staging.duckdb')}' as staging")
            yield connection
            _drop_staged(connection)
            connection.execute("detach staging")
            if target != into:
                # A file of its own, without a log beside it, before it takes the name.
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
def _folder_beside(into: Path) -> Iterator[Path]:
    """An empty folder beside the store, for one import at a time; gone at the end, with what a killed one left."""
    parent = into.parent
    made = [one for one in (parent, *parent.parents) if not one.exists()]
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
                f"{into} cannot be made: {error.strerror} ({error.filename}). Choose another place with --into."
            )
        ) from error
    with lock:
        try:
            if fcntl is not None:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise in_use_error(into) from error
        if not os.fstat(lock.fileno()).st_nlink:  # Whoever held it has just cleared it away.
            raise in_use_error(into)
        try:
            for leftover in folder.iterdir():
                if leftover.name != "lock":
                    shutil.rmtree(leftover) if leftover.is_dir() else leftover.unlink()
            yield folder
        except OSError as error:
            if is_disk_full(error):
                raise disk_full_error(into) from error
            raise
        finally:
            # While the lock is held, so that nobody else's folder is meant.
            shutil.rmtree(folder, ignore_errors=True)
            with suppress(OSError):
                for one in made:
                    one.rmdir()


def _drop_staged(connection: duckdb.DuckDBPyConnection) -> None:
    """Empty the staging area: else it would be written out in full once more, only to be deleted."""
    areas = "select schema_name from duckdb_schemas() where database_name = 'staging' and schema_name != 'main'"
    for (area,) in connection.execute(f"{areas} and not internal").fetchall():
        connection.execute(f"drop schema staging.{area} cascade")


def _record(connection: duckdb.DuckDBPyConnection, place: str, context: ReadContext, taken: Staged) -> ImportSummary:
    source, where = resolve_source(place)
    asked = {
        "languages": list(context.languages),
        "predicates": list(context.predicates),
        "skip_bad": context.skip_bad,
        **context.options,
    }
    content = _content(where)
    key = content_id("i", source, content, asked)
    # The same again adds nothing, and does not unsay what the first time added.
    before = connection.execute("delete from imports where import_id = ? returning added, names", [key]).fetchall() or [
        (0, 0)
    ]
    connection.execute(
        "insert into imports values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [
            key,
            display_address(where) if isinstance(where, str) else where.name,
            source,
            content,
            json.dumps(asked, ensure_ascii=False),
            __version__,
            datetime.now(timezone.utc).isoformat(timespec="seconds"),
            taken.facts,
            taken.added + before[0][0],
            taken.names + before[0][1],
            context.bad,
            json.dumps(context.left_out, ensure_ascii=False),
        ],
    )
    return ImportSummary(
        place=display_address(place) if isinstance(where, str) else place,
        source=source,
        facts=taken.facts,
        added=taken.added,
        repeated=taken.repeated,
        names=taken.names,
        bad=context.bad,
        examples=context.examples,
        left_out=dict(context.left_out),
    )


def _content(where: Path | str) -> str:
    """What was imported: hashes of files; large files and addresses by what can be said of them quickly."""
    if isinstance(where, str):
        return display_address(where)
    files = sorted(file for file in where.rglob("*") if file.is_file()) if where.is_dir() else [where]
    parts = []
    for file in files:
        size = file.stat().st_size
        parts.append(f"{file.name} sha256:{file_digest(file)}" if size <= _DIGESTED else f"{file.name} {size} bytes")
    return ", ".join(parts)


def _quoted(path: Path) -> str:
    return str(path).replace("'", "''")
