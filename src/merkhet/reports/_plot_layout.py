"""Layout of figures: frames with axes, labels that never overlap, intervals, legends, panels of one width."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from merkhet.reports._axis_scales import Axis, Scale
from merkhet.reports._svg_marks import (
    FONT_SIZE,
    INK,
    PADDING,
    Bar,
    Drawing,
    Label,
    Line,
    Mark,
    Strokes,
    Symbol,
    drawing,
    extent,
)
from merkhet.reports._text_width import ASCENT, DESCENT, shorten, text_width, wrap

GRID = "#ececf0"
AXIS = "#8a8a90"
PANEL = 360.0
NAMES = 165.0
"""The width of a panel and of the names in it, in pixels; in a column of a paper (3 inches) letters have 7 points."""
ROW = 26.0
"""The height of a row with its bar, in pixels."""
SMALL = 11.7
"""The size of the smallest letters, in pixels."""
SLANT = -38.0
"""Degrees by which labels are turned where they have no room side by side."""
MIDDLE = 0.36
"""From the middle of small and large letters down to their baseline, in em."""
_LINE = 1.2
"""From baseline to baseline, in em."""
_GAP = 6.0
_KEY, _KEY_LINE, _KEY_GAP, _KEY_ROW, _KEY_LABEL = 9.5, 26.0, 14.0, 16.0, 180.0
"""Legends: width of a symbol, of a line with its symbol, of the gap between entries; height of a row; longest label."""
_LEAST_ROOM, _MOST_TRIES = 60.0, 6
_MOST_TITLE_LINES = 3


@dataclass(frozen=True)
class Frame:
    """The axes around a plot, the scale of its values, and the middle of each of its rows."""

    marks: tuple[Mark, ...]
    scale: Scale
    centres: tuple[float, ...]


@dataclass(frozen=True)
class Key:
    """An entry of a legend."""

    label: str
    fill: str
    shape: str = "square"
    stroke: str = ""
    line: bool = False
    """Whether a stretch of line stands behind the symbol."""
    dash: tuple[float, ...] = ()
    """The dash of that line."""


@dataclass(frozen=True)
class Part:
    """A part of a stacked bar."""

    size: float
    fill: str
    about: str


def fit_panel(build: Callable[[float], Sequence[Mark]], keys: Sequence[Key] = (), title: str = "") -> Drawing:
    """Draw a plot as wide as leaves room for the labels around it, so that every panel has the same width.

    Args:
        build: Makes the marks of a plot that reaches from 0 to the given number of pixels.
        keys: Entries of the legend below.
        title: Title of the legend.
    """
    room = PANEL - 2 * PADDING
    marks: Sequence[Mark] = ()
    widest = 0.0
    for _ in range(_MOST_TRIES):
        tried = build(room)
        box = extent(tried)
        excess = math.ceil(box.right + PADDING) - math.floor(box.left - PADDING) - PANEL
        if excess <= 0 and room > widest:
            marks, widest = tried, room
        # Labels that are dropped or slanted in a narrower plot leave room for a wider one, which may need them again.
        if -1 <= excess <= 0 or room <= _LEAST_ROOM:
            break
        room = max(_LEAST_ROOM, room - excess - 0.5)
    marks = marks if widest else tried
    return drawing([*marks, *legend_below(marks, keys, title, PANEL - 2 * PADDING)], PANEL)


def rows_frame(names: Sequence[str], axis: Axis, room: float) -> Frame:
    """Lay out rows with their names at the left and the axis of values below."""
    bottom = ROW * len(names)
    scale = axis.scale(0.0, room)
    centres = tuple(ROW * (place + 0.5) for place in range(len(names)))
    marks = (
        *grid([(scale(tick), 0.0, scale(tick), bottom) for tick in axis.ticks]),
        *names_at_left(names, centres),
        *ticks_below(axis, scale, bottom, room),
    )
    return Frame(marks, scale, centres)


def stacked_rows(rows: Mapping[str, Sequence[Part]], axis: Axis, keys: Sequence[Key], title: str = "") -> Drawing:
    """Draw a panel of bars that lie, each of parts end to end, with a legend of the parts."""

    def build(room: float) -> list[Mark]:
        frame = rows_frame(list(rows), axis, room)
        bars: list[Mark] = []
        for parts, centre in zip(rows.values(), frame.centres, strict=True):
            start = 0.0
            for part in parts:
                left, right = frame.scale(start), frame.scale(start + part.size)
                bars.append(
                    Bar(left, centre - 9, right - left, 18.0, part.fill, part.about, stroke="white", stroke_width=0.6)
                )
                start += part.size
        return [*frame.marks, *bars]

    return fit_panel(build, keys, title)


def names_at_left(names: Sequence[str], centres: Sequence[float], limit: float = NAMES) -> list[Mark]:
    """Name rows at their left, right-aligned."""
    return [
        Label(-_GAP, centre + MIDDLE * FONT_SIZE, shorten(name, FONT_SIZE, limit), "end")
        for name, centre in zip(names, centres, strict=True)
    ]


def ticks_below(axis: Axis, scale: Scale, bottom: float, room: float) -> list[Mark]:
    """Label the ticks of a horizontal axis, every second or fourth where they would overlap, and title the axis."""
    baseline = bottom + 1.25 * _GAP + ASCENT * FONT_SIZE
    labels = _kept(
        [Label(scale(tick), baseline, text, "middle") for tick, text in zip(axis.ticks, axis.labels, strict=True)]
    )
    return [*labels, *title_below(axis.title, room / 2, room, baseline + DESCENT * FONT_SIZE)]


def _kept(labels: Sequence[Label]) -> list[Label]:
    """Keep every label from left to right or from the bottom up, or every second, fourth, … so that none overlap."""
    every = 1
    while every < len(labels):
        kept = labels[::every]
        boxes = [label.box() for label in kept]
        if all(
            after.left - before.right >= 4 or before.top >= after.bottom for before, after in itertools.pairwise(boxes)
        ):
            return list(kept)
        every *= 2
    return list(labels[:1])


def title_below(title: str, centre: float, room: float, top: float) -> list[Mark]:
    """Write the title of an axis below its labels, in lines as wide as the plot."""
    lines = wrap(title, FONT_SIZE, room) if title else []
    if len(lines) > _MOST_TITLE_LINES:
        lines = [*lines[: _MOST_TITLE_LINES - 1], " ".join(lines[_MOST_TITLE_LINES - 1 :])]
    return [
        Label(
            centre, top + 7 + (ASCENT + _LINE * place) * FONT_SIZE, shorten(line, FONT_SIZE, max(room, 90.0)), "middle"
        )
        for place, line in enumerate(lines)
    ]


def columns_frame(
    axis: Axis, left: float, room: float, top: float, height: float, *, labelled: bool = True
) -> tuple[list[Mark], Scale]:
    """Lay out a plot with the axis of values at its left: the grid below all marks, the scale, labels and title."""
    scale = axis.scale(top + height, top)
    marks: list[Mark] = [*grid([(left, scale(tick), left + room, scale(tick)) for tick in axis.ticks])]
    zero = scale(min(max(0.0, axis.low), axis.high))
    marks.append(Strokes(((left, zero, left + room, zero),), AXIS))
    if not labelled:
        return marks, scale
    labels = _kept(
        [
            Label(left - _GAP, scale(tick) + MIDDLE * FONT_SIZE, text, "end")
            for tick, text in zip(axis.ticks, axis.labels, strict=True)
        ]
    )
    edge = min((label.box().left for label in labels), default=left)
    lines = wrap(axis.title, FONT_SIZE, height) if axis.title else []
    lines = [*lines[:1], *([" ".join(lines[1:])] if len(lines) > 1 else [])]
    for place, line in enumerate(reversed(lines)):
        baseline = edge - 7 - (DESCENT + _LINE * place) * FONT_SIZE
        labels.append(Label(baseline, top + height / 2, shorten(line, FONT_SIZE, height), "middle", angle=-90.0))
    return [*marks, *labels], scale


def grid(segments: Sequence[tuple[float, float, float, float]]) -> list[Mark]:
    """Draw the thin light lines of ticks."""
    return [Strokes(tuple(segments), GRID)] if segments else []


def category_labels(
    labels: Sequence[str], centres: Sequence[float], pitch: float, top: float, size: float = FONT_SIZE
) -> list[Mark]:
    """Label categories below a plot: in lines, aslant, upright, or only some of them, so that none overlap.

    Args:
        labels: Labels in order.
        centres: Middle of each category.
        pitch: Distance of neighbouring middles.
        top: Where labels begin.
        size: Font size.
    """
    room = pitch - 8
    lines = [wrap(label, size, room) for label in labels]
    if all(text_width(line, size) <= room for own in lines for line in own):
        return [
            Label(centre, top + _GAP + (ASCENT + _LINE * place) * size, line, "middle", size)
            for centre, own in zip(centres, lines, strict=True)
            for place, line in enumerate(own)
        ]
    short = [shorten(label, size, NAMES) for label in labels]
    if pitch * math.sin(math.radians(-SLANT)) >= _LINE * size:
        return [
            Label(centre + 3, top + _GAP + 0.6 * size, label, "end", size, angle=SLANT)
            for centre, label in zip(centres, short, strict=True)
        ]
    every = max(1, math.ceil(1.05 * size / pitch))
    return [
        Label(centre + MIDDLE * size, top + _GAP, label, "end", size, angle=-90.0)
        for centre, label in list(zip(centres, short, strict=True))[::every]
    ]


def band(pitch: float, wanted: float) -> float:
    """Return the width of a group of bars: what is wanted, with a gap of 15% of the pitch at least."""
    return min(wanted, 0.85 * pitch)


def whiskers(segments: Iterable[tuple[float, float, float, float]], *, caps: float = 0.0) -> list[Mark]:
    """Draw intervals as thin lines with a white rim, so that they are seen on dark bars too.

    Args:
        segments: Both ends of each interval.
        caps: Length of the strokes across the ends of horizontal intervals.
    """
    known = tuple(segments)
    if not known:
        return []
    ends = tuple((x, y - caps / 2, x, y + caps / 2) for x1, y, x2, _ in known for x in (x1, x2) if caps and x1 != x2)
    return [Strokes(known, "white", 3.2, opacity=0.75), Strokes((*known, *ends), INK, 1.3)]


def legend_columns(widths: Sequence[float], room: float) -> int:
    """Return how many entries of a legend stand in a row, so that none is cut off."""
    fitting = [columns for columns in range(len(widths), 1, -1) if _row_width(widths, columns) <= room]
    if not fitting:
        return 1
    # Even rows: 4 and 4 entries rather than 7 and 1.
    even = math.ceil(len(widths) / math.ceil(len(widths) / fitting[0]))
    return even if even in fitting else fitting[0]


def _row_width(widths: Sequence[float], columns: int) -> float:
    return sum(max(widths[place::columns]) for place in range(columns)) + _KEY_GAP * (columns - 1)


def legend_below(marks: Sequence[Mark], keys: Sequence[Key], title: str = "", width: float = 0.0) -> list[Mark]:
    """Explain colours and symbols in columns below a plot that begins at 0.

    The legend begins where the plot does. Where it would need several rows there, it begins at the left of all marks.

    Args:
        marks: What stands above.
        keys: Entries of the legend.
        title: Written before the entries.
        width: Width of the figure, if it is more than that of the marks.
    """
    if not keys:
        return []
    box = extent(marks)
    right = max(box.right, box.left + width)
    title = shorten(title, SMALL, _KEY_LABEL / 2)
    before = text_width(title, SMALL) + 8 if title else 0.0
    symbol = _KEY_LINE if any(key.line for key in keys) else _KEY
    labels = [shorten(key.label, SMALL, _KEY_LABEL) for key in keys]
    widths = [symbol + 5 + text_width(label, SMALL) for label in labels]
    left = max(0.0, box.left) + before
    columns = legend_columns(widths, right - left)
    if columns < len(keys):
        left = box.left + before
        columns = legend_columns(widths, right - left)
    starts = [left]
    for place in range(columns - 1):
        starts.append(starts[-1] + max(widths[place::columns]) + _KEY_GAP)
    first = box.bottom + 12 + _KEY_ROW / 2
    entries: list[Mark] = []
    if title:
        entries.append(Label(left - before, first + MIDDLE * SMALL, title, size=SMALL))
    for place, (key, label) in enumerate(zip(keys, labels, strict=True)):
        x, y = starts[place % columns], first + _KEY_ROW * (place // columns)
        entries += [*_symbol(key, x, y, symbol), Label(x + symbol + 5, y + MIDDLE * SMALL, label, size=SMALL)]
    return entries


def _symbol(key: Key, x: float, y: float, width: float) -> list[Mark]:
    if key.line:
        line = Line(((x, y), (x + width, y)), key.fill, dash=key.dash)
        return [line, Symbol(x + width / 2, y, key.shape, key.fill)]
    return [Bar(x, y - _KEY / 2, _KEY, _KEY, key.fill, stroke=key.stroke, stroke_width=0.7)]
