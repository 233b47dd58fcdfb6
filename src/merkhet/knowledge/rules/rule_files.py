"""Rules files: YAML files with axioms about the predicates and classes of a knowledge base."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from merkhet.core.errors import InputError, did_you_mean
from merkhet.core.files import read_yaml
from merkhet.knowledge import _iris as iris
from merkhet.knowledge.rules.rulebook import CHARACTERISTICS, ROLES

_PAIR_ROLES = ("subproperty", "subclass", "domain", "range", "inverse", "equivalent", "equivalent class")
_DISJOINT_ROLES = ("disjoint properties", "disjoint classes")
_CLASS_AXIOMS = (iris.SUBCLASS, iris.EQUIVALENT_CLASS, iris.DISJOINT_CLASSES)
_KEYS = (*CHARACTERISTICS, *_PAIR_ROLES, *_DISJOINT_ROLES, "chain", "vocabulary")


@dataclass(frozen=True)
class DeclaredRules:
    """The content of a rules file."""

    axioms: tuple[tuple[str, str, str], ...] = ()
    """The axioms as triples (subject, predicate, object)."""
    vocabulary: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Additional predicates for each role (``subclass: [is-a]``)."""
    source: str = "rules"
    """The text in the column ``source`` when the axioms are stored as facts."""

    def roles(self) -> dict[str, tuple[str, ...]]:
        """Return the standard and additional predicates of each role."""
        return {role: (*standard, *self.vocabulary.get(role, ())) for role, standard in ROLES.items()}

    def terms(self) -> tuple[list[str], list[str]]:
        """Return the predicates and the classes that the rules name."""
        predicates = [name for names in self.vocabulary.values() for name in names]
        classes: list[str] = []
        for subject, predicate, object_ in self.axioms:
            if predicate == iris.CHAIN:
                predicates += [subject, *json.loads(object_)]
            elif predicate in _CLASS_AXIOMS:
                classes += [subject, object_]
            else:
                predicates.append(subject)
                if predicate in (iris.DOMAIN, iris.RANGE):
                    classes.append(object_)
                elif predicate != iris.TYPE:
                    predicates.append(object_)
        return list(dict.fromkeys(predicates)), list(dict.fromkeys(classes))

    def renamed(self, names: Mapping[str, str]) -> DeclaredRules:
        """Return the rules with other names for predicates and classes; names that are not in ``names`` stay."""

        def rename(name: str) -> str:
            return names.get(name, name)

        axioms = []
        for subject, predicate, object_ in self.axioms:
            if predicate == iris.CHAIN:
                object_ = json.dumps([rename(name) for name in json.loads(object_)], ensure_ascii=False)
            elif predicate != iris.TYPE:
                object_ = rename(object_)
            axioms.append((rename(subject), predicate, object_))
        vocabulary = {role: tuple(map(rename, texts)) for role, texts in self.vocabulary.items()}
        return replace(self, axioms=tuple(dict.fromkeys(axioms)), vocabulary=vocabulary)


def read_rules(path: Path) -> DeclaredRules:
    """Read a rules file such as this one:

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

    Raises:
        InputError: A key is unknown, or a value has the wrong form.
    """
    content = read_yaml(path, "rules")
    if not isinstance(content, dict):
        raise InputError(f"{path}: rules must be a mapping, such as 'symmetric: [opposite of]'")
    axioms: list[tuple[str, str, str]] = []
    vocabulary: dict[str, tuple[str, ...]] = {}
    for key, value in content.items():
        if key not in _KEYS:
            raise InputError(f"{path}: a rules file has no key {key!r}; {did_you_mean(str(key), _KEYS)}")
        if key == "vocabulary":
            vocabulary = _read_vocabulary(path, value)
        elif key in CHARACTERISTICS:
            axioms += [(name, iris.TYPE, CHARACTERISTICS[key]) for name in _read_names(path, key, value)]
        elif key == "chain":
            axioms += [_read_chain(path, entry) for entry in _read_list(path, key, value)]
        else:
            axioms += [_read_pair(path, key, entry) for entry in _read_list(path, key, value)]
    return DeclaredRules(tuple(dict.fromkeys(axioms)), vocabulary, f"rules/{path.name}")


def _read_list(path: Path, key: str, value: Any) -> Sequence[Any]:
    if not isinstance(value, list):
        raise InputError(f"{path}: {key!r} must be a list, got {value!r}")
    return value


def _read_names(path: Path, key: str, value: Any) -> list[str]:
    names = [value] if isinstance(value, str) else _read_list(path, key, value)
    for name in names:
        if not isinstance(name, str) or not name:
            raise InputError(f"{path}: {key!r} must name predicates, got {name!r}")
    return list(names)


def _read_pair(path: Path, key: str, value: Any) -> tuple[str, str, str]:
    if not isinstance(value, list) or len(value) != 2 or not all(isinstance(name, str) and name for name in value):
        raise InputError(f"{path}: {key!r} must hold pairs such as [a, b], got {value!r}")
    return value[0], ROLES[key][0], value[1]


def _read_chain(path: Path, value: Any) -> tuple[str, str, str]:
    head = value.get("then") if isinstance(value, dict) and set(value) == {"if", "then"} else None
    if not isinstance(head, str) or not head:
        raise InputError(f"{path}: a chain must be like {{if: [country, continent], then: continent}}, got {value!r}")
    steps = _read_names(path, "chain", value["if"])
    if len(steps) < 2:
        raise InputError(f"{path}: a chain must have at least two steps, got {value['if']!r}")
    return head, iris.CHAIN, json.dumps(steps, ensure_ascii=False)


def _read_vocabulary(path: Path, value: Any) -> dict[str, tuple[str, ...]]:
    if not isinstance(value, dict):
        raise InputError(f"{path}: the vocabulary must be a mapping, such as {{subclass: [is a]}}")
    for role in value:
        if role not in ROLES:
            raise InputError(f"{path}: the vocabulary has no role {role!r}; {did_you_mean(str(role), ROLES)}")
    return {role: tuple(_read_names(path, role, names)) for role, names in value.items()}
