"""Graphical marks of figures (bars, strokes, lines, symbols, labels) and their SVG output."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from html import escape
from typing import NamedTuple

from merkhet.core.text import printable
from merkhet.reports._text_width import ASCENT, DESCENT, text_width

INK = "#26272b"
FONT = "Arial, 'Liberation Sans', Helvetica, 'Noto Sans CJK SC', 'PingFang SC', 'Microsoft YaHei', sans-serif"
FONT_SIZE = 12.0
PADDING = 4.0
"""Margin around a figure, in pixels."""
_ROOT_3 = math.sqrt(3) / 2


class Box(NamedTuple):
    """A bounding box, in pixels."""

    left: float
    top: float
    right: float
    bottom: float


def _bounds(points: Iterable[tuple[float, float]]) -> Box:
    across, down = zip(*points, strict=True)
    return Box(min(across), min(down), max(across), max(down))


@dataclass(frozen=True)
class Bar:
    """A rectangle: a bar, a segment of a bar, or a cell of a heat map."""

    x: float
    y: float
    width: float
    height: float
    fill: str
    tooltip: str = ""
    """Text shown when the pointer is over the mark."""
    stroke: str = ""
    stroke_width: float = 1.0
    dash: tuple[float, ...] = ()

    def box(self) -> Box:
        """Return the bounding box."""
        return Box(self.x, self.y, self.x + self.width, self.y + self.height)

    def svg(self) -> str:
        """Return the mark as an SVG element."""
        geometry = _attributes(x=self.x, y=self.y, width=self.width, height=self.height)
        return _element("rect", f'{geometry} fill="{self.fill}"{_stroke(self)}', self.tooltip)


@dataclass(frozen=True)
class Strokes:
    """Straight strokes of one style without tooltips, such as grid lines, intervals or chance levels."""

    segments: tuple[tuple[float, float, float, float], ...]
    """Coordinates x1, y1, x2 and y2 of each stroke."""
    stroke: str
    stroke_width: float = 1.0
    dash: tuple[float, ...] = ()
    opacity: float = 1.0

    def box(self) -> Box:
        """Return the bounding box."""
        return _bounds(end for x1, y1, x2, y2 in self.segments for end in ((x1, y1), (x2, y2)))

    def svg(self) -> str:
        """Return all strokes as one SVG element."""
        path = "".join(
            f"M{_number(x1)},{_number(y1)}" + (f"V{_number(y2)}" if x1 == x2 else f"L{_number(x2)},{_number(y2)}")
            for x1, y1, x2, y2 in self.segments
        )
        opacity = f' opacity="{_number(self.opacity)}"' if self.opacity != 1 else ""
        return f'<path d="{path}" fill="none"{_stroke(self)}{opacity} pointer-events="none"/>'


@dataclass(frozen=True)
class Line:
    """A polyline through ``points``."""

    points: tuple[tuple[float, float], ...]
    stroke: str
    stroke_width: float = 1.6
    dash: tuple[float, ...] = ()

    def box(self) -> Box:
        """Return the bounding box."""
        return _bounds(self.points)

    def svg(self) -> str:
        """Return the line as an SVG element."""
        path = "L".join(f"{_number(x)},{_number(y)}" for x, y in self.points)
        return f'<path d="M{path}" fill="none" stroke-linejoin="round"{_stroke(self)} pointer-events="none"/>'


@dataclass(frozen=True)
class Symbol:
    """A point symbol: circle, square, triangle-up, triangle-down, diamond or cross."""

    x: float
    y: float
    shape: str
    fill: str
    area: float = 52.0
    tooltip: str = ""
    """Text shown when the pointer is over the mark."""
    stroke: str = ""
    stroke_width: float = 1.0

    def box(self) -> Box:
        """Return the bounding box."""
        radius = math.sqrt(self.area) / 2 + self.stroke_width
        return Box(self.x - radius, self.y - radius, self.x + radius, self.y + radius)

    def svg(self) -> str:
        """Return the mark as an SVG element."""
        transform = f'transform="translate({_number(self.x)},{_number(self.y)})"'
        look = f'd="{_shape(self.shape, self.area)}" fill="{self.fill}"{_stroke(self)}'
        return _element("path", f"{transform} {look}", self.tooltip)


@dataclass(frozen=True)
class Label:
    """A single line of text, anchored at (x, y) on its baseline and rotated about that point."""

    x: float
    y: float
    text: str
    anchor: str = "start"
    """Part of the text at x: ``start``, ``middle`` or ``end``."""
    size: float = FONT_SIZE
    fill: str = ""
    bold: bool = False
    angle: float = 0.0
    """Clockwise rotation, in degrees."""
    inert: bool = False
    """Whether the label ignores the pointer, so that the mark behind it shows its tooltip."""

    def box(self) -> Box:
        """Return the bounding box."""
        return _bounds(self.corners())

    def corners(self) -> list[tuple[float, float]]:
        """Return the corners of the rotated text box."""
        width = text_width(self.text, self.size, bold=self.bold)
        left = self.x - width * {"start": 0.0, "middle": 0.5, "end": 1.0}[self.anchor]
        turn = math.radians(self.angle)
        cosine, sine = math.cos(turn), math.sin(turn)
        return [
            (self.x + across * cosine - down * sine, self.y + across * sine + down * cosine)
            for across in (left - self.x, left - self.x + width)
            for down in (-ASCENT * self.size, DESCENT * self.size)
        ]

    def svg(self) -> str:
        """Return the text as an SVG element."""
        turn = ",".join(map(_number, (self.angle, self.x, self.y)))
        attributes = {
            "text-anchor": self.anchor if self.anchor != "start" else "",
            "font-size": _number(self.size) if self.size != FONT_SIZE else "",
            "fill": self.fill,
            "font-weight": "bold" if self.bold else "",
            "transform": f"rotate({turn})" if self.angle else "",
            "pointer-events": "none" if self.inert else "",
        }
        texts = "".join(f' {name}="{value}"' for name, value in attributes.items() if value)
        return f"<text {_attributes(x=self.x, y=self.y)}{texts}>{escape(printable(self.text), quote=False)}</text>"


Mark = Bar | Strokes | Line | Symbol | Label


def extent(marks: Iterable[Mark]) -> Box:
    """Return the bounding box of all marks."""
    boxes = [mark.box() for mark in marks]
    corners = [corner for box in boxes for corner in (box[:2], box[2:])]
    return _bounds(corners or [(0.0, 0.0)])


@dataclass(frozen=True)
class Drawing:
    """Marks in drawing order, with a view box that contains all of them."""

    marks: tuple[Mark, ...]
    left: float
    top: float
    width: float
    height: float

    @cached_property
    def body(self) -> str:
        """The SVG elements of all marks."""
        return "".join(mark.svg() for mark in self.marks)

    def inline(self, label: str) -> str:
        """Return an ``<svg>`` element for an HTML page; ``label`` is its text alternative."""
        return f'<svg {self._frame()} role="img" aria-label="{escape(printable(label))}">{self.body}</svg>'

    def document(self, title: str, description: str, scale: float = 1.0) -> str:
        """Return the content of an SVG file with white background, title and description, enlarged by ``scale``."""
        texts = "".join(
            f"<{name}>{escape(printable(text), quote=False)}</{name}>"
            for name, text in (("title", title), ("desc", description))
        )
        view = _attributes(x=self.left, y=self.top, width=self.width, height=self.height)
        return (
            '<?xml version="1.0" encoding="UTF-8"?>\n'
            f'<svg xmlns="http://www.w3.org/2000/svg" {self._frame(scale)} role="img">{texts}'
            f'<rect {view} fill="white"/>{self.body}</svg>\n'
        )

    def _frame(self, scale: float = 1.0) -> str:
        view = " ".join(_number(side) for side in (self.left, self.top, self.width, self.height))
        size = _attributes(width=scale * self.width, height=scale * self.height)
        return f'{size} viewBox="{view}" font-family="{FONT}" font-size="{_number(FONT_SIZE)}" fill="{INK}"'


def make_drawing(marks: Sequence[Mark], width: float | None = None) -> Drawing:
    """Make a drawing of all marks with a margin around them, at least ``width`` pixels wide."""
    box = extent(marks)
    left, top = math.floor(box.left - PADDING), math.floor(box.top - PADDING)
    needed = math.ceil(box.right + PADDING) - left
    return Drawing(tuple(marks), left, top, max(needed, width or 0.0), math.ceil(box.bottom + PADDING) - top)


def _shape(name: str, area: float) -> str:
    radius = math.sqrt(area) / 2
    if name == "circle":
        radius = math.sqrt(area / math.pi)
        arc = f"a{_number(radius)},{_number(radius)} 0 1 1"
        return f"M{_number(-radius)},0{arc} {_number(2 * radius)},0{arc} {_number(-2 * radius)},0Z"
    arm = 0.4
    shapes: dict[str, list[tuple[float, float]]] = {
        "square": [(-1, -1), (1, -1), (1, 1), (-1, 1)],
        "triangle-up": [(0, -_ROOT_3), (-1, _ROOT_3), (1, _ROOT_3)],
        "triangle-down": [(0, _ROOT_3), (-1, -_ROOT_3), (1, -_ROOT_3)],
        "diamond": [(-1, 0), (0, -1), (1, 0), (0, 1)],
        "cross": [
            *((-1, -arm), (-arm, -arm), (-arm, -1), (arm, -1), (arm, -arm), (1, -arm)),
            *((1, arm), (arm, arm), (arm, 1), (-arm, 1), (-arm, arm), (-1, arm)),
        ],
    }
    return "M" + "L".join(f"{_number(radius * x)},{_number(radius * y)}" for x, y in shapes[name]) + "Z"


def _stroke(mark: Bar | Strokes | Line | Symbol) -> str:
    if not mark.stroke:
        return ""
    wide = "" if mark.stroke_width == 1 else f' stroke-width="{_number(mark.stroke_width)}"'
    dash = "" if isinstance(mark, Symbol) or not mark.dash else f' stroke-dasharray="{",".join(map(str, mark.dash))}"'
    return f' stroke="{mark.stroke}"{wide}{dash}'


def _element(name: str, attributes: str, tooltip: str) -> str:
    if not tooltip:
        return f"<{name} {attributes}/>"
    return f"<{name} {attributes}><title>{escape(printable(tooltip), quote=False)}</title></{name}>"


def _attributes(**numbers: float) -> str:
    return " ".join(f'{name}="{_number(value)}"' for name, value in numbers.items())


def _number(value: float) -> str:
    text = f"{value:.2f}".rstrip("0").rstrip(".")
    return "0" if text in ("-0", "") else text
