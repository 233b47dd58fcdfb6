"""Triple completion: a fact's sentence with one name left out, to be chosen among names of the same relation."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

from merkhet.core.ids import derived_seed
from merkhet.questions.templates import Relation, fill_template, format_answer
from merkhet.suites.quickstart.questions.named_facts import (
    Knowledge,
    MakerOptions,
    NamedFact,
    answers_by_context,
    context_places,
    gives_itself_away,
    named_facts,
    shuffled,
    spread,
)


def make_completions(
    knowledge: Knowledge, relations: Mapping[str, Relation], options: MakerOptions
) -> list[dict[str, Any]]:
    """Completion questions, spread over the relations; each offers one right answer among wrong ones.

    Wrong answers are right for another fact of the relation, never for this one. A fact whose answer stands in its own
    sentence is not asked.
    """
    asked = [relation for relation in relations.values() if relation.completion]
    return spread([_of_relation(knowledge, relation, options) for relation in asked], options.limit)


def _of_relation(knowledge: Knowledge, relation: Relation, options: MakerOptions) -> Iterator[dict[str, Any]]:
    known = named_facts(knowledge, relation, options.language)
    wrong = WrongAnswers(knowledge, known, relation, options.language)
    for fact in shuffled(known, lambda fact: fact.fact_id, options.seed, "completion"):
        question = None if gives_itself_away(fact, relation) else _question(fact, relation, wrong, options)
        if question is not None:
            yield question


def answer_frequencies(knowledge: Knowledge, relations: Mapping[str, Relation], language: str) -> list[dict[str, Any]]:
    """How many facts of each relation have each answer, as it stands in the slot of any of the templates."""
    rows = []
    for relation in relations.values():
        facts = named_facts(knowledge, relation, language)
        for name, count in sorted(Counter(fact.values[relation.ask] for fact in facts).items()):
            shown = {format_answer(template, relation.ask, name) for template in relation.templates}
            rows += [
                {"task": "completion", "relation": relation.name, "answer": text, "count": count}
                for text in sorted(shown)
            ]
    return rows


class WrongAnswers:
    """Draws names that stand in the same place of other facts and are wrong for this one."""

    def __init__(self, knowledge: Knowledge, facts: list[NamedFact], relation: Relation, language: str) -> None:
        self.relation = relation
        self.right = answers_by_context(knowledge, facts, relation, language)
        self.all = sorted({fact.values[relation.ask] for fact in facts})
        self.alike: dict[str, set[str]] = defaultdict(set)
        if relation.contrast:
            for fact in facts:
                self.alike[fact.values[relation.contrast]].add(fact.values[relation.ask])
        self.kin: dict[str, set[str]] = defaultdict(set)
        if relation.kinship:
            labels = knowledge.labels(language)
            for row in knowledge.ancestors(relation.kinship).to_pylist():
                below, above = labels.get(row["subject"], ""), labels.get(row["ancestor"], "")
                self.kin[below].add(above)
                self.kin[above].add(below)

    def right_for(self, fact: NamedFact) -> set[str]:
        """Every right answer in this fact's sentence."""
        return self.right[tuple(fact.values[place] for place in context_places(self.relation))]

    def draw(self, fact: NamedFact, count: int, *seed: Any) -> list[str]:
        """Up to so many wrong answers, those with the same contrast first; no name that the sentence says already."""
        said = {fact.values[place] for place in context_places(self.relation)}
        right = self.right_for(fact)
        out = right.union(said, *(self.kin[name] for name in right if name in self.kin))
        order = shuffled((text for text in self.all if text not in out), str, *seed, fact.fact_id)
        if self.relation.contrast:
            alike = self.alike[fact.values[self.relation.contrast]]
            order = sorted(order, key=lambda text: text not in alike)
        return order[:count]


def _question(fact: NamedFact, relation: Relation, wrong: WrongAnswers, options: MakerOptions) -> dict[str, Any] | None:
    others = wrong.draw(fact, options.choices - 1, options.seed, "choices")
    if not others:
        return None
    number = derived_seed(options.seed, "template", fact.fact_id) % len(relation.templates)
    template = relation.templates[number]
    target = fact.values[relation.ask]
    right = [target, *sorted(wrong.right_for(fact) - {target})]
    choices = shuffled([target, *others], str, options.seed, "order", fact.fact_id)
    return {
        "suite": options.suite,
        "task": "completion",
        "language": options.language,
        "prompt": fill_template(template, fact.values, relation.ask),
        "answers": [format_answer(template, relation.ask, text) for text in right],
        "target": format_answer(template, relation.ask, target),
        "choices": [format_answer(template, relation.ask, text) for text in choices],
        "facts": [fact.fact_id],
        "qset": fact.fact_id,
        "domain": fact.domain,
        "template": f"{relation.name}/{number + 1}",
        "split": "test",
    }
