"""Rules declared in a YAML file: what the predicates of a knowledge base are to each other."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from merkhet.core.errors import InputError, did_you_mean
from merkhet.core.files import read_yaml
from merkhet.knowledge import _iris as iris
from merkhet.knowledge.rules.rulebook import CHARACTERISTICS, ROLES

_PAIRS = ("subproperty", "subclass", "domain", "range", "inverse", "equivalent", "equivalent class")
_DISJOINT = ("disjoint properties", "disjoint classes")
_KEYS = (*CHARACTERISTICS, *_PAIRS, *_DISJOINT, "chain", "vocabulary")


@dataclass(frozen=True)
class DeclaredRules:
    """Axioms as triples, and further predicates that play a role (``subclass: [is-a]``)."""

    axioms: tuple[tuple[str, str, str], ...] = ()
    vocabulary: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    source: str = "rules"

    def roles(self) -> dict[str, tuple[str, ...]]:
        """All predicates of each role: the usual ones and those declared."""
        return {role: (*usual, *self.vocabulary.get(role, ())) for role, usual in ROLES.items()}


def read_rules(path: Path) -> DeclaredRules:
    """The rules of a file; refuses an unknown key, with the nearest known one, and what has not the right form.

    .. code-block:: yaml

        symmetric: [opposite of]
        transitive: [is a]
        inverse: [[capital, capital of]]
        equivalent: [[citizen of, nationality]]
        subproperty: [[father of, parent of]]
        chain:
          - {if: [country, continent], then: continent}
        functional: [capital]
        vocabulary: {subclass: [is a], type: [instance of]}
    """
    content = read_yaml(path, "rules")
    if not isinstance(content, dict):
        raise InputError(f"{path}: rules are a mapping such as 'symmetric: [opposite of]'")
    axioms: list[tuple[str, str, str]] = []
    vocabulary: dict[str, tuple[str, ...]] = {}
    for key, given in content.items():
        if key not in _KEYS:
            raise InputError(f"{path}: there is no key {key!r} in a file of rules; {did_you_mean(str(key), _KEYS)}")
        if key == "vocabulary":
            vocabulary = _vocabulary(path, given)
        elif key in CHARACTERISTICS:
            axioms += [(name, iris.TYPE, CHARACTERISTICS[key]) for name in _names(path, key, given)]
        elif key == "chain":
            axioms += [_chain(path, one) for one in _list(path, key, given)]
        else:
            axioms += [_pair(path, key, one) for one in _list(path, key, given)]
    return DeclaredRules(tuple(dict.fromkeys(axioms)), vocabulary, f"rules/{path.name}")


def _list(path: Path, key: str, given: Any) -> Sequence[Any]:
    if not isinstance(given, list):
        raise InputError(f"{path}: {key!r} should be a list, and is {given!r}")
    return given


def _names(path: Path, key: str, given: Any) -> list[str]:
    names = [given] if isinstance(given, str) else _list(path, key, given)
    for name in names:
        if not isinstance(name, str) or not name:
            raise InputError(f"{path}: {key!r} names predicates, and {name!r} is none")
    return list(names)


def _pair(path: Path, key: str, given: Any) -> tuple[str, str, str]:
    if not isinstance(given, list) or len(given) != 2 or not all(isinstance(one, str) and one for one in given):
        raise InputError(f"{path}: {key!r} holds pairs such as [a, b], and this is {given!r}")
    return given[0], ROLES[key][0], given[1]


def _chain(path: Path, given: Any) -> tuple[str, str, str]:
    head = given.get("then") if isinstance(given, dict) and set(given) == {"if", "then"} else None
    if not isinstance(head, str) or not head:
        raise InputError(f"{path}: a chain is {{if: [country, continent], then: continent}}, and this is {given!r}")
    steps = _names(path, "chain", given["if"])
    if len(steps) < 2:
        raise InputError(f"{path}: a chain has at least two steps, and this is {given['if']!r}")
    return head, iris.CHAIN, json.dumps(steps, ensure_ascii=False)


def _vocabulary(path: Path, given: Any) -> dict[str, tuple[str, ...]]:
    if not isinstance(given, dict):
        raise InputError(f"{path}: the vocabulary is a mapping such as {{subclass: [is a]}}")
    for role in given:
        if role not in ROLES:
            raise InputError(f"{path}: there is no role {role!r} in the vocabulary; {did_you_mean(str(role), ROLES)}")
    return {role: tuple(_names(path, role, names)) for role, names in given.items()}
