"""Memorizing questions: clozes for types, superclasses, superproperties, domains and ranges."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from merkhet.core.schemas import candidate_set_id, question_id
from merkhet.suites.ontoprobe.questions.ontology_prompts import TEMPLATES, check_names, make_wording
from merkhet.suites.ontoprobe.questions.ontology_statements import TASKS, Statement, Statements

Row = dict[str, Any]
CLASS_TASKS = ("TP", "SCO", "DM", "RG")


def candidate_sets(statements: Statements) -> dict[str, tuple[str, tuple[str, ...]]]:
    """Build the candidate set of each memorizing task and each rule.

    The candidates are classes, properties, or for rdfs7 the infixes of property patterns.

    Returns:
        Set id and candidates by task or rule; ``"relations"`` is the set of predisposition questions about relations.
    """
    infixes = tuple(
        dict.fromkeys(
            statements.patterns[label].infix for label in statements.properties if label in statements.patterns
        )
    )
    sets = {}
    for name, texts, users in (
        ("classes", statements.classes, (*CLASS_TASKS, "rdfs2", "rdfs3", "rdfs9", "rdfs11")),
        ("properties", statements.properties, ("SPO", "rdfs5")),
        ("patterns", infixes, ("rdfs7", "relations")),
    ):
        sets.update(dict.fromkeys(users, (candidate_set_id(name, texts), texts)))
    return sets


def nearest_candidate(golds: Sequence[str], candidates: frozenset[str]) -> str | None:
    """Return the first gold answer that is a candidate; golds are ordered nearest first."""
    return next((gold for gold in golds if gold in candidates), None)


def memorizing_questions(
    statements: Statements,
    *,
    suite: str = "ontoprobe",
    templates: Sequence[str] = TEMPLATES,
    tasks: Sequence[str] = TASKS,
    compat: str | None = None,
) -> list[Row]:
    """Make a question for each statement of ``tasks`` and each of its templates, as rows of the questions table.

    Duplicate statements give duplicate rows. A statement without a gold answer among the candidates gives none. A
    prompt of the test split is removed from the other splits, except with ``compat="paper"``.
    """
    check_names("template", list(templates), TEMPLATES)
    check_names("task", list(tasks), TASKS)
    wording = make_wording(statements, compat)
    sets = candidate_sets(statements)
    candidates = {task: frozenset(texts) for task, (_, texts) in sets.items()}
    rows = []
    for statement in statements.statements:
        if statement.task not in tasks:
            continue
        target = nearest_candidate(statement.golds, candidates[statement.task])
        if target is None:
            continue
        shared = memorizing_row(statement, target, suite)
        shared["candidate_set"] = sets[statement.task][0]
        for template in templates:
            for name, prompt in wording.prompts(statement, template):
                row = {**shared, "prompt": prompt, "template": name}
                row["question_id"] = question_id(row)
                rows.append(row)
    tested = set() if compat == "paper" else {(row["task"], row["prompt"]) for row in rows if row["split"] == "test"}
    return [row for row in rows if row["split"] == "test" or (row["task"], row["prompt"]) not in tested]


def memorizing_row(statement: Statement, target: str, suite: str) -> Row:
    """Fill the columns that all memorizing questions of a statement share."""
    fact = statement.fact_id
    return {
        "suite": suite,
        "task": statement.task,
        "language": "en",
        "answers": list(statement.golds),
        "target": target,
        "facts": [fact],
        "qset": fact,
        "split": statement.split,
    }
