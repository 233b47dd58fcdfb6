"""What a table of a report is, whatever it is written as."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from merkhet.reports import formatting as show


@dataclass(frozen=True)
class TableCell:
    """What stands in one place: as people read it, and as a number with its interval, count and chance.

    Numbers are as they were measured (a share lies between 0 and 1), None where there is none.
    """

    text: str
    value: float | None = None
    low: float | None = None
    high: float | None = None
    best: bool = False
    n: int | None = None
    chance: float | None = None
    interval: str = ""
    """The interval as people read it, such as ``[39.3, 43.0]``."""


@dataclass(frozen=True)
class TableColumn:
    """A column of numbers, or of words."""

    label: str
    number: bool = True


Row = tuple[TableCell, ...]


@dataclass(frozen=True)
class ReportTable:
    """A table with its name (short, fit for a file), title, columns and rows.

    ``foot`` are rows below the others that sum up what cells have of their own (chance, the number of questions), and
    so are no rows of data. ``note`` says what one must know to read it.
    """

    name: str
    title: str
    columns: tuple[TableColumn, ...]
    rows: tuple[Row, ...]
    note: str = ""
    foot: tuple[Row, ...] = ()

    def has_intervals(self, column: int) -> bool:
        """Whether any number of a column has an interval."""
        return any(row[column].interval for row in self.rows)


def words(text: object) -> TableCell:
    """A cell of words; nothing is a dash."""
    return TableCell(show.DASH if text is None or text == "" else show.printable(text))


def counts(value: object) -> TableCell:
    """A cell with a whole number."""
    number = show.finite(value)
    return TableCell(show.count(number), None if number is None else float(round(number)))


def measure(
    value: float | None,
    low: float | None = None,
    high: float | None = None,
    *,
    percent: bool,
    best: bool = False,
    n: int | None = None,
    chance: float | None = None,
) -> TableCell:
    """A cell with a score, in percent where it is a share."""
    return TableCell(
        show.score(value, percent=percent),
        show.finite(value),
        show.finite(low),
        show.finite(high),
        best,
        n,
        show.finite(chance),
        show.interval(low, high, percent=percent),
    )


def spread(values: Sequence[float], *, percent: bool) -> TableCell:
    """A cell with a number that several have, or the least and the greatest of those they have."""
    same = values[0] if values and len(set(values)) == 1 else None
    return TableCell(show.span(list(values), percent=percent), same)
