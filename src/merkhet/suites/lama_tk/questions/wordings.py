"""How facts with times are said: the sentences of each relation, read from YAML and checked when they are read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from importlib import resources
from pathlib import Path
from typing import Any

from merkhet.core import SLOT
from merkhet.core.errors import InputError
from merkhet.core.files import read_yaml
from merkhet.questions.english import default_template
from merkhet.questions.templates import check_placeholders, refuse_unknown_keys

_ENDS = frozenset(("subject", "object"))
_OTHER = _ENDS | {"other"}
_WANTED: Mapping[str, frozenset[str]] = {
    "statement": _ENDS | {"start", "end"},
    "static": _ENDS,
    "start": _ENDS | {"start"},
    "end": _ENDS | {"end"},
    "begin": _ENDS | {"start"},
    "finish": _ENDS | {"end"},
    "within": _ENDS | {"time"},
    "paraphrase": _ENDS | {"time"},
    "first": _ENDS,
    "last": _ENDS,
    "before": _OTHER,
    "after": _OTHER,
}
"""The sentences of a relation whose facts have a start and an end, and the places that each names once."""
_WANTED_OF_POINTS: Mapping[str, frozenset[str]] = {
    **{name: _WANTED[name] for name in ("static", "first", "last", "before", "after")},
    "statement": _ENDS | {"time"},
}
_TRAINED = ("statement", "static", "start", "end")
_TRAINED_POINTS = ("statement", "static")


@dataclass(frozen=True)
class TemporalWording:
    """The sentences of a relation by what they are for.

    ``point``: its facts have one time. ``symmetric``: what holds one way holds the other way round. A sentence that is
    not there is not asked.
    """

    name: str
    sentences: Mapping[str, str]
    predicates: tuple[str, ...] = ()
    point: bool = False
    symmetric: bool = False


@dataclass(frozen=True)
class Wordings:
    """The wordings of relations, found by a relation's name, a predicate's id or its label."""

    relations: Mapping[str, TemporalWording] = field(default_factory=dict)

    @cached_property
    def _known(self) -> Mapping[str, TemporalWording]:
        known: dict[str, TemporalWording] = {}
        for one in self.relations.values():
            for name in (one.name, *one.predicates):
                known.setdefault(name.casefold(), one)
        return known

    def find(self, *names: str) -> TemporalWording | None:
        """The wording of the first of these names that has one."""
        found = (self._known.get(name.casefold()) for name in names)
        return next((one for one in found if one is not None), None)

    def of(self, relation: str, label: str, point: bool) -> TemporalWording:
        """The wording of a relation's facts, one made of its label if there is none for facts of that kind."""
        found = self.find(relation)
        return found if found is not None and found.point == point else plain_wording(relation, label, point)


def read_wordings(path: Path | None = None) -> Wordings:
    """The wordings of a YAML file, merkhet's own without one; refuses unknown keys and sentences that lack places."""
    path = path or Path(str(resources.files("merkhet.suites.lama_tk.questions") / "wordings.yaml"))
    content = read_yaml(path, "wordings")
    if not isinstance(content, dict) or not isinstance(content.get("relations"), dict) or not content["relations"]:
        raise InputError(f"{path}: wordings stand under 'relations', each with its name, and there are none")
    refuse_unknown_keys(content, ("relations",), str(path))
    relations = {str(name): _wording(str(name), body, path) for name, body in content["relations"].items()}
    owners: dict[str, str] = {}
    for one in relations.values():
        for name in {text.casefold() for text in (one.name, *one.predicates)}:
            if owners.setdefault(name, one.name) != one.name:
                raise InputError(
                    f"{path}: {name!r} stands for the relation {owners[name]!r} and for {one.name!r}; remove one"
                )
    return Wordings(relations)


def plain_wording(relation: str, label: str, point: bool) -> TemporalWording:
    """The wording of a relation that nobody wrote one for: what its label says, and when."""
    said = default_template(label.replace("{", "(").replace("}", ")").strip() or relation).removesuffix(".")
    said = said.replace("} is ", "} was ").replace("} has ", "} had ")
    inside = f"the {said[4:]}" if said.startswith("The ") else said
    if point:
        return TemporalWording(relation, {"statement": f"{said} in {{time}}.", "static": f"{said}."}, point=True)
    sentences = {
        "statement": f"{said} from {{start}} to {{end}}.",
        "start": f"{said} from {{start}}.",
        "end": f"{said} until {{end}}.",
        "static": f"{said}.",
        "begin": f"{said}; this began in {{start}}.",
        "finish": f"{said}; this ended in {{end}}.",
        "within": f"{said} in {{time}}.",
        "paraphrase": f"In {{time}}, {inside}.",
    }
    return TemporalWording(relation, sentences)


def _wording(name: str, body: Any, path: Path) -> TemporalWording:
    where = f"{path}, relation {name!r}"
    if not isinstance(body, dict):
        raise InputError(f"{where} has no sentences; write at least 'statement'")
    point, symmetric = (_switch(body, key, where) for key in ("points", "symmetric"))
    wanted = _WANTED_OF_POINTS if point else _WANTED
    refuse_unknown_keys(body, ("predicates", "points", "symmetric", *wanted), where)
    for key in _TRAINED_POINTS if point else _TRAINED:
        if not body.get(key):
            raise InputError(f"{where} has no {key!r}; write a sentence with its places")
    sentences = {key: body[key] for key in wanted if body.get(key) is not None}
    for key, text in sentences.items():
        if not isinstance(text, str) or SLOT in text:
            raise InputError(f"{where}: {key!r} is a sentence with places such as {{subject}}, and this is {text!r}")
        check_placeholders(text, tuple(sorted(wanted[key])), set(wanted[key]), where)
    predicates = body.get("predicates") or []
    if not isinstance(predicates, list) or not all(isinstance(one, str) and one.strip() for one in predicates):
        raise InputError(f"{where}: 'predicates' is a list of ids or labels, and this is {predicates!r}")
    return TemporalWording(name, sentences, tuple(predicates), point, symmetric)


def _switch(body: Mapping[str, Any], key: str, where: str) -> bool:
    given = body.get(key, False)
    if not isinstance(given, bool):
        raise InputError(f"{where}: {key!r} is true or false, and this is {given!r}")
    return given
