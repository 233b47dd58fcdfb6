"""Facts ready for sentences: names looked up, grouped so that right and wrong answers can be told apart."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, Protocol, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from merkhet.core.ids import derived_seed
from merkhet.questions.english import format_number
from merkhet.questions.templates import Relation, placeholder_names


class Knowledge(Protocol):
    """What the makers need of a knowledge base."""

    def facts(self, predicate: str | None = None) -> pa.Table:
        """Facts of a predicate."""

    def labels(self, language: str = "en") -> dict[str, str]:
        """Names of entities."""

    def ancestors(self, predicate: str) -> pa.Table:
        """Closure of an is-a-like predicate."""


@dataclass(frozen=True)
class NamedFact:
    """A fact in words: the names of its places, with its id and domain."""

    fact_id: str
    values: dict[str, str]
    domain: str | None


@dataclass(frozen=True)
class MakerOptions:
    """What every maker is told: the suite's name, how many questions, how many choices, the seed."""

    suite: str
    limit: int
    choices: int
    seed: int
    language: str = "en"


class CachedKnowledge:
    """A knowledge base in memory: makers ask the same of it again and again."""

    def __init__(self, knowledge: Knowledge) -> None:
        self._facts = knowledge.facts()
        self.facts = cache(self._facts_of)
        self.labels = cache(knowledge.labels)
        self.ancestors = cache(knowledge.ancestors)
        self.named_facts = cache(partial(_named_facts, self))

    def _facts_of(self, predicate: str | None = None) -> pa.Table:
        if predicate is None:
            return self._facts
        return self._facts.filter(pc.equal(self._facts["predicate"], predicate))


_NAMED = ("fact_id", "subject", "object", "value", "start", "end", "domain")


def named_facts(knowledge: Knowledge, relation: Relation, language: str) -> list[NamedFact]:
    """Facts of a relation whose places all have names, those that a template needs a time for having it."""
    if isinstance(knowledge, CachedKnowledge):
        return knowledge.named_facts(relation, language)
    return _named_facts(knowledge, relation, language)


def _named_facts(knowledge: Knowledge, relation: Relation, language: str) -> list[NamedFact]:
    labels = knowledge.labels(language)
    needed = {place for template in relation.templates for place in placeholder_names(template)}
    found = []
    for row in knowledge.facts(relation.predicate).select(_NAMED).to_pylist():
        other = labels.get(row["object"]) if row["object"] is not None else format_number(row["value"])
        values = {"subject": labels.get(row["subject"]), "object": other, "start": row["start"], "end": row["end"]}
        if all(values[place] for place in needed):
            kept = {place: text for place, text in values.items() if text}
            if relation.shorten in kept:
                kept[relation.shorten] = kept[relation.shorten].split()[-1]
            found.append(NamedFact(row["fact_id"], kept, row["domain"]))
    return found


def gives_itself_away(fact: NamedFact, relation: Relation) -> bool:
    """Whether the answer stands in another name of the sentence: "A rocking chair is a kind of chair." asks nothing."""
    answer = fact.values[relation.ask].casefold()
    others = (fact.values[place].casefold() for place in context_places(relation))
    return len(answer) >= 3 and any(answer in name for name in others)


Item = TypeVar("Item")


def shuffled(items: Iterable[Item], key: Callable[[Item], str], *seed: Any) -> list[Item]:
    """The items in an order that depends on their own content and the seed, never on the order they came in."""
    draw = random.Random(derived_seed(*seed)).random
    return [item for _, item in sorted(((draw(), item) for item in sorted(items, key=key)), key=lambda pair: pair[0])]


def spread(groups: Iterable[Iterator[Item]], limit: int) -> list[Item]:
    """Up to ``limit`` items, taken in turn from each group, so that no group crowds out the others."""
    taken: list[Item] = []
    waiting = list(groups)
    while waiting and len(taken) < limit:
        for group in list(waiting):
            item = next(group, None)
            if item is None:
                waiting.remove(group)
            elif len(taken) < limit:
                taken.append(item)
    return taken


def answers_by_context(
    knowledge: Knowledge, facts: Iterable[NamedFact], relation: Relation, language: str
) -> dict[tuple[str, ...], set[str]]:
    """All right answers for what the sentence says besides: every other place that all the templates name."""
    context = context_places(relation)
    right: dict[tuple[str, ...], set[str]] = defaultdict(set)
    for fact in facts:
        right[tuple(fact.values[place] for place in context)].add(fact.values[relation.ask])
    if relation.transitive and relation.ask == "object":
        labels = knowledge.labels(language)
        for row in knowledge.ancestors(relation.predicate).to_pylist():
            if row["subject"] in labels and row["ancestor"] in labels:
                right[labels[row["subject"]],].add(labels[row["ancestor"]])
    return right


def context_places(relation: Relation) -> list[str]:
    """The places that every template of a relation names, but for the asked one."""
    common = set.intersection(*({*placeholder_names(template)} for template in relation.templates))
    return sorted(common - {relation.ask})
