"""Knowledge packs: a folder with pack.yaml, facts.csv and names.csv."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from merkhet.core.errors import InputError, did_you_mean
from merkhet.core.schemas import FACTS, NAMES, TableKind
from merkhet.knowledge.chunk import Chunk, Predicate, columns_table
from merkhet.knowledge.pack_catalog import read_manifest
from merkhet.knowledge.source_reader import ReadContext
from merkhet.knowledge.sources.fact_table import delimited_rows


def read_pack(folder: Path, context: ReadContext) -> Iterator[Chunk]:
    """Yield all facts and names of a pack; a fact without a domain gets the pack's."""
    context.check_options()
    manifest: dict[str, Any] = read_manifest(folder)
    facts, numbers = _read_columns(folder / "facts.csv", FACTS, context)
    domain, name = manifest.get("domain"), manifest["name"]
    facts["domain"] = [row_domain or domain for row_domain in facts["domain"]]
    facts["source"] = [f"{name}/{source}" if source else name for source in facts["source"]]
    names: dict[str, list[Any]] = {}
    if (folder / "names.csv").is_file():
        names, _ = _read_columns(folder / "names.csv", NAMES, context)
    predicates = {
        name: Predicate(
            name=name,
            label=declared.get("label", name),
            functional=bool(declared.get("functional")),
            symmetric=bool(declared.get("symmetric")),
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
    """Read the selected rows of a CSV file by column, with the line number of each row; ``|`` separates lists.

    Raises:
        InputError: The header has an unknown column or lacks a needed one.
    """
    if not path.is_file():
        raise InputError(f"there is no file {path}; a pack needs a table of {kind.name}")
    types = {column.name: str(column.type) for column in kind.schema}
    lines = delimited_rows(path, context, ",")
    _, header = next(lines, (1, []))
    for name in header:
        if name not in types:
            hint = did_you_mean(name, types)
            raise InputError(f"{path}:1: there is no column {name!r} in a table of {kind.name}; {hint}")
    needed = sorted(kind.required - {kind.unique} - set(kind.defaults))
    missing = [name for name in needed if name not in header]
    if missing:
        raise InputError(f"{path}:1: the column {missing[0]!r} is missing from the header")
    rows = list(_filter_rows(lines, header, context))
    numbers = [number for number, _ in rows]
    texts = dict(zip(header, zip(*(cells for _, cells in rows), strict=True), strict=True)) if rows else {}
    problems: dict[int, str] = {}
    columns = {name: _parse_column(texts[name], types[name], name, problems) for name in header if name in texts}
    for name in needed:
        if None in columns.get(name, ()):
            for row, value in enumerate(columns[name]):
                if value is None:
                    problems.setdefault(row, f"{name!r} is empty")
    for row in sorted(problems):
        context.reject(f"{path}:{numbers[row]}", problems[row])
    if problems:
        good = [row for row in range(len(rows)) if row not in problems]
        numbers = [numbers[row] for row in good]
        columns = {name: [values[row] for row in good] for name, values in columns.items()}
    for name in types:
        default = kind.defaults.get(name)
        columns[name] = [default if value is None else value for value in columns.get(name) or [None] * len(numbers)]
    return columns, numbers


def _filter_rows(
    lines: Iterator[tuple[int, list[str]]], header: Sequence[str], context: ReadContext
) -> Iterator[tuple[int, list[str]]]:
    """Skip facts of other predicates and names in other languages."""
    if context.predicates and "predicate" in header:
        position = header.index("predicate")
        return (line for line in lines if context.wants_predicate(line[1][position]))
    if context.languages and "language" in header:
        position = header.index("language")
        return (line for line in lines if context.wants_language(line[1][position].strip() or "en"))
    return lines


def _parse_column(texts: Sequence[str], kind: str, name: str, problems: dict[int, str]) -> list[Any]:
    """Parse the cells of a column; None where one is empty. Note rows that cannot be parsed under ``problems``."""
    filled = [text if text and not text.isspace() else None for text in texts]
    if kind.startswith("list"):
        return [None if text is None else text.split("|") for text in filled]
    if kind != "double":
        return filled
    numbers: list[Any] = []
    for row, text in enumerate(filled):
        try:
            numbers.append(None if text is None else float(text))
        except ValueError:
            problems.setdefault(row, f"{name} must be a number, got {text!r}")
            numbers.append(None)
    return numbers
