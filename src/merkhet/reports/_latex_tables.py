"""Writer of LaTeX tables in booktabs style, and LaTeX escaping."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

from merkhet.core import text as fmt
from merkhet.reports.table_model import ReportTable, Row, TableCell

_ESCAPES = {
    **{letter: f"\\{letter}" for letter in "{}$&#%"},
    "\\": r"\textbackslash{}",
    "_": r"\_\allowbreak{}",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    # Not every font encoding has \textquotedbl; all have character 34.
    '"': r"\char34{}",
    "`": r"\textasciigrave{}",
    "'": "'{}",
    # At the start of a row, LaTeX would parse these characters as options of the previous line break.
    **{letter: f"{{{letter}}}" for letter in "[*"},
    **{"–": "--", "—": "---", "…": r"\ldots{}", "‘": "`{}", "’": "'{}", "“": "``", "”": "''"},
    **{"−": "$-$", "×": r"$\times$", "±": r"$\pm$", "≤": r"$\le$", "≥": r"$\ge$", "→": r"$\to$"},
}
_TABULAR = r"""\begin{tabular}{@{}%(columns)s@{}}
\toprule
%(heads)s
\midrule
%(body)s
\bottomrule
\end{tabular}"""
_FLOAT = r"""\begin{%(environment)s}[t]
\centering
\small
%(caption)s
%(label)s
\smallskip
%(tabular)s
\end{%(environment)s}
"""
_LONG_TABLE = r"""{\%(size)s
\begin{longtable}{@{}%(columns)s@{}}
%(caption)s%(label)s \\
\toprule
%(heads)s
\midrule
\endfirsthead
\toprule
%(heads)s
\midrule
\endhead
\bottomrule
\endfoot
%(body)s
\end{longtable}
}
"""
_LAST_LATIN = 0x024F
_MAX_WORD, _MAX_TEXT_WIDTH, _MAX_ROWS, _PAPER_COLUMN_WIDTH, _PAGE_WIDTH = 18, 44, 45, 46, 76
"""Limits in characters and rows, in this order: a longer word may be broken, a wider text column is wrapped, a table
with more rows spans several pages, a wider table spans both columns of a paper, and a still wider one is shrunk."""


def as_latex(table: ReportTable) -> str:
    """Write the table in booktabs style, with caption and label.

    The best value of a column is bold, and intervals are in small type. Special characters are escaped. A comment names
    the LaTeX packages that the table needs. A wide table spans both columns of a paper.
    """
    columns = [_column_type(table, index) for index in range(len(table.columns))]
    width = _width(table)
    is_long, is_wide = len(table.rows) > _MAX_ROWS, width > _PAGE_WIDTH
    packages = ["booktabs"]
    if any("p{" in column for column in columns):
        packages.append("array")
    if is_long or is_wide:
        packages.append("longtable" if is_long else "graphicx")
    foot = [_row(table, row) for row in table.foot]
    parts = {
        "columns": "".join(columns),
        "heads": " & ".join(_head(table, index) for index in range(len(table.columns))) + r" \\",
        "body": "\n".join([*(_row(table, row) for row in table.rows), *([r"\midrule", *foot] if foot else [])]),
        "caption": f"\\caption{{{escape_latex(table.caption)}}}",
        "label": f"\\label{{tab:{table.name}}}",
        "size": "scriptsize" if is_wide else "small",
        "environment": "table*" if width > _PAPER_COLUMN_WIDTH else "table",
    }
    comment = preamble(packages, _all_text(table))
    if is_long:
        return comment + _LONG_TABLE % parts
    tabular = _TABULAR % parts
    return comment + _FLOAT % {**parts, "tabular": shrink_to_fit(tabular) if is_wide else tabular}


def shrink_to_fit(content: str) -> str:
    """Wrap LaTeX ``content`` in a box that shrinks wide content to the line width (needs graphicx)."""
    return f"\\resizebox{{\\ifdim\\width>\\linewidth \\linewidth\\else \\width\\fi}}{{!}}{{%\n{content}%\n}}"


def escape_latex(text: str) -> str:
    """Escape text so that LaTeX prints it literally; invisible Unicode format characters are removed."""
    plain = fmt.printable(text)
    output = []
    word_length = 0
    for previous, letter in zip(f" {plain}", plain, strict=False):
        word_length = 0 if letter.isspace() else word_length + 1
        if word_length > _MAX_WORD:
            output.append("\\allowbreak{}")
            word_length = 1
        if letter in _ESCAPES:
            output.append(_ESCAPES[letter])
        elif letter.isspace():
            output.append(" ")
        elif letter == previous and letter in "-,":  # TeX prints two of them as a dash or a quotation mark.
            output.append(f"{{}}{letter}")
        elif unicodedata.category(letter) != "Cf":
            output.append(letter)
    return "".join(output)


def preamble(packages: Sequence[str], text: str) -> str:
    """Write LaTeX comments that name the needed packages and, for non-Latin text, the needed LaTeX engine."""
    comment = f"% \\usepackage{{{', '.join(packages)}}}\n"
    if any(ord(letter) > _LAST_LATIN and letter not in _ESCAPES and letter.isalpha() for letter in text):
        comment += "% The text has non-Latin scripts: use XeLaTeX or LuaLaTeX with fonts that cover them.\n"
    return comment


def _column_type(table: ReportTable, index: int) -> str:
    if table.columns[index].number:
        return "r@{~}l" if table.has_intervals(index) else "r"
    longest = max((len(row[index].text) for row in table.rows), default=0)
    return "l" if longest <= _MAX_TEXT_WIDTH else "p{0.34\\linewidth}"


def _head(table: ReportTable, index: int) -> str:
    column = table.columns[index]
    label = escape_latex(column.label)
    if not column.number:
        return label
    span = 2 if table.has_intervals(index) else 1
    return f"\\multicolumn{{{span}}}{{{'c' if span == 2 else 'r'}}}{{{label}}}"


def _row(table: ReportTable, row: Row) -> str:
    cells = []
    for index, (cell, column) in enumerate(zip(row, table.columns, strict=True)):
        cells.append(_number(cell) if column.number else escape_latex(cell.text))
        if table.has_intervals(index):
            ends = _number_text(cell.aside).replace("{[}", "[")
            cells.append(f"{{\\scriptsize {ends}}}" if ends else "")
    return " & ".join(cells) + r" \\"


def _number(cell: TableCell) -> str:
    text = _number_text(cell.text)
    return f"\\textbf{{{text}}}" if cell.best else text


def _number_text(text: str) -> str:
    """Escape a number or an interval; a hyphen before a digit becomes a minus sign."""
    return re.sub(r"(?<![\w.}])-(?=\d)", "$-$", escape_latex(text))


def _all_text(table: ReportTable) -> str:
    cells = (cell.text for row in (*table.rows, *table.foot) for cell in row)
    return "".join([table.title, table.note, *(column.label for column in table.columns), *cells])


def _width(table: ReportTable) -> int:
    """Estimate the width of the table in characters, from the longest cell of each column."""
    width = 0
    for index, column in enumerate(table.columns):
        cells = [len(row[index].text) + 0.75 * len(row[index].aside) for row in (*table.rows, *table.foot)]
        width += 2 + min(_MAX_TEXT_WIDTH, round(max([len(column.label), *cells])))
    return width
