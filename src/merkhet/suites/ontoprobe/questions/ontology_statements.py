"""Statements of an ontology by task and subject, sampled and split."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import zip_longest

from merkhet.core import SLOT
from merkhet.core.ids import content_id, derived_seed
from merkhet.core.text import counted
from merkhet.knowledge.ontology import Ontology
from merkhet.questions.losses import Loss, LossCounter
from merkhet.suites.ontoprobe.options import MEMORIZING
from merkhet.suites.ontoprobe.questions.property_patterns import Pattern, resolve_patterns

TASKS = MEMORIZING
PREDICATES = {"TP": "type", "SCO": "subclass of", "SPO": "subproperty of", "DM": "domain", "RG": "range"}
"""Predicate in the facts table, by task."""
SPLIT_SIZE = 10
"""Number of statements of a task in the train split, and in the dev split."""

_NOT_DRAWN = "not among the instances of a class that are drawn (options.instances)"
_RESERVED = re.compile(rf"{re.escape(SLOT)}|\[[XY]\]|<(?:TP|SCO|SPO|DM|RG|s)\d>")


@dataclass(frozen=True)
class Statement:
    """Subject of a task with its gold answers."""

    task: str
    subject: str
    golds: tuple[str, ...]
    """Gold answers, nearest first: the classes of an instance, the superclasses of a class, …"""
    split: str

    @cached_property
    def fact_id(self) -> str:
        """Content id of task, subject and gold answers, independent of the split."""
        return content_id("f", self.task, self.subject, list(self.golds))


@dataclass(frozen=True)
class Statements:
    """Statements, candidate answers, and patterns of properties."""

    statements: tuple[Statement, ...]
    classes: tuple[str, ...]
    """Labels of all classes: the candidates of TP, SCO, DM and RG."""
    properties: tuple[str, ...]
    """Labels of all properties: the candidates of SPO."""
    patterns: Mapping[str, Pattern]
    """Patterns of properties by label."""
    remarks: tuple[str, ...] = ()
    left_out: tuple[Loss, ...] = ()
    """Entities that state something, but are the subject of no statement."""

    def for_task(self, task: str, split: str | None = None) -> list[Statement]:
        """Return the statements of a task in ``split``, or in all splits if ``split`` is None."""
        return [
            statement for statement in self.statements if statement.task == task and split in (None, statement.split)
        ]

    def infixes(self, properties: Iterable[str]) -> list[str]:
        """Return the text between [X] and [Y] for each property that has a pattern."""
        return [self.patterns[label].infix for label in properties if label in self.patterns]


def gather_statements(
    ontology: Ontology,
    *,
    seed: int,
    instances_per_class: int = 20,
    patterns: Mapping[str, Mapping[str, str]] | None = None,
) -> Statements:
    """Make the statements of the five memorizing tasks from an ontology, with splits drawn by the seed.

    * Entities with the same name are merged into one subject, which has the gold answers of all these entities.
    * An instance with several types has all its types as gold answers.
    * Equivalents of a gold answer are gold answers too.
    * A property with alternative domains has no domain statement; the same holds for ranges.
    * Classes and properties with an ambiguous label are candidates, but not subjects.

    The order of entries in the ontology does not affect the result.

    Args:
        instances_per_class: Maximum number of direct instances drawn from each class.
        patterns: Patterns of properties by label (:func:`read_patterns`) that replace patterns made from labels.

    Raises:
        InputError: If ``patterns`` has a label that is not a property.
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
    instance_golds, instance_losses = _instance_types(ontology, classes, instances_per_class, seed, remarks)
    golds_by_task = {
        "TP": instance_golds,
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
                f"The task {task} has only {counted(len(golds), 'statement')}: {size} in train, {size} in dev (a "
                "quarter each), the rest in test."
            )
        drawn = sorted(golds, key=lambda subject: (derived_seed("ontology split", seed, task, subject), subject))
        splits = {subject: split_at(rank, size) for rank, subject in enumerate(drawn)}
        statements += [Statement(task, subject, golds[subject], splits[subject]) for subject in sorted(golds)]
    ambiguous = {"the label is ambiguous": ontology.ambiguous}
    left_out = list(instance_losses)
    for task, names, stated in (
        ("SCO", ontology.classes, ontology.superclasses),
        ("SPO", ontology.properties, ontology.superproperties),
        ("DM", ontology.properties, ontology.domains),
        ("RG", ontology.properties, ontology.ranges),
    ):
        side = {"DM": "domain", "RG": "range"}.get(task, "")
        alternatives = {entity for name, entity in ontology.alternatives if name == side}
        reasons = {**ambiguous, f"alternative {side}s, none of which is entailed": alternatives}
        stating = [entity for entity in names if stated.get(entity)]
        left_out += _entity_losses(task, names, stating, golds_by_task[task], reasons)
    labels = tuple(sorted(set(properties.values())))
    return Statements(
        statements=tuple(statements),
        classes=tuple(sorted(set(classes.values()))),
        properties=labels,
        patterns=resolve_patterns(labels, patterns),
        remarks=tuple(remarks),
        left_out=tuple(left_out),
    )


def split_at(rank: int, size: int = SPLIT_SIZE) -> str:
    """Return the split of a statement by rank: the first ``size`` are train, the next ``size`` dev, the rest test."""
    return "train" if rank < size else "dev" if rank < 2 * size else "test"


def _instance_types(
    ontology: Ontology, classes: Mapping[str, str], limit: int, seed: int, remarks: list[str]
) -> tuple[dict[str, tuple[str, ...]], tuple[Loss, ...]]:
    """Draw at most ``limit`` instances of each class.

    Returns:
        Types of the instances by instance name, and the losses of instances.
    """
    names = _usable_names(ontology.instance_names)
    remarks += _unusable_remarks("instances", ontology.instance_names)
    members_by_class: dict[str, list[str]] = defaultdict(list)
    for instance, types in ontology.instances.items():
        for type_ in types if instance in names else ():
            if type_ in classes:
                members_by_class[type_].append(instance)
    drawn_names: set[str] = set()
    for class_, members in members_by_class.items():
        if len(members) > limit:
            order = {member: derived_seed("ontology instance", seed, class_, member) for member in members}
            members = sorted(members, key=lambda member: (order[member], member))[:limit]
        drawn_names.update(names[instance] for instance in members)
    subjects = {instance: name for instance, name in names.items() if name in drawn_names}
    chains = {instance: _with_equivalents(ontology.types.get(instance, ()), ontology) for instance in subjects}
    shared = len(subjects) - len(set(subjects.values()))
    if shared:
        remarks.append(
            f"{counted(shared, 'instance')} share their name with another; the types of all instances with a name are "
            "right answers to its question."
        )
    golds = _merge_by_name(subjects, chains, classes)
    untyped = {instance for instance, types in ontology.instances.items() if classes.keys().isdisjoint(types)}
    reasons = {"no type has a usable name": untyped, _NOT_DRAWN: names.keys() - subjects.keys()}
    stating = ontology.instances
    return golds, _entity_losses("TP", ontology.instance_names, stating, golds, reasons, (_NOT_DRAWN,))


def _ancestor_chains(
    names: Iterable[str], ancestors: Mapping[str, tuple[str, ...]], ontology: Ontology
) -> dict[str, list[str]]:
    """Return the ancestors of each class or property, followed by the equivalents of the class or property.

    Classes and properties without ancestors are left out.
    """
    return {
        entity: [*_with_equivalents(ancestors[entity], ontology), *ontology.equivalents.get(entity, ())]
        for entity in names
        if ancestors.get(entity)
    }


def _stated_chains(
    side: str, names: Iterable[str], stated: Mapping[str, tuple[str, ...]], ontology: Ontology
) -> dict[str, list[str]]:
    """Return the stated domains or ranges of properties; alternatives are left out, since they are not entailed."""
    definite = [entity for entity in names if entity in stated and (side, entity) not in ontology.alternatives]
    return {entity: _with_equivalents(stated[entity], ontology) for entity in definite}


def _with_equivalents(chain: Sequence[str], ontology: Ontology) -> list[str]:
    """Return a chain in which each member is followed by its equivalents."""
    return [entity for member in chain for entity in (member, *ontology.equivalents.get(member, ()))]


def _merge_by_name(
    names: Mapping[str, str], chains: Mapping[str, Sequence[str]], labels: Mapping[str, str]
) -> dict[str, tuple[str, ...]]:
    """Return the gold answers of each name, merged from all entities with this name, nearest first.

    A name is never among its gold answers.
    """
    chains_by_name: dict[str, list[Sequence[str]]] = defaultdict(list)
    for entity in sorted(names):
        chains_by_name[names[entity]].append(chains.get(entity, ()))
    golds: dict[str, tuple[str, ...]] = {}
    for name, name_chains in chains_by_name.items():
        interleaved = (entity for members in zip_longest(*name_chains) for entity in members if entity is not None)
        merged = dict.fromkeys(labels[entity] for entity in interleaved if labels.get(entity, name) != name)
        if merged:
            golds[name] = tuple(merged)
    return golds


def _usable_names(names: Mapping[str, str]) -> dict[str, str]:
    return {entity: name.strip() for entity, name in names.items() if _is_usable(name)}


def _is_usable(name: str) -> bool:
    return bool(name.strip()) and not _RESERVED.search(name)


def _unusable_remarks(kind: str, *mappings: Mapping[str, str]) -> list[str]:
    unusable = sorted(name for names in mappings for name in names.values() if not _is_usable(name))
    if not unusable:
        return []
    return [
        f"{len(unusable):,} {kind} were left out: their name is empty or contains a placeholder of prompts; the first "
        f"is {unusable[0]!r}."
    ]


def _entity_losses(
    task: str,
    names: Mapping[str, str],
    stating: Iterable[str],
    golds: Mapping[str, Sequence[str]],
    reasons: Mapping[str, Collection[str]],
    intended: Collection[str] = (),
) -> tuple[Loss, ...]:
    """Return the losses of entities that state something and are not the subject of a statement.

    Args:
        names: Names of all entities.
        stating: Entities that have a superclass, a type, a domain or whatever the task asks for.
        golds: Gold answers of the task by name; each name is asked once.
        reasons: Entities that are left out, by reason.
        intended: Reasons that follow from the options of the study.
    """
    counter = LossCounter(task, "statements")
    asked: set[str] = set()
    reasons = {"the name is empty or contains a placeholder of prompts": names.keys() - _usable_names(names), **reasons}
    for entity in sorted(stating):
        name = names[entity]
        reason = next((reason for reason, entities in reasons.items() if entity in entities), None)
        if reason is None and name.strip() not in golds:
            reason = "no right answer has a usable name, different from the subject's"
        elif reason is None and name.strip() in asked:
            reason = "another entity has the same name; the right answers of both count"
        if reason is None:
            asked.add(name.strip())
        else:
            counter.add(reason, None, name or entity, intended=reason in intended)
    return counter.losses()
