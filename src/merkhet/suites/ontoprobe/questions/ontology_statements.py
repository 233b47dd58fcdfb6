"""Statements of an ontology by task and subject, sampled and split."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

from merkhet.core import SLOT
from merkhet.core.ids import content_id, derived_seed
from merkhet.suites.ontoprobe.options import MEMORIZING
from merkhet.suites.ontoprobe.questions.property_patterns import Pattern, resolve_patterns

TASKS = MEMORIZING
PREDICATES = {"TP": "type", "SCO": "subclass of", "SPO": "subproperty of", "DM": "domain", "RG": "range"}
"""Predicate of the facts of each task."""
SPLIT_SIZE = 10
"""Number of statements of a task in train, and in dev."""

_RESERVED = re.compile(rf"{re.escape(SLOT)}|\[[XY]\]|<(?:TP|SCO|SPO|DM|RG|s)\d>")


@dataclass(frozen=True)
class Statement:
    """The gold answers of one task about one subject."""

    task: str
    subject: str
    golds: tuple[str, ...]
    """Right answers, nearest first: the classes of an instance, the superclasses of a class, …"""
    split: str

    @cached_property
    def fact_id(self) -> str:
        """Content id, independent of the split."""
        return content_id("f", self.task, self.subject, list(self.golds))


@dataclass(frozen=True)
class Statements:
    """Statements with the candidates of their answers and the patterns of their properties."""

    statements: tuple[Statement, ...]
    classes: tuple[str, ...]
    """Labels of all classes: the candidates of TP, SCO, DM and RG."""
    properties: tuple[str, ...]
    """Labels of all properties: the candidates of SPO."""
    patterns: Mapping[str, Pattern]
    """Patterns of properties by label."""
    remarks: tuple[str, ...] = ()

    def for_task(self, task: str, split: str | None = None) -> list[Statement]:
        """Return the statements of a task, of one split or all."""
        return [
            statement for statement in self.statements if statement.task == task and split in (None, statement.split)
        ]


class OntologyLike(Protocol):
    """The part of an ontology that statements are made of; mappings are by id."""

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
        """("domain", property) or ("range", property) whose stated classes are alternatives: any one may hold."""

    @property
    def equivalents(self) -> Mapping[str, tuple[str, ...]]:
        """Equivalent classes or properties."""

    @property
    def ambiguous(self) -> frozenset[str]:
        """Classes and properties whose label has several meanings."""

    @property
    def remarks(self) -> tuple[str, ...]:
        """Remarks of the reader."""


def gather_statements(
    ontology: OntologyLike,
    *,
    seed: int,
    instances_per_class: int = 20,
    patterns: Mapping[str, Mapping[str, str]] | None = None,
) -> Statements:
    """Make the statements of the five memorizing tasks from an ontology, with splits drawn by the seed.

    * Things with the same name are one subject; the gold answers of each are golds of the subject.
    * An instance with several types, none an ancestor of another, has all of them as golds.
    * What is equivalent to a gold is a gold.
    * A property with alternative domains or ranges has no statement about them.
    * Classes and properties with an ambiguous label are candidates, but not subjects.

    The result does not depend on the order of the ontology.

    Args:
        instances_per_class: Maximum number of direct instances drawn from each class.
        patterns: Patterns of properties by label (:func:`read_patterns`) that replace those made from the label.

    Raises:
        InputError: If ``patterns`` has a label that is no property.
    """
    classes, properties = _usable_names(ontology.classes), _usable_names(ontology.properties)
    remarks = [*ontology.remarks, *_unusable_remarks("classes and properties", ontology.classes, ontology.properties)]
    class_subjects, property_subjects = (
        {entity: name for entity, name in names.items() if entity not in ontology.ambiguous}
        for names in (classes, properties)
    )
    superclasses = _ancestor_chains(class_subjects, ontology.superclasses, ontology)
    superproperties = _ancestor_chains(property_subjects, ontology.superproperties, ontology)
    domains = _stated_chains("domain", property_subjects, ontology.domains, ontology)
    ranges = _stated_chains("range", property_subjects, ontology.ranges, ontology)
    golds_by_task: dict[str, dict[str, tuple[str, ...]]] = {
        "TP": _instance_types(ontology, classes, instances_per_class, seed, remarks),
        "SCO": _merge_by_name(class_subjects, superclasses, classes),
        "SPO": _merge_by_name(property_subjects, superproperties, properties),
        "DM": _merge_by_name(property_subjects, domains, classes),
        "RG": _merge_by_name(property_subjects, ranges, classes),
    }
    statements: list[Statement] = []
    for task, golds in golds_by_task.items():
        size = SPLIT_SIZE if len(golds) >= 4 * SPLIT_SIZE else len(golds) // 4
        if golds and size < SPLIT_SIZE:
            remarks.append(
                f"The task {task} has only {len(golds)} statements: {size} are for training, {size} for choosing what "
                "was trained, a quarter each, and the rest is asked."
            )
        statements += draw_splits(task, golds, size, seed)
    labels = tuple(sorted(set(properties.values())))
    return Statements(
        statements=tuple(statements),
        classes=tuple(sorted(set(classes.values()))),
        properties=labels,
        patterns=resolve_patterns(labels, patterns),
        remarks=tuple(remarks),
    )


def draw_splits(task: str, golds: Mapping[str, tuple[str, ...]], size: int, seed: int) -> list[Statement]:
    """Make a statement of each subject, sorted by name: ``size`` in train, ``size`` in dev, the rest in test."""
    drawn = sorted(golds, key=lambda subject: (derived_seed("ontology split", seed, task, subject), subject))
    splits = {
        subject: "train" if rank < size else "dev" if rank < 2 * size else "test" for rank, subject in enumerate(drawn)
    }
    return [Statement(task, subject, golds[subject], splits[subject]) for subject in sorted(golds)]


def _instance_types(
    ontology: OntologyLike, classes: Mapping[str, str], limit: int, seed: int, remarks: list[str]
) -> dict[str, tuple[str, ...]]:
    """Draw at most ``limit`` instances of each class and return their types by name."""
    names = _usable_names(ontology.instance_names)
    remarks += _unusable_remarks("instances", ontology.instance_names)
    members_by_class: dict[str, list[str]] = defaultdict(list)
    for instance, types in ontology.instances.items():
        if instance in names:
            for type_ in types:
                if type_ in classes:
                    members_by_class[type_].append(instance)
    drawn_names: set[str] = set()
    for class_, members in members_by_class.items():
        drawn = members
        if len(members) > limit:
            order = {member: derived_seed("ontology instance", seed, class_, member) for member in members}
            drawn = sorted(members, key=lambda member: (order[member], member))[:limit]
        drawn_names.update(names[instance] for instance in drawn)
    chains: dict[str, list[Sequence[str]]] = {}
    subjects = {instance: name for instance, name in names.items() if name in drawn_names}
    for instance in subjects:
        chains[instance] = [_with_equivalents(ontology.types.get(instance, ()), ontology)]
    shared = len(subjects) - len(set(subjects.values()))
    if shared:
        remarks.append(
            f"{shared:,} instances share their name with another one; they are one question, and what either is counts "
            "as right."
        )
    return _merge_by_name(subjects, chains, classes)


def _ancestor_chains(
    names: Mapping[str, str], ancestors: Mapping[str, tuple[str, ...]], ontology: OntologyLike
) -> dict[str, list[Sequence[str]]]:
    """Return the ancestors of each class or property that has any; its own equivalents come last."""
    return {
        entity: [[*_with_equivalents(ancestors[entity], ontology), *ontology.equivalents.get(entity, ())]]
        for entity in names
        if ancestors.get(entity)
    }


def _stated_chains(
    side: str, names: Mapping[str, str], stated: Mapping[str, tuple[str, ...]], ontology: OntologyLike
) -> dict[str, list[Sequence[str]]]:
    """Return the stated domains or ranges of properties; of alternatives none follows, so they are left out."""
    definite = [entity for entity in names if entity in stated and (side, entity) not in ontology.alternatives]
    return {entity: [_with_equivalents(stated[entity], ontology)] for entity in definite}


def _with_equivalents(chain: Sequence[str], ontology: OntologyLike) -> list[str]:
    """Insert the equivalents of each member of a chain after it."""
    return [entity for member in chain for entity in (member, *ontology.equivalents.get(member, ()))]


def _merge_by_name(
    names: Mapping[str, str], chains: Mapping[str, Sequence[Sequence[str]]], labels: Mapping[str, str]
) -> dict[str, tuple[str, ...]]:
    """Return the gold answers of each name: the chains of all entities with that name, interleaved by distance.

    A name is never a gold answer to itself.
    """
    chains_by_name: dict[str, list[Sequence[str]]] = defaultdict(list)
    for entity in sorted(names):
        chains_by_name[names[entity]] += chains.get(entity, ())
    golds: dict[str, tuple[str, ...]] = {}
    for name, name_chains in chains_by_name.items():
        merged: dict[str, None] = {}
        for distance in range(max(map(len, name_chains), default=0)):
            for chain in name_chains:
                label = labels.get(chain[distance]) if distance < len(chain) else None
                if label is not None and label != name:
                    merged[label] = None
        if merged:
            golds[name] = tuple(merged)
    return golds


def _usable_names(names: Mapping[str, str]) -> dict[str, str]:
    return {entity: name.strip() for entity, name in names.items() if _is_usable(name)}


def _is_usable(name: str) -> bool:
    return bool(name.strip()) and not _RESERVED.search(name)


def _unusable_remarks(kind: str, *mappings: Mapping[str, str]) -> Iterable[str]:
    unusable = [name for names in mappings for name in names.values() if not _is_usable(name)]
    if unusable:
        yield (
            f"{len(unusable):,} {kind} were left out, as their name is empty or holds what stands for something else "
            f"in a prompt; the first is {sorted(unusable)[0]!r}."
        )
