"""Rows of somebody's table by the names of its columns; bad rows are left out, counted and named."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from merkhet.core import SLOT
from merkhet.core.errors import InputError
from merkhet.knowledge.source_reader import ReadContext, format_suffix, read_lines
from merkhet.knowledge.sources.fact_table import delimited_rows
from merkhet.suites.chneval.questions.text_anomalies import Counted

_EMPTY = "a cell is empty, and they were left out"
_SLOT = f"{SLOT} stands in the text, and they were left out"


@dataclass
class Noting(ReadContext):
    """A reading that leaves out bad rows and notes each with its file's name and line."""

    counted: Counted = field(default_factory=Counted)

    def reject(self, where: str, reason: str) -> None:
        """Note a bad row and go on."""
        name, _, line = where.rpartition(":")
        self.counted.add(f"{reason}, and they were left out", f"{Path(name).name}, line {line}")


def read_rows(
    path: Path, columns: Mapping[str, Sequence[str]], counted: Counted, optional: Sequence[str] = ()
) -> Iterator[tuple[str, dict[str, str]]]:
    """Where a row stands and its cells by column, from .csv, .tsv or .jsonl; other columns are left aside.

    ``columns`` gives the names that a column may have in the file. Refuses a file without a column that is not
    optional. Rows that lack a cell, or hold the sign for a slot, go to ``counted``.
    """
    reading = Noting(counted=counted, options={} if format_suffix(path) == ".csv" else {"quotes": "no"})
    rows = (
        _json_rows(path, reading) if format_suffix(path) == ".jsonl" else _table_rows(path, columns, optional, reading)
    )
    for number, row in rows:
        where = f"{path.name}, line {number}"
        cells = {}
        for column, names in columns.items():
            text = next((row[name] for name in names if isinstance(row.get(name), str)), "")
            cells[column] = " ".join(text.split("\n")).replace("\t", " ").strip()
        if not all(cells[column] for column in columns if column not in optional):
            counted.add(_EMPTY, where)
        elif any(SLOT in cell for cell in cells.values()):
            counted.add(_SLOT, where)
        else:
            yield where, cells


def _table_rows(
    path: Path, columns: Mapping[str, Sequence[str]], optional: Sequence[str], reading: ReadContext
) -> Iterator[tuple[int, dict[str, str]]]:
    rows = delimited_rows(path, reading, "," if format_suffix(path) == ".csv" else "\t")
    header = [cell.strip().lower() for cell in next(rows, (1, []))[1]]
    for column, names in columns.items():
        if column not in optional and not set(names) & set(header):
            wanted = ", ".join(name for name in columns if name not in optional)
            raise InputError(
                f"{path}:1: there is no column {column!r} in the header ({', '.join(filter(None, header))}). "
                f"Name the columns {wanted} in the first line."
            )
    for number, cells in rows:
        yield number, dict(zip(header, cells, strict=True))


def _json_rows(path: Path, reading: ReadContext) -> Iterator[tuple[int, dict[str, str]]]:
    for number, line in read_lines(path, reading):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            row = None
        if isinstance(row, dict):
            yield number, row
        else:
            reading.reject(f"{path}:{number}", "no JSON object")
