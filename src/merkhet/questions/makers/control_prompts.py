"""Control prompts, in which a neutral noun takes the place of the name that a question is about."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from typing import Any, Literal

import pyarrow as pa

from merkhet.core import SLOT
from merkhet.core.schemas import CONTROLS, make_table
from merkhet.questions.english import FORMS, FUNCTION_WORDS, capitalize
from merkhet.questions.neutral_phrases import put_phrase
from merkhet.questions.schema import Relation, Schema
from merkhet.questions.templates import PLACEHOLDER, PLACEHOLDERS, placeholder_names

SUBJECT_BLIND = "subject-blind"
"""Control that hides the subject, or the object if the subject is asked for: "The capital of this country is"."""
_PLURAL = "plural"
_WITHOUT_NOUN = "about no relation with a noun for the name"
_UNNAMED = "the name stands only among the options"
_UNWORDED = "no neutral wording is grammatical"


def make_control_prompts(
    questions: pa.Table, entities: pa.Table, schema: Schema
) -> tuple[pa.Table, list[dict[str, Any]]]:
    """Make the control prompts of the questions about relations of a schema.

    A question has none if its relation does not describe the hidden entity by a noun, if its prompt does not contain
    the entity's name outside of its choices, or if no neutral wording of its prompt is grammatical. Prompts of several
    questions may be equal.

    Args:
        entities: Names of the entities in each question; the first one is hidden.

    Returns:
        The control prompts, and for the data card the number of questions with and without one, by task.
    """
    names = dict(zip(*(entities[column].to_pylist() for column in ("question_id", "entities")), strict=True))
    columns = (questions[column].to_pylist() for column in ("question_id", "task", "template", "prompt", "choices"))
    ids, prompts = [], []
    counts: dict[str, Counter[str]] = {}
    for question_id, task, label, prompt, choices in zip(*columns, strict=True):
        hidden = names.get(question_id)
        noun, span = _hidden_part(schema, label, prompt) if hidden and label else (None, None)
        matches = _match_name(prompt, hidden[0], choices or ()) if hidden and noun else []
        if span is not None and hidden and _is_common(hidden[0]):
            matches = [match for match in matches if match[0] == span[0] or match[1] == span[1]]
        blind = _replace_name(prompt, hidden[0], noun, matches) if hidden and noun else None
        outcome = "made" if blind is not None else _UNWORDED if matches else _UNNAMED if noun else _WITHOUT_NOUN
        counts.setdefault(task, Counter())[outcome] += 1
        if blind is not None:
            ids.append(question_id)
            prompts.append(blind)
    rows = [
        {"control": SUBJECT_BLIND, "task": task, "questions": count.total(), "made": count["made"]}
        | {"missing": {reason: count[reason] for reason in (_WITHOUT_NOUN, _UNNAMED, _UNWORDED) if count[reason]}}
        for task, count in sorted(counts.items())
    ]
    if not ids:
        return make_table(CONTROLS, []), rows
    return pa.table([ids, [SUBJECT_BLIND] * len(ids), prompts], schema=CONTROLS.schema), rows


def hide_name(prompt: str, name: str, noun: str, choices: Sequence[str] = ()) -> str | None:
    """Replace a name in a prompt by a neutral noun phrase: "this NOUN", or "these NOUNs" if the name is in the plural.

    Names within the prompt's choices are kept. See :func:`~merkhet.questions.neutral_phrases.put_phrase`.

    Returns:
        The prompt; None if it does not contain the name, or if no phrase is grammatical.
    """
    return _replace_name(prompt, name, noun, _match_name(prompt, name, choices))


def _match_name(prompt: str, name: str, choices: Sequence[str]) -> list[tuple[int, int, bool]]:
    return list(_find_names(prompt, name, [choice for choice in choices if name in choice]))


def _replace_name(prompt: str, name: str, noun: str, matches: Sequence[tuple[int, int, bool]]) -> str | None:
    """Replace the matches of a name; None if there are none, or if no phrase is grammatical."""
    blind = prompt
    for start, stop, is_plural in reversed(matches):
        if prompt[start:stop].lower().endswith(f" {name.lower()}"):
            # The form of the name adds an article.
            start = stop - len(name)
        replaced = put_phrase(blind[:start], blind[start:stop], blind[stop:], noun, is_plural=is_plural)
        if replaced is None:
            return None
        blind = "".join(replaced)
    return blind if matches and blind.count(SLOT) == prompt.count(SLOT) else None


def _find_names(prompt: str, name: str, kept: Sequence[str]) -> Iterator[tuple[int, int, bool]]:
    """Yield start, stop and plural of each occurrence of a name in any form, except within the texts ``kept``."""
    texts: list[tuple[str, bool | None]] = [*_name_forms(name), *((choice, None) for choice in kept)]
    position = 0
    while True:
        found = [
            (start, -len(text), is_plural)
            for text, is_plural in texts
            if (start := _find_word(prompt, text, position)) >= 0
        ]
        if not found:
            return
        start, length, is_plural = min(found, key=lambda match: match[:2])
        position = start - length
        if is_plural is not None:
            yield start, position, is_plural


@lru_cache(2**16)
def _name_forms(name: str) -> tuple[tuple[str, bool], ...]:
    """Return a name in all forms, also capitalized, and whether each is the plural."""
    forms: dict[str, bool] = {}
    for form in FORMS:
        shown = FORMS[form](name)
        for text in (shown, capitalize(shown)):
            forms.setdefault(text, form == _PLURAL)
    return tuple(forms.items())


def _find_word(text: str, word: str, start: int) -> int:
    """Return the position of a word that is not a part of a longer word; -1 if there is none."""
    while (start := text.find(word, start)) >= 0:
        stop = start + len(word)
        if not (start and text[start - 1].isalnum()) and not (stop < len(text) and text[stop].isalnum()):
            return start
        start += 1
    return -1


def _is_common(name: str) -> bool:
    """Check whether a name may occur as another word: the symbols "a" (atto), "In" (indium) or "s" (second)."""
    return len(name) == 1 or name.lower() in ("a", "an", "the", "no") or name.lower() in FUNCTION_WORDS


def _hidden_part(schema: Schema, label: str, prompt: str) -> tuple[str | None, tuple[int, int] | None]:
    """Return the noun for the entity that a question is about, and the part of the prompt that begins or ends with it.

    Both are None if the relation of the question has no such noun.
    """
    name, _, number = label.partition("/")
    relation = schema.relations.get(name)
    if relation is None:
        return None, None
    for text in _template_texts(relation, number):
        for asked in (*PLACEHOLDERS, None):
            pattern = _sentence_pattern(text, asked)
            match = pattern.search(prompt) if pattern is not None else None
            if match:
                return getattr(relation, _hidden_side(asked)) or None, match.span("hidden")
    return None, None


def _hidden_side(asked: str | None) -> Literal["subject", "object"]:
    return "object" if asked == "subject" else "subject"


def _template_texts(relation: Relation, number: str) -> tuple[str, ...]:
    """Return the text of a relation's template by its number; a number with a kind is a template of a scope."""
    index, _, kind = number.partition("-")
    if not index.isdecimal():
        return ()
    texts = [scope.templates for scope in relation.scopes if scope.kind == kind] if kind else [relation.templates]
    return tuple(group[(int(index) - 1) % len(group)] for group in texts if group)


@cache
def _sentence_pattern(template: str, asked: str | None) -> re.Pattern[str] | None:
    """Return a pattern for the sentences of a template, with the slot in place of ``asked``; None if it lacks that."""
    parts: list[str] = []
    last = 0
    if asked is not None and asked not in placeholder_names(template):
        return None
    for match in PLACEHOLDER.finditer(template):
        name = "(?P<hidden>.+)" if match[2] == _hidden_side(asked) else ".+"
        parts += [re.escape(template[last : match.start()]), re.escape(SLOT) if match[2] == asked else name]
        last = match.end()
    return re.compile("".join((*parts, re.escape(template[last:]))), re.IGNORECASE | re.DOTALL)
