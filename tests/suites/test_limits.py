"""A limit means items in every suite: their paraphrases, masked names and premise settings come along."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import pytest
from small_questions import asked_questions, small_questions

import merkhet
from merkhet.questions.question_files import QuestionSet
from merkhet.suites import SUITES

LIMIT = 7


def items_of(asked: QuestionSet) -> dict[str, dict[str, set[str]]]:
    """Return the question ids of each item, by task; a question about word senses is an item of its own."""
    found: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    clusters = asked.clusters()
    for row in asked.questions.to_pylist():
        item = row["question_id"] if row["words"] else clusters[row["question_id"]]
        found[row["task"]][item].add(row["question_id"])
    return found


@pytest.mark.parametrize("suite", sorted(SUITES))
def test_a_limit_is_a_number_of_whole_items(suite: str, made_once: Callable[..., Path]) -> None:
    folder = small_questions(made_once, suite)
    asked = asked_questions(suite, folder, LIMIT)
    every, drawn = items_of(asked_questions(suite, folder, None)), items_of(asked)
    needed = {
        name
        for row in asked.premise_questions.to_pylist()
        for column in ("first", "second")
        for name in row[column] or ()
    }
    assert drawn.keys() == every.keys()
    for task, items in drawn.items():
        added = {item for item, ids in items.items() if ids & needed}
        whole = [item for item, ids in items.items() if ids == every[task][item]]
        size = min(LIMIT, len(every[task]))
        assert size <= len(whole) and len(set(items) - added) <= size, task
        assert set(items) - set(whole) <= added, task


def test_a_limit_keeps_every_premise_setting(made_once: Callable[..., Path]) -> None:
    folder = small_questions(made_once, "ontoprobe")

    def settings(limit: int | None) -> set[tuple[str, str]]:
        asked = asked_questions("ontoprobe", folder, limit)
        tasks = {row["question_id"]: row["task"] for row in asked.questions.to_pylist()}
        shown = asked.premise_questions.to_pylist()
        return {(tasks[row["question_id"]], row["shown"]) for row in shown if row["question_id"] in tasks}

    assert len({setting for task, setting in settings(None) if task == "rdfs9"}) == 5
    assert settings(1) == settings(None)


def test_facts_that_are_asked_about_in_two_ways_count_once(tmp_path: Path) -> None:
    facts = [f"s{number},near,o{number}" for number in range(20)]
    (tmp_path / "facts.csv").write_text("\n".join(["subject,predicate,object", *facts]) + "\n")
    templates = "relations: {near: {ask: [object, subject], templates: ['{subject} is near {object}.']}}"
    (tmp_path / "words.yaml").write_text(templates)
    made = merkhet.build(
        "quickstart",
        knowledge=[str(tmp_path / "facts.csv")],
        tasks=["completion"],
        limit=LIMIT,
        settings=[f"options.templates={tmp_path / 'words.yaml'}"],
        out=tmp_path / "made",
    )
    assert sorted(len(ids) for ids in items_of(made)["completion"].values()) == [2] * LIMIT
