"""Keeping a page small whatever its labels are: rows are taken while there is room for them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

from markupsafe import Markup, escape

Part = TypeVar("Part")
_AROUND = 24
"""What stands around a value in a page, about."""


def weight(value: Any) -> int:
    """How many bytes a value takes in a page, about: its texts as they are escaped, and what stands around them."""
    if isinstance(value, Markup):
        return len(value.encode("utf-8", "replace"))
    if isinstance(value, str):
        return _AROUND + len(escape(value).encode("utf-8", "replace"))
    if isinstance(value, Mapping):
        return sum(weight(one) for one in value.values())
    if isinstance(value, list | tuple):
        return sum(weight(one) for one in value)
    return _AROUND


def fitting(parts: Iterable[Part], room: int, *, least: int = 1) -> list[Part]:
    """The first parts that find room together, so many bytes; ``least`` of them in any case."""
    taken: list[Part] = []
    for part in parts:
        room -= weight(part)
        if room < 0 and len(taken) >= least:
            break
        taken.append(part)
    return taken


def fitting_each(lists: Mapping[str, Sequence[Part]], room: int) -> tuple[dict[str, list[Part]], int]:
    """Of several lists, by turns, what finds room together; and how many parts do not."""
    kept: dict[str, list[Part]] = {name: [] for name in lists}
    for place in range(max((len(own) for own in lists.values()), default=0)):
        for name, own in lists.items():
            if place < len(own) and place == len(kept[name]):
                size = weight(own[place])
                if size <= room:
                    room -= size
                    kept[name].append(own[place])
    return kept, sum(map(len, lists.values())) - sum(map(len, kept.values()))
