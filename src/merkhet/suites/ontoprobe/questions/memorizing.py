"""Memorizing questions: clozes for types, superclasses, superproperties, domains and ranges."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from merkhet.core.schemas import candidate_set_id, question_id
from merkhet.suites.ontoprobe.questions.ontology_prompts import OntologyOptions, make_wording
from merkhet.suites.ontoprobe.questions.ontology_statements import Statement, Statements

Row = dict[str, Any]


def candidate_sets(statements: Statements) -> dict[str, tuple[str, tuple[str, ...]]]:
    """Build the candidate set of each memorizing task and each rule.

    Candidates are labels of classes or properties. For rdfs7, they are the pattern texts between [X] and [Y].

    Returns:
        Set id and candidates by task or rule. The key ``"relations"`` is for predisposition questions about relations.
    """
    infixes = tuple(dict.fromkeys(statements.infixes(statements.properties)))
    sets = {}
    for name, texts, users in (
        ("classes", statements.classes, ("TP", "SCO", "DM", "RG", "rdfs2", "rdfs3", "rdfs9", "rdfs11")),
        ("properties", statements.properties, ("SPO", "rdfs5")),
        ("patterns", infixes, ("rdfs7", "relations")),
    ):
        sets.update(dict.fromkeys(users, (candidate_set_id(name, texts), texts)))
    return sets


def nearest_candidate(golds: Sequence[str], candidates: frozenset[str]) -> str | None:
    """Return the first gold answer that is a candidate, or None; ``golds`` begin with the nearest class or property."""
    return next((gold for gold in golds if gold in candidates), None)


def question_row(statement: Statement, task: str, prompt: str, answers: Sequence[str], **columns: Any) -> Row:
    """Make a row of the questions table about a statement, without the question id."""
    row = {"suite": "ontoprobe", "task": task, "language": "en", "prompt": prompt, "answers": list(answers)}
    return row | {"facts": [statement.fact_id], "qset": statement.fact_id, "split": statement.split} | columns


def memorizing_questions(statements: Statements, options: OntologyOptions) -> list[Row]:
    """Make a row of the questions table for each statement and each template of its task.

    Duplicate statements give duplicate rows. A statement gives no row if none of its gold answers is a candidate.
    Prompts of the test split are removed from the other splits, except with ``compat="paper"``.
    """
    wording = make_wording(statements, options.compat)
    sets = candidate_sets(statements)
    candidates = {task: frozenset(texts) for task, (_, texts) in sets.items()}
    tasks, rows = options.memorizing, []
    for statement in statements.statements:
        task = statement.task
        target = nearest_candidate(statement.golds, candidates[task]) if task in tasks else None
        if target is None:
            continue
        columns = {"target": target, "candidate_set": sets[task][0]}
        for template in options.templates:
            for name, prompt in wording.prompts(statement, template):
                row = question_row(statement, task, prompt, statement.golds, **columns, template=name)
                rows.append(row | {"question_id": question_id(row)})
    if options.compat == "paper":
        return rows
    tested = {(row["task"], row["prompt"]) for row in rows if row["split"] == "test"}
    return [row for row in rows if row["split"] == "test" or (row["task"], row["prompt"]) not in tested]
