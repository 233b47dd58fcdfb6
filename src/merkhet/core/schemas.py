"""Arrow schemas of all tables, with validating readers and writers.

Tables are Arrow in memory and Parquet on disk. Hand-written tables may be JSON lines.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from merkhet.core import SLOT
from merkhet.core.errors import InputError, did_you_mean, first_line
from merkhet.core.files import atomic_path, parse_json_object
from merkhet.core.ids import content_id
from merkhet.core.text_formats import short_repr

_STRINGS = pa.list_(pa.string())
_RANKED = pa.list_(pa.struct([("candidate", pa.string()), ("score", pa.float64())]))
_GROUP_ROWS, _GROUP_BYTES = 8192, 2**23
"""Maximum rows and bytes of a row group; small groups make reading single rows fast."""
PARQUET_ERRORS = (pa.ArrowException, OSError, UnicodeDecodeError)
"""Errors raised for a damaged Parquet file, including column names that are not UTF-8."""


@dataclass(frozen=True)
class TableKind:
    """A kind of table: its schema and its constraints."""

    name: str
    schema: pa.Schema
    required: frozenset[str]
    """Columns without null values."""
    unique: str | None = None
    """Column whose values identify the rows."""
    open: bool = False
    """Whether further columns are allowed, such as the group columns of scores."""
    defaults: Mapping[str, Any] = field(default_factory=dict)
    """Values of columns that are missing from a hand-written row."""
    identify: Callable[[Mapping[str, Any]], str] | None = None
    """Function that makes a row's id from its content."""
    check: Callable[[pa.Table, Callable[[int], str]], None] | None = None
    """Function that checks further constraints; receives the table and a function that describes a row's location."""


def fact_id(row: Mapping[str, Any]) -> str:
    """Return a fact's id: a hash of its statement and its period, but not of its source."""
    columns = ("subject", "predicate", "object", "value", "unit", "start", "end")
    return content_id("f", *(row.get(column) for column in columns))


def question_id(row: Mapping[str, Any]) -> str:
    """Return a question's id: a hash of suite, task, prompt, answers and candidates, but not of split or domain."""
    columns = ("suite", "task", "language", "prompt", "answers", "target", "choices", "candidate_set")
    words = [list(row["words"])] if row.get("words") else []
    return content_id("q", *(row.get(column) for column in columns), *words)


def candidate_set_id(name: str, candidates: Sequence[str]) -> str:
    """Return a candidate set's id: its name and a hash of its candidates."""
    return f"{name}-{content_id('c', list(candidates))[2:12]}"


def _check_facts(table: pa.Table, where: Callable[[int], str]) -> None:
    has_object, has_value = pc.is_valid(table["object"]), pc.is_valid(table["value"])
    row = _first(pc.equal(has_object, has_value))
    if row is not None:
        raise InputError(f"{where(row)}: a fact has either an object or a value, got both or neither")
    row = _first(pc.fill_null(pc.greater(_day(table["start"], 0), _day(table["end"], 99)), False))
    if row is not None:
        fact = table.slice(row, 1).to_pylist()[0]
        raise InputError(f"{where(row)}: end {fact['end']} is before start {fact['start']} for {fact['subject']!r}")


def _day(times: pa.ChunkedArray, missing: int) -> pa.Array:
    """Convert years and dates (1957, 1957-03, 0476-09-04) to comparable numbers.

    ``missing`` replaces a missing month or day.
    """
    fields = pc.extract_regex(times, r"^\+?(?P<year>-?\d{1,9})(?:-(?P<month>\d\d))?(?:-(?P<day>\d\d))?")
    fields = fields.combine_chunks() if isinstance(fields, pa.ChunkedArray) else fields
    parts = []
    for name in ("year", "month", "day"):
        text = pc.struct_field(fields, name)
        parts.append(pc.cast(pc.if_else(pc.equal(text, ""), str(missing), text), pa.int64()))
    return pc.add(pc.multiply(parts[0], 10_000), pc.add(pc.multiply(parts[1], 100), parts[2]))


def _check_questions(table: pa.Table, where: Callable[[int], str]) -> None:
    slots = pc.count_substring(table["prompt"], SLOT)
    row = _first(pc.not_equal(slots, 1))
    if row is not None:
        count, prompt = slots[row].as_py(), table["prompt"][row].as_py()
        slots_text = "no slot" if count == 0 else f"{count} slots"
        raise InputError(
            f"{where(row)}: the prompt {prompt!r} has {slots_text}; write {SLOT} exactly once, for the answer"
        )
    row = _first(pc.equal(pc.list_value_length(table["answers"]), 0))
    if row is not None:
        raise InputError(f"{where(row)}: 'answers' is empty; name every right answer")
    row = _first(pc.equal(pc.is_valid(table["choices"]), pc.is_valid(table["candidate_set"])))
    if row is not None:
        raise InputError(f"{where(row)}: a question has either 'choices' or a 'candidate_set'; give one of them")
    if table["words"].null_count < table.num_rows:
        _check_words(table, where)


def _check_words(table: pa.Table, where: Callable[[int], str]) -> None:
    """Check questions with words: each choice needs exactly one slot, and each slot a word."""
    for row, words in enumerate(table["words"].to_pylist()):
        if words is None:
            continue
        choices = table["choices"][row].as_py()
        if choices is None or any(text.count(SLOT) != 1 for text in choices):
            raise InputError(
                f"{where(row)}: the question compares senses (it has 'words'), so each of its 'choices' must be a "
                f"sentence with {SLOT} exactly once"
            )
        if len(words) not in (1, 1 + len(choices)) or not all(word and word.strip() for word in words):
            raise InputError(
                f"{where(row)}: 'words' holds {len(words)} words; give one for all slots, or one for the prompt and "
                "one for each choice"
            )


def _strings(*names: str) -> list[tuple[str, pa.DataType]]:
    return [(name, pa.string()) for name in names]


FACTS = TableKind(
    "facts",
    pa.schema(
        [
            *_strings("fact_id", "subject", "predicate", "object"),
            ("value", pa.float64()),
            *_strings("unit", "start", "end", "domain", "source", "rule"),
            ("premises", _STRINGS),
        ]
    ),
    required=frozenset({"fact_id", "subject", "predicate"}),
    unique="fact_id",
    identify=fact_id,
    check=_check_facts,
)
NAMES = TableKind(
    "names",
    pa.schema([*_strings("entity", "language", "label"), ("aliases", _STRINGS), ("kind", pa.string())]),
    required=frozenset({"entity", "language", "label"}),
    defaults={"language": "en", "aliases": []},
)
QUESTIONS = TableKind(
    "questions",
    pa.schema(
        [
            *_strings("question_id", "suite", "task", "language", "prompt"),
            ("answers", _STRINGS),
            ("target", pa.string()),
            ("choices", _STRINGS),
            ("candidate_set", pa.string()),
            ("facts", _STRINGS),
            *_strings("qset", "domain", "rule", "template", "split"),
            ("words", _STRINGS),
        ]
    ),
    required=frozenset({"question_id", "suite", "task", "language", "prompt", "answers", "target"}),
    unique="question_id",
    defaults={"suite": "own", "task": "completion", "language": "en", "facts": []},
    identify=question_id,
    check=_check_questions,
)
CANDIDATES = TableKind(
    "candidates",
    pa.schema([("candidate_set", pa.string()), ("candidates", _STRINGS)]),
    required=frozenset({"candidate_set", "candidates"}),
    unique="candidate_set",
)
FREQUENCIES = TableKind(
    "frequencies",
    pa.schema([*_strings("task", "relation", "answer"), ("count", pa.int64())]),
    required=frozenset({"task", "relation", "answer", "count"}),
)
ENTITIES = TableKind(
    "entities",
    pa.schema([("question_id", pa.string()), ("entities", _STRINGS)]),
    required=frozenset({"question_id", "entities"}),
    unique="question_id",
)
PREMISES = TableKind(
    "premises",
    pa.schema([*_strings("question_id", "shown"), ("first", _STRINGS), ("second", _STRINGS), ("memory", pa.string())]),
    required=frozenset({"question_id", "shown", "first", "second", "memory"}),
    unique="question_id",
    defaults={"first": [], "second": [], "memory": "half"},
)
ANSWERS = TableKind(
    "answers",
    pa.schema(
        [
            *_strings("question_id", "model", "probe", "method"),
            ("repeat", pa.int32()),
            ("prediction", pa.string()),
            ("ranked", _RANKED),
            ("golds", _STRINGS),
            ("gold_ranks", pa.list_(pa.float64())),
            ("gold_ties", pa.list_(pa.int32())),
            ("tied_first", pa.list_(pa.int32())),
            ("among", pa.int64()),
            ("right", pa.int64()),
            ("unusable", pa.string()),
            ("seconds", pa.float64()),
            ("outcome", pa.string()),
            ("replies", _STRINGS),
            ("positions", pa.list_(pa.int32())),
            ("right_positions", pa.list_(pa.int32())),
            ("letters", _STRINGS),
            ("right_letters", _STRINGS),
        ]
    ),
    required=frozenset({"question_id", "model", "probe", "method"}),
)
SETTINGS = TableKind(
    "settings",
    pa.schema(_strings("question_id", "model", "premises")),
    required=frozenset({"question_id", "model", "premises"}),
)
SCORES = TableKind(
    "scores",
    pa.schema(
        [
            *_strings("model", "suite", "task", "probe", "method", "metric"),
            *[(name, pa.float64()) for name in ("value", "low", "high")],
            ("n", pa.int64()),
            ("unusable", pa.int64()),
            ("chance", pa.float64()),
            ("adjusted", pa.float64()),
        ]
    ),
    required=frozenset({"model", "suite", "task", "probe", "method", "metric", "n", "unusable"}),
    open=True,
)


def make_table(
    kind: TableKind, rows: Sequence[Mapping[str, Any]], where: Callable[[int], str] | None = None
) -> pa.Table:
    """Make a validated table from rows; fill in missing ids and defaults.

    ``where`` returns the location of a row (counted from 0) for error messages; the default is the row's number.
    """
    where = where or (lambda row: f"{kind.name}, row {row + 1}")
    known = set(kind.schema.names)
    filled = []
    for number, row in enumerate(rows):
        row = {**kind.defaults, **{key: value for key, value in row.items() if value is not None}}
        unknown = [] if kind.open else [key for key in row if key not in known]
        if unknown:
            raise _unknown_column(kind, unknown[0], where(number))
        if kind.identify and kind.unique and not row.get(kind.unique):
            row[kind.unique] = kind.identify(row)
        filled.append(row)
    if not filled:
        return kind.schema.empty_table()
    present = {key for row in filled for key in row}
    columns = [column for column in kind.schema if column.name in present]
    columns += [pa.field(name, pa.string()) for name in sorted(present - known)]
    arrays = [_column(column.type, column.name, filled, where) for column in columns]
    return validate(kind, pa.Table.from_arrays(arrays, schema=pa.schema(columns)), where)


def validate(kind: TableKind, table: pa.Table, where: Callable[[int], str] | None = None) -> pa.Table:
    """Return the table with the kind's column order and types; raise InputError for the first invalid row."""
    where = where or (lambda row: f"{kind.name}, row {row + 1}")
    origin = where(0).rpartition(", row")[0] or kind.name
    unknown = [name for name in table.column_names if name not in kind.schema.names]
    if unknown and not kind.open:
        raise _unknown_column(kind, unknown[0], origin)
    columns = []
    for column in kind.schema:
        if column.name in table.column_names:
            try:
                columns.append(table[column.name].cast(column.type))
            except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
                actual = table[column.name].type
                raise InputError(
                    f"{origin}: the column {column.name!r} must hold {column.type}, got {actual}"
                ) from error
        elif column.name in kind.required:
            raise InputError(f"{origin}: the column {column.name!r} is missing from the table of {kind.name}; add it")
        else:
            columns.append(pa.nulls(table.num_rows, column.type))
        if column.name in kind.required and columns[-1].null_count:
            row = _first(pc.is_null(columns[-1]))
            raise InputError(f"{where(row or 0)}: {column.name!r} is empty; every row of {kind.name} needs it")
    checked = pa.Table.from_arrays(columns, schema=kind.schema)
    for name in unknown:
        checked = checked.append_column(name, table[name])
    if kind.unique:
        _refuse_repeats(kind, checked, where)
    if kind.check and checked.num_rows:
        kind.check(checked, where)
    return checked


def write_table(kind: TableKind, table: pa.Table, path: Path) -> None:
    """Validate a table and write it atomically as Parquet."""
    checked = validate(kind, table)
    rows_per_group = _GROUP_BYTES * checked.num_rows // max(1, checked.nbytes)
    with atomic_path(path) as temporary:
        pq.write_table(
            checked,
            temporary,
            compression="zstd",
            row_group_size=max(1, min(_GROUP_ROWS, rows_per_group)),
            write_page_checksum=True,
        )


def read_table(
    kind: TableKind,
    path: Path,
    complete: Callable[[list[dict[str, Any]]], None] | None = None,
    columns: Sequence[str] | None = None,
) -> pa.Table:
    """Read and validate a table from a .parquet or .jsonl file.

    Args:
        complete: Function that adds missing values to hand-written rows in place, before ids are computed.
        columns: Columns to read from a Parquet file, all by default; the other columns, and missing ones, are null.

    Raises:
        InputError: The file is missing or damaged, or a row is invalid.
    """
    if not path.is_file():
        raise InputError(f"there is no file {path}; it should hold a table of {kind.name}")
    if path.suffix == ".jsonl":
        return _read_json_lines(kind, path, complete)
    if path.suffix != ".parquet":
        raise InputError(f"{path}: a table of {kind.name} must be a .parquet or .jsonl file")
    try:
        present = None if columns is None else [name for name in columns if name in pq.read_schema(path).names]
        table = pq.read_table(path, columns=present, page_checksum_verification=True)
    except PARQUET_ERRORS as error:
        reason = first_line(error).rstrip(".")
        raise InputError(f"{path} is not a complete Parquet file ({reason}). Create or download it again.") from error
    return validate(kind, table, lambda row: f"{path}, row {row + 1}")


def _read_json_lines(kind: TableKind, path: Path, complete: Callable[[list[dict[str, Any]]], None] | None) -> pa.Table:
    rows: list[dict[str, Any]] = []
    lines: list[int] = []
    with open(path, "rb") as handle:
        for number, line in enumerate(handle, 1):
            if not line.strip():
                continue
            row = parse_json_object(line.rstrip(), f"{path}, row {number}", "Correct the row.")
            rows.append({**kind.defaults, **{key: value for key, value in row.items() if value is not None}})
            lines.append(number)
    if complete:
        complete(rows)
    return make_table(kind, rows, lambda row: f"{path}, row {lines[row]}")


def _unknown_column(kind: TableKind, name: str, where: str) -> InputError:
    hint = did_you_mean(str(name), kind.schema.names)
    return InputError(f"{where}: there is no column {name!r} in a table of {kind.name}; {hint}")


def _column(kind: pa.DataType, name: str, rows: Sequence[Mapping[str, Any]], where: Callable[[int], str]) -> pa.Array:
    values = [row.get(name) for row in rows]
    try:
        for value in values:
            _refuse_silent_change(kind, value)
        return pa.array(values, kind)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        for number, value in enumerate(values):
            try:
                _refuse_silent_change(kind, value)
                pa.array([value], kind)
            except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
                raise InputError(f"{where(number)}: {name!r} must be {kind}, got {short_repr(value)}") from error
        raise


def _refuse_silent_change(kind: pa.DataType, value: Any) -> None:
    """Raise TypeError for a value that Arrow would convert silently.

    Arrow turns a string into a list of letters, and a fraction into an integer.
    """
    if pa.types.is_list(kind) and isinstance(value, str):
        raise TypeError("a string is not a list")
    if pa.types.is_integer(kind) and isinstance(value, float) and value != int(value):
        raise TypeError("a fraction is not an integer")


def _refuse_repeats(kind: TableKind, table: pa.Table, where: Callable[[int], str]) -> None:
    ids = table[kind.unique]
    if len(pc.unique(ids)) == len(ids):
        return
    first_rows: dict[str, int] = {}
    for row, identity in enumerate(ids.to_pylist()):
        if identity in first_rows:
            first = where(first_rows[identity])
            raise InputError(f"{where(row)}: repeats {first} ({kind.unique} {identity}). Remove one.")
        first_rows[identity] = row


def _first(mask: pa.ChunkedArray | pa.Array) -> int | None:
    index = pc.index(mask, True).as_py()
    return None if index < 0 else index
