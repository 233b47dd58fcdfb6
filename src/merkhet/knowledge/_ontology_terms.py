"""Hierarchies of classes and properties, and unique names for them as answer candidates."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple
from urllib.parse import unquote

_EXAMPLES = 3
# A new word begins at a capital: soccerPlayer, TVSeries, 3DModel.
_WORD_BOUNDARY = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z0-9])(?=[A-Z][a-z])|(?<=[a-z])(?=\d+[A-Z])|[_\s]+")
_CODE = re.compile(r"[A-Za-z]{0,6}[_-]?\d+(-[a-z])?|.*\d{5,}")


Parents = Mapping[str, Collection[str]]
"""The direct parents of each class or property."""


def ancestor_distances(starts: Iterable[str], parents: Parents) -> dict[str, int]:
    """Return the distance from the nearest start node to each ancestor; start nodes have distance 0."""
    distances = dict.fromkeys(starts, 0)
    queue = list(distances)
    for node in queue:
        for parent in parents.get(node, ()):
            if parent not in distances:
                distances[parent] = distances[node] + 1
                queue.append(parent)
    return distances


class Ancestry:
    """The ancestors of every node in a hierarchy, with distances.

    No node is an ancestor of itself. Nodes of a cycle are equivalent: none is an ancestor of another, and all have
    the same ancestors outside the cycle.
    """

    def __init__(self, nodes: Iterable[str], parents: Parents) -> None:
        self.parents = parents
        self.ancestors: dict[str, dict[str, int]] = {}
        self.cycles: dict[str, frozenset[str]] = {}
        for node in nodes:
            distances = ancestor_distances([node], parents)
            if any(node in parents.get(ancestor, ()) for ancestor in distances if ancestor != node):
                self._find_cycle(node, distances)
                distances = {
                    ancestor: distance for ancestor, distance in distances.items() if ancestor not in self.cycles[node]
                }
            distances.pop(node, None)
            self.ancestors[node] = distances

    def _find_cycle(self, node: str, distances: Mapping[str, int]) -> None:
        """Record the cycle of a node: all nodes that the node reaches and that reach the node."""
        if node in self.cycles:
            return
        children: dict[str, list[str]] = {}
        for member in distances:
            for parent in self.parents.get(member, ()):
                children.setdefault(parent, []).append(member)
        cycle = frozenset(ancestor_distances([node], children))
        self.cycles.update(dict.fromkeys(cycle, cycle))

    def most_specific(self, nodes: Collection[str]) -> set[str]:
        """Return the nodes of ``nodes`` that are not an ancestor of any other node in ``nodes``."""
        ancestors = {ancestor for node in nodes for ancestor in self.ancestors[node]}
        return {node for node in nodes if node not in ancestors}


class Noun(NamedTuple):
    """Singular and plural of a noun that remarks count."""

    singular: str
    plural: str

    def are(self, count: int) -> str:
        """Format a count with its verb: ``1 class is``, ``2 classes are``."""
        return f"1 {self.singular} is" if count == 1 else f"{count:,} {self.plural} are"

    def have(self, count: int) -> str:
        """Format a count with its verb: ``1 class has``, ``2 classes have``."""
        return f"1 {self.singular} has" if count == 1 else f"{count:,} {self.plural} have"


CLASS = Noun("class", "classes")
PROPERTY = Noun("property", "properties")
INSTANCE = Noun("instance", "instances")


@dataclass(frozen=True)
class Terms:
    """Named classes or properties of a hierarchy.

    If several terms share a name, one of them represents the name; see ``make_terms``.
    """

    names: Mapping[str, str]
    """The name of each representative, by id."""
    ancestors: Mapping[str, tuple[str, ...]]
    """The ancestors of each representative that are representatives too, sorted by distance, then by name."""
    equivalents: Mapping[str, tuple[str, ...]]
    """For a representative in a cycle, the other representatives in that cycle."""
    representatives: Mapping[str, str]
    """For each term with a name, the term that represents this name."""
    ambiguous: frozenset[str]
    """Representatives of names that several terms share."""
    remarks: tuple[str, ...]

    def sort_key(self, entity: str) -> tuple[str, str]:
        """Return a key that sorts terms by name regardless of case, then by id."""
        return self.names[entity].casefold(), entity

    def nearest_first(self, distances: Mapping[str, int]) -> tuple[str, ...]:
        """Return the distinct representatives of the terms in ``distances``, sorted by distance, then by name."""
        return _nearest_first(distances, self.representatives, self.names)


def make_terms(
    noun: Noun,
    ancestry: Ancestry,
    labels: Mapping[str, str],
    language: str,
    identifiers: bool,
    uses: Mapping[str, int],
    declared: Collection[str],
) -> Terms:
    """Name every term (class or property) of a hierarchy.

    A name that several terms share is one answer candidate, correct if any of these terms is correct. One term
    represents the name: terms with a label come first, then those with the most ancestors, then the most used. No
    question asks about the other terms.

    Args:
        noun: The noun for terms in remarks.
        ancestry: The ancestors of the terms.
        labels: The labels by term id.
        language: The language of the labels.
        identifiers: Whether a term without a label may be named by its identifier.
        uses: How many facts have each term as superclass or type.
        declared: Declared terms. Unless this is empty, a term with neither declaration nor label is left out, since
            it belongs to another ontology.
    """
    local = [entity for entity in ancestry.ancestors if not declared or entity in declared or entity in labels]
    named, remarks = _name_entities(noun, local, labels, language, identifiers)
    foreign = sorted(ancestry.ancestors.keys() - set(local))
    if foreign:
        remarks.append(f"{noun.are(len(foreign))} neither declared nor named here: left out ({examples(foreign)}).")

    owners: dict[str, list[str]] = defaultdict(list)
    for entity, name in named.items():
        owners[name.casefold()].append(entity)
    representatives: dict[str, str] = {}
    ambiguous = []
    for entities in owners.values():
        best = min(
            entities,
            key=lambda entity: (entity not in labels, -len(ancestry.ancestors[entity]), -uses.get(entity, 0), entity),
        )
        representatives.update(dict.fromkeys(entities, best))
        if len(entities) > 1:
            ambiguous.append(best)
    names = {entity: named[entity] for entity in named if representatives[entity] == entity}
    if ambiguous:
        example = examples([names[entity] for entity in ambiguous])
        remarks.append(
            f"{noun.have(len(named) - len(names))} the name of another one: a shared name is one candidate, and no "
            f"question asks about its owners ({example})."
        )
    cycles = {frozenset(entity for entity in cycle if entity in named) for cycle in set(ancestry.cycles.values())}
    cycles = {cycle for cycle in cycles if len(cycle) > 1}
    if cycles:
        example = examples(sorted(min(cycle) for cycle in cycles))
        remarks.append(
            f"{noun.are(sum(map(len, cycles)))} in {f'{len(cycles):,} cycles' if len(cycles) > 1 else 'a cycle'}: "
            f"they are equivalent, and none is an ancestor of another ({example})."
        )
    equivalents = {}
    for entity in names:
        equivalent = {
            representatives[member] for member in ancestry.cycles.get(entity, ()) if member in representatives
        } - {entity}
        if equivalent:
            equivalents[entity] = tuple(sorted(equivalent, key=lambda member: (names[member].casefold(), member)))
    ancestors = {
        entity: tuple(
            ancestor
            for ancestor in _nearest_first(ancestry.ancestors[entity], representatives, names)
            if ancestor != entity
        )
        for entity in names
    }
    return Terms(names, ancestors, equivalents, representatives, frozenset(ambiguous), tuple(remarks))


def _name_entities(
    noun: Noun, entities: Sequence[str], labels: Mapping[str, str], language: str, identifiers: bool
) -> tuple[dict[str, str], list[str]]:
    """Return the names by entity, and remarks on missing labels; entities without a name are left out."""
    candidates = {
        entity: term_name(entity, labels.get(entity), language)
        for entity in entities
        if identifiers or entity in labels
    }
    named = {entity: name for entity, name in candidates.items() if name is not None}
    from_identifier = [entity for entity, name in named.items() if labels.get(entity) != name]
    nameless = [entity for entity in entities if entity not in named]
    remarks = []
    if from_identifier:
        example = f"{from_identifier[0]} is {named[from_identifier[0]]!r}"
        remarks.append(
            f"{noun.have(len(from_identifier))} no name in {language!r} but an identifier, read as words ({example})."
        )
    if nameless:
        remarks.append(f"{noun.have(len(nameless))} no name and cannot be asked about ({examples(nameless)}).")
    return named, remarks


def examples(names: Sequence[str]) -> str:
    """Join the first three names, with an ellipsis if there are more."""
    return ", ".join(names[:_EXAMPLES]) + (", …" if len(names) > _EXAMPLES else "")


def _nearest_first(
    distances: Mapping[str, int], representatives: Mapping[str, str], names: Mapping[str, str]
) -> tuple[str, ...]:
    nearest: dict[str, int] = {}
    for entity, distance in distances.items():
        if entity in representatives:
            representative = representatives[entity]
            nearest[representative] = min(distance, nearest.get(representative, distance))
    return tuple(sorted(nearest, key=lambda entity: (nearest[entity], names[entity].casefold(), entity)))


def local_name(entity: str) -> str:
    """Return the local name of an entity: SoccerPlayer for ``dbo:SoccerPlayer`` and ``http://e.org/x#SoccerPlayer``."""
    return unquote(re.split(r"[/#:]", entity.rstrip("/#:"))[-1])


def split_identifier(identifier: str) -> str:
    """Split an identifier into lower-case words, keeping abbreviations: ``TV series`` for TVSeries."""
    words = [word for word in _WORD_BOUNDARY.split(identifier.replace("-", " ")) if word]
    # A single capital is an article or an initial; an abbreviation has several.
    return " ".join(
        word if sum(map(str.isupper, word)) > 1 or re.match(r"\d", word) else word.lower() for word in words
    )


def term_name(entity: str, label: str | None, language: str) -> str | None:
    """Return the name of a class or property; None if neither label nor identifier gives a name.

    An English label that only repeats the identifier (``CreativeWork`` in schema.org) is split into words.
    """
    label = " ".join((label or "").split())
    local = local_name(entity)
    if label and not (label == local and language.startswith("en")):
        return label
    return None if not label and _is_code(local) else split_identifier(local) or None


def instance_name(entity: str, label: str | None) -> str | None:
    """Return an instance's label, or else its identifier with spaces for underscores; None for a bare code (Q42)."""
    label = " ".join((label or "").split())
    local = local_name(entity)
    return label or (None if _is_code(local) else " ".join(local.replace("_", " ").split()) or None)


def _is_code(local: str) -> bool:
    """Check whether a local name is a code such as Q42, IAO_0000115 or 00001740-n."""
    return _CODE.fullmatch(local) is not None
