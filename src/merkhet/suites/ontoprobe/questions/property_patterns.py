"""Sentences for properties: a pattern such as "[X] died in [Y] .", and what it becomes in "One has to be …"."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from merkhet.core.errors import InputError, did_you_mean
from merkhet.core.files import read_yaml, write_text
from merkhet.questions.english import add_indefinite_article
from merkhet.suites.ontoprobe.questions.pos_lexicon import PREPOSITIONS
from merkhet.suites.ontoprobe.questions.property_sentences import (
    Verb,
    is_participle,
    is_plural,
    is_uncountable,
    pattern_of_label,
    read_verb,
)

_WHOLE = re.compile(r"^\[X\](?P<piece>(?:'s|’s)? \S(?:.*\S)?) \[Y\] \.$")
_KEYS = ("pattern", "as_subject", "as_object")
_COPULAS = ("is", "are", "was", "were")
_DETERMINERS = ("the", "a", "an")
_HEADER = """\
# Sentences for properties. Edit what does not read well: a pattern begins with [X] and ends with "[Y] .";
# as_subject follows "One has to be a particular person to", as_object follows "One has to be a particular person".
# Leave out as_subject and as_object to have them made of the pattern.
"""


@dataclass(frozen=True)
class Pattern:
    """A property between two things, and how it is said of its subject and of its object alone."""

    text: str
    as_subject: str
    as_object: str

    @property
    def piece(self) -> str:
        """What stands between [X] and [Y], with its leading blank: " died in", "'s spouse is"."""
        return _piece(self.text)


def make_pattern(text: str) -> Pattern:
    """The pattern of a sentence with the forms made of it; refuses one that is not "[X]… [Y] .".

    "[X]'s spouse is [Y] ." gives "have a spouse" and "to be the spouse of something"; "[X] died in [Y] ." gives "have
    died in something" and "for something to have died in one".
    """
    piece = _piece(text)
    if piece.startswith(("'s ", "’s ")):
        return Pattern(text, *_of_possessive(piece[3:]))
    return Pattern(text, *_of_verb(piece[1:]))


def label_pattern(label: str) -> Pattern:
    """The pattern of a property by the rules of English for its label alone."""
    return make_pattern(pattern_of_label(label))


def patterns_for(
    properties: Iterable[str], given: Mapping[str, Mapping[str, str]] | None = None, where: str = "patterns"
) -> dict[str, Pattern]:
    """A pattern for every property: the one given, else the one made of the label; refuses unknown properties."""
    known = list(properties)
    for label in given or {}:
        if label not in known:
            raise InputError(f"{where}: there is no property {label!r}; {did_you_mean(label, known)}")
    found = {}
    for label in known:
        parts = (given or {}).get(label)
        made = make_pattern(parts["pattern"]) if parts else label_pattern(label)
        parts = parts or {}
        subject, object_ = parts.get("as_subject", made.as_subject), parts.get("as_object", made.as_object)
        found[label] = Pattern(made.text, subject, object_)
    return found


def write_patterns(patterns: Mapping[str, Pattern], file: Path) -> None:
    """Write patterns as YAML that people can edit: property label → pattern, as_subject, as_object."""
    import yaml

    content = {
        label: {"pattern": one.text, "as_subject": one.as_subject, "as_object": one.as_object}
        for label, one in patterns.items()
    }
    text = yaml.safe_dump(content, allow_unicode=True, sort_keys=False, width=1000) if content else ""
    write_text(file, _HEADER + text)


def read_patterns(file: Path, properties: Iterable[str] | None = None) -> dict[str, dict[str, str]]:
    """The patterns of a YAML file by property label; a text alone is a pattern whose forms are made.

    Refuses, naming the key: an unknown key, a pattern that is not "[X]… [Y] .", a form that is no text, and a property
    that is not among ``properties`` where these are given.
    """
    content = read_yaml(file, "patterns of properties")
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise InputError(f"{file} should hold a mapping of property labels to patterns")
    known = None if properties is None else list(properties)
    found = {}
    for label, given in content.items():
        if known is not None and label not in known:
            raise InputError(f"{file}: there is no property {label!r}; {did_you_mean(str(label), known)}")
        found[str(label)] = _checked(given, f"{file}, {label!r}")
    return found


def _checked(given: Any, where: str) -> dict[str, str]:
    parts = {"pattern": given} if isinstance(given, str) else given
    if not isinstance(parts, dict):
        raise InputError(f'{where}: a pattern is a text such as "[X] died in [Y] .", and this is {given!r}')
    for key, value in parts.items():
        if key not in _KEYS:
            raise InputError(f"{where}: there is no key {key!r}; {did_you_mean(str(key), _KEYS)}")
        if not isinstance(value, str) or not value.strip():
            raise InputError(f"{where}: {key!r} is {value!r}, and should be a text")
        if key != "pattern" and ("[" in value or "<" in value):
            raise InputError(
                f"{where}: {key!r} is {value!r}, and should be words alone; write something for [X] and [Y]"
            )
    if "pattern" not in parts:
        raise InputError(f"{where}: 'pattern' is missing; write one such as \"[X] died in [Y] .\"")
    try:
        _piece(parts["pattern"])
    except InputError as error:
        raise InputError(f"{where}: {error}") from error
    return {key: parts[key].strip() for key in _KEYS if key in parts}


def _piece(text: str) -> str:
    found = _WHOLE.match(text)
    if not found or "[" in found["piece"] or "<" in found["piece"]:
        raise InputError(
            f'the pattern {text!r} should begin with [X] and end with "[Y] .", as "[X] died in [Y] ." does'
        )
    return found["piece"]


def _of_possessive(rest: str) -> tuple[str, str]:
    """Both forms of "[X]'s spouse is [Y] ." and of "[X]'s government is headed by [Y] ."."""
    words = rest.split(" ")
    if words[-1] in _COPULAS and len(words) > 1:
        noun = " ".join(words[:-1])
        return f"have {_some(noun)}", f"to be {'among ' if words[-1] in ('are', 'were') else ''}the {noun} of something"
    at = next((at for at, word in enumerate(words) if at and word in _COPULAS), len(words) - 1)
    if at == 0:
        return f"have something as {rest}", f"for something's {rest} to be one"
    noun, verb, tail = " ".join(words[:at]), words[at], " ".join(words[at + 1 :])
    infinitive = " ".join(part for part in (read_verb([verb]).infinitive, tail) if part)
    if verb in _COPULAS:
        return f"have {_some(noun)} {tail} something", f"for something's {noun} to {infinitive} one"
    return f"have {_some(noun)} that {verb} something", f"for something's {noun} to {infinitive} one"


def _of_verb(rest: str) -> tuple[str, str]:
    """Both forms of "[X] died in [Y] .", "[X] has part [Y] ." and "[X] is part of constellation [Y] ."."""
    verb: Verb = read_verb(rest.split(" "))
    tail = verb.tail
    if not tail or tail[-1].lower() in PREPOSITIONS or _takes_an_object(verb):
        whole = " ".join([verb.infinitive, *tail])
        return f"{whole} something", f"for something to {whole} one"
    last = max((at for at, word in enumerate(tail) if word.lower() in PREPOSITIONS), default=-1)
    before, noun = tail[: last + 1], tail[last + 1 :]
    if noun[0] in _DETERMINERS:
        noun = noun[1:]
    name = " ".join(noun)
    subject = " ".join([verb.infinitive, *before, _some(name)])
    if verb.word in ("has", "have") and not before:
        return subject, f"to be {_some(name)} of something"
    return subject, f"to be {_some(name)} that something {' '.join([*verb.adverbs, verb.word, *before])}"


def _takes_an_object(verb: Verb) -> bool:
    """Whether what follows the verb still wants an object: "is called", "is more expensive than"."""
    return verb.word in _COPULAS and (is_participle(verb.tail[-1]) or len(verb.tail) == 1)


def _some(noun: str) -> str:
    """A noun phrase for something that is not known: "an author", "deaths", "industry"."""
    if noun.split(" ", maxsplit=1)[0].lower() in (*_DETERMINERS, "its", "his", "her", "their", "this"):
        return noun
    if noun.startswith("other ") and not is_plural(noun):
        return f"an{noun}"
    return noun if is_plural(noun) or is_uncountable(noun) else add_indefinite_article(noun)
