"""Baselines do not see the answers of the questions that they are asked, whatever the suite and the limit."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from all_cases import check_all
from small_questions import asked_questions, small_questions

import merkhet
from merkhet.core.errors import InputError
from merkhet.core.schemas import FACTS, FREQUENCIES, QUESTIONS, make_table
from merkhet.models import MODELS
from merkhet.models.loading import load_model
from merkhet.models.protocol import NeedsAllQuestions
from merkhet.questions.answer_counts import add_unasked_counts
from merkhet.questions.question_files import QuestionSet, read_questions, write_questions
from merkhet.suites import SUITES

BASELINES = [name for name in MODELS if MODELS.about(name).startswith("baseline")]


@pytest.fixture(scope="module", params=sorted(SUITES))
def built(request: Any, made_once: Callable[..., Path]) -> tuple[str, Path]:
    """A suite, and the folder of its questions."""
    return request.param, small_questions(made_once, request.param)


def candidate_scores(asked: QuestionSet, baseline: str) -> dict[tuple[Any, ...], list[float]]:
    model, questions = load_model(baseline), asked.as_questions()
    if isinstance(model, NeedsAllQuestions):
        model.prepare(questions, asked.frequencies.to_pylist())
    found = {}
    for compares in (False, True):
        own = [question for question in questions if bool(question.words) == compares]
        score = getattr(model, "compare_senses" if compares else "score_candidates", None)
        for result in score(own, ["m"]) if score else ():
            for method, scores in (result.by_method or {}).items():
                found[own[result.index].question_id, method, result.repeat] = list(scores)
    return found


def with_other_answers(folder: Path, asked: QuestionSet, out: Path) -> Path:
    """The questions of a folder in which every asked question has another candidate as its only right answer."""
    question_set = read_questions(folder)
    offered = {question.question_id: question.candidates for question in question_set.as_questions()}
    chosen = set(asked.questions["question_id"].to_pylist())
    rows = question_set.questions.to_pylist()
    for row in rows:
        if row["question_id"] in chosen:
            others = [text for text in offered[row["question_id"]] if text not in row["answers"]]
            row["target"] = others[0] if others else row["target"]
            row["answers"] = [row["target"]]
    table = pa.Table.from_pylist(rows, schema=QUESTIONS.schema)
    write_questions(replace(question_set, questions=table), out)
    return out


def test_no_baseline_depends_on_the_answers_of_asked_questions(built: tuple[str, Path], tmp_path: Path) -> None:
    name, folder = built

    def check(limit: int | None) -> None:
        asked = asked_questions(name, folder, limit)
        changed = asked_questions(name, with_other_answers(folder, asked, tmp_path / str(limit)), limit)
        assert changed.questions["question_id"].equals(asked.questions["question_id"])
        assert changed.questions["target"] != asked.questions["target"]
        assert changed.frequencies.equals(asked.frequencies)
        for baseline in BASELINES if limit else ():
            assert candidate_scores(changed, baseline) == candidate_scores(asked, baseline), baseline

    check_all(check, [3, 20, None])


def test_counts_share_no_fact_with_asked_questions(built: tuple[str, Path]) -> None:
    """Each counted answer is that of a question, not asked, about other facts; with a limit there are such answers."""
    name, folder = built
    whole = read_questions(folder)
    asked = asked_questions(name, folder, 20)
    used = {fact for facts in asked.questions["facts"].to_pylist() for fact in facts or ()}
    prompts = set(asked.questions["prompt"].to_pylist())
    free: dict[tuple[str, str, str], set[str]] = {}
    for row in whole.questions.to_pylist():
        if row["prompt"] not in prompts and not used & set(row["facts"] or ()):
            relation = (row["template"] or row["task"]).split("/")[0]
            for answer in row["answers"]:
                free.setdefault((row["task"], relation, answer), set()).add(str(row["facts"] or row["question_id"]))
    counted = asked.frequencies.to_pylist()
    assert counted
    for row in counted:
        of_questions = len(free.get((row["task"], row["relation"], row["answer"]), ()))
        assert row["count"] <= of_questions or not _has_unasked_facts(whole, row), row


def _has_unasked_facts(whole: QuestionSet, row: dict[str, Any]) -> bool:
    """Whether an answer count is of questions, and not of facts that were never made into questions."""
    return row not in whole.frequencies.to_pylist()


def own_questions(path: Path, count: int = 30, **columns: Callable[[int], Any]) -> Path:
    rows = [
        {"prompt": f"The code of item {number} is [MASK].", "answers": [f"code {number}"]}
        | {name: value(number) for name, value in columns.items()}
        for number in range(count)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def test_own_questions_whose_answers_are_all_different_have_no_frequency_baseline(tmp_path: Path) -> None:
    for limit in (None, 10):
        run = merkhet.run(
            "quickstart",
            data=own_questions(tmp_path / "own.jsonl"),
            models=["random", "frequency", "train-frequency"],
            limit=limit,
            settings=["report=none"],
            out=tmp_path / f"run-{limit}",
        )
        assert set(run.scores["model"].to_pylist()) == {"random"}
        told = [sentence for sentence in run.findings["sentences"] if "left out" in sentence]
        assert [sentence.split(" is left out: ")[0] for sentence in told] == ["frequency", "train-frequency"]
        assert not any("every model" in sentence for sentence in run.findings["sentences"])


def test_tasks_that_are_balanced_by_design_have_no_frequency_baseline(tmp_path: Path) -> None:
    run = merkhet.run(
        "quickstart", models=["random", "frequency"], limit=4, settings=["report=none"], out=tmp_path / "run"
    )
    asked = {row["task"] for row in run.scores.to_pylist() if row["model"] == "frequency"}
    assert asked == {"completion"}
    (told,) = [sentence for sentence in run.findings["sentences"] if sentence.startswith("frequency is not asked ")]
    assert told.endswith(": by design, right answers are equally frequent there.")
    assert "checking" in told and "distinction" in told


def test_a_run_of_a_frequency_baseline_alone_is_refused_without_counts(tmp_path: Path) -> None:
    data = own_questions(tmp_path / "own.jsonl")
    with pytest.raises(InputError, match="no frequency baseline can be asked: answers are counted in training"):
        merkhet.run("quickstart", data=data, models=["frequency"], settings=["report=none"], out=tmp_path / "run")


def test_answers_of_training_questions_are_counted(tmp_path: Path) -> None:
    data = own_questions(
        tmp_path / "own.jsonl",
        answers=lambda number: ["red" if number % 3 else "blue"],
        split=lambda number: "train" if number < 20 else "test",
    )
    asked = asked_questions("kmir", data, None)
    assert {row["answer"]: row["count"] for row in asked.frequencies.to_pylist()} == {"red": 13, "blue": 7}
    run = merkhet.run("kmir", data=data, models=["frequency"], settings=["report=none"], out=tmp_path / "run")
    [score] = [row for row in run.scores.to_pylist() if row["metric"] == "accuracy" and row.get("domain") is None][:1]
    assert score["n"] == 10 and 0 < score["value"] < 1


def test_paraphrases_inverses_and_premises_are_not_counted() -> None:
    """A pool question is counted only if nothing ties it to the asked fact."""
    facts = [
        {"fact_id": "f1", "subject": "france", "predicate": "borders", "object": "spain"},
        {"fact_id": "f2", "subject": "spain", "predicate": "borders", "object": "france"},
        {"fact_id": "f3", "subject": "france", "predicate": "touches", "object": "europe", "premises": ["f1"]},
        {"fact_id": "f4", "subject": "oslo", "predicate": "lies-in", "object": "norway"},
    ]

    def question(prompt: str, *ids: str, **columns: Any) -> dict[str, Any]:
        row = {"task": "t", "prompt": f"{prompt} [MASK]", "answers": ["x"], "choices": ["x", "y"], "facts": list(ids)}
        return {**row, "target": "x", **columns}

    asked = question("asked", "f1", qset="set")
    cases = {
        "another fact": (question("other", "f4"), 1),
        "a paraphrase": (question("paraphrase", "f1"), 0),
        "an inverse": (question("inverse", "f2"), 0),
        "a conclusion": (question("conclusion", "f3"), 0),
        "a premise of the question": (question("reasoning", "f4", "f1"), 0),
        "the same set": (question("set", "f4", qset="set"), 0),
        "the same prompt": (question("ASKED ", "f4"), 0),
        "no fact": (question("unknown"), 0),
        "no fact, in training": (question("unknown", split="train"), 1),
        "another task": (question("other", "f4", task="u"), 0),
    }

    def check(label: str) -> None:
        other, count = cases[label]
        pool = make_table(QUESTIONS, [asked, other])
        chosen = pool.filter(pa.array([True, False]))
        counts = add_unasked_counts(make_table(FREQUENCIES, []), pool, chosen, make_table(FACTS, facts))
        assert sum(row["count"] for row in counts.to_pylist()) == count

    check_all(check, list(cases))
