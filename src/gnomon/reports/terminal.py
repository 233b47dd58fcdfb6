"""The table of scores for a terminal, a log or a pipe."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

import pyarrow as pa
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from gnomon.reports.formatting import DASH, finite, score, span
from gnomon.reports.scoreboard import Cell, Column, Scoreboard, Series, scoreboard

_GAP = 3


def score_table(
    scores: pa.Table,
    headline: Iterable[Any],
    *,
    width: int | None = None,
    baselines: Collection[str] = (),
    main_methods: Collection[str] = (),
) -> Table:
    """Models as rows, headline scores as columns: ``41.2  [39.3, 43.0]`` in percent, chance in the last row.

    The best of each column is bold; ``baselines`` are not among those compared. Where the table is wider than
    ``width`` (the terminal's own if None), it is stacked: one block of rows for each headline score, so that no
    number is ever cut. A model that answered by several methods has a row for each, or for ``main_methods`` alone.
    """
    board = scoreboard(scores, headline, baselines, main_methods)
    if not board.columns:
        return Table("no scores yet", box=None, pad_edge=False)
    if width is None:
        width = Console().width
    names = [*(line.label for line in board.series), "chance"]
    columns = {column: _column_texts(board, column) for column in board.columns}
    needed = max(cell_len(name) for name in names) + _GAP
    for column, texts in columns.items():
        needed += max(cell_len(column.label), *(cell_len(text.plain) for text in texts)) + _GAP
    return _wide(names, columns) if needed <= width else _stacked(names, columns)


def _column_texts(board: Scoreboard, column: Column) -> list[Text]:
    """The column's cells, decimals under decimals, and the chance level last."""
    cells = {line: board.cells.get((line, column)) for line in board.series}
    values = [score(cell.value if cell else None, percent=column.percent) for cell in cells.values()]
    chance = span(board.chances(column), percent=column.percent)
    first = max((len(text) for text in [*values, chance if "–" not in chance[1:] else ""]), default=1)
    ends = [len(score(end, percent=column.percent)) for cell in cells.values() if cell for end in (cell.low, cell.high)]
    texts = []
    for (line, cell), value in zip(cells.items(), values, strict=True):
        plain = f"{value.rjust(first)}  {_interval(cell, column, max(ends))}" if cell else value.rjust(first)
        texts.append(Text(plain.rstrip(), style=_style(board, column, line)))
    return [*texts, Text(chance.rjust(first), style="dim")]


def _style(board: Scoreboard, column: Column, line: Series) -> str:
    return "bold" if line in board.best.get(column, ()) else ""


def _interval(cell: Cell, column: Column, width: int) -> str:
    if finite(cell.low) is None or finite(cell.high) is None:
        return ""
    low, high = score(cell.low, percent=column.percent), score(cell.high, percent=column.percent)
    return f"{'[' + low:>{width + 1}}, {high:>{width}}]"


def _wide(names: list[str], columns: dict[Column, list[Text]]) -> Table:
    table = Table(box=None, padding=(0, _GAP, 0, 0), pad_edge=False, show_edge=False)
    table.add_column("", no_wrap=True)
    for column in columns:
        table.add_column(Text(column.label), no_wrap=True)
    for row, name in enumerate(names):
        style = "dim" if row == len(names) - 1 else ""
        table.add_row(Text(name, style=style), *(texts[row] for texts in columns.values()))
    return table


def _stacked(names: list[str], columns: dict[Column, list[Text]]) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, show_edge=False, show_header=False)
    numbers = max((len(text.plain) for texts in columns.values() for text in texts), default=len(DASH))
    table.add_column(overflow="fold")
    table.add_column(no_wrap=True, min_width=numbers)
    for place, (column, texts) in enumerate(columns.items()):
        if place:
            table.add_row("", "")
        table.add_row(Text(column.label, style="bold underline", overflow="fold"), "")
        for row, (name, text) in enumerate(zip(names, texts, strict=True)):
            table.add_row(Text("  " + name, style="dim" if row == len(names) - 1 else ""), text)
    return table
