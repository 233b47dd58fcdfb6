"""Heat maps: groups by models for one score, and groups by tasks for one model, told against chance."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from merkhet.reports import formatting as show
from merkhet.reports._chart_style import NamedChart, counted, sentences, short_labels
from merkhet.reports._plot_layout import MIDDLE, NAMES, SLANT, SMALL, names_at_left
from merkhet.reports._svg_marks import FONT_SIZE, INK, Bar, Label, Mark, drawing, extent
from merkhet.reports._text_width import shorten
from merkhet.reports.scoreboard import Cell, Column, Series, above_chance, cell

_ROWS = 40
_LINES = 24
_BLUES = ("#cfe1f2", "#a8cee5", "#74b2d7", "#4592c6", "#206fb2", "#0a4a90")
"""From nothing known to everything."""
_AGAINST_CHANCE = ("#b35806", "#f1b26e", "#f7f7f7", "#7fb3d8", "#08519c")
"""From below chance to all right: orange and blue, which people with any colour vision tell apart; the numbers tell
them apart in grey."""
_CHANCE_INK = "#a03c00"
_RIM = "#d8d8de"
_HIGH = 21.0
_STEPS, _STEP, _THICK = 35, 6.0, 10.0
"""The legend of colours: how many, and the width and the height of each."""


@dataclass(frozen=True)
class _Square:
    """A cell of a heat map: its row and column, the number written in it, and its colours."""

    row: int
    column: int
    text: str
    fill: str
    ink: str
    about: str


def heat_chart(rows: list[dict[str, Any]], group: str, column: Column, series: Sequence[Series]) -> NamedChart | None:
    """Groups by models for one score, chance beside them; at most the forty groups with most questions."""
    found: dict[str, dict[str, Any]] = {}
    sizes: dict[str, int] = {}
    chances: dict[str, float] = {}
    lines = list(series)[:_LINES]
    short = short_labels(lines)
    for row in rows:
        if (row["task"], row["metric"]) != (column.task, column.metric):
            continue
        line = next((line for line in lines if line.covers(row)), None)
        if line is None:
            continue
        entry = cell(row)
        name = show.printable(row[group])
        sizes[name] = max(sizes.get(name, 0), entry.n)
        if entry.chance is not None:
            chances.setdefault(name, entry.chance)
        if entry.value is not None:
            found.setdefault(name, {}).setdefault(short[line], entry.value)
    names = _largest(found, sizes)
    if len(names) < 2:
        return None
    names.sort(key=lambda name: (-np.mean(list(found[name].values())), name))
    labels = [short[line] for line in lines if any(short[line] in found[name] for name in names)]
    top = 1.0 if column.percent else max(max(found[name].values()) for name in names)
    squares = [
        _Square(
            row,
            place,
            show.score(value, percent=column.percent)[:6],
            _shade(_BLUES, value / top if top > 0 else 0.0),
            "white" if value > 0.62 * top else INK,
            f"{name}, {label}: {show.score(value, percent=column.percent)}",
        )
        for row, name in enumerate(names)
        for place, label in enumerate(labels)
        if (value := found[name].get(label)) is not None
    ]
    beside = {
        row: show.score(chances[name], percent=column.percent) for row, name in enumerate(names) if name in chances
    }
    wide = 50.0 if len(labels) <= 6 else 42.0
    marks = _map(names, [*labels, *(["chance"] if beside else [])], squares, wide, "white", 1.5)
    marks += [_written(row, len(labels), text, _CHANCE_INK, wide) for row, text in beside.items()]
    unit = " in percent" if column.percent else ""
    caption = sentences(
        f"{column.label}{unit} by {group} and model, chance beside it",
        _left_out(found, group, len(series)),
    )
    return NamedChart(
        show.file_name("models by", group, column.task, column.metric),
        sentences(caption, counted([sizes[name] for name in names], f"questions for each {group}")),
        drawing(marks),
        title=caption,
        told=f"Heat map: {caption} The numbers are in the tables below.",
    )


def task_heat_charts(
    rows: Iterable[dict[str, Any]], group: str, columns: Sequence[Column], series: Sequence[Series]
) -> list[NamedChart]:
    """For each model, groups (such as domains) by tasks. The number is the score, the colour is told against chance.

    The colour is (score - chance) / (1 - chance): white at chance, blue above it, orange below.
    """
    firsts: dict[str, Column] = {}
    for column in columns:
        if column.percent:
            firsts.setdefault(column.task, column)
    found: dict[Series, dict[tuple[str, Column], Cell]] = {}
    for row in rows:
        own = firsts.get(row["task"])
        line = next((line for line in series if line.covers(row)), None)
        if line is not None and own is not None and row["metric"] == own.metric:
            entry = cell(row)
            if entry.value is not None:
                found.setdefault(line, {}).setdefault((show.printable(row[group]), own), entry)
    groups = {name for cells in found.values() for name, _ in cells}
    tasks = {task for cells in found.values() for _, task in cells}
    if len(groups) < 2 or len(tasks) < 2:
        return []
    return [_task_heat(found[line], line, group, list(firsts.values())) for line in series if line in found]


def _task_heat(
    cells: dict[tuple[str, Column], Cell], line: Series, group: str, columns: Sequence[Column]
) -> NamedChart:
    sizes: dict[str, int] = {}
    by_name: dict[str, list[float]] = {}
    for (name, _), entry in cells.items():
        sizes[name] = sizes.get(name, 0) + entry.n
        by_name.setdefault(name, []).append(_coloured(entry))
    names = _largest(by_name, sizes)
    names.sort(key=lambda name: (-np.mean(by_name[name]), name))
    there = [column for column in columns if any((name, column) in cells for name in names)]
    squares = [
        _square(line, name, column, cells[name, column], row, place)
        for row, name in enumerate(names)
        for place, column in enumerate(there)
        if (name, column) in cells
    ]
    marks = _map(names, [column.label for column in there], squares, 62.0, _RIM, 1.0)
    marks += _colour_legend(extent(marks).bottom + 14)
    title = f"{line.label}: score in percent by {group} and task"
    whole = sentences(
        title,
        "Colours tell it against chance: (score − chance) / (1 − chance)",
        _left_out(by_name, group),
        counted([entry.n for entry in cells.values()], "questions a cell"),
    )
    told = "; ".join(square.about for square in squares)
    return NamedChart(
        show.file_name("tasks by", group, line.label),
        whole,
        drawing(marks),
        title=f"{title}.",
        told=f"Heat map. {told}.",
    )


def _square(line: Series, name: str, column: Column, entry: Cell, row: int, place: int) -> _Square:
    ends = show.interval(entry.low, entry.high)
    about = f"{line.label}, {name}, {column.label}: {show.score(entry.value)}{' ' if ends else ''}{ends}"
    chance = "" if entry.chance is None else f", chance {show.score(entry.chance)}"
    above = _coloured(entry)
    return _Square(
        row,
        place,
        show.score(entry.value),
        _shade(_AGAINST_CHANCE, (above + 1) / 2),
        "white" if abs(above) > 0.6 else INK,
        f"{about}{chance}, n = {entry.n:,}",
    )


def _coloured(entry: Cell) -> float:
    above = above_chance(entry.value, entry.chance or 0.0)
    return max(-1.0, min(1.0, above if above is not None else 0.0))


def _largest(found: dict[str, Any], sizes: dict[str, int]) -> list[str]:
    return sorted(found, key=lambda name: (-sizes[name], name))[:_ROWS]


def _left_out(found: dict[str, Any], group: str, lines: int = 0) -> str:
    more = f"The {_ROWS} with most questions of {len(found)}" if len(found) > _ROWS else ""
    if lines > _LINES:
        more = sentences(more, f"The first {_LINES} models of {lines}")
    return more


def _map(
    names: Sequence[str], labels: Sequence[str], squares: Sequence[_Square], wide: float, rim: str, rim_width: float
) -> list[Mark]:
    """Draw squares with their numbers, the names of rows at the left and those of columns aslant above."""
    centres = [_HIGH * (row + 0.5) for row in range(len(names))]
    return [
        *names_at_left(names, centres),
        *(
            Label(wide * (place + 0.5) - 4, -6, shorten(label, FONT_SIZE, NAMES), angle=SLANT)
            for place, label in enumerate(labels)
        ),
        *(
            Bar(
                *(wide * square.column, _HIGH * square.row, wide, _HIGH, square.fill, square.about),
                stroke=rim,
                stroke_width=rim_width,
            )
            for square in squares
        ),
        *(_written(square.row, square.column, square.text, square.ink, wide) for square in squares),
    ]


def _written(row: int, column: int, text: str, ink: str, wide: float) -> Label:
    """Write the number of a square, dark on light or light on dark."""
    x, y = wide * (column + 0.5), _HIGH * (row + 0.5) + MIDDLE * SMALL
    return Label(x, y, text, "middle", SMALL, fill="" if ink == INK else ink, inert=True)


def _colour_legend(top: float) -> list[Mark]:
    """Explain the colours against chance in steps, of which the middle one is chance."""
    # Each step reaches below the next one, so that no paper shows between them.
    marks: list[Mark] = [
        Bar(
            _STEP * place,
            top,
            _STEP + 0.5 * (place < _STEPS - 1),
            _THICK,
            _shade(_AGAINST_CHANCE, place / (_STEPS - 1)),
        )
        for place in range(_STEPS)
    ]
    baseline = top + _THICK + 12
    width = _STEP * _STEPS
    for x, text, anchor in (
        (0.0, "below chance", "start"),
        (width / 2, "chance", "middle"),
        (width, "all right", "end"),
    ):
        marks.append(Label(x, baseline, text, anchor, SMALL))
    return marks


def _shade(colours: Sequence[str], share: float) -> str:
    """Return the colour at a share of the way through evenly spaced colours."""
    place = min(max(share, 0.0), 1.0) * (len(colours) - 1)
    first = min(int(place), len(colours) - 2)
    pairs = zip(_channels(colours[first]), _channels(colours[first + 1]), strict=True)
    return "#" + "".join(f"{round(a + (b - a) * (place - first)):02x}" for a, b in pairs)


def _channels(colour: str) -> list[int]:
    return [int(colour[start : start + 2], 16) for start in (1, 3, 5)]
