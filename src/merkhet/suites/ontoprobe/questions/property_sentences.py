"""Sentence templates made from labels of properties: "author" → "[X]'s author is [Y] ."."""

from __future__ import annotations

import re
from dataclasses import dataclass

from merkhet.questions.english import add_indefinite_article
from merkhet.suites.ontoprobe.questions import pos_lexicon as lexicon
from merkhet.suites.ontoprobe.questions.pos_lexicon import PREPOSITIONS

_SINGULAR_S = re.compile(r"(?:ss|us|is|ous|ics|series|species|chess|news|corps|lens|bus|atlas|canvas|alias|status)$")

_BASES = {"is": "be", "are": "be", "was": "have been", "were": "have been", "has": "have", "does": "do", "goes": "go"}
_AUXILIARIES = {"can": "be able to", "could": "have been able to", "may": "be allowed to", "must": "have to"}


@dataclass(frozen=True)
class Verb:
    """Verb phrase between [X] and [Y]."""

    word: str
    """Verb as written in the phrase."""
    infinitive: str
    """Infinitive of the verb without "to", with its adverbs."""
    tail: tuple[str, ...]
    """Words after the verb."""
    adverbs: tuple[str, ...] = ()
    """Adverbs before the verb."""


def parse_verb(words: list[str]) -> Verb:
    """Parse a verb phrase, which may begin with adverbs; its infinitive is "have died" for "died"."""
    index = 0
    while index + 1 < len(words) and words[index].endswith("ly") and len(words[index]) > 4:
        index += 1
    adverbs, word, tail = words[:index], words[index], words[index + 1 :]
    if word == "used" and tail[:1] == ["to"] and len(tail) > 1:
        infinitive = f"have {_participle(tail[1])}"
        word, tail = f"used to {tail[1]}", tail[2:]
    elif word in _AUXILIARIES and tail:
        infinitive = f"{_AUXILIARIES[word]} {tail[0]}"
        word, tail = f"{word} {tail[0]}", tail[1:]
    else:
        infinitive = _infinitive(word)
    head, blank, rest = infinitive.partition(" ")
    parts = [head, *adverbs, rest] if head == "have" and blank else [*adverbs, infinitive]
    return Verb(word, " ".join(part for part in parts if part), tuple(tail), tuple(adverbs))


def is_participle(word: str) -> bool:
    """Check whether a word looks like a past participle: "located", "written"."""
    lower = word.lower()
    return lower in lexicon.PARTICIPLES or (
        lower.endswith("ed") and lower not in lexicon.NOT_PARTICIPLES and len(lower) > 3
    )


def is_plural(noun: str) -> bool:
    """Check whether the head of a noun phrase is plural.

    The head is the word before the first preposition, or else the last word.
    """
    word = _head(noun)
    lower = word.lower()
    if lower in lexicon.PLURAL:
        return True
    if not lower.endswith("s") or lower in lexicon.SINGULAR or len(lower) < 4 or word.isupper():
        return False
    return not _SINGULAR_S.search(lower)


def is_uncountable(noun: str) -> bool:
    """Check whether the head of a noun phrase is a mass noun, which takes no "a"."""
    return _head(noun).lower() in lexicon.UNCOUNTABLE


def sentence_from_label(label: str) -> str:
    """Make a sentence template "[X] … [Y] ." from the label of a property, by rules of English and a few exceptions.

    A noun becomes a possessive ("[X]'s author is [Y] ."). A verb, a participle with a preposition, or a noun with "of"
    is placed between subject and object.
    """
    plain = _plain(label)
    for text in (" ".join(label.split()), plain):
        if text.lower() in lexicon.EXCEPTIONS:
            return lexicon.EXCEPTIONS[text.lower()]
    words = plain.split(" ")
    lower = [word.lower() for word in words]
    middle = _verb_phrase(words, lower)
    if middle is not None:
        return f"[X] {middle} [Y] ."
    if lower[0] == "is":
        return f"[X]'s state of being {' '.join(words[1:])} is [Y] ."
    if lower[-2:] == ["as", "of"] and len(words) > 2:
        noun = " ".join(words[:-2])
        return f"[X]'s {noun} {'are' if is_plural(noun) else 'is'} as of [Y] ."
    if lower[-1] == "by" and len(words) > 2 and is_participle(words[-2]):
        return f"[X]'s {' '.join(words[:-2])} was {lower[-2]} by [Y] ."
    return f"[X]'s {plain} {'are' if is_plural(plain) else 'is'} [Y] ."


def _verb_phrase(words: list[str], lower: list[str]) -> str | None:
    """Return the text between [X] and [Y], or None for a noun label that needs a possessive."""
    plain, first, last, several = " ".join(words), lower[0], lower[-1], len(words) > 1
    rest = " ".join(words[1:])
    if first == "is" and not PREPOSITIONS.intersection(lower):
        return None
    if first in lexicon.LINKING_VERBS and several:
        if first in ("has", "have", "had") and last in PREPOSITIONS and len(words) == 3 and lower[1] not in ("part",):
            return f"{first} {add_indefinite_article(words[1])} {last}"
        return f"{first} {rest}"
    if lower[-2:] == ["as", "of"]:
        return None
    if first in lexicon.VERBS:
        return f"{first} {rest}".rstrip()
    if not several:
        dated = f"was {first} in" if first in lexicon.DATED_PARTICIPLES else None
        return first if first in lexicon.TRANSITIVE_PAST else dated
    adverb = first.endswith("ly") or first in ("so", "most")
    head = lower[1] if adverb and len(words) > 2 else first
    if head in lexicon.INTRANSITIVE_PAST and last in PREPOSITIONS:
        return plain
    if is_participle(head) and (last in PREPOSITIONS or lower[2 if adverb else 1] in PREPOSITIONS):
        was = head in lexicon.EVENT_PARTICIPLES or (last == "by" and head not in lexicon.STATE_PARTICIPLES)
        return f"{'was' if was else 'is'} {first} {rest}"
    if last in lexicon.OBJECT_FIRST_PAST and len(words) == 2:
        return f"{last} {words[0]}"
    if last not in PREPOSITIONS:
        if first in lexicon.MEMBERSHIP_NOUNS and lower[1] == "of":
            return f"is {'a ' if first == 'member' else ''}{first} {rest}"
        return None
    if first in lexicon.ADJECTIVES:
        return f"is {first} {rest}"
    if last == "by":
        return None if is_participle(lower[-2]) else f"has {plain}"
    if last == "against" or len(words) > 4:
        return None
    if last != "of" and len(words) == 2 and first.endswith("s") and not _SINGULAR_S.search(first):
        return plain
    if first == "part":
        return f"is {plain}"
    return f"is the {plain}" if first in lexicon.DEFINITE_NOUNS else f"is {add_indefinite_article(plain)}"


def _plain(label: str) -> str:
    """Split camel case and underscores into words, drop units in brackets, and spell "a / b" as "a or b"."""
    text = re.sub(r"(?<=\S)\s*\([^()]*\)", "", label).replace("_", " ")
    camel_case = " " not in text and text[:1].islower() and not text.islower()
    if camel_case:
        text = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", " ", text)
    text = re.sub(r"[\[\]()<>]", " ", text)
    text = re.sub(r"\s+/\s+", " or ", text).strip(" .")
    words = text.split()
    if camel_case:
        words = [word if word.isupper() and len(word) > 1 else word.lower() for word in words]
    return " ".join(words) or "value"


def _head(noun: str) -> str:
    words = noun.split(" ")
    prepositions = (*PREPOSITIONS, "per")
    end = next((index for index, word in enumerate(words) if index and word.lower() in prepositions), len(words))
    return words[end - 1]


def _infinitive(word: str) -> str:
    if word in _BASES:
        return _BASES[word]
    if word in lexicon.IRREGULAR_PARTICIPLES:
        return f"have {lexicon.IRREGULAR_PARTICIPLES[word]}"
    if word.endswith("ed") and word.lower() not in lexicon.NOT_PARTICIPLES:
        return f"have {word}"
    if word.endswith("ies") and len(word) > 4:
        return f"{word[:-3]}y"
    if re.search(r"(?:ss|sh|ch|x|zz)es$", word):
        return word[:-2]
    return word[:-1] if word.endswith("s") and not word.endswith("ss") else word


def _participle(base: str) -> str:
    """Form the participle of a regular verb: "work" → "worked", "live" → "lived", "study" → "studied"."""
    if base.endswith("e"):
        return f"{base}d"
    return f"{base[:-1]}ied" if re.search(r"[^aeiou]y$", base) else f"{base}ed"
