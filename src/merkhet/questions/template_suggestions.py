"""Suggestions of sentence templates for a predicate, from its label."""

from __future__ import annotations

from merkhet.questions.english import add_indefinite_article, default_template

_LARGE = ("area", "population", "size", "capacity", "volume", "budget", "staff", "surface")
_LONG = ("length", "duration", "runtime")
_KINDS = frozenset(("type", "kind", "category", "class", "sort", "form"))
_NOUNS = {"in": "place", "at": "place", "from": "place", "near": "place", "by": "maker", "on": "date", "for": "purpose"}
_PARTICIPLES = frozenset(("born", "built", "made", "begun", "sold", "won", "written"))
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
    template = default_template(label)
    first_word = label.split(maxsplit=1)[0]
    if dated and label == first_word and (label.endswith("ed") or label in _PARTICIPLES):
        return [f"{{the subject}} was {label} on {{the object}}."]
    if not template.startswith("The "):
        return [template.replace(" is ", " was ", 1) if dated and first_word.endswith("ed") else template]
    noun = label if single else add_indefinite_article(label)
    templates = [template] if single else [f"One {label} of {{the subject}} is {{the object}}."]
    if common and label.rpartition(" ")[2].lower() in _KINDS:
        return ["{the subject} is {a object}.", *templates]
    article = "the " if single else ""
    return [*templates, f"{{the object}} is {article}{noun} of {{the subject}}."]


def category_noun(label: str) -> str:
    """Return a noun for the categories of a predicate: the label itself, or "place" for "made in"."""
    template = default_template(label)
    last_word = label.rpartition(" ")[2].lower()
    return label if template.startswith("The ") else _NOUNS.get(last_word, "kind")


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
