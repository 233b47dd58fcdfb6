"""Layout of tables for a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len
from rich.console import Group
from rich.table import Table
from rich.text import Text

from merkhet.core.text import DASH
from merkhet.reports.table_model import ReportTable

_GAP = 3
_MIN_TEXT_WIDTH = 14
_MAX_HEAD_WORD = 14
"""Maximum characters of a word in the head of a number column; longer words may be broken."""


def as_terminal(table: ReportTable, width: int) -> Table | Group:
    """Render the table for a terminal, with aligned decimals and the best value of a column in bold.

    If the table is wider than ``width``, standard deviations over paraphrases are left out, and column heads and texts
    are wrapped. If it is still too wide, the layout depends on the text columns. If only the first column is text, the
    table is split into several tables that repeat it, or each number column becomes a block of rows. Otherwise each row
    becomes a block of lines. Numbers are never cut.
    """
    if any(cell.spread for row in table.rows for cell in row):
        table = table if fits_terminal(table, width) else table.without_spreads()
    texts = [_render_column(table, index) for index in range(len(table.columns))]
    widths = [
        max([cell_len(column.label), *(cell_len(text.plain) for text in column_texts)])
        for column, column_texts in zip(table.columns, texts, strict=True)
    ]
    columns = range(len(table.columns))
    if _total_width(widths, columns) <= width:
        return _plain_layout(table, texts, columns)
    # Text columns are wrapped only if there are several; a single text column keeps its width.
    text_columns = [index for index in columns if not table.columns[index].number]
    folded_widths = [
        _folded_head_width(table, texts, index)
        if table.columns[index].number
        else min(widths[index], max(_MIN_TEXT_WIDTH, widths[index] // 3))
        if len(text_columns) > 1
        else widths[index]
        for index in columns
    ]
    if _total_width(folded_widths, columns) <= width:
        return _plain_layout(table, texts, columns, folded_widths)
    if text_columns != [0]:
        return _record_layout(table, texts)
    if all(_total_width(folded_widths, (0, index)) <= width for index in columns[1:]):
        return _split_layout(table, texts, folded_widths, width)
    return _stacked_layout(table, texts)


def fits_terminal(table: ReportTable, width: int) -> bool:
    """Return whether all columns fit side by side without wrapping."""
    widths = [
        max([cell_len(column.label), *(cell_len(text.plain) for text in _render_column(table, index))])
        for index, column in enumerate(table.columns)
    ]
    return _total_width(widths, range(len(widths))) <= width


def _total_width(widths: Sequence[int], columns: Sequence[int]) -> int:
    return sum(widths[index] for index in columns) + _GAP * (len(columns) - 1)


def _folded_head_width(table: ReportTable, texts: Sequence[Sequence[Text]], index: int) -> int:
    """Return the minimum width of a number column if its head is wrapped at spaces but its numbers are not."""
    words = table.columns[index].label.split() or [""]
    cells = (cell_len(text.plain) for text in texts[index])
    return max(*(min(_MAX_HEAD_WORD, cell_len(word)) for word in words), *cells, 1)


def _render_column(table: ReportTable, index: int) -> list[Text]:
    """Render the cells of a column, including the summary rows, with aligned decimals."""
    cells = [row[index] for row in table.rows]
    foot = [row[index] for row in table.foot]
    if not table.columns[index].number:
        return [Text(cell.text) for cell in cells] + [Text(cell.text, style="dim") for cell in foot]
    # A range (5.0–7.5) does not affect the alignment.
    text_width = max((len(cell.text) for cell in (*cells, *foot) if "–" not in cell.text[1:]), default=1)
    end_width = max((len(end) for cell in cells for end in _interval_ends(cell.interval)), default=0)
    spread_width = max((len(cell.spread) for cell in cells), default=0)
    texts = []
    for cell in cells:
        plain = cell.text.rjust(text_width)
        if cell.interval:
            start, end = _interval_ends(cell.interval)
            plain += f"  {'[' + start:>{end_width + 1}}, {end:>{end_width}}]"
        if spread_width:
            plain += f"  {cell.spread:>{spread_width}}"
        texts.append(Text(plain.rstrip(), style="bold" if cell.best else "dim" if cell.few else ""))
    return texts + [Text(cell.text.rjust(text_width), style="dim") for cell in foot]


def _interval_ends(interval: str) -> tuple[str, str]:
    low, _, high = interval.strip("[]").partition(", ")
    return low, high


def _borderless(gap: int, *, show_header: bool = True) -> Table:
    return Table(
        box=None, padding=(0, gap, 0, 0), pad_edge=False, show_edge=False, show_header=show_header, header_style="bold"
    )


def _plain_layout(
    table: ReportTable,
    texts: Sequence[Sequence[Text]],
    columns: Sequence[int],
    folded_widths: Sequence[int] | None = None,
) -> Table:
    """Lay out the given columns side by side; with ``folded_widths``, heads and texts are wrapped."""
    terminal = _borderless(_GAP)
    for index in columns:
        label = Text(table.columns[index].label)
        if folded_widths is None:
            terminal.add_column(label, no_wrap=True)
        elif table.columns[index].number:
            width = folded_widths[index]
            terminal.add_column(label, overflow="fold", min_width=width, max_width=width)
        else:
            terminal.add_column(label, overflow="fold")
    for cells in zip(*(texts[index] for index in columns), strict=True):
        terminal.add_row(*cells)
    return terminal


def _split_layout(
    table: ReportTable, texts: Sequence[Sequence[Text]], folded_widths: Sequence[int], width: int
) -> Group:
    """Lay out several tables below each other, each with the first column and as many further columns as fit."""
    parts: list[list[int]] = []
    for index in range(1, len(table.columns)):
        if not parts or _total_width(folded_widths, [*parts[-1], index]) > width:
            parts.append([0])
        parts[-1].append(index)
    tables: list[Table | str] = []
    for part in parts:
        tables += [*([""] if tables else []), _plain_layout(table, texts, part, folded_widths)]
    return Group(*tables)


def _stacked_layout(table: ReportTable, texts: Sequence[Sequence[Text]]) -> Table:
    """Lay out each number column as a block of rows: first column and number."""
    width = max((len(text.plain) for column_texts in texts[1:] for text in column_texts), default=len(DASH))
    terminal = _borderless(2, show_header=False)
    terminal.add_column(overflow="fold")
    terminal.add_column(no_wrap=True, min_width=width)
    for index, (column, column_texts) in enumerate(zip(table.columns[1:], texts[1:], strict=True)):
        if index:
            terminal.add_row("", "")
        terminal.add_row(Text(column.label, style="bold underline", overflow="fold"), "")
        for name, text in zip(texts[0], column_texts, strict=True):
            terminal.add_row(Text("  " + name.plain, style=name.style), text)
    return terminal


def _record_layout(table: ReportTable, texts: Sequence[Sequence[Text]]) -> Table:
    """Lay out each row as a block of lines, one line per column with its label and cell."""
    numbers = [text for index, column in enumerate(table.columns) if column.number for text in texts[index]]
    width = min(30, max((len(text.plain.strip()) for text in numbers), default=1))
    terminal = _borderless(2, show_header=False)
    terminal.add_column(overflow="fold", style="dim")
    terminal.add_column(overflow="fold", min_width=width)
    for index, cells in enumerate(zip(*texts, strict=True)):
        if index:
            terminal.add_row("", "")
        for column, text in zip(table.columns, cells, strict=True):
            terminal.add_row(Text(column.label), Text(text.plain.strip(), style=text.style))
    return terminal
