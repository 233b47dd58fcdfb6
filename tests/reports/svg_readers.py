"""SVG figures read back: marks with their titles, texts and the corners of each, the view box."""

from __future__ import annotations

import itertools
import math
import re
from xml.etree import ElementTree

from merkhet.reports._chart_style import NamedChart
from merkhet.reports._text_width import text_width

ALLOWED = {"svg", "title", "desc", "g", "path", "rect", "text"}
"""What a figure is made of: nothing that acts or loads."""
Corners = list[tuple[float, float]]


class Drawn:
    """A figure as it is in a file or a page."""

    def __init__(self, svg: str | NamedChart) -> None:
        text = svg.drawing.inline(svg.description) if isinstance(svg, NamedChart) else svg
        self.root = ElementTree.fromstring(text)
        for element in self.root.iter():
            element.tag = element.tag.rpartition("}")[2]
        self.width, self.height = (float(self.root.get(name)) for name in ("width", "height"))
        self.view = tuple(map(float, self.root.get("viewBox").split()))
        """Left, top, width and height."""

    def elements(self) -> list[ElementTree.Element]:
        return list(self.root.iter())

    def marks(self, tag: str | None = None) -> dict[str, ElementTree.Element]:
        """The marks that tell what they show, by what they tell."""
        return dict(self.titled(tag))

    def titled(self, tag: str | None = None) -> list[tuple[str, ElementTree.Element]]:
        found = ((element.find("title"), element) for element in self.root.iter() if element is not self.root)
        return [(title.text, element) for title, element in found if title is not None and tag in (None, element.tag)]

    def bars(self) -> list[str]:
        return [title for title, _ in self.titled("rect")]

    def points(self) -> list[tuple[str, ElementTree.Element]]:
        return self.titled("path")

    def texts(self) -> list[str]:
        return [element.text or "" for element in self.root.iter("text")]

    def font_sizes(self) -> list[float]:
        return [self.size(element) for element in self.root.iter("text")]

    def size(self, element: ElementTree.Element) -> float:
        return float(element.get("font-size") or self.root.get("font-size"))

    def text_corners(self, element: ElementTree.Element) -> Corners:
        """The corners of a text, letters reaching from 0.78 em above the baseline to 0.22 em below it."""
        size, x, y = self.size(element), float(element.get("x")), float(element.get("y"))
        wide = text_width(element.text or "", size, bold=element.get("font-weight") == "bold")
        left = x - wide * {"start": 0.0, "middle": 0.5, "end": 1.0}[element.get("text-anchor", "start")]
        turned = re.fullmatch(r"rotate\(([-\d.]+),([-\d.]+),([-\d.]+)\)", element.get("transform", "rotate(0,0,0)"))
        angle, about_x, about_y = (float(part) for part in turned.groups())
        assert angle == 0 or (about_x, about_y) == (x, y)
        cosine, sine = math.cos(math.radians(angle)), math.sin(math.radians(angle))
        return [
            (x + across * cosine - down * sine, y + across * sine + down * cosine)
            for across, down in (
                *((left - x, -0.78 * size), (left - x + wide, -0.78 * size)),
                *((left - x + wide, 0.22 * size), (left - x, 0.22 * size)),
            )
        ]

    def outside(self) -> list[str]:
        """The texts and bars that are cut off by the view box."""
        left, top, wide, high = self.view
        boxes = [(element.text, self.text_corners(element)) for element in self.root.iter("text")]
        boxes += [(title, corners_of_bar(element)) for title, element in self.titled("rect")]
        return [
            text
            for text, corners in boxes
            if any(not left <= x <= left + wide or not top <= y <= top + high for x, y in corners)
        ]

    def overlapping(self) -> list[tuple[str, str]]:
        """The pairs of texts that cover one another."""
        boxes = [(element.text, self.text_corners(element)) for element in self.root.iter("text") if element.text]
        return [
            (first, second) for (first, one), (second, other) in itertools.combinations(boxes, 2) if covers(one, other)
        ]


def corners_of_bar(element: ElementTree.Element) -> Corners:
    x, y, wide, high = (float(element.get(name)) for name in ("x", "y", "width", "height"))
    return [(x, y), (x + wide, y), (x + wide, y + high), (x, y + high)]


def covers(one: Corners, other: Corners) -> bool:
    """Whether two rectangles, turned or not, share more than half a pixel: no line parts them."""
    for axis in (0, 1):  # Most pairs are far apart.
        spans = [[corner[axis] for corner in corners] for corners in (one, other)]
        if max(spans[0]) < min(spans[1]) or max(spans[1]) < min(spans[0]):
            return False
    for box in (one, other):
        for (x1, y1), (x2, y2) in itertools.pairwise([*box, box[0]]):
            length = math.hypot(x2 - x1, y2 - y1)
            if not length:
                continue
            normal = ((y2 - y1) / length, (x1 - x2) / length)
            spans = [[x * normal[0] + y * normal[1] for x, y in corners] for corners in (one, other)]
            if max(spans[0]) < min(spans[1]) + 0.5 or max(spans[1]) < min(spans[0]) + 0.5:
                return False
    return True


def place(element: ElementTree.Element) -> tuple[float, float]:
    """Where a point stands."""
    x, y = element.get("transform").removeprefix("translate(").removesuffix(")").split(",")
    return float(x), float(y)
