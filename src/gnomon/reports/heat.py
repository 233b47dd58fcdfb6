"""Heat maps: groups by models for one score, and groups by tasks for one model, told against chance."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from gnomon.reports import formatting as show
from gnomon.reports.drawing import INK, NAMES, SMALL, NamedChart, counted, names_axis, sentences, short_labels
from gnomon.reports.scoreboard import Cell, Column, Series, above_chance, cell

_ROWS = 40
_LINES = 24
_CHANCE = "\u200achance"
_AGAINST_CHANCE = {-1.0: "#b35806", -0.5: "#f1b26e", 0.0: "#f7f7f7", 0.5: "#7fb3d8", 1.0: "#08519c"}
"""Orange and blue, which people with any colour vision tell apart; the numbers tell them apart in grey."""
_RIM = "#d8d8de"


def heat_chart(rows: list[dict[str, Any]], group: str, column: Column, series: Sequence[Series]) -> NamedChart | None:
    """Groups by models for one score, chance beside them; at most the forty groups with most questions."""
    import altair as alt

    found: dict[str, dict[str, Any]] = {}
    sizes: dict[str, int] = {}
    chances: dict[str, float] = {}
    lines = list(series)[:_LINES]
    short = short_labels(lines)
    for row in rows:
        line = next((line for line in lines if line.covers(row)), None)
        entry = cell(row)
        name = show.printable(row[group])
        if line is None or (row["task"], row["metric"]) != (column.task, column.metric):
            continue
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
    values = [
        {
            "group": name,
            "line": label,
            "value": value,
            "text": show.score(value, percent=column.percent)[:6],
            "ink": "white" if value > 0.62 * top else INK,
            "about": f"{name}, {label}: {show.score(value)}",
        }
        for name in names
        for label in labels
        if (value := found[name].get(label)) is not None
    ]
    beside = [
        {"group": name, "line": _CHANCE, "text": show.score(chances[name], percent=column.percent)}
        for name in names
        if name in chances
    ]
    wide = 50 if len(labels) <= 6 else 42
    y, x = _places(alt, names, [*labels, *([_CHANCE] if beside else [])])
    shade = alt.Scale(domain=[0, top], scheme="blues")
    base = alt.Chart(alt.InlineData(values=values)).encode(y=y, x=x)
    squares = base.mark_rect(stroke="white", strokeWidth=1.5).encode(
        color=alt.Color("value:Q", scale=shade, legend=None), description="about:N"
    )
    inks = {ink: [value for value in values if value["ink"] == ink] for ink in ("white", INK)} | {"#a03c00": beside}
    chart = alt.layer(squares, *_written(alt, inks, x, y)).properties(width=alt.Step(wide), height=alt.Step(21))
    unit = " in percent" if column.percent else ""
    caption = sentences(
        f"{column.label}{unit} by {group} and model, chance beside it",
        _left_out(found, group, len(series)),
    )
    return NamedChart(
        show.file_name("models by", group, column.task, column.metric),
        sentences(caption, counted([sizes[name] for name in names], f"questions for each {group}")),
        chart,
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
    import altair as alt

    sizes: dict[str, int] = {}
    by_name: dict[str, list[float]] = {}
    for (name, _), entry in cells.items():
        sizes[name] = sizes.get(name, 0) + entry.n
        by_name.setdefault(name, []).append(_coloured(entry))
    names = _largest(by_name, sizes)
    names.sort(key=lambda name: (-np.mean(by_name[name]), name))
    there = [column for column in columns if any((name, column) in cells for name in names)]
    values = [
        _square(line, name, column, cells[name, column])
        for name in names
        for column in there
        if (name, column) in cells
    ]
    y, x = _places(alt, names, [column.label for column in there], x_field="task")
    legend = alt.Legend(
        title=None,
        orient="bottom",
        direction="horizontal",
        gradientLength=210,
        gradientThickness=10,
        gradientStrokeColor=_RIM,
        gradientStrokeWidth=0.6,
        values=[-1, 0, 1],
        labelExpr="datum.value == 0 ? 'chance' : datum.value > 0 ? 'all right' : 'below chance'",
        labelLimit=120,
    )
    shade = alt.Scale(domain=list(_AGAINST_CHANCE), range=list(_AGAINST_CHANCE.values()), interpolate="lab")
    base = alt.Chart(alt.InlineData(values=values)).encode(y=y, x=x)
    squares = base.mark_rect(stroke=_RIM, strokeWidth=1).encode(
        color=alt.Color("above:Q", scale=shade, legend=legend), description="about:N"
    )
    inks = {ink: [value for value in values if value["ink"] == ink] for ink in ("white", INK)}
    chart = alt.layer(squares, *_written(alt, inks, x, y)).properties(width=alt.Step(62), height=alt.Step(21))
    title = f"{line.label}: score in percent by {group} and task"
    whole = sentences(
        title,
        "Colours tell it against chance: (score − chance) / (1 − chance)",
        _left_out(by_name, group),
        counted([entry.n for entry in cells.values()], "questions a cell"),
    )
    told = "; ".join(str(value["about"]) for value in values)
    return NamedChart(
        show.file_name("tasks by", group, line.label), whole, chart, title=f"{title}.", told=f"Heat map. {told}."
    )


def _square(line: Series, name: str, column: Column, entry: Cell) -> dict[str, Any]:
    ends = show.interval(entry.low, entry.high)
    about = f"{line.label}, {name}, {column.label}: {show.score(entry.value)}{' ' if ends else ''}{ends}"
    chance = "" if entry.chance is None else f", chance {show.score(entry.chance)}"
    above = _coloured(entry)
    return {
        "group": name,
        "task": column.label,
        "above": above,
        "text": show.score(entry.value),
        "ink": "white" if abs(above) > 0.6 else INK,
        "about": f"{about}{chance}, n = {entry.n:,}",
    }


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


def _places(alt: Any, names: Sequence[str], labels: Sequence[str], x_field: str = "line") -> tuple[Any, Any]:
    y = alt.Y("group:N", title=None, scale=alt.Scale(domain=names), axis=names_axis(alt))
    axis = alt.Axis(
        orient="top", labelAngle=-38, labelLimit=NAMES, ticks=False, domain=False, labelPadding=6, labelAlign="left"
    )
    return y, alt.X(f"{x_field}:N", title=None, scale=alt.Scale(domain=list(labels)), axis=axis)


def _written(alt: Any, inks: dict[str, list[dict[str, Any]]], x: Any, y: Any) -> list[Any]:
    """The numbers in the squares, dark on light and light on dark."""
    return [
        alt.Chart(alt.InlineData(values=written)).mark_text(fontSize=SMALL, color=ink).encode(y=y, x=x, text="text:N")
        for ink, written in inks.items()
        if written
    ]
