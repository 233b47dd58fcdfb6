"""Control prompts, in which a neutral noun takes the place of the name that a question is about."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache

import pyarrow as pa

from merkhet.core import SLOT
from merkhet.core.schemas import CONTROLS, make_table
from merkhet.questions.english import FORMS, capitalize, pluralize
from merkhet.questions.schema import Relation, Schema
from merkhet.questions.templates import PLACEHOLDER, PLACEHOLDERS, placeholder_names

SUBJECT_BLIND = "subject-blind"
"""Control that hides the subject, or the object if the subject is asked for: "The capital of this country is"."""
_PLURAL = "plural"
_ARTICLES = ("the", "The", "a", "A", "an", "An")


def make_control_prompts(questions: pa.Table, entities: pa.Table, schema: Schema) -> pa.Table:
    """Make the control prompts of the questions about relations of a schema.

    A question has none if its relation does not describe the hidden entity by a noun, or if its prompt does not contain
    the entity's name outside of its choices. Prompts of several questions may be equal.

    Args:
        entities: Names of the entities in each question; the first one is hidden.
    """
    names = dict(zip(*(entities[column].to_pylist() for column in ("question_id", "entities")), strict=True))
    columns = (questions[column].to_pylist() for column in ("question_id", "template", "prompt", "choices"))
    ids, prompts = [], []
    for question_id, label, prompt, choices in zip(*columns, strict=True):
        hidden = names.get(question_id)
        noun = _hidden_noun(schema, label, prompt) if hidden and label else None
        blind = hide_name(prompt, hidden[0], noun, choices or ()) if hidden and noun else None
        if blind is not None:
            ids.append(question_id)
            prompts.append(blind)
    if not ids:
        return make_table(CONTROLS, [])
    return pa.table([ids, [SUBJECT_BLIND] * len(ids), prompts], schema=CONTROLS.schema)


def hide_name(prompt: str, name: str, noun: str, choices: Sequence[str] = ()) -> str | None:
    """Replace a name in a prompt by "this NOUN", or by "these NOUNs" if the name is in the plural.

    An article before the name is replaced, too. Names within the prompt's choices are kept.

    Returns:
        The prompt; None if it does not contain the name.
    """
    kept = [choice for choice in choices if name in choice]
    parts: list[str] = []
    end = 0
    for start, stop, is_plural in _find_names(prompt, name, kept):
        neutral = f"these {pluralize(noun)}" if is_plural else f"this {noun}"
        # The noun or the article may be in the sentence: "the city of {subject}", "the element {subject}".
        before = prompt[end:start]
        for word in (f" {noun} of ", f" {noun} ", " "):
            article = next((text for text in _ARTICLES if before.endswith(text + word)), None)
            if article is not None and not before[: -len(article + word)][-1:].isalnum():
                before = before[: -len(article + word)]
                start -= len(article + word)
                break
        text = "".join((*parts, before)).rstrip()
        begins = not text or text.endswith((".", "?", "!", ":", '"', "“"))
        parts += [before, capitalize(neutral) if begins and prompt[start].isupper() else neutral]
        end = stop
    blind = "".join((*parts, prompt[end:]))
    return blind if parts and blind.count(SLOT) == prompt.count(SLOT) else None


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


def _hidden_noun(schema: Schema, label: str, prompt: str) -> str | None:
    """Return the noun for the entity that a question is about; None if its relation has none."""
    name, _, number = label.partition("/")
    relation = schema.relations.get(name)
    if relation is None:
        return None
    for text in _template_texts(relation, number):
        for asked in (*PLACEHOLDERS, None):
            pattern = _sentence_pattern(text, asked)
            if pattern is not None and pattern.search(prompt):
                return (relation.object if asked == "subject" else relation.subject) or None
    return None


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
        parts += [re.escape(template[last : match.start()]), re.escape(SLOT) if match[2] == asked else ".+"]
        last = match.end()
    return re.compile("".join((*parts, re.escape(template[last:]))), re.IGNORECASE | re.DOTALL)
