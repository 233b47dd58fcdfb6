"""Templates as SQL: a sentence is a concatenation of its words and the forms of its names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from merkhet.core import SLOT

_PLACE = re.compile(r"\{(?:(\w+) )?(\w+)\}")
COLUMNS = {"subject": "s", "object": "o", "start": '"start"', "end": '"end"'}
"""The columns of worded facts that hold the names of places."""


def quoted(text: str) -> str:
    """A text as a literal of SQL."""
    return "'" + text.replace("'", "''") + "'"


def listed(names: Iterable[str]) -> str:
    """Texts as a list of literals."""
    return ", ".join(quoted(name) for name in names)


def column(place: str, form: str = "") -> str:
    """The column that holds a place's name in a form."""
    name = COLUMNS[place]
    return f"{name}_{form}" if form and place in ("subject", "object") else name


def sentence(template: str, asked: str | None = None, names: dict[str, str] | None = None) -> str:
    """SQL for the sentence of a template, the slot in the asked place; its first letter is upper case.

    ``names`` gives other columns (without forms) for some places.
    """
    parts: list[str] = []
    last = 0
    for found in _PLACE.finditer(template):
        if found.start() > last:
            parts.append(quoted(template[last : found.start()]))
        form, place = found[1] or "", found[2]
        if place == asked:
            parts.append(quoted(SLOT))
        else:
            base = (names or {}).get(place)
            parts.append(column(place, form) if base is None else (f"{base}_{form}" if form else base))
        last = found.end()
    if last < len(template):
        parts.append(quoted(template[last:]))
    first = template[:1]
    if first != "{" and first == first.upper():
        return f"concat({', '.join(parts)})"
    return f"capital({' || '.join(parts)})" if len(parts) > 1 else f"capital({parts[0]})"


def in_slot(template: str, asked: str, name: str | None = None) -> str:
    """SQL for a name as it stands in the slot: with its form, upper case where the sentence begins."""
    for found in _PLACE.finditer(template):
        if found[2] == asked:
            form = found[1] or ""
            shown = column(asked, form) if name is None else (f"{name}_{form}" if form else name)
            return f"capital({shown})" if found.start() == 0 else shown
    raise ValueError(f"{template!r} has no place {{{asked}}}")


def form_in_slot(template: str, asked: str) -> tuple[str, bool]:
    """The form of the asked place, and whether it begins the sentence."""
    for found in _PLACE.finditer(template):
        if found[2] == asked:
            return found[1] or "", found.start() == 0
    raise ValueError(f"{template!r} has no place {{{asked}}}")


def places_of(template: str) -> list[str]:
    """The names of a template's places, in order."""
    return [found[2] for found in _PLACE.finditer(template)]


def forms_of(templates: Iterable[str]) -> set[tuple[str, str]]:
    """The (place, form) pairs that templates use."""
    return {(found[2], found[1]) for template in templates for found in _PLACE.finditer(template) if found[1]}


def context(template: str, asked: str) -> str:
    """SQL for what the sentence says besides the asked place: two facts with the same context share their answers."""
    named = [COLUMNS[place] for place in COLUMNS if place in places_of(template) and place != asked]
    return f"concat_ws(chr(31), {', '.join(named)})"


def usable(template: str) -> str:
    """SQL for the facts that have all that a template names."""
    named = [COLUMNS[place] for place in places_of(template) if place in ("start", "end")]
    return " and ".join([f"{name} is not null" for name in named] or ["true"])


def enumerated(items: Sequence[str], word: str = "and") -> str:
    """SQL for a list in a sentence: A, B, C, and D."""
    return " || ', ' || ".join(items[:-1]) + f" || ', {word} ' || {items[-1]}"
