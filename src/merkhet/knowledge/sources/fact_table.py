"""Facts in one table file (CSV, TSV, JSON lines or Parquet), with a map from its columns to those of facts."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from merkhet.core.errors import InputError, did_you_mean, first_line
from merkhet.core.schemas import FACTS, NAMES, PARQUET_ERRORS
from merkhet.knowledge.chunk import Chunk
from merkhet.knowledge.source_reader import ROWS_IN_CHUNK, ReadContext, format_suffix, read_lines

DELIMITERS = {".csv": ",", ".tsv": "\t"}
_LABELS = ("subject_label", "object_label")
COLUMNS = (*FACTS.schema.names, *_LABELS, "language")
_ROWS_IN_BATCH = 65_536
_BATCHES_IN_CHUNK = 8  # Several batches at once are taken in by several threads.
_FILLED = ("subject", "predicate")
csv.field_size_limit(1 << 24)


def read_table_file(place: Path, context: ReadContext) -> Iterator[Chunk]:
    """Facts of a file with the columns subject, predicate and object (or value), and others of a table of facts.

    ``map.COLUMN`` says which column of the file it is, ``constant.COLUMN`` a text for every row. ``subject_label``,
    ``object_label`` and ``language`` give names. Entities without one are named by themselves: what stands in the
    file is what stands in a question.
    """
    context.check_options(
        *[f"map.{one}" for one in COLUMNS], *[f"constant.{one}" for one in COLUMNS], "delimiter", "quotes"
    )
    if not place.is_file():
        raise InputError(f"there is no file {place}; it should hold a table of facts")
    suffix = format_suffix(place)
    if suffix == ".parquet":
        yield from _from_parquet(place, context)
    elif suffix == ".jsonl":
        yield from _from_rows(place, _json_rows(place, context), None, context)
    else:
        rows = delimited_rows(place, context, DELIMITERS.get(suffix, ","))
        _, header = next(rows, (1, []))
        yield from _from_rows(place, ((n, dict(zip(header, cells, strict=True))) for n, cells in rows), header, context)


def delimited_rows(path: Path, context: ReadContext, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Rows of a CSV or TSV file, the header first, each with the number of its last line.

    A row with another number of cells than the header is a bad row.
    """
    delimiter = {"tab": "\t", "\\t": "\t"}.get(context.option("delimiter"), context.option("delimiter", delimiter))
    if len(delimiter) != 1 or delimiter in '"\r\n':
        raise InputError(f"the option delimiter is {delimiter!r}, and should be one character, or tab")
    if context.option("quotes", "yes") not in ("yes", "no"):
        raise InputError(f"the option quotes is {context.option('quotes')!r}, and should be yes or no")
    quoted = context.option("quotes", "yes") == "yes"
    last = [0]

    def texts() -> Iterator[str]:
        for number, text in read_lines(path, context, keep_ends=True):
            last[0] = number
            yield text

    reader = csv.reader(
        texts(), delimiter=delimiter, quoting=csv.QUOTE_MINIMAL if quoted else csv.QUOTE_NONE, strict=quoted
    )
    header: list[str] | None = None
    while True:
        first = last[0] + 1
        try:
            cells = next(reader, None)
        except csv.Error as error:
            # A quote that is never closed takes the rest of the file: what is to be mended is where the row began.
            context.reject(
                f"{path}:{first}", f"not a row of a table ({error}); if quotes are part of the text, set quotes=no"
            )
            continue
        if cells is None:
            return
        if not cells:
            continue
        if header is None:
            header = cells
            refuse_twice(path, header)
        elif len(cells) != len(header):
            context.reject(f"{path}:{last[0]}", f"{len(cells)} cells where the header has {len(header)}")
            continue
        yield last[0], cells


def refuse_twice(path: Path, header: Sequence[str]) -> None:
    """Refuse a header in which a column with a name stands twice: which of them is meant?"""
    for place, name in enumerate(header):
        if name and name in header[:place]:
            raise InputError(f"{path}:1: the column {name!r} stands twice in the header. Rename or remove one.")


def _json_rows(path: Path, context: ReadContext) -> Iterator[tuple[int, dict[str, Any]]]:
    for number, text in read_lines(path, context):
        if not text.strip():
            continue
        try:
            row = json.loads(text)
        except json.JSONDecodeError as error:
            context.reject(f"{path}:{number}", f"not valid JSON ({error.msg} at column {error.colno})")
            continue
        except (ValueError, RecursionError) as error:
            context.reject(f"{path}:{number}", f"JSON that is too large to read ({first_line(error)})")
            continue
        if isinstance(row, dict):
            yield number, row
        else:
            context.reject(f"{path}:{number}", f"a row is a JSON object, and this is {type(row).__name__}")


@dataclass(frozen=True)
class _Plan:
    """Which column of the file gives each column of a fact, and the texts that are the same in every row."""

    columns: Mapping[str, str]
    constants: Mapping[str, str]

    @property
    def named_by_id(self) -> tuple[str, ...]:
        """Ends of a fact for which the file has no names."""
        given = {*self.columns, *self.constants}
        return tuple(end for end in ("subject", "object") if f"{end}_label" not in given)


def _plan(path: Path, header: Sequence[str], context: ReadContext) -> _Plan:
    mapped = {key[4:]: value for key, value in context.options.items() if key.startswith("map.")}
    constants = {key[9:]: value for key, value in context.options.items() if key.startswith("constant.")}
    for column in mapped.values():
        if column not in header:
            raise InputError(f"{path}:1: there is no column {column!r}; {did_you_mean(column, header)}")
    taken = set(mapped.values())
    columns = {name: name for name in header if name in COLUMNS and name not in constants and name not in taken}
    columns |= mapped
    unused = [name for name in header if name not in columns.values()]
    if unused and not mapped and not constants:
        hint = did_you_mean(unused[0], COLUMNS)
        raise InputError(
            f"{path}:1: there is no column {unused[0]!r} in a table of facts; {hint} "
            f"(or say what it is: --map subject={unused[0]})"
        )
    if unused:
        context.progress.say(f"  {path.name}: columns not used: {', '.join(name or '(no name)' for name in unused)}")
    for name in (*_FILLED, "object"):
        there = {*columns, *constants}
        if name not in there and not (name == "object" and "value" in there):
            raise InputError(f"{path}:1: the column {name!r} is missing; say which it is: --map {name}=COLUMN")
    return _Plan({target: given for target, given in columns.items() if target not in constants}, constants)


def _from_rows(
    path: Path, rows: Iterator[tuple[int, dict[str, Any]]], header: Sequence[str] | None, context: ReadContext
) -> Iterator[Chunk]:
    """Chunks of rows; a JSON row has its own columns, so they are looked at in every chunk."""
    plan = _plan(path, header, context) if header is not None else None
    numbers: list[int] = []
    taken: list[dict[str, Any]] = []
    for number, row in rows:
        numbers.append(number)
        taken.append(row)
        if len(taken) == ROWS_IN_CHUNK:
            yield _chunk_of_rows(path, taken, numbers, plan, context)
            numbers, taken = [], []
    if taken:
        yield _chunk_of_rows(path, taken, numbers, plan, context)


def _chunk_of_rows(
    path: Path, rows: list[dict[str, Any]], numbers: list[int], plan: _Plan | None, context: ReadContext
) -> Chunk:
    plan = plan or _plan(path, list({name: None for row in rows for name in row}), context)
    columns: dict[str, list[Any]] = {target: [] for target in plan.columns}
    places: list[int] = []
    pairs = list(plan.columns.items())
    for number, row in zip(numbers, rows, strict=True):
        try:
            cells = [_cell(row.get(column), target) for target, column in pairs]
        except ValueError as error:
            context.reject(f"{path}:{number}", str(error))
            continue
        places.append(number)
        for (target, _), cell in zip(pairs, cells, strict=True):
            columns[target].append(cell)
    table = pa.table({target: pa.array(cells, _type(target)) for target, cells in columns.items()})
    return _chunk(path, table, plan, context, lambda row: f"{path}:{places[row]}")


def _cell(given: Any, target: str) -> Any:
    """A cell as its column holds it; raises ValueError with what is wrong."""
    if given is None or given == "" or (isinstance(given, str) and not given.strip()):
        return None
    if target == "value":
        try:
            if isinstance(given, bool) or "_" in str(given):  # Python takes these for numbers.
                raise ValueError
            return float(given)
        except (TypeError, ValueError, OverflowError):
            raise ValueError(f"value is {_shown(given)}, and should be a number") from None
    if target == "premises":
        return [_text(one, target) for one in (given if isinstance(given, list) else str(given).split("|"))]
    return _text(given, target)


def _text(given: Any, target: str) -> str:
    if given is None or isinstance(given, bool | list | dict):
        raise ValueError(f"{target} is {_shown(given)}, and should be a text")
    text = given.strip() if isinstance(given, str) else str(given)
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError(f"{target} is {text!a}, which has half of a character") from None
    return text


def _shown(given: Any) -> str:
    text = repr(given) if isinstance(given, str) else json.dumps(given)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _from_parquet(path: Path, context: ReadContext) -> Iterator[Chunk]:
    try:
        file = pq.ParquetFile(path)
    except PARQUET_ERRORS as error:
        reason = str(error).splitlines()[0].rstrip(".")
        raise InputError(f"{path} is not a whole Parquet file ({reason}). Make it again, or fetch it anew.") from error
    refuse_twice(path, file.schema_arrow.names)
    plan = _plan(path, file.schema_arrow.names, context)
    context.progress.start(path.name, file.metadata.num_rows, "facts")
    done = 0
    columns = sorted(set(plan.columns.values()))
    try:
        batches = file.iter_batches(_ROWS_IN_BATCH, columns=columns)
        while some := list(islice(batches, _BATCHES_IN_CHUNK)):
            given = pa.Table.from_batches(some)
            table = pa.table({target: _cast(path, given[column], target) for target, column in plan.columns.items()})
            yield _chunk(path, table, plan, context, _row_of(path, done))
            done += given.num_rows
            context.progress.advance(path.name, given.num_rows)
    except PARQUET_ERRORS as error:
        raise InputError(f"{path} is not a whole Parquet file ({str(error).splitlines()[0]}).") from error
    context.progress.finish(path.name)


def _row_of(path: Path, first: int) -> Callable[[int], str]:
    return lambda row: f"{path}, row {first + row + 1}"


def _cast(path: Path, column: pa.ChunkedArray, target: str) -> pa.ChunkedArray:
    try:
        cast = column.cast(_type(target))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise InputError(f"{path}: column {target!r} holds {column.type}, not {_type(target)}") from error
    try:
        cast.validate(full=True)
    except pa.ArrowInvalid as error:
        raise InputError(f"{path}: column {target!r} holds text that is not UTF-8 ({first_line(error)})") from error
    if not pa.types.is_string(cast.type):
        return cast
    # An empty cell says nothing, in Parquet as in CSV.
    empty = pc.equal(cast, "")
    return pc.if_else(empty, pa.scalar(None, pa.string()), cast) if pc.any(empty).as_py() else cast


def _type(target: str) -> pa.DataType:
    return FACTS.schema.field(target).type if target in FACTS.schema.names else pa.string()


def _chunk(path: Path, table: pa.Table, plan: _Plan, context: ReadContext, where: Callable[[int], str]) -> Chunk:
    for target, text in plan.constants.items():
        try:
            constant = pa.scalar(_cell(text, target), _type(target))
        except ValueError as error:
            raise InputError(f"--constant {target}: {error}") from error
        table = table.append_column(target, pa.repeat(constant, table.num_rows))
    for time in ("start", "end"):
        if time in table.column_names and table[time].null_count < table.num_rows:
            # A time of day says no more than the day.
            cut = pc.replace_substring_regex(table[time], r"^([+-]?\d+-\d\d-\d\d)T.*$", r"\1")
            table = table.set_column(table.column_names.index(time), time, cut)
    if context.predicates:
        kept = pc.is_in(table["predicate"], pa.array(context.predicates))
        where = _moved(where, pc.indices_nonzero(kept).to_pylist())
        table = table.filter(kept)
    if "source" not in table.column_names:
        table = table.append_column("source", pa.repeat(pa.scalar(path.name), table.num_rows))
    facts = table.select([name for name in table.column_names if name in FACTS.schema.names])
    return Chunk(
        facts, _names(table), where=where, named_by_id=plan.named_by_id, language=plan.constants.get("language", "en")
    )


def _moved(where: Callable[[int], str], places: Sequence[int]) -> Callable[[int], str]:
    return lambda row: where(places[row])


def _names(table: pa.Table) -> pa.Table:
    found = [NAMES.schema.empty_table()]
    for end in ("subject", "object"):
        if f"{end}_label" in table.column_names and end in table.column_names:
            language = table["language"] if "language" in table.column_names else pa.nulls(table.num_rows, pa.string())
            pairs = pa.table({"entity": table[end], "language": language, "label": table[f"{end}_label"]})
            pairs = pairs.filter(pc.and_(pc.is_valid(pairs["entity"]), pc.is_valid(pairs["label"])))
            found.append(pairs.group_by(["entity", "language", "label"]).aggregate([]))
    return pa.concat_tables(found, promote_options="default")
