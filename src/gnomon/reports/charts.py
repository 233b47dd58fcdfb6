"""Figures that analyses describe as data: lines over buckets or numbers, stacked bars, and groups of bars."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gnomon.reports import formatting as show
from gnomon.reports.figures import BASELINE, INK, OKABE_ITO, Figure, draw, legend_columns, short_labels
from gnomon.reports.scoreboard import Series

_PARTS = (
    "#0072B2",
    "#E69F00",
    "#009E73",
    "#CC79A7",
    "#56B4E9",
    "#D55E00",
    "#F0E442",
    "#6a3d9a",
    "#8c8c8c",
    "#7f4f24",
    "#a6d96a",
    "#f4a6c0",
)
_POINTS = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down")


_SMALL = 165
"""The width of one of several panels."""
_MOST_TICKS = 8
_MOST_POINTS = 25
"""Beyond so many places along x only some of a line's points are marked."""


@dataclass(frozen=True)
class _Frame:
    """What stands around a figure's rows."""

    caption: str
    x: str
    legend: str
    percent: bool
    identity: str
    baselines: Collection[str]
    log: bool = False
    zero: bool = True


def chart(described: Mapping[str, Any], identity: str, baselines: Collection[str] = ()) -> Figure | None:
    """The figure that an analysis describes; None where there is nothing in it, or where its kind is not known."""
    rows = [row for row in described.get("rows") or () if isinstance(row, Mapping)]
    kinds: Mapping[str, Callable[[Sequence[Mapping[str, Any]], _Frame], Figure | None]] = {
        "lines": _lines,
        "stack": _stack,
        "bars": _bars,
    }
    drawn = kinds.get(str(described.get("kind")))
    if drawn is None or not rows:
        return None
    caption, x, legend = (show.printable(described.get(name) or "") for name in ("caption", "x", "legend"))
    percent = described.get("percent")
    if percent is None:
        known = (show.finite(row.get("value")) for row in rows)
        percent = all(abs(value) <= 1 for value in known if value is not None)
    log, zero = bool(described.get("log")), bool(described.get("zero", True))
    return drawn(rows, _Frame(caption, x, legend, bool(percent), identity, baselines, log, zero))


def _lines(rows: Sequence[Mapping[str, Any]], frame: _Frame) -> Figure | None:
    """A line with points and intervals for each value of ``line``; baselines are grey."""
    import altair as alt

    known = [row for row in rows if show.finite(row.get("value")) is not None]
    if not known:
        return None
    numbers = all(show.finite(row["x"]) is not None for row in known)
    places = list(dict.fromkeys(row["x"] if numbers else show.printable(row["x"]) for row in known))
    marked = set(sorted(places)[:: max(1, round(len(places) / 10))] if len(places) > _MOST_POINTS else places)
    series = {str(row["line"]): Series(str(row["line"])) for row in known}
    short = short_labels(list(series.values()))
    names = {line: show.printable(short[one]) for line, one in series.items()}
    plain = {str(row["line"]) for row in known if str(row.get("model", row["line"])) in frame.baselines}
    models = [line for line in series if line not in plain]
    colour = {line: OKABE_ITO[place % len(OKABE_ITO)] for place, line in enumerate(models)}
    percent = frame.percent
    values = [
        {
            **_measured(row),
            "x": row["x"] if numbers else show.printable(row["x"]),
            "line": names[str(row["line"])],
            "about": f"{show.printable(row['line'])}, {show.printable(row['x'])}: {_spoken(row, percent)}",
        }
        for row in known
    ]
    labels = list(names.values())
    scale = alt.Scale(domain=labels, range=[colour.get(line, BASELINE) for line in names])
    turns = [place + place // len(_POINTS) for place in range(len(labels))]
    shapes = alt.Scale(domain=labels, range=[_POINTS[turn % len(_POINTS)] for turn in turns])
    legend = alt.Legend(
        title=None, orient="bottom", columns=legend_columns(labels, beside=["100%"]), symbolSize=70, labelLimit=180
    )
    scores = alt.Scale(domain=_reach(values, frame.zero) if percent else alt.Undefined, nice=True)
    if percent and not frame.zero:
        scores.zero = False
    y = alt.Y("value:Q", title=None, axis=_value_axis(alt, percent), scale=scores)
    along: dict[str, Any] = {"title": frame.x or None, "axis": _x_axis(alt)}
    if numbers:
        if all(float(place).is_integer() for place in places):
            along["axis"].tickMinStep = 1
        where = {"x": alt.X("x:Q", scale=_along(alt, places, frame.log, along["axis"]), **along)}
    else:
        where = {
            "x": alt.X("x:N", sort=None, scale=alt.Scale(domain=places), **along),
            "xOffset": alt.XOffset("line:N", scale=alt.Scale(domain=labels, paddingOuter=0.9)),
        }
    colours = alt.Color("line:N", scale=scale, legend=legend)
    base = alt.Chart(alt.InlineData(values=values)).encode(color=colours, **where)
    seen = [value for value in values if value["x"] in marked]
    spots = alt.Chart(alt.InlineData(values=seen)).encode(color=colours, **where)
    lines = base.mark_line(strokeWidth=1.6).encode(y=y)
    points = spots.mark_point(filled=True, size=52, opacity=1).encode(
        y=y, shape=alt.Shape("line:N", scale=shapes, legend=legend), description="about:N"
    )
    layers = [lines, points]
    if any(show.finite(row.get("low")) is not None for row in known):
        ends = alt.Y("low:Q", title=None, scale=scores)
        layers.insert(0, base.mark_rule(strokeWidth=1.4).encode(y=ends, y2="high:Q"))
    chart = alt.layer(*layers).properties(width=400, height=190, autosize=_fit(alt))
    told = f"Line chart of {frame.caption}. " + "; ".join(str(value["about"]) for value in seen) + "."
    return Figure(frame.caption, draw(chart, frame.identity, told))


def _bars(rows: Sequence[Mapping[str, Any]], frame: _Frame) -> Figure | None:
    """A panel for each value of ``panel``; in it a group for each x, in the group a bar with its interval."""
    import altair as alt

    known = [row for row in rows if show.finite(row.get("value")) is not None]
    if not known:
        return None
    panels, places, bars = (
        list(dict.fromkeys(show.printable(row.get(name) or "") for row in known)) for name in ("panel", "x", "bar")
    )
    values = [
        {
            **_measured(row),
            **{name: show.printable(row.get(name) or "") for name in ("panel", "x", "bar")},
            "about": f"{', '.join(_titled(row, name, frame) for name in ('panel', 'x', 'bar') if row.get(name))}: "
            f"{_spoken(row, frame.percent)}",
        }
        for row in known
    ]
    small = len(panels) > 1
    legend = alt.Legend(
        title=frame.legend or None,
        orient="bottom",
        titleOrient="left",
        columns=legend_columns(bars, beside=["100%"], title=frame.legend),
        symbolType="square",
        symbolSize=90,
        labelLimit=180,
    )
    colours = [_PARTS[place % len(_PARTS)] for place in range(len(bars))]
    y = alt.Y(
        "value:Q",
        title=None,
        axis=_value_axis(alt, frame.percent),
        scale=alt.Scale(domain=_reach(values) if frame.percent else alt.Undefined, nice=True),
    )
    base = alt.Chart().encode(
        x=alt.X("x:N", title=frame.x or None, sort=None, scale=alt.Scale(domain=places), axis=_x_axis(alt)),
        xOffset=alt.XOffset("bar:N", sort=None, scale=alt.Scale(domain=bars)),
    )
    drawn = base.mark_bar(stroke="white", strokeWidth=0.6).encode(
        y=y,
        color=alt.Color("bar:N", scale=alt.Scale(domain=bars, range=colours), legend=legend),
        description="about:N",
    )
    whiskers = base.mark_rule(stroke=INK, strokeWidth=1.2).encode(y=alt.Y("low:Q", title=None), y2="high:Q")
    layered = alt.layer(drawn, whiskers, data=alt.InlineData(values=values))
    if small:
        header = alt.Header(title=None, labelFontSize=11.5, labelFontWeight="bold", labelColor=INK, labelPadding=4)
        chart = layered.properties(width=_SMALL, height=92).facet(
            facet=alt.Facet("panel:N", sort=panels, header=header), columns=2, spacing={"row": 14, "column": 22}
        )
    else:
        chart = layered.properties(width=400, height=190, autosize=_fit(alt))
    told = f"Bar chart of {frame.caption} " + "; ".join(str(value["about"]) for value in values) + "."
    return Figure(frame.caption, draw(chart, frame.identity, told))


def _stack(rows: Sequence[Mapping[str, Any]], frame: _Frame) -> Figure | None:
    """A bar for each value of ``bar``, its parts laid end to end."""
    import altair as alt

    bars = list(dict.fromkeys(show.printable(row["bar"]) for row in rows))
    parts = list(dict.fromkeys(show.printable(row["part"]) for row in rows))
    values = [
        {
            "bar": show.printable(row["bar"]),
            "part": show.printable(row["part"]),
            "place": parts.index(show.printable(row["part"])),
            "count": row["count"],
            "about": f"{show.printable(row['bar'])}, {show.printable(row['part'])}: {show.count(row['count'])}",
        }
        for row in rows
        if show.finite(row.get("count")) is not None
    ]
    if not any(value["count"] for value in values):
        return None
    colours = [_PARTS[place % len(_PARTS)] for place in range(len(parts))]
    legend = alt.Legend(
        title=None,
        orient="bottom",
        columns=legend_columns(parts, beside=bars),
        symbolType="square",
        symbolSize=90,
        labelLimit=180,
    )
    axis = alt.Axis(format="~s", tickCount=5, gridColor="#ececf0", domain=False, ticks=False, labelFlush=True)
    chart = (
        alt.Chart(alt.InlineData(values=values))
        .mark_bar(height={"band": 0.7}, stroke="white", strokeWidth=0.6)
        .encode(
            y=alt.Y(
                "bar:N",
                title=None,
                scale=alt.Scale(domain=bars),
                axis=alt.Axis(labelLimit=150, ticks=False, domain=False, labelPadding=6),
            ),
            x=alt.X("count:Q", title=None, stack="zero", axis=axis),
            color=alt.Color("part:N", scale=alt.Scale(domain=parts, range=colours), legend=legend),
            order=alt.Order("place:Q"),
            description="about:N",
        )
        .properties(width=400, height={"step": 26}, autosize=_fit(alt))
    )
    spoken = "; ".join(str(value["about"]) for value in values if value["count"])
    return Figure(frame.caption, draw(chart, frame.identity, f"Stacked bars: {frame.caption}. {spoken}."))


def _along(alt: Any, places: Sequence[Any], log: bool, axis: Any) -> Any:
    """The scale of numbers along x; on a logarithmic one the places themselves are ticks, where they are few."""
    if not log or min(places) <= 0:
        return alt.Scale(domain=[min(places), max(places)], nice=False, padding=9)
    axis.format = ".3~s" if min(places) >= 1 else "~g"
    axis.tickMinStep = alt.Undefined
    if len(places) <= _MOST_TICKS:
        axis.values = sorted(places)
        axis.labelOverlap = "greedy"
    # A scale's padding is lost on a logarithmic axis of one place: the domain is widened instead.
    return alt.Scale(type="log", domain=[min(places) / 1.12, max(places) * 1.12], nice=False)


def _measured(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row's value with the ends of its interval, which are the value itself where there is none."""
    ends = {end: row["value"] if show.finite(row.get(end)) is None else row[end] for end in ("low", "high")}
    return {"value": row["value"], **ends}


def _spoken(row: Mapping[str, Any], percent: bool) -> str:
    interval = show.interval(row.get("low"), row.get("high"), percent=percent)
    count = "" if row.get("n") is None else f", n = {show.count(row['n'])}"
    return f"{show.score(row['value'], percent=percent)}{' ' if interval else ''}{interval}{count}"


def _titled(row: Mapping[str, Any], name: str, frame: _Frame) -> str:
    title = {"x": frame.x, "bar": frame.legend}.get(name)
    return show.printable(f"{title} {row[name]}" if title else row[name])


def _reach(values: Sequence[Mapping[str, Any]], zero: bool = True) -> list[float]:
    """From 0, or without it from the tenth below the least end of an interval, to the highest end."""
    least, most = min(float(value["low"]) for value in values), max(float(value["high"]) for value in values)
    return [min(0.0, least) if zero else math.floor(10 * least) / 10, max(0.1, most)]


def _value_axis(alt: Any, percent: bool) -> Any:
    form = ".0%" if percent else "~g"
    return alt.Axis(format=form, tickCount=5, gridColor="#ececf0", domain=False, ticks=False)


def _x_axis(alt: Any) -> Any:
    return alt.Axis(
        labelAngle=0, ticks=False, labelPadding=6, titleFontWeight="normal", labelOverlap="parity", grid=False
    )


def _fit(alt: Any) -> Any:
    return alt.AutoSizeParams(type="fit-x", contains="padding")
