"""Learning as a step of a run: done once, asked by its record, done again when anything it depends on has changed."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from writing_models import questions

from merkhet.core.errors import InputError
from merkhet.core.progress import SilentProgress
from merkhet.core.schemas import ANSWERS, QUESTIONS, make_table, read_table, write_table
from merkhet.engine._ask_step import ask
from merkhet.engine.asker import AskParams, AskRuntime, ModelRuntime
from merkhet.engine.executor import Outcome, execute
from merkhet.engine.plan import Plan, Step
from merkhet.engine.training_steps import TrainParams, learn
from merkhet.metrics.text_overlap import exact_match
from merkhet.models.model_lookup import ModelSpec, resolve_model
from merkhet.questions.question_files import QuestionSet, write_questions

SETTINGS = {"epochs": 150, "learning_rate": 1e-2, "batch_size": 4, "largest_gradient": 100.0, "patience": 150}
STEM = ".merkhet/learned/00-bert-completion"
LEARNED = (f"{STEM}/learned.json", f"{STEM}/model.safetensors")
FILES = ("questions.parquet", "candidates.parquet", "facts.parquet", "frequencies.parquet")


def prepare(folder: Path) -> Path:
    """A run's folder with questions of two tasks; those to learn from are the same, for training and for dev."""
    rows = [
        {
            "task": task,
            "prompt": q.prompt,
            "answers": list(q.answers),
            "target": q.target,
            "choices": list(q.candidates),
        }
        for q in questions()
        for task in ("completion", "checking")
    ]
    (folder / ".merkhet").mkdir(parents=True)
    write_questions(QuestionSet(make_table(QUESTIONS, rows)), folder)
    training = [{**row, "suite": split, "split": split} for split in ("train", "dev") for row in rows]
    write_table(QUESTIONS, make_table(QUESTIONS, training), folder / "training.parquet")
    return folder


def plan(folder: Path, *, task: str = "completion", settings=SETTINGS, seed: int = 3) -> Plan:
    spec = ModelSpec(str(folder))
    model = resolve_model(spec)
    runtime = ModelRuntime(spec, "bert")
    name = f"{model.name} (tuned)"
    learning = TrainParams(
        name, model.kind, model.fingerprint, "auto", settings, seed, task=task, learner="cloze", identity="cloze"
    )
    asking = AskParams(name, model.kind, model.fingerprint, "auto", "write", "write", tasks=(task,), learned=LEARNED[0])
    inputs = ("training.parquet", "candidates.parquet")
    answers = (".merkhet/answers/00.parquet", ".merkhet/answers/00.json")
    return Plan(
        (
            Step("learn", "learn", learn, learning, runtime, inputs, LEARNED),
            Step("ask", "ask", ask, asking, AskRuntime(spec, "bert"), (*FILES, *LEARNED), answers),
        )
    )


@pytest.fixture
def bert(writer_folders: dict[str, Path], tmp_path: Path) -> Path:
    return Path(shutil.copytree(writer_folders["bert"], tmp_path / "bert"))


def run(folder: Path, steps: Plan) -> Outcome:
    return execute(steps, folder, folder, SilentProgress())


def test_a_tuned_model_is_asked_the_questions_of_its_task(bert: Path, tmp_path: Path) -> None:
    out = prepare(tmp_path / "run")
    assert run(out, plan(bert)).done == ("learn", "ask")
    asked = {row["question_id"]: row for row in read_table(QUESTIONS, out / "questions.parquet").to_pylist()}
    answers = read_table(ANSWERS, out / ".merkhet/answers/00.parquet").to_pylist()
    assert {asked[row["question_id"]]["task"] for row in answers} == {"completion"}
    assert len(answers) == len(questions())
    assert all(exact_match(row["prediction"], asked[row["question_id"]]["answers"]) for row in answers)
    about = json.loads((out / ".merkhet/answers/00.json").read_text())
    record = json.loads((out / LEARNED[0]).read_text())
    assert about["name"] == "bert (tuned)"
    assert about["fingerprint"] == record["fingerprint"] != record["base"]
    assert record["base"] == resolve_model(ModelSpec(str(bert))).fingerprint
    assert about["learned"]["epochs"] == record["epochs"]
    assert (record["questions"], record["dev_questions"]) == (len(questions()), len(questions()))


def test_nothing_is_learned_twice_and_everything_that_has_changed_is(bert: Path, tmp_path: Path) -> None:
    out, brief = prepare(tmp_path / "run"), {"epochs": 2, "batch_size": 4}
    run(out, plan(bert, settings=brief))
    before = (out / LEARNED[0]).read_bytes()
    assert run(out, plan(bert, settings=brief)).done == ()
    assert run(out, plan(bert, settings=brief, seed=4)).done == ("learn", "ask")
    assert run(out, plan(bert, settings=brief)).done == ("learn", "ask")
    assert (out / LEARNED[0]).read_bytes() == before
    weights = bytearray((out / LEARNED[1]).read_bytes())
    weights[-2] ^= 0x40
    (out / LEARNED[1]).write_bytes(weights)
    assert run(out, plan(bert, settings=brief)).done == ("learn",)
    assert (out / LEARNED[0]).read_bytes() == before


def test_what_was_learned_and_is_another_now_is_learned_anew(bert: Path, tmp_path: Path) -> None:
    out, brief = prepare(tmp_path / "run"), {"epochs": 2, "batch_size": 4}
    steps = plan(bert, settings=brief).steps
    run(out, Plan(steps[:1]))
    config = json.loads((out / STEM / "config.json").read_text())
    (out / STEM / "config.json").write_text(json.dumps({**config, "layer_norm_eps": 0.1}))
    assert run(out, Plan(steps)).done == tuple(step.name for step in steps)
    assert json.loads((out / STEM / "config.json").read_text()) == config


def test_a_task_without_training_questions_is_said(bert: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no training questions of the task reasoning to tune bert \(tuned\) on"):
        run(prepare(tmp_path / "run"), plan(bert, task="reasoning"))
