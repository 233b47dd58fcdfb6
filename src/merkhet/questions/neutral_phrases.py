"""Neutral noun phrases in place of a name: "this country", "every animal of this kind", "called by this name"."""

from __future__ import annotations

import re
from collections.abc import Sequence

from merkhet.questions.english import (
    AUXILIARIES,
    DESCRIPTIVE_ADJECTIVES,
    FUNCTION_WORDS,
    ORDINALS,
    PREPOSITIONS,
    add_indefinite_article,
    capitalize,
    pluralize,
)

_QUOTES = {"“": "”", "‘": "’", "«": "»", '"': '"', "'": "'"}
_ARTICLES = frozenset(("the", "a", "an"))
_QUANTIFIERS = frozenset(("every", "each", "any", "no", "another"))
_PLURAL_QUANTIFIERS = frozenset(
    ("some", "many", "most", "all", "few", "several", "both", "two", "three", "four", "five", "other")
)
_DETERMINERS = _ARTICLES | _QUANTIFIERS | _PLURAL_QUANTIFIERS
_OFFICES = frozenset(("office", "position", "post"))
_CLASSES = frozenset(("category", "class", "family", "kind", "type"))
_NUMBER = "number"
_ACTIONS = frozenset(("action", "activity", "deed", "feat", "job", "task", "work"))
_RELATIVES = frozenset(("that", "which", "who", "whom", "whose", "where", "when"))

_WORD = r"[^\W\d_][\w-]*"
_LAST_WORDS = re.compile(rf"(?:(?<=[\s\"“(])|^)(?:{_WORD} ){{1,4}}$")
_VERB_ENDING = re.compile(r"(?:ed|ly|(?<![su])s)$")
"""Ending of many verbs and adverbs; "the otter eats" is no noun phrase, but "the famous otter" is."""
_CALLED = re.compile(
    rf"(?:(?<=[\s\"“(])|^)(?:the|an?) ((?:{_WORD} ){{0,2}}{_WORD}) called (?:the |an? )?$", re.IGNORECASE
)
_NAMED = re.compile(r"\b(?:called|named) (?:the |an? )?$")
_WRITTEN = re.compile(r"\b(?:is|are|was|were) (?:\w+ly )?(?:written|abbreviated|spelled|denoted) (?:the |an? )?$")
_BECAME = re.compile(r"\b(?:become|becomes|became|is|was|as) (?:the )?$")
_IS_NAME = re.compile(r" (?:is|was|are|were) (?:the|an?) (?:[\w-]+ ){0,2}(?:name|term|word) (?:of|for)\b")
_COMPOUND = re.compile(rf" ({_WORD})(?=[.,;:?!]| (?:{'|'.join(sorted(AUXILIARIES))})\b)")
_UNIT = re.compile(rf" ({_WORD})")
_PLURAL = re.compile(r"[^sui]s$")
_POSSESSIVE = re.compile(r"(?:\b(?:its|their|his|her|our|your|my)|['’]s?) $", re.IGNORECASE)
_SENTENCE_START = re.compile(r"(?:^|[.?!:] |[\"“])$")


def put_phrase(before: str, name: str, after: str, noun: str, *, is_plural: bool = False) -> tuple[str, str] | None:
    """Replace a name in a text by a neutral noun phrase.

    The phrase also replaces what belongs to the name: an article ("the otter"), quotation marks (“Avatar”), and a noun
    in apposition ("the film “Avatar”", "the term otter", "a bone called the ulna"). A name after a colon at the end of
    a sentence is left out.

    Args:
        before: Text before the name.
        after: Text after the name.
        noun: Description of what is named, such as ``country``.

    Returns:
        The text up to the end of the phrase, and the text after it; None if no phrase is grammatical.
    """
    if before and before[-1] in _QUOTES and after.startswith(_QUOTES[before[-1]]):
        before, after = before[:-1], after[1:]
    if before.endswith(": ") and after.startswith(".") and not _SENTENCE_START.search(before[:-2]):
        return before[:-2], after
    made = _make_phrase(before, after, noun, is_plural)
    if made is None:
        return None
    kept, phrase, after = made
    first = (before[len(kept) :] + name)[:1]
    start = _SENTENCE_START.search(kept)
    if start and (first.isupper() or not (first.islower() or start[0].startswith(":"))):
        phrase = capitalize(phrase)
    return kept + phrase, after


def _make_phrase(before: str, after: str, noun: str, is_plural: bool) -> tuple[str, str, str] | None:
    """Return the text before the phrase, the phrase, and the text after it; None if no phrase is grammatical."""
    if after.startswith("-") or before.endswith("-") or _POSSESSIVE.search(before):
        return None
    called = _CALLED.search(before)
    if called and not FUNCTION_WORDS.intersection(called[1].lower().split()):
        return before[: called.start()], f"{'these' if _PLURAL.search(called[1]) else 'this'} {called[1]}", after
    if named := _NAMED.search(before):
        return before[: named.start()], "called by this name", after
    if _WRITTEN.search(before):
        return _without_article(before), f"as this {noun}", after
    if noun in _OFFICES and _BECAME.search(before):
        return _without_article(before), f"the holder of this {noun}", after
    if noun in _ACTIONS and re.search(r"\bto $", before, re.IGNORECASE):
        return before, f"do this {noun}", after
    if _IS_NAME.match(after) and _SENTENCE_START.search(before):
        return before, "this", after
    if after.startswith(f" {noun}") and not after[len(noun) + 1 : len(noun) + 2].isalpha():
        after = after[len(noun) + 1 :]
    elif noun == _NUMBER and (unit := _UNIT.match(after)) and unit[1] not in FUNCTION_WORDS:
        return before, f"this {noun} of", after
    if (
        noun in _CLASSES
        and (article := re.search(r"\b(?:a|an) $", before, re.IGNORECASE))
        and not _COMPOUND.match(after)
    ):
        return before[: article.start()], f"one of this {noun}", after
    if same := re.search(rf"(?:(?<=[^\w-])|^)(?:the|an?) {re.escape(noun)} of (?:the |an? )?$", before, re.IGNORECASE):
        return before[: same.start()], f"this {noun}", after
    return _follow_words(before, after, noun, is_plural)


def _follow_words(before: str, after: str, noun: str, is_plural: bool) -> tuple[str, str, str] | None:
    """Make a phrase that fits the words before a name: a determiner, adjectives, or a noun in apposition."""
    neutral = f"these {pluralize(noun)}" if is_plural else f"this {noun}"
    match = _LAST_WORDS.search(before)
    if match is None:
        return before, neutral, after
    words = match[0].split()
    first = next((n for n in reversed(range(len(words))) if words[n].lower() in _DETERMINERS), len(words))
    determiner, modifiers = "".join(words[first : first + 1]).lower(), words[first + 1 :]
    if determiner and not FUNCTION_WORDS.intersection(map(str.lower, modifiers)):
        head = _without_words(before, words[first:])
        if not modifiers:
            return head, *_after_determiner(determiner, before, after, noun, is_plural)
        phrase = _after_modifiers(determiner, modifiers, noun, is_plural)
        if phrase is not None:
            return head, phrase, after
        # The last word is either a verb, as in "the otter eats", or an adjective that is not known.
        return (before, neutral, after) if _VERB_ENDING.search(modifiers[-1]) else None
    if " ".join(["", *words, ""]).lower().endswith(f" {noun} "):
        return _after_same_noun(before, after, noun)
    if noun == _NUMBER and len(words) > 1 and words[-2].lower() in PREPOSITIONS:
        return _without_words(before, words[-1:]), f"the {words[-1]} with this {noun}", after
    if words[-1] in DESCRIPTIVE_ADJECTIVES:
        return _without_words(before, words[-1:]), neutral.replace(" ", f" {words[-1]} ", 1), after
    if words[-1][0].isupper() and not _SENTENCE_START.search(_without_words(before, words[-1:])):
        return None
    return before, neutral, after


def _after_determiner(determiner: str, before: str, after: str, noun: str, is_plural: bool) -> tuple[str, str]:
    """Return the phrase for a determiner and a name, and the text after it: "every otter", "every iron atom is"."""
    neutral = f"these {pluralize(noun)}" if is_plural else f"this {noun}"
    compound = _COMPOUND.match(after)
    sentence = re.split(r"[.?!:\"“]", before)[-1]
    if (
        compound
        and not is_plural
        and compound[1] not in FUNCTION_WORDS
        and not _VERB_ENDING.search(compound[1])
        and not _RELATIVES.intersection(sentence.lower().split())
    ):
        is_indefinite = determiner in ("a", "an")
        atom = add_indefinite_article(compound[1]) if is_indefinite else f"{determiner} {compound[1]}"
        return f"{atom} of {neutral}", after[compound.end(1) :]
    if determiner in _ARTICLES:
        return neutral, after
    if determiner in _PLURAL_QUANTIFIERS and not is_plural:
        return f"{determiner} of {neutral}", after
    return f"{determiner} {pluralize(noun) if is_plural else noun} of this kind", after


def _after_modifiers(determiner: str, modifiers: Sequence[str], noun: str, is_plural: bool) -> str | None:
    """Return the phrase for a determiner, adjectives or a noun, and a name; None if it is not clear what they are."""
    text = " ".join(modifiers)
    if f" {text}".lower().endswith(f" {noun}"):
        return f"this {text}"
    is_adjective = all(word in DESCRIPTIVE_ADJECTIVES | ORDINALS or word.endswith("est") for word in modifiers)
    if is_adjective or (len(modifiers) == 1 and determiner != "the"):
        return f"{determiner} {text} {pluralize(noun) if is_plural else noun} of this kind"
    return f"this {text}" if len(modifiers) == 1 else None


def _after_same_noun(before: str, after: str, noun: str) -> tuple[str, str, str]:
    """Make a phrase for a name after its noun without an article: "is number 7", "is planet number 7"."""
    before = before[: -len(noun) - 1]
    counted = re.search(rf"({_WORD}) $", before)
    if counted is None or counted[1].lower() in FUNCTION_WORDS:
        return before, f"this {noun}", after
    word = counted[1]
    if word.istitle() and _SENTENCE_START.search(before[: counted.start()]):
        word = word.lower()
    return before[: counted.start()], f"the {word} with this {noun}", after


def _without_words(text: str, words: Sequence[str]) -> str:
    """Remove words, with a space after each, from the end of a text."""
    return text[: len(text) - sum(len(word) + 1 for word in words)]


def _without_article(text: str) -> str:
    return re.sub(r"\b(?:the|an?) $", "", text)
