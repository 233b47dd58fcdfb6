"""Tables of reports, independent of the output format."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from merkhet.reports import formatting as fmt


@dataclass(frozen=True)
class TableCell:
    """Hold one cell: its text, and its number with interval, count and chance.

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


@dataclass(frozen=True)
class TableColumn:
    """Describe a column of numbers or of text."""

    label: str
    number: bool = True


Row = tuple[TableCell, ...]


@dataclass(frozen=True)
class ReportTable:
    """Hold a table with its title, columns and rows."""

    name: str
    """A short name that can be used as a file name."""
    title: str
    columns: tuple[TableColumn, ...]
    rows: tuple[Row, ...]
    note: str = ""
    """What a reader must know to understand the numbers."""
    foot: tuple[Row, ...] = ()
    """Summary rows (chance, number of questions), which are not data."""

    def has_intervals(self, column: int) -> bool:
        """Return whether any cell of a column has an interval."""
        return any(row[column].interval for row in self.rows)


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
    )


def range_cell(values: Sequence[float], *, percent: bool) -> TableCell:
    """Make a cell with the minimum and maximum of several numbers, or with their common value."""
    common = values[0] if values and len(set(values)) == 1 else None
    return TableCell(fmt.value_range(list(values), percent=percent), common)
