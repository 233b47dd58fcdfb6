"""Static SVG made fit to stand in a page: no scripts, no links, its own ids, one label for screen readers."""

from __future__ import annotations

import re
from xml.etree import ElementTree

from gnomon.reports.formatting import printable

_ALLOWED = frozenset(
    {"svg", "g", "path", "rect", "line", "text", "tspan", "circle", "clipPath", "defs", "linearGradient", "stop"}
)
_DROPPED_ATTRIBUTES = frozenset({"class", "version", "role", "pointer-events", "style"})
_REFERENCE = re.compile(r"url\(#([^)]+)\)")


def embed(svg: str, identity: str, label: str) -> str:
    """The figure as an inline ``<svg>`` whose ids start with ``identity`` and whose text alternative is ``label``.

    Marks with a description show it when pointed at. Elements that a static figure does not need (scripts, links,
    images) are left out, whatever made them.
    """
    root = ElementTree.fromstring(svg)
    _clean(root, identity)
    root.set("role", "img")
    root.set("aria-label", label)
    return ElementTree.tostring(root, encoding="unicode", short_empty_elements=True)


def scaled(svg: str, factor: float) -> str:
    """The figure as large as this times its size."""
    root = ElementTree.fromstring(svg)
    root.set("viewBox", root.get("viewBox") or f"0 0 {root.get('width')} {root.get('height')}")
    for name in ("width", "height"):
        root.set(name, f"{factor * float(root.get(name) or 0):g}")
    return ElementTree.tostring(root, encoding="unicode")


def width(svg: str) -> float:
    """The width of the figure in pixels."""
    return float(ElementTree.fromstring(svg).get("width") or 0)


def _clean(element: ElementTree.Element, identity: str) -> None:
    element.tag = element.tag.rpartition("}")[2]
    described = element.get("aria-roledescription") in {"bar", "rect", "point", "text mark", "tick", "rule"}
    title = element.get("aria-label") if described else None
    for name in list(element.attrib):
        value = element.attrib[name]
        if name in _DROPPED_ATTRIBUTES or name.startswith(("aria-", "{", "on")) or name == "href":
            del element.attrib[name]
        elif name == "id":
            element.set(name, f"{identity}-{value}")
        elif (name, value) in {("opacity", "1"), ("stroke-width", "1")}:
            del element.attrib[name]
        elif "url(" in value:
            element.set(name, _REFERENCE.sub(rf"url(#{identity}-\1)", value))
    for child in list(element):
        if child.tag.rpartition("}")[2] not in _ALLOWED or child.get("display") == "none" or _draws_nothing(child):
            element.remove(child)
        else:
            _clean(child, identity)
    if title:
        tip = ElementTree.Element("title")
        tip.text = title
        element.insert(0, tip)


def _draws_nothing(element: ElementTree.Element) -> bool:
    return element.tag.endswith("path") and element.get("d") in {"", "M0,0h0v0h0Z"}


def standalone(svg: str, title: str, description: str) -> str:
    """The figure as a file of its own, with its title and what it shows in words; cleaned as :func:`embed` cleans."""
    root = ElementTree.fromstring(svg)
    _clean(root, "figure")
    root.set("xmlns", "http://www.w3.org/2000/svg")
    root.set("role", "img")
    for name, text in (("desc", description), ("title", title)):
        element = ElementTree.Element(name)
        element.text = printable(text)
        root.insert(0, element)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"
