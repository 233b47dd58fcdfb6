"""Patterns of properties, such as "[X] died in [Y] .", and the clauses made from them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from merkhet.core.errors import FaultList, InputError, did_you_mean
from merkhet.core.files import read_yaml
from merkhet.questions.english import add_indefinite_article
from merkhet.suites.ontoprobe.questions.pos_lexicon import PREPOSITIONS
from merkhet.suites.ontoprobe.questions.property_sentences import (
    Verb,
    is_participle,
    is_plural,
    is_uncountable,
    parse_verb,
    sentence_from_label,
)

_PATTERN = re.compile(r"^\[X\](?P<infix>(?:'s|’s)? \S(?:.*\S)?) \[Y\] \.$")
_KEYS = ("pattern", "as_subject", "as_object")
_COPULAS = ("is", "are", "was", "were")
_DETERMINERS = ("the", "a", "an")


@dataclass(frozen=True)
class Pattern:
    """Sentence template of a property, with clauses that describe its subject and its object."""

    text: str
    """Sentence template, such as "[X] died in [Y] ."."""
    as_subject: str
    """Clause about the subject, after "One has to be a particular person to": "have died in something"."""
    as_object: str
    """Clause about the object, after "One has to be a particular place": "for something to have died in one"."""

    @property
    def infix(self) -> str:
        """Text between [X] and [Y], including a leading space: " died in", "'s spouse is"."""
        return _parse_infix(self.text)


def make_pattern(text: str) -> Pattern:
    """Make a pattern with its clauses from a sentence template "[X]… [Y] .".

    "[X]'s spouse is [Y] ." gives "have a spouse" and "to be the spouse of something"; "[X] died in [Y] ." gives "have
    died in something" and "for something to have died in one".

    Raises:
        InputError: If the sentence template has another form.
    """
    infix = _parse_infix(text)
    if infix.startswith(("'s ", "’s ")):
        return Pattern(text, *_possessive_clauses(infix[3:]))
    return Pattern(text, *_verb_clauses(infix[1:]))


def resolve_patterns(
    properties: Iterable[str], overrides: Mapping[str, Mapping[str, str]] | None = None
) -> dict[str, Pattern]:
    """Return a pattern for each property, from ``overrides`` or else from the label of the property.

    Raises:
        InputError: If ``overrides`` has a label that is not a property.
    """
    known, overrides = list(properties), overrides or {}
    faults = FaultList()
    for label in overrides:
        if label not in known:
            faults.add(f"patterns: there is no property {label!r}; {did_you_mean(label, known)}")
    faults.refuse()
    patterns = {}
    for label in known:
        parts = {"pattern": sentence_from_label(label), **overrides.get(label, {})}
        patterns[label] = replace(make_pattern(parts.pop("pattern")), **parts)
    return patterns


def read_patterns(file: Path) -> dict[str, dict[str, str]]:
    """Read patterns by property label from a YAML file.

    Each value is a sentence template, or a mapping with ``pattern`` and, optionally, ``as_subject`` and ``as_object``.

    Raises:
        InputError: For an unknown key, a pattern that is not "[X]… [Y] .", or a clause that is not text.
    """
    content = read_yaml(file, "patterns of properties")
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise InputError(f"{file} must be a mapping of property labels to patterns, got {type(content).__name__}")
    faults, patterns = FaultList(), {}
    for label, entry in content.items():
        with faults.collect():
            patterns[str(label)] = _check_entry(entry, f"{file}, {label!r}")
    faults.refuse()
    return patterns


def _check_entry(entry: Any, where: str) -> dict[str, str]:
    parts = {"pattern": entry} if isinstance(entry, str) else entry
    if not isinstance(parts, dict):
        raise InputError(f'{where}: a pattern must be text such as "[X] died in [Y] .", got {entry!r}')
    for key, value in parts.items():
        if key not in _KEYS:
            raise InputError(f"{where}: there is no key {key!r}; {did_you_mean(str(key), _KEYS)}")
        if not isinstance(value, str) or not value.strip():
            raise InputError(f"{where}: {key!r} must be text, got {value!r}")
        if key != "pattern" and ("[" in value or "<" in value):
            raise InputError(
                f"{where}: {key!r} must be words without placeholders, got {value!r}; write 'something' for [X] and [Y]"
            )
    if "pattern" not in parts:
        raise InputError(f"{where}: 'pattern' is missing; write one such as \"[X] died in [Y] .\"")
    try:
        _parse_infix(parts["pattern"])
    except InputError as error:
        raise InputError(f"{where}: {error}") from error
    return {key: parts[key].strip() for key in _KEYS if key in parts}


def _parse_infix(text: str) -> str:
    match = _PATTERN.match(text)
    if not match or "[" in match["infix"] or "<" in match["infix"]:
        raise InputError(
            f'the pattern must begin with [X] and end with "[Y] .", such as "[X] died in [Y] .", got {text!r}'
        )
    return match["infix"]


def _possessive_clauses(rest: str) -> tuple[str, str]:
    """Make the subject and object clauses of "[X]'s spouse is [Y] ." or "[X]'s government is headed by [Y] ."."""
    words = rest.split(" ")
    if words[-1] in _COPULAS and len(words) > 1:
        noun = " ".join(words[:-1])
        among = "among " if words[-1] in ("are", "were") else ""
        return f"have {_indefinite_phrase(noun)}", f"to be {among}the {noun} of something"
    index = next((index for index, word in enumerate(words) if index and word in _COPULAS), len(words) - 1)
    if index == 0:
        return f"have something as {rest}", f"for something's {rest} to be one"
    noun, verb, tail = " ".join(words[:index]), words[index], " ".join(words[index + 1 :])
    infinitive = " ".join(part for part in (parse_verb([verb]).infinitive, tail) if part)
    predicate = tail if verb in _COPULAS else f"that {verb}"
    return f"have {_indefinite_phrase(noun)} {predicate} something", f"for something's {noun} to {infinitive} one"


def _verb_clauses(rest: str) -> tuple[str, str]:
    """Make the subject and object clauses of "[X] died in [Y] .", "[X] has part [Y] ." and similar patterns."""
    verb = parse_verb(rest.split(" "))
    tail = verb.tail
    if not tail or tail[-1].lower() in PREPOSITIONS or _takes_object(verb):
        phrase = " ".join([verb.infinitive, *tail])
        return f"{phrase} something", f"for something to {phrase} one"
    last = max((index for index, word in enumerate(tail) if word.lower() in PREPOSITIONS), default=-1)
    prefix, noun_words = tail[: last + 1], tail[last + 1 :]
    if noun_words[0] in _DETERMINERS:
        noun_words = noun_words[1:]
    noun = " ".join(noun_words)
    subject = " ".join([verb.infinitive, *prefix, _indefinite_phrase(noun)])
    if verb.word in ("has", "have") and not prefix:
        return subject, f"to be {_indefinite_phrase(noun)} of something"
    return subject, f"to be {_indefinite_phrase(noun)} that something {' '.join([*verb.adverbs, verb.word, *prefix])}"


def _takes_object(verb: Verb) -> bool:
    """Check whether the verb phrase needs an object after it, such as "is called"."""
    return verb.word in _COPULAS and (is_participle(verb.tail[-1]) or len(verb.tail) == 1)


def _indefinite_phrase(noun: str) -> str:
    """Return an indefinite noun phrase: "an author", "deaths", "industry"."""
    if noun.split(" ", maxsplit=1)[0].lower() in (*_DETERMINERS, "its", "his", "her", "their", "this"):
        return noun
    if noun.startswith("other ") and not is_plural(noun):
        return f"an{noun}"
    return noun if is_plural(noun) or is_uncountable(noun) else add_indefinite_article(noun)
