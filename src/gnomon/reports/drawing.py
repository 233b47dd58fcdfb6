"""What all figures share: colours and marks that anybody can tell apart, names that fit, and how a chart is drawn."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich.cells import cell_len

from gnomon.reports import formatting as show
from gnomon.reports.scoreboard import Series
from gnomon.reports.svg import embed

COLOURS = (
    *("#0072B2", "#E69F00", "#009E73", "#56B4E9", "#CC79A7", "#7f4f24"),
    *("#a6d96a", "#3b0f70", "#F0E442", "#661100", "#f4a6c0", "#1b3a57"),
)
"""Models in turn. The first five are of Okabe and Ito's palette (2008, https://jfly.uni-koeln.de/color/); all are told
apart with any colour vision, and neighbours in grey too."""
VERMILION = "#D55E00"
"""The palette's red, kept for chance; the black of the palette is for intervals."""
PARTS = (*COLOURS, VERMILION, "#c8c8ce")
"""For figures with more kinds of bars than there are models in most."""
GREYS = ("#9a9a9a", "#66666b", "#c8c8ce")
"""Baselines in turn."""
INK = "#26272b"
GRID = "#ececf0"
POINTS = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down")
DASHES = ((1, 0), (8, 3), (8, 3, 2, 3), (5, 2), (12, 3), (12, 3, 2, 3))
DOTTED = (2, 3)
"""The lines of models in turn, and those of baselines."""
INTERVALS = "95% bootstrap intervals, clustered by fact"
PANEL = 360
NAMES = 165
"""The width of a panel and of the names in it, in pixels; in a column of a paper (3 inches) letters have 7 points."""
_SYMBOL, _LETTER, _GAP = 24, 6.0, 4
"""Widths of a symbol with the room around it, of a letter and of a gap, in pixels."""
_FONT = "Arial, 'Liberation Sans', Helvetica, 'Noto Sans CJK SC', 'PingFang SC', 'Microsoft YaHei', sans-serif"
SMALL = 11.7
"""The size of the smallest letters, in pixels."""
_LABEL = 26
"""The letters of a name; one of Chinese is as wide as two."""
_FOLDER = re.compile(r"^[\w.-]+(?:/[\w.-]+)*/(?=[\w.-])")


@dataclass(frozen=True)
class Figure:
    """A drawn figure: a caption in plain text and inline SVG."""

    caption: str
    svg: str


@dataclass(frozen=True)
class NamedChart:
    """A figure before it is drawn.

    ``name`` is what its file is called. ``caption`` says what is shown, of how many questions, and what the thin lines
    are; ``title`` is the short of it for a page that says the rest once. ``chart`` is an Altair chart without a
    configuration, ``told`` what it shows in words, for who cannot see it.
    """

    name: str
    caption: str
    chart: Any
    title: str = ""
    told: str = ""


def can_draw() -> bool:
    """Whether the parts that draw (altair and vl-convert) are installed."""
    try:
        import altair  # noqa: F401
        import vl_convert  # noqa: F401
    except ImportError:
        return False
    return True


def drawn(one: NamedChart, identity: str) -> Figure:
    """The chart as inline SVG for a page, whose ids start with ``identity``."""
    return Figure(one.title or one.caption, embed(svg_of(one.chart), identity, show.printable(one.told)))


def svg_of(chart: Any, background: str = "transparent") -> str:
    """A chart as SVG, in the type of the report."""
    import vl_convert

    svg: str = vl_convert.vegalite_to_svg(specification(chart, background), vl_version=vega_lite_version())
    return svg


def specification(chart: Any, background: str = "transparent") -> dict[str, Any]:
    """A chart as a Vega-Lite specification, in the type of the report: no letter is smaller than :data:`SMALL`."""
    described: dict[str, Any] = (
        chart.configure(font=_FONT, background=background, padding=4)
        .configure_view(stroke=None)
        .configure_axis(
            labelFontSize=12,
            titleFontSize=12,
            titleFontWeight="normal",
            titlePadding=7,
            labelColor=INK,
            titleColor=INK,
        )
        .configure_legend(
            labelFontSize=SMALL, titleFontSize=SMALL, titleFontWeight="normal", labelColor=INK, titleColor=INK
        )
        .to_dict()
    )
    return described


def vega_lite_version() -> str:
    """The version of Vega-Lite that Altair writes for, as vl-convert names it."""
    import altair as alt

    return ".".join(alt.SCHEMA_VERSION.lstrip("v").split(".")[:2])


def line_colours(series: Sequence[Series], baselines: Collection[str]) -> dict[Series, str]:
    """A colour for each line that people with any colour vision can tell apart; baselines are grey."""
    return dict(zip(series, colours_of([line.model in baselines for line in series]), strict=True))


def colours_of(plain: Sequence[bool]) -> list[str]:
    """The colours of lines in order, of which some are baselines."""
    taken = {True: 0, False: 0}
    found = []
    for baseline in plain:
        palette = GREYS if baseline else COLOURS
        found.append(palette[taken[baseline] % len(palette)])
        taken[baseline] += 1
    return found


def short_labels(series: Sequence[Series]) -> dict[Series, str]:
    """Names that fit beside a bar and are still told apart: without their folder, and cut in the middle.

    Names that would be cut to the same begin where they differ.
    """
    bare = {line: _FOLDER.sub("", line.label) for line in series}
    bare = {line: name if list(bare.values()).count(name) == 1 else line.label for line, name in bare.items()}
    alike: dict[str, list[str]] = {}
    for name in bare.values():
        alike.setdefault(cut(name), []).append(name)
    short: dict[Series, str] = {}
    for line, whole in bare.items():
        name = cut(whole)
        if len(set(alike[name])) > 1:
            name = cut(f"…{whole[_same(alike[name]) :]}")
        copies = sum(name == other or other.startswith(f"{name} #") for other in short.values())
        short[line] = f"{name} #{copies + 1}" if copies else name
    return short


def _same(names: Sequence[str]) -> int:
    """Where the word begins in which names differ first."""
    first, last = min(names), max(names)
    size = next((place for place, pair in enumerate(zip(first, last, strict=False)) if len(set(pair)) > 1), len(first))
    return first.rfind(" ", 0, size) + 1


def cut(name: str, length: int = _LABEL) -> str:
    """A name that is no longer than this; what is left out stands in the middle."""
    if cell_len(name) <= length:
        return name
    return f"{_within(name, length - 11)}…{_within(reversed(name), 10)[::-1]}"


def _within(letters: Iterable[str], room: int) -> str:
    """The first letters that are no wider than this together."""
    kept = []
    for letter in letters:
        room -= cell_len(letter)
        if room < 0:
            break
        kept.append(letter)
    return "".join(kept)


def legend_columns(labels: Sequence[str], *, beside: Sequence[str] = (), title: str = "", room: float = PANEL) -> int:
    """How many labels stand in a row of the legend under a panel so that none is cut off.

    The legend begins where the bars do: right of their names, which are ``beside`` it.
    """
    taken = min(NAMES, _LETTER * max(map(cell_len, beside), default=0)) + _LETTER * cell_len(title) + 3 * _GAP
    for columns in range(len(labels), 1, -1):
        widths = [max(map(cell_len, labels[place::columns])) for place in range(columns)]
        if sum(_SYMBOL + _LETTER * width for width in widths) + taken <= room:
            return columns
    return 1


def bands(alt: Any, names: Sequence[str], group: float, room: float) -> Any:
    """Places for groups of bars, each group so many pixels wide, over so much room."""
    inner = max(0.15, 1 - group * len(names) / room)
    return alt.Scale(domain=list(names), paddingInner=inner, paddingOuter=inner / 2)


def wrapped_axis(alt: Any, labels: Sequence[str], room: float, letter: float = _LETTER) -> Any:
    """The axis of names below bars, each ``room`` pixels wide: in as many lines as it takes, or aslant."""
    axis = alt.Axis(labelAngle=0, ticks=False, labelPadding=6, grid=False, labelOverlap=False, labelLimit=NAMES)
    room -= 2 * _GAP
    lines = {label: _lines(label, room / letter) for label in labels}
    if any(letter * cell_len(line) > room for own in lines.values() for line in own):
        axis.labelAngle, axis.labelAlign = -38, "right"
    elif any(len(own) > 1 for own in lines.values()):
        axis.labelExpr = f"({json.dumps(lines)})[datum.label]"
    return axis


def _lines(label: str, room: float) -> list[str]:
    """The words of a label, as many in a line as fit."""
    lines: list[str] = []
    for word in label.split(" "):
        longer = f"{lines[-1]} {word}" if lines else word
        if lines and cell_len(longer) <= room:
            lines[-1] = longer
        else:
            lines.append(word)
    return lines


def whiskers(base: Any, **ends: Any) -> list[Any]:
    """Intervals as thin lines, with a white rim so that they are seen on dark bars too."""
    return [
        base.mark_rule(stroke="white", strokeWidth=3.2, opacity=0.75, aria=False).encode(**ends),
        base.mark_rule(stroke=INK, strokeWidth=1.3, aria=False).encode(**ends),
    ]


def value_axis(alt: Any, percent: bool, **more: Any) -> Any:
    """The axis of scores."""
    form = ".0%" if percent else "~g"
    settings = {"format": form, "tickCount": 5, "gridColor": GRID, "domain": False, "ticks": False}
    return alt.Axis(**(settings | more))


def across(alt: Any, percent: bool) -> Any:
    """The axis of scores where bars lie."""
    return value_axis(alt, percent, labelFlush=True, labelOverlap="parity", labelSeparation=4)


def names_axis(alt: Any, limit: int = NAMES) -> Any:
    """The axis of names, beside bars that lie."""
    return alt.Axis(labelLimit=limit, ticks=False, domain=False, labelPadding=6)


def fit(alt: Any) -> Any:
    """Every panel is equally wide, whatever the length of its names."""
    return alt.AutoSizeParams(type="fit-x", contains="padding")


def panel(alt: Any) -> dict[str, Any]:
    """A panel of bars that lie."""
    return {"width": PANEL, "height": {"step": 26}, "autosize": fit(alt)}


def counted(sizes: Collection[int], of: str = "questions") -> str:
    """How many questions are behind the numbers of a figure, for its caption; nothing where that is not known."""
    known = sorted({size for size in sizes if size})
    if not known:
        return ""
    if len(known) == 1:
        return f"n = {known[0]:,} {of}"
    return f"n = {known[0]:,}–{known[-1]:,} {of}"


def sentences(*parts: str) -> str:
    """A caption of the parts that say something, each with its full stop."""
    return " ".join(part if part.endswith((".", "!", "?")) else f"{part}." for part in parts if part)


def measured(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row's value with the ends of its interval, which are the value itself where there is none."""
    ends = {end: row["value"] if show.finite(row.get(end)) is None else row[end] for end in ("low", "high")}
    return {"value": row["value"], **ends}


def reach(values: Sequence[Mapping[str, Any]], zero: bool = True) -> list[float]:
    """From 0, or without it from the tenth below the least end of an interval, to the highest end."""
    least, most = min(float(value["low"]) for value in values), max(float(value["high"]) for value in values)
    return [min(0.0, least) if zero else math.floor(10 * least) / 10, max(0.1, most)]
