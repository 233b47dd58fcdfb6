"""The report's figures, drawn by Vega-Lite as static SVG: they need no script, print well and stay small."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gnomon.reports import formatting as show
from gnomon.reports.outcomes import UNUSABLE, Outcomes
from gnomon.reports.scoreboard import Column, Scoreboard, Series, cell
from gnomon.reports.svg import embed

OKABE_ITO = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#F0E442")
VERMILION = "#D55E00"
"""The palette's red, kept for chance; the black of the palette is for intervals."""
BASELINE = "#9a9a9a"
INK = "#26272b"
_RANK_SHADES = ("#08306b", "#2171b5", "#6baed6", "#b3cde3", "#dfe6ee", "#f3e3d3", "#e8c9a8")
_FONT = "Arial, 'Liberation Sans', Helvetica, sans-serif"
_HEAT_ROWS = 40
_LABEL = 24
_FOLDER = re.compile(r"^[\w.-]+(?:/[\w.-]+)*/(?=[\w.-])")
_CHANCE = "\u200achance"
_HEAT_LINES = 24
_PANEL, _NAMES, _SYMBOL, _LETTER, _GAP = 400, 150, 24, 6.2, 6
"""Widths of a panel, of the names in it, of a symbol with the room around it, of a letter and of a gap, in pixels."""


@dataclass(frozen=True)
class Figure:
    """A drawn figure: a caption in plain text and inline SVG."""

    caption: str
    svg: str


def can_draw() -> bool:
    """Whether the parts that draw (altair and vl-convert) are installed."""
    try:
        import altair  # noqa: F401
        import vl_convert  # noqa: F401
    except ImportError:
        return False
    return True


def line_colours(series: Sequence[Series], baselines: Collection[str]) -> dict[Series, str]:
    """A colour for each line that people with any colour vision can tell apart; baselines are grey."""
    models = [line for line in series if line.model not in baselines]
    colours = {line: OKABE_ITO[place % len(OKABE_ITO)] for place, line in enumerate(models)}
    return {line: colours.get(line, BASELINE) for line in series}


def short_labels(series: Sequence[Series]) -> dict[Series, str]:
    """Names that fit beside a bar and are still told apart: without their folder, and cut in the middle.

    Names that would be cut to the same begin where they differ.
    """
    bare = {line: _FOLDER.sub("", line.label) for line in series}
    bare = {line: name if list(bare.values()).count(name) == 1 else line.label for line, name in bare.items()}
    alike: dict[str, list[str]] = {}
    for name in bare.values():
        alike.setdefault(_cut(name), []).append(name)
    short: dict[Series, str] = {}
    for line, whole in bare.items():
        name = _cut(whole)
        if len(set(alike[name])) > 1:
            name = _cut(f"…{whole[_same(alike[name]) :]}")
        copies = sum(name == other or other.startswith(f"{name} #") for other in short.values())
        short[line] = f"{name} #{copies + 1}" if copies else name
    return short


def _same(names: Sequence[str]) -> int:
    """Where the word begins in which names differ first."""
    first, last = min(names), max(names)
    size = next((place for place, pair in enumerate(zip(first, last, strict=False)) if len(set(pair)) > 1), len(first))
    return first.rfind(" ", 0, size) + 1


def _cut(name: str) -> str:
    return name if len(name) <= _LABEL else f"{name[: _LABEL - 11]}…{name[-10:]}"


def score_figures(board: Scoreboard, colours: dict[Series, str]) -> list[Figure]:
    """For each headline score, a bar for each model with its interval, and a tick at chance."""
    import altair as alt

    shown = [
        column for column in board.columns if any(_value(board, line, column) is not None for line in board.series)
    ]
    ends = [end for column in shown if column.percent for line in board.series for end in _ends(board, line, column)]
    top = next((limit for limit in (0.1, 0.25, 0.5, 1.0) if max(ends, default=1.0) <= limit), 1.0)
    least = min([0.0, *ends])
    names = short_labels(board.series)
    figures = []
    for place, column in enumerate(shown):
        values = [
            {
                "line": names[line],
                "value": found.value,
                "low": found.low if found.low is not None else found.value,
                "high": found.high if found.high is not None else found.value,
                "chance": found.chance,
                "colour": colours[line],
                "about": f"{line.label}: {_spoken(found, column)}",
            }
            for line in board.series
            if (found := board.cells.get((line, column))) is not None and found.value is not None
        ]
        domain = [math.floor(least * 10) / 10, top] if column.percent else alt.Undefined
        scale = alt.Scale(domain=domain, nice=not column.percent)
        x = alt.X("value:Q", title=None, scale=scale, axis=_axis(alt, column))
        y = alt.Y("line:N", title=None, sort=None, axis=_names(alt, 150))
        base = alt.Chart(alt.InlineData(values=values)).encode(y=y)
        colour = alt.Color("colour:N", scale=None, legend=None)
        bars = base.mark_bar(height={"band": 0.62}).encode(x=x, color=colour, description="about:N")
        whiskers = base.mark_rule(stroke=INK, strokeWidth=1.4).encode(x="low:Q", x2="high:Q")
        caps = [base.mark_tick(color=INK, thickness=1.4, size=7).encode(x=f"{end}:Q") for end in ("low", "high")]
        chance = (
            base.transform_filter("isValid(datum.chance)")
            .mark_tick(color=VERMILION, thickness=2.4, size=20)
            .encode(x="chance:Q")
        )
        chart = alt.layer(bars, whiskers, *caps, chance).properties(**_panel(alt))
        figures.append(Figure(column.label, draw(chart, f"scores{place}", _told(column.label, values))))
    return figures


def heat_figure(rows: list[dict[str, Any]], group: str, column: Column, series: Sequence[Series]) -> Figure | None:
    """Groups by models for one score, chance beside them; at most the forty groups with most questions."""
    import altair as alt

    found: dict[str, dict[str, Any]] = {}
    sizes: dict[str, int] = {}
    chances: dict[str, float] = {}
    lines = list(series)[:_HEAT_LINES]
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
    names = sorted(found, key=lambda name: (-sizes[name], name))[:_HEAT_ROWS]
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
    wide = 62 if len(labels) <= 6 else 44
    y = alt.Y("group:N", title=None, scale=alt.Scale(domain=names), axis=_names(alt, 190))
    x_axis = alt.Axis(
        orient="top", labelAngle=-38, labelLimit=130, ticks=False, domain=False, labelPadding=6, labelAlign="left"
    )
    shade = alt.Scale(domain=[0, top], scheme="blues")
    x = alt.X("line:N", title=None, scale=alt.Scale(domain=[*labels, *([_CHANCE] if beside else [])]), axis=x_axis)
    base = alt.Chart(alt.InlineData(values=values)).encode(y=y, x=x)
    squares = base.mark_rect(stroke="white", strokeWidth=1.5).encode(
        color=alt.Color("value:Q", scale=shade, legend=None), description="about:N"
    )
    inks = {ink: [value for value in values if value["ink"] == ink] for ink in ("white", INK)} | {"#a03c00": beside}
    texts = [
        alt.Chart(alt.InlineData(values=written)).mark_text(fontSize=11, color=ink).encode(y=y, x=x, text="text:N")
        for ink, written in inks.items()
        if written
    ]
    chart = alt.layer(squares, *texts).properties(width=alt.Step(wide), height=alt.Step(21))
    more = f" The {_HEAT_ROWS} with most questions of {len(found)}." if len(found) > _HEAT_ROWS else ""
    if len(series) > _HEAT_LINES:
        more += f" The first {_HEAT_LINES} models of {len(series)}."
    unit = " in percent" if column.percent else ""
    caption = f"{column.label}{unit} by {group} and model, chance beside it.{more}"
    return Figure(caption, draw(chart, "heat", f"Heat map: {caption} The numbers are in the tables below."))


def rank_figures(judged: Outcomes) -> list[Figure]:
    """For each task, how many of a model's questions have their best right answer at rank 1, 2, 3 and so on."""
    import altair as alt

    figures = []
    names = short_labels(judged.series)
    usable = (judged.verdict != UNUSABLE) & ~np.isnan(judged.rank)
    for task, name in enumerate(judged.tasks):
        here = usable & (judged.task == task) & (judged.line >= 0)
        if not here.any():
            continue
        limit = max(int(judged.choices[judged.question[here]].max()), math.ceil(judged.rank[here].max()))
        edges, labels = rank_bins(limit)
        values = []
        for index, line in enumerate(judged.series):
            ranks = judged.rank[here & (judged.line == index)]
            if not len(ranks):
                continue
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
        shades = alt.Scale(domain=labels, range=list(_RANK_SHADES[: len(labels)]))
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
        chart = (
            alt.Chart(alt.InlineData(values=values))
            .mark_bar(height={"band": 0.7}, stroke="white", strokeWidth=0.6)
            .encode(
                y=alt.Y("line:N", title=None, scale=alt.Scale(domain=lines), axis=_names(alt, 150)),
                x=alt.X("share:Q", title=None, stack="zero", scale=alt.Scale(domain=[0, 1]), axis=_axis(alt, None)),
                color=alt.Color("bin:N", scale=shades, legend=legend),
                order=alt.Order("place:Q"),
                description="about:N",
            )
            .properties(**_panel(alt))
        )
        first = [value for value in values if value["place"] == 0]
        told = "; ".join(f"{value['line']} {show.score(value['share'])}%" for value in first)
        label = f"Rank of the best right answer, {name}. At rank 1: {told}."
        figures.append(Figure(show.printable(name), draw(chart, f"ranks{task}", label)))
    return figures


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


def legend_columns(labels: Sequence[str], *, beside: Sequence[str] = (), title: str = "") -> int:
    """How many labels stand in a row of the legend under a panel so that none is cut off.

    The legend begins where the bars do: right of their names, which are ``beside`` it.
    """
    taken = min(_NAMES, _LETTER * max(map(len, beside), default=0)) + _LETTER * len(title) + 2 * _GAP
    for columns in range(len(labels), 1, -1):
        widths = [max(map(len, labels[place::columns])) for place in range(columns)]
        if sum(_SYMBOL + _LETTER * width for width in widths) + taken <= _PANEL:
            return columns
    return 1


def _value(board: Scoreboard, line: Series, column: Column) -> float | None:
    found = board.cells.get((line, column))
    return found.value if found else None


def _ends(board: Scoreboard, line: Series, column: Column) -> list[float]:
    found = board.cells.get((line, column))
    return [end for end in (found.value, found.low, found.high, found.chance) if end is not None] if found else []


def _spoken(found: Any, column: Column) -> str:
    text = show.score(found.value, percent=column.percent)
    ends = show.interval(found.low, found.high, percent=column.percent)
    chance = "" if found.chance is None else f", chance {show.score(found.chance, percent=column.percent)}"
    return f"{text}{' ' if ends else ''}{ends}{chance}, n = {found.n:,}"


def _told(title: str, values: list[dict[str, Any]]) -> str:
    return f"Bar chart of {title}. " + "; ".join(str(value["about"]) for value in values) + "."


def _axis(alt: Any, column: Column | None) -> Any:
    share = column is None or column.percent
    return alt.Axis(
        format=".0%" if share else "~g",
        tickCount=5,
        gridColor="#ececf0",
        domain=False,
        ticks=False,
        labelFlush=True,
        labelOverlap="parity",
    )


def _panel(alt: Any) -> dict[str, Any]:
    """Every panel is equally wide, whatever the length of its names."""
    return {"width": _PANEL, "height": {"step": 26}, "autosize": alt.AutoSizeParams(type="fit-x", contains="padding")}


def _names(alt: Any, limit: int) -> Any:
    return alt.Axis(labelLimit=limit, ticks=False, domain=False, labelPadding=6)


def draw(chart: Any, identity: str, label: str) -> str:
    """A chart as inline SVG whose ids start with ``identity``, in the report's type and with its text alternative."""
    import altair as alt
    import vl_convert

    chart = (
        chart.configure(font=_FONT, background="transparent", padding=4)
        .configure_view(stroke=None)
        .configure_axis(labelFontSize=11.5, labelColor=INK, titleColor=INK)
        .configure_legend(labelFontSize=11, titleFontSize=11, titleFontWeight="normal", labelColor=INK, titleColor=INK)
    )
    version = ".".join(alt.SCHEMA_VERSION.lstrip("v").split(".")[:2])
    return embed(vl_convert.vegalite_to_svg(chart.to_dict(), vl_version=version), identity, show.printable(label))
