"""Forest plot of the paired differences between models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from merkhet.analysis.differences import format_p, is_significant
from merkhet.core import text as fmt
from merkhet.metrics.corrections import SIGNIFICANCE_LEVEL
from merkhet.reports._axis_scales import Axis, signed_labels, value_axis
from merkhet.reports._chart_style import COLOURS, FEW_COLOUR, MAX_LABEL, NamedChart, join_sentences, sample_size_text
from merkhet.reports._labels import shorten_labels
from merkhet.reports._plot_layout import BASELINE_SHIFT, PANEL, Point, grid, names_at_left, ticks_below
from merkhet.reports._svg_marks import FONT_SIZE, INK, Drawing, Label, Mark, Strokes, Symbol, make_drawing
from merkhet.reports.scoreboard import LOWER_IS_BETTER
from merkhet.reports.table_model import FEW_NOTE, has_few_questions

_MAX_PAIRS = 60
_MAX_NAME_WIDTH = 260.0
_MAX_HEADING = 40
_TESTS = ("Holm-corrected p", "p corrected by Holm, or q within groups,")
"""Description of the test of comparisons over whole tasks, and of comparisons that may be within groups."""
_PLOT_WIDTH = PANEL - 120
_ROW_HEIGHT, _HEADING_HEIGHT = 24.0, 26.0
"""Heights of a plot row and of a panel heading, in pixels."""


def difference_chart(comparisons: Sequence[Mapping[str, Any]]) -> NamedChart | None:
    """Draw the score difference of each pair of models with its interval; significant differences are filled points.

    Points of groups of few questions are grey, with the number of questions.

    If any metric is a share, only shares are drawn, in percentage points. Keys of a comparison may be absent; a
    comparison without ``difference`` is skipped. Return None if no comparison has a difference.
    """
    known = [pair for pair in comparisons if fmt.finite_or_none(pair.get("difference")) is not None]
    shares = [pair for pair in known if _is_share(pair)]
    plotted = (shares or known)[:_MAX_PAIRS]
    if not plotted:
        return None
    factor = 100.0 if shares else 1.0
    labels = _pair_labels(plotted)
    points = [_difference(pair, factor, label) for pair, label in zip(plotted, labels, strict=True)]
    ends = [end for point in points for end in (point.low, point.high, point.value)]
    title = "difference in points" if shares else "difference"
    axis = value_axis(min(0.0, *ends), max(0.0, *ends), signed_labels, title=title)
    more = f"The first {len(plotted)} of {len(known)}" if len(plotted) < len(known) else ""
    caption = join_sentences(
        f"Paired differences of models{' in percentage points' if shares else ''}",
        "Thin lines are 95% intervals; filled points are significant differences "
        f"({_TESTS[any(_is_grouped(pair) for pair in plotted)]} < {SIGNIFICANCE_LEVEL:g}), open points are not",
        "Models that were trained once have intervals over questions and no test"
        if any(pair.get("trainings") == 1 for pair in plotted)
        else "",
        "Intervals of models that were trained several times are over trainings"
        if any((pair.get("trainings") or 1) > 1 for pair in plotted)
        else "",
        FEW_NOTE if any(map(_has_few, plotted)) else "",
        sample_size_text([int(pair.get("n") or 0) for pair in plotted], "questions per pair"),
        more,
    )
    description = "; ".join(point.tooltip for point in points)
    return NamedChart("differences", caption, _forest(points, axis), description=f"Forest plot. {description}.")


def _forest(points: Sequence[Point], axis: Axis) -> Drawing:
    """Draw a panel for each task and metric, stacked above a common axis."""
    scale = axis.scale(0.0, _PLOT_WIDTH)
    marks: list[Mark] = []
    bottom = 0.0
    headings = shorten_labels((point.group for point in points), _MAX_HEADING)
    for panel in dict.fromkeys(point.group for point in points):
        panel_points = [point for point in points if point.group == panel]
        top = bottom + _HEADING_HEIGHT
        bottom = top + _ROW_HEIGHT * len(panel_points)
        rows = [(point, top + _ROW_HEIGHT * (index + 0.5)) for index, point in enumerate(panel_points)]
        whiskers = tuple((scale(point.low), y, scale(point.high), y) for point, y in rows)
        marks += [
            Label(0.0, top - 8 + BASELINE_SHIFT * FONT_SIZE, headings[panel], bold=True),
            *grid([(scale(tick), top, scale(tick), bottom) for tick in axis.ticks]),
            Strokes(((scale(0.0), top, scale(0.0), bottom),), INK, dash=(3, 3)),
            *names_at_left([point.line for point in panel_points], [y for _, y in rows], _MAX_NAME_WIDTH),
            Strokes(whiskers, INK, 1.5),
            *(
                Symbol(
                    *(scale(point.value), y, "circle", point.fill, 64.0, point.tooltip),
                    stroke=FEW_COLOUR if point.fill == FEW_COLOUR else COLOURS[0],
                    stroke_width=1.8,
                )
                for point, y in rows
            ),
        ]
    return make_drawing([*marks, *ticks_below(axis, scale, bottom, _PLOT_WIDTH)])


def _is_share(pair: Mapping[str, Any]) -> bool:
    numbers = (fmt.finite_or_none(pair.get(name)) for name in ("difference", "low", "high"))
    return str(pair.get("metric")) not in LOWER_IS_BETTER and all(abs(n) <= 1 for n in numbers if n is not None)


def _is_grouped(pair: Mapping[str, Any]) -> bool:
    return pair.get("group") is not None


def _has_few(pair: Mapping[str, Any]) -> bool:
    return _is_grouped(pair) and has_few_questions(fmt.finite_or_none(pair.get("n")))


def _pair_labels(pairs: Sequence[Mapping[str, Any]]) -> list[str]:
    """Label each pair by group, models and, for groups of few questions, their number."""
    texts = [[fmt.printable(pair.get(name) or "") for name in ("model", "other", "group")] for pair in pairs]
    names = shorten_labels((name for model, other, _ in texts for name in (model, other)), MAX_LABEL)
    groups = shorten_labels((group for _, _, group in texts), MAX_LABEL)
    sizes = [f" (n = {fmt.count(pair.get('n'))})" if _has_few(pair) else "" for pair in pairs]
    return [
        f"{f'{groups[group]}: ' if group else ''}{names[model]} − {names[other]}{size}"
        for (model, other, group), size in zip(texts, sizes, strict=True)
    ]


def _difference(pair: Mapping[str, Any], factor: float, label: str) -> Point:
    """Make the point of a comparison in the panel of its task and metric; a significant one is filled."""
    value, low, high = (fmt.finite_or_none(pair.get(name)) for name in ("difference", "low", "high"))
    value = value or 0.0
    low, high = (value if low is None else low), (value if high is None else high)
    test = "q" if pair.get("group_column") and fmt.finite_or_none(pair.get("q")) is not None else "p"
    p = fmt.finite_or_none(pair.get(test))
    model, other, group = (fmt.printable(pair.get(name) or "") for name in ("model", "other", "group"))
    panel = fmt.printable(f"{pair.get('task', '')} {fmt.metric_label(str(pair.get('metric', '')))}".strip())
    percent = factor != 1.0
    numbers = f"{fmt.score(value, percent=percent)} {fmt.interval(low, high, percent=percent)}"
    p_text = "" if p is None else f", {test} {format_p(p)}"
    return Point(
        panel,
        label,
        factor * value,
        factor * low,
        factor * high,
        f"{panel}{f', {group}' if group else ''}: {model} − {other}: {numbers}{p_text}",
        FEW_COLOUR if _has_few(pair) else COLOURS[0] if is_significant(pair) else "white",
    )
