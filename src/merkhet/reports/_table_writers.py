"""Tables as text: CSV for programs, Markdown, HTML, and a table for the terminal."""

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
_LEAST_WORDS = 14
_FORMULA = re.compile(r"^[=+\-@\t\r]")
_PLAIN_NUMBER = re.compile(r"^[+-]?\d+(\.\d+)?([eE][+-]?\d+)?$")
_MARKDOWN = re.compile(r"([\\`*_\[\]|~$])")


def as_csv(table: ReportTable) -> str:
    """The table for programs: numbers as they were measured, whole, with columns of their own for what belongs to them.

    A column of scores has beside it its low, high, n and chance, as far as any cell has them; what is missing is empty.
    Shares lie between 0 and 1. Words that a spreadsheet would take for a formula (they begin with = + - @ and are no
    number) have an apostrophe before them.
    """
    parts = [_parts(table, place) for place in range(len(table.columns))]
    heads: list[str] = []
    for column, names in zip(table.columns, parts, strict=True):
        heads.append(_safe(column.label))
        heads += [_safe(f"{column.label} {name}") for name in names]
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(heads)
    for row in table.rows:
        line: list[str] = []
        for cell, column, names in zip(row, table.columns, parts, strict=True):
            line.append(_exact(cell.value) if column.number else _safe("" if cell.text == DASH else cell.text))
            line += [_exact(getattr(cell, name)) for name in names]
        writer.writerow(line)
    return out.getvalue()


def as_markdown(table: ReportTable) -> str:
    """The table as GitHub's Markdown, the best of a column in bold, numbers to the right."""
    heads = "| " + " | ".join(_marked_down(column.label) for column in table.columns) + " |"
    rule = "|" + "|".join("---:" if column.number else "---" for column in table.columns) + "|"
    lines = ["| " + " | ".join(map(_markdown_cell, row)) + " |" for row in (*table.rows, *table.foot)]
    note = [_marked_down(table.note), ""] if table.note else []
    return "\n".join([f"**{_marked_down(table.title)}**", "", heads, rule, *lines, "", *note])


def as_html(table: ReportTable) -> str:
    """The table as a fragment of HTML. All that came from data is escaped; numbers are in ``data-value`` too."""
    heads = "".join(
        f'<th scope="col"{_aligned(column.number)} dir="auto">{html.escape(column.label)}</th>'
        for column in table.columns
    )
    numbers = [column.number for column in table.columns]
    lines = [_html_row(row, numbers) for row in table.rows]
    foot = [_html_row(row, numbers) for row in table.foot]
    parts = [
        f'<table class="merkhet" id="{table.name}">',
        f'<caption dir="auto">{html.escape(_whole(table))}</caption>',
        f"<thead><tr>{heads}</tr></thead>",
        "<tbody>",
        *lines,
        "</tbody>",
        *(["<tfoot>", *foot, "</tfoot>"] if foot else []),
        "</table>",
    ]
    return "\n".join(parts) + "\n"


def as_terminal(table: ReportTable, width: int) -> Table:
    """The table for a terminal, decimals under decimals, the best of a column bold.

    Where it is wider than ``width`` it is stacked, so that no number is ever cut: a block of rows for each column of
    numbers if only the first column has words, else a block of lines for each row.
    """
    texts = [_column_texts(table, place) for place in range(len(table.columns))]
    labels = [column.label for column in table.columns]
    wide = [
        max([cell_len(label), *(cell_len(text.plain) for text in own)])
        for label, own in zip(labels, texts, strict=True)
    ]
    # Words may be folded where several columns have them; the first column alone is not.
    words = [place for place, column in enumerate(table.columns) if not column.number]
    least = list(wide)
    if len(words) > 1:
        for place in words:
            least[place] = min(wide[place], max(_LEAST_WORDS, wide[place] // 3))
    if sum(least) + _GAP * len(labels) <= width:
        return _wide(table, texts, folded=sum(wide) + _GAP * len(labels) > width)
    if words == [0]:
        return _stacked(table, texts)
    return _records(table, texts)


def _parts(table: ReportTable, place: int) -> list[str]:
    if not table.columns[place].number:
        return []
    return [
        name
        for name in ("low", "high", "n", "chance")
        if any(getattr(row[place], name) is not None for row in table.rows)
    ]


def _exact(number: float | int | None) -> str:
    if number is None:
        return ""
    return repr(int(number)) if float(number).is_integer() and abs(number) < 2**53 else repr(float(number))


def _safe(text: str) -> str:
    plain = printable(text)
    return f"'{plain}" if _FORMULA.match(plain) and not _PLAIN_NUMBER.match(plain) else plain


def _marked_down(text: str) -> str:
    plain = " ".join(printable(text).split())
    return _MARKDOWN.sub(r"\\\1", html.escape(plain, quote=False))


def _markdown_cell(cell: TableCell) -> str:
    text = _marked_down(cell.text)
    text = f"**{text}**" if cell.best else text
    return f"{text} {cell.interval}".rstrip()


def _whole(table: ReportTable) -> str:
    return f"{printable(table.title)} {printable(table.note)}".strip()


def _aligned(number: bool) -> str:
    return ' style="text-align:right"' if number else ""


def _html_row(row: Row, numbers: Sequence[bool]) -> str:
    cells = []
    for place, (cell, number) in enumerate(zip(row, numbers, strict=True)):
        text = html.escape(printable(cell.text))
        text = f"<b>{text}</b>" if cell.best else text
        ends = f" <small>{html.escape(cell.interval)}</small>" if cell.interval else ""
        kept = "".join(
            f' data-{name}="{_exact(found)}"'
            for name in ("value", "low", "high", "n", "chance")
            if (found := getattr(cell, name)) is not None
        )
        if place == 0 and not number:
            cells.append(f'<th scope="row" dir="auto">{text}</th>')
        else:
            cells.append(f"<td{_aligned(number)}{kept or ' dir=' + chr(34) + 'auto' + chr(34)}>{text}{ends}</td>")
    return f"<tr>{''.join(cells)}</tr>"


def _column_texts(table: ReportTable, place: int) -> list[Text]:
    """The cells of a column and of its foot, decimals under decimals."""
    cells = [row[place] for row in table.rows]
    foot = [row[place] for row in table.foot]
    if not table.columns[place].number:
        return [Text(cell.text) for cell in cells] + [Text(cell.text, style="dim") for cell in foot]
    # A span of numbers (5.0–7.5) is no number to align others with.
    first = max((len(cell.text) for cell in (*cells, *foot) if "–" not in cell.text[1:]), default=1)
    ends = [_ends(cell.interval) for cell in cells if cell.interval]
    low, high = (max((len(pair[side]) for pair in ends), default=0) for side in (0, 1))
    size = max(low, high)
    texts = []
    for cell in cells:
        plain = cell.text.rjust(first)
        if cell.interval:
            start, end = _ends(cell.interval)
            plain += f"  {'[' + start:>{size + 1}}, {end:>{size}}]"
        texts.append(Text(plain, style="bold" if cell.best else ""))
    return texts + [Text(cell.text.rjust(first), style="dim") for cell in foot]


def _ends(interval: str) -> tuple[str, str]:
    low, _, high = interval.strip("[]").partition(", ")
    return low, high


def _wide(table: ReportTable, texts: Sequence[Sequence[Text]], *, folded: bool) -> Table:
    shown = Table(box=None, padding=(0, _GAP, 0, 0), pad_edge=False, show_edge=False, header_style="bold")
    for column in table.columns:
        label = Text(column.label)
        if column.number or not folded:
            shown.add_column(label, no_wrap=True)
        else:
            shown.add_column(label, overflow="fold")
    for cells in zip(*texts, strict=True):
        shown.add_row(*cells)
    return shown


def _stacked(table: ReportTable, texts: Sequence[Sequence[Text]]) -> Table:
    """A block of rows for each column of numbers."""
    shown = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, show_edge=False, show_header=False)
    numbers = max((len(text.plain) for own in texts[1:] for text in own), default=len(DASH))
    shown.add_column(overflow="fold")
    shown.add_column(no_wrap=True, min_width=numbers)
    for place, (column, own) in enumerate(zip(table.columns[1:], texts[1:], strict=True)):
        if place:
            shown.add_row("", "")
        shown.add_row(Text(column.label, style="bold underline", overflow="fold"), "")
        for name, text in zip(texts[0], own, strict=True):
            shown.add_row(Text("  " + name.plain, style=name.style), text)
    return shown


def _records(table: ReportTable, texts: Sequence[Sequence[Text]]) -> Table:
    """A block of lines for each row: the name of each column and what stands in it."""
    shown = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, show_edge=False, show_header=False)
    numbers = [text.plain for column, own in zip(table.columns, texts, strict=True) if column.number for text in own]
    shown.add_column(overflow="fold", style="dim")
    shown.add_column(overflow="fold", min_width=min(30, max((len(text.strip()) for text in numbers), default=1)))
    for place, cells in enumerate(zip(*texts, strict=True)):
        if place:
            shown.add_row("", "")
        for column, text in zip(table.columns, cells, strict=True):
            shown.add_row(Text(column.label), Text(text.plain.strip(), style=text.style))
    return shown
