"""Import of knowledge into a store's file: whole or not at all, and the same when it is done twice."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import duckdb

from gnomon.foundation import InputError, Progress
from gnomon.foundation.files import file_digest
from gnomon.foundation.identity import content_id
from gnomon.foundation.progress import SilentProgress
from gnomon.foundation.version import __version__
from gnomon.knowledge.database import connect, explained
from gnomon.knowledge.endpoint import shown_address
from gnomon.knowledge.places import STORE_SUFFIX, locate, read_place
from gnomon.knowledge.reading import Reading
from gnomon.knowledge.taking import Taken, merge, stage

MEMORY = "1GB"
_REMEDY = "Nothing was imported. Mend it, or pass --skip-bad to leave out such rows (they are counted)."
_DIGESTED = 1 << 30  # Larger files are known by their size: reading a whole dump twice costs minutes.


@dataclass(frozen=True)
class Imported:
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
) -> list[Imported]:
    """Bring the facts and names of places into a knowledge base's file, which is made if it is not there.

    All places or none: a bad row, a broken file or a killed process leaves the file as it was. Importing the same
    again changes nothing. Refuses bad rows by file and line, unless they are to be skipped and counted.
    """
    if into.suffix != STORE_SUFFIX:
        raise InputError(f"{into}: a knowledge base is a file that ends in {STORE_SUFFIX}")
    if not places:
        raise InputError("say what to import: a file, a folder, a pack's name or the address of a SPARQL endpoint")
    for place in places:
        _, where = locate(place)
        if isinstance(where, Path) and where.resolve() == into.resolve():
            raise InputError(f"{into} cannot be imported into itself")
    with _workshop(into) as connection:
        connection.execute(f"set memory_limit = '{memory}'")
        staged = []
        for number, place in enumerate(places):
            reading = Reading(
                tuple(languages), tuple(predicates), options or {}, skip_bad, _REMEDY, progress or SilentProgress()
            )
            area = f"staging.place_{number}"
            staged.append((place, reading, area, stage(connection, area, read_place(place, reading), reading)))
        connection.execute("begin")
        done = []
        for place, reading, area, taken in staged:
            merge(connection, area, taken)
            done.append(_record(connection, place, reading, taken))
        connection.execute("commit")
    return done


@contextmanager
def _workshop(into: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """A connection to the store, with a staging area in a folder beside it that goes away at the end.

    The store is touched by one transaction alone. A new one is made in that folder and takes its name at the end.
    """
    into.parent.mkdir(parents=True, exist_ok=True)
    _clear_leftovers(into)
    folder = into.parent / f".{into.name}.{os.getpid()}.importing"
    folder.mkdir()
    target = into if into.exists() else folder / into.name
    connection: duckdb.DuckDBPyConnection | None = None
    try:
        connection = connect(target, read_only=False)
        connection.execute(f"set temp_directory = '{_quoted(folder / 'spilled')}'")
        connection.execute(f"attach '{_quoted(folder / 'staging.duckdb')}' as staging")
        yield connection
        connection.execute("detach staging")
        connection.close()
        if target != into:
            os.replace(target, into)
    except duckdb.Error as error:
        raise explained(error, into) from error
    finally:
        if connection is not None:
            connection.close()
        shutil.rmtree(folder, ignore_errors=True)


def _clear_leftovers(into: Path) -> None:
    """Remove what a killed import left beside the store."""
    for folder in into.parent.glob(f".{into.name}.*.importing"):
        process = folder.name.split(".")[-2]
        if process.isdigit() and int(process) != os.getpid() and not Path(f"/proc/{process}").exists():
            shutil.rmtree(folder, ignore_errors=True)


def _record(connection: duckdb.DuckDBPyConnection, place: str, reading: Reading, taken: Taken) -> Imported:
    source, where = locate(place)
    asked = {
        "languages": list(reading.languages),
        "predicates": list(reading.predicates),
        "skip_bad": reading.skip_bad,
        **reading.options,
    }
    content = _content(where)
    key = content_id("i", source, content, asked)
    connection.execute("delete from imports where import_id = ?", [key])
    connection.execute(
        "insert into imports values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [
            key,
            shown_address(where) if isinstance(where, str) else where.name,
            source,
            content,
            json.dumps(asked, ensure_ascii=False),
            __version__,
            datetime.now(timezone.utc).isoformat(timespec="seconds"),
            taken.facts,
            taken.added,
            taken.names,
            reading.bad,
            json.dumps(reading.left_out, ensure_ascii=False),
        ],
    )
    return Imported(
        place=shown_address(place) if isinstance(where, str) else place,
        source=source,
        facts=taken.facts,
        added=taken.added,
        repeated=taken.repeated,
        names=taken.names,
        bad=reading.bad,
        examples=reading.examples,
        left_out=dict(reading.left_out),
    )


def _content(where: Path | str) -> str:
    """What was imported: hashes of files; large files and addresses by what can be said of them quickly."""
    if isinstance(where, str):
        return shown_address(where)
    files = sorted(file for file in where.rglob("*") if file.is_file()) if where.is_dir() else [where]
    parts = []
    for file in files:
        size = file.stat().st_size
        parts.append(f"{file.name} sha256:{file_digest(file)}" if size <= _DIGESTED else f"{file.name} {size} bytes")
    return ", ".join(parts)


def _quoted(path: Path) -> str:
    return str(path).replace("'", "''")
