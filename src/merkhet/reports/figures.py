"""The report's figures of scores and of ranks, as charts: a panel for each score, all scores in one, ranks by task."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from merkhet.reports import formatting as show
from merkhet.reports._answer_outcomes import UNUSABLE, Outcomes
from merkhet.reports._axis_scales import Axis, number_labels, percent_labels, value_axis
from merkhet.reports._chart_style import INTERVALS, VERMILION, NamedChart, counted, cut, sentences, short_labels
from merkhet.reports._plot_layout import (
    PANEL,
    ROW,
    Key,
    Part,
    band,
    category_labels,
    columns_frame,
    fit_panel,
    legend_below,
    rows_frame,
    stacked_rows,
    whiskers,
)
from merkhet.reports._svg_marks import FONT_SIZE, INK, PADDING, Bar, Drawing, Mark, Strokes, drawing, extent
from merkhet.reports._text_width import text_width
from merkhet.reports.scoreboard import Cell, Column, Scoreboard, Series

RANK_SHADES = ("#08306b", "#1c5a9c", "#3f85bf", "#74abd6", "#9bc2e1", "#c5daec", "#e9f0f7")
"""From dark to light, so that ranks are told apart in grey."""
_CHANCE_SAID = "the orange mark is chance"
_BAR, _THIN, _BETWEEN, _WIDEST, _LEAST = 17, 9, 22, 620, 180
"""Widths of a bar, of one among many, of the gap between groups and of a row of groups, and its least, in pixels."""
_LONGEST = 110
"""Width of the longest word below a group."""
_FEW = 6
_HEIGHT = 210


@dataclass(frozen=True)
class _ScoreBar:
    """A score as a bar: its interval is the value itself where there is none."""

    name: str
    value: float
    low: float
    high: float
    chance: float | None
    colour: str
    about: str
    series: Series


def score_charts(board: Scoreboard, colours: dict[Series, str]) -> list[NamedChart]:
    """For each headline score, a bar for each model with its interval, and a tick at chance."""
    shown = [
        column for column in board.columns if any(_value(board, line, column) is not None for line in board.series)
    ]
    ends = [end for column in shown if column.percent for line in board.series for end in _ends(board, line, column)]
    top = next((limit for limit in (0.1, 0.25, 0.5, 1.0) if max(ends, default=1.0) <= limit), 1.0)
    least = math.floor(min([0.0, *ends]) * 10) / 10
    names = short_labels(board.series)
    charts = []
    for column in shown:
        bars = [_bar(line, names[line], column, found, colours) for line, found in _cells(board, column)]
        title = cut(column.label, 60)
        if column.percent:
            axis = value_axis(least, top, percent_labels, title=title, nice=False)
        else:
            known = [0.0, *(end for bar in bars for end in (bar.low, bar.high, bar.chance) if end is not None)]
            axis = value_axis(min(known), max(known), number_labels, title=title)
        charts.append(
            NamedChart(
                show.file_name("scores", column.task, column.metric),
                _caption(f"{column.label} by model", board, [column]),
                _score_panel(bars, axis),
                title=column.label,
                told=f"Bar chart of {column.label}. {'; '.join(bar.about for bar in bars)}.",
            )
        )
    return charts


def _score_panel(bars: Sequence[_ScoreBar], axis: Axis) -> Drawing:
    def build(room: float) -> list[Mark]:
        frame = rows_frame([bar.name for bar in bars], axis, room)
        x, high = frame.scale, 0.62 * ROW
        rows = list(zip(bars, frame.centres, strict=True))
        chances = tuple((x(bar.chance), y - 10, x(bar.chance), y + 10) for bar, y in rows if bar.chance is not None)
        return [
            *frame.marks,
            *(
                Bar(min(x(0), x(bar.value)), y - high / 2, abs(x(bar.value) - x(0)), high, bar.colour, bar.about)
                for bar, y in rows
            ),
            *whiskers(((x(bar.low), y, x(bar.high), y) for bar, y in rows if bar.low < bar.high), caps=7),
            *([Strokes(chances, VERMILION, 2.4)] if chances else []),
        ]

    return fit_panel(build)


def grouped_chart(board: Scoreboard, colours: dict[Series, str], baselines: Collection[str] = ()) -> NamedChart | None:
    """All headline scores that are shares in one figure: a group for each score, in it a bar for each model."""
    columns = [column for column in board.columns if column.percent and _cells(board, column)]
    series = [line for line in board.series if any(_value(board, line, column) is not None for column in columns)]
    if not columns:
        return None
    names = short_labels(series)
    bar = _BAR if len(series) <= _FEW else _THIN
    words = (word for column in columns for word in column.label.split(" "))
    wide = max(len(series) * bar + _BETWEEN, min(_LONGEST, max(text_width(word, FONT_SIZE) + 10 for word in words)))
    rows_needed = math.ceil(len(columns) / max(1, int(_WIDEST // wide)))
    in_a_row = math.ceil(len(columns) / rows_needed)
    found = {
        column: [_bar(line, names[line], column, entry, colours) for line, entry in _cells(board, column)]
        for column in columns
    }
    ends = [end for bars in found.values() for one in bars for end in (one.low, one.high, one.chance)]
    known = [end for end in ends if end is not None]
    axis = value_axis(min(0.0, *known), max(0.1, *known), percent_labels, title="score")
    marks: list[Mark] = []
    for start in range(0, len(columns), in_a_row):
        own = {column: found[column] for column in columns[start : start + in_a_row]}
        top = extent(marks).bottom + 18 if marks else 0.0
        marks += _row_of_groups(own, series, axis, top, bar, max(_LEAST, len(own) * wide), baselines)
    keys = [Key(names[line], colours[line], stroke=INK) for line in series]
    marks += legend_below(marks, keys, width=PANEL - 2 * PADDING)
    left = [column.label for column in board.columns if column not in columns]
    caption = _caption("Scores by task and model", board, columns)
    if len(series) > 2:
        caption = sentences(caption, "Bars are in the order of the legend")
    if left:
        caption = sentences(caption, f"Not drawn, for it is no share or has no value: {', '.join(left)}")
    told = "; ".join(f"{column.label}, {one.about}" for column, bars in found.items() for one in bars)
    return NamedChart("scores", caption, drawing(marks), told=f"Bar chart: {told}.")


def _row_of_groups(
    groups: dict[Column, list[_ScoreBar]],
    series: Sequence[Series],
    axis: Axis,
    top: float,
    bar: float,
    room: float,
    baselines: Collection[str],
) -> list[Mark]:
    """Draw groups of bars side by side, a group for each score; each model has its place in every group."""
    frame, y = columns_frame(axis, 0.0, room, top, _HEIGHT)
    pitch = room / len(groups)
    wide = band(pitch, len(series) * bar) / len(series)
    centres = [pitch * (place + 0.5) for place in range(len(groups))]
    placed = [
        (one, centre + wide * (series.index(one.series) - len(series) / 2))
        for centre, bars in zip(centres, groups.values(), strict=True)
        for one in bars
    ]
    chances = tuple((x, y(one.chance), x + wide, y(one.chance)) for one, x in placed if one.chance is not None)
    return [
        *frame,
        *(
            Bar(
                *(x, min(y(0), y(one.value)), wide, abs(y(one.value) - y(0)), one.colour, one.about),
                stroke=INK,
                stroke_width=0.7,
                dash=(3, 2) if one.series.model in baselines else (),
            )
            for one, x in placed
        ),
        *whiskers((x + wide / 2, y(one.low), x + wide / 2, y(one.high)) for one, x in placed if one.low < one.high),
        *([Strokes(chances, VERMILION, 2.2)] if chances else []),
        *category_labels([column.label for column in groups], centres, pitch, top + _HEIGHT),
    ]


def _cells(board: Scoreboard, column: Column) -> list[tuple[Series, Cell]]:
    """The lines that have a value in the column."""
    found = ((line, board.cells.get((line, column))) for line in board.series)
    return [(line, own) for line, own in found if own is not None and own.value is not None]


def _bar(line: Series, name: str, column: Column, found: Cell, colours: dict[Series, str]) -> _ScoreBar:
    value = found.value or 0.0
    return _ScoreBar(
        name,
        value,
        found.low if found.low is not None else value,
        found.high if found.high is not None else value,
        found.chance,
        colours[line],
        f"{line.label}: {_spoken(found, column)}",
        line,
    )


def _caption(what: str, board: Scoreboard, columns: Sequence[Column]) -> str:
    cells = [found for column in columns for _, found in _cells(board, column)]
    parts = [counted([found.n for found in cells], "questions" if len(columns) == 1 else "questions a score")]
    if any(found.low is not None for found in cells):
        parts.append(f"thin lines are {INTERVALS}")
    if any(found.chance is not None for found in cells):
        parts.append(_CHANCE_SAID)
    said = "; ".join(part for part in parts if part)
    return sentences(what, said[:1].upper() + said[1:] if not said.startswith("n =") else said)


def rank_charts(judged: Outcomes) -> list[NamedChart]:
    """For each task, how many of a model's questions have their best right answer at rank 1, 2, 3 and so on."""
    charts = []
    names = short_labels(judged.series)
    usable = (judged.verdict != UNUSABLE) & ~np.isnan(judged.rank)
    for task, name in enumerate(judged.tasks):
        here = usable & (judged.task == task) & (judged.line >= 0)
        if not here.any():
            continue
        limit = max(int(judged.choices[judged.question[here]].max()), math.ceil(judged.rank[here].max()))
        edges, labels = rank_bins(limit)
        shades = _shades(len(labels))
        rows: dict[str, list[Part]] = {}
        sizes = []
        for index, line in enumerate(judged.series):
            ranks = judged.rank[here & (judged.line == index)]
            if not len(ranks):
                continue
            sizes.append(len(ranks))
            shares = np.bincount(np.searchsorted(edges, ranks, side="left"), minlength=len(labels)) / len(ranks)
            rows[names[line]] = [
                Part(float(share), shade, f"{line.label}, rank {label}: {show.score(share)}% of {len(ranks):,}")
                for label, share, shade in zip(labels, shares.tolist(), shades, strict=True)
            ]
        axis = value_axis(0.0, 1.0, percent_labels, title="share of questions")
        keys = [Key(label, shade) for label, shade in zip(labels, shades, strict=True)]
        told = "; ".join(f"{line} {show.score(parts[0].size)}%" for line, parts in rows.items())
        title = show.printable(name)
        charts.append(
            NamedChart(
                show.file_name("ranks", name),
                sentences(
                    f"{title}: rank of the best right answer",
                    "Candidates that tie have the mean of their ranks",
                    counted(sizes),
                ),
                stacked_rows(rows, axis, keys, title="rank"),
                title=title,
                told=f"Rank of the best right answer, {name}. At rank 1: {told}.",
            )
        )
    return charts


def _shades(count: int) -> list[str]:
    """Shades for so many bins, spread from dark to light."""
    last = min(len(RANK_SHADES), max(count, len(RANK_SHADES) - 1)) - 1
    return [RANK_SHADES[round(place * last / max(1, count - 1))] for place in range(count)]


def rank_bins(limit: int) -> tuple[list[float], list[str]]:
    """Upper edges of all bins but the last, and a label for each: single ranks for few candidates, else widening."""
    if limit <= 5:
        ends = list(range(1, max(limit, 2) + 1))
    else:
        ends = [end for end in (1, 2, 5, 10, 100, 1000) if end < limit]
        ends.append(limit)
    starts = [1, *(end + 1 for end in ends[:-1])]
    labels = [f"{a:,}" if a == b else f"{a:,}–{b:,}" for a, b in zip(starts, ends, strict=True)]
    return [float(end) for end in ends[:-1]], labels


def _value(board: Scoreboard, line: Series, column: Column) -> float | None:
    found = board.cells.get((line, column))
    return found.value if found else None


def _ends(board: Scoreboard, line: Series, column: Column) -> list[float]:
    found = board.cells.get((line, column))
    return [end for end in (found.value, found.low, found.high, found.chance) if end is not None] if found else []


def _spoken(found: Cell, column: Column) -> str:
    text = show.score(found.value, percent=column.percent)
    ends = show.interval(found.low, found.high, percent=column.percent)
    chance = "" if found.chance is None else f", chance {show.score(found.chance, percent=column.percent)}"
    return f"{text}{' ' if ends else ''}{ends}{chance}, n = {found.n:,}"
