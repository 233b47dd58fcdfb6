"""Writers of tables: terminal, CSV, Markdown, LaTeX and HTML."""

from __future__ import annotations

import csv
import html
import io
import re

from merkhet.core.text import DASH, printable
from merkhet.reports._html_tables import as_html, as_page_table
from merkhet.reports._latex_tables import as_latex
from merkhet.reports._terminal_tables import as_terminal
from merkhet.reports.table_model import ReportTable, TableCell, exact_text

__all__ = ["as_csv", "as_html", "as_latex", "as_markdown", "as_page_table", "as_terminal"]

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
