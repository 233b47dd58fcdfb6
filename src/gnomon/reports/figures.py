"""The report's figures of scores and of ranks, as charts: a panel for each score, all scores in one, ranks by task."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
from rich.cells import cell_len

from gnomon.reports import formatting as show
from gnomon.reports.drawing import (
    INK,
    INTERVALS,
    PANEL,
    VERMILION,
    Figure,
    NamedChart,
    across,
    bands,
    can_draw,
    counted,
    cut,
    drawn,
    legend_columns,
    line_colours,
    names_axis,
    panel,
    sentences,
    short_labels,
    value_axis,
    whiskers,
    wrapped_axis,
)
from gnomon.reports.outcomes import UNUSABLE, Outcomes
from gnomon.reports.scoreboard import Cell, Column, Scoreboard, Series

__all__ = [
    "Figure",
    "can_draw",
    "drawn",
    "grouped_chart",
    "legend_columns",
    "line_colours",
    "rank_bins",
    "rank_charts",
    "score_charts",
    "short_labels",
]

RANK_SHADES = ("#08306b", "#1c5a9c", "#3f85bf", "#74abd6", "#9bc2e1", "#c5daec", "#e9f0f7")
"""From dark to light, so that ranks are told apart in grey."""
_CHANCE_SAID = "the orange mark is chance"
_BAR, _THIN, _BETWEEN, _ROW, _LEAST = 17, 9, 22, 620, 180
"""Widths of a bar, of one among many, of the gap between groups and of a row of groups, and its least, in pixels."""
_LETTER, _LONGEST = 6.4, 110
"""Widths of a letter and of the longest word below a group."""
_FEW = 6


def score_charts(board: Scoreboard, colours: dict[Series, str]) -> list[NamedChart]:
    """For each headline score, a bar for each model with its interval, and a tick at chance."""
    import altair as alt

    shown = [
        column for column in board.columns if any(_value(board, line, column) is not None for line in board.series)
    ]
    ends = [end for column in shown if column.percent for line in board.series for end in _ends(board, line, column)]
    top = next((limit for limit in (0.1, 0.25, 0.5, 1.0) if max(ends, default=1.0) <= limit), 1.0)
    least = min([0.0, *ends])
    names = short_labels(board.series)
    charts = []
    for column in shown:
        values = [_bar(line, names[line], column, found, colours) for line, found in _cells(board, column)]
        domain = [math.floor(least * 10) / 10, top] if column.percent else alt.Undefined
        scale = alt.Scale(domain=domain, nice=not column.percent)
        x = alt.X("value:Q", title=cut(column.label, 60), scale=scale, axis=across(alt, column.percent))
        y = alt.Y("line:N", title=None, sort=None, axis=names_axis(alt))
        base = alt.Chart(alt.InlineData(values=values)).encode(y=y)
        colour = alt.Color("colour:N", scale=None, legend=None)
        bars = base.mark_bar(height={"band": 0.62}).encode(x=x, color=colour, description="about:N")
        thin = whiskers(base, x="low:Q", x2="high:Q")
        ended = base.transform_filter("datum.low < datum.high")
        caps = [
            ended.mark_tick(color=INK, opacity=1, thickness=1.4, size=7).encode(x=f"{end}:Q") for end in ("low", "high")
        ]
        chance = (
            base.transform_filter("isValid(datum.chance)")
            .mark_tick(color=VERMILION, opacity=1, thickness=2.4, size=20)
            .encode(x="chance:Q")
        )
        charts.append(
            NamedChart(
                show.file_name("scores", column.task, column.metric),
                _caption(f"{column.label} by model", board, [column]),
                alt.layer(bars, *thin, *caps, chance).properties(**panel(alt)),
                title=column.label,
                told=_told(column.label, values),
            )
        )
    return charts


def grouped_chart(board: Scoreboard, colours: dict[Series, str], baselines: Collection[str] = ()) -> NamedChart | None:
    """All headline scores that are shares in one figure: a group for each score, in it a bar for each model."""
    import altair as alt

    columns = [column for column in board.columns if column.percent and _cells(board, column)]
    series = [line for line in board.series if any(_value(board, line, column) is not None for column in columns)]
    if not columns:
        return None
    names = short_labels(series)
    labels = [names[line] for line in series]
    bar = _BAR if len(series) <= _FEW else _THIN
    words = (word for column in columns for word in column.label.split(" "))
    wide = max(len(series) * bar + _BETWEEN, min(_LONGEST, max(_LETTER * cell_len(word) + 10 for word in words)))
    rows_needed = math.ceil(len(columns) / max(1, _ROW // wide))
    in_a_row = math.ceil(len(columns) / rows_needed)
    scale = alt.Scale(domain=labels, range=[colours[line] for line in series])
    legend = alt.Legend(
        title=None,
        orient="bottom",
        symbolType="square",
        symbolSize=90,
        symbolStrokeWidth=0.7,
        labelLimit=180,
        columns=legend_columns(labels, room=max(PANEL, in_a_row * wide)),
    )
    found = {column: _grouped(board, column, names, colours, baselines) for column in columns}
    ends = [value[end] for values in found.values() for value in values for end in ("low", "high", "chance")]
    known = [end for end in ends if end is not None]
    domain = [min(0.0, *known), max(0.1, *known)] if known else [0.0, 1.0]
    rows = []
    for start in range(0, len(columns), in_a_row):
        own = columns[start : start + in_a_row]
        values = [value for column in own for value in found[column]]
        room = max(_LEAST, len(own) * wide)
        x = alt.X(
            "group:N",
            title=None,
            sort=None,
            scale=bands(alt, [column.label for column in own], len(series) * bar, room),
            axis=wrapped_axis(alt, [column.label for column in own], wide),
        )
        offset = alt.XOffset("line:N", sort=None, scale=alt.Scale(domain=labels))
        base = alt.Chart(alt.InlineData(values=values)).encode(x=x, xOffset=offset)
        y = alt.Y("value:Q", title="score", axis=value_axis(alt, True), scale=alt.Scale(domain=domain, nice=True))
        dashes = alt.condition("datum.baseline", alt.value([3, 2]), alt.value([1, 0]))
        bars = base.mark_bar(stroke=INK, strokeWidth=0.7).encode(
            y=y, color=alt.Color("line:N", scale=scale, legend=legend), strokeDash=dashes, description="about:N"
        )
        thin = whiskers(base, y=alt.Y("low:Q", title="score"), y2="high:Q")
        chance = (
            base.transform_filter("isValid(datum.chance)")
            .mark_tick(color=VERMILION, opacity=1, thickness=2.2, size=bar)
            .encode(y=alt.Y("chance:Q", title="score"))
        )
        rows.append(alt.layer(bars, *thin, chance).properties(width=room, height=210))
    left = [column.label for column in board.columns if column not in columns]
    caption = _caption("Scores by task and model", board, columns)
    if len(series) > 2:
        caption = sentences(caption, "Bars are in the order of the legend")
    if left:
        caption = sentences(caption, f"Not drawn, for it is no share or has no value: {', '.join(left)}")
    told = "; ".join(f"{value['group']}, {value['about']}" for values in found.values() for value in values)
    return NamedChart(
        "scores", caption, rows[0] if len(rows) == 1 else alt.vconcat(*rows, spacing=18), told=f"Bar chart: {told}."
    )


def _grouped(
    board: Scoreboard,
    column: Column,
    names: dict[Series, str],
    colours: dict[Series, str],
    baselines: Collection[str],
) -> list[dict[str, Any]]:
    return [
        {
            **_bar(line, names[line], column, found, colours),
            "group": column.label,
            "baseline": line.model in baselines,
        }
        for line, found in _cells(board, column)
    ]


def _cells(board: Scoreboard, column: Column) -> list[tuple[Series, Cell]]:
    """The lines that have a value in the column."""
    found = ((line, board.cells.get((line, column))) for line in board.series)
    return [(line, own) for line, own in found if own is not None and own.value is not None]


def _bar(line: Series, name: str, column: Column, found: Cell, colours: dict[Series, str]) -> dict[str, Any]:
    return {
        "line": name,
        "value": found.value,
        "low": found.low if found.low is not None else found.value,
        "high": found.high if found.high is not None else found.value,
        "chance": found.chance,
        "colour": colours[line],
        "about": f"{line.label}: {_spoken(found, column)}",
    }


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
    import altair as alt

    charts = []
    names = short_labels(judged.series)
    usable = (judged.verdict != UNUSABLE) & ~np.isnan(judged.rank)
    for task, name in enumerate(judged.tasks):
        here = usable & (judged.task == task) & (judged.line >= 0)
        if not here.any():
            continue
        limit = max(int(judged.choices[judged.question[here]].max()), math.ceil(judged.rank[here].max()))
        edges, labels = rank_bins(limit)
        values = []
        sizes = []
        for index, line in enumerate(judged.series):
            ranks = judged.rank[here & (judged.line == index)]
            if not len(ranks):
                continue
            sizes.append(len(ranks))
            shares = np.bincount(np.searchsorted(edges, ranks, side="left"), minlength=len(labels)) / len(ranks)
            values += [
                {
                    "line": names[line],
                    "bin": label,
                    "place": place,
                    "share": float(share),
                    "about": f"{line.label}, rank {label}: {show.score(float(share))}% of {len(ranks):,}",
                }
                for place, (label, share) in enumerate(zip(labels, shares, strict=True))
            ]
        lines = list(dict.fromkeys(str(value["line"]) for value in values))
        shades = alt.Scale(domain=labels, range=_shades(len(labels)))
        legend = alt.Legend(
            title="rank",
            orient="bottom",
            titleOrient="left",
            symbolSize=90,
            columns=legend_columns(labels, beside=lines, title="rank"),
            columnPadding=7,
            symbolType="square",
            labelOffset=2,
        )
        x = alt.X(
            "share:Q",
            title="share of questions",
            stack="zero",
            scale=alt.Scale(domain=[0, 1]),
            axis=across(alt, True),
        )
        chart = (
            alt.Chart(alt.InlineData(values=values))
            .mark_bar(height={"band": 0.7}, stroke="white", strokeWidth=0.6)
            .encode(
                y=alt.Y("line:N", title=None, scale=alt.Scale(domain=lines), axis=names_axis(alt)),
                x=x,
                color=alt.Color("bin:N", scale=shades, legend=legend),
                order=alt.Order("place:Q"),
                description="about:N",
            )
            .properties(**panel(alt))
        )
        first = [value for value in values if value["place"] == 0]
        told = "; ".join(f"{value['line']} {show.score(value['share'])}%" for value in first)
        title = show.printable(name)
        charts.append(
            NamedChart(
                show.file_name("ranks", name),
                sentences(
                    f"{title}: rank of the best right answer",
                    "Candidates that tie have the mean of their ranks",
                    counted(sizes),
                ),
                chart,
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


def _told(title: str, values: list[dict[str, Any]]) -> str:
    return f"Bar chart of {title}. " + "; ".join(str(value["about"]) for value in values) + "."
