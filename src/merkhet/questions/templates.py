"""Templates: sentences with placeholders, read from YAML and validated.

Placeholders are ``{subject}``, ``{object}``, ``{start}`` and ``{end}``; ``{a object}`` puts a or an before the name,
``{the object}`` adds the where a proper name needs it. A statement names both the subject and the object.
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
    """How facts of a predicate are worded, and which placeholder is asked for.

    ``checking`` and ``completion`` switch a question kind off for this relation.
    """

    name: str
    predicate: str
    templates: tuple[str, ...]
    ask: str = "object"
    about: str = ""
    contrast: str | None = None
    """Placeholder whose value distractors share with the right answer if possible (others who held the same office)."""
    transitive: bool = False
    """Count every object at the end of a chain of facts as right."""
    kinship: str | None = None
    """An is-a-like predicate; ancestors and descendants of a right answer are never distractors."""
    shorten: str | None = None
    """Placeholder of which only the last word is kept, as the rest would reveal the answer ("Samoan tala")."""
    checking: bool = True
    completion: bool = True


@dataclass(frozen=True)
class Hierarchy:
    """Templates for the odd one out: ``{members}`` is the list, ``{category}`` the category of three of them."""

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
    """Read the schema of a YAML file; refuse unknown keys, unknown placeholders and incomplete sentences."""
    content = read_yaml(path, "templates")
    if not isinstance(content, dict):
        raise InputError(f"{path}: templates must be given under 'relations' and 'hierarchies'")
    refuse_unknown_keys(content, ("relations", "hierarchies"), str(path))
    for key, section in content.items():
        if section is not None and not isinstance(section, dict):
            raise InputError(f"{path}: {key!r} must map names to templates, got a {type(section).__name__}")
    relations = {str(n): _relation(str(n), b, path) for n, b in (content.get("relations") or {}).items()}
    hierarchies = {str(n): _hierarchy(str(n), b, path) for n, b in (content.get("hierarchies") or {}).items()}
    return Schema(relations, hierarchies)


def default_relation(predicate: str, label: str) -> Relation:
    """Return a relation for a predicate without templates, worded by its label."""
    return Relation(predicate, predicate, (default_template(label),), about=label)


def fill_template(template: str, values: Mapping[str, str], asked: str | None = None) -> str:
    """Fill the placeholders of a template, the asked one with the slot, and capitalize the sentence."""

    def replace(match: re.Match[str]) -> str:
        form, name = match[1] or "", match[2]
        return SLOT if name == asked else FORMS[form](values[name])

    return capitalize(PLACEHOLDER.sub(replace, template))


def format_answer(template: str, asked: str, name: str) -> str:
    """Format a name for the slot of a template: in its form, and capitalized at the start of the sentence."""
    for match in PLACEHOLDER.finditer(template):
        if match[2] == asked:
            formed = FORMS[match[1] or ""](name)
            return capitalize(formed) if match.start() == 0 else formed
    raise InputError(f"the template {template!r} has no placeholder {{{asked}}}")


def placeholder_names(template: str) -> list[str]:
    """Return the names of a template's placeholders, in order."""
    return [match[2] for match in PLACEHOLDER.finditer(template)]


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


def check_placeholders(template: str, known: tuple[str, ...], required: set[str], where: str) -> None:
    """Refuse unknown placeholders and forms, and a required placeholder that does not occur exactly once."""
    for match in PLACEHOLDER.finditer(template):
        if match[2] not in known:
            raise InputError(
                f"{where}: {match[0]} in {template!r} is not a placeholder; {did_you_mean(match[2], known)}"
            )
        if (match[1] or "") not in FORMS:
            hint = did_you_mean(match[1], [form for form in FORMS if form])
            raise InputError(f"{where}: {match[1]!r} in {match[0]} is not a form; {hint}")
    stray = re.search(r"[{}]", PLACEHOLDER.sub("", template))
    if stray:
        raise InputError(f"{where}: {template!r} has a {stray[0]!r} outside of any placeholder; correct or remove it")
    for name in sorted(required):
        if placeholder_names(template).count(name) != 1:
            raise InputError(f"{where}: {template!r} must name {{{name}}} exactly once")


def refuse_unknown_keys(content: Mapping[str, Any], known: tuple[str, ...], where: str) -> None:
    """Refuse unknown keys; suggest the nearest known one."""
    for key in content:
        if key not in known:
            raise InputError(f"{where}: there is no key {key!r}; {did_you_mean(str(key), known)}")
