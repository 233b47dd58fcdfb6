"""Figures that analyses describe as data: lines over buckets or numbers, stacked bars, and groups of bars."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gnomon.reports import formatting as show
from gnomon.reports.drawing import (
    DASHES,
    DOTTED,
    GRID,
    INK,
    PANEL,
    PARTS,
    POINTS,
    SMALL,
    Figure,
    NamedChart,
    bands,
    colours_of,
    counted,
    drawn,
    fit,
    legend_columns,
    measured,
    names_axis,
    panel,
    reach,
    sentences,
    short_labels,
    value_axis,
    whiskers,
    wrapped_axis,
)
from gnomon.reports.scoreboard import Series

_SMALL = 138
"""The width of one of several panels."""
_ROOM = PANEL - 55
"""The width of a panel beside the axis of its scores."""
_CAPITAL = 7.8
_WIDEST = 46
"""The widths of a capital letter, and of a bar where there are few."""
_HEIGHT = 190
_MOST_TICKS = 8
_MOST_POINTS = 25
"""Beyond so many places along x only some of a line's points are marked."""


@dataclass(frozen=True)
class _Frame:
    """What stands around a figure's rows."""

    name: str
    caption: str
    x: str
    y: str
    legend: str
    percent: bool
    baselines: Collection[str]
    log: bool = False
    zero: bool = True

    def named(
        self, chart: Any, told: str, rows: Sequence[Mapping[str, Any]], of: str, starts: float = 0.0
    ) -> NamedChart:
        """The chart with its caption, which says how much is behind each of its points and what the thin lines are."""
        sizes = [int(size) for row in rows if (size := show.finite(row.get("n"))) is not None]
        thin = any(show.finite(row.get("low")) is not None for row in rows)
        more = "Thin lines are 95% bootstrap intervals" if thin else ""
        above = f"The axis of scores begins at {starts:.0%}" if starts > 0 else ""
        whole = sentences(self.caption, more, counted(sizes, of), above)
        return NamedChart(self.name, whole, chart, title=self.caption, told=told)


def chart(described: Mapping[str, Any], identity: str, baselines: Collection[str] = ()) -> Figure | None:
    """The figure that an analysis describes, drawn; None where there is nothing in it, or its kind is not known."""
    found = described_chart(described, identity, baselines)
    return None if found is None else drawn(found, identity)


def described_chart(described: Mapping[str, Any], name: str, baselines: Collection[str] = ()) -> NamedChart | None:
    """The chart that an analysis describes; None where there is nothing in it, or its kind is not known."""
    rows = [row for row in described.get("rows") or () if isinstance(row, Mapping)]
    kinds: Mapping[str, Callable[[Sequence[Mapping[str, Any]], _Frame], NamedChart | None]] = {
        "lines": _lines,
        "stack": _stack,
        "bars": _bars,
    }
    made = kinds.get(str(described.get("kind")))
    if made is None or not rows:
        return None
    caption, x, y, legend = (show.printable(described.get(key) or "") for key in ("caption", "x", "y", "legend"))
    percent = described.get("percent")
    if percent is None:
        known = (show.finite(row.get("value")) for row in rows)
        percent = all(abs(value) <= 1 for value in known if value is not None)
    log, zero = bool(described.get("log")), bool(described.get("zero", True))
    y = y or ("score" if percent else "value")
    return made(rows, _Frame(name, caption, x, y, legend, bool(percent), baselines, log, zero))


def _lines(rows: Sequence[Mapping[str, Any]], frame: _Frame) -> NamedChart | None:
    """A line with points and intervals for each value of ``line``, with a shape and a dash of its own; baselines are
    grey and dotted."""
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
    percent = frame.percent
    values = [
        {
            **measured(row),
            "x": row["x"] if numbers else show.printable(row["x"]),
            "line": names[str(row["line"])],
            "about": f"{show.printable(row['line'])}, {show.printable(row['x'])}: {_spoken(row, percent)}",
        }
        for row in known
    ]
    labels = list(names.values())
    legend = alt.Legend(
        title=None, orient="bottom", columns=legend_columns(labels, room=_ROOM), symbolSize=70, labelLimit=180
    )
    colour, shape, dash = _told_apart(alt, names, plain, legend)
    domain = reach(values, frame.zero) if percent else None
    scores = alt.Scale(domain=domain or alt.Undefined, nice=True)
    if percent and not frame.zero:
        scores.zero = False
    y = alt.Y("value:Q", title=frame.y, axis=value_axis(alt, percent), scale=scores)
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
    base = alt.Chart(alt.InlineData(values=values)).encode(color=colour, **where)
    seen = [value for value in values if value["x"] in marked]
    spots = alt.Chart(alt.InlineData(values=seen)).encode(color=colour, **where)
    lines = base.mark_line(strokeWidth=1.6).encode(y=y, strokeDash=dash)
    points = spots.mark_point(filled=True, size=52, opacity=1).encode(y=y, shape=shape, description="about:N")
    layers = [lines, points]
    if any(show.finite(row.get("low")) is not None for row in known):
        ends = alt.Y("low:Q", title=frame.y, scale=scores)
        layers.insert(0, base.mark_rule(strokeWidth=1.4).encode(y=ends, y2="high:Q"))
    chart = alt.layer(*layers).properties(width=PANEL, height=_HEIGHT, autosize=fit(alt))
    told = f"Line chart of {frame.caption}. " + "; ".join(str(value["about"]) for value in seen) + "."
    return frame.named(chart, told, known, "questions a point", domain[0] if domain else 0.0)


def _told_apart(alt: Any, names: Mapping[str, str], plain: Collection[str], legend: Any) -> tuple[Any, Any, Any]:
    """Colours, shapes and dashes of lines: what one reader cannot tell apart by colour is told by the others."""
    labels = list(names.values())
    turns = [place + place // len(POINTS) for place in range(len(labels))]
    models = [line for line in names if line not in plain]
    dashes = {line: DASHES[place % len(DASHES)] for place, line in enumerate(models)}
    scales = (
        alt.Scale(domain=labels, range=colours_of([line in plain for line in names])),
        alt.Scale(domain=labels, range=[POINTS[turn % len(POINTS)] for turn in turns]),
        alt.Scale(domain=labels, range=[list(dashes.get(line, DOTTED)) for line in names]),
    )
    return (
        alt.Color("line:N", scale=scales[0], legend=legend),
        alt.Shape("line:N", scale=scales[1], legend=legend),
        alt.StrokeDash("line:N", scale=scales[2], legend=None),
    )


def _bars(rows: Sequence[Mapping[str, Any]], frame: _Frame) -> NamedChart | None:
    """A panel for each value of ``panel``; in it a group for each x, in the group a bar with its interval.

    Where x and bar both have titles (P1, P2), a bar is a setting of its own and is named after both (EX/NO).
    """
    import altair as alt

    known = [row for row in rows if show.finite(row.get("value")) is not None]
    if not known:
        return None
    panels, places, bars = (
        list(dict.fromkeys(show.printable(row.get(name) or "") for row in known)) for name in ("panel", "x", "bar")
    )
    heads = {one.model: label for one, label in short_labels([Series(name) for name in panels]).items()}
    values: list[dict[str, Any]] = [
        {
            **measured(row),
            **{name: show.printable(row.get(name) or "") for name in ("x", "bar")},
            "panel": heads[show.printable(row.get("panel") or "")],
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
        columns=legend_columns(bars, title=frame.legend, room=_ROOM),
        symbolType="square",
        symbolSize=90,
        symbolStrokeWidth=0.7,
        labelLimit=180,
    )
    colours = [PARTS[place % len(PARTS)] for place in range(len(bars))]
    scores = alt.Scale(domain=reach(values) if frame.percent else alt.Undefined, nice=True)
    y = alt.Y("value:Q", title=frame.y, axis=value_axis(alt, frame.percent), scale=scores)
    if frame.x and frame.legend:
        for value in values:
            value["setting"] = f"{value['x']}/{value['bar']}"
        there = {value["setting"] for value in values}
        settings = [name for x in places for bar in bars if (name := f"{x}/{bar}") in there]
        axis = wrapped_axis(alt, settings, _ROOM / len(settings), _CAPITAL)
        if small:
            axis.labelAngle, axis.labelAlign = -90, "right"
        axis.labelFontSize = SMALL
        title = f"{frame.x}/{frame.legend}"
        scale = bands(alt, settings, _WIDEST, _SMALL if small else _ROOM)
        base = alt.Chart().encode(x=alt.X("setting:N", title=title, sort=None, scale=scale, axis=axis))
    else:
        wide = _SMALL if small else _ROOM
        scale, axis = bands(alt, places, _WIDEST * len(bars), wide), wrapped_axis(alt, places, wide / len(places))
        base = alt.Chart().encode(
            x=alt.X("x:N", title=frame.x or None, sort=None, scale=scale, axis=axis),
            xOffset=alt.XOffset("bar:N", sort=None, scale=alt.Scale(domain=bars)),
        )
    solid = base.mark_bar(stroke=INK, strokeWidth=0.5).encode(
        y=y,
        color=alt.Color("bar:N", scale=alt.Scale(domain=bars, range=colours), legend=legend),
        description="about:N",
    )
    thin = whiskers(base, y=alt.Y("low:Q", title=frame.y), y2="high:Q")
    layered = alt.layer(solid, *thin, data=alt.InlineData(values=values))
    if small:
        header = alt.Header(title=None, labelFontSize=12, labelFontWeight="bold", labelColor=INK, labelPadding=4)
        chart = layered.properties(width=_SMALL, height=92).facet(
            facet=alt.Facet("panel:N", sort=list(heads.values()), header=header),
            columns=2,
            spacing={"row": 14, "column": 22},
        )
    else:
        chart = layered.properties(width=PANEL, height=_HEIGHT, autosize=fit(alt))
    told = f"Bar chart of {frame.caption} " + "; ".join(str(value["about"]) for value in values) + "."
    return frame.named(chart, told, known, "questions a bar")


def _stack(rows: Sequence[Mapping[str, Any]], frame: _Frame) -> NamedChart | None:
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
    colours = [PARTS[place % len(PARTS)] for place in range(len(parts))]
    legend = alt.Legend(
        title=None,
        orient="bottom",
        columns=legend_columns(parts, beside=bars),
        symbolType="square",
        symbolSize=90,
        labelLimit=180,
    )
    axis = alt.Axis(format="~s", tickCount=5, gridColor=GRID, domain=False, ticks=False, labelFlush=True)
    chart = (
        alt.Chart(alt.InlineData(values=values))
        .mark_bar(height={"band": 0.7}, stroke="white", strokeWidth=0.6)
        .encode(
            y=alt.Y("bar:N", title=None, scale=alt.Scale(domain=bars), axis=names_axis(alt)),
            x=alt.X("count:Q", title=frame.x or "questions", stack="zero", axis=axis),
            color=alt.Color("part:N", scale=alt.Scale(domain=parts, range=colours), legend=legend),
            order=alt.Order("place:Q"),
            description="about:N",
        )
        .properties(**panel(alt))
    )
    spoken = "; ".join(str(value["about"]) for value in values if value["count"])
    whole = {bar: sum(value["count"] for value in values if value["bar"] == bar) for bar in bars}
    told = f"Stacked bars: {frame.caption}. {spoken}."
    return frame.named(chart, told, [{"n": size} for size in whole.values()], "questions a bar")


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


def _spoken(row: Mapping[str, Any], percent: bool) -> str:
    interval = show.interval(row.get("low"), row.get("high"), percent=percent)
    count = "" if row.get("n") is None else f", n = {show.count(row['n'])}"
    return f"{show.score(row['value'], percent=percent)}{' ' if interval else ''}{interval}{count}"


def _titled(row: Mapping[str, Any], name: str, frame: _Frame) -> str:
    title = {"x": frame.x, "bar": frame.legend}.get(name)
    return show.printable(f"{title} {row[name]}" if title else row[name])


def _x_axis(alt: Any) -> Any:
    return alt.Axis(labelAngle=0, ticks=False, labelPadding=6, labelOverlap="parity", grid=False)
