"""SQL expressions for templates: sentences concatenate text and the forms of names."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from merkhet.core import SLOT
from merkhet.questions.templates import PLACEHOLDER, placeholder_names

FIELD_COLUMNS = {"subject": "s", "object": "o", "start": '"start"', "end": '"end"'}
"""Columns of the table ``worded`` that fill the placeholders."""


def sql_literal(text: str) -> str:
    """Quote a text as an SQL literal."""
    return "'" + text.replace("'", "''") + "'"


def sql_literals(names: Iterable[str]) -> str:
    """Quote texts as a comma-separated list of SQL literals."""
    return ", ".join(sql_literal(name) for name in names)


def field_column(field: str, form: str = "") -> str:
    """Return the column that holds a field's name in a form."""
    name = FIELD_COLUMNS[field]
    return f"{name}_{form}" if form and field in ("subject", "object") else name


def sentence_sql(template: str, asked: str | None = None, names: dict[str, str] | None = None) -> str:
    """Return SQL for the sentence of a template, capitalized.

    Args:
        template: The template.
        asked: Placeholder that becomes the slot.
        names: Other columns (without forms) for some placeholders.
    """
    parts: list[str] = []
    last = 0
    for match in PLACEHOLDER.finditer(template):
        if match.start() > last:
            parts.append(sql_literal(template[last : match.start()]))
        form, field = match[1] or "", match[2]
        if field == asked:
            parts.append(sql_literal(SLOT))
        else:
            base = (names or {}).get(field)
            parts.append(field_column(field, form) if base is None else (f"{base}_{form}" if form else base))
        last = match.end()
    if last < len(template):
        parts.append(sql_literal(template[last:]))
    first = template[:1]
    if first != "{" and first == first.upper():
        return f"concat({', '.join(parts)})"
    return f"capital({' || '.join(parts)})" if len(parts) > 1 else f"capital({parts[0]})"


def answer_sql(template: str, asked: str, name: str | None = None) -> str:
    """Return SQL for a name as it fills the slot: in its form, capitalized at the start of the sentence."""
    for match in PLACEHOLDER.finditer(template):
        if match[2] == asked:
            form = match[1] or ""
            answer = field_column(asked, form) if name is None else (f"{name}_{form}" if form else name)
            return f"capital({answer})" if match.start() == 0 else answer
    raise ValueError(f"{template!r} has no placeholder {{{asked}}}")


def slot_form(template: str, asked: str) -> tuple[str, bool]:
    """Return the form of the asked placeholder, and whether it begins the sentence."""
    for match in PLACEHOLDER.finditer(template):
        if match[2] == asked:
            return match[1] or "", match.start() == 0
    raise ValueError(f"{template!r} has no placeholder {{{asked}}}")


def placeholder_forms(templates: Iterable[str]) -> set[tuple[str, str]]:
    """Return the (placeholder, form) pairs that templates use."""
    return {(match[2], match[1]) for template in templates for match in PLACEHOLDER.finditer(template) if match[1]}


def context_sql(template: str, asked: str) -> str:
    """Return SQL for all fields of a sentence but the asked one; facts with the same context share their answers."""
    columns = [
        FIELD_COLUMNS[field] for field in FIELD_COLUMNS if field in placeholder_names(template) and field != asked
    ]
    return f"concat_ws(chr(31), {', '.join(columns)})"


def usable_sql(template: str) -> str:
    """Return an SQL condition for facts that have every time a template names."""
    columns = [FIELD_COLUMNS[field] for field in placeholder_names(template) if field in ("start", "end")]
    return " and ".join([f"{column} is not null" for column in columns] or ["true"])


def enumeration_sql(items: Sequence[str], word: str = "and") -> str:
    """Return SQL for an enumeration in a sentence: A, B, C, and D."""
    return " || ', ' || ".join(items[:-1]) + f" || ', {word} ' || {items[-1]}"
