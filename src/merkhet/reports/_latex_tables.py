"""Tables as LaTeX with the rules of booktabs, and words as LaTeX takes them."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

from merkhet.reports import formatting as show
from merkhet.reports.table_model import ReportTable, Row, TableCell

_MARKS = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "%": r"\%",
    "_": r"\_\allowbreak{}",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    # \textquotedbl is not there in every encoding of fonts; the 34th letter is.
    '"': r"\char34{}",
    "`": r"\textasciigrave{}",
    "'": "'{}",
    # At the start of a row these would be options of the line before it.
    "[": "{[}",
    "*": "{*}",
    "–": "--",
    "—": "---",
    "…": r"\ldots{}",
    "‘": "`{}",
    "’": "'{}",
    "“": "``",
    "”": "''",
    "−": "$-$",
    "×": r"$\times$",
    "±": r"$\pm$",
    "≤": r"$\le$",
    "≥": r"$\ge$",
    "→": r"$\to$",
}
_LATIN = 0x024F
_LONG_WORD, _LONG_WORDS, _LONG_TABLE, _COLUMN, _WIDE = 18, 44, 45, 46, 76
"""Beyond so many letters a word may be broken and a column of words is wrapped, beyond so many rows a table goes over
pages; beyond so many letters in a row it goes over the columns of a paper, and is shrunk to the width of the text."""


def as_latex(table: ReportTable) -> str:
    """The table for a paper: booktabs, the best of a column in bold, intervals in small type, caption and label.

    Packages that it needs are named in a comment. What it holds is text: every special character is escaped. Numbers
    stand right under right, so that their decimals do. A wide table goes over the columns of a paper.
    """
    columns = [_specification(table, place) for place in range(len(table.columns))]
    packages = ["booktabs"]
    paged = len(table.rows) > _LONG_TABLE
    wide = _width(table) > _WIDE
    if any("p{" in column for column in columns):
        packages.append("array")
    if paged:
        packages.append("longtable")
    elif wide:
        packages.append("graphicx")
    heads = " & ".join(_head(table, place) for place in range(len(table.columns))) + r" \\"
    body = [_row(table, row) for row in table.rows]
    foot = [_row(table, row) for row in table.foot]
    lines = [*body, *(["\\midrule", *foot] if foot else [])]
    caption = f"\\caption{{{escaped(_caption(table))}}}"
    label = f"\\label{{tab:{table.name}}}"
    written = preamble(packages, _all_text(table))
    if paged:
        return written + _paged("".join(columns), heads, lines, f"{caption}{label}", "scriptsize" if wide else "small")
    inner = "\n".join(
        [
            f"\\begin{{tabular}}{{@{{}}{''.join(columns)}@{{}}}}",
            "\\toprule",
            heads,
            "\\midrule",
            *lines,
            "\\bottomrule",
            "\\end{tabular}",
        ]
    )
    inner = fitted(inner) if wide else inner
    place = "table*" if _width(table) > _COLUMN else "table"
    return (
        written
        + "\n".join(
            [
                f"\\begin{{{place}}}[t]",
                "\\centering",
                "\\small",
                caption,
                label,
                "\\smallskip",
                inner,
                f"\\end{{{place}}}",
            ]
        )
        + "\n"
    )


def fitted(inner: str) -> str:
    """Something that is shrunk to the width of the text where it is wider (needs graphicx)."""
    return f"\\resizebox{{\\ifdim\\width>\\linewidth \\linewidth\\else \\width\\fi}}{{!}}{{%\n{inner}%\n}}"


def escaped(text: str) -> str:
    """Text as LaTeX prints it, letter by letter; characters that only control how text runs are left out."""
    plain = show.printable(text)
    kept = []
    word = 0
    for before, letter in zip(f" {plain}", plain, strict=False):
        word = 0 if letter.isspace() else word + 1
        if word > _LONG_WORD:
            kept.append("\\allowbreak{}")
            word = 1
        if letter in _MARKS:
            kept.append(_MARKS[letter])
        elif letter.isspace():
            kept.append(" ")
        elif letter == before and letter in "-,":  # Two in a row would become a dash, or a quotation mark.
            kept.append(f"{{}}{letter}")
        elif unicodedata.category(letter) != "Cf":
            kept.append(letter)
    return "".join(kept)


def preamble(packages: Sequence[str], text: str) -> str:
    """Comments that say which packages are needed, and which program, where the text goes beyond the Latin script."""
    lines = [f"% \\usepackage{{{', '.join(packages)}}}"]
    if any(ord(letter) > _LATIN and letter not in _MARKS and letter.isalpha() for letter in text):
        lines.append(
            "% There is text in other scripts than Latin here: use XeLaTeX or LuaLaTeX, with fonts that have it."
        )
    return "\n".join(lines) + "\n"


def _specification(table: ReportTable, place: int) -> str:
    if table.columns[place].number:
        return "r@{~}l" if table.has_intervals(place) else "r"
    longest = max((len(row[place].text) for row in table.rows), default=0)
    return "l" if longest <= _LONG_WORDS else "p{0.34\\linewidth}"


def _head(table: ReportTable, place: int) -> str:
    column = table.columns[place]
    label = escaped(column.label)
    if not column.number:
        return label
    span = 2 if table.has_intervals(place) else 1
    return f"\\multicolumn{{{span}}}{{{'c' if span == 2 else 'r'}}}{{{label}}}"


def _row(table: ReportTable, row: Row) -> str:
    cells = []
    for place, (cell, column) in enumerate(zip(row, table.columns, strict=True)):
        cells.append(_number(cell) if column.number else escaped(cell.text))
        if table.has_intervals(place):
            ends = _signed(cell.interval).replace("{[}", "[")
            cells.append(f"{{\\scriptsize {ends}}}" if ends else "")
    return " & ".join(cells) + r" \\"


def _number(cell: TableCell) -> str:
    text = _signed(cell.text)
    return f"\\textbf{{{text}}}" if cell.best else text


def _signed(text: str) -> str:
    """A number or an interval; a hyphen before a digit is a minus."""
    return re.sub(r"(?<![\w.}])-(?=\d)", "$-$", escaped(text))


def _paged(columns: str, heads: str, lines: Sequence[str], caption: str, size: str) -> str:
    repeated = ["\\toprule", heads, "\\midrule"]
    return (
        "\n".join(
            [
                f"{{\\{size}",
                f"\\begin{{longtable}}{{@{{}}{columns}@{{}}}}",
                f"{caption} \\\\",
                *repeated,
                "\\endfirsthead",
                *repeated,
                "\\endhead",
                "\\bottomrule",
                "\\endfoot",
                *lines,
                "\\end{longtable}",
                "}",
            ]
        )
        + "\n"
    )


def _caption(table: ReportTable) -> str:
    return f"{table.title} {table.note}".strip()


def _all_text(table: ReportTable) -> str:
    cells = (cell.text for row in (*table.rows, *table.foot) for cell in row)
    return "".join([table.title, table.note, *(column.label for column in table.columns), *cells])


def _width(table: ReportTable) -> int:
    """The letters of the widest row, if each column takes what its longest cell does."""
    width = 0
    for place, column in enumerate(table.columns):
        cells = [len(row[place].text) + 0.75 * len(row[place].interval) for row in (*table.rows, *table.foot)]
        width += 2 + min(_LONG_WORDS, round(max([len(column.label), *cells])))
    return width
