"""Byte budgets that limit the size of an HTML page."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

from markupsafe import Markup, escape

Item = TypeVar("Item")
_MARKUP_BYTES = 24
"""Approximate bytes of HTML markup around a value."""


def page_bytes(value: Any) -> int:
    """Estimate the size of a value in an HTML page: its escaped texts and their markup, in bytes."""
    if isinstance(value, Markup):
        return len(value.encode("utf-8", "replace"))
    if isinstance(value, str):
        return _MARKUP_BYTES + len(escape(value).encode("utf-8", "replace"))
    if isinstance(value, Mapping):
        return sum(page_bytes(item) for item in value.values())
    if isinstance(value, list | tuple):
        return sum(page_bytes(item) for item in value)
    return _MARKUP_BYTES


def take_fitting(items: Iterable[Item], budget: int, *, minimum: int = 1) -> list[Item]:
    """Return the first items that fit into ``budget`` bytes, but at least ``minimum`` items."""
    fitting: list[Item] = []
    for item in items:
        budget -= page_bytes(item)
        if budget < 0 and len(fitting) >= minimum:
            break
        fitting.append(item)
    return fitting


def take_fitting_each(lists: Mapping[str, Sequence[Item]], budget: int) -> tuple[dict[str, list[Item]], int]:
    """Take the first item of each list, then the second, and so on, while items fit into ``budget`` bytes.

    Returns:
        The items taken from each list, and the number of items left out of all lists.
    """
    fitting: dict[str, list[Item]] = {name: [] for name in lists}
    for position in range(max((len(items) for items in lists.values()), default=0)):
        for name, items in lists.items():
            if position < len(items) and position == len(fitting[name]):
                size = page_bytes(items[position])
                if size <= budget:
                    budget -= size
                    fitting[name].append(items[position])
    return fitting, sum(map(len, lists.values())) - sum(map(len, fitting.values()))
