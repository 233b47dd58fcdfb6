"""Multiple-choice questions with twenty choices, for models that cannot rank hundreds of candidates."""

from __future__ import annotations

import random

from merkhet.core.ids import derived_seed
from merkhet.core.schemas import question_id
from merkhet.suites.ontoprobe.questions.memorizing import Row, nearest_candidate, question_row
from merkhet.suites.ontoprobe.questions.ontology_prompts import OntologyOptions
from merkhet.suites.ontoprobe.questions.ontology_statements import Statement, Statements
from merkhet.suites.ontoprobe.questions.rule_reasoning import (
    RuleQuestionMaker,
    assign_question_id,
    draw_statements,
    premise_row,
)

CHOICES = 20
LIMIT = 500
"""Maximum number of statements of the task TP, and of the task SCO."""
_TEMPLATES = {"TP": "TP/3", "SCO": "SCO/3", "SPO": "SPO/1", "DM": "DM/1", "RG": "RG/1"}


def choice_questions(statements: Statements, options: OntologyOptions) -> tuple[list[Row], list[Row]]:
    """Make multiple-choice questions from the test statements.

    The right choice is the nearest gold answer. Distractors are drawn by the seed from candidates that are neither
    right answers, ancestors of right answers, nor the subject. Each rule is asked with the second premise shown, once
    with the first premise and once without. The multiple-choice question about the first premise decides whether a
    model knows this premise.

    Returns:
        Rows of the questions table and rows of the table of premise questions.
    """
    maker = RuleQuestionMaker(statements, options)
    questions: dict[str, Row] = {}
    premise_rows: dict[str, Row] = {}
    memory_questions: dict[str, str] = {}
    for task in options.memorizing:
        test = statements.for_task(task, "test")
        for statement in draw_statements(test, LIMIT if task in ("TP", "SCO") else None, options.seed):
            row = _memorizing_question(maker, statement)
            if row:
                questions.setdefault(row["question_id"], row)
                memory_questions[statement.fact_id] = row["question_id"]
    for rule in options.rules:
        for statement in maker.test_statements(rule):
            if statement.fact_id not in memory_questions:
                continue
            for shown in ("both", "second"):
                row = maker.question(rule, statement, f"{rule}/manual-manual", shown)
                row["task"] = f"{rule}-choice"
                del row["candidate_set"]
                row["choices"] = _choices(maker, rule, statement, str(row["target"]))
                row = assign_question_id(row, shown)
                questions[row["question_id"]] = row
                first = [memory_questions[statement.fact_id]]
                premise_rows[row["question_id"]] = premise_row(row, shown, first, memory="right")
    return list(questions.values()), list(premise_rows.values())


def _memorizing_question(maker: RuleQuestionMaker, statement: Statement) -> Row | None:
    task, template = statement.task, _TEMPLATES[statement.task]
    target = nearest_candidate(statement.golds, frozenset(maker.sets[task][1]))
    if target is None:
        return None
    prompt = dict(maker.wording.prompts(statement, "manual"))[template]
    columns = {"target": target, "choices": _choices(maker, task, statement, target), "template": template}
    row = question_row(statement, f"{task}-choice", prompt, statement.golds, **columns)
    return row | {"question_id": question_id(row)}


def _choices(maker: RuleQuestionMaker, task_or_rule: str, statement: Statement, target: str) -> list[str]:
    """Return the target and up to nineteen drawn distractors, shuffled; the order of the statements has no effect."""
    wrong = sorted(set(maker.sets[task_or_rule][1]) - maker.right_answers(task_or_rule, statement))
    generator = random.Random(derived_seed("ontology choice", maker.options.seed, task_or_rule, statement.fact_id))
    choices = [target, *generator.sample(wrong, min(CHOICES - 1, len(wrong)))]
    generator.shuffle(choices)
    return choices
