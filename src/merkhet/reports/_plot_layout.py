"""Layout of figures: axes, non-overlapping labels, intervals, legends and panels of equal width."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from merkhet.core.text import DASH
from merkhet.reports import _svg_marks as svg
from merkhet.reports._axis_scales import Axis, Scale
from merkhet.reports._text_width import ASCENT, DESCENT, fit_labels, shorten, text_width, wrap

VERMILION = "#D55E00"
"""Vermilion of Okabe and Ito's palette, reserved for chance levels."""
GRID = "#ececf0"
NOT_ASKED = "#66666b"
"""Colour of what marks a missing score."""
AXIS = "#8a8a90"
PANEL = 360.0
MAX_NAME_WIDTH = 165.0
"""Width of a panel and maximum width of a row name, in pixels. In a 3-inch column of a paper, text has 7 points."""
ROW = 26.0
"""Height of a plot row with one bar, in pixels."""
SMALL = 11.7
"""Smallest font size, in pixels."""
SLANT = -38.0
"""Rotation of labels that do not fit side by side, in degrees."""
BASELINE_SHIFT = 0.36
"""Distance from the middle of the letters to their baseline, in em."""
_LINE_HEIGHT = 1.2
"""Distance between baselines, in em."""
_GAP = 6.0
_KEY, _KEY_LINE, _KEY_GAP, _KEY_ROW, _KEY_LABEL = 9.5, 26.0, 14.0, 16.0, 180.0
"""Sizes in legends, in pixels: symbol width, width of a line with symbol, gap between columns, row height, and maximum
label width."""
_MIN_NOTE, _MIN_DASH = 1.1 * SMALL, 8.0
"""Minimum width of a bar with a note above it, and of a missing bar that is marked by a dash, in pixels."""
_MIN_PLOT_WIDTH, _MAX_TRIES = 60.0, 6
_MAX_TITLE_LINES = 3


@dataclass(frozen=True)
class Point:
    """A plotted value with its interval; without an interval, ``low`` and ``high`` equal the value."""

    group: Any
    """Category or number on the axis, bar group, or panel that the point belongs to."""
    line: str
    """Name of the line, bar or plot row that the point belongs to."""
    value: float
    low: float
    high: float
    tooltip: str
    fill: str = ""
    chance: float | None = None
    dash: tuple[float, ...] = ()
    note: str = ""
    """Text above a bar, such as the number of questions."""


@dataclass(frozen=True)
class LegendEntry:
    """An entry of a legend."""

    label: str
    fill: str
    shape: str = "square"
    stroke: str = ""
    line: bool = False
    """Whether a line is drawn behind the symbol."""
    dash: tuple[float, ...] = ()
    """Dash pattern of the line behind the symbol."""


@dataclass(frozen=True)
class BarSegment:
    """A segment of a stacked bar."""

    size: float
    fill: str
    tooltip: str


def fit_panel(
    build: Callable[[float], Sequence[svg.Mark]], keys: Sequence[LegendEntry] = (), title: str = ""
) -> svg.Drawing:
    """Draw a plot with its labels and a legend below, in a panel that is ``PANEL`` pixels wide.

    Args:
        build: Function from the width of the plot, without labels, to its marks.
        keys: Entries of the legend.
        title: Title of the legend.
    """
    width = PANEL - 2 * svg.PADDING
    marks: Sequence[svg.Mark] = ()
    widest = 0.0
    for _ in range(_MAX_TRIES):
        candidate = build(width)
        box = svg.extent(candidate)
        excess = math.ceil(box.right + svg.PADDING) - math.floor(box.left - svg.PADDING) - PANEL
        if excess <= 0 and width > widest:
            marks, widest = candidate, width
        # The width can oscillate: a narrower plot may drop or slant labels, which leaves room for a wider plot.
        if -1 <= excess <= 0 or width <= _MIN_PLOT_WIDTH:
            break
        width = max(_MIN_PLOT_WIDTH, width - excess - 0.5)
    marks = marks if widest else candidate
    return svg.make_drawing([*marks, *legend_below(marks, keys, title, PANEL - 2 * svg.PADDING)], PANEL)


def rows_frame(names: Sequence[str], axis: Axis, width: float) -> tuple[list[svg.Mark], Scale, list[float]]:
    """Lay out plot rows, with their names at the left and the value axis below.

    Returns:
        The marks of grid, names and axis; the scale of the value axis; and the y position of each row's centre.
    """
    bottom = ROW * len(names)
    scale = axis.scale(0.0, width)
    centres = [ROW * (index + 0.5) for index in range(len(names))]
    marks = [
        *grid([(scale(tick), 0.0, scale(tick), bottom) for tick in axis.ticks]),
        *names_at_left(names, centres),
        *ticks_below(axis, scale, bottom, width),
    ]
    return marks, scale, centres


def stacked_rows(
    rows: Mapping[str, Sequence[BarSegment]], axis: Axis, keys: Sequence[LegendEntry], title: str = ""
) -> svg.Drawing:
    """Draw a panel of horizontal stacked bars with a legend."""

    def build(width: float) -> list[svg.Mark]:
        marks, x, centres = rows_frame(list(rows), axis, width)
        for segments, centre in zip(rows.values(), centres, strict=True):
            start = 0.0
            for segment in segments:
                size = (x(start + segment.size) - x(start), 18.0)
                marks.append(svg.Bar(x(start), centre - 9, *size, segment.fill, segment.tooltip, "white", 0.6))
                start += segment.size
        return marks

    return fit_panel(build, keys, title)


def names_at_left(names: Sequence[str], centres: Sequence[float], limit: float = MAX_NAME_WIDTH) -> list[svg.Mark]:
    """Make the right-aligned labels at the left of plot rows; ``limit`` is their maximum width in pixels."""
    return [
        svg.Label(-_GAP, centre + BASELINE_SHIFT * svg.FONT_SIZE, name, "end")
        for name, centre in zip(fit_labels(names, svg.FONT_SIZE, limit), centres, strict=True)
    ]


def ticks_below(axis: Axis, scale: Scale, bottom: float, width: float) -> list[svg.Mark]:
    """Make the tick labels and the title of a horizontal axis; some tick labels are dropped if they would overlap."""
    baseline = bottom + 1.25 * _GAP + ASCENT * svg.FONT_SIZE
    labels = _drop_overlapping(
        [svg.Label(scale(tick), baseline, text, "middle") for tick, text in zip(axis.ticks, axis.labels, strict=True)]
    )
    return [*labels, *title_below(axis.title, width / 2, width, baseline + DESCENT * svg.FONT_SIZE)]


def _drop_overlapping(labels: Sequence[svg.Label]) -> list[svg.Label]:
    """Return all labels if none overlap, else every second, fourth, … label."""
    step = 1
    while step < len(labels):
        labels_kept = labels[::step]
        boxes = [label.box() for label in labels_kept]
        if all(
            following.left - previous.right >= 4 or previous.top >= following.bottom
            for previous, following in itertools.pairwise(boxes)
        ):
            return list(labels_kept)
        step *= 2
    return list(labels[:1])


def title_below(title: str, centre: float, width: float, top: float) -> list[svg.Mark]:
    """Make the title of a horizontal axis, below the tick labels and wrapped to ``width`` pixels."""
    lines = wrap(title, svg.FONT_SIZE, width) if title else []
    if len(lines) > _MAX_TITLE_LINES:
        lines = [*lines[: _MAX_TITLE_LINES - 1], " ".join(lines[_MAX_TITLE_LINES - 1 :])]
    return [
        svg.Label(
            centre,
            top + 7 + (ASCENT + _LINE_HEIGHT * index) * svg.FONT_SIZE,
            shorten(line, svg.FONT_SIZE, max(width, 90.0)),
            "middle",
        )
        for index, line in enumerate(lines)
    ]


def columns_frame(
    axis: Axis, left: float, width: float, top: float, height: float, *, labelled: bool = True
) -> tuple[list[svg.Mark], Scale]:
    """Lay out a plot with a vertical value axis at its left; ``labelled`` says whether the axis has labels and title.

    Returns:
        The marks of grid, tick labels and title; and the scale of the value axis.
    """
    scale = axis.scale(top + height, top)
    marks: list[svg.Mark] = [*grid([(left, scale(tick), left + width, scale(tick)) for tick in axis.ticks])]
    zero = scale(min(max(0.0, axis.low), axis.high))
    marks.append(svg.Strokes(((left, zero, left + width, zero),), AXIS))
    if not labelled:
        return marks, scale
    labels = _drop_overlapping(
        [
            svg.Label(left - _GAP, scale(tick) + BASELINE_SHIFT * svg.FONT_SIZE, text, "end")
            for tick, text in zip(axis.ticks, axis.labels, strict=True)
        ]
    )
    edge = min((label.box().left for label in labels), default=left)
    lines = wrap(axis.title, svg.FONT_SIZE, height) if axis.title else []
    lines = [*lines[:1], *([" ".join(lines[1:])] if len(lines) > 1 else [])]
    for index, line in enumerate(reversed(lines)):
        baseline = edge - 7 - (DESCENT + _LINE_HEIGHT * index) * svg.FONT_SIZE
        labels.append(
            svg.Label(baseline, top + height / 2, shorten(line, svg.FONT_SIZE, height), "middle", angle=-90.0)
        )
    return [*marks, *labels], scale


def grid(segments: Sequence[tuple[float, float, float, float]]) -> list[svg.Mark]:
    """Make the grid lines from their ``segments``; empty if there are none."""
    return [svg.Strokes(tuple(segments), GRID)] if segments else []


def category_labels(
    labels: Sequence[str], centres: Sequence[float], pitch: float, top: float, size: float = svg.FONT_SIZE
) -> list[svg.Mark]:
    """Make non-overlapping category labels below a plot.

    Labels are wrapped if they fit, else slanted, else vertical; vertical labels that would overlap are dropped.
    ``pitch`` is the distance between neighbouring centres.
    """
    width = pitch - 8
    lines = [wrap(label, size, width) for label in labels]
    if all(text_width(line, size) <= width for label_lines in lines for line in label_lines):
        return [
            svg.Label(centre, top + _GAP + (ASCENT + _LINE_HEIGHT * index) * size, line, "middle", size)
            for centre, label_lines in zip(centres, lines, strict=True)
            for index, line in enumerate(label_lines)
        ]
    short = fit_labels(labels, size, MAX_NAME_WIDTH)
    if pitch * math.sin(math.radians(-SLANT)) >= _LINE_HEIGHT * size:
        return [
            svg.Label(centre + 3, top + _GAP + 0.6 * size, label, "end", size, angle=SLANT)
            for centre, label in zip(centres, short, strict=True)
        ]
    step = max(1, math.ceil(1.05 * size / pitch))
    return [
        svg.Label(centre + BASELINE_SHIFT * size, top + _GAP, label, "end", size, angle=-90.0)
        for centre, label in list(zip(centres, short, strict=True))[::step]
    ]


def bar_groups(
    points: Sequence[Point],
    axis: Axis,
    groups: Mapping[Any, str],
    slots: Mapping[str, int],
    *,
    width: float,
    height: float,
    bar_width: float,
    outline: float,
    left: float = 0.0,
    top: float = 0.0,
    title: str = "",
    label_size: float = svg.FONT_SIZE,
    labelled: tuple[bool, bool] = (True, True),
) -> list[svg.Mark]:
    """Draw groups of bars side by side, with intervals and chance levels; a dash marks a missing bar.

    Args:
        groups: Label of each group.
        slots: Position within a group of the bar for each ``Point.line``.
        bar_width: Maximum width of a bar.
        outline: Width of the outline of a bar.
        title: Title below the groups.
        labelled: Whether the value axis and the groups have labels.
    """
    marks, y = columns_frame(axis, left, width, top, height, labelled=labelled[0])
    pitch = width / len(groups)
    slot_count = max(slots.values()) + 1
    bar_width = min(bar_width * slot_count, 0.85 * pitch) / slot_count
    centres = {group: left + pitch * (index + 0.5) for index, group in enumerate(groups)}
    placed = [
        (point, centres[point.group] + bar_width * (slots[point.line] - slot_count / 2), y(point.value))
        for point in points
    ]
    marks += [
        svg.Bar(x, min(y(0), end), bar_width, abs(end - y(0)), point.fill, point.tooltip, svg.INK, outline, point.dash)
        for point, x, end in placed
    ]
    asked = {(point.group, slots[point.line]) for point in points}
    marks += [
        svg.Label(centre + bar_width * (slot + 0.5 - slot_count / 2), y(0) - 2, DASH, "middle", SMALL, NOT_ASKED)
        for group, centre in centres.items()
        for slot in range(slot_count)
        if (group, slot) not in asked and bar_width > _MIN_DASH
    ]
    middles = [(point, x + bar_width / 2) for point, x, _ in placed]
    marks += [
        _note_above(point, x, y(point.high) - 4, top, bar_width)
        for point, x in middles
        if point.note and bar_width > _MIN_NOTE
    ]
    marks += whiskers((x, y(point.low), x, y(point.high)) for point, x in middles if point.low < point.high)
    chances = [
        (x, y(point.chance), x + bar_width, y(point.chance)) for point, x, _ in placed if point.chance is not None
    ]
    marks += [svg.Strokes(tuple(chances), VERMILION, 2.2)] if chances else []
    if labelled[1]:
        labels = category_labels(list(groups.values()), list(centres.values()), pitch, top + height, label_size)
        marks += [*labels, *title_below(title, left + width / 2, width, svg.extent(labels).bottom)]
    return marks


def _note_above(point: Point, x: float, bottom: float, top: float, bar_width: float) -> svg.Label:
    """Make the label above a bar, vertical if the bar is narrower; it stays within the plot."""
    width = text_width(point.note, SMALL)
    if width <= bar_width:
        return svg.Label(x, max(bottom, top + ASCENT * SMALL), point.note, "middle", SMALL, inert=True)
    baseline = x + BASELINE_SHIFT * SMALL
    return svg.Label(baseline, max(bottom, top + width), point.note, size=SMALL, angle=-90.0, inert=True)


def whiskers(segments: Iterable[tuple[float, float, float, float]], *, caps: float = 0.0) -> list[svg.Mark]:
    """Draw intervals as thin lines with a white rim, which keeps them visible on dark bars.

    ``caps`` is the length of the end strokes of horizontal intervals; 0 draws none.
    """
    intervals = tuple(segments)
    if not intervals:
        return []
    ends = tuple(
        (x, y - caps / 2, x, y + caps / 2) for x1, y, x2, _ in intervals for x in (x1, x2) if caps and x1 != x2
    )
    return [svg.Strokes(intervals, "white", 3.2, opacity=0.75), svg.Strokes((*intervals, *ends), svg.INK, 1.3)]


def legend_columns(widths: Sequence[float], width: float) -> int:
    """Return the number of legend columns that fit into ``width``, with entries spread evenly over the rows."""
    fitting = [columns for columns in range(len(widths), 1, -1) if _row_width(widths, columns) <= width]
    if not fitting:
        return 1
    # Even rows: 4 and 4 entries rather than 7 and 1.
    even = math.ceil(len(widths) / math.ceil(len(widths) / fitting[0]))
    return even if even in fitting else fitting[0]


def _row_width(widths: Sequence[float], columns: int) -> float:
    return sum(max(widths[index::columns]) for index in range(columns)) + _KEY_GAP * (columns - 1)


def legend_below(
    marks: Sequence[svg.Mark], keys: Sequence[LegendEntry], title: str = "", width: float = 0.0
) -> list[svg.Mark]:
    """Draw a legend in columns below a plot that begins at x = 0, with the title before the entries.

    The legend begins at x = 0 if it fits into one row there, else at the leftmost mark. ``width`` is the minimum width
    of the figure.
    """
    if not keys:
        return []
    box = svg.extent(marks)
    right = max(box.right, box.left + width)
    title = shorten(title, SMALL, _KEY_LABEL / 2)
    title_width = text_width(title, SMALL) + 8 if title else 0.0
    symbol = _KEY_LINE if any(key.line for key in keys) else _KEY
    labels = fit_labels((key.label for key in keys), SMALL, _KEY_LABEL)
    widths = [symbol + 5 + text_width(label, SMALL) for label in labels]
    left = max(0.0, box.left) + title_width
    columns = legend_columns(widths, right - left)
    if columns < len(keys):
        left = box.left + title_width
        columns = legend_columns(widths, right - left)
    starts = [left]
    for index in range(columns - 1):
        starts.append(starts[-1] + max(widths[index::columns]) + _KEY_GAP)
    first = box.bottom + 12 + _KEY_ROW / 2
    entries: list[svg.Mark] = []
    if title:
        entries.append(svg.Label(left - title_width, first + BASELINE_SHIFT * SMALL, title, size=SMALL))
    for index, (key, label) in enumerate(zip(keys, labels, strict=True)):
        x, y = starts[index % columns], first + _KEY_ROW * (index // columns)
        entries += [
            *_symbol(key, x, y, symbol),
            svg.Label(x + symbol + 5, y + BASELINE_SHIFT * SMALL, label, size=SMALL),
        ]
    return entries


def _symbol(key: LegendEntry, x: float, y: float, width: float) -> list[svg.Mark]:
    if key.line:
        line = svg.Line(((x, y), (x + width, y)), key.fill, dash=key.dash)
        return [line, svg.Symbol(x + width / 2, y, key.shape, key.fill)]
    return [svg.Bar(x, y - _KEY / 2, _KEY, _KEY, key.fill, stroke=key.stroke, stroke_width=0.7)]
