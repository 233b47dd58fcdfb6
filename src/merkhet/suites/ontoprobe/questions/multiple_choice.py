"""Multiple-choice questions with twenty choices, for models that cannot rank hundreds of candidates."""

from __future__ import annotations

import random
from collections.abc import Sequence

from merkhet.core.ids import derived_seed
from merkhet.core.schemas import question_id
from merkhet.suites.ontoprobe.options import RULES
from merkhet.suites.ontoprobe.questions.memorizing import memorizing_row, nearest_candidate
from merkhet.suites.ontoprobe.questions.ontology_statements import TASKS, Statement, Statements
from merkhet.suites.ontoprobe.questions.rule_reasoning import (
    Row,
    RuleQuestionMaker,
    assign_question_id,
    draw_statements,
)

CHOICES = 20
LIMIT = 500
"""Maximum number of statements asked of TP and of SCO."""
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
    """Make multiple-choice questions of the test statements.

    The right choice is the nearest gold answer. Distractors are drawn by the seed from the other candidates: never
    another right answer, what follows from one, or the subject itself. A rule is asked with the second premise shown,
    with and without the first. The choice question about the first premise decides whether a model knows it.

    Args:
        limit: Maximum number of statements of TP and of SCO; None means all.
        premises: Maximum number of statements of each rule; None means all.

    Returns:
        Rows of the questions table and rows of the premises table.
    """
    maker = RuleQuestionMaker(statements, suite, compat)
    questions: dict[str, Row] = {}
    premise_rows: dict[str, Row] = {}
    memory_questions: dict[str, str] = {}
    for task in tasks:
        test = statements.for_task(task, "test")
        for statement in draw_statements(test, limit if task in ("TP", "SCO") else None, seed):
            row = _memorizing_question(maker, statement, seed)
            if row:
                questions.setdefault(row["question_id"], row)
                memory_questions[statement.fact_id] = row["question_id"]
    for rule in rules:
        for statement in maker.test_statements(rule, premises, seed):
            if statement.fact_id not in memory_questions:
                continue
            for shown in ("both", "second"):
                row = maker.question(rule, statement, f"{rule}/manual-manual", shown)
                row["task"] = f"{rule}-choice"
                del row["candidate_set"]
                row["choices"] = _choices(maker, rule, statement, str(row["target"]), seed)
                row = assign_question_id(row, shown)
                questions[row["question_id"]] = row
                premise_rows[row["question_id"]] = {
                    "question_id": row["question_id"],
                    "shown": shown,
                    "first": [memory_questions[statement.fact_id]],
                    "second": [],
                    "memory": "right",
                }
    return list(questions.values()), list(premise_rows.values())


def _memorizing_question(maker: RuleQuestionMaker, statement: Statement, seed: int) -> Row | None:
    task = statement.task
    target = nearest_candidate(statement.golds, frozenset(maker.sets[task][1]))
    if target is None:
        return None
    prompts = dict(maker.wording.prompts(statement, "manual"))
    template = _TEMPLATES[task]
    choices = _choices(maker, task, statement, target, seed)
    row = {**memorizing_row(statement, target, maker.suite), "task": f"{task}-choice", "prompt": prompts[template]}
    row |= {"choices": choices, "template": template}
    row["question_id"] = question_id(row)
    return row


def _choices(maker: RuleQuestionMaker, task_or_rule: str, statement: Statement, target: str, seed: int) -> list[str]:
    """Draw the target and up to nineteen distractors, shuffled, independently of the order of the statements."""
    wrong = sorted(set(maker.sets[task_or_rule][1]) - maker.right_answers(task_or_rule, statement))
    generator = random.Random(derived_seed("ontology choice", seed, task_or_rule, statement.fact_id))
    choices = [target, *generator.sample(wrong, min(CHOICES - 1, len(wrong)))]
    generator.shuffle(choices)
    return choices
