"""Charts that analyses specify as data: line charts, stacked bars and grouped bars."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from merkhet.core import text as fmt
from merkhet.reports import _plot_layout as layout
from merkhet.reports import _svg_marks as svg
from merkhet.reports._axis_scales import (
    Axis,
    Scale,
    general_labels,
    log_ticks,
    number_labels,
    percent_labels,
    si_labels,
    value_axis,
)
from merkhet.reports._chart_style import (
    DASHES,
    DOTTED,
    FEW_COLOUR,
    SEGMENT_COLOURS,
    SYMBOLS,
    NamedChart,
    assign_colours,
    join_sentences,
    sample_size_text,
    score_tooltip,
    short_labels,
)
from merkhet.reports._text_width import fit_labels
from merkhet.reports.scoreboard import Series
from merkhet.reports.table_model import FEW_NOTE, has_few_questions

_Row = Mapping[str, Any]
_FACET_WIDTH, _FACET_HEIGHT = 138.0, 92.0
"""Width and height of each panel in a chart with several panels, in pixels."""
_MAX_BAR_WIDTH = 46.0
"""Maximum width of a bar, in pixels."""
_HEIGHT = 190.0
_MAX_TICKS = 8
_MAX_MARKED_POINTS = 25
"""Maximum number of x positions at which every point of a line gets a symbol."""
_INSET = 9.0
"""Pixels between the edges of a plot and the first and last point of a line."""


@dataclass(frozen=True)
class _ChartSpec:
    """An analysis's specification of a chart, without its data rows."""

    name: str
    caption: str
    x: str
    y: str
    legend: str
    percent: bool
    baselines: Collection[str]
    log: bool = False
    """Whether the x axis is logarithmic."""
    zero: bool = True
    """Whether the score axis includes 0."""
    unit: str = "questions"
    """What ``n`` counts."""

    def make_chart(
        self, chart: svg.Drawing, description: str, rows: Sequence[_Row], per: str, axis_start: float = 0.0
    ) -> NamedChart:
        """Make a named chart, and add the number of questions and an explanation of the intervals to its caption."""
        sizes = [int(size) for row in rows if (size := fmt.finite_or_none(row.get("n"))) is not None]
        has_intervals = any(fmt.finite_or_none(row.get("low")) is not None for row in rows)
        kind = "bootstrap intervals" if self.unit == "questions" else "intervals"
        interval_note = f"Thin lines are 95% {kind}" if has_intervals else ""
        axis_note = f"The score axis begins at {axis_start:.0%}" if axis_start > 0 else ""
        few_note = FEW_NOTE if any(map(self.has_few, rows)) else ""
        size_text = sample_size_text(sizes, f"{self.unit} per {per}")
        caption_text = join_sentences(self.caption, interval_note, size_text, axis_note, few_note)
        return NamedChart(self.name, caption_text, chart, title=self.caption, description=description)

    def has_few(self, row: _Row) -> bool:
        """Return whether a row's value is of too few questions to be read as a result."""
        return self.unit == "questions" and "value" in row and has_few_questions(fmt.finite_or_none(row.get("n")))


def chart_from_spec(content: Mapping[str, Any], name: str, baselines: Collection[str] = ()) -> NamedChart | None:
    """Make the chart that ``content`` specifies; return None if it has no data or an unknown kind."""
    rows = [row for row in content.get("rows") or () if isinstance(row, Mapping)]
    make_chart = {"lines": _lines, "stack": _stack, "bars": _bars}.get(str(content.get("kind")))
    if make_chart is None or not rows:
        return None
    caption, x, y, legend = (fmt.printable(content.get(key) or "") for key in ("caption", "x", "y", "legend"))
    percent = content.get("percent")
    if percent is None:
        known = (fmt.finite_or_none(row.get("value")) for row in rows)
        percent = all(abs(value) <= 1 for value in known if value is not None)
    unit = str(content.get("unit") or "questions")
    log, zero = bool(content.get("log")), bool(content.get("zero", True))
    y = y or ("score" if percent else "value")
    return make_chart(rows, _ChartSpec(name, caption, x, y, legend, bool(percent), baselines, log, zero, unit))


def _lines(rows: Sequence[_Row], spec: _ChartSpec) -> NamedChart | None:
    """Draw a line chart with one line per value of the key ``line``; baselines are grey and dotted."""
    known = [row for row in rows if fmt.finite_or_none(row.get("value")) is not None]
    if not known:
        return None
    is_numeric = all(fmt.finite_or_none(row["x"]) is not None for row in known)
    placed = known if is_numeric else rows
    positions = list(dict.fromkeys(row["x"] if is_numeric else fmt.printable(row["x"]) for row in placed))
    marked = set(
        sorted(positions)[:: max(1, round(len(positions) / 10))] if len(positions) > _MAX_MARKED_POINTS else positions
    )
    labels_of = short_labels([Series(line) for line in dict.fromkeys(str(row["line"]) for row in known)])
    baselines = {str(row["line"]) for row in known if str(row.get("model", row["line"])) in spec.baselines}
    keys = _line_keys({series.model: label for series, label in labels_of.items()}, baselines)
    points = [
        layout.Point(
            row["x"] if is_numeric else fmt.printable(row["x"]),
            str(row["line"]),
            *_interval(row),
            f"{fmt.printable(row['line'])}, {fmt.printable(row['x'])}: {_value_tooltip(row, spec.percent)}",
            FEW_COLOUR if spec.has_few(row) else "",
        )
        for row in known
    ]
    axis = _value_axis(points, spec)
    has_intervals = any(fmt.finite_or_none(row.get("low")) is not None for row in known)

    def build(width: float) -> list[svg.Mark]:
        marks, y = layout.columns_frame(axis, 0.0, width, 0.0, _HEIGHT)
        x, labels = _x_positions(positions, list(keys), spec, width, is_numeric)
        order = {position: index for index, position in enumerate(sorted(positions) if is_numeric else positions)}
        ordered = sorted(points, key=lambda point: order[point.group])
        for line, key in keys.items():
            line_points = [point for point in ordered if point.line == line]
            if has_intervals:
                ends = ((x(point), y(point.low), x(point), y(point.high)) for point in line_points)
                marks.append(svg.Strokes(tuple(ends), key.fill, 1.4))
            marks.append(svg.Line(tuple((x(point), y(point.value)) for point in line_points), key.fill, dash=key.dash))
        marks += [
            svg.Symbol(
                *(x(point), y(point.value), keys[point.line].shape, point.fill or keys[point.line].fill),
                tooltip=point.tooltip,
                stroke=keys[point.line].fill if point.fill else "",
            )
            for point in points
            if point.group in marked
        ]
        return [*marks, *labels]

    description = "; ".join(point.tooltip for point in points if point.group in marked)
    chart = layout.fit_panel(build, list(keys.values()))
    axis_start = axis.low if spec.percent else 0.0
    return spec.make_chart(chart, f"Line chart of {spec.caption}. {description}.", known, "point", axis_start)


def _line_keys(labels: Mapping[str, str], baselines: Collection[str]) -> dict[str, layout.LegendEntry]:
    """Choose a colour, symbol and dash for each line, so that lines differ even without colour."""
    dashes = itertools.cycle(DASHES)
    colours = assign_colours([line in baselines for line in labels])
    return {
        line: layout.LegendEntry(
            fmt.printable(label),
            colour,
            SYMBOLS[(index + index // len(SYMBOLS)) % len(SYMBOLS)],
            line=True,
            dash=DOTTED if line in baselines else next(dashes),
        )
        for index, ((line, label), colour) in enumerate(zip(labels.items(), colours, strict=True))
    }


def _x_positions(
    positions: Sequence[Any], lines: Sequence[str], spec: _ChartSpec, width: float, is_numeric: bool
) -> tuple[Callable[[layout.Point], float], list[svg.Mark]]:
    """Return a function from a point to its x position, and the labels of the x axis.

    At a category, the points of different lines are shifted sideways to avoid overlap.
    """
    if is_numeric:
        axis, scale = _number_axis(positions, spec, width)
        return (lambda point: scale(float(point.group))), layout.ticks_below(axis, scale, _HEIGHT, width)
    pitch = width / len(positions)
    offset = min(12.0, 0.8 * pitch / (len(lines) + 1.8))
    centres = {position: pitch * (index + 0.5) for index, position in enumerate(positions)}
    offsets = {line: offset * (index - (len(lines) - 1) / 2) for index, line in enumerate(lines)}
    labels = layout.category_labels(positions, list(centres.values()), pitch, _HEIGHT)
    marks = [*labels, *layout.title_below(spec.x, width / 2, width, svg.extent(labels).bottom)]
    return (lambda point: centres[point.group] + offsets[point.line]), marks


def _number_axis(positions: Sequence[float], spec: _ChartSpec, width: float) -> tuple[Axis, Scale]:
    """Return the numeric x axis and its scale; a logarithmic axis with few positions has a tick at each."""
    low, high = float(min(positions)), float(max(positions))
    if spec.log and low > 0:
        ticks = sorted(map(float, positions)) if len(positions) <= _MAX_TICKS else log_ticks(low, high)
        labels = si_labels(ticks) if low >= 1 else general_labels(ticks)
        return Axis(low, high, tuple(ticks), tuple(labels), spec.x), Scale(low, high, _INSET, width - _INSET, log=True)
    if low == high:
        return Axis(low, high, (low,), tuple(number_labels([low])), spec.x), Scale(low, high, _INSET, width - _INSET)
    integers = all(float(position).is_integer() for position in positions)
    axis = value_axis(low, high, number_labels, title=spec.x, nice=False, integers=integers)
    return axis, axis.scale(_INSET, width - _INSET)


def _value_axis(points: Sequence[layout.Point], spec: _ChartSpec) -> Axis:
    """Return the score axis, which includes 0.

    Without ``spec.zero``, a percent axis begins at the multiple of 10% below the lowest interval instead.
    """
    low, high = min(point.low for point in points), max(point.high for point in points)
    if not spec.percent:
        return value_axis(min(0.0, low), max(0.0, high), number_labels, title=spec.y)
    low = min(0.0, low) if spec.zero else math.floor(10 * low) / 10
    return value_axis(low, max(low + 0.02, 0.1, high), percent_labels, title=spec.y)


def _bars(rows: Sequence[_Row], spec: _ChartSpec) -> NamedChart | None:
    """Draw a panel per value of the key ``panel``, a bar group per value of ``x``, and a bar per value of ``bar``.

    If the x axis and the legend both have titles, each bar is a separate group with a label such as ``EX/NO``.
    """
    known = [row for row in rows if fmt.finite_or_none(row.get("value")) is not None]
    if not known:
        return None
    panels = list(dict.fromkeys(fmt.printable(row.get("panel") or "") for row in known))
    positions, bars = (_merge_orders(rows, name) for name in ("x", "bar"))
    panel_titles = short_labels([Series(name) for name in panels])
    colours = {bar: SEGMENT_COLOURS[index % len(SEGMENT_COLOURS)] for index, bar in enumerate(bars)}
    separate = bool(spec.x and spec.legend)
    points_of: dict[str, list[layout.Point]] = {panel: [] for panel in panels}
    for row in known:
        named = (_titled(row, name, spec) for name in ("panel", "x", "bar") if row.get(name))
        x, bar, panel = (fmt.printable(row.get(name) or "") for name in ("x", "bar", "panel"))
        tooltip = f"{', '.join(named)}: {_value_tooltip(row, spec.percent)}"
        points_of[panel].append(
            layout.Point(*((x, bar) if separate else x, bar, *_interval(row), tooltip), *_fill(row, colours[bar], spec))
        )
    points = [point for panel_points in points_of.values() for point in panel_points]
    placed = {tuple(fmt.printable(row.get(name) or "") for name in ("x", "bar")) for row in rows}
    settings = {(x, bar): f"{x}/{bar}" for x in positions for bar in bars if (x, bar) in placed}
    draw_groups = partial(
        layout.bar_groups,
        axis=_value_axis(points, replace(spec, zero=True)),
        groups=settings if separate else dict(zip(positions, positions, strict=True)),
        slots={bar: 0 if separate else index for index, bar in enumerate(bars)},
        bar_width=_MAX_BAR_WIDTH,
        outline=0.5,
        title=f"{spec.x}/{spec.legend}" if separate else spec.x,
        label_size=layout.SMALL if separate else svg.FONT_SIZE,
    )
    keys = [layout.LegendEntry(bar, colours[bar], stroke=svg.INK) for bar in bars]
    if len(panels) == 1:
        chart = layout.fit_panel(lambda width: draw_groups(points, width=width, height=_HEIGHT), keys, spec.legend)
    else:
        marks = _facets(dict(zip(panel_titles.values(), points_of.values(), strict=True)), draw_groups)
        chart = svg.make_drawing(
            [*marks, *layout.legend_below(marks, keys, spec.legend, layout.PANEL - 2 * svg.PADDING)]
        )
    description = f"Bar chart of {spec.caption} " + "; ".join(point.tooltip for point in points) + "."
    return spec.make_chart(chart, description, known, "bar")


def _facets(panels: Mapping[str, Sequence[layout.Point]], draw_groups: Callable[..., list[svg.Mark]]) -> list[svg.Mark]:
    """Draw small panels in two columns with a common scale; only the left column and the last row have axis labels."""
    marks: list[svg.Mark] = []
    last_row = (len(panels) - 1) // 2
    heads = fit_labels(panels, svg.FONT_SIZE, _FACET_WIDTH, bold=True)
    for number, (head, points) in enumerate(zip(heads, panels.values(), strict=True)):
        left, top = (_FACET_WIDTH + 22) * (number % 2), (_FACET_HEIGHT + 34) * (number // 2)
        # Slanted labels below a panel at the right would reach into the one at the left of the next row.
        labelled = (number % 2 == 0, number // 2 == last_row)
        marks += draw_groups(points, left=left, top=top, width=_FACET_WIDTH, height=_FACET_HEIGHT, labelled=labelled)
        marks.append(svg.Label(left + _FACET_WIDTH / 2, top - 8, head, "middle", bold=True))
    return marks


def _stack(rows: Sequence[_Row], spec: _ChartSpec) -> NamedChart | None:
    """Draw a stacked bar for each value of the key ``bar``, with a segment for each value of ``part``."""
    cells: list[tuple[str, str, Any]] = [
        (fmt.printable(row["bar"]), fmt.printable(row["part"]), row.get("count")) for row in rows
    ]
    parts = {part: index for index, part in enumerate(dict.fromkeys(part for _, part, _ in cells))}
    known = [cell for cell in cells if fmt.finite_or_none(cell[2]) is not None]
    if not any(count for _, _, count in known):
        return None
    stacks: dict[str, list[layout.BarSegment]] = {bar: [] for bar, _, _ in cells}
    for bar, part, count in sorted(known, key=lambda cell: parts[cell[1]]):
        colour = SEGMENT_COLOURS[parts[part] % len(SEGMENT_COLOURS)]
        stacks[bar].append(layout.BarSegment(count, colour, f"{bar}, {part}: {fmt.count(count)}"))
    totals = [sum(segment.size for segment in segments) for segments in stacks.values()]
    axis = value_axis(0.0, max(totals), si_labels, title=spec.x or "questions", integers=True)
    keys = [layout.LegendEntry(part, SEGMENT_COLOURS[index % len(SEGMENT_COLOURS)]) for part, index in parts.items()]
    texts = "; ".join(f"{bar}, {part}: {fmt.count(count)}" for bar, part, count in known if count)
    description = f"Stacked bars: {spec.caption}. {texts}."
    chart = layout.stacked_rows(stacks, axis, keys)
    return spec.make_chart(chart, description, [{"n": size} for size in totals], "bar")


def _merge_orders(rows: Sequence[_Row], key: str) -> list[str]:
    """Return the values of a key in the order that all panels share, also if a panel lacks some of them."""
    merged: list[str] = []
    by_panel: dict[str, dict[str, None]] = {}
    for row in rows:
        by_panel.setdefault(str(row.get("panel")), {})[fmt.printable(row.get(key) or "")] = None
    for names in by_panel.values():
        position = 0
        for name in names:
            if name in merged:
                position = merged.index(name) + 1
            else:
                merged.insert(position, name)
                position += 1
    return merged


def _fill(row: _Row, colour: str, spec: _ChartSpec) -> tuple[str, None, tuple[float, ...], str]:
    """Return the colour of a bar and its label: a bar of few questions is grey and has their number."""
    few = spec.has_few(row)
    return FEW_COLOUR if few else colour, None, (), f"n={fmt.count(row.get('n'))}" if few else ""


def _interval(row: _Row) -> tuple[float, float, float]:
    """Return the value of a row and the low and high ends of its interval; a missing end equals the value."""
    value = float(row["value"])
    low, high = (fmt.finite_or_none(row.get(end)) for end in ("low", "high"))
    return value, value if low is None else low, value if high is None else high


def _value_tooltip(row: _Row, percent: bool) -> str:
    return score_tooltip(row["value"], row.get("low"), row.get("high"), n=row.get("n"), percent=percent)


def _titled(row: _Row, name: str, spec: _ChartSpec) -> str:
    title = {"x": spec.x, "bar": spec.legend}.get(name)
    return fmt.printable(f"{title} {row[name]}" if title else row[name])
