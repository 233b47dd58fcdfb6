"""Tables of reports, independent of the output format."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from merkhet.core import text as fmt


@dataclass(frozen=True)
class TableCell:
    """A cell: its text, and its number with interval, count and chance.

    Numbers are unrounded (a share lies between 0 and 1); None if there is none.
    """

    text: str
    """The formatted value."""
    value: float | None = None
    low: float | None = None
    high: float | None = None
    best: bool = False
    """Whether it is the best value of its column."""
    n: int | None = None
    chance: float | None = None
    interval: str = ""
    """The formatted interval, such as ``[39.3, 43.0]``."""
    tip: str = ""
    """A remark that a page shows on demand, such as the number of questions."""


@dataclass(frozen=True)
class TableColumn:
    """A column of numbers or of text."""

    label: str
    number: bool = True
    tip: str = ""
    """What the column means."""


Row = tuple[TableCell, ...]


@dataclass(frozen=True)
class ReportTable:
    """A table with its title, columns and rows."""

    name: str
    """A short name that can be used as a file name."""
    title: str
    columns: tuple[TableColumn, ...]
    rows: tuple[Row, ...]
    note: str = ""
    """What a reader must know to understand the numbers."""
    foot: tuple[Row, ...] = ()
    """Summary rows (chance, number of questions), which are not data."""
    left_out: int = 0
    """Number of further rows that the table does not have."""

    @property
    def caption(self) -> str:
        """Return the title and the note."""
        return f"{self.title} {self.note}".strip()

    def has_intervals(self, column: int) -> bool:
        """Return whether any cell of a column has an interval."""
        return any(row[column].interval for row in self.rows)

    def with_labels(self, columns: Mapping[int, str], foot: Mapping[int, str] | None = None) -> ReportTable:
        """Return the table with other labels for some columns and some summary rows, by index."""
        heads = (replace(column, label=columns.get(index, column.label)) for index, column in enumerate(self.columns))
        rows = (
            (text_cell(foot[index]), *row[1:]) if foot and index in foot else row for index, row in enumerate(self.foot)
        )
        return replace(self, columns=tuple(heads), foot=tuple(rows))

    def first_rows(self, limit: int) -> ReportTable:
        """Return the table with its first ``limit`` rows; the others are counted in ``left_out``."""
        left_out = self.left_out + max(0, len(self.rows) - limit)
        return replace(self, rows=self.rows[:limit], left_out=left_out)


def text_cell(text: object) -> TableCell:
    """Make a text cell; empty text becomes a dash."""
    return TableCell(fmt.DASH if text is None or text == "" else fmt.printable(text))


def count_cell(value: object) -> TableCell:
    """Make a cell with an integer."""
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
) -> TableCell:
    """Make a cell with a score, in percent if it is a share."""
    return TableCell(
        fmt.score(value, percent=percent),
        fmt.finite_or_none(value),
        fmt.finite_or_none(low),
        fmt.finite_or_none(high),
        best,
        n,
        fmt.finite_or_none(chance),
        fmt.interval(low, high, percent=percent),
        tip,
    )


def value_cell(content: Any, kind: str) -> TableCell:
    """Make a cell of a plain value or of an estimate with interval and n.

    Args:
        kind: ``text``, or a kind of number of :func:`merkhet.core.text.number`.
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
        tip="" if n is None else f"n = {fmt.count(n)}",
    )


def range_cell(values: Sequence[float], *, percent: bool) -> TableCell:
    """Make a cell with the minimum and maximum of several numbers, or with their common value."""
    common = values[0] if values and len(set(values)) == 1 else None
    return TableCell(fmt.value_range(list(values), percent=percent), common)


def exact_text(number: float | int | None) -> str:
    """Write a number with all its digits, and an integer without decimals; empty if there is none."""
    if number is None:
        return ""
    return repr(int(number)) if float(number).is_integer() and abs(number) < 2**53 else repr(float(number))
