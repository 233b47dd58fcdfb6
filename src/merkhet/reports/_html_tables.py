"""Tables as HTML: fragments that stand alone, and tables of merkhet's pages."""

from __future__ import annotations

import html
from collections.abc import Collection, Iterable, Sequence

from markupsafe import Markup

from merkhet.core.text import printable
from merkhet.reports._page_budget import take_fitting
from merkhet.reports.table_model import ReportTable, Row, TableCell, TableColumn, exact_text


def as_html(table: ReportTable) -> str:
    """Write the table as an HTML fragment. All data is escaped; unrounded numbers are in ``data-value``."""
    heads = (
        f'<th scope="col"{_alignment(column)} dir="auto">{html.escape(column.label)}</th>' for column in table.columns
    )
    return (
        _join_table(
            f'class="merkhet" id="{table.name}"',
            table.caption,
            heads,
            (_fragment_row(row, table.columns) for row in table.rows),
            [_fragment_row(row, table.columns) for row in table.foot],
        )
        + "\n"
    )


def as_page_table(
    table: ReportTable,
    *,
    label: str = "",
    caption: bool = False,
    dense: bool = False,
    whole_texts: bool = False,
    bars: Collection[int] = (),
    colours: Sequence[str] = (),
    budget: int | None = None,
    minimum: int = 1,
    rest: str = "",
) -> Markup:
    """Write the table for a page: it scrolls, can be sorted by any column, and ends with a note on rows left out.

    Args:
        label: accessible name of the table, by default its title.
        caption: whether to show the title above the table.
        dense: whether columns are close to each other.
        whole_texts: whether to show long texts whole instead of their first lines.
        bars: columns of shares whose cells have a bar below the number.
        colours: a colour for each row, shown beside its name.
        budget: bytes that the rows may take in the page.
        minimum: number of rows that are shown however long they are.
        rest: what the rows left out are and where they are, such as ``rows are in the run’s scores.parquet``.
    """
    spaced = [column.number and table.has_intervals(index) for index, column in enumerate(table.columns)]
    row_texts = (
        _page_row(row, table.columns, spaced, bars, whole_texts, colours[index] if index < len(colours) else "")
        for index, row in enumerate(table.rows)
    )
    rows = list(row_texts) if budget is None else take_fitting(row_texts, budget, minimum=minimum)
    left_out = table.left_out + len(table.rows) - len(rows)
    classes = "sortable" + (" spaced" if any(spaced) else "") + (" dense" if dense else "")
    body = _join_table(
        f'class="{classes}"',
        table.title if caption else "",
        map(_page_head, table.columns),
        rows,
        [_page_foot(row, spaced) for row in table.foot],
    )
    name = html.escape(printable(label or table.title.removesuffix(".")))
    note = f'\n<p class="note">{left_out:,} more {html.escape(rest)}.</p>' if left_out else ""
    # All data is escaped where it is written.
    return Markup(f'<div class="scroll" tabindex="0" role="region" aria-label="{name}">\n{body}\n</div>{note}')


def _join_table(attributes: str, caption: str, heads: Iterable[str], rows: Iterable[str], foot: Sequence[str]) -> str:
    parts = [
        f"<table {attributes}>",
        *([f'<caption dir="auto">{html.escape(printable(caption))}</caption>'] if caption else []),
        f"<thead><tr>{''.join(heads)}</tr></thead>",
        "<tbody>",
        *rows,
        "</tbody>",
        *(["<tfoot>", *foot, "</tfoot>"] if foot else []),
        "</table>",
    ]
    return "\n".join(parts)


def _alignment(column: TableColumn) -> str:
    return ' style="text-align:right"' if column.number else ""


def _fragment_row(row: Row, columns: Sequence[TableColumn]) -> str:
    cells = []
    for index, (cell, column) in enumerate(zip(row, columns, strict=True)):
        text = _bold_if_best(cell, html.escape(printable(cell.text)))
        ends = f" <small>{html.escape(cell.interval)}</small>" if cell.interval else ""
        attributes = "".join(
            f' data-{name}="{exact_text(exact)}"'
            for name in ("value", "low", "high", "n", "chance")
            if (exact := getattr(cell, name)) is not None
        )
        if index == 0 and not column.number:
            cells.append(f'<th scope="row" dir="auto">{text}</th>')
        else:
            direction = ' dir="auto"'
            cells.append(f"<td{_alignment(column)}{attributes or direction}>{text}{ends}</td>")
    return f"<tr>{''.join(cells)}</tr>"


def _page_head(column: TableColumn) -> str:
    number = ' class="number"' if column.number else ""
    tip = f' title="{html.escape(column.tip)}"' if column.tip else ""
    return f'<th scope="col"{number}{tip}>{_clamped(column.label)}</th>'


def _page_row(
    row: Row, columns: Sequence[TableColumn], spaced: Sequence[bool], bars: Collection[int], whole: bool, colour: str
) -> Markup:
    cells = []
    for index, (cell, column) in enumerate(zip(row, columns, strict=True)):
        if column.number:
            cells.append(_page_number(cell, spaced[index], index in bars))
        elif index == 0:
            name = _clamped(cell.text)
            if colour:
                dot = f'<span class="dot" style="background:{html.escape(colour)}" aria-hidden="true"></span>'
                name = f'<span class="named">{dot}{name}</span>'
            cells.append(f'<th scope="row">{name}</th>')
        elif whole:
            cells.append(f'<td class="name" dir="auto">{html.escape(printable(cell.text))}</td>')
        else:
            cells.append(f'<td class="name">{_bold_if_best(cell, _clamped(cell.text))}</td>')
    return Markup(f"<tr>{''.join(cells)}</tr>")


def _page_foot(row: Row, spaced: Sequence[bool]) -> str:
    name, *cells = row
    numbers = (_page_number(cell, has_interval, False) for cell, has_interval in zip(cells, spaced[1:], strict=True))
    return f'<tr><th scope="row">{html.escape(name.text)}</th>{"".join(numbers)}</tr>'


def _page_number(cell: TableCell, spaced: bool, barred: bool) -> str:
    value = "" if cell.value is None else f"{cell.value:.6g}"
    tip = f' title="{html.escape(cell.tip)}"' if cell.tip else ""
    barred = barred and cell.value is not None
    bar = f' style="--v:{100 * min(1.0, max(0.0, cell.value or 0.0)):.1f}"' if barred else ""
    ends = f' <span class="interval">{html.escape(cell.interval)}</span>' if spaced else ""
    text = _bold_if_best(cell, html.escape(cell.text))
    return f'<td class="number{" barred" if barred else ""}" data-sort="{value}"{tip}{bar}>{text}{ends}</td>'


def _clamped(text: str) -> str:
    """Show the first lines of a text, and all of it on demand."""
    escaped = html.escape(printable(text))
    return f'<span class="clamp" dir="auto" title="{escaped}">{escaped}</span>'


def _bold_if_best(cell: TableCell, text: str) -> str:
    return f"<b>{text}</b>" if cell.best else text
