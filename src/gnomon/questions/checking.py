"""Statement checking: a true sentence, or one with a wrong name in it, to be called true or false."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from gnomon.foundation import SLOT, derived_seed
from gnomon.questions.completion import WrongAnswers
from gnomon.questions.material import Knowledge, MakerOptions, NamedFact, named_facts, shuffled, spread
from gnomon.questions.templates import Relation, fill

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
    return spread(
        [_of_relation(knowledge, relation, place, options) for place, relation in enumerate(asked)], options.limit
    )


def _of_relation(
    knowledge: Knowledge, relation: Relation, place: int, options: MakerOptions
) -> Iterator[dict[str, Any]]:
    """True and false in turn; every other relation begins with a false one, so that any number is balanced."""
    known = named_facts(knowledge, relation, options.language)
    wrong = WrongAnswers(knowledge, known, relation, options.language)
    for fact in shuffled(known, lambda fact: fact.fact_id, options.seed, "checking"):
        others = wrong.draw(fact, 1, options.seed, "corruption")
        if others:
            yield _question(fact, relation, None if place % 2 == 0 else others[0], options)
            place += 1


def _question(fact: NamedFact, relation: Relation, wrong: str | None, options: MakerOptions) -> dict[str, Any]:
    number = derived_seed(options.seed, "template", fact.fact_id) % len(relation.templates)
    values = fact.values if wrong is None else {**fact.values, relation.ask: wrong}
    statement = fill(relation.templates[number], values)
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
