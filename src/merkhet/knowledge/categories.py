"""Category trees from is-a-like predicates, and sampling of members and non-members."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from merkhet.core.errors import InputError, did_you_mean
from merkhet.core.ids import derived_seed
from merkhet.knowledge.store import KnowledgeBase


class Categories:
    """Membership by the transitive closure of one or several predicates (occupation, group, is-a).

    One predicate may lead from entities to categories (``rdf:type``) and another one upwards (``rdfs:subClassOf``); one
    predicate that does both (``is-a``) is enough.
    """

    def __init__(self, knowledge: KnowledgeBase, *predicates: str) -> None:
        if not predicates:
            raise InputError("categories need at least one predicate, such as is-a")
        counts = knowledge.count()
        for predicate in predicates:
            if predicate not in counts:
                raise InputError(f"no fact has the predicate {predicate!r}; {did_you_mean(predicate, counts)}")
        ancestors: dict[str, set[str]] = {}
        table = knowledge.ancestors(*predicates)
        for child, parent in zip(table["subject"].to_pylist(), table["ancestor"].to_pylist(), strict=True):
            if child != parent:
                ancestors.setdefault(child, set()).add(parent)
        self.ancestors: Mapping[str, frozenset[str]] = {
            child: frozenset(parents) for child, parents in ancestors.items()
        }
        members: dict[str, list[str]] = {}
        for child, parents in ancestors.items():
            for parent in parents:
                members.setdefault(parent, []).append(child)
        self.members: Mapping[str, tuple[str, ...]] = {
            parent: tuple(sorted(children)) for parent, children in sorted(members.items())
        }
        direct: dict[str, set[str]] = {}
        for predicate in predicates:
            rows = knowledge.facts(predicate)
            for child, parent in zip(rows["subject"].to_pylist(), rows["object"].to_pylist(), strict=True):
                if parent is not None and child != parent:
                    direct.setdefault(child, set()).add(parent)
        self.direct: Mapping[str, frozenset[str]] = {child: frozenset(parents) for child, parents in direct.items()}

    @property
    def leaves(self) -> tuple[str, ...]:
        """Entities that have a category and are none themselves."""
        return tuple(sorted(set(self.ancestors) - set(self.members)))

    def belongs(self, entity: str, category: str) -> bool:
        """Check whether an entity is in a category, directly or not."""
        return category in self.ancestors.get(entity, ())

    def sample_members(self, category: str, count: int, seed: int, among: Collection[str] | None = None) -> list[str]:
        """Draw up to ``count`` members of a category, optionally from among some entities."""
        self._require_category(category)
        return self._draw(self.members[category], count, seed, ("same", category), among)

    def sample_nonmembers(
        self, category: str, count: int, seed: int, among: Collection[str] | None = None
    ) -> list[str]:
        """Draw up to ``count`` entities that are certainly not in a category.

        The ancestors of the category are left out too: an animal may well be a dog.
        """
        self._require_category(category)
        broader = self.ancestors.get(category, frozenset())
        outsiders = [
            entity
            for entity in sorted(self.ancestors)
            if entity != category and entity not in broader and not self.belongs(entity, category)
        ]
        return self._draw(outsiders, count, seed, ("different", category), among)

    def siblings(self, category: str) -> tuple[str, ...]:
        """Return the categories that share a parent, as a pool for near misses."""
        parents = self.direct.get(category, frozenset())
        return tuple(
            sorted(
                other for other in self.members if other != category and self.direct.get(other, frozenset()) & parents
            )
        )

    def _draw(
        self, pool: Sequence[str], count: int, seed: int, purpose: tuple[str, ...], among: Collection[str] | None
    ) -> list[str]:
        allowed = None if among is None else set(among)
        eligible = pool if allowed is None else [entity for entity in pool if entity in allowed]
        return sorted(eligible, key=lambda entity: derived_seed(seed, *purpose, entity))[:count]

    def _require_category(self, category: str) -> None:
        if category not in self.members:
            raise InputError(f"nothing is in a category {category!r}; {did_you_mean(category, self.members)}")


def lowest_common_categories(categories: Categories, entities: Iterable[str]) -> tuple[str, ...]:
    """Return the lowest categories that all entities share.

    None of them is an ancestor of another, except within a cycle, whose categories are returned together.
    """
    shared: frozenset[str] | None = None
    for entity in entities:
        ancestors = categories.ancestors.get(entity, frozenset())
        shared = ancestors if shared is None else shared & ancestors
    shared = shared or frozenset()
    return tuple(
        sorted(
            category
            for category in shared
            if not any(
                categories.belongs(other, category) and not categories.belongs(category, other) for other in shared
            )
        )
    )
