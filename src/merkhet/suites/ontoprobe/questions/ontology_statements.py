"""Statements of an ontology, one a task and subject, drawn and divided: what ontology questions are made of."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

from merkhet.core import SLOT
from merkhet.core.ids import content_id, derived_seed
from merkhet.suites.ontoprobe.questions.property_patterns import Pattern, patterns_for

TASKS = ("TP", "SCO", "SPO", "DM", "RG")
RELATIONS = {"TP": "type", "SCO": "subclass of", "SPO": "subproperty of", "DM": "domain", "RG": "range"}
"""What a statement of each task says, as the predicate of a fact."""
FEW = 10
"""How many statements of a task are for training, and how many for choosing what was trained."""

_RESERVED = re.compile(rf"{re.escape(SLOT)}|\[[XY]\]|<(?:TP|SCO|SPO|DM|RG|s)\d>")


@dataclass(frozen=True)
class Statement:
    """What is right of one subject: the classes of an instance, the superclasses of a class …, nearest first."""

    task: str
    subject: str
    golds: tuple[str, ...]
    split: str

    @cached_property
    def fact_id(self) -> str:
        """The same statement has the same id, whatever its split."""
        return content_id("f", self.task, self.subject, list(self.golds))


@dataclass(frozen=True)
class Statements:
    """Statements, what the right answers are looked for among, and the words for properties."""

    statements: tuple[Statement, ...]
    classes: tuple[str, ...]
    properties: tuple[str, ...]
    patterns: Mapping[str, Pattern]
    remarks: tuple[str, ...] = ()

    def of(self, task: str, split: str | None = None) -> list[Statement]:
        """The statements of a task, of one split or all."""
        return [one for one in self.statements if one.task == task and split in (None, one.split)]


class OntologyLike(Protocol):
    """What is read of an ontology: names by id, ancestors nearest first, direct types finest first."""

    @property
    def classes(self) -> Mapping[str, str]:
        """Labels of classes."""

    @property
    def superclasses(self) -> Mapping[str, tuple[str, ...]]:
        """All ancestors of a class, nearest first."""

    @property
    def instances(self) -> Mapping[str, tuple[str, ...]]:
        """Direct types of an instance, finest first."""

    @property
    def types(self) -> Mapping[str, tuple[str, ...]]:
        """All types of an instance, finest first."""

    @property
    def instance_names(self) -> Mapping[str, str]:
        """Names of instances."""

    @property
    def properties(self) -> Mapping[str, str]:
        """Labels of properties."""

    @property
    def superproperties(self) -> Mapping[str, tuple[str, ...]]:
        """All ancestors of a property, nearest first."""

    @property
    def domains(self) -> Mapping[str, tuple[str, ...]]:
        """The stated domains of a property."""

    @property
    def ranges(self) -> Mapping[str, tuple[str, ...]]:
        """The stated ranges of a property."""

    @property
    def alternatives(self) -> frozenset[tuple[str, str]]:
        """("domain", property) or ("range", property), where any one of those that are stated may hold."""

    @property
    def equivalents(self) -> Mapping[str, tuple[str, ...]]:
        """Other classes or properties that mean the same as one."""

    @property
    def ambiguous(self) -> frozenset[str]:
        """Classes and properties whose name means several things."""

    @property
    def remarks(self) -> tuple[str, ...]:
        """What its reader has to say of it."""


def gather_statements(
    ontology: OntologyLike,
    *,
    seed: int,
    instances_per_class: int = 20,
    patterns: Mapping[str, Mapping[str, str]] | None = None,
) -> Statements:
    """The statements of the five memorizing tasks that an ontology makes, with splits drawn by the seed.

    Things of one name are one subject, and what is right of any of them is right. Of each class at most
    ``instances_per_class`` direct instances are drawn; where an instance has several types that are not each other's
    ancestors, all are right; so is what means the same as something right. Properties with alternative domains or
    ranges are not asked for them. Classes and properties whose
    name is ambiguous are answers, but are not asked about. ``patterns`` are sentences for properties by label
    (:func:`read_patterns`), instead of those made of the label; an unknown label is refused. Does not depend on the
    order of the ontology.
    """
    classes, properties = _usable(ontology.classes), _usable(ontology.properties)
    remarks = [*ontology.remarks, *_unusable("classes and properties", ontology.classes, ontology.properties)]
    named = [
        {one: name for one, name in some.items() if one not in ontology.ambiguous} for some in (classes, properties)
    ]
    found: dict[str, dict[str, tuple[str, ...]]] = {
        "TP": _types(ontology, classes, instances_per_class, seed, remarks),
        "SCO": _united(named[0], _above(named[0], ontology.superclasses, ontology), classes),
        "SPO": _united(named[1], _above(named[1], ontology.superproperties, ontology), properties),
        "DM": _united(named[1], _stated("domain", named[1], ontology.domains, ontology), classes),
        "RG": _united(named[1], _stated("range", named[1], ontology.ranges, ontology), classes),
    }
    statements: list[Statement] = []
    for task, golds in found.items():
        few = FEW if len(golds) >= 4 * FEW else len(golds) // 4
        if golds and few < FEW:
            remarks.append(
                f"The task {task} has only {len(golds)} statements: {few} are for training, {few} for choosing what "
                "was trained, a quarter each, and the rest is asked."
            )
        statements += draw_splits(task, golds, few, seed)
    labels = tuple(sorted(set(properties.values())))
    return Statements(
        statements=tuple(statements),
        classes=tuple(sorted(set(classes.values()))),
        properties=labels,
        patterns=patterns_for(labels, patterns),
        remarks=tuple(remarks),
    )


def draw_splits(task: str, golds: Mapping[str, tuple[str, ...]], few: int, seed: int) -> list[Statement]:
    """A statement of each subject, in the order of their names: so many in train, so many in dev, the rest in test."""
    drawn = sorted(golds, key=lambda subject: (derived_seed("ontology split", seed, task, subject), subject))
    splits = {subject: "train" if at < few else "dev" if at < 2 * few else "test" for at, subject in enumerate(drawn)}
    return [Statement(task, subject, golds[subject], splits[subject]) for subject in sorted(golds)]


def _types(
    ontology: OntologyLike, classes: Mapping[str, str], limit: int, seed: int, remarks: list[str]
) -> dict[str, tuple[str, ...]]:
    """The classes of the instances that are drawn for each class, by the instances' names."""
    names = _usable(ontology.instance_names)
    remarks += _unusable("instances", ontology.instance_names)
    of_class: dict[str, list[str]] = defaultdict(list)
    for instance, types in ontology.instances.items():
        if instance in names:
            for one in types:
                if one in classes:
                    of_class[one].append(instance)
    chosen: set[str] = set()
    for kind, members in of_class.items():
        drawn = members
        if len(members) > limit:
            drawn = sorted(members, key=lambda one: (derived_seed("ontology instance", seed, kind, one), one))[:limit]
        chosen.update(names[one] for one in drawn)
    chains: dict[str, list[Sequence[str]]] = {}
    subjects = {instance: name for instance, name in names.items() if name in chosen}
    for instance in subjects:
        chains[instance] = [_same(ontology.types.get(instance, ()), ontology)]
    shared = len(subjects) - len(set(subjects.values()))
    if shared:
        remarks.append(
            f"{shared:,} instances share their name with another one; they are one question, and what either is counts "
            "as right."
        )
    return _united(subjects, chains, classes)


def _above(
    names: Mapping[str, str], above: Mapping[str, tuple[str, ...]], ontology: OntologyLike
) -> dict[str, list[Sequence[str]]]:
    """What stands above each class or property; what means the same as itself comes last, and not alone."""
    return {
        one: [[*_same(above[one], ontology), *ontology.equivalents.get(one, ())]] for one in names if above.get(one)
    }


def _stated(
    end: str, names: Mapping[str, str], stated: Mapping[str, tuple[str, ...]], ontology: OntologyLike
) -> dict[str, list[Sequence[str]]]:
    """The stated domains or ranges of properties, but for those of which only one or another holds: none follows."""
    known = [one for one in names if one in stated and (end, one) not in ontology.alternatives]
    return {one: [_same(stated[one], ontology)] for one in known}


def _same(chain: Sequence[str], ontology: OntologyLike) -> list[str]:
    """A chain with what means the same as a member behind it."""
    return [same for one in chain for same in (one, *ontology.equivalents.get(one, ()))]


def _united(
    names: Mapping[str, str], chains: Mapping[str, Sequence[Sequence[str]]], labels: Mapping[str, str]
) -> dict[str, tuple[str, ...]]:
    """What is right of each name: the chains of all that are called so, interleaved by distance; none is left out.

    A name is never right of itself.
    """
    of_name: dict[str, list[Sequence[str]]] = defaultdict(list)
    for identity in sorted(names):
        of_name[names[identity]] += chains.get(identity, ())
    golds: dict[str, tuple[str, ...]] = {}
    for name, several in of_name.items():
        found: dict[str, None] = {}
        for place in range(max(map(len, several), default=0)):
            for chain in several:
                label = labels.get(chain[place]) if place < len(chain) else None
                if label is not None and label != name:
                    found[label] = None
        if found:
            golds[name] = tuple(found)
    return golds


def _usable(names: Mapping[str, str]) -> dict[str, str]:
    return {one: name.strip() for one, name in names.items() if _can_be_asked(name)}


def _can_be_asked(name: str) -> bool:
    return bool(name.strip()) and not _RESERVED.search(name)


def _unusable(what: str, *names: Mapping[str, str]) -> Iterable[str]:
    bad = [name for some in names for name in some.values() if not _can_be_asked(name)]
    if bad:
        yield (
            f"{len(bad):,} {what} were left out, as their name is empty or holds what stands for something else in a "
            f"prompt; the first is {sorted(bad)[0]!r}."
        )
