"""Common style of figures: colour-blind-safe colours, symbols, short labels and captions."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from markupsafe import Markup

from merkhet.core import text as fmt
from merkhet.reports._labels import shorten_labels
from merkhet.reports._plot_layout import VERMILION
from merkhet.reports._svg_marks import Drawing
from merkhet.reports.scoreboard import Series

COLOURS = (
    *("#0072B2", "#E69F00", "#009E73", "#56B4E9", "#CC79A7", "#7f4f24"),
    *("#a6d96a", "#3b0f70", "#F0E442", "#661100", "#f4a6c0", "#1b3a57"),
)
"""Colours of models. The first five are from Okabe and Ito's palette (2008, https://jfly.uni-koeln.de/color/). All are
distinct for colour-blind readers, and neighbouring colours are distinct in greyscale."""
SEGMENT_COLOURS = (*COLOURS, VERMILION, "#c8c8ce")
"""Colours of bars and bar segments, of which a figure may need more than there are colours of models."""
GREYS = ("#9a9a9a", "#66666b", "#c8c8ce")
"""Colours of baselines."""
FEW_COLOUR = "#c8c8ce"
"""Colour of bars and points of too few questions."""
SYMBOLS = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down")
DASHES: tuple[tuple[float, ...], ...] = ((), (8, 3), (8, 3, 2, 3), (5, 2), (12, 3), (12, 3, 2, 3))
DOTTED: tuple[float, ...] = (2, 3)
"""Line dashes of models (DASHES) and of baselines (DOTTED)."""
INTERVALS = "95% bootstrap intervals, clustered by fact"
MAX_LABEL = 26
"""Maximum width of a label in terminal cells; a Chinese character takes two."""
_FOLDER = re.compile(r"^[\w.-]+(?:/[\w.-]+)*/(?=[\w.-])")


class Figure(NamedTuple):
    """A drawn figure: plain-text caption, and inline SVG with escaped texts."""

    caption: str
    svg: Markup


@dataclass(frozen=True)
class NamedChart:
    """A chart with its name, caption and description."""

    name: str
    """File name without its suffix."""
    caption: str
    """Full caption: subject, number of questions, and meaning of the marks."""
    drawing: Drawing
    title: str = ""
    """Short caption, for pages that explain the marks once for all charts."""
    description: str = ""
    """Text alternative for screen readers."""


def draw_figure(chart: NamedChart) -> Figure:
    """Draw a chart as inline SVG for a page."""
    return Figure(chart.title or chart.caption, Markup(chart.drawing.inline(chart.description)))


def line_colours(series: Sequence[Series], baselines: Collection[str]) -> dict[Series, str]:
    """Assign a colour to each line of the scoreboard; baselines are grey."""
    return dict(zip(series, assign_colours([line.model in baselines for line in series]), strict=True))


def assign_colours(is_baseline: Sequence[bool]) -> list[str]:
    """Return a colour for each line, in order; ``is_baseline`` marks the lines that are baselines."""
    used = {True: 0, False: 0}
    colours = []
    for baseline in is_baseline:
        palette = GREYS if baseline else COLOURS
        colours.append(palette[used[baseline] % len(palette)])
        used[baseline] += 1
    return colours


def short_labels(series: Sequence[Series]) -> dict[Series, str]:
    """Shorten the labels of lines to fit beside a bar: drop the folder, then what the labels have in common.

    Labels stay distinct; lines with equal labels get numbers.
    """
    bare = {line: _FOLDER.sub("", line.label) for line in series}
    bare = {line: name if list(bare.values()).count(name) == 1 else line.label for line, name in bare.items()}
    label_of = shorten_labels(bare.values(), MAX_LABEL)
    short: dict[Series, str] = {}
    for line, label in bare.items():
        name = label_of[label]
        copies = sum(name == earlier or earlier.startswith(f"{name} #") for earlier in short.values())
        short[line] = f"{name} #{copies + 1}" if copies else name
    return short


def sample_size_text(sizes: Collection[int], unit: str = "questions") -> str:
    """Format the number of questions for a caption, such as ``n = 100–250 questions``; empty if unknown."""
    known = sorted({size for size in sizes if size})
    if not known:
        return ""
    if len(known) == 1:
        return f"n = {known[0]:,} {unit}"
    return f"n = {known[0]:,}–{known[-1]:,} {unit}"


def score_tooltip(
    value: Any, low: Any = None, high: Any = None, *, n: Any = None, chance: float | None = None, percent: bool = True
) -> str:
    """Format a score with its interval, chance level and number of questions; unknown values are omitted."""
    ends = fmt.interval(low, high, percent=percent)
    chance_text = "" if chance is None else f", chance {fmt.score(chance, percent=percent)}"
    count = "" if n is None else f", n = {fmt.count(n)}"
    return f"{fmt.score(value, percent=percent)}{' ' if ends else ''}{ends}{chance_text}{count}"


def join_sentences(*parts: str) -> str:
    """Join the non-empty ``parts`` with spaces; a part without final punctuation gets a full stop."""
    return " ".join(part if part.endswith((".", "!", "?")) else f"{part}." for part in parts if part)
