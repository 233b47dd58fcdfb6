"""SQL expressions for templates: sentences concatenate text and the forms of names."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

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


def template_sql(template: str, column: Callable[[str, str], str]) -> str:
    """Return SQL for a sentence, capitalized.

    Args:
        template: The template.
        column: Returns SQL for a placeholder, from its form and its name.
    """
    parts: list[str] = []
    last = 0
    for match in PLACEHOLDER.finditer(template):
        if match.start() > last:
            parts.append(sql_literal(template[last : match.start()]))
        parts.append(column(match[1] or "", match[2]))
        last = match.end()
    if last < len(template):
        parts.append(sql_literal(template[last:]))
    first = template[:1]
    if first != "{" and first == first.upper():
        return f"concat({', '.join(parts)})"
    return f"capital({' || '.join(parts)})"


def sentence_sql(template: str, asked: str | None = None) -> str:
    """Return SQL for the sentence of a fact; the asked placeholder becomes the slot."""
    slot = sql_literal(SLOT)
    return template_sql(template, lambda form, field: slot if field == asked else field_column(field, form))


def answer_sql(template: str, asked: str) -> str:
    """Return SQL for a name as it fills the slot: in its form, capitalized at the start of the sentence."""
    form, begins = slot_form(template, asked)
    answer = field_column(asked, form)
    return f"capital({answer})" if begins else answer


def slot_form(template: str, asked: str) -> tuple[str, bool]:
    """Return the form of the asked placeholder, and whether it begins the sentence."""
    for match in PLACEHOLDER.finditer(template):
        if match[2] == asked:
            return match[1] or "", match.start() == 0
    raise ValueError(f"{template!r} has no placeholder {{{asked}}}")


def placeholder_forms(templates: Iterable[str]) -> set[tuple[str, str]]:
    """Return the (placeholder, form) pairs that templates use."""
    return {(match[2], match[1]) for template in templates for match in PLACEHOLDER.finditer(template) if match[1]}


def context_fields(templates: Iterable[str], asked: str) -> list[str]:
    """Return the fields that all templates name, without the asked one."""
    named = [placeholder_names(template) for template in templates]
    return [field for field in FIELD_COLUMNS if field != asked and all(field in names for names in named)]


def context_sql(templates: Iterable[str], asked: str) -> str:
    """Return SQL for the context: the fields that all templates name, without the asked one. It decides the answers."""
    return f"concat_ws(chr(31), {', '.join(FIELD_COLUMNS[field] for field in context_fields(templates, asked))})"


def usable_sql(template: str) -> str:
    """Return an SQL condition for facts that have all times that a template names."""
    columns = [FIELD_COLUMNS[field] for field in placeholder_names(template) if field in ("start", "end")]
    return " and ".join([f"{column} is not null" for column in columns] or ["true"])


def enumeration_sql(items: Sequence[str], word: str = "and") -> str:
    """Return SQL for an enumeration in a sentence: A, B, C, and D."""
    return " || ', ' || ".join(items[:-1]) + f" || ', {word} ' || {items[-1]}"


def case_sql(branches: Iterable[tuple[str, str]], default: str = "null") -> str:
    """Return SQL for the expression of the first condition that holds, from (condition, expression) pairs."""
    cases = " ".join(f"when {condition} then {expression}" for condition, expression in branches)
    return f"case {cases} else {default} end" if cases else default


def lookup_sql(texts: Iterable[str], number: str) -> str:
    """Return SQL that picks one of ``texts``; the SQL expression ``number`` yields its index, from 0."""
    return f"[{sql_literals(texts)}][{number} + 1]"


def usable_templates_sql(relations: Mapping[int, Iterable[tuple[int, str]]]) -> str:
    """Return SQL for the list of numbers of the templates that can word a fact, from templates by relation number."""
    branches = []
    for rel, templates in relations.items():
        conditions = {number: usable_sql(template) for number, template in templates}
        if set(conditions.values()) == {"true"}:
            numbers = f"[{', '.join(map(str, conditions))}]"
        else:
            cases = ", ".join(f"case when {condition} then {number} end" for number, condition in conditions.items())
            numbers = f"list_filter([{cases}], lambda x: x is not null)"
        branches.append((f"rel = {rel}", numbers))
    return case_sql(branches)


def any_usable_sql(relations: Mapping[int, Iterable[tuple[int, str]]]) -> str:
    """Return an SQL condition for the facts that some template can word, from templates by relation number."""
    always, sometimes = [], []
    for rel, templates in relations.items():
        conditions = sorted({usable_sql(template) for _, template in templates})
        if "true" in conditions:
            always.append(str(rel))
        else:
            sometimes.append(f"rel = {rel} and ({' or '.join(conditions)})")
    in_list = f"rel in ({', '.join(always)})" if always else "false"
    return f"({' or '.join([in_list, *sometimes])})"
