"""Figures that analyses describe as data: lines with intervals over ordered buckets, and stacked bars."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from gnomon.reports import formatting as show
from gnomon.reports.figures import BASELINE, OKABE_ITO, Figure, draw, legend_columns, short_labels
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


def chart(described: Mapping[str, Any], identity: str, baselines: Collection[str] = ()) -> Figure | None:
    """The figure that an analysis describes; None where there is nothing in it, or where its kind is not known."""
    rows = [row for row in described.get("rows") or () if isinstance(row, Mapping)]
    kinds: Mapping[str, Callable[..., Figure | None]] = {"lines": _lines, "stack": _stack}
    drawn = kinds.get(str(described.get("kind")))
    caption = show.printable(described.get("caption", ""))
    return drawn(rows, caption, show.printable(described.get("x", "")), identity, baselines) if drawn and rows else None


def _lines(
    rows: Sequence[Mapping[str, Any]], caption: str, x_title: str, identity: str, baselines: Collection[str]
) -> Figure | None:
    """A line with points and intervals for each value of ``line``; baselines are grey."""
    import altair as alt

    known = [row for row in rows if show.finite(row.get("value")) is not None]
    if not known:
        return None
    places = list(dict.fromkeys(show.printable(row["x"]) for row in known))
    series = {str(row["line"]): Series(str(row["line"])) for row in known}
    short = short_labels(list(series.values()))
    names = {line: show.printable(short[one]) for line, one in series.items()}
    plain = {str(row["line"]) for row in known if str(row.get("model", row["line"])) in baselines}
    models = [line for line in series if line not in plain]
    colour = {line: OKABE_ITO[place % len(OKABE_ITO)] for place, line in enumerate(models)}
    percent = all(abs(float(row["value"])) <= 1 for row in known)
    values = [
        {
            "x": show.printable(row["x"]),
            "line": names[str(row["line"])],
            "value": row["value"],
            "low": row["value"] if show.finite(row.get("low")) is None else row["low"],
            "high": row["value"] if show.finite(row.get("high")) is None else row["high"],
            "about": f"{show.printable(row['line'])}, {show.printable(row['x'])}: "
            f"{show.score(row['value'], percent=percent)} "
            f"{show.interval(row.get('low'), row.get('high'), percent=percent)}, n = {show.count(row.get('n'))}",
        }
        for row in known
    ]
    labels = list(names.values())
    scale = alt.Scale(domain=labels, range=[colour.get(line, BASELINE) for line in names])
    shapes = alt.Scale(domain=labels, range=[_POINTS[place % len(_POINTS)] for place in range(len(labels))])
    legend = alt.Legend(
        title=None, orient="bottom", columns=legend_columns(labels, beside=["100%"]), symbolSize=70, labelLimit=180
    )
    axis = alt.Axis(format=".0%" if percent else "~g", tickCount=5, gridColor="#ececf0", domain=False, ticks=False)
    top = [0, max(0.1, *(float(value["high"]) for value in values))] if percent else alt.Undefined
    base = alt.Chart(alt.InlineData(values=values)).encode(
        x=alt.X(
            "x:N",
            title=x_title or None,
            sort=None,
            scale=alt.Scale(domain=places),
            axis=alt.Axis(labelAngle=0, ticks=False, labelPadding=6, titleFontWeight="normal", labelOverlap="parity"),
        ),
        xOffset=alt.XOffset("line:N", scale=alt.Scale(domain=labels, paddingOuter=0.9)),
        color=alt.Color("line:N", scale=scale, legend=legend),
    )
    y = alt.Y("value:Q", title=None, axis=axis, scale=alt.Scale(domain=top, nice=True))
    whiskers = base.mark_rule(strokeWidth=1.4).encode(y=alt.Y("low:Q", title=None), y2="high:Q")
    lines = base.mark_line(strokeWidth=1.6).encode(y=y)
    points = base.mark_point(filled=True, size=52, opacity=1).encode(
        y=y, shape=alt.Shape("line:N", scale=shapes, legend=legend), description="about:N"
    )
    chart = alt.layer(whiskers, lines, points).properties(width=400, height=190, autosize=_fit(alt))
    told = f"Line chart of {caption}. " + "; ".join(str(value["about"]) for value in values) + "."
    return Figure(caption, draw(chart, identity, told))


def _stack(
    rows: Sequence[Mapping[str, Any]], caption: str, _x: str, identity: str, _baselines: Collection[str]
) -> Figure | None:
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
    told = f"Stacked bars: {caption}. " + "; ".join(str(value["about"]) for value in values if value["count"]) + "."
    return Figure(caption, draw(chart, identity, told))


def _fit(alt: Any) -> Any:
    return alt.AutoSizeParams(type="fit-x", contains="padding")
