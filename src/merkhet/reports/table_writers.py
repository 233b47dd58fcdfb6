"""Writers of tables: terminal, CSV, Markdown, LaTeX, HTML files and pages."""

from __future__ import annotations

import csv
import html
import io
import itertools
import re
from collections.abc import Collection, Sequence
from functools import partial

from markupsafe import Markup

from merkhet.core.templating import render_markup
from merkhet.core.text import DASH, printable
from merkhet.reports._latex_tables import as_latex
from merkhet.reports._page_budget import take_fitting
from merkhet.reports._terminal_tables import as_terminal
from merkhet.reports.table_model import ReportTable, TableCell, exact_text

__all__ = ["as_csv", "as_html", "as_latex", "as_markdown", "as_page_table", "as_terminal"]

_render = partial(render_markup, "merkhet.reports", "templates", "tables.html.j2")
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
                exact_text(cell.value) if column.number else _escape_formula("" if cell.text == DASH else cell.text)
            )
            record += [exact_text(getattr(cell, name)) for name in extra]
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
    return str(_render("fragment", table, _exact_numbers))


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
    options = {
        **{"label": label or table.title.removesuffix("."), "caption": caption, "dense": dense, "rest": rest},
        **{"whole_texts": whole_texts, "bars": bars},
    }
    dots = itertools.chain(colours, itertools.repeat(""))
    row_texts = (
        _render("page_row", row, table.columns, spaced, options, colour)
        for row, colour in zip(table.rows, dots, strict=False)
    )
    rows = list(row_texts) if budget is None else take_fitting(row_texts, budget, minimum=minimum)
    left_out = table.left_out + len(table.rows) - len(rows)
    return _render("page_table", table, rows, spaced, options, left_out)


def _exact_numbers(cell: TableCell) -> list[tuple[str, str]]:
    numbers = {"value": cell.value, "low": cell.low, "high": cell.high, "n": cell.n, "chance": cell.chance}
    return [(name, exact_text(number)) for name, number in numbers.items() if number is not None]


def _extra_columns(table: ReportTable, index: int) -> list[str]:
    if not table.columns[index].number:
        return []
    return [
        name
        for name in ("low", "high", "n", "chance")
        if any(getattr(row[index], name) is not None for row in table.rows)
    ]


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
