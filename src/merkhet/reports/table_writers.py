"""Writers of report tables: terminal, CSV, Markdown, LaTeX and HTML."""

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
from merkhet.reports._labels import shorten_labels
from merkhet.reports._latex_tables import as_latex
from merkhet.reports._page_budget import take_fitting
from merkhet.reports._terminal_tables import as_terminal
from merkhet.reports.table_model import ReportTable, TableCell, exact_text

__all__ = ["as_csv", "as_html", "as_latex", "as_markdown", "as_page_table", "as_terminal"]

_render = partial(render_markup, "merkhet.reports", "templates", "tables.html.j2")
_MAX_HEAD, _MAX_NAME = 42, 72
"""Maximum characters of column heads and of names in the table of a page."""
_FORMULA = re.compile(r"^[=+\-@\t\r]")
_PLAIN_NUMBER = re.compile(r"^[+-]?\d+(\.\d+)?([eE][+-]?\d+)?$")
_MARKDOWN = re.compile(r"([\\`*_\[\]|~$])")


def as_csv(table: ReportTable) -> str:
    """Write the table as CSV with unrounded numbers, without summary rows.

    A number column is followed by columns for low, high, n, chance and the standard deviation over paraphrases (wording
    sd) if any of its cells has such a value. Missing
    values are empty. Shares are between 0 and 1. Text that a spreadsheet would read as a formula (such as ``=A1``) gets
    an apostrophe before it.
    """
    extras = [_extra_columns(table, index) for index in range(len(table.columns))]
    heads: list[str] = []
    for column, extra in zip(table.columns, extras, strict=True):
        heads.append(_escape_formula(column.label))
        heads += [_escape_formula(f"{column.label} {name.replace('_', ' ')}") for name in extra]
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
    """Write the table as GitHub Markdown, with numbers right-aligned and the best value of a column in bold."""
    heads = "| " + " | ".join(_escape_markdown(column.label) for column in table.columns) + " |"
    rule = "|" + "|".join("---:" if column.number else "---" for column in table.columns) + "|"
    lines = ["| " + " | ".join(map(_markdown_cell, row)) + " |" for row in (*table.rows, *table.foot)]
    note = [_escape_markdown(table.note), ""] if table.note else []
    return "\n".join([f"**{_escape_markdown(table.title)}**", "", heads, rule, *lines, "", *note])


def as_html(table: ReportTable) -> str:
    """Write the table as an HTML fragment with escaped texts and unrounded numbers in data attributes."""
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
    """Write the table as a scrollable, sortable table of an HTML page, with a note on omitted rows.

    Args:
        label: Accessible name of the table; by default, the title.
        caption: Whether to show the title above the table.
        dense: Whether to use narrow gaps between columns.
        whole_texts: Whether to show long texts in full instead of only their first lines.
        bars: Indices of share columns whose cells get a bar below the number.
        colours: Colour of each row, shown beside the row name.
        budget: Maximum bytes of the rows; None for no limit.
        minimum: Number of rows to show regardless of ``budget``.
        rest: End of the note on omitted rows, such as ``rows are in the run’s scores.parquet``.
    """
    spaced = [column.number and table.has_intervals(index) for index, column in enumerate(table.columns)]
    sized = [any(row[index].size for row in table.rows) for index in range(len(table.columns))]
    worded = [any(row[index].spread for row in table.rows) for index in range(len(table.columns))]
    options = {
        **{"sized": sized, "worded": worded},
        **{"label": label or table.title.removesuffix("."), "caption": caption, "dense": dense, "rest": rest},
        **{"whole_texts": whole_texts, "bars": bars},
    }
    dots = itertools.chain(colours, itertools.repeat(""))
    names: dict[str, str] = {}
    for index, column in enumerate(table.columns):
        if not column.number:
            names |= shorten_labels((row[index].text for row in table.rows), _MAX_NAME)
    row_texts = (
        _render("page_row", row, table.columns, spaced, options, colour, names)
        for row, colour in zip(table.rows, dots, strict=False)
    )
    rows = list(row_texts) if budget is None else take_fitting(row_texts, budget, minimum=minimum)
    left_out = table.left_out + len(table.rows) - len(rows)
    heads = shorten_labels((column.label for column in table.columns), _MAX_HEAD)
    return _render("page_table", table, rows, spaced, options, left_out, heads)


def _exact_numbers(cell: TableCell) -> list[tuple[str, str]]:
    numbers = {"value": cell.value, "low": cell.low, "high": cell.high, "n": cell.n, "chance": cell.chance}
    numbers["wording-sd"] = cell.wording_sd
    return [(name, exact_text(number)) for name, number in numbers.items() if number is not None]


def _extra_columns(table: ReportTable, index: int) -> list[str]:
    if not table.columns[index].number:
        return []
    return [
        name
        for name in ("low", "high", "n", "chance", "wording_sd")
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
    return f"{text} {cell.aside}".rstrip()
