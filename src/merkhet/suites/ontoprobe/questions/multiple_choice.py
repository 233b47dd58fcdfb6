"""Multiple choice: one right answer among twenty, for models that cannot be asked among hundreds of candidates."""

from __future__ import annotations

import random
from collections.abc import Sequence

from merkhet.core.ids import derived_seed
from merkhet.core.schemas import question_id
from merkhet.suites.ontoprobe.questions.memorizing import nearest, row_of
from merkhet.suites.ontoprobe.questions.ontology_prompts import RULES
from merkhet.suites.ontoprobe.questions.ontology_statements import TASKS, Statement, Statements
from merkhet.suites.ontoprobe.questions.rule_reasoning import Maker, Row, draw_statements, identified

CHOICES = 20
LIMIT = 500
"""How many statements of TP and of SCO are asked, at most."""
_TEMPLATES = {"TP": "TP/3", "SCO": "SCO/3", "SPO": "SPO/1", "DM": "DM/1", "RG": "RG/1"}


def choice_questions(
    statements: Statements,
    *,
    tasks: Sequence[str] = TASKS,
    rules: Sequence[str] = tuple(RULES),
    limit: int | None = LIMIT,
    premises: int | None = None,
    seed: int = 0,
    suite: str = "ontoprobe",
    compat: str | None = None,
) -> tuple[list[Row], list[Row]]:
    """Rows of the questions table and of the premises table: test statements as a choice of one among twenty.

    The right choice is the nearest right answer, the wrong ones are drawn from the other candidates by the seed and
    what is asked: never another right answer, what follows from one, or the subject itself. A rule is asked with the
    second premise shown, with and without the first; whether the first is known is decided by the choice question about
    it.
    """
    maker = Maker(statements, suite, compat)
    questions: dict[str, Row] = {}
    shown: dict[str, Row] = {}
    asked: dict[str, str] = {}
    for task in tasks:
        items = statements.of(task, "test")
        for one in draw_statements(items, limit if task in ("TP", "SCO") else None, seed):
            row = _memorizing(maker, one, seed)
            if row:
                questions.setdefault(row["question_id"], row)
                asked[one.fact_id] = row["question_id"]
    for rule in rules:
        for one in maker.items(rule, drawn=premises, seed=seed):
            if one.fact_id not in asked:
                continue
            for which in ("both", "second"):
                row = maker.question(rule, one, f"{rule}/manual-manual", which)
                row["task"] = f"{rule}-choice"
                del row["candidate_set"]
                row["choices"] = _choices(maker, rule, one, str(row["target"]), seed)
                row = identified(row, which)
                questions[row["question_id"]] = row
                shown[row["question_id"]] = {
                    "question_id": row["question_id"],
                    "shown": which,
                    "first": [asked[one.fact_id]],
                    "second": [],
                    "memory": "right",
                }
    return list(questions.values()), list(shown.values())


def _memorizing(maker: Maker, one: Statement, seed: int) -> Row | None:
    texts = maker.sets[one.task][1]
    target = nearest(one.golds, frozenset(texts))
    if target is None:
        return None
    prompts = dict(maker.wording.asked(one, "manual"))
    name = _TEMPLATES[one.task]
    choices = _choices(maker, one.task, one, target, seed)
    row = {**row_of(one, target, maker.suite), "task": f"{one.task}-choice", "prompt": prompts[name]}
    row |= {"choices": choices, "template": name}
    row["question_id"] = question_id(row)
    return row


def _choices(maker: Maker, asked: str, one: Statement, target: str, seed: int) -> list[str]:
    """The right choice and up to nineteen wrong ones, in a drawn order; the same whatever the order of anything."""
    wrong = sorted(set(maker.sets[asked][1]) - maker.right(asked, one))
    generator = random.Random(derived_seed("ontology choice", seed, asked, one.fact_id))
    drawn = [target, *generator.sample(wrong, min(CHOICES - 1, len(wrong)))]
    generator.shuffle(drawn)
    return drawn
