"""Data model of report tables, independent of the output format."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from merkhet.analysis.finding_types import FEW_QUESTIONS
from merkhet.core import text as fmt


@dataclass(frozen=True)
class TableCell:
    """A table cell: formatted text, and the unrounded number with interval, question count and chance level.

    Numbers are None if missing. Shares are between 0 and 1, not in percent.
    """

    text: str
    """The formatted value."""
    value: float | None = None
    low: float | None = None
    high: float | None = None
    best: bool = False
    """Whether the value is the best of its column."""
    n: int | None = None
    chance: float | None = None
    interval: str = ""
    """The formatted interval, such as ``[39.3, 43.0]``."""
    wording_sd: float | None = None
    """Standard deviation of a score over paraphrases."""
    spread: str = ""
    """The formatted standard deviation over paraphrases, such as ``±3.1``."""
    few: bool = False
    """Whether the number is of too few questions to be read as a result: it is grey, with its ``n``."""
    tip: str = ""
    """Tooltip in HTML pages, such as the number of questions."""

    @property
    def size(self) -> str:
        """The number of questions, if they are too few for a result."""
        return f"n = {self.n:,}" if self.few and self.n is not None else ""

    @property
    def aside(self) -> str:
        """What stands beside the number: interval, spread over paraphrases, and a small number of questions."""
        return " ".join(filter(None, [self.interval, self.spread, self.size]))


@dataclass(frozen=True)
class TableColumn:
    """Head of a table column, which contains numbers or text."""

    label: str
    number: bool = True
    tip: str = ""
    """Tooltip that explains the column."""


Row = tuple[TableCell, ...]
FEW_NOTE = f"Numbers of fewer than {FEW_QUESTIONS} questions are grey: they are too uncertain to be read as results."


def has_few_questions(n: float | None) -> bool:
    """Return whether a number of questions is too small for a result."""
    return n is not None and 0 < n < FEW_QUESTIONS


@dataclass(frozen=True)
class ReportTable:
    """A report table with title, columns, rows and summary rows."""

    name: str
    """Short name, usable as a file name."""
    title: str
    columns: tuple[TableColumn, ...]
    rows: tuple[Row, ...]
    note: str = ""
    """Explanation of the numbers, shown after the title or below the table."""
    foot: tuple[Row, ...] = ()
    """Summary rows below the data, such as chance and number of questions."""
    left_out: int = 0
    """Number of rows that were left out of ``rows``."""

    @property
    def caption(self) -> str:
        """The title, followed by the note."""
        return f"{self.title} {self.note}".strip()

    def has_intervals(self, column: int) -> bool:
        """Return whether any cell of a column has an interval or more beside its number; ``column`` is an index."""
        return any(row[column].aside for row in self.rows)

    def has_few(self) -> bool:
        """Return whether any cell is of too few questions."""
        return any(cell.few for row in self.rows for cell in row)

    def without_spreads(self) -> ReportTable:
        """Return the table without standard deviations over paraphrases."""
        rows = (tuple(replace(cell, spread="") for cell in row) for row in self.rows)
        return replace(self, rows=tuple(rows))

    def with_labels(self, columns: Mapping[int, str], foot: Mapping[int, str] | None = None) -> ReportTable:
        """Return the table with new labels for some columns and summary rows, given by index."""
        heads = (replace(column, label=columns.get(index, column.label)) for index, column in enumerate(self.columns))
        rows = (
            (text_cell(foot[index]), *row[1:]) if foot and index in foot else row for index, row in enumerate(self.foot)
        )
        return replace(self, columns=tuple(heads), foot=tuple(rows))

    def first_rows(self, limit: int) -> ReportTable:
        """Return the table with only its first ``limit`` rows; ``left_out`` counts the removed rows."""
        left_out = self.left_out + max(0, len(self.rows) - limit)
        return replace(self, rows=self.rows[:limit], left_out=left_out)


def text_cell(text: object) -> TableCell:
    """Make a text cell; None and empty text become a dash."""
    return TableCell(fmt.DASH if text is None or text == "" else fmt.printable(text))


def count_cell(value: object) -> TableCell:
    """Make a cell with an integer; a missing number becomes a dash."""
    number = fmt.finite_or_none(value)
    return TableCell(fmt.count(number), None if number is None else float(round(number)))


def score_cell(
    value: float | None,
    low: float | None = None,
    high: float | None = None,
    *,
    percent: bool,
    best: bool = False,
    n: int | None = None,
    chance: float | None = None,
    tip: str = "",
    wording_sd: float | None = None,
    few: bool = False,
) -> TableCell:
    """Make a cell with a score and its interval; ``percent`` formats shares in percent."""
    sd = fmt.finite_or_none(wording_sd)
    return TableCell(
        fmt.score(value, percent=percent),
        fmt.finite_or_none(value),
        fmt.finite_or_none(low),
        fmt.finite_or_none(high),
        best,
        n,
        fmt.finite_or_none(chance),
        fmt.interval(low, high, percent=percent),
        sd,
        "" if sd is None else f"±{fmt.score(sd, percent=percent)}",
        few,
        tip,
    )


def value_cell(content: Any, kind: str, *, of_questions: bool = True) -> TableCell:
    """Make a cell from a plain value, or from a mapping with ``value``, ``low``, ``high`` and ``n``.

    Args:
        kind: ``text``, or a number format of :func:`merkhet.core.text.number`.
        of_questions: Whether n counts questions, so that a number of few of them is grey.
    """
    estimate = content if isinstance(content, Mapping) else {"value": content}
    if kind == "text":
        return text_cell(estimate.get("value"))
    value, low, high, n = (fmt.finite_or_none(estimate.get(name)) for name in ("value", "low", "high", "n"))
    ends = f"[{fmt.number(low, kind)}, {fmt.number(high, kind)}]" if low is not None and high is not None else ""
    return TableCell(
        fmt.number(estimate.get("value"), kind),
        value,
        low,
        high,
        n=None if n is None or kind in ("points", "signed") else round(n),
        interval=ends,
        few=of_questions and value is not None and has_few_questions(n),
        tip="" if n is None else f"n = {fmt.count(n)}",
    )


def range_cell(values: Sequence[float], *, percent: bool) -> TableCell:
    """Make a cell with the range of several numbers, or with the number if all are equal."""
    common = values[0] if values and len(set(values)) == 1 else None
    return TableCell(fmt.value_range(list(values), percent=percent), common)


def exact_text(number: float | int | None) -> str:
    """Format a number with all digits, and integers without decimals; None becomes an empty text."""
    if number is None:
        return ""
    return repr(int(number)) if float(number).is_integer() and abs(number) < 2**53 else repr(float(number))
