"""Source for knowledge packs: folders with pack.yaml, facts.csv and names.csv."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from merkhet.core.errors import InputError, did_you_mean
from merkhet.core.schemas import FACTS, NAMES, TableKind
from merkhet.knowledge.chunk import Chunk, Predicate, columns_table
from merkhet.knowledge.pack_catalog import declared_completeness, read_manifest
from merkhet.knowledge.predicate_labels import select_by_label
from merkhet.knowledge.source_reader import ReadContext
from merkhet.knowledge.sources.fact_table import delimited_rows, drop_bad_rows, parse_column


def read_pack(folder: Path, context: ReadContext) -> Iterator[Chunk]:
    """Yield the facts and names of a pack as one chunk; a fact without a domain gets the domain of the pack."""
    context.check_options()
    select_by_label(context, lambda scan: read_pack(folder, scan))
    manifest = read_manifest(folder)
    facts, numbers = _read_columns(folder / "facts.csv", FACTS, context)
    domain, name = manifest.get("domain"), manifest["name"]
    facts["domain"] = [row_domain or domain for row_domain in facts["domain"]]
    facts["source"] = [f"{name}/{source}" if source else name for source in facts["source"]]
    names: dict[str, list[Any]] = {}
    if (folder / "names.csv").is_file():
        names, _ = _read_columns(folder / "names.csv", NAMES, context)
    predicates = {
        name: Predicate(
            name,
            declared.get("label", name),
            bool(declared.get("functional")),
            bool(declared.get("symmetric")),
            declared_completeness(declared),
        )
        for name, declared in (manifest.get("predicates") or {}).items()
    }
    yield Chunk(
        columns_table(FACTS.schema, facts),
        columns_table(NAMES.schema, names),
        predicates,
        where=lambda row: f"{folder / 'facts.csv'}:{numbers[row]}",
    )


def _read_columns(path: Path, kind: TableKind, context: ReadContext) -> tuple[dict[str, list[Any]], list[int]]:
    """Read a CSV file; return its columns and the line numbers of its rows.

    Only rows that pass the filters are returned. ``|`` separates the items of a list.

    Raises:
        InputError: The header has an unknown column or lacks a required one.
    """
    if not path.is_file():
        raise InputError(f"there is no file {path}; a pack needs a table of {kind.name}")
    lines = delimited_rows(path, context, kind.schema.names)
    _, header = next(lines, (1, []))
    for name in header:
        if name not in kind.schema.names:
            hint = did_you_mean(name, kind.schema.names)
            raise InputError(f"{path}:1: there is no column {name!r} in a table of {kind.name}; {hint}")
    required = sorted(kind.required - {kind.unique} - set(kind.defaults))
    missing = [name for name in required if name not in header]
    if missing:
        raise InputError(f"{path}:1: the column {missing[0]!r} is missing from the header")
    rows = list(lines)
    if context.predicates and "predicate" in header:
        position = header.index("predicate")
        rows = [row for row in rows if context.wants_predicate(row[1][position])]
    elif context.languages and "language" in header:
        position = header.index("language")
        rows = [row for row in rows if context.wants_language(row[1][position].strip() or "en")]
    numbers = [number for number, _ in rows]
    problems: dict[int, str] = {}
    columns = {
        name: parse_column(name, kind.schema.field(name).type, cells, problems)
        for name, cells in zip(header, zip(*(cells for _, cells in rows), strict=True), strict=bool(rows))
    }
    for name in required:
        if None in columns.get(name, ()):
            for row, value in enumerate(columns[name]):
                if value is None:
                    problems.setdefault(row, f"{name!r} is empty")
    columns, numbers = drop_bad_rows(path, columns, numbers, problems, context)
    for name in kind.schema.names:
        default = kind.defaults.get(name)
        columns[name] = [default if value is None else value for value in columns.get(name) or [None] * len(numbers)]
    return columns, numbers
