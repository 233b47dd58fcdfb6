"""The classes or the properties of an ontology as candidates: one name each, and what stands above by name."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from merkhet.knowledge._class_hierarchy import Ancestry
from merkhet.knowledge._term_labels import term_name

_SHOWN = 3


class Noun(NamedTuple):
    """What is counted in a remark: class, classes."""

    one: str
    several: str

    def are(self, count: int) -> str:
        """1 class is, 2 classes are."""
        return f"1 {self.one} is" if count == 1 else f"{count:,} {self.several} are"

    def have(self, count: int) -> str:
        """1 class has, 2 classes have."""
        return f"1 {self.one} has" if count == 1 else f"{count:,} {self.several} have"


CLASS = Noun("class", "classes")
PROPERTY = Noun("property", "properties")
INSTANCE = Noun("instance", "instances")


@dataclass(frozen=True)
class Terms:
    """Classes or properties with names of their own.

    ``kept`` leads from every one that can be named to the one that stands for its name; ``above`` and ``equivalents``
    hold such ones alone.
    """

    names: Mapping[str, str]
    above: Mapping[str, tuple[str, ...]]
    equivalents: Mapping[str, tuple[str, ...]]
    kept: Mapping[str, str]
    ambiguous: frozenset[str]
    remarks: tuple[str, ...]

    def order(self, one: str) -> tuple[str, str]:
        """By name, whatever the case of its letters, then by id."""
        return self.names[one].casefold(), one

    def nearest_first(self, steps: Mapping[str, int]) -> tuple[str, ...]:
        """Those that stand for what lies at these distances, the nearest first, then by name."""
        return _nearest_first(steps, self.kept, self.names)


def make_terms(
    noun: Noun,
    ancestry: Ancestry,
    labels: Mapping[str, str],
    language: str,
    identifiers: bool,
    used: Mapping[str, int],
    declared: Collection[str],
) -> Terms:
    """Name everything in an ancestry; ``used`` says how often each is a superclass or a type.

    Where some are ``declared``, one that is neither declared nor has a label is another ontology's, and is left out.
    A name that several have is one candidate: as an answer it is right if any of them is. It stands for the one with a
    label of its own, then the one with most above it, then the one used most; the others are not asked about, and
    what is said of the kept one is said of it alone.
    """
    own = [one for one in ancestry.above if not declared or one in declared or one in labels]
    named, remarks = _named(noun, own, labels, language, identifiers)
    foreign = sorted(ancestry.above.keys() - set(own))
    if foreign:
        remarks.append(f"{noun.are(len(foreign))} neither declared nor named here: left out ({examples(foreign)}).")

    owners: dict[str, list[str]] = defaultdict(list)
    for entity, name in named.items():
        owners[name.casefold()].append(entity)
    kept: dict[str, str] = {}
    shared = []
    for sharing in owners.values():
        best = min(sharing, key=lambda one: (one not in labels, -len(ancestry.above[one]), -used.get(one, 0), one))
        kept.update(dict.fromkeys(sharing, best))
        if len(sharing) > 1:
            shared.append(best)
    names = {entity: named[entity] for entity in named if kept[entity] == entity}
    if shared:
        shown = examples([names[entity] for entity in shared])
        remarks.append(
            f"{noun.are(len(named) - len(names))} called as others: a name is one candidate, and what has such a name "
            f"is not to be asked about ({shown})."
        )
    circles = {frozenset(one for one in circle if one in named) for circle in set(ancestry.circles.values())}
    circles = {circle for circle in circles if len(circle) > 1}
    if circles:
        shown = examples(sorted(min(circle) for circle in circles))
        remarks.append(
            f"{noun.are(sum(map(len, circles)))} in {counted(len(circles), 'circle')}: they mean the same, and none of "
            f"them is above the others ({shown})."
        )
    equivalents = {}
    for entity in names:
        others = {kept[other] for other in ancestry.circles.get(entity, ()) if other in kept} - {entity}
        if others:
            equivalents[entity] = tuple(sorted(others, key=lambda other: (names[other].casefold(), other)))
    above = {
        entity: tuple(high for high in _nearest_first(ancestry.above[entity], kept, names) if high != entity)
        for entity in names
    }
    return Terms(names, above, equivalents, kept, frozenset(shared), tuple(remarks))


def _named(
    noun: Noun, entities: Sequence[str], labels: Mapping[str, str], language: str, identifiers: bool
) -> tuple[dict[str, str], list[str]]:
    """What has a name, and remarks on what has only an identifier."""
    found = {one: term_name(one, labels.get(one), language) for one in entities if identifiers or one in labels}
    named = {one: name for one, name in found.items() if name is not None}
    read = [one for one, name in named.items() if labels.get(one) != name]
    nameless = [one for one in entities if one not in named]
    remarks = []
    if read:
        called = f"{read[0]} is {named[read[0]]!r}"
        remarks.append(f"{noun.have(len(read))} no name in {language!r} but an identifier, read as words ({called}).")
    if nameless:
        remarks.append(f"{noun.have(len(nameless))} no name and cannot be asked about ({examples(nameless)}).")
    return named, remarks


def counted(count: int, noun: str) -> str:
    """A number with its noun: 1 circle, 2 circles."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def examples(found: Sequence[str]) -> str:
    """The first few, and dots if there are more."""
    return ", ".join(found[:_SHOWN]) + (", …" if len(found) > _SHOWN else "")


def _nearest_first(steps: Mapping[str, int], kept: Mapping[str, str], names: Mapping[str, str]) -> tuple[str, ...]:
    nearest: dict[str, int] = {}
    for entity, step in steps.items():
        if entity in kept:
            stands = kept[entity]
            nearest[stands] = min(step, nearest.get(stands, step))
    return tuple(sorted(nearest, key=lambda entity: (nearest[entity], names[entity].casefold(), entity)))
