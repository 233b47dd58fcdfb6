"""Templates as SQL: a sentence is a concatenation of its words and the forms of its names."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from merkhet.core import SLOT
from merkhet.questions.templates import PLACEHOLDER, placeholder_names

FIELD_COLUMNS = {"subject": "s", "object": "o", "start": '"start"', "end": '"end"'}
"""The columns of worded facts that hold the names of places."""


def sql_literal(text: str) -> str:
    """A text as a literal of SQL."""
    return "'" + text.replace("'", "''") + "'"


def sql_literals(names: Iterable[str]) -> str:
    """Texts as a list of literals."""
    return ", ".join(sql_literal(name) for name in names)


def field_column(place: str, form: str = "") -> str:
    """The column that holds a place's name in a form."""
    name = FIELD_COLUMNS[place]
    return f"{name}_{form}" if form and place in ("subject", "object") else name


def sentence_sql(template: str, asked: str | None = None, names: dict[str, str] | None = None) -> str:
    """SQL for the sentence of a template, the slot in the asked place; its first letter is upper case.

    ``names`` gives other columns (without forms) for some places.
    """
    parts: list[str] = []
    last = 0
    for found in PLACEHOLDER.finditer(template):
        if found.start() > last:
            parts.append(sql_literal(template[last : found.start()]))
        form, place = found[1] or "", found[2]
        if place == asked:
            parts.append(sql_literal(SLOT))
        else:
            base = (names or {}).get(place)
            parts.append(field_column(place, form) if base is None else (f"{base}_{form}" if form else base))
        last = found.end()
    if last < len(template):
        parts.append(sql_literal(template[last:]))
    first = template[:1]
    if first != "{" and first == first.upper():
        return f"concat({', '.join(parts)})"
    return f"capital({' || '.join(parts)})" if len(parts) > 1 else f"capital({parts[0]})"


def answer_sql(template: str, asked: str, name: str | None = None) -> str:
    """SQL for a name as it stands in the slot: with its form, upper case where the sentence begins."""
    for found in PLACEHOLDER.finditer(template):
        if found[2] == asked:
            form = found[1] or ""
            shown = field_column(asked, form) if name is None else (f"{name}_{form}" if form else name)
            return f"capital({shown})" if found.start() == 0 else shown
    raise ValueError(f"{template!r} has no place {{{asked}}}")


def slot_form(template: str, asked: str) -> tuple[str, bool]:
    """The form of the asked place, and whether it begins the sentence."""
    for found in PLACEHOLDER.finditer(template):
        if found[2] == asked:
            return found[1] or "", found.start() == 0
    raise ValueError(f"{template!r} has no place {{{asked}}}")


def placeholder_forms(templates: Iterable[str]) -> set[tuple[str, str]]:
    """The (place, form) pairs that templates use."""
    return {(found[2], found[1]) for template in templates for found in PLACEHOLDER.finditer(template) if found[1]}


def context_sql(template: str, asked: str) -> str:
    """SQL for what the sentence says besides the asked place: two facts with the same context share their answers."""
    named = [FIELD_COLUMNS[place] for place in FIELD_COLUMNS if place in placeholder_names(template) and place != asked]
    return f"concat_ws(chr(31), {', '.join(named)})"


def usable_sql(template: str) -> str:
    """SQL for the facts that have all that a template names."""
    named = [FIELD_COLUMNS[place] for place in placeholder_names(template) if place in ("start", "end")]
    return " and ".join([f"{name} is not null" for name in named] or ["true"])


def enumeration_sql(items: Sequence[str], word: str = "and") -> str:
    """SQL for a list in a sentence: A, B, C, and D."""
    return " || ', ' || ".join(items[:-1]) + f" || ', {word} ' || {items[-1]}"
