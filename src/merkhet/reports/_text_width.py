"""Text widths without a font file, from the advance widths that Helvetica, Arial and Liberation Sans share."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from functools import lru_cache, partial

from rich.cells import cell_len

from merkhet.reports._labels import Measure, shorten_labels

_BY_WIDTH = {
    191: "'",
    222: "ijl‘’",
    260: "|",
    278: " !,./:;I[\\]ft·",
    333: "()-`r“”",
    334: "{}",
    350: "•",
    355: '"',
    389: "*",
    400: "°",
    469: "^",
    500: "Jckvsxyz",
    549: "≤≥",
    556: "#$?0123456789L_abdeghnopquµ–",
    584: "+<=>~−×±",
    611: "FTZ",
    667: "&ABEKPSVXY",
    722: "CDHNRUw",
    778: "GOQ",
    833: "Mm",
    889: "%",
    944: "W",
    1000: "—…",
    1015: "@",
}
_WIDTHS = {letter: width / 1000 for width, letters in _BY_WIDTH.items() for letter in letters}
"""Advance widths of characters, in em."""
_OTHER, _OTHER_CAPITAL, _WIDE = 0.62, 0.8, 1.0
_BOLD = 1.1
ASCENT, DESCENT = 0.78, 0.22
"""Height of a line above and below its baseline, in em."""


def text_width(text: str, size: float, *, bold: bool = False) -> float:
    """Return the width of a text in pixels; ``size`` is the font size."""
    return _ems(text) * size * (_BOLD if bold else 1.0)


@lru_cache(maxsize=4096)
def _ems(text: str) -> float:
    return sum(_WIDTHS[letter] if letter in _WIDTHS else _em(letter) for letter in text)


@lru_cache(maxsize=4096)
def _em(letter: str) -> float:
    cells = cell_len(letter)
    if cells != 1:
        return _WIDE * (cells > 0)
    base = unicodedata.normalize("NFD", letter)[0]
    if base in _WIDTHS:
        return _WIDTHS[base]
    return _OTHER_CAPITAL if letter.isupper() else _OTHER


def fit_labels(labels: Iterable[str], size: float, width: float, *, bold: bool = False) -> list[str]:
    """Shorten the labels of one figure to ``width`` pixels; see :func:`merkhet.reports._labels.shorten_labels`."""
    texts = list(labels)
    short = shorten_labels(texts, width, _measure(size, bold))
    return [short[text] for text in texts]


@lru_cache(maxsize=64)
def _measure(size: float, bold: bool) -> Measure:
    return partial(text_width, size=size, bold=bold)


def shorten(text: str, size: float, width: float, *, bold: bool = False) -> str:
    """Truncate a text that stands alone to ``width`` pixels with a middle ellipsis."""
    if text_width(text, size, bold=bold) <= width:
        return text
    for length in range(len(text) - 1, 0, -1):
        tail = length * 2 // 5
        short = f"{text[: length - tail].rstrip()}…{text[len(text) - tail :].lstrip()}"
        if text_width(short, size, bold=bold) <= width:
            return short
    return "…"


def wrap(text: str, size: float, width: float) -> list[str]:
    """Wrap a text at spaces into lines of at most ``width`` pixels; a longer word is not broken."""
    lines: list[str] = []
    for word in text.split(" "):
        longer = f"{lines[-1]} {word}" if lines else word
        if lines and text_width(longer, size) <= width:
            lines[-1] = longer
        else:
            lines.append(word)
    return lines
