"""English forms of names: articles, plurals, capitalization and number formats."""

from __future__ import annotations

import re
from collections.abc import Callable

# Vowel letters that sound like a consonant: European, one-way, unit (but not unimportant), user, uranium, U-turn.
_YOU = r"u(?![a-z])|uni(?!m|n|ron|dent)|unanim|us[aeiu]|ur[aeiou]|ut[eio]|utah|uk|ubi|uv|ugan"
_CONSONANT_SOUND = re.compile(rf"^(?:eu|ew|one\b|once\b|oui|{_YOU})", re.IGNORECASE)
# Vowel letters, silent h, letter names that begin with a vowel (X-ray, H-bomb, F 15), and 8, 11 and 18.
_VOWEL_SOUND = re.compile(
    r"^(?:[aeiou]|y[tpg]|hour|heir|honou?r|honest|hors d|[fhlmnrsx](?=[-\s\d]|$)|8|1[18](?:\d\d)?(?!\d))", re.IGNORECASE
)
# Abbreviations that are read letter by letter: an MRI, an FBI, but a UN, a USB.
_SPELLED_AN = re.compile(r"^[FHLMNRSX][B-DF-HJ-NP-TV-Z\d]+(?![a-z])")
_SPELLED_A = re.compile(r"^U[A-Z]+(?![a-z])")
_THE_WORDS = re.compile(r"\b(Republic|Kingdom|States|Islands|Emirates|Federation|Union|Soviet)\b")
_THE_NAMES = frozenset(
    (
        *("Netherlands", "Philippines", "Bahamas", "Gambia", "Maldives", "Seychelles", "Comoros"),
        *("Americas", "Moon", "Rhine", "Sun", "Titans"),
    )
)

_UNCHANGED = frozenset(("sheep", "deer", "fish", "aircraft", "series", "species", "means", "bison", "salmon", "trout"))
_MANS = frozenset(("human", "german", "roman", "shaman", "ottoman", "talisman", "caiman"))
_IRREGULAR_PLURALS = """
    child:children foot:feet tooth:teeth goose:geese mouse:mice louse:lice ox:oxen knife:knives life:lives wife:wives
    leaf:leaves loaf:loaves wolf:wolves calf:calves half:halves shelf:shelves thief:thieves scarf:scarves hoof:hooves
    potato:potatoes tomato:tomatoes hero:heroes phenomenon:phenomena bacterium:bacteria nucleus:nuclei fungus:fungi
    cactus:cacti axis:axes crisis:crises
"""
_IRREGULAR = dict(pair.split(":") for pair in _IRREGULAR_PLURALS.split())

AUXILIARIES = frozenset(("is", "was", "are", "were", "has", "had", "have", "can", "may", "does", "did", "became"))
_VERB_LIST = """
    owns owned plays played works worked uses causes contains produces borders entails includes makes needs speaks wrote
    won studied lived died graduated founded created married joined belongs belonged held holds leads led
"""
_VERBS = frozenset(_VERB_LIST.split())
PREPOSITIONS = frozenset(
    ("of", "in", "to", "at", "from", "for", "by", "with", "on", "into", "after", "before", "near", "under", "over")
)
_OTHER_FUNCTION_WORDS = """
    be been being will would could should must might do that which who whom whose where when while if than as and or but
    not nor so because since through between behind beside around among against without within during until about
    this these those it its they their he she his her we you i there then still also only just even often usually
    sometimes always never both either neither like up down out off above below across along inside outside towards upon
    per beyond despite
"""
FUNCTION_WORDS = AUXILIARIES | _VERBS | PREPOSITIONS | frozenset(_OTHER_FUNCTION_WORDS.split())
"""Words that cannot stand between an article and its noun, as an adjective or another noun can."""
_DESCRIPTIVE_ADJECTIVES = """
    young old adult grown female male wild tame healthy sick dead new ancient modern present-day typical usual ordinary
    common rare normal average big small large little great tall short heavy light single famous former
"""
DESCRIPTIVE_ADJECTIVES = frozenset(_DESCRIPTIVE_ADJECTIVES.split())
"""Frequent adjectives, which tell "the young otter" from "the term otter"."""
ORDINALS = frozenset(("first", "second", "third", "last", "next", "only", "same", "other", "whole", "entire"))
"""Adjectives that may also be adverbs, as in "at first"."""
_ADJECTIVES = frozenset(("capable", "full", "made", "part"))


def add_indefinite_article(name: str) -> str:
    """Add "a" or "an" to a name: "an element", "a metal", "a European", "an hour"."""
    if _SPELLED_A.match(name) or _CONSONANT_SOUND.match(name):
        return f"a {name}"
    return f"{'an' if _SPELLED_AN.match(name) or _VOWEL_SOUND.match(name) else 'a'} {name}"


def add_definite_article(name: str) -> str:
    """Add "the" to a proper name where English requires it: "the Netherlands", "the United States", but "France"."""
    if name.lower().startswith("the "):
        return name
    needs_article = bool(_THE_WORDS.search(name)) or name in _THE_NAMES
    return f"the {name}" if needs_article else name


def capitalize(text: str) -> str:
    """Capitalize the first letter and leave the rest unchanged."""
    return text[:1].upper() + text[1:]


def default_template(label: str) -> str:
    """Derive a template from a predicate's label: "The capital of X is Y.", "X is a part of Y.", "X was born in Y.".

    A label that starts with a verb goes between subject and object. "is" precedes a label that ends in a preposition.
    Any other label is a noun: "The label of the subject is the object."
    """
    words = label.split()
    first, last = words[0].lower(), words[-1].lower()
    if first in AUXILIARIES or first in _VERBS or (len(words) > 1 and last in PREPOSITIONS and first.endswith("s")):
        middle = label
    elif len(words) > 1 and last == "of" and not first.endswith(("ed", "en")) and first not in _ADJECTIVES:
        middle = f"is {add_indefinite_article(label)}"
    elif len(words) > 1 and last in PREPOSITIONS:
        middle = f"is {label}"
    elif first.endswith("ed") and len(words) == 1:
        middle = label
    else:
        return f"The {label} of {{the subject}} is {{the object}}."
    return f"{{the subject}} {middle} {{the object}}."


def format_number(value: float) -> str:
    """Format a number for a sentence, without trailing zeros and exponent."""
    return str(int(value)) if value == int(value) else f"{value:.10f}".rstrip("0")


def pluralize(name: str) -> str:
    """Pluralize the last word of a noun phrase, or the noun before "of": "alkali metals", "kinds of tea"."""
    head, preposition, rest = name.partition(" of ")
    first, blank, word = head.rpartition(" ")
    lower = word.lower()
    if lower in _UNCHANGED:
        plural_word = word
    elif lower in _IRREGULAR:
        plural_word = word[:1] + _IRREGULAR[lower][1:]
    elif re.search(r"(?:[^aeiou]|qu)y$", lower):
        plural_word = f"{word[:-1]}ies"
    elif re.search(r"(?:s|x|z|ch|sh)$", lower):
        plural_word = f"{word}es"
    elif lower.endswith("man") and lower not in _MANS:
        plural_word = f"{word[:-3]}men"
    else:
        plural_word = f"{word}s"
    return f"{first}{blank}{plural_word}{preposition}{rest}"


FORMS: dict[str, Callable[[str], str]] = {
    "": str,
    "a": add_indefinite_article,
    "the": add_definite_article,
    "plural": pluralize,
}
"""Functions that inflect a name, by the form written before a placeholder, such as ``a`` in ``{a object}``."""
