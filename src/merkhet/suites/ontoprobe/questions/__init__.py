"""Questions about an ontology: five memorizing tasks and six reasoning rules."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence

import pyarrow as pa

from merkhet.core.schemas import CANDIDATES, FACTS, FREQUENCIES, PREMISE_QUESTIONS, QUESTIONS, make_table, validate
from merkhet.core.text import counted
from merkhet.questions.losses import losses_for_card
from merkhet.questions.question_files import QuestionSet
from merkhet.suites.ontoprobe.questions.memorizing import Row, candidate_sets, memorizing_questions
from merkhet.suites.ontoprobe.questions.multiple_choice import choice_questions
from merkhet.suites.ontoprobe.questions.ontology_prompts import OntologyOptions
from merkhet.suites.ontoprobe.questions.ontology_statements import PREDICATES, Statements
from merkhet.suites.ontoprobe.questions.paper_compat import to_paper_statements
from merkhet.suites.ontoprobe.questions.rule_reasoning import reasoning_questions
from merkhet.suites.ontoprobe.questions.statement_accounts import account_for_statements


def make_ontology_questions(statements: Statements, options: OntologyOptions | None = None) -> QuestionSet:
    """Make all questions from the statements, with candidates, premises, answer frequencies, facts and remarks.

    Answer frequencies count the gold answers of the training statements, in order of first appearance. A rule needs
    memorizing questions about its first premises, which are made even if their task is not in ``options.tasks``.
    """
    options = options or OntologyOptions()
    remarks = list(statements.remarks)
    if options.compat == "paper":
        statements = to_paper_statements(statements)
    memorizing_rows = memorizing_questions(statements, options)
    rows = _distinct(memorizing_rows, remarks)
    reasoning_rows, premises = reasoning_questions(statements, memorizing_rows, options)
    rows += reasoning_rows
    shown = Counter(row["shown"] for row in premises)
    if missing := shown["second"] - shown["other"]:
        number = counted(missing, "reasoning question has", "reasoning questions have")
        remarks.append(f"{number} no control, because every other premise applies.")
    if options.choice:
        choice_rows, choice_premises = choice_questions(statements, options)
        rows += choice_rows
        premises += choice_premises
    accounts = account_for_statements(statements, memorizing_rows, rows, options)
    used = {row.get("candidate_set") for row in rows}
    sets = dict(candidate_sets(statements).values())
    candidates = [{"candidate_set": name, "candidates": list(texts)} for name, texts in sets.items() if name in used]
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for row in rows:
        counts[row["task"]][row["split"]] += 1
    return QuestionSet(
        questions=validate(QUESTIONS, pa.Table.from_pylist(rows, schema=QUESTIONS.schema)),
        candidates=make_table(CANDIDATES, candidates),
        facts=make_table(FACTS, _facts(statements, options)),
        frequencies=make_table(FREQUENCIES, _frequencies(statements, options)),
        premise_questions=make_table(PREMISE_QUESTIONS, premises),
        about={
            "remarks": remarks,
            "counts": {task: dict(by_split) for task, by_split in counts.items()},
            **losses_for_card(accounts),
        },
    )


def _distinct(rows: Sequence[Row], remarks: list[str]) -> list[Row]:
    """Drop duplicate questions and add a remark for each task that has duplicates."""
    distinct: dict[str, Row] = {}
    repeated: dict[str, set[str]] = defaultdict(set)
    for row in rows:
        if row["question_id"] in distinct:
            repeated[row["task"]].add(row["qset"])
        distinct.setdefault(row["question_id"], row)
    for task, facts in repeated.items():
        subject = (
            f"{len(facts):,} statements of {task} repeat" if len(facts) > 1 else f"One statement of {task} repeats"
        )
        remarks.append(f"{subject} the question of another row; duplicates are asked once.")
    return list(distinct.values())


def _facts(statements: Statements, options: OntologyOptions) -> list[Row]:
    tasks = options.memorizing
    rows = {
        statement.fact_id: {
            "fact_id": statement.fact_id,
            "subject": statement.subject,
            "predicate": PREDICATES[statement.task],
            "object": statement.golds[0],
            "source": options.source,
        }
        for statement in statements.statements
        if statement.task in tasks
    }
    return list(rows.values())


def _frequencies(statements: Statements, options: OntologyOptions) -> list[Row]:
    rows = []
    for task in options.memorizing:
        counts = Counter(gold for statement in statements.for_task(task, "train") for gold in statement.golds)
        for name in (task, f"{task}-choice") if options.choice else (task,):
            rows += [
                {"task": name, "relation": task, "answer": answer, "count": count} for answer, count in counts.items()
            ]
    return rows
