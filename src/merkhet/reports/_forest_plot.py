"""Paired differences of models with their intervals, as a forest plot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from merkhet.metrics.corrections import SIGNIFICANCE_LEVEL
from merkhet.reports import formatting as show
from merkhet.reports._axis_scales import Axis, signed_labels, value_axis
from merkhet.reports._chart_style import COLOURS, NamedChart, counted, cut, sentences
from merkhet.reports._plot_layout import MIDDLE, PANEL, grid, names_at_left, ticks_below
from merkhet.reports._svg_marks import FONT_SIZE, INK, Drawing, Label, Mark, Strokes, Symbol, drawing
from merkhet.reports.scoreboard import LOWER_IS_BETTER

_MOST = 60
_NAMES = 260.0
_ROOM = PANEL - 120
_STEP, _HEADING = 24.0, 26.0
"""Heights of a row and of the heading above rows, in pixels."""


@dataclass(frozen=True)
class _Difference:
    """A pair of models with the interval of its difference."""

    pair: str
    where: str
    value: float
    low: float
    high: float
    clear: bool
    """Whether the difference is told from 0."""
    about: str


def difference_chart(comparisons: Sequence[Mapping[str, Any]]) -> NamedChart | None:
    """A line for each pair of models: the difference with its interval, filled where it is told from nothing.

    Pairs are those of findings.json; any key but ``difference`` may be absent. None where there is nothing to draw.
    Differences of shares are drawn in points; those of other metrics only where there is nothing else.
    """
    known = [one for one in comparisons if show.finite(one.get("difference")) is not None]
    shares = [one for one in known if _is_share(one)]
    drawn = (shares or known)[:_MOST]
    if not drawn:
        return None
    factor = 100.0 if shares else 1.0
    points = [_point(one, factor) for one in drawn]
    ends = [end for point in points for end in (point.low, point.high, point.value)]
    title = "difference in points" if shares else "difference"
    axis = value_axis(min(0.0, *ends), max(0.0, *ends), signed_labels, title=title)
    more = f"The first {len(drawn)} of {len(known)}" if len(drawn) < len(known) else ""
    caption = sentences(
        f"Paired differences of models{' in percentage points' if shares else ''}",
        "Thin lines are 95% intervals; a filled point is a difference that is told from 0 "
        f"(Holm-corrected p < {SIGNIFICANCE_LEVEL:g}), an open one is not",
        counted([int(one.get("n") or 0) for one in drawn], "questions a pair"),
        more,
    )
    told = "; ".join(point.about for point in points)
    return NamedChart("differences", caption, _forest(points, axis), told=f"Forest plot. {told}.")


def _forest(points: Sequence[_Difference], axis: Axis) -> Drawing:
    """Draw a panel for each task and metric, all above the same axis."""
    scale = axis.scale(0.0, _ROOM)
    marks: list[Mark] = []
    bottom = 0.0
    for where in dict.fromkeys(point.where for point in points):
        own = [point for point in points if point.where == where]
        top = bottom + _HEADING
        bottom = top + _STEP * len(own)
        rows = [(point, top + _STEP * (place + 0.5)) for place, point in enumerate(own)]
        whiskers = tuple((scale(point.low), y, scale(point.high), y) for point, y in rows)
        marks += [
            Label(0.0, top - 8 + MIDDLE * FONT_SIZE, cut(where, 40), bold=True),
            *grid([(scale(tick), top, scale(tick), bottom) for tick in axis.ticks]),
            Strokes(((scale(0.0), top, scale(0.0), bottom),), INK, dash=(3, 3)),
            *names_at_left([point.pair for point in own], [y for _, y in rows], _NAMES),
            Strokes(whiskers, INK, 1.5),
            *(
                Symbol(
                    *(scale(point.value), y, "circle", COLOURS[0] if point.clear else "white", 64.0, point.about),
                    stroke=COLOURS[0],
                    stroke_width=1.8,
                )
                for point, y in rows
            ),
        ]
    return drawing([*marks, *ticks_below(axis, scale, bottom, _ROOM)])


def _is_share(one: Mapping[str, Any]) -> bool:
    numbers = (show.finite(one.get(name)) for name in ("difference", "low", "high"))
    return str(one.get("metric")) not in LOWER_IS_BETTER and all(abs(n) <= 1 for n in numbers if n is not None)


def _point(one: Mapping[str, Any], factor: float) -> _Difference:
    value, low, high = (show.finite(one.get(name)) for name in ("difference", "low", "high"))
    value = value or 0.0
    low, high = (value if low is None else low), (value if high is None else high)
    p = show.finite(one.get("p"))
    model, other, group = (show.printable(one.get(name) or "") for name in ("model", "other", "group"))
    where = show.printable(f"{one.get('task', '')} {show.metric_label(str(one.get('metric', '')))}".strip())
    ends = show.interval(low, high, percent=factor != 1.0)
    return _Difference(
        pair=f"{f'{cut(group)}: ' if group else ''}{cut(model)} − {cut(other)}",
        where=where,
        value=factor * value,
        low=factor * low,
        high=factor * high,
        clear=(low > 0 or high < 0) and p is not None and p < SIGNIFICANCE_LEVEL,
        about=f"{where}{f', {group}' if group else ''}: {model} − {other}: "
        f"{show.score(value, percent=factor != 1.0)} {ends}{'' if p is None else f', p {_p(p)}'}",
    )


def _p(value: float) -> str:
    text = show.probability(value)
    return text if text.startswith("<") else f"= {text}"
