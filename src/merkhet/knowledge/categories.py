"""Categories: trees by any is-a-like predicates, and members drawn from the same or another category."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from merkhet.core.errors import InputError, did_you_mean
from merkhet.core.ids import derived_seed
from merkhet.knowledge.store import KnowledgeBase


class Categories:
    """Who belongs to what, by the closure of one or several predicates (occupation, group, is-a).

    The first predicate may lead from things to categories (``rdf:type``) and another one upwards (``rdfs:subClassOf``);
    one predicate that does both (``is-a``) is enough.
    """

    def __init__(self, knowledge: KnowledgeBase, *predicates: str) -> None:
        if not predicates:
            raise InputError("categories need at least one predicate, such as is-a")
        counts = knowledge.count()
        for predicate in predicates:
            if predicate not in counts:
                raise InputError(f"no fact has the predicate {predicate!r}; {did_you_mean(predicate, counts)}")
        above: dict[str, set[str]] = {}
        table = knowledge.ancestors(*predicates)
        for low, high in zip(table["subject"].to_pylist(), table["ancestor"].to_pylist(), strict=True):
            if low != high:
                above.setdefault(low, set()).add(high)
        self.above: Mapping[str, frozenset[str]] = {low: frozenset(highs) for low, highs in above.items()}
        members: dict[str, list[str]] = {}
        for low, highs in above.items():
            for high in highs:
                members.setdefault(high, []).append(low)
        self.members: Mapping[str, tuple[str, ...]] = {
            high: tuple(sorted(lows)) for high, lows in sorted(members.items())
        }
        direct: dict[str, set[str]] = {}
        for predicate in predicates:
            rows = knowledge.facts(predicate)
            for low, high in zip(rows["subject"].to_pylist(), rows["object"].to_pylist(), strict=True):
                if high is not None and low != high:
                    direct.setdefault(low, set()).add(high)
        self.direct: Mapping[str, frozenset[str]] = {low: frozenset(highs) for low, highs in direct.items()}

    @property
    def leaves(self) -> tuple[str, ...]:
        """What has a category and is none itself."""
        return tuple(sorted(set(self.above) - set(self.members)))

    def belongs(self, entity: str, category: str) -> bool:
        """Whether an entity is in a category, however far below."""
        return category in self.above.get(entity, ())

    def sample_members(self, category: str, count: int, seed: int, among: Collection[str] | None = None) -> list[str]:
        """So many members of a category, drawn by the seed; all there are if they are fewer."""
        self._refuse_unknown(category)
        return self._drawn(self.members[category], count, seed, ("same", category), among)

    def sample_nonmembers(
        self, category: str, count: int, seed: int, among: Collection[str] | None = None
    ) -> list[str]:
        """So many that are certainly not in a category: not below it, not it, and not above it either.

        What stands above is left out too, since an animal may well be a dog.
        """
        self._refuse_unknown(category)
        higher = self.above.get(category, frozenset())
        everybody = [
            one
            for one in sorted(self.above)
            if one != category and one not in higher and not self.belongs(one, category)
        ]
        return self._drawn(everybody, count, seed, ("different", category), among)

    def siblings(self, category: str) -> tuple[str, ...]:
        """Categories under the same next category: where a near miss is drawn from."""
        parents = self.direct.get(category, frozenset())
        return tuple(
            sorted(one for one in self.members if one != category and self.direct.get(one, frozenset()) & parents)
        )

    def _drawn(
        self, given: Sequence[str], count: int, seed: int, purpose: tuple[str, ...], among: Collection[str] | None
    ) -> list[str]:
        wanted = None if among is None else set(among)
        kept = given if wanted is None else [one for one in given if one in wanted]
        return sorted(kept, key=lambda one: derived_seed(seed, *purpose, one))[:count]

    def _refuse_unknown(self, category: str) -> None:
        if category not in self.members:
            raise InputError(f"nothing is in a category {category!r}; {did_you_mean(category, self.members)}")


def lowest_common_categories(categories: Categories, entities: Iterable[str]) -> tuple[str, ...]:
    """The lowest categories that all entities share: none of them stands above another one, but for circles.

    Categories in a circle stand each above the other, and together where one of them would.
    """
    shared: frozenset[str] | None = None
    for entity in entities:
        above = categories.above.get(entity, frozenset())
        shared = above if shared is None else shared & above
    shared = shared or frozenset()
    return tuple(
        sorted(
            one
            for one in shared
            if not any(categories.belongs(other, one) and not categories.belongs(one, other) for other in shared)
        )
    )
