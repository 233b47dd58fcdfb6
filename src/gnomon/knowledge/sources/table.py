"""Facts in one table file: CSV, TSV, JSON lines or Parquet."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gnomon.foundation import InputError, did_you_mean
from gnomon.foundation.tables import FACTS, NAMES, TableKind, make_table, read_table
from gnomon.knowledge.material import Material

_DELIMITERS = {".csv": ",", ".tsv": "\t"}


def read_table_file(path: Path) -> Material:
    """Facts of a file with the columns subject, predicate and object (or value), and others of a table of facts.

    Entities are named by themselves: what stands in the file is what stands in a question.
    """
    if path.suffix in _DELIMITERS:
        facts = make_table(FACTS, *read_rows(path, FACTS))
    else:
        facts = read_table(FACTS, path)
    entities = sorted({text for column in ("subject", "object") for text in facts[column].to_pylist() if text})
    return Material(facts, make_table(NAMES, [{"entity": text, "label": text} for text in entities]))


def read_rows(path: Path, kind: TableKind) -> tuple[list[dict[str, Any]], Callable[[int], str]]:
    """Rows of a CSV or TSV file with a header of the kind's columns, and where each stands; ``|`` separates lists.

    Refuses an unknown column, a row with too few or too many cells, and a number that is none, by line.
    """
    if not path.is_file():
        raise InputError(f"there is no file {path}; it should hold a table of {kind.name}")
    types = {column.name: str(column.type) for column in kind.schema}
    rows: list[dict[str, Any]] = []
    lines: list[int] = []
    try:
        with open(path, encoding="utf-8-sig", newline="") as handle:
            reader = csv.reader(handle, delimiter=_DELIMITERS.get(path.suffix, ","))
            header = next(reader, [])
            for name in header:
                if name not in types:
                    hint = did_you_mean(name, types)
                    raise InputError(f"{path}:1: there is no column {name!r} in a table of {kind.name}; {hint}")
            missing = sorted(kind.required - set(header) - {kind.unique} - set(kind.defaults))
            if missing:
                raise InputError(f"{path}:1: the column {missing[0]!r} is missing from the header")
            for cells in reader:
                if not cells:
                    continue
                where = f"{path}:{reader.line_num}"
                if len(cells) != len(header):
                    raise InputError(f"{where}: {len(cells)} cells where the header has {len(header)}. Mend the row.")
                pairs = zip(header, cells, strict=True)
                row = {name: _cell(text, types[name], f"{where}: {name}") for name, text in pairs if text.strip()}
                absent = sorted((kind.required - {kind.unique} - set(kind.defaults)) - set(row))
                if absent:
                    raise InputError(f"{where}: {absent[0]!r} is empty. Mend the row.")
                if kind is FACTS and ("object" in row) == ("value" in row):
                    raise InputError(
                        f"{where}: a fact has either an object or a value, and this one has both or neither"
                    )
                rows.append(row)
                lines.append(reader.line_num)
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not UTF-8 text (byte {error.start}). Save it as UTF-8.") from error
    except csv.Error as error:
        raise InputError(f"{path} cannot be read as a table: {error}") from error
    return rows, lambda row: f"{path}:{lines[row] if lines else 1}"


def _cell(text: str, kind: str, where: str) -> Any:
    if kind == "double":
        try:
            return float(text)
        except ValueError as error:
            raise InputError(f"{where} is {text!r}, which is no number") from error
    if kind.startswith("list"):
        return [part for part in text.split("|") if part]
    return text
