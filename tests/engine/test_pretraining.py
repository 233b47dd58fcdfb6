"""Pre-training as steps of a study: each objective once, asked under its name, resumed after a kill."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from small_packs import write_pack
from tiny_models import SENTENCES

import merkhet
from merkhet.core.errors import InputError
from merkhet.engine.plan import as_json
from merkhet.engine.planning import make_standard_plan
from merkhet.engine.resolve_study import Request, resolve_study
from merkhet.suites import SUITES
from merkhet.training._trainer import Trainer
from merkhet.training.artifact import read_artifact

SETTINGS = {
    "corpus": "texts/corpus.txt",
    "steps": 4,
    "batch_size": 4,
    "max_length": 32,
    "learning_rate": 0.01,
    "checkpoint_every": 2,
    "objectives": ["mlm", "mlm+nsp"],
}


@pytest.fixture
def study(model_folders: dict[str, Path], tmp_path: Path) -> Path:
    """A study with its corpus beside it: a masked model, a causal one and a baseline."""
    (tmp_path / "texts").mkdir()
    text = "\n\n".join(" ".join(SENTENCES[i : i + 3]) for i in range(7))
    (tmp_path / "texts" / "corpus.txt").write_text(text, encoding="utf-8")
    (tmp_path / "bert").symlink_to(model_folders["bert-uncased"])
    (tmp_path / "gpt").symlink_to(model_folders["gpt2"])
    write_pack(tmp_path / "small")
    return write(tmp_path / "study.yaml")


def write(file: Path, learner: str = "pretrain", report: str = "none", **settings) -> Path:
    learning = {"learner": learner, "settings": {**SETTINGS, **settings}}
    models = [{"model": "bert", "label": "bert"}, {"model": "gpt", "label": "gpt"}, "random"]
    content = {"suite": "quickstart", "knowledge": ["small"], "limit": 8, "models": models, "learning": learning}
    content["report"] = report
    file.write_text(yaml.safe_dump(content))
    return file


def learned_by(folder: Path) -> dict[str, dict]:
    records = (read_artifact(file).record for file in (folder / ".merkhet" / "learned").glob("*/learned.json"))
    return {record["objective"]: dict(record) for record in records}


def asked(study: Path) -> list[str]:
    """What is done in a run, by its log."""
    log = (study.parent / "run" / "log.txt").read_text()
    return [line.split("merkhet.engine: ")[1].removesuffix(": begins") for line in log.splitlines() if "begins" in line]


def test_a_study_asks_a_model_as_it_is_and_after_every_objective(study: Path) -> None:
    done = merkhet.run(str(write(study, report="html")), out=study.parent / "run")
    names = ["bert", "bert, mlm", "bert, mlm+nsp", "gpt", "random"]
    assert sorted(set(done.scores["model"].to_pylist())) == names
    records = learned_by(done.folder)
    assert sorted(records) == ["mlm", "mlm+nsp"]
    assert records["mlm"]["settings"]["steps"] == 4 and records["mlm"]["base"] == records["mlm+nsp"]["base"]
    assert records["mlm"]["weights"] != records["mlm+nsp"]["weights"]
    about = {model["name"]: model for model in json.loads((done.folder / "run.json").read_text())["models"]}
    assert about["bert, mlm"]["fingerprint"] == records["mlm"]["fingerprint"] != about["bert"]["fingerprint"]
    by_model = {name: [] for name in names}
    for row in done.answers.select(["model", "question_id", "ranked"]).to_pylist():
        by_model[row["model"]].append((row["question_id"], str(row["ranked"])))
    assert len({tuple(q for q, _ in sorted(rows)) for rows in by_model.values()}) == 1  # All are asked everything.
    assert len({tuple(sorted(rows)) for rows in by_model.values()}) == 5
    assert not (done.folder / "training.parquet").exists()
    assert not list((done.folder / ".merkhet" / "work").glob("*"))
    assert (done.folder / "report.html").stat().st_size > 10_000
    assert "texts/corpus.txt" not in (done.folder / "run.json").read_text()


def test_only_what_has_changed_is_done_again(study: Path) -> None:
    merkhet.run(str(study), out=study.parent / "run")
    before = learned_by(study.parent / "run")
    count = len(asked(study))
    merkhet.run(str(study), out=study.parent / "run")
    assert len(asked(study)) == count
    merkhet.run(str(write(study, objectives=["mlm", "mlm+nsp", "mlm+sbo"])), out=study.parent / "run")
    steps = asked(study)[count:]
    assert [step for step in steps if "pretrain" in step] == ["pretrain bert by mlm+sbo"]
    assert [step for step in steps if step.startswith("ask")] == [
        "ask bert by rank, mlm+sbo",
        "ask bert, mlm+sbo, association",
        "ask bert by rank, mlm+sbo, subject-blind",
    ]
    count = len(asked(study))
    corpus = study.parent / "texts" / "corpus.txt"
    corpus.write_text(corpus.read_text() + "\n\nRome is old. Rome is a city.")
    merkhet.run(str(write(study, objectives=["mlm"])), out=study.parent / "run")
    assert [step for step in asked(study)[count:] if "pretrain" in step] == ["pretrain bert by mlm"]
    assert learned_by(study.parent / "run")["mlm"]["weights"] != before["mlm"]["weights"]
    count = len(asked(study))
    merkhet.run(str(write(study, objectives=["mlm"], batch_size=2)), out=study.parent / "run")
    assert "pretrain bert by mlm" in asked(study)[count:]


def test_a_killed_step_goes_on_from_its_checkpoint(study: Path, monkeypatch) -> None:
    expected = merkhet.run(str(study), out=study.parent / "undisturbed")
    learn, steps = Trainer.train_step, []

    def killed(self, batch):
        if len(steps) == 7:
            raise KeyboardInterrupt
        steps.append((self.task.settings.objective, self.state.step))
        return learn(self, batch)

    monkeypatch.setattr(Trainer, "train_step", killed)
    with pytest.raises(KeyboardInterrupt):
        merkhet.run(str(study), out=study.parent / "run")
    assert steps[-1] == ("mlm+nsp", 2)
    steps.append(("killed", 0))
    done = merkhet.run(str(study), out=study.parent / "run")
    assert steps[8:] == [("mlm+nsp", 2), ("mlm+nsp", 3)]
    assert (done.folder / "scores.json").read_bytes() == (expected.folder / "scores.json").read_bytes()
    one, other = learned_by(done.folder), learned_by(expected.folder)
    assert {name: record["weights"] for name, record in one.items()} == {
        name: record["weights"] for name, record in other.items()
    }


def test_curves_of_what_was_learned_reach_the_analyses(study: Path) -> None:
    (study.parent / "own.py").write_text(
        "from dataclasses import replace\n"
        "from merkhet.suites.quickstart.suite import SUITE\n"
        "examined = replace(SUITE, analyses=('objectives',))\n"
    )
    study.write_text(write(study, log_every=2).read_text().replace("quickstart", "own.py:examined"))
    done = merkhet.run(str(study), out=study.parent / "run")
    (found,) = json.loads((done.folder / "analyses.json").read_text())
    lines = {(row["line"], row["x"]) for figure in found["figures"] for row in figure["rows"]}
    assert lines == {(name, step) for name in ("bert, mlm", "bert, mlm+nsp") for step in (2, 4)}


def test_what_decides_the_weights_is_in_the_step(study: Path) -> None:
    plan = make_standard_plan(resolve_study(Request(str(study)), SUITES), "merkhet run")
    build = next(step for step in plan.steps if step.name == "build")
    assert "training.parquet" not in build.outputs and build.params.study.learning is None
    steps = {step.name: step for step in plan.steps if step.kind == "learn"}
    assert list(steps) == ["pretrain bert by mlm", "pretrain bert by mlm+nsp"]
    params = steps["pretrain bert by mlm+nsp"].params
    content = as_json(params)
    assert set(content) == {"name", "kind", "fingerprint", "dtype", "settings", "seed", "corpus"}
    assert params.name == "bert, mlm+nsp"
    wanted = {"objective", "batch_size", "precision", "max_length", "masked", "steps", "warmup"}
    assert params.settings.keys() >= wanted and len(params.corpus) == 64
    assert str(study.parent) not in json.dumps(content)


def test_what_is_wrong_is_said_before_work_begins(study: Path) -> None:
    for settings, reason in (
        ({"corpus": None}, "learning.settings.corpus is missing; name a text file or folder .*study.yaml"),
        ({"corpus": "none.txt"}, "there is no corpus .*none.txt.*study.yaml"),
        ({"step": 3}, "learning.settings.step does not exist; did you mean 'steps'. .*study.yaml"),
        (
            {"objectives": ["mlm+spo"]},
            r"objectives must be a list of some of mlm, .*'mlm\+spo'.*; did you mean .*study.yaml",
        ),
        ({"steps": 0}, "learning.settings.steps must be an integer ≥ 1, got 0 .*study.yaml"),
    ):
        with pytest.raises(InputError, match=reason):
            merkhet.run(str(write(study, **settings)), out=study.parent / "run")
    study.write_text(write(study).read_text().replace("quickstart", "ontoprobe"))
    with pytest.raises(InputError, match="ontoprobe plans its own trainings and cannot continue pre-training"):
        merkhet.run(str(study), out=study.parent / "run")
    assert not (study.parent / "run").exists()


def test_a_corpus_that_changes_under_way_is_found_out(study: Path, monkeypatch) -> None:
    from merkhet.engine import training_steps as learning

    monkeypatch.setattr(learning, "corpus_digest", lambda _: "other")
    with pytest.raises(merkhet.MerkhetError, match=r"the corpus corpus.txt has changed since this run was planned"):
        merkhet.run(str(study), out=study.parent / "run")
