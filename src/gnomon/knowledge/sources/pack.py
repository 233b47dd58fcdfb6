"""Knowledge packs: a folder with pack.yaml, facts.csv and names.csv."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from gnomon.foundation import InputError, did_you_mean
from gnomon.foundation.tables import FACTS, NAMES, TableKind, make_table
from gnomon.knowledge.embedded import read_about
from gnomon.knowledge.material import Material, Predicate, columns_table
from gnomon.knowledge.reading import Reading
from gnomon.knowledge.sources.table import delimited_rows


def read_pack(folder: Path, reading: Reading) -> Iterator[Material]:
    """All facts and names of a pack; a fact without a domain gets the pack's."""
    reading.knows()
    about: dict[str, Any] = read_about(folder)
    facts, where = _rows(folder / "facts.csv", FACTS, reading)
    for row in facts:
        row.setdefault("domain", about.get("domain"))
        row["source"] = f"{about['name']}/{row['source']}" if row.get("source") else about["name"]
    kept = [(row, place) for row, place in zip(facts, where, strict=True) if reading.wants_predicate(row["predicate"])]
    names = _rows(folder / "names.csv", NAMES, reading)[0] if (folder / "names.csv").is_file() else []
    predicates = {
        name: Predicate(
            name=name,
            label=declared.get("label", name),
            functional=bool(declared.get("functional")),
            symmetric=bool(declared.get("symmetric")),
        )
        for name, declared in (about.get("predicates") or {}).items()
    }
    yield Material(
        columns_table(FACTS.schema, _columns([row for row, _ in kept])),
        make_table(NAMES, [row for row in names if reading.wants_language(row.get("language", "en"))]),
        predicates,
        where=lambda row: kept[row][1],
    )


def _columns(rows: list[dict[str, Any]]) -> dict[str, list[Any]]:
    return {name: [row.get(name) for row in rows] for name in FACTS.schema.names}


def _rows(path: Path, kind: TableKind, reading: Reading) -> tuple[list[dict[str, Any]], list[str]]:
    """Rows of a CSV file with a header of the kind's columns, and where each stands; ``|`` separates lists.

    Refuses an unknown column; a number that is none or an empty cell that must be filled is a bad row.
    """
    if not path.is_file():
        raise InputError(f"there is no file {path}; it should hold a table of {kind.name}")
    types = {column.name: str(column.type) for column in kind.schema}
    lines = delimited_rows(path, reading, ",")
    _, header = next(lines, (1, []))
    for name in header:
        if name not in types:
            hint = did_you_mean(name, types)
            raise InputError(f"{path}:1: there is no column {name!r} in a table of {kind.name}; {hint}")
    needed = kind.required - {kind.unique} - set(kind.defaults)
    missing = sorted(needed - set(header))
    if missing:
        raise InputError(f"{path}:1: the column {missing[0]!r} is missing from the header")
    rows: list[dict[str, Any]] = []
    places: list[str] = []
    for number, cells in lines:
        where = f"{path}:{number}"
        pairs = zip(header, cells, strict=True)
        try:
            row = {name: _cell(text, types[name], name) for name, text in pairs if text.strip()}
        except ValueError as error:
            reading.refuse(where, str(error))
            continue
        absent = sorted(needed - set(row))
        if absent:
            reading.refuse(where, f"{absent[0]!r} is empty")
            continue
        rows.append(row)
        places.append(where)
    return rows, places


def _cell(text: str, kind: str, name: str) -> Any:
    if kind == "double":
        try:
            return float(text)
        except ValueError:
            raise ValueError(f"{name} is {text!r}, and should be a number") from None
    return text.split("|") if kind.startswith("list") else text
