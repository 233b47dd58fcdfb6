"""SQL expressions for the sentences that templates produce."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from merkhet.core import SLOT
from merkhet.questions.templates import DATE_FORM, PLACEHOLDER, TIMES, placeholder_names

FIELD_COLUMNS = {"subject": "s", "object": "o", "start": '"start"', "end": '"end"'}
"""Column of the table ``worded`` that fills each placeholder."""


def sql_literal(text: str) -> str:
    """Quote a text as an SQL literal."""
    return "'" + text.replace("'", "''") + "'"


def sql_literals(names: Iterable[str]) -> str:
    """Quote texts as a comma-separated list of SQL literals."""
    return ", ".join(sql_literal(name) for name in names)


def field_column(field: str, form: str = "") -> str:
    """Return the column with the text of a field (such as ``subject``), inflected by ``form``."""
    if field in TIMES and form == DATE_FORM:
        return f"{field}_date"
    name = FIELD_COLUMNS[field]
    return f"{name}_{form}" if form and field in ("subject", "object") else name


def template_sql(template: str, column: Callable[[str, str], str]) -> str:
    """Return SQL for the capitalized sentence of a template.

    Args:
        column: Function that returns SQL for a placeholder, given its form and its name.
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
    """Return SQL for the sentence of a fact, with the slot in place of the asked placeholder."""
    slot = sql_literal(SLOT)
    return template_sql(template, lambda form, field: slot if field == asked else field_column(field, form))


def answer_sql(template: str, asked: str) -> str:
    """Return SQL for an answer as it fills the slot: inflected, and capitalized at the start of a sentence."""
    form, begins = slot_form(template, asked)
    answer = field_column(asked, form)
    return f"capital({answer})" if begins else answer


def slot_form(template: str, asked: str) -> tuple[str, bool]:
    """Return the form of the asked placeholder, and whether the placeholder begins the sentence."""
    for match in PLACEHOLDER.finditer(template):
        if match[2] == asked:
            return match[1] or "", match.start() == 0
    raise ValueError(f"{template!r} has no placeholder {{{asked}}}")


def placeholder_forms(templates: Iterable[str]) -> set[tuple[str, str]]:
    """Return the pairs of placeholder and form that templates use; placeholders without a form are left out."""
    return {(match[2], match[1]) for template in templates for match in PLACEHOLDER.finditer(template) if match[1]}


def context_fields(templates: Iterable[str], asked: str) -> list[str]:
    """Return the fields that all templates mention, except the asked field."""
    named = [placeholder_names(template) for template in templates]
    return [field for field in FIELD_COLUMNS if field != asked and all(field in names for names in named)]


def context_sql(templates: Iterable[str], asked: str) -> str:
    """Return SQL for the context that determines the right answers.

    It joins the fields that all templates mention, except the asked field.
    """
    return f"concat_ws(chr(31), {', '.join(FIELD_COLUMNS[field] for field in context_fields(templates, asked))})"


def usable_sql(template: str) -> str:
    """Return an SQL condition for the facts that have every time (start, end) that a template mentions."""
    columns = [FIELD_COLUMNS[field] for field in placeholder_names(template) if field in ("start", "end")]
    return " and ".join([f"{column} is not null" for column in columns] or ["true"])


def enumeration_sql(items: Sequence[str], word: str = "and") -> str:
    """Return SQL for an enumeration such as "A, B, C, and D", from SQL expressions of its items."""
    return " || ', ' || ".join(items[:-1]) + f" || ', {word} ' || {items[-1]}"


def case_sql(branches: Iterable[tuple[str, str]], default: str = "null") -> str:
    """Return an SQL ``case`` expression from pairs of condition and expression."""
    cases = " ".join(f"when {condition} then {expression}" for condition, expression in branches)
    return f"case {cases} else {default} end" if cases else default


def lookup_sql(texts: Iterable[str], number: str) -> str:
    """Return SQL that selects one of ``texts`` by the SQL expression ``number``, an index that starts at 0."""
    return f"[{sql_literals(texts)}][{number} + 1]"


def usable_templates_sql(relations: Mapping[int, Iterable[tuple[int, str]]]) -> str:
    """Return SQL for the list of numbers of the templates that can express a fact.

    Args:
        relations: Numbered templates by relation number.
    """
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
    """Return an SQL condition for the facts that at least one template can express.

    Args:
        relations: Numbered templates by relation number.
    """
    always, sometimes = [], []
    for rel, templates in relations.items():
        conditions = sorted({usable_sql(template) for _, template in templates})
        if "true" in conditions:
            always.append(str(rel))
        else:
            sometimes.append(f"rel = {rel} and ({' or '.join(conditions)})")
    in_list = f"rel in ({', '.join(always)})" if always else "false"
    return f"({' or '.join([in_list, *sometimes])})"
