"""What all figures share: colours and symbols that every reader can tell apart, short names, captions."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from rich.cells import cell_len

from merkhet.reports._svg_marks import Drawing
from merkhet.reports.scoreboard import Series

COLOURS = (
    *("#0072B2", "#E69F00", "#009E73", "#56B4E9", "#CC79A7", "#7f4f24"),
    *("#a6d96a", "#3b0f70", "#F0E442", "#661100", "#f4a6c0", "#1b3a57"),
)
"""Models in turn. The first five are of Okabe and Ito's palette (2008, https://jfly.uni-koeln.de/color/); all are told
apart with any colour vision, and neighbours in grey too."""
VERMILION = "#D55E00"
"""The palette's red, kept for chance; the black of the palette is for intervals."""
PARTS = (*COLOURS, VERMILION, "#c8c8ce")
"""For figures with more kinds of bars than there are models in most."""
GREYS = ("#9a9a9a", "#66666b", "#c8c8ce")
"""Baselines in turn."""
POINTS = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down")
DASHES: tuple[tuple[float, ...], ...] = ((), (8, 3), (8, 3, 2, 3), (5, 2), (12, 3), (12, 3, 2, 3))
DOTTED: tuple[float, ...] = (2, 3)
"""The lines of models in turn, and those of baselines."""
INTERVALS = "95% bootstrap intervals, clustered by fact"
_LABEL = 26
"""The letters of a name; one of Chinese is as wide as two."""
_FOLDER = re.compile(r"^[\w.-]+(?:/[\w.-]+)*/(?=[\w.-])")


@dataclass(frozen=True)
class Figure:
    """A drawn figure: a caption in plain text and inline SVG."""

    caption: str
    svg: str


@dataclass(frozen=True)
class NamedChart:
    """A figure with its texts.

    ``name`` is what its file is called. ``caption`` says what is shown, of how many questions, and what the thin lines
    are; ``title`` is the short of it for a page that says the rest once. ``drawing`` holds its marks, ``told`` is what
    it shows in words, for readers who cannot see it.
    """

    name: str
    caption: str
    drawing: Drawing
    title: str = ""
    told: str = ""


def drawn(chart: NamedChart) -> Figure:
    """Draw a chart as inline SVG for a page."""
    return Figure(chart.title or chart.caption, chart.drawing.inline(chart.told))


def line_colours(series: Sequence[Series], baselines: Collection[str]) -> dict[Series, str]:
    """A colour for each line that people with any colour vision can tell apart; baselines are grey."""
    return dict(zip(series, colours_of([line.model in baselines for line in series]), strict=True))


def colours_of(plain: Sequence[bool]) -> list[str]:
    """The colours of lines in order, of which some are baselines."""
    taken = {True: 0, False: 0}
    found = []
    for baseline in plain:
        palette = GREYS if baseline else COLOURS
        found.append(palette[taken[baseline] % len(palette)])
        taken[baseline] += 1
    return found


def short_labels(series: Sequence[Series]) -> dict[Series, str]:
    """Names that fit beside a bar and are still told apart: without their folder, and cut in the middle.

    Names that would be cut to the same begin where they differ.
    """
    bare = {line: _FOLDER.sub("", line.label) for line in series}
    bare = {line: name if list(bare.values()).count(name) == 1 else line.label for line, name in bare.items()}
    alike: dict[str, list[str]] = {}
    for name in bare.values():
        alike.setdefault(cut(name), []).append(name)
    short: dict[Series, str] = {}
    for line, whole in bare.items():
        name = cut(whole)
        if len(set(alike[name])) > 1:
            name = cut(f"…{whole[_same(alike[name]) :]}")
        copies = sum(name == other or other.startswith(f"{name} #") for other in short.values())
        short[line] = f"{name} #{copies + 1}" if copies else name
    return short


def _same(names: Sequence[str]) -> int:
    """Where the word begins in which names differ first."""
    first, last = min(names), max(names)
    size = next((place for place, pair in enumerate(zip(first, last, strict=False)) if len(set(pair)) > 1), len(first))
    return first.rfind(" ", 0, size) + 1


def cut(name: str, length: int = _LABEL) -> str:
    """A name that is no longer than this; what is left out stands in the middle."""
    if cell_len(name) <= length:
        return name
    return f"{_within(name, length - 11)}…{_within(reversed(name), 10)[::-1]}"


def _within(letters: Iterable[str], room: int) -> str:
    """The first letters that are no wider than this together."""
    kept = []
    for letter in letters:
        room -= cell_len(letter)
        if room < 0:
            break
        kept.append(letter)
    return "".join(kept)


def counted(sizes: Collection[int], of: str = "questions") -> str:
    """How many questions are behind the numbers of a figure, for its caption; nothing where that is not known."""
    known = sorted({size for size in sizes if size})
    if not known:
        return ""
    if len(known) == 1:
        return f"n = {known[0]:,} {of}"
    return f"n = {known[0]:,}–{known[-1]:,} {of}"


def sentences(*parts: str) -> str:
    """A caption of the parts that say something, each with its full stop."""
    return " ".join(part if part.endswith((".", "!", "?")) else f"{part}." for part in parts if part)
