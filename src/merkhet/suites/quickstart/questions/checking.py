"""Statement checking: a true sentence, or one with a wrong name in it, to be called true or false."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from merkhet.core import SLOT
from merkhet.core.ids import derived_seed
from merkhet.questions.templates import Relation, fill_template
from merkhet.suites.quickstart.questions.completion import WrongAnswers
from merkhet.suites.quickstart.questions.named_facts import (
    Knowledge,
    MakerOptions,
    NamedFact,
    gives_itself_away,
    named_facts,
    shuffled,
    spread,
)

FRAMES = (
    (f"{{statement}} This statement is {SLOT}.", ("true", "false")),
    (f'The statement "{{statement}}" is {SLOT}.', ("true", "false")),
)
"""How a statement is put up for checking, with the words for yes and no."""


def make_checks(knowledge: Knowledge, relations: Mapping[str, Relation], options: MakerOptions) -> list[dict[str, Any]]:
    """Checking questions, as many true as false, spread over the relations.

    A false statement is a fact with another answer of the same relation in place of the right one; one that another
    fact states is never made.
    """
    asked = [relation for relation in relations.values() if relation.checking]
    drawn = spread([_of_relation(knowledge, relation, options) for relation in asked], options.limit)
    truth = _first_truths([relation.name for relation in asked], Counter(relation.name for relation, _, _ in drawn))
    made = []
    for relation, fact, wrong in drawn:
        made.append(_question(fact, relation, None if truth[relation.name] else wrong, options))
        truth[relation.name] = not truth[relation.name]
    return made


def _first_truths(names: Sequence[str], counts: Mapping[str, int]) -> dict[str, bool]:
    """Whether each relation begins with a true statement, so that all together are balanced; each goes on in turn."""
    truth = {name: place % 2 == 0 for place, name in enumerate(names)}
    odd = [name for name in names if counts[name] % 2]
    excess = sum(1 if truth[name] else -1 for name in odd)
    for name in odd:
        if abs(excess) > 1 and truth[name] == (excess > 0):
            truth[name] = not truth[name]
            excess += 2 if truth[name] else -2
    return truth


def _of_relation(
    knowledge: Knowledge, relation: Relation, options: MakerOptions
) -> Iterator[tuple[Relation, NamedFact, str]]:
    """Facts in a drawn order, each with a wrong answer."""
    known = named_facts(knowledge, relation, options.language)
    wrong = WrongAnswers(knowledge, known, relation, options.language)
    for fact in shuffled(known, lambda fact: fact.fact_id, options.seed, "checking"):
        others = [] if gives_itself_away(fact, relation) else wrong.draw(fact, 1, options.seed, "corruption")
        if others:
            yield relation, fact, others[0]


def _question(fact: NamedFact, relation: Relation, wrong: str | None, options: MakerOptions) -> dict[str, Any]:
    number = derived_seed(options.seed, "template", fact.fact_id) % len(relation.templates)
    values = fact.values if wrong is None else {**fact.values, relation.ask: wrong}
    statement = fill_template(relation.templates[number], values)
    frame, words = FRAMES[derived_seed(options.seed, "frame", fact.fact_id) % len(FRAMES)]
    target = words[0] if wrong is None else words[1]
    return {
        "suite": options.suite,
        "task": "checking",
        "language": options.language,
        "prompt": frame.replace("{statement}", statement),
        "answers": [target],
        "target": target,
        "choices": list(words),
        "facts": [fact.fact_id],
        "qset": fact.fact_id,
        "domain": fact.domain,
        "template": f"{relation.name}/{number + 1}",
        "split": "test",
    }
