"""Controls are asked beside the questions, scored beside the models, and kept by shards."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from small_packs import run_small, small_pack

import merkhet
from merkhet.api import run_shard
from merkhet.core.errors import InputError
from merkhet.core.records import Question
from merkhet.engine._run_collection import collect_runs
from merkhet.engine._shared_prompts import ask_once
from merkhet.engine.combine_runs import report_data
from merkhet.engine.distribute.merge_shards import merge_runs
from merkhet.models.association_baseline import AssociationBaseline
from merkhet.models.loading import load_model
from merkhet.models.protocol import NO_GOLD
from merkhet.probes.rank import rank_candidates
from merkhet.reports.table_writers import as_csv
from merkhet.reports.tables import score_report_table

LIMIT = 30


@pytest.fixture(scope="module")
def run(made_once: Any, model_folders: Any) -> merkhet.Run:
    """A run of a tiny model with its controls."""
    folder = str(model_folders["bert-uncased"])
    settings = ["controls=[association, subject-blind]", "report=html"]
    pack = small_pack(made_once)
    made = made_once(
        "controlled-run",
        lambda out: run_small(pack, out / "run", folder, "random", "frequency", limit=LIMIT, settings=settings),
    )
    return merkhet.open_run(made / "run")


def control_rows(run: merkhet.Run, control: str) -> dict[str, dict[str, Any]]:
    return {row["task"]: row for row in run.control_scores if row["control"] == control}


def accuracy_by_task(questions: dict[str, Question], answers: Any) -> dict[str, float]:
    """The mean over questions of the probability that a right answer is first, with ties broken at random."""
    values: dict[str, list[float]] = {}
    for answer in answers:
        if answer.unusable is None:
            best = max(score for _, score in answer.ranked)
            first = [candidate for candidate, score in answer.ranked if score == best]
            question = questions[answer.question_id]
            values.setdefault(question.task, []).append(sum(text in question.answers for text in first) / len(first))
    return {task: float(np.mean(of_task)) for task, of_task in values.items()}


def test_association_is_that_of_the_models_own_embeddings(run: merkhet.Run, model_folders: Any) -> None:
    questions = {question.question_id: question for question in run.questions.as_questions()}
    baseline = AssociationBaseline(str(model_folders["bert-uncased"]))
    expected = accuracy_by_task(questions, rank_candidates(baseline, list(questions.values())))
    rows = control_rows(run, "association")
    # There are no training questions to fit the threshold of statements on.
    assert set(expected) == {"completion", "distinction"} and rows["checking"]["value"] is None
    assert {task: rows[task]["value"] for task in expected} == pytest.approx(expected)
    assert {row["model"] for row in run.control_scores} == {"bert-uncased"}


def test_subject_blind_asks_the_same_without_the_subject(run: merkhet.Run, model_folders: Any) -> None:
    hidden = dict(zip(*(run.questions.controls[name].to_pylist() for name in ("question_id", "prompt")), strict=True))
    questions = {question.question_id: question for question in run.questions.as_questions()}
    asked = [replace(questions[name], prompt=prompt) for name, prompt in hidden.items()]
    assert asked and all(question.prompt != questions[question.question_id].prompt for question in asked)
    model = load_model(str(model_folders["bert-uncased"]))
    one_by_one = [answer for question in asked for answer in rank_candidates(model, [question])]
    expected = accuracy_by_task(questions, one_by_one)
    rows = control_rows(run, "subject-blind")
    assert {task: row["value"] for task, row in rows.items()} == pytest.approx(expected)
    answers = pq.read_table(run.folder / "control_answers.parquet").to_pylist()
    assert {row["control"] for row in answers} == {"association", "subject-blind"}


def test_the_main_table_shows_controls_beside_scores(run: merkhet.Run) -> None:
    table = score_report_table(report_data(collect_runs([run]), run.findings))
    rows = {row["model"]: row for row in csv.DictReader(io.StringIO(as_csv(table)))}
    score = control_rows(run, "association")["completion"]["value"]
    assert float(rows["bert-uncased"]["completion R@1, association"]) == pytest.approx(score)
    assert rows["random"]["completion R@1, association"] == rows["random"]["completion R@1, subject-blind"] == ""
    heads = list(rows["random"])
    assert heads.index("completion R@1") < heads.index("completion R@1, association") < heads.index("checking accuracy")
    page = run.report.read_text()
    assert "completion R@1, association" in page and "own input embeddings get right" in page


def test_findings_compare_a_model_with_its_controls(run: merkhet.Run) -> None:
    found = [row for row in run.findings["findings"] if row["kind"] == "control"]
    assert {(row["model"], row["control"], row["task"]) for row in found} == {
        ("bert-uncased", "association", "completion"),
        ("bert-uncased", "association", "distinction"),
        *(("bert-uncased", "subject-blind", task) for task in ("completion", "checking")),
    }
    # A question that the model cannot be asked, or only one of both, is left out of the comparison.
    by_task = control_rows(run, "association")
    rows = {row["task"]: row for row in found if row["control"] == "association"}
    assert all(row["n"] <= by_task[task]["n"] for task, row in rows.items())
    assert any("its own word association" in sentence for sentence in run.findings["sentences"])


def test_a_study_chooses_its_controls(made_once: Any, model_folders: Any, tmp_path: Path) -> None:
    folder, pack = str(model_folders["bert-uncased"]), small_pack(made_once)
    none = run_small(pack, tmp_path / "none", folder, limit=5, settings=["controls=[]"])
    assert none.control_scores == []
    assert not any(row["kind"] == "control" for row in none.findings["findings"])
    one = run_small(pack, tmp_path / "one", folder, limit=5, settings=["controls=association"])
    assert {row["control"] for row in one.control_scores} == {"association"}
    with pytest.raises(InputError, match="controls"):
        run_small(pack, tmp_path / "other", folder, limit=5, settings=["controls=guesses"])


def test_shards_keep_controls(made_once: Any, run: merkhet.Run, model_folders: Any, tmp_path: Path) -> None:
    """Merged shards have the controls of the whole run, byte for byte."""
    options: dict[str, Any] = {
        "models": [str(model_folders["bert-uncased"]), "random", "frequency"],
        "knowledge": [str(small_pack(made_once))],
        "limit": LIMIT,
        "settings": ["report=html"],
    }
    shards = [run_shard("quickstart", f"{n}/2", out=tmp_path / str(n), **options).folder for n in (1, 2)]
    merged = merge_runs(shards, tmp_path / "merged")
    assert merged.control_scores == run.control_scores
    assert merged.findings == run.findings


def test_questions_that_look_alike_are_asked_once(model_folders: Any) -> None:
    """Each gets the answer that it would get alone, by every right answer that it has."""
    model = load_model(str(model_folders["bert-uncased"]))
    candidates, other = ("Paris", "Berlin", "Rome", "metal"), ("Paris", "Berlin")
    golds = [("Paris",), ("Rome", "Berlin"), ("metal",), ("gold",)]
    prompt = "The capital of this country is [MASK]."
    questions = [
        Question(f"q{number}", "t", prompt, answers, answers[0], candidates) for number, answers in enumerate(golds)
    ]
    questions += [Question("short", "t", prompt, ("Berlin",), "Berlin", other)]
    questions += [Question("else", "t", "Rome is [MASK].", ("metal",), "metal", candidates)]
    asked: list[str] = []

    def ask(block: Any) -> Any:
        asked.extend(question.question_id for question in block)
        return rank_candidates(model, block)

    together = {answer.question_id: answer for answer in ask_once(questions, ask)}
    assert asked == ["q0", "short", "else"] and together.keys() == {question.question_id for question in questions}
    for question in questions:
        (alone,) = rank_candidates(model, [question])
        shared = together[question.question_id]
        assert (shared.golds, shared.gold_ranks, shared.gold_ties) == (alone.golds, alone.gold_ranks, alone.gold_ties)
        assert shared.unusable == alone.unusable
        assert [name for name, _ in shared.ranked] == ([name for name, _ in alone.ranked] or [])
    assert together["q3"].unusable == NO_GOLD


def test_controls_are_recorded_as_plain_json(run: merkhet.Run) -> None:
    content = json.loads((run.folder / "control_scores.json").read_text())
    assert content.keys() == {"scores", "findings"}
    keys = {"control", "model", "task", "probe", "method", "metric", "value", "low", "high", "n", "unusable", "chance"}
    assert all(keys <= row.keys() for row in content["scores"])
