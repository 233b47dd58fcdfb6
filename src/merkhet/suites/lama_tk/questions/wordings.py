"""Wordings of temporal relations, read from YAML files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from importlib import resources
from pathlib import Path
from typing import Any

from merkhet.core import SLOT
from merkhet.core.errors import FaultList, InputError
from merkhet.core.files import read_yaml
from merkhet.questions.english import default_template
from merkhet.questions.templates import check_placeholders, refuse_unknown_keys

_ENDS = frozenset(("subject", "object"))
_ENDS_AND_OTHER = _ENDS | {"other"}
_INTERVAL_PLACEHOLDERS: Mapping[str, frozenset[str]] = {
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
    "before": _ENDS_AND_OTHER,
    "after": _ENDS_AND_OTHER,
}
"""Placeholders that each sentence of a relation with intervals contains exactly once."""
_POINT_PLACEHOLDERS: Mapping[str, frozenset[str]] = {
    **{name: _INTERVAL_PLACEHOLDERS[name] for name in ("static", "first", "last", "before", "after")},
    "statement": _ENDS | {"time"},
}
_REQUIRED = ("statement", "static", "start", "end")
_REQUIRED_OF_POINTS = ("statement", "static")


@dataclass(frozen=True)
class TemporalWording:
    """Wording of one relation: its sentences by template."""

    name: str
    sentences: Mapping[str, str]
    """Sentences by template name; templates without a sentence are skipped."""
    predicates: tuple[str, ...] = ()
    point: bool = False
    """Whether facts of the relation have one time instead of a start and an end."""
    symmetric: bool = False
    """Whether a fact stays true if its subject and object are swapped."""


@dataclass(frozen=True)
class Wordings:
    """Wordings of relations, which can be looked up by relation name, predicate id or predicate label."""

    relations: Mapping[str, TemporalWording] = field(default_factory=dict)

    @cached_property
    def _by_name(self) -> Mapping[str, TemporalWording]:
        by_name: dict[str, TemporalWording] = {}
        for wording in self.relations.values():
            for name in (wording.name, *wording.predicates):
                by_name.setdefault(name.casefold(), wording)
        return by_name

    def find(self, *names: str) -> TemporalWording | None:
        """Return the wording of the first of ``names`` that has a wording; None if no name has one."""
        wordings = (self._by_name.get(name.casefold()) for name in names)
        return next((wording for wording in wordings if wording is not None), None)

    def wording_for(self, relation: str, label: str, point: bool) -> TemporalWording:
        """Return the wording of a relation for intervals, or for points in time if ``point``.

        If there is none, a default wording is made from the label.
        """
        wording = self.find(relation)
        return wording if wording is not None and wording.point == point else default_wording(relation, label, point)


def read_wordings(path: Path | None = None) -> Wordings:
    """Read wordings from a YAML file; without a path, read the built-in ones.

    Raises:
        InputError: A key is unknown, a sentence lacks a placeholder, or two relations share a name.
    """
    path = path or Path(str(resources.files("merkhet.suites.lama_tk.questions") / "wordings.yaml"))
    content = read_yaml(path, "wordings")
    if not isinstance(content, dict) or not isinstance(content.get("relations"), dict) or not content["relations"]:
        raise InputError(f"{path}: no wordings; write them by name under 'relations'")
    faults = FaultList()
    with faults.collect():
        refuse_unknown_keys(content, ("relations",), str(path))
    relations = {}
    for key, body in content["relations"].items():
        with faults.collect():
            relations[str(key)] = _read_wording(str(key), body, path)
    owners: dict[str, str] = {}
    for wording in relations.values():
        for name in {text.casefold() for text in (wording.name, *wording.predicates)}:
            if owners.setdefault(name, wording.name) != wording.name:
                faults.add(
                    f"{path}: {name!r} refers to the relation {owners[name]!r} and to {wording.name!r}; remove one"
                )
    faults.refuse()
    return Wordings(relations)


def default_wording(relation: str, label: str, point: bool) -> TemporalWording:
    """Make default sentences for a relation from its label, for intervals or for points in time."""
    sentence = default_template(label.replace("{", "(").replace("}", ")").strip() or relation).removesuffix(".")
    sentence = sentence.replace("} is ", "} was ").replace("} has ", "} had ")
    lowered = f"the {sentence[4:]}" if sentence.startswith("The ") else sentence
    if point:
        return TemporalWording(
            relation, {"statement": f"{sentence} in {{time}}.", "static": f"{sentence}."}, point=True
        )
    sentences = {
        "statement": f"{sentence} from {{start}} to {{end}}.",
        "start": f"{sentence} from {{start}}.",
        "end": f"{sentence} until {{end}}.",
        "static": f"{sentence}.",
        "begin": f"{sentence}; this began in {{start}}.",
        "finish": f"{sentence}; this ended in {{end}}.",
        "within": f"{sentence} in {{time}}.",
        "paraphrase": f"In {{time}}, {lowered}.",
    }
    return TemporalWording(relation, sentences)


def _read_wording(name: str, body: Any, path: Path) -> TemporalWording:
    where = f"{path}, relation {name!r}"
    if not isinstance(body, dict):
        raise InputError(f"{where} has no sentences; write at least 'statement'")
    point, symmetric = (_read_flag(body, key, where) for key in ("points", "symmetric"))
    placeholders = _POINT_PLACEHOLDERS if point else _INTERVAL_PLACEHOLDERS
    refuse_unknown_keys(body, ("predicates", "points", "symmetric", *placeholders), where)
    faults = FaultList()
    for key in _REQUIRED_OF_POINTS if point else _REQUIRED:
        if not body.get(key):
            faults.add(f"{where} has no {key!r}; write a sentence with its placeholders")
    sentences = {key: body[key] for key in placeholders if body.get(key) is not None}
    for key, text in sentences.items():
        if not isinstance(text, str) or SLOT in text:
            faults.add(f"{where}: {key!r} must be a sentence with placeholders such as {{subject}}, got {text!r}")
            continue
        with faults.collect():
            check_placeholders(text, tuple(sorted(placeholders[key])), set(placeholders[key]), where)
    faults.refuse()
    predicates = body.get("predicates") or []
    if not isinstance(predicates, list) or not all(
        isinstance(predicate, str) and predicate.strip() for predicate in predicates
    ):
        raise InputError(f"{where}: 'predicates' must be a list of ids or labels, got {predicates!r}")
    return TemporalWording(name, sentences, tuple(predicates), point, symmetric)


def _read_flag(body: Mapping[str, Any], key: str, where: str) -> bool:
    value = body.get(key, False)
    if not isinstance(value, bool):
        raise InputError(f"{where}: {key!r} must be true or false, got {value!r}")
    return value
