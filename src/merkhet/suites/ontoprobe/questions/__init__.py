"""Questions about an ontology: five memorizing tasks and six reasoning rules."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from merkhet.core.schemas import CANDIDATES, FACTS, FREQUENCIES, PREMISES, QUESTIONS, make_table, validate
from merkhet.questions.question_files import QuestionSet
from merkhet.suites.ontoprobe.options import RULES
from merkhet.suites.ontoprobe.questions.memorizing import candidate_sets, memorizing_questions
from merkhet.suites.ontoprobe.questions.multiple_choice import choice_questions
from merkhet.suites.ontoprobe.questions.ontology_prompts import CONJUNCTIONS, TEMPLATES
from merkhet.suites.ontoprobe.questions.ontology_statements import PREDICATES, TASKS, Statements
from merkhet.suites.ontoprobe.questions.paper_compat import to_paper_statements
from merkhet.suites.ontoprobe.questions.rule_reasoning import reasoning_questions


@dataclass(frozen=True)
class OntologyOptions:
    """Settings of :func:`make_ontology_questions`."""

    suite: str = "ontoprobe"
    tasks: Sequence[str] = TASKS
    """Memorizing tasks."""
    rules: Sequence[str] = tuple(RULES)
    """RDFS rules of the reasoning tasks."""
    templates: Sequence[str] = TEMPLATES
    """Kinds of templates: manual, soft."""
    conjunctions: Sequence[str] = CONJUNCTIONS
    """Kinds of conjunctions between premises and hypothesis: manual, soft."""
    choice: bool = True
    """Whether to make multiple-choice questions too."""
    premises: int | None = None
    """Maximum number of test statements of each rule; None means all."""
    choice_limit: int | None = 500
    """Maximum number of multiple-choice questions of TP and of SCO; None means all."""
    seed: int = 0
    compat: str | None = None
    """``paper`` for the texts and splits of the paper's released code, including its faults."""
    source: str | None = None
    """Source of the statements, for the facts table."""


def make_ontology_questions(statements: Statements, options: OntologyOptions | None = None) -> QuestionSet:
    """Make all questions of the statements, with candidates, premises, frequencies, facts and remarks.

    Frequencies count the gold answers of the training statements, in order of first appearance. A rule needs the
    memorizing questions of its first premises: they are made even if their task is not among ``options.tasks``.
    """
    options = options or OntologyOptions()
    remarks = list(statements.remarks)
    if options.compat == "paper":
        statements = to_paper_statements(statements)
    needed = {*options.tasks, *(RULES.get(rule, rule) for rule in options.rules)}
    tasks = tuple(task for task in TASKS if task in needed)
    common: dict[str, Any] = {"suite": options.suite, "compat": options.compat}
    memorizing_rows = memorizing_questions(statements, templates=options.templates, tasks=tasks, **common)
    rows = _distinct(memorizing_rows, remarks)
    premises: list[dict[str, Any]] = []
    if options.rules:
        reasoning_rows, premises = reasoning_questions(
            statements,
            memorizing_rows,
            rules=options.rules,
            templates=options.templates,
            conjunctions=options.conjunctions,
            premises=options.premises,
            seed=options.seed,
            **common,
        )
        rows += reasoning_rows
        remarks += _missing_control_remarks(premises)
    if options.choice:
        choice_rows, choice_premises = choice_questions(
            statements,
            tasks=tasks,
            rules=options.rules,
            limit=options.choice_limit,
            premises=options.premises,
            seed=options.seed,
            **common,
        )
        rows += choice_rows
        premises += choice_premises
    remarks += _unasked_remarks(statements, memorizing_rows, tasks)
    sets = dict(candidate_sets(statements).values())
    used = {row.get("candidate_set") for row in rows}
    return QuestionSet(
        questions=validate(QUESTIONS, pa.Table.from_pylist(rows, schema=QUESTIONS.schema)),
        candidates=make_table(
            CANDIDATES,
            [{"candidate_set": name, "candidates": list(texts)} for name, texts in sets.items() if name in used],
        ),
        facts=make_table(FACTS, _facts(statements, tasks, options.source)),
        frequencies=make_table(FREQUENCIES, _frequencies(statements, tasks, options.choice)),
        premises=make_table(PREMISES, premises),
        about={"remarks": remarks, "counts": _counts(rows)},
    )


def _distinct(rows: Sequence[dict[str, Any]], remarks: list[str]) -> list[dict[str, Any]]:
    """Drop duplicate questions and add a remark on their number for each task."""
    distinct: dict[str, dict[str, Any]] = {}
    repeated: dict[str, set[str]] = defaultdict(set)
    for row in rows:
        if row["question_id"] in distinct:
            repeated[row["task"]].add(row["qset"])
        distinct.setdefault(row["question_id"], row)
    for task, facts in repeated.items():
        subject = f"{len(facts):,} statements of {task} ask" if len(facts) > 1 else f"One statement of {task} asks"
        remarks.append(f"{subject} what another row asks in the same words; it is asked once.")
    return list(distinct.values())


def _missing_control_remarks(premises: Sequence[Mapping[str, Any]]) -> list[str]:
    counts = Counter(row["shown"] for row in premises)
    missing = counts["second"] - counts["other"]
    return [f"{missing:,} reasoning questions have no control, as every other premise applies."] if missing else []


def _unasked_remarks(statements: Statements, rows: Sequence[Mapping[str, Any]], tasks: Sequence[str]) -> list[str]:
    """Remark on each task and split with statements that gave no question."""
    asked = {(row["task"], row["split"], row["qset"]) for row in rows}
    missing: Counter[tuple[str, str]] = Counter()
    for statement in set(statements.statements):
        if statement.task in tasks and (statement.task, statement.split, statement.fact_id) not in asked:
            missing[statement.task, statement.split] += 1
    return [
        f"{count:,} {'statement' if count == 1 else 'statements'} of {task} in {split} could not be asked: no right "
        "answer is a candidate, or the same is asked in another split."
        for (task, split), count in sorted(missing.items())
    ]


def _facts(statements: Statements, tasks: Sequence[str], source: str | None) -> list[dict[str, Any]]:
    rows = {}
    for statement in statements.statements:
        if statement.task in tasks:
            rows[statement.fact_id] = {
                "fact_id": statement.fact_id,
                "subject": statement.subject,
                "predicate": PREDICATES[statement.task],
                "object": statement.golds[0],
                "source": source,
            }
    return list(rows.values())


def _frequencies(statements: Statements, tasks: Sequence[str], choice: bool) -> list[dict[str, Any]]:
    rows = []
    for task in tasks:
        counts = Counter(gold for statement in statements.for_task(task, "train") for gold in statement.golds)
        for name in (task, f"{task}-choice") if choice else (task,):
            rows += [
                {"task": name, "relation": task, "answer": answer, "count": count} for answer, count in counts.items()
            ]
    return rows


def _counts(rows: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, int]]:
    counts: dict[str, dict[str, int]] = {}
    for row in rows:
        by_split = counts.setdefault(str(row["task"]), {})
        by_split[str(row["split"])] = by_split.get(str(row["split"]), 0) + 1
    return counts
