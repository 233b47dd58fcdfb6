"""Reader of table rows by column name, which leaves out and counts bad rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from merkhet.core import SLOT
from merkhet.core.compressed_files import format_suffix
from merkhet.core.errors import InputError
from merkhet.core.strict_json import decode_json
from merkhet.knowledge.source_reader import ReadContext, read_lines
from merkhet.knowledge.sources.fact_table import delimited_rows
from merkhet.suites.chneval.questions.text_anomalies import RemarkCounter

SLOT_IN_TEXT = f"the text contains {SLOT}"


@dataclass
class LenientReadContext(ReadContext):
    """Read context that leaves out bad rows and counts them with their file and line."""

    counter: RemarkCounter = field(default_factory=RemarkCounter)

    def reject(self, where: str, reason: str) -> None:
        """Count a bad row instead of raising an error."""
        name, _, line = where.rpartition(":")
        self.counter.skip(reason, f"{Path(name).name}, line {line}")


def read_rows(
    path: Path, columns: Mapping[str, Sequence[str]], counter: RemarkCounter, optional: Sequence[str] = ()
) -> Iterator[tuple[str, dict[str, str]]]:
    """Read the rows of a .csv, .tsv or .jsonl file.

    Args:
        columns: Accepted names of each column in the file; other columns of the file are ignored.
        counter: Counter of the rows that are left out: rows with an empty required cell, or with the slot ``[MASK]``.
        optional: Columns that may be missing or empty.

    Yields:
        File and line of a row, and the cells of the row by column.

    Raises:
        InputError: If a required column is missing.
    """
    suffix, required = format_suffix(path), [column for column in columns if column not in optional]
    context = LenientReadContext(counter=counter, options={} if suffix == ".csv" else {"quotes": "no"})
    rows = _json_rows(path, context) if suffix == ".jsonl" else _table_rows(path, columns, required, context)
    for number, row in rows:
        where = f"{path.name}, line {number}"
        cells = {}
        for column, names in columns.items():
            text = next((row[name] for name in names if isinstance(row.get(name), str)), "")
            cells[column] = text.replace("\n", " ").replace("\t", " ").strip()
        if not all(cells[column] for column in required):
            counter.skip("a cell is empty", where)
        elif any(SLOT in cell for cell in cells.values()):
            counter.skip(SLOT_IN_TEXT, where)
        else:
            yield where, cells


def _table_rows(
    path: Path, columns: Mapping[str, Sequence[str]], required: Sequence[str], context: ReadContext
) -> Iterator[tuple[int, dict[str, str]]]:
    names = {name for names in columns.values() for name in names}
    rows = delimited_rows(path, context, names, default="," if format_suffix(path) == ".csv" else "\t")
    header = [cell.strip().lower() for cell in next(rows, (1, []))[1]]
    for column in required:
        if not set(columns[column]) & set(header):
            raise InputError(
                f"{path}:1: there is no column {column!r} in the header ({', '.join(filter(None, header))}). "
                f"Name the columns {', '.join(required)} in the first line."
            )
    for number, cells in rows:
        yield number, dict(zip(header, cells, strict=True))


def _json_rows(path: Path, context: ReadContext) -> Iterator[tuple[int, dict[str, str]]]:
    for number, line in read_lines(path, context):
        if not line.strip():
            continue
        try:
            row = decode_json(line)
        except (ValueError, RecursionError):
            row = None
        if isinstance(row, dict):
            yield number, row
        else:
            context.reject(f"{path}:{number}", "no JSON object")
