"""Suggestions of sentence templates for a predicate, from its label."""

from __future__ import annotations

import re

from merkhet.questions.english import add_indefinite_article, default_template

_LARGE = ("area", "population", "size", "capacity", "volume", "budget", "staff", "surface")
_LONG = ("length", "duration", "runtime")
_KINDS = frozenset(("type", "kind", "category", "class", "sort", "form"))
_NOUNS = {"in": "place", "at": "place", "from": "place", "near": "place", "by": "maker", "on": "date", "for": "purpose"}
_PARTICIPLES = frozenset(("born", "built", "made", "begun", "sold", "won", "written"))
_VERB_AND_NOUN = re.compile(r"(?:has|had|(?!is|was)\w+s) (?:an?|the) (.+?)(?: of)?")
_CODE = re.compile(r"[A-Z]+\d+")
_TIMES = ("year", "date", "founded", "established", "introduced", "launched", "born", "inception", "released", "opened")


def sentence_templates(
    label: str,
    *,
    is_type: bool = False,
    is_class: bool = False,
    single: bool = True,
    dated: bool = False,
    common: bool = False,
) -> list[str]:
    """Suggest templates for statements with a predicate.

    Args:
        label: Label of the predicate, such as "capital", "made by" or "owns".
        is_type: Whether the predicate gives the class of an individual.
        is_class: Whether the predicate gives the superclass of a class.
        single: Whether each subject has one object.
        dated: Whether the objects are dates.
        common: Whether the objects are common nouns, which need an article after "is".
    """
    if is_class:
        return ["{a subject} is a kind of {object}.", "Every {subject} is {a object}."]
    if is_type:
        return ["{the subject} is {a object}.", "{the subject} is an example of {a object}."]
    # An article at the end of a label belongs to the object.
    template = re.sub(r" an? \{the object\}", " {a object}", default_template(label))
    template = template.replace(" the {the object}", " the {object}")
    first_word = label.split(maxsplit=1)[0]
    if dated and label == first_word and (label.endswith("ed") or label in _PARTICIPLES):
        return [f"{{the subject}} was {label} on {{the object}}."]
    if not template.startswith("The "):
        return [template.replace(" is ", " was ", 1) if dated and first_word.endswith("ed") else template]
    noun = label if single else add_indefinite_article(label)
    templates = [template] if single else [f"One {label} of {{the subject}} is {{the object}}."]
    if common and label.rpartition(" ")[2].lower() in _KINDS:
        return ["{the subject} is {a object}.", f"As for its {label}, {{the subject}} is {{a object}}."]
    article = "the " if single else ""
    return [*templates, f"{{the object}} is {article}{noun} of {{the subject}}."]


def category_noun(*labels: str) -> str:
    """Return a noun for the values of a predicate, from the first of its labels that gives one.

    A label gives itself if it is a noun, and its noun if it is a verb with one ("currency" for "uses the currency").
    Without any, the noun is a general one, such as "place" for "made in".
    """
    for label in labels:
        if match := _VERB_AND_NOUN.fullmatch(label):
            return match[1]
        if default_template(label).startswith("The ") and not _CODE.fullmatch(label):
            return label
    return _NOUNS.get(labels[0].rpartition(" ")[2].lower(), "kind")


def superlatives(label: str) -> tuple[str, str]:
    """Return the words for the highest and the lowest value of a quantity: "largest" and "smallest" for an area."""
    words = label.lower().split()
    if any(word in _TIMES for word in words):
        return "latest", "earliest"
    if any(word in _LARGE for word in words):
        return "largest", "smallest"
    if any(word in _LONG for word in words):
        return "longest", "shortest"
    return "highest", "lowest"
