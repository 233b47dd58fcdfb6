"""Arrow schemas of all tables, with validating readers and writers.

Tables are Arrow in memory and Parquet on disk. Hand-written tables may be JSON lines.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from merkhet.core._row_checks import check_facts, check_questions, check_slots, rows_where
from merkhet.core.errors import FaultList, InputError, did_you_mean, first_line
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
    check: Callable[[pa.Table, Callable[[int], str], FaultList], None] | None = None
    """Function that checks further constraints.

    It receives the table, a function that describes a row's location, and the list to add faults to."""
    label: tuple[str, ...] = ()
    """Columns that name a row in error messages."""


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
    check=check_facts,
    label=("subject", "predicate", "object", "value"),
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
            *_strings("qset", "domain", "rule", "template", "split", "nearness", "evidence"),
            ("words", _STRINGS),
        ]
    ),
    required=frozenset({"question_id", "suite", "task", "language", "prompt", "answers", "target"}),
    unique="question_id",
    defaults={"suite": "own", "task": "completion", "language": "en", "facts": []},
    identify=question_id,
    check=check_questions,
    label=("prompt",),
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
    pa.schema([*_strings("question_id", "fact_id"), ("step", pa.int32()), *_strings("axiom", "sentence")]),
    required=frozenset({"question_id", "fact_id", "step", "axiom"}),
)
"""Stated facts at the bottom of a conclusion's proof."""
PREMISE_QUESTIONS = TableKind(
    "premise_questions",
    pa.schema([*_strings("question_id", "shown"), ("first", _STRINGS), ("second", _STRINGS), ("memory", pa.string())]),
    required=frozenset({"question_id", "shown", "first", "second", "memory"}),
    unique="question_id",
    defaults={"first": [], "second": [], "memory": "half"},
)
"""Which of a rule's two premises a question shows, and the questions that ask for each premise alone."""
PAIRS = TableKind(
    "pairs",
    pa.schema([*_strings("task", "relation", "first", "second"), ("holds", pa.bool_())]),
    required=frozenset({"task", "relation", "first", "second", "holds"}),
)
"""Names in the statements that training questions ask a verdict on, and whether the statements hold."""
CONTROLS = TableKind(
    "controls",
    pa.schema(_strings("question_id", "control", "prompt")),
    required=frozenset({"question_id", "control", "prompt"}),
    check=check_slots,
)
"""Prompts that lack what a question is about, by control."""
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
CONTROL_ANSWERS = TableKind(
    "control_answers",
    pa.schema([("control", pa.string()), *ANSWERS.schema]),
    required=ANSWERS.required | {"control"},
)
"""Answers of models to control prompts, and of their input embeddings to questions."""
TRAININGS = TableKind(
    "trainings",
    pa.schema([("training", pa.int32()), *ANSWERS.schema]),
    required=ANSWERS.required | {"training"},
)
"""Answers after trainings with other seeds; ``training`` counts from 2."""
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
            ("wording_sd", pa.float64()),
            ("wording_n", pa.int64()),
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
    faults = FaultList()
    faulty: set[int] = set()
    filled = []
    for number, row in enumerate(rows):
        row = {**kind.defaults, **{key: value for key, value in row.items() if value is not None}}
        for key in row if not kind.open else ():
            if key not in known:
                faults.add(str(_unknown_column(kind, key, where(number))), row=number)
                faulty.add(number)
        if kind.identify and kind.unique and not row.get(kind.unique) and number not in faulty:
            row[kind.unique] = kind.identify(row)
        filled.append(row)
    if not filled:
        return kind.schema.empty_table()
    present = {key for row in filled for key in row}
    columns = [column for column in kind.schema if column.name in present]
    if kind.open:
        columns += [pa.field(name, pa.string()) for name in sorted(present - known)]
    arrays = [_column(column.type, column.name, filled, where, faults, faulty) for column in columns]
    if not faulty:
        return validate(kind, pa.Table.from_arrays(arrays, schema=pa.schema(columns)), where)
    # The other rows are checked, too, so that one error names the faults of all rows.
    sound = [number for number in range(len(filled)) if number not in faulty]
    with faults.collect():
        make_table(kind, [filled[number] for number in sound], lambda row: where(sound[row]))
    faults.refuse()
    raise AssertionError("a faulty row has no fault")


def validate(kind: TableKind, table: pa.Table, where: Callable[[int], str] | None = None) -> pa.Table:
    """Return the table with the kind's column order and types.

    Raises:
        InputError: Columns or rows are invalid; the message has a line for each of the first faults.
    """
    where = where or (lambda row: f"{kind.name}, row {row + 1}")
    origin = where(0).rpartition(", row")[0] or kind.name
    faults = FaultList()
    unknown = [name for name in table.column_names if name not in kind.schema.names]
    for name in unknown if not kind.open else ():
        faults.add(str(_unknown_column(kind, name, origin)))
    columns = []
    for column in kind.schema:
        if column.name in table.column_names:
            try:
                columns.append(table[column.name].cast(column.type))
            except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
                actual = table[column.name].type
                faults.add(f"{origin}: the column {column.name!r} must hold {column.type}, got {actual}")
        elif column.name in kind.required:
            faults.add(f"{origin}: the column {column.name!r} is missing from the table of {kind.name}; add it")
        else:
            columns.append(pa.nulls(table.num_rows, column.type))
    faults.refuse()
    incomplete: set[int] = set()
    for column, values in zip(kind.schema, columns, strict=True):
        if column.name in kind.required and values.null_count:
            # A missing value may be the cause of others in its row.
            empty = [row for row in rows_where(pc.is_null(values)) if row not in incomplete]
            incomplete.update(empty)
            faults.add_rows(empty, partial(_describe_empty, kind, column.name, where))
    checked = pa.Table.from_arrays(columns, schema=kind.schema)
    for name in unknown:
        checked = checked.append_column(name, table[name])
    if kind.unique:
        _find_repeats(kind, checked, where, faults)
    if kind.check and checked.num_rows:
        kind.check(checked, where, faults)
    faults.refuse()
    return checked


def _describe_empty(kind: TableKind, column: str, where: Callable[[int], str], row: int) -> str:
    return f"{where(row)}: {column!r} is empty; every row of {kind.name} needs it"


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
    faults = FaultList()
    with open(path, "rb") as handle:
        for number, line in enumerate(handle, 1):
            if not line.strip():
                continue
            with faults.collect():
                row = parse_json_object(line.rstrip(), f"{path}, row {number}", "Correct the row.")
                rows.append({**kind.defaults, **{key: value for key, value in row.items() if value is not None}})
                lines.append(number)
    if complete:
        complete(rows)
    table = kind.schema.empty_table()
    with faults.collect():
        table = make_table(kind, rows, lambda row: f"{path}, row {lines[row]}")
    faults.refuse()
    return table


def _unknown_column(kind: TableKind, name: str, where: str) -> InputError:
    hint = did_you_mean(str(name), kind.schema.names)
    return InputError(f"{where}: there is no column {name!r} in a table of {kind.name}; {hint}")


def _column(
    kind: pa.DataType,
    name: str,
    rows: Sequence[Mapping[str, Any]],
    where: Callable[[int], str],
    faults: FaultList,
    faulty: set[int],
) -> pa.Array:
    """Return a column of rows; faults are added to ``faults``, and the numbers of faulty rows to ``faulty``."""
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
            except (pa.ArrowException, TypeError, ValueError, OverflowError):
                faults.add(f"{where(number)}: {name!r} must be {kind}, got {short_repr(value)}", row=number)
                faulty.add(number)
                values[number] = None
        return pa.array(values, kind)


def _refuse_silent_change(kind: pa.DataType, value: Any) -> None:
    """Raise TypeError for a value that Arrow would convert silently.

    Arrow turns a string into a list of letters, and a fraction into an integer.
    """
    if pa.types.is_list(kind) and isinstance(value, str):
        raise TypeError("a string is not a list")
    if pa.types.is_integer(kind) and isinstance(value, float) and value != int(value):
        raise TypeError("a fraction is not an integer")


def _find_repeats(kind: TableKind, table: pa.Table, where: Callable[[int], str], faults: FaultList) -> None:
    ids = table[kind.unique]
    if len(pc.unique(ids)) == len(ids):
        return
    first_rows: dict[str, int] = {}
    for row, identity in enumerate(ids.to_pylist()):
        if identity in first_rows:
            cells = [table[name][row].as_py() for name in kind.label]
            label = repr(" ".join(str(cell) for cell in cells if cell is not None)) if cells else identity
            faults.add(f"{where(row)}: repeats {where(first_rows[identity])} ({label}). Remove one.", row=row)
        elif identity is not None:
            first_rows[identity] = row
