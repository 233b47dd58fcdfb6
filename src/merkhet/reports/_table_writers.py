"""Writers of tables: CSV, Markdown, HTML and terminal."""

from __future__ import annotations

import csv
import html
import io
import re
from collections.abc import Sequence

from rich.cells import cell_len
from rich.table import Table
from rich.text import Text

from merkhet.reports.formatting import DASH, printable
from merkhet.reports.table_model import ReportTable, Row, TableCell

_GAP = 3
_MIN_TEXT_WIDTH = 14
_FORMULA = re.compile(r"^[=+\-@\t\r]")
_PLAIN_NUMBER = re.compile(r"^[+-]?\d+(\.\d+)?([eE][+-]?\d+)?$")
_MARKDOWN = re.compile(r"([\\`*_\[\]|~$])")


def as_csv(table: ReportTable) -> str:
    """Write the table as CSV with unrounded numbers.

    A column of scores is followed by low, high, n and chance, if any cell has them; missing values are empty. Shares
    lie between 0 and 1. Text that a spreadsheet would take for a formula (it begins with = + - @ and is no number) is
    prefixed with an apostrophe.
    """
    extras = [_extra_columns(table, index) for index in range(len(table.columns))]
    heads: list[str] = []
    for column, extra in zip(table.columns, extras, strict=True):
        heads.append(_escape_formula(column.label))
        heads += [_escape_formula(f"{column.label} {name}") for name in extra]
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(heads)
    for row in table.rows:
        record: list[str] = []
        for cell, column, extra in zip(row, table.columns, extras, strict=True):
            record.append(
                _exact_text(cell.value) if column.number else _escape_formula("" if cell.text == DASH else cell.text)
            )
            record += [_exact_text(getattr(cell, name)) for name in extra]
        writer.writerow(record)
    return out.getvalue()


def as_markdown(table: ReportTable) -> str:
    """Write the table as GitHub Markdown, numbers right-aligned, the best of a column in bold."""
    heads = "| " + " | ".join(_escape_markdown(column.label) for column in table.columns) + " |"
    rule = "|" + "|".join("---:" if column.number else "---" for column in table.columns) + "|"
    lines = ["| " + " | ".join(map(_markdown_cell, row)) + " |" for row in (*table.rows, *table.foot)]
    note = [_escape_markdown(table.note), ""] if table.note else []
    return "\n".join([f"**{_escape_markdown(table.title)}**", "", heads, rule, *lines, "", *note])


def as_html(table: ReportTable) -> str:
    """Write the table as an HTML fragment. All data is escaped; unrounded numbers are in ``data-value``."""
    heads = "".join(
        f'<th scope="col"{_alignment(column.number)} dir="auto">{html.escape(column.label)}</th>'
        for column in table.columns
    )
    numbers = [column.number for column in table.columns]
    lines = [_html_row(row, numbers) for row in table.rows]
    foot = [_html_row(row, numbers) for row in table.foot]
    parts = [
        f'<table class="merkhet" id="{table.name}">',
        f'<caption dir="auto">{html.escape(_caption(table))}</caption>',
        f"<thead><tr>{heads}</tr></thead>",
        "<tbody>",
        *lines,
        "</tbody>",
        *(["<tfoot>", *foot, "</tfoot>"] if foot else []),
        "</table>",
    ]
    return "\n".join(parts) + "\n"


def as_terminal(table: ReportTable, width: int) -> Table:
    """Render the table for a terminal, decimals aligned, the best of a column in bold.

    A table wider than ``width`` is stacked, so that no number is cut: a block of rows for each number column if only
    the first column is text, else a block of lines for each row.
    """
    texts = [_render_column(table, index) for index in range(len(table.columns))]
    labels = [column.label for column in table.columns]
    widths = [
        max([cell_len(label), *(cell_len(text.plain) for text in column_texts)])
        for label, column_texts in zip(labels, texts, strict=True)
    ]
    # Text may be folded if several columns have it; a single text column may not.
    text_columns = [index for index, column in enumerate(table.columns) if not column.number]
    minimum_widths = list(widths)
    if len(text_columns) > 1:
        for index in text_columns:
            minimum_widths[index] = min(widths[index], max(_MIN_TEXT_WIDTH, widths[index] // 3))
    if sum(minimum_widths) + _GAP * len(labels) <= width:
        return _plain_layout(table, texts, folded=sum(widths) + _GAP * len(labels) > width)
    if text_columns == [0]:
        return _stacked_layout(table, texts)
    return _record_layout(table, texts)


def _extra_columns(table: ReportTable, index: int) -> list[str]:
    if not table.columns[index].number:
        return []
    return [
        name
        for name in ("low", "high", "n", "chance")
        if any(getattr(row[index], name) is not None for row in table.rows)
    ]


def _exact_text(number: float | int | None) -> str:
    if number is None:
        return ""
    return repr(int(number)) if float(number).is_integer() and abs(number) < 2**53 else repr(float(number))


def _escape_formula(text: str) -> str:
    plain = printable(text)
    return f"'{plain}" if _FORMULA.match(plain) and not _PLAIN_NUMBER.match(plain) else plain


def _escape_markdown(text: str) -> str:
    plain = " ".join(printable(text).split())
    return _MARKDOWN.sub(r"\\\1", html.escape(plain, quote=False))


def _markdown_cell(cell: TableCell) -> str:
    text = _escape_markdown(cell.text)
    text = f"**{text}**" if cell.best else text
    return f"{text} {cell.interval}".rstrip()


def _caption(table: ReportTable) -> str:
    return f"{printable(table.title)} {printable(table.note)}".strip()


def _alignment(number: bool) -> str:
    return ' style="text-align:right"' if number else ""


def _html_row(row: Row, numbers: Sequence[bool]) -> str:
    cells = []
    for index, (cell, number) in enumerate(zip(row, numbers, strict=True)):
        text = html.escape(printable(cell.text))
        text = f"<b>{text}</b>" if cell.best else text
        ends = f" <small>{html.escape(cell.interval)}</small>" if cell.interval else ""
        attributes = "".join(
            f' data-{name}="{_exact_text(exact)}"'
            for name in ("value", "low", "high", "n", "chance")
            if (exact := getattr(cell, name)) is not None
        )
        if index == 0 and not number:
            cells.append(f'<th scope="row" dir="auto">{text}</th>')
        else:
            cells.append(
                f"<td{_alignment(number)}{attributes or ' dir=' + chr(34) + 'auto' + chr(34)}>{text}{ends}</td>"
            )
    return f"<tr>{''.join(cells)}</tr>"


def _render_column(table: ReportTable, index: int) -> list[Text]:
    """Render the cells of a column and of its foot with aligned decimals."""
    cells = [row[index] for row in table.rows]
    foot = [row[index] for row in table.foot]
    if not table.columns[index].number:
        return [Text(cell.text) for cell in cells] + [Text(cell.text, style="dim") for cell in foot]
    # A range (5.0–7.5) does not take part in the alignment.
    text_width = max((len(cell.text) for cell in (*cells, *foot) if "–" not in cell.text[1:]), default=1)
    ends = [_interval_ends(cell.interval) for cell in cells if cell.interval]
    low, high = (max((len(pair[side]) for pair in ends), default=0) for side in (0, 1))
    end_width = max(low, high)
    texts = []
    for cell in cells:
        plain = cell.text.rjust(text_width)
        if cell.interval:
            start, end = _interval_ends(cell.interval)
            plain += f"  {'[' + start:>{end_width + 1}}, {end:>{end_width}}]"
        texts.append(Text(plain, style="bold" if cell.best else ""))
    return texts + [Text(cell.text.rjust(text_width), style="dim") for cell in foot]


def _interval_ends(interval: str) -> tuple[str, str]:
    low, _, high = interval.strip("[]").partition(", ")
    return low, high


def _plain_layout(table: ReportTable, texts: Sequence[Sequence[Text]], *, folded: bool) -> Table:
    terminal = Table(box=None, padding=(0, _GAP, 0, 0), pad_edge=False, show_edge=False, header_style="bold")
    for column in table.columns:
        label = Text(column.label)
        if column.number or not folded:
            terminal.add_column(label, no_wrap=True)
        else:
            terminal.add_column(label, overflow="fold")
    for cells in zip(*texts, strict=True):
        terminal.add_row(*cells)
    return terminal


def _stacked_layout(table: ReportTable, texts: Sequence[Sequence[Text]]) -> Table:
    """Lay out a block of rows for each number column."""
    terminal = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, show_edge=False, show_header=False)
    width = max((len(text.plain) for column_texts in texts[1:] for text in column_texts), default=len(DASH))
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
    """Lay out a block of lines for each row: column label and cell."""
    terminal = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, show_edge=False, show_header=False)
    numbers = [
        text.plain
        for column, column_texts in zip(table.columns, texts, strict=True)
        if column.number
        for text in column_texts
    ]
    terminal.add_column(overflow="fold", style="dim")
    terminal.add_column(overflow="fold", min_width=min(30, max((len(text.strip()) for text in numbers), default=1)))
    for index, cells in enumerate(zip(*texts, strict=True)):
        if index:
            terminal.add_row("", "")
        for column, text in zip(table.columns, cells, strict=True):
            terminal.add_row(Text(column.label), Text(text.plain.strip(), style=text.style))
    return terminal
