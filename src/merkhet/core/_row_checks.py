"""Checks of the rows of facts and questions beyond their types."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

from merkhet.core import SLOT
from merkhet.core.dates import check_iso_date
from merkhet.core.errors import FaultList


def check_facts(table: pa.Table, where: Callable[[int], str], faults: FaultList) -> None:
    """Check that each fact has either an object or a value, has dates that exist, and ends after it starts."""
    has_object, has_value = pc.is_valid(table["object"]), pc.is_valid(table["value"])
    faults.add_rows(
        rows_where(pc.equal(has_object, has_value)),
        lambda row: f"{where(row)}: a fact has either an object or a value, got both or neither",
    )

    for name in ("start", "end"):
        problems = _date_problems(table[name])
        rows = rows_where(pc.is_in(table[name], pa.array(problems, pa.string()))) if problems else []
        for row in rows:
            faults.add(f"{where(row)}: {name} {problems[table[name][row].as_py()]}", row=row)

    def describe(row: int) -> str:
        fact = table.slice(row, 1).to_pylist()[0]
        return f"{where(row)}: end {fact['end']} is before start {fact['start']} for {fact['subject']!r}"

    faults.add_rows(rows_where(pc.greater(_day(table["start"], 0), _day(table["end"], 99))), describe)


def _date_problems(dates: pa.ChunkedArray) -> dict[str, str]:
    """Return what is wrong with the dates in ISO form whose month or day does not exist."""
    problems = {}
    for text in pc.unique(dates.drop_null()).to_pylist():
        try:
            check_iso_date(text)
        except ValueError as error:
            problems[text] = str(error)
    return problems


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


def check_slots(table: pa.Table, where: Callable[[int], str], faults: FaultList) -> None:
    """Check that each prompt has one slot."""
    slots = pc.count_substring(table["prompt"], SLOT)

    def describe(row: int) -> str:
        count, prompt = slots[row].as_py(), table["prompt"][row].as_py()
        slots_text = "no slot" if count == 0 else f"{count} slots"
        return f"{where(row)}: the prompt {prompt!r} has {slots_text}; write {SLOT} exactly once, for the answer"

    faults.add_rows(rows_where(pc.not_equal(slots, 1)), describe)


def check_questions(table: pa.Table, where: Callable[[int], str], faults: FaultList) -> None:
    """Check that each question has one slot, an answer, and either choices or a candidate set."""
    check_slots(table, where, faults)
    faults.add_rows(
        rows_where(pc.equal(pc.list_value_length(table["answers"]), 0)),
        lambda row: f"{where(row)}: 'answers' is empty; name every right answer",
    )
    faults.add_rows(
        rows_where(pc.equal(pc.is_valid(table["choices"]), pc.is_valid(table["candidate_set"]))),
        lambda row: f"{where(row)}: a question has either 'choices' or a 'candidate_set'; give one of them",
    )
    if table["words"].null_count < table.num_rows:
        _check_words(table, where, faults)


def _check_words(table: pa.Table, where: Callable[[int], str], faults: FaultList) -> None:
    """Check questions with words: each choice needs exactly one slot, and each slot a word."""
    for row, words in enumerate(table["words"].to_pylist()):
        if words is None:
            continue
        choices = table["choices"][row].as_py()
        if choices is None or any(text.count(SLOT) != 1 for text in choices):
            faults.add(
                f"{where(row)}: the question compares senses (it has 'words'), so each of its 'choices' must be a "
                f"sentence with {SLOT} exactly once",
                row=row,
            )
        elif len(words) not in (1, 1 + len(choices)) or not all(word and word.strip() for word in words):
            faults.add(
                f"{where(row)}: 'words' holds {len(words)} words; give one for all slots, or one for the prompt and "
                "one for each choice",
                row=row,
            )


def rows_where(mask: pa.ChunkedArray | pa.Array) -> list[int]:
    """Return the numbers of the rows at which a mask is true."""
    rows: list[int] = pc.indices_nonzero(pc.fill_null(mask, False)).to_pylist()
    return rows
