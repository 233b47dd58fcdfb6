"""Paired differences of models with their intervals, as a forest plot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gnomon.reports import formatting as show
from gnomon.reports.drawing import COLOURS, GRID, INK, PANEL, NamedChart, counted, cut, sentences
from gnomon.reports.scoreboard import LOWER_IS_BETTER
from gnomon.scores.corrections import CLEAR

"""Below it a corrected p tells models apart."""
_MOST = 60
_NAMES = 260
_SIGNED = "datum.value == 0 ? '0' : format(datum.value, '+~g')"


def difference_chart(comparisons: Sequence[Mapping[str, Any]]) -> NamedChart | None:
    """A line for each pair of models: the difference with its interval, filled where it is told from nothing.

    Pairs are those of findings.json; any key but ``difference`` may be absent. None where there is nothing to draw.
    Differences of shares are drawn in points; those of other metrics only where there is nothing else.
    """
    import altair as alt

    known = [one for one in comparisons if show.finite(one.get("difference")) is not None]
    shares = [one for one in known if _is_share(one)]
    drawn = (shares or known)[:_MOST]
    if not drawn:
        return None
    factor = 100.0 if shares else 1.0
    values = [_point(one, factor, place) for place, one in enumerate(drawn)]
    places = list(dict.fromkeys(value["where"] for value in values))
    axis = alt.Axis(
        gridColor=GRID,
        domain=False,
        ticks=False,
        tickCount=5,
        labelFlush=False,
        labelOverlap="parity",
        labelExpr=_SIGNED,
    )
    title = "difference in points" if shares else "difference"
    ends = [value[end] for value in values for end in ("low", "high", "difference")]
    x = alt.X("difference:Q", title=title, axis=axis, scale=alt.Scale(domain=[min(0, *ends), max(0, *ends)], nice=True))
    names = alt.Axis(labelLimit=_NAMES, ticks=False, domain=False, labelPadding=8, labelExpr="slice(datum.label, 4)")
    y = alt.Y("pair:N", title=None, sort=None, axis=names)
    base = alt.Chart().encode(y=y)
    zero = alt.Chart().mark_rule(stroke=INK, strokeWidth=1, strokeDash=[3, 3]).encode(x=alt.datum(0))
    whiskers = base.mark_rule(stroke=INK, strokeWidth=1.5).encode(x=alt.X("low:Q", title=title), x2="high:Q")
    fill = alt.condition("datum.clear", alt.value(COLOURS[0]), alt.value("white"))
    points = base.mark_point(size=64, shape="circle", stroke=COLOURS[0], strokeWidth=1.8, opacity=1).encode(
        x=x, fill=fill, description="about:N"
    )
    layered = alt.layer(zero, whiskers, points, data=alt.InlineData(values=values))
    layered = layered.properties(width=PANEL - 120, height={"step": 24})
    header = alt.Header(
        title=None, labelOrient="top", labelAnchor="start", labelFontSize=12, labelFontWeight="bold", labelColor=INK
    )
    chart = layered.facet(row=alt.Row("where:N", sort=places, header=header), spacing=12).resolve_scale(y="independent")
    more = f"The first {len(drawn)} of {len(known)}" if len(drawn) < len(known) else ""
    caption = sentences(
        f"Paired differences of models{' in percentage points' if shares else ''}",
        "Thin lines are 95% intervals; a filled point is a difference that is told from 0 "
        f"(Holm-corrected p < {CLEAR:g}), an open one is not",
        counted([int(one.get("n") or 0) for one in drawn], "questions a pair"),
        more,
    )
    told = "; ".join(str(value["about"]) for value in values)
    return NamedChart("differences", caption, chart, told=f"Forest plot. {told}.")


def _is_share(one: Mapping[str, Any]) -> bool:
    numbers = (show.finite(one.get(name)) for name in ("difference", "low", "high"))
    return str(one.get("metric")) not in LOWER_IS_BETTER and all(abs(n) <= 1 for n in numbers if n is not None)


def _point(one: Mapping[str, Any], factor: float, place: int) -> dict[str, Any]:
    value, low, high = (show.finite(one.get(name)) for name in ("difference", "low", "high"))
    value = value or 0.0
    low, high = (value if low is None else low), (value if high is None else high)
    p = show.finite(one.get("p"))
    model, other, group = (show.printable(one.get(name) or "") for name in ("model", "other", "group"))
    pair = f"{cut(model)} − {cut(other)}"
    where = show.printable(f"{one.get('task', '')} {show.metric_label(str(one.get('metric', '')))}".strip())
    ends = show.interval(low, high, percent=factor != 1.0)
    return {
        # Two pairs may be called alike once their names are cut: a number keeps them apart, and is not shown.
        "pair": f"{place:03d} {f'{cut(group)}: ' if group else ''}{pair}",
        "where": where,
        "difference": factor * value,
        "low": factor * low,
        "high": factor * high,
        "clear": (low > 0 or high < 0) and p is not None and p < CLEAR,
        "about": f"{where}{f', {group}' if group else ''}: {model} − {other}: "
        f"{show.score(value, percent=factor != 1.0)} {ends}{'' if p is None else f', p {_p(p)}'}",
    }


def _p(value: float) -> str:
    text = show.probability(value)
    return text if text.startswith("<") else f"= {text}"
