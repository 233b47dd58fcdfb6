"""Source for facts in one table file (CSV, TSV, JSON lines or Parquet) with any column names."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain, islice
from pathlib import Path
from typing import Any, Literal, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from merkhet.core.compressed_files import format_suffix
from merkhet.core.delimited_text import find_delimiter
from merkhet.core.errors import InputError, did_you_mean, first_line
from merkhet.core.schemas import FACTS, NAMES, PARQUET_ERRORS
from merkhet.core.strict_json import decode_json
from merkhet.core.text import counted
from merkhet.knowledge.chunk import Chunk
from merkhet.knowledge.source_reader import ROWS_IN_CHUNK, ReadContext, read_lines

_LABEL_COLUMNS = ("subject_label", "object_label")
COLUMNS = (*FACTS.schema.names, *_LABEL_COLUMNS, "language")
_ROWS_IN_BATCH = 65_536
_BATCHES_IN_CHUNK = 8  # DuckDB stages several batches in several threads.
_REQUIRED = ("subject", "predicate")


def read_table_file(path: Path, context: ReadContext) -> Iterator[Chunk]:
    """Yield the facts and names of a table file.

    The columns subject, predicate and either object or value are required; further columns of ``FACTS`` are optional.
    The columns ``subject_label``, ``object_label`` and ``language`` give names; without a label column, ids serve as
    names. The option ``map.COLUMN`` names the column of the file to use for COLUMN. The option ``constant.COLUMN`` sets
    one text for all rows.
    """
    context.check_options(
        *(f"{use}.{column}" for use in ("map", "constant") for column in COLUMNS), "delimiter", "quotes"
    )
    if not path.is_file():
        raise InputError(f"there is no file {path}; it should hold a table of facts")
    suffix = format_suffix(path)
    if suffix == ".parquet":
        yield from _read_parquet(path, context)
    elif suffix == ".jsonl":
        rows = _json_rows(path, context)
        while batch := list(islice(rows, ROWS_IN_CHUNK)):
            # The columns may differ between chunks.
            header = list({name: None for _, row in batch for name in row})
            columns = {name: [row.get(name) for _, row in batch] for name in header}
            yield _chunk_of_rows(path, _map_columns(path, header, context), batch, columns, context)
    else:
        mapped = [value for key, value in context.options.items() if key.startswith("map.")]
        lines = delimited_rows(path, context, (*COLUMNS, *mapped))
        _, header = next(lines, (1, []))
        mapping = _map_columns(path, header, context)
        while block := list(islice(lines, ROWS_IN_CHUNK)):
            cells = zip(*(cells for _, cells in block), strict=True)
            yield _chunk_of_rows(path, mapping, block, dict(zip(header, cells, strict=True)), context)


def delimited_rows(
    path: Path, context: ReadContext, known: Collection[str], default: str = ""
) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows of a CSV or TSV file, the header first, each with the number of its last line.

    A row with more or fewer cells than the header is a bad row. The option ``delimiter`` sets the delimiter; otherwise
    it is the comma, semicolon or tab that separates the columns of the header.

    Args:
        known: Known names of columns, by which the delimiter is chosen if several are possible.
        default: Delimiter of a header without any; by default, a tab in .tsv files and a comma in others.
    """
    quoted = context.choice("quotes", "yes", "no") == "yes"
    last_line = 0

    def lines() -> Iterator[str]:
        nonlocal last_line
        for last_line, text in read_lines(path, context, keep_ends=True):  # noqa: B007
            yield text

    text = lines()
    first = next((line for line in text if line.strip()), "")
    delimiter = _delimiter(path, context, first, known, default or ("\t" if format_suffix(path) == ".tsv" else ","))
    quoting: Literal[0, 3] = csv.QUOTE_MINIMAL if quoted else csv.QUOTE_NONE
    reader = csv.reader(chain([first], text), delimiter=delimiter, quoting=quoting, strict=quoted)
    header: list[str] | None = None
    while True:
        row_start = last_line + 1 if header else max(last_line, 1)
        try:
            cells = next(reader, None)
        except csv.Error as error:
            # An unclosed quote extends to the end of the file, so the error is located where the row begins.
            context.reject(
                f"{path}:{row_start}",
                f"not a row of a table ({error}); a quotation mark within a cell in quotation marks is doubled; if "
                "quotation marks are part of the text, set quotes=no",
            )
            continue
        if cells is None:
            return
        if not cells:
            continue
        if header is None:
            header = cells
            reject_duplicate_columns(path, header)
        elif len(cells) != len(header):
            context.reject(f"{path}:{last_line}", f"{counted(len(cells), 'cell')} where the header has {len(header)}")
            continue
        yield last_line, cells


def _delimiter(path: Path, context: ReadContext, header: str, known: Collection[str], default: str) -> str:
    if "delimiter" not in context.options:
        quoted = context.choice("quotes", "yes", "no") == "yes"
        return find_delimiter(
            *(header.rstrip("\r\n"), f"{path}:1", known),
            default=default,
            quoted=quoted,
            remedy="Set the option 'delimiter' to one of them.",
        )
    delimiter = {"tab": "\t", "\\t": "\t"}.get(context.option("delimiter"), context.option("delimiter"))
    if len(delimiter) != 1 or delimiter in '"\r\n':
        raise InputError(f"the option 'delimiter' must be one character or tab, got {delimiter!r}")
    return delimiter


def reject_duplicate_columns(path: Path, header: Sequence[str]) -> None:
    """Raise InputError if a header contains a column name twice."""
    for position, name in enumerate(header):
        if name and name in header[:position]:
            raise InputError(f"{path}:1: the column {name!r} is in the header twice. Rename or remove one.")


def _json_rows(path: Path, context: ReadContext) -> Iterator[tuple[int, dict[str, Any]]]:
    for number, text in read_lines(path, context):
        if not text.strip():
            continue
        try:
            row = decode_json(text)
        except json.JSONDecodeError as error:
            context.reject(f"{path}:{number}", f"not valid JSON ({error.msg} at column {error.colno})")
            continue
        except (ValueError, RecursionError) as error:
            context.reject(f"{path}:{number}", f"JSON that is too large to read ({first_line(error)})")
            continue
        if isinstance(row, dict):
            yield number, row
        else:
            context.reject(f"{path}:{number}", f"a row must be a JSON object, got {type(row).__name__}")


class _ColumnMapping(NamedTuple):
    columns: Mapping[str, str]
    """For each column of a fact, the column of the file that provides it."""
    constants: Mapping[str, str]
    """The text of each column that is the same in all rows."""


def _map_columns(path: Path, header: Sequence[str], context: ReadContext) -> _ColumnMapping:
    mapped, constants = (
        {key.removeprefix(use): value for key, value in context.options.items() if key.startswith(use)}
        for use in ("map.", "constant.")
    )
    for column in mapped.values():
        if column not in header:
            raise InputError(f"{path}:1: there is no column {column!r}; {did_you_mean(column, header)}")
    used = set(mapped.values())
    columns = {name: name for name in header if name in COLUMNS and name not in constants and name not in used}
    columns |= mapped
    unused = [name for name in header if name not in columns.values()]
    if unused and not mapped and not constants:
        hint = did_you_mean(unused[0], COLUMNS)
        raise InputError(
            f"{path}:1: there is no column {unused[0]!r} in a table of facts; {hint} "
            f"(or map it: --map subject={unused[0]})"
            + (". If another character separates the columns, set the option 'delimiter'" if len(header) == 1 else "")
        )
    if unused:
        context.progress.say(f"  {path.name}: columns not used: {', '.join(name or '(no name)' for name in unused)}")
    for name in (*_REQUIRED, "object"):
        available = {*columns, *constants}
        if name not in available and not (name == "object" and "value" in available):
            raise InputError(f"{path}:1: the column {name!r} is missing; map one: --map {name}=COLUMN")
    return _ColumnMapping({target: column for target, column in columns.items() if target not in constants}, constants)


def _chunk_of_rows(
    path: Path,
    mapping: _ColumnMapping,
    rows: Sequence[tuple[int, Any]],
    columns: Mapping[str, Sequence[Any]],
    context: ReadContext,
) -> Chunk:
    """Build a chunk from the cells in ``columns``; ``rows`` gives the line number of each row."""
    problems: dict[int, str] = {}
    parsed = {
        target: parse_column(target, _column_type(target), columns[column], problems)
        for target, column in mapping.columns.items()
    }
    parsed, numbers = drop_bad_rows(path, parsed, [number for number, _ in rows], problems, context)
    table = pa.table({target: pa.array(cells, _column_type(target)) for target, cells in parsed.items()})
    return _make_chunk(path, table, mapping, context, lambda row: f"{path}:{numbers[row]}")


def parse_column(name: str, kind: pa.DataType, cells: Sequence[Any], problems: dict[int, str]) -> list[Any]:
    """Parse the cells of a column; an empty or invalid cell becomes None.

    Args:
        name: The name of the column for error messages.
        kind: The type of the column: text, number, or list of texts. A text cell may separate list items by ``|``.
        cells: The cells as texts or JSON values.
        problems: The first problem of each row by row index; problems of this column are added.
    """
    if pa.types.is_string(kind) and set(map(type, cells)) == {str} and "".join(cells).isprintable():
        return [cell.strip() or None for cell in cells]
    parse = _parse_number if pa.types.is_float64(kind) else _parse_text if pa.types.is_string(kind) else _parse_texts
    parsed: list[Any] = []
    for row, cell in enumerate(cells):
        try:
            empty = cell is None or cell == "" or (isinstance(cell, str) and cell.isspace())
            parsed.append(None if empty else parse(cell, name))
        except ValueError as error:
            problems.setdefault(row, str(error))
            parsed.append(None)
    return parsed


def drop_bad_rows(
    path: Path, columns: dict[str, list[Any]], numbers: list[int], problems: Mapping[int, str], context: ReadContext
) -> tuple[dict[str, list[Any]], list[int]]:
    """Reject the rows with problems; return the columns and line numbers without these rows."""
    for row in sorted(problems):
        context.reject(f"{path}:{numbers[row]}", problems[row])
    if not problems:
        return columns, numbers
    good = [row for row in range(len(numbers)) if row not in problems]
    return {name: [cells[row] for row in good] for name, cells in columns.items()}, [numbers[row] for row in good]


def _parse_number(cell: Any, name: str) -> float:
    try:
        if isinstance(cell, bool) or "_" in str(cell):  # Python takes these for numbers.
            raise ValueError
        return float(cell)
    except (TypeError, ValueError, OverflowError):
        hint = "; write the decimal mark as a point, without separators of thousands" if _has_comma(cell) else ""
        raise ValueError(f"{name} must be a number, got {_short_repr(cell)}{hint}") from None


def _has_comma(cell: Any) -> bool:
    return isinstance(cell, str) and re.fullmatch(r"\s*[+-]?[\d.]*\d(,\d+)+\s*", cell) is not None


def _parse_texts(cell: Any, name: str) -> list[str]:
    if isinstance(cell, list):
        return [_parse_text(text, name) for text in cell]
    return [text.strip() for text in _parse_text(cell, name).split("|")]


def _parse_text(cell: Any, name: str) -> str:
    if cell is None or isinstance(cell, bool | list | dict):
        raise ValueError(f"{name} must be a text, got {_short_repr(cell)}")
    text = cell.strip() if isinstance(cell, str) else str(cell)
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError(f"{name} is {text!a}, which contains a lone surrogate") from None
    return text


def _short_repr(cell: Any) -> str:
    text = repr(cell) if isinstance(cell, str) else json.dumps(cell)
    return text if len(text) <= 60 else f"{text[:57]}..."


@contextmanager
def open_parquet(path: Path) -> Iterator[pq.ParquetFile]:
    """Open a Parquet file for the duration of a ``with`` block.

    Raises:
        InputError: The file has a duplicate column, or turns out to be damaged within the block.
    """
    try:
        file = pq.ParquetFile(path)
        reject_duplicate_columns(path, file.schema_arrow.names)
        yield file
    except PARQUET_ERRORS as error:
        reason = first_line(error).rstrip(".")
        raise InputError(f"{path} is not a complete Parquet file ({reason}). Create or download it again.") from error


def cast_column(path: Path, name: str, column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    """Cast a column of a Parquet file to the type ``kind``.

    Raises:
        InputError: The column cannot be cast, or a text is not UTF-8.
    """
    try:
        cast = column.cast(kind)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise InputError(f"{path}: the column {name!r} must hold {kind}, got {column.type}") from error
    try:
        cast.validate(full=True)
    except pa.ArrowInvalid as error:
        raise InputError(
            f"{path}: the column {name!r} holds text that is not UTF-8 ({first_line(error)}). Write it as UTF-8."
        ) from error
    return cast


def _read_parquet(path: Path, context: ReadContext) -> Iterator[Chunk]:
    with open_parquet(path) as file:
        mapping = _map_columns(path, file.schema_arrow.names, context)
        context.progress.start(path.name, file.metadata.num_rows, "facts")
        done = 0
        batches = file.iter_batches(_ROWS_IN_BATCH, columns=sorted(set(mapping.columns.values())))
        while group := list(islice(batches, _BATCHES_IN_CHUNK)):
            rows = pa.Table.from_batches(group)
            table = pa.table(
                {
                    target: _empty_to_null(cast_column(path, target, rows[column], _column_type(target)))
                    for target, column in mapping.columns.items()
                }
            )
            yield _make_chunk(path, table, mapping, context, _row_location(path, done))
            done += rows.num_rows
            context.progress.advance(path.name, rows.num_rows)
        context.progress.finish(path.name)


def _row_location(path: Path, first: int) -> Callable[[int], str]:
    return lambda row: f"{path}, row {first + row + 1}"


def _empty_to_null(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Replace empty texts by null, as in CSV files."""
    if not pa.types.is_string(column.type):
        return column
    empty = pc.equal(column, "")
    return pc.if_else(empty, pa.scalar(None, pa.string()), column) if pc.any(empty).as_py() else column


def _column_type(target: str) -> pa.DataType:
    return FACTS.schema.field(target).type if target in FACTS.schema.names else pa.string()


def _make_chunk(
    path: Path, table: pa.Table, mapping: _ColumnMapping, context: ReadContext, where: Callable[[int], str]
) -> Chunk:
    for target, text in mapping.constants.items():
        problems: dict[int, str] = {}
        [constant] = parse_column(target, _column_type(target), [text], problems)
        if problems:
            raise InputError(f"--constant {target}: {problems[0]}")
        table = table.append_column(target, pa.repeat(pa.scalar(constant, _column_type(target)), table.num_rows))
    for time in ("start", "end"):
        if time in table.column_names and table[time].null_count < table.num_rows:
            # Drop the time of day.
            day = pc.replace_substring_regex(table[time], r"^([+-]?\d+-\d\d-\d\d)(T.*| \d\d:\d\d.*)$", r"\1")
            table = table.set_column(table.column_names.index(time), time, day)
    if context.predicates:
        selected = pc.is_in(table["predicate"], pa.array(sorted(context.predicate_spellings)))
        where = _remap_rows(where, pc.indices_nonzero(selected).to_pylist())
        table = table.filter(selected)
    if "source" not in table.column_names:
        table = table.append_column("source", pa.repeat(pa.scalar(path.name), table.num_rows))
    facts = table.select([name for name in table.column_names if name in FACTS.schema.names])
    return Chunk(
        facts,
        _read_names(table),
        where=where,
        named_by_id=tuple(column for column in ("subject", "object") if f"{column}_label" not in table.column_names),
        language=mapping.constants.get("language", "en"),
    )


def _remap_rows(where: Callable[[int], str], rows: Sequence[int]) -> Callable[[int], str]:
    return lambda row: where(rows[row])


def _read_names(table: pa.Table) -> pa.Table:
    tables = [NAMES.schema.empty_table()]
    for column in ("subject", "object"):
        if f"{column}_label" in table.column_names and column in table.column_names:
            language = table["language"] if "language" in table.column_names else pa.nulls(table.num_rows, pa.string())
            pairs = pa.table({"entity": table[column], "language": language, "label": table[f"{column}_label"]})
            pairs = pairs.filter(pc.and_(pc.is_valid(pairs["entity"]), pc.is_valid(pairs["label"])))
            tables.append(pairs.group_by(["entity", "language", "label"]).aggregate([]))
    return pa.concat_tables(tables, promote_options="default")
