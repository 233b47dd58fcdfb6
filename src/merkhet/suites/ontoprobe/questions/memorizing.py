"""Memorizing questions: what class, superclass, superproperty, domain or range something has, as a cloze."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from merkhet.core.schemas import candidate_set_id, question_id
from merkhet.suites.ontoprobe.questions.ontology_prompts import TEMPLATES, check_names, wording_of
from merkhet.suites.ontoprobe.questions.ontology_statements import TASKS, Statement, Statements

Row = dict[str, Any]
CLASS_TASKS = ("TP", "SCO", "DM", "RG")


def candidate_sets(statements: Statements) -> dict[str, tuple[str, tuple[str, ...]]]:
    """The id and the candidates of the set that each memorizing task and each rule is asked among.

    Classes, properties, and for rdfs7 the words between the two things of each property's pattern.
    """
    pieces = tuple(
        dict.fromkeys(statements.patterns[one].piece for one in statements.properties if one in statements.patterns)
    )
    found = {}
    for name, texts, users in (
        ("classes", statements.classes, (*CLASS_TASKS, "rdfs2", "rdfs3", "rdfs9", "rdfs11")),
        ("properties", statements.properties, ("SPO", "rdfs5")),
        ("patterns", pieces, ("rdfs7", "relations")),
    ):
        found.update(dict.fromkeys(users, (candidate_set_id(name, texts), texts)))
    return found


def nearest(golds: Sequence[str], candidates: frozenset[str]) -> str | None:
    """The nearest right answer that is a candidate, if there is one."""
    return next((gold for gold in golds if gold in candidates), None)


def memorizing_questions(
    statements: Statements,
    *,
    suite: str = "ontoprobe",
    templates: Sequence[str] = TEMPLATES,
    tasks: Sequence[str] = TASKS,
    compat: str | None = None,
) -> list[Row]:
    """A question for each statement of these tasks and each of its templates, as rows of the questions table.

    Statements that say the same give the same rows. One without a right answer among the candidates gives none, and
    what is asked in test is not asked in another split too (but with ``compat="paper"``).
    """
    check_names("template", list(templates), TEMPLATES)
    check_names("task", list(tasks), TASKS)
    wording = wording_of(statements, compat)
    sets = candidate_sets(statements)
    among = {task: frozenset(texts) for task, (_, texts) in sets.items()}
    rows = []
    for one in statements.statements:
        if one.task not in tasks:
            continue
        target = nearest(one.golds, among[one.task])
        if target is None:
            continue
        shared = row_of(one, target, suite)
        shared["candidate_set"] = sets[one.task][0]
        for template in templates:
            for name, prompt in wording.asked(one, template):
                row = {**shared, "prompt": prompt, "template": name}
                row["question_id"] = question_id(row)
                rows.append(row)
    tested = set() if compat == "paper" else {(one["task"], one["prompt"]) for one in rows if one["split"] == "test"}
    return [one for one in rows if one["split"] == "test" or (one["task"], one["prompt"]) not in tested]


def row_of(statement: Statement, target: str, suite: str) -> Row:
    """What all memorizing questions of a statement have in common."""
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
