"""Questions about an ontology: does a model know it, and does it see what follows? Five cloze tasks and six rules."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from merkhet.core.schemas import CANDIDATES, FACTS, FREQUENCIES, PREMISES, QUESTIONS, make_table, validate
from merkhet.questions.question_files import QuestionSet
from merkhet.suites.ontoprobe.questions.memorizing import candidate_sets, memorizing_questions
from merkhet.suites.ontoprobe.questions.multiple_choice import choice_questions
from merkhet.suites.ontoprobe.questions.ontology_prompts import CONJUNCTIONS, RULES, TEMPLATES
from merkhet.suites.ontoprobe.questions.ontology_statements import RELATIONS, TASKS, Statements
from merkhet.suites.ontoprobe.questions.paper_compat import as_released
from merkhet.suites.ontoprobe.questions.rule_reasoning import reasoning_questions


@dataclass(frozen=True)
class OntologyOptions:
    """What is asked: tasks, rules and forms; how much of it; and ``source``, where the statements come from.

    ``premises`` is the most test statements of each rule, ``choice_limit`` of TP and of SCO as multiple choice; None
    means all. ``compat="paper"`` gives the texts and splits of the paper's released code, with its faults.
    """

    suite: str = "ontoprobe"
    tasks: Sequence[str] = TASKS
    rules: Sequence[str] = tuple(RULES)
    templates: Sequence[str] = TEMPLATES
    conjunctions: Sequence[str] = CONJUNCTIONS
    choice: bool = True
    premises: int | None = None
    choice_limit: int | None = 500
    seed: int = 0
    compat: str | None = None
    source: str | None = None


def make_ontology_questions(statements: Statements, options: OntologyOptions | None = None) -> QuestionSet:
    """All questions of some statements, with candidates, premises, frequencies, facts and what there is to remark.

    Frequencies are those of the right answers of the training statements, in the order in which they first appear. A
    rule needs the memorizing questions of its first premises: these are asked too where the task is left out.
    """
    options = options or OntologyOptions()
    remarks = list(statements.remarks)
    if options.compat == "paper":
        statements = as_released(statements)
    wanted = {*options.tasks, *(RULES.get(rule, rule) for rule in options.rules)}
    needed = tuple(task for task in TASKS if task in wanted)
    common: dict[str, Any] = {"suite": options.suite, "compat": options.compat}
    asked = memorizing_questions(statements, templates=options.templates, tasks=needed, **common)
    rows = _distinct(asked, remarks)
    premises: list[dict[str, Any]] = []
    if options.rules:
        reasoned, premises = reasoning_questions(
            statements,
            asked,
            rules=options.rules,
            templates=options.templates,
            conjunctions=options.conjunctions,
            premises=options.premises,
            seed=options.seed,
            **common,
        )
        rows += reasoned
        remarks += _controls(premises)
    if options.choice:
        chosen, more = choice_questions(
            statements,
            tasks=needed,
            rules=options.rules,
            limit=options.choice_limit,
            premises=options.premises,
            seed=options.seed,
            **common,
        )
        rows += chosen
        premises += more
    remarks += _left_out(statements, asked, needed)
    sets = dict(candidate_sets(statements).values())
    used = {row.get("candidate_set") for row in rows}
    return QuestionSet(
        questions=validate(QUESTIONS, pa.Table.from_pylist(rows, schema=QUESTIONS.schema)),
        candidates=make_table(
            CANDIDATES,
            [{"candidate_set": name, "candidates": list(texts)} for name, texts in sets.items() if name in used],
        ),
        facts=make_table(FACTS, _facts(statements, needed, options.source)),
        frequencies=make_table(FREQUENCIES, _frequencies(statements, needed, options.choice)),
        premises=make_table(PREMISES, premises),
        about={"remarks": remarks, "counts": _counts(rows)},
    )


def _distinct(rows: Sequence[dict[str, Any]], remarks: list[str]) -> list[dict[str, Any]]:
    """The rows without those that ask again what is asked already, which are counted by task."""
    found: dict[str, dict[str, Any]] = {}
    again: dict[str, set[str]] = defaultdict(set)
    for row in rows:
        if row["question_id"] in found:
            again[row["task"]].add(row["qset"])
        found.setdefault(row["question_id"], row)
    for task, facts in again.items():
        many = f"{len(facts):,} statements of {task} ask" if len(facts) > 1 else f"One statement of {task} asks"
        remarks.append(f"{many} what another row asks in the same words; it is asked once.")
    return list(found.values())


def _controls(premises: Sequence[Mapping[str, Any]]) -> list[str]:
    shown = Counter(row["shown"] for row in premises)
    missing = shown["second"] - shown["other"]
    return [f"{missing:,} reasoning questions have no control, as every other premise applies."] if missing else []


def _left_out(statements: Statements, rows: Sequence[Mapping[str, Any]], tasks: Sequence[str]) -> list[str]:
    """A sentence for each task and split with statements that gave no question."""
    asked = {(row["task"], row["split"], row["qset"]) for row in rows}
    missing: Counter[tuple[str, str]] = Counter()
    for one in set(statements.statements):
        if one.task in tasks and (one.task, one.split, one.fact_id) not in asked:
            missing[one.task, one.split] += 1
    return [
        f"{count:,} {'statement' if count == 1 else 'statements'} of {task} in {split} could not be asked: no right "
        "answer is a candidate, or the same is asked in another split."
        for (task, split), count in sorted(missing.items())
    ]


def _facts(statements: Statements, tasks: Sequence[str], source: str | None) -> list[dict[str, Any]]:
    found = {}
    for one in statements.statements:
        if one.task in tasks:
            row = {"fact_id": one.fact_id, "subject": one.subject, "predicate": RELATIONS[one.task]}
            found[row["fact_id"]] = {**row, "object": one.golds[0], "source": source}
    return list(found.values())


def _frequencies(statements: Statements, tasks: Sequence[str], choice: bool) -> list[dict[str, Any]]:
    rows = []
    for task in tasks:
        counts = Counter(gold for one in statements.of(task, "train") for gold in one.golds)
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
