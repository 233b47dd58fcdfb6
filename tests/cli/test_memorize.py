"""``merkhet memorize`` as scripts rely on it, and what it refuses before it does anything."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from merkhet.api import embedded_studies
from merkhet.engine.resolve_study import Request, resolve_study
from merkhet.suites import SUITES

SMALL = (
    *("--model", "random:1x32", "--set", "options.sizes=[40]", "--set", "options.conflict=[with]"),
    *("--set", "learning.settings.epochs=2", "--set", "learning.settings.vocabulary=400", "--set", "report=none"),
)


@pytest.fixture
def refuse(merkhet, tmp_path: Path):
    """Call, and expect one line that says what is wrong, and nothing left behind."""

    def call(*arguments: object) -> str:
        done = merkhet(*arguments)
        assert done.returncode in (1, 2) and done.stdout == ""
        lines = done.stderr.strip().splitlines()
        assert len(lines) == 1 and lines[0].startswith("merkhet: "), done.stderr
        assert not (tmp_path / "run").exists()
        return lines[0]

    return call


def test_a_study_by_name_prints_a_table_and_is_reported(merkhet, tmp_path: Path) -> None:
    done = merkhet("memorize", "storage", *SMALL, "--out", "run", check=0)
    assert "841 facts with times" in done.stderr and "51 facts have no end: left out" in done.stderr
    assert "random:1x32, 40 facts: 160 statements to memorize" in done.stderr
    for word in ("statement acc@1", "unseen acc@1", "random:1x32, 40 facts", "frequency", "chance"):
        assert word in done.stdout
    assert "run/scores.json" in done.stdout and "\x1b[" not in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 120
    assert "Report:" not in done.stdout and not (tmp_path / "run" / "report.html").exists()
    again = merkhet("memorize", "storage", *SMALL, "--out", "run", "--json", check=0)
    assert json.loads(again.stdout) == json.loads((tmp_path / "run" / "scores.json").read_text())
    assert "to memorize" not in again.stderr
    shared = ("--set", "learning.settings.processes=3", "--set", "learning.settings.shard_head=yes")
    otherwise = merkhet("memorize", "storage", *SMALL, *shared, "--out", "run", check=0)
    assert "to memorize" not in otherwise.stderr  # How processes share the work does not decide what is learned.
    assert "Only one model answered" in merkhet("compare", "run", check=0).stdout
    assert "Report: run/report.html" in merkhet("report", "run", check=0).stdout
    assert "random:1x32, 40 facts" in (tmp_path / "run" / "report.html").read_text(encoding="utf-8")


def test_the_embedded_studies_can_be_done() -> None:
    for name in ("storage", "boundary", "implicit"):
        resolved = resolve_study(Request(str(embedded_studies()[name])), SUITES)
        assert resolved.suite.memorizes, name
        plan = resolved.suite.memorize_plan(resolved, "merkhet memorize")
        assert [step.name for step in plan.steps] == ["facts", "study"] and plan.then is not None, name
        assert resolved.study.options["experiment"] == name and resolved.study.limit is None, name
        assert resolved.models[0].kind == "blank", name


def test_without_a_model_a_small_random_one_memorizes(tmp_path: Path) -> None:
    (tmp_path / "study.yaml").write_text("suite: lama-tk\nlearning: memorize\n")
    resolved = resolve_study(Request(str(tmp_path / "study.yaml")), SUITES)
    assert [model.name for model in resolved.models] == ["random:2x128"]


BAD_SETTINGS = (
    ("options.experiment=storrage", "did you mean 'storage'?"),
    ("options.sizes=[many]", "options.sizes.0 must be an integer ≥ 1 or all, got 'many'"),
    ("options.sizes=[]", "options.sizes must be a non-empty list of integers ≥ 1 or all, got []"),
    ("options.conflict=[wiht]", "did you mean 'with'?"),
    ("options.sices=[3]", "did you mean 'sizes'?"),
    ("learning.settings.epoch=3", "did you mean 'epochs'?"),
    ("learning.settings.epochs=0", "learning.settings.epochs must be an integer ≥ 1, got 0"),
    ("learning.settings.until=2", "learning.settings.until must be a number from 0 to 1, got 2"),
    ("limit=30", "use options.sizes or options.facts"),
    ("metrics=[mrr]", "metric 'mrr' cannot score recalls"),
    ("options.relations=[capital]", "no facts with times have the relation 'capital'"),
)


def test_what_is_wrong_is_said_before_work_begins(refuse) -> None:
    lines = {setting: refuse("memorize", "storage", "--set", setting, "--out", "run") for setting, _ in BAD_SETTINGS}
    assert [(setting, lines[setting]) for setting, said in BAD_SETTINGS if said not in lines[setting]] == []


def test_models_that_cannot_memorize(refuse, model_folders: dict[str, Path]) -> None:
    line = refuse("memorize", "storage", "--model", model_folders["gpt2"], "--out", "run")
    assert "only masked models can memorize, and gpt2 is a causal model" in line
    line = refuse("memorize", "storage", "--model", "frequency", "--out", "run")
    assert "frequency is a baseline (which every run asks if it can)" in line
    assert "2x" in refuse("memorize", "storage", "--model", "random:2x", "--out", "run")


def test_random_weights_are_not_asked_as_they_are(refuse) -> None:
    line = refuse("run", "lama-tk", "--model", "random:2x128", "--out", "run")
    assert "random:2x128 has random weights and knows nothing" in line and "merkhet memorize" in line


def test_studies_that_do_not_memorize(refuse, tmp_path: Path) -> None:
    assert "did you mean 'storage'?" in refuse("memorize", "storege", "--out", "run")
    (tmp_path / "other.yaml").write_text("suite: quickstart\nmodels: [random]\n")
    assert "does not memorize: learning.learner is None; use 'merkhet run'" in refuse(
        "memorize", "other.yaml", "--out", "run"
    )
    content = {"suite": "quickstart", "learning": "memorize", "models": ["random:1x32"]}
    (tmp_path / "other.yaml").write_text(yaml.safe_dump(content))
    assert "quickstart has nothing to memorize" in refuse("memorize", "other.yaml", "--out", "run")
    assert "quickstart has nothing to memorize" in refuse("run", "other.yaml", "--out", "run")


def test_knowledge_that_an_experiment_has_no_use_for(refuse, tmp_path: Path) -> None:
    rows = ["subject,predicate,object,start,end", "a,award received,b,1990,1990", "c,award received,d,1991,1991"]
    (tmp_path / "facts.csv").write_text("\n".join(rows) + "\n")
    line = refuse("memorize", "boundary", "--knowledge", "facts.csv", "--out", "run")
    assert "no fact has a start and an end" in line
    given = ("--knowledge", "facts.csv", "--set", "options.relation=award received")
    assert "facts of 'award received' (options.relation) are points in time" in refuse(
        "memorize", "boundary", *given, "--out", "run"
    )
    assert "control" in refuse("memorize", "implicit", "--knowledge", "facts.csv", "--out", "run")
    assert "'ofice'" in refuse("memorize", "boundary", "--set", "options.relation=ofice", "--out", "run")


def test_a_table_of_facts_is_data(merkhet, shared: Path, tmp_path: Path) -> None:
    lines = (shared / "data" / "temporal" / "positions.tsv").read_text(encoding="utf-8").splitlines()[:400]
    (tmp_path / "positions.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    done = merkhet("memorize", "storage", *SMALL, "--data", "positions.tsv", "--out", "run", check=0)
    assert "40 facts" in done.stdout
    assert str(tmp_path) not in (tmp_path / "run" / "run.json").read_text().replace(str(tmp_path / "run"), "")
