"""Figures that analyses describe as data: lines over buckets or numbers, stacked bars, and groups of bars."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from merkhet.reports import formatting as show
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
    PARTS,
    POINTS,
    NamedChart,
    colours_of,
    counted,
    sentences,
    short_labels,
)
from merkhet.reports._plot_layout import (
    PANEL,
    SMALL,
    Key,
    Part,
    band,
    category_labels,
    columns_frame,
    fit_panel,
    legend_below,
    stacked_rows,
    ticks_below,
    title_below,
    whiskers,
)
from merkhet.reports._svg_marks import (
    FONT_SIZE,
    INK,
    PADDING,
    Bar,
    Drawing,
    Label,
    Line,
    Mark,
    Strokes,
    Symbol,
    drawing,
    extent,
)
from merkhet.reports._text_width import shorten
from merkhet.reports.scoreboard import Series

_SMALL, _LOW = 138.0, 92.0
"""The width and the height of one of several panels."""
_WIDEST = 46.0
"""The width of a bar where there are few."""
_HEIGHT = 190.0
_MOST_TICKS = 8
_MOST_POINTS = 25
"""Beyond so many places along x only some of a line's points are marked."""
_INSET = 9.0
"""Pixels between the ends of a plot and the first and last place of a line."""


@dataclass(frozen=True)
class _Described:
    """What an analysis says of a figure besides its rows."""

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
        self, chart: Drawing, told: str, rows: Sequence[Mapping[str, Any]], of: str, starts: float = 0.0
    ) -> NamedChart:
        """The chart with its caption, which says how much is behind each of its points and what the thin lines are."""
        sizes = [int(size) for row in rows if (size := show.finite(row.get("n"))) is not None]
        thin = any(show.finite(row.get("low")) is not None for row in rows)
        more = "Thin lines are 95% bootstrap intervals" if thin else ""
        above = f"The axis of scores begins at {starts:.0%}" if starts > 0 else ""
        whole = sentences(self.caption, more, counted(sizes, of), above)
        return NamedChart(self.name, whole, chart, title=self.caption, told=told)


def described_chart(described: Mapping[str, Any], name: str, baselines: Collection[str] = ()) -> NamedChart | None:
    """The chart that an analysis describes; None where there is nothing in it, or its kind is not known."""
    rows = [row for row in described.get("rows") or () if isinstance(row, Mapping)]
    kinds: Mapping[str, Callable[[Sequence[Mapping[str, Any]], _Described], NamedChart | None]] = {
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
    return made(rows, _Described(name, caption, x, y, legend, bool(percent), baselines, log, zero))


@dataclass(frozen=True)
class _Point:
    """A value at a place along x; the ends of its interval are the value itself where there is none."""

    x: float | str
    line: str
    value: float
    low: float
    high: float
    about: str


@dataclass(frozen=True)
class _Look:
    """How a line is drawn."""

    colour: str
    shape: str
    dash: tuple[float, ...]


def _lines(rows: Sequence[Mapping[str, Any]], frame: _Described) -> NamedChart | None:
    """A line with points and intervals for each value of ``line``, with a shape and a dash of its own; baselines are
    grey and dotted."""
    known = [row for row in rows if show.finite(row.get("value")) is not None]
    if not known:
        return None
    numbers = all(show.finite(row["x"]) is not None for row in known)
    places = list(dict.fromkeys(row["x"] if numbers else show.printable(row["x"]) for row in known))
    marked = set(sorted(places)[:: max(1, round(len(places) / 10))] if len(places) > _MOST_POINTS else places)
    series = {str(row["line"]): Series(str(row["line"])) for row in known}
    short = short_labels(list(series.values()))
    plain = {str(row["line"]) for row in known if str(row.get("model", row["line"])) in frame.baselines}
    looks = line_looks(list(series), plain)
    points = [
        _Point(
            row["x"] if numbers else show.printable(row["x"]),
            str(row["line"]),
            *_interval(row),
            f"{show.printable(row['line'])}, {show.printable(row['x'])}: {_spoken(row, frame.percent)}",
        )
        for row in known
    ]
    axis = _value_axis(points, frame)
    thin = any(show.finite(row.get("low")) is not None for row in known)

    def build(room: float) -> list[Mark]:
        marks, y = columns_frame(axis, 0.0, room, 0.0, _HEIGHT)
        x, below = _along(places, list(series), frame, room, numbers)
        order = {place: number for number, place in enumerate(sorted(places) if numbers else places)}
        ordered = sorted(points, key=lambda point: order[point.x])
        lines = {line: [point for point in ordered if point.line == line] for line in series}
        for line, own in lines.items():
            colour, dash = looks[line].colour, looks[line].dash
            if thin:
                ends = ((x(point), y(point.low), x(point), y(point.high)) for point in own)
                marks.append(Strokes(tuple(ends), colour, 1.4))
            marks.append(Line(tuple((x(point), y(point.value)) for point in own), colour, dash=dash))
        marks += [
            Symbol(x(point), y(point.value), looks[point.line].shape, looks[point.line].colour, about=point.about)
            for point in points
            if point.x in marked
        ]
        return [*marks, *below]

    keys = [
        Key(show.printable(short[one]), looks[line].colour, looks[line].shape, line=True, dash=looks[line].dash)
        for line, one in series.items()
    ]
    told = "; ".join(point.about for point in points if point.x in marked)
    begins = axis.low if frame.percent else 0.0
    return frame.named(
        fit_panel(build, keys), f"Line chart of {frame.caption}. {told}.", known, "questions a point", begins
    )


def line_looks(lines: Sequence[str], plain: Collection[str] = ()) -> dict[str, _Look]:
    """Choose colours, shapes and dashes: what a reader cannot tell apart by colour is told apart by the others."""
    models = [line for line in lines if line not in plain]
    dashes = {line: DASHES[place % len(DASHES)] for place, line in enumerate(models)}
    colours = colours_of([line in plain for line in lines])
    return {
        line: _Look(colour, POINTS[(place + place // len(POINTS)) % len(POINTS)], dashes.get(line, DOTTED))
        for place, (line, colour) in enumerate(zip(lines, colours, strict=True))
    }


def _along(
    places: Sequence[Any], lines: Sequence[str], frame: _Described, room: float, numbers: bool
) -> tuple[Callable[[_Point], float], list[Mark]]:
    """Return where points stand along x, and the labels below; lines over categories stand side by side."""
    if numbers:
        axis, scale = _number_axis(places, frame, room)
        return (lambda point: scale(float(point.x))), ticks_below(axis, scale, _HEIGHT, room)
    pitch = room / len(places)
    apart = min(12.0, 0.8 * pitch / (len(lines) + 1.8))
    centres = {place: pitch * (number + 0.5) for number, place in enumerate(places)}
    offsets = {line: apart * (number - (len(lines) - 1) / 2) for number, line in enumerate(lines)}
    labels = category_labels(places, list(centres.values()), pitch, _HEIGHT)
    below = [*labels, *title_below(frame.x, room / 2, room, extent(labels).bottom)]
    return (lambda point: centres[point.x] + offsets[point.line]), below


def _number_axis(places: Sequence[float], frame: _Described, room: float) -> tuple[Axis, Scale]:
    """Return the axis of numbers along x; on a logarithmic one the places themselves are ticks, where they are few."""
    low, high = float(min(places)), float(max(places))
    if frame.log and low > 0:
        ticks = sorted(map(float, places)) if len(places) <= _MOST_TICKS else log_ticks(low, high)
        labels = si_labels(ticks) if low >= 1 else general_labels(ticks)
        return Axis(low, high, tuple(ticks), tuple(labels), frame.x), Scale(low, high, _INSET, room - _INSET, log=True)
    if low == high:
        return Axis(low, high, (low,), tuple(number_labels([low])), frame.x), Scale(low, high, _INSET, room - _INSET)
    whole = all(float(place).is_integer() for place in places)
    axis = value_axis(low, high, number_labels, title=frame.x, nice=False, whole=whole)
    return axis, axis.scale(_INSET, room - _INSET)


def _value_axis(points: Sequence[_Point], frame: _Described) -> Axis:
    """Return the axis of scores, which begins at 0, or without it at the tenth below the least end of an interval."""
    least, most = min(point.low for point in points), max(point.high for point in points)
    if not frame.percent:
        return value_axis(min(0.0, least), max(0.0, most), number_labels, title=frame.y)
    least = min(0.0, least) if frame.zero else math.floor(10 * least) / 10
    return value_axis(least, max(least + 0.02, 0.1, most), percent_labels, title=frame.y)


def _bars(rows: Sequence[Mapping[str, Any]], frame: _Described) -> NamedChart | None:
    """A panel for each value of ``panel``; in it a group for each x, in the group a bar with its interval.

    Where x and bar both have titles (P1, P2), a bar is a setting of its own and is named after both (EX/NO).
    """
    known = [row for row in rows if show.finite(row.get("value")) is not None]
    if not known:
        return None
    panels, places, bars = (
        list(dict.fromkeys(show.printable(row.get(name) or "") for row in known)) for name in ("panel", "x", "bar")
    )
    heads = {one.model: label for one, label in short_labels([Series(name) for name in panels]).items()}
    grouped: dict[str, list[_Point]] = {panel: [] for panel in panels}
    for row in known:
        named = (_titled(row, name, frame) for name in ("panel", "x", "bar") if row.get(name))
        x, bar, panel = (show.printable(row.get(name) or "") for name in ("x", "bar", "panel"))
        about = f"{', '.join(named)}: {_spoken(row, frame.percent)}"
        grouped[panel].append(_Point(x, bar, *_interval(row), about))
    points = [point for own in grouped.values() for point in own]
    axis = _value_axis(points, replace(frame, zero=True))
    colours = {bar: PARTS[place % len(PARTS)] for place, bar in enumerate(bars)}
    groups = _Groups(places, bars, colours, frame, {(point.x, point.line) for point in points})
    keys = [Key(bar, colours[bar], stroke=INK) for bar in bars]
    if len(panels) == 1:
        chart = fit_panel(lambda room: groups.marks(points, axis, 0.0, room, 0.0, _HEIGHT), keys, frame.legend)
    else:
        marks = _facets({heads[panel]: own for panel, own in grouped.items()}, groups, axis)
        chart = drawing([*marks, *legend_below(marks, keys, frame.legend, PANEL - 2 * PADDING)])
    told = f"Bar chart of {frame.caption} " + "; ".join(point.about for point in points) + "."
    return frame.named(chart, told, known, "questions a bar")


@dataclass(frozen=True)
class _Groups:
    """Groups of bars: their places along x, the bars of each, and their colours."""

    places: Sequence[str]
    bars: Sequence[str]
    colours: Mapping[str, str]
    frame: _Described
    there: Collection[tuple[float | str, str]]
    """The pairs of place and bar that have a value."""

    def marks(
        self,
        points: Sequence[_Point],
        axis: Axis,
        left: float,
        room: float,
        top: float,
        height: float,
        *,
        labelled: tuple[bool, bool] = (True, True),
    ) -> list[Mark]:
        """Draw the groups of one panel; ``labelled`` says whether its values and its places are labelled."""
        marks, y = columns_frame(axis, left, room, top, height, labelled=labelled[0])
        settings = [(x, bar) for x in self.places for bar in self.bars if (x, bar) in self.there]
        apart = bool(self.frame.x and self.frame.legend)
        labels = [f"{x}/{bar}" for x, bar in settings] if apart else list(self.places)
        pitch = room / len(labels)
        centres = [left + pitch * (place + 0.5) for place in range(len(labels))]
        if apart:
            wide = band(pitch, _WIDEST)
            starts = {setting: centre - wide / 2 for setting, centre in zip(settings, centres, strict=True)}
        else:
            group = band(pitch, _WIDEST * len(self.bars))
            wide = group / len(self.bars)
            starts = {
                (x, bar): centre - group / 2 + wide * place
                for x, centre in zip(self.places, centres, strict=True)
                for place, bar in enumerate(self.bars)
            }
        placed = [(point, starts[str(point.x), point.line]) for point in points]
        marks += [
            Bar(
                *(x, min(y(0), y(point.value)), wide, abs(y(point.value) - y(0)), self.colours[point.line]),
                point.about,
                stroke=INK,
                stroke_width=0.5,
            )
            for point, x in placed
        ]
        marks += whiskers(
            (x + wide / 2, y(point.low), x + wide / 2, y(point.high)) for point, x in placed if point.low < point.high
        )
        if labelled[1]:
            below = category_labels(labels, centres, pitch, top + height, SMALL if apart else FONT_SIZE)
            title = f"{self.frame.x}/{self.frame.legend}" if apart else self.frame.x
            marks += [*below, *title_below(title, left + room / 2, room, extent(below).bottom)]
        return marks


def _facets(panels: Mapping[str, Sequence[_Point]], groups: _Groups, axis: Axis) -> list[Mark]:
    """Draw small panels in two columns with one scale: values are labelled at the left, places below each column."""
    marks: list[Mark] = []
    for number, (head, points) in enumerate(panels.items()):
        left, top = (_SMALL + 22) * (number % 2), (_LOW + 34) * (number // 2)
        labelled = (number % 2 == 0, number + 2 >= len(panels))
        marks += groups.marks(points, axis, left, _SMALL, top, _LOW, labelled=labelled)
        head = shorten(head, FONT_SIZE, _SMALL, bold=True)
        marks.append(Label(left + _SMALL / 2, top - 8, head, "middle", bold=True))
    return marks


def _stack(rows: Sequence[Mapping[str, Any]], frame: _Described) -> NamedChart | None:
    """A bar for each value of ``bar``, its parts laid end to end."""
    bars = list(dict.fromkeys(show.printable(row["bar"]) for row in rows))
    parts = list(dict.fromkeys(show.printable(row["part"]) for row in rows))
    colours = {part: PARTS[place % len(PARTS)] for place, part in enumerate(parts)}
    known = [row for row in rows if show.finite(row.get("count")) is not None]
    if not any(row["count"] for row in known):
        return None
    stacks: dict[str, list[tuple[int, Part]]] = {bar: [] for bar in bars}
    spoken = []
    for row in known:
        bar, part = show.printable(row["bar"]), show.printable(row["part"])
        about = f"{bar}, {part}: {show.count(row['count'])}"
        stacks[bar].append((parts.index(part), Part(row["count"], colours[part], about)))
        if row["count"]:
            spoken.append(about)
    ordered = {bar: [part for _, part in sorted(own, key=lambda pair: pair[0])] for bar, own in stacks.items()}
    whole = [sum(part.size for part in own) for own in ordered.values()]
    axis = value_axis(0.0, max(whole), si_labels, title=frame.x or "questions", whole=True)
    chart = stacked_rows(ordered, axis, [Key(part, colours[part]) for part in parts])
    told = f"Stacked bars: {frame.caption}. {'; '.join(spoken)}."
    return frame.named(chart, told, [{"n": size} for size in whole], "questions a bar")


def _interval(row: Mapping[str, Any]) -> tuple[float, float, float]:
    """Return a row's value and the ends of its interval, which are the value itself where there is none."""
    value = float(row["value"])
    low, high = (show.finite(row.get(end)) for end in ("low", "high"))
    return value, value if low is None else low, value if high is None else high


def _spoken(row: Mapping[str, Any], percent: bool) -> str:
    interval = show.interval(row.get("low"), row.get("high"), percent=percent)
    count = "" if row.get("n") is None else f", n = {show.count(row['n'])}"
    return f"{show.score(row['value'], percent=percent)}{' ' if interval else ''}{interval}{count}"


def _titled(row: Mapping[str, Any], name: str, frame: _Described) -> str:
    title = {"x": frame.x, "bar": frame.legend}.get(name)
    return show.printable(f"{title} {row[name]}" if title else row[name])
