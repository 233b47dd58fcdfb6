"""Templates: sentences with named places, read from YAML and checked when they are read.

A place is written ``{subject}``, ``{object}``, ``{start}`` or ``{end}``; ``{a object}`` puts a or an before the name,
``{the object}`` puts the where a proper name wants it. A statement names both the subject and the object.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from merkhet.core import SLOT
from merkhet.core.errors import InputError, did_you_mean
from merkhet.core.files import read_yaml
from merkhet.questions.english import FORMS, capitalize, default_template

PLACEHOLDERS = ("subject", "object", "start", "end")
PLACEHOLDER = re.compile(r"\{(?:(\w+) )?(\w+)\}")
_RELATION_KEYS = (
    "about",
    "predicate",
    "ask",
    "templates",
    "checking",
    "completion",
    "contrast",
    "transitive",
    "kinship",
    "shorten",
)
_HIERARCHY_KEYS = ("about", "predicate", "templates", "form")


@dataclass(frozen=True)
class Relation:
    """How facts of a predicate are put into words, which place is asked for, and what the relation is called.

    ``contrast`` names a place whose value wrong answers share with the right one where they can (other people who
    held the same office). ``transitive`` counts every object that a chain of facts leads to as right. ``kinship``
    names an is-a-like predicate: what is above or below a right answer by it is never offered as a wrong one.
    ``shorten`` names a place of which only the last word is kept where the rest would give the answer away ("Samoan
    tala").
    ``checking`` and ``completion`` switch a question kind off for this relation.
    """

    name: str
    predicate: str
    templates: tuple[str, ...]
    ask: str = "object"
    about: str = ""
    contrast: str | None = None
    transitive: bool = False
    kinship: str | None = None
    shorten: str | None = None
    checking: bool = True
    completion: bool = True


@dataclass(frozen=True)
class Hierarchy:
    """How members of categories are set apart: ``{members}`` is the list, ``{category}`` what three of them are."""

    name: str
    predicate: str
    templates: tuple[str, ...]
    about: str = ""
    form: str = ""


@dataclass(frozen=True)
class Schema:
    """All relations and hierarchies of a suite."""

    relations: Mapping[str, Relation]
    hierarchies: Mapping[str, Hierarchy]


def read_schema(path: Path) -> Schema:
    """The schema of a YAML file; refuses unknown keys, unknown places and sentences without their places."""
    content = read_yaml(path, "templates")
    if not isinstance(content, dict):
        raise InputError(f"{path}: templates stand under 'relations' and 'hierarchies', and neither is there")
    refuse_unknown_keys(content, ("relations", "hierarchies"), str(path))
    for key, found in content.items():
        if found is not None and not isinstance(found, dict):
            raise InputError(f"{path}: under {key!r} stand names, each with its templates, and not a {_kind(found)}")
    relations = {str(n): _relation(str(n), b, path) for n, b in (content.get("relations") or {}).items()}
    hierarchies = {str(n): _hierarchy(str(n), b, path) for n, b in (content.get("hierarchies") or {}).items()}
    return Schema(relations, hierarchies)


def default_relation(predicate: str, label: str) -> Relation:
    """The relation of a predicate that nobody wrote templates for, worded by its name."""
    return Relation(predicate, predicate, (default_template(label),), about=label)


def fill_template(template: str, values: Mapping[str, str], asked: str | None = None) -> str:
    """The sentence with its places filled, the asked one with the slot; its first letter is upper case."""

    def put(found: re.Match[str]) -> str:
        form, place = found[1] or "", found[2]
        return SLOT if place == asked else FORMS[form](values[place])

    return capitalize(PLACEHOLDER.sub(put, template))


def format_answer(template: str, asked: str, name: str) -> str:
    """A name as it stands in the slot of this template: with its article, and upper case where the sentence begins."""
    for found in PLACEHOLDER.finditer(template):
        if found[2] == asked:
            formed = FORMS[found[1] or ""](name)
            return capitalize(formed) if found.start() == 0 else formed
    raise InputError(f"the template {template!r} has no place {{{asked}}}")


def placeholder_names(template: str) -> list[str]:
    """The names of a template's places, in order."""
    return [found[2] for found in PLACEHOLDER.finditer(template)]


def _relation(name: str, body: Any, path: Path) -> Relation:
    where = f"{path}, relation {name!r}"
    body = _body(body, _RELATION_KEYS, where)
    ask = body.get("ask", "object")
    if ask not in PLACEHOLDERS:
        raise InputError(f"{where}: 'ask' is {ask!r}; {did_you_mean(str(ask), PLACEHOLDERS)}")
    for key in ("contrast", "shorten"):
        if body.get(key) is not None and body[key] not in PLACEHOLDERS:
            raise InputError(f"{where}: {key!r} is {body[key]!r}; {did_you_mean(str(body[key]), PLACEHOLDERS)}")
    for template in body["templates"]:
        if SLOT in template:
            raise InputError(f"{where}: {template!r} has a slot; write {{{ask}}} there, and it is asked for")
        check_placeholders(
            template, PLACEHOLDERS, {"subject", ask} if ask != "subject" else {"subject", "object"}, where
        )
    return Relation(
        name=name,
        predicate=body.get("predicate", name),
        templates=tuple(body["templates"]),
        ask=ask,
        about=body.get("about", name),
        contrast=body.get("contrast"),
        transitive=bool(body.get("transitive")),
        kinship=body.get("kinship"),
        shorten=body.get("shorten"),
        checking=bool(body.get("checking", True)),
        completion=bool(body.get("completion", True)),
    )


def _hierarchy(name: str, body: Any, path: Path) -> Hierarchy:
    where = f"{path}, hierarchy {name!r}"
    body = _body(body, _HIERARCHY_KEYS, where)
    for template in body["templates"]:
        if template.count(SLOT) != 1:
            raise InputError(f"{where}: {template!r} has {template.count(SLOT)} slots; write {SLOT} exactly once")
        check_placeholders(template, ("members", "category"), {"members", "category"}, where)
        if "{members}" not in template:
            raise InputError(f"{where}: {template!r} must write {{members}} plainly; 'form' says how each is written")
    form = body.get("form", "")
    if not isinstance(form, str) or form not in FORMS:
        raise InputError(f"{where}: 'form' is {form!r}; {did_you_mean(str(form), [name for name in FORMS if name])}")
    return Hierarchy(
        name=name,
        predicate=body.get("predicate", name),
        templates=tuple(body["templates"]),
        about=body.get("about", name),
        form=form,
    )


def _body(body: Any, keys: tuple[str, ...], where: str) -> dict[str, Any]:
    if not isinstance(body, dict) or not body.get("templates"):
        raise InputError(f"{where} has no templates; write at least one under 'templates'")
    refuse_unknown_keys(body, keys, where)
    if not isinstance(body["templates"], list) or not all(isinstance(text, str) for text in body["templates"]):
        raise InputError(f"{where}: 'templates' is a list of sentences")
    return body


def check_placeholders(template: str, known: tuple[str, ...], wanted: set[str], where: str) -> None:
    """Refuse a template that names a place or form which is none, or a wanted place not exactly once."""
    for found in PLACEHOLDER.finditer(template):
        if found[2] not in known:
            raise InputError(f"{where}: {found[0]} in {template!r} is no place; {did_you_mean(found[2], known)}")
        if (found[1] or "") not in FORMS:
            hint = did_you_mean(found[1], [form for form in FORMS if form])
            raise InputError(f"{where}: {found[1]!r} in {found[0]} is no form; {hint}")
    stray = re.search(r"[{}]", PLACEHOLDER.sub("", template))
    if stray:
        raise InputError(f"{where}: {template!r} has a {stray[0]!r} outside of any place; mend or remove it")
    for place in sorted(wanted):
        if placeholder_names(template).count(place) != 1:
            raise InputError(f"{where}: {template!r} must name {{{place}}} exactly once")


def refuse_unknown_keys(content: Mapping[str, Any], known: tuple[str, ...], where: str) -> None:
    """Refuse a key that is not known, with the nearest known one."""
    for key in content:
        if key not in known:
            raise InputError(f"{where}: there is no key {key!r}; {did_you_mean(str(key), known)}")


def _kind(found: Any) -> str:
    return "list" if isinstance(found, list) else type(found).__name__
