"""A study becomes the plan that its author means."""

from __future__ import annotations

import json
from pathlib import Path

from small_packs import run_small, small_pack, write_pack

import merkhet
from merkhet.engine.planning import make_standard_plan
from merkhet.engine.resolve_study import Request, resolve_study
from merkhet.suites import SUITES


def card(**options: object) -> dict[str, object]:
    resolved = resolve_study(Request("quickstart", models=["random"], **options), SUITES)
    steps = {step.name: step for step in make_standard_plan(resolved, "test").steps}
    return dict(steps["record"].params.card.as_json())


def test_the_headline_is_the_suites_own() -> None:
    assert [(entry["task"], entry["metric"]) for entry in card()["headline"]] == [
        ("completion", "r@1"),
        ("checking", "accuracy"),
        ("distinction", "accuracy"),
    ]


def test_a_metric_that_is_not_asked_for_is_replaced() -> None:
    cases = {"[mrr, accuracy]": "accuracy", "[mrr]": "mrr", "[f1, r@1]": "r@1", "[r@05]": "r@5"}
    for metrics, shown in cases.items():
        headline = card(settings=[f"metrics={metrics}"], tasks=["completion"])["headline"]
        assert headline == [{"task": "completion", "metric": shown}]


def test_every_step_reads_what_an_earlier_one_has_written() -> None:
    resolved = resolve_study(Request("quickstart", models=["random", "frequency"]), SUITES)
    written: set[str] = set()
    for step in make_standard_plan(resolved, "test").steps:
        assert set(step.inputs) <= written, step.name
        written |= set(step.outputs)


def test_a_label_names_a_baseline(made_once, tmp_path: Path) -> None:
    models = [{"model": "frequency", "label": "most frequent"}, {"model": "random", "label": "coin"}]
    run = run_small(small_pack(made_once), tmp_path / "run", *models, limit=10)
    assert set(run.scores["model"].to_pylist()) == {"most frequent", "coin"}
    assert run.findings["comparisons"] == []


def test_relation_names_travel_with_built_questions(tmp_path: Path) -> None:
    (tmp_path / "facts.csv").write_text("subject,predicate,object\nFrance,capital,Paris\nItaly,capital,Rome\n")
    (tmp_path / "words.yaml").write_text(
        "relations: {capital: {about: seats of power, templates: ['The seat of {the subject} is {object}.']}}"
    )
    settings = [f"options.templates={tmp_path / 'words.yaml'}"]
    merkhet.build("quickstart", knowledge=[str(tmp_path / "facts.csv")], settings=settings, out=tmp_path / "made")
    given = {"models": ["random"], "settings": ["report=none"]}
    run = merkhet.run("quickstart", data=tmp_path / "made", out=tmp_path / "run", **given)
    assert run.record["card"]["names"]["capital"] == "seats of power"


def test_a_metric_in_a_loose_file_is_scored_anew_when_the_file_changes(tmp_path: Path) -> None:
    write_pack(tmp_path / "small")
    study = "suite: quickstart\nknowledge: [small]\nmodels: [random]\nmetrics: ['own.py:half']\nreport: none\n"
    (tmp_path / "study.yaml").write_text(study)
    values = []
    for number in (0.25, 0.75):
        (tmp_path / "own.py").write_text(
            f"import numpy as np\ndef half(responses):\n    return np.full(len(responses.answers), {number})\n"
        )
        run = merkhet.run(str(tmp_path / "study.yaml"), out=tmp_path / "run")
        values.append({score["value"] for score in json.loads((run.folder / "scores.json").read_text())})
    assert values == [{0.25}, {0.75}]


def test_paths_in_a_study_are_relative_to_it_and_those_given_to_where_one_stands(tmp_path: Path, monkeypatch) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "here").mkdir()
    for folder, capital in (("there", "Paris"), ("here", "Rome")):
        (tmp_path / folder / "facts.csv").write_text(
            f"subject,predicate,object\n{folder},capital,{capital}\nelsewhere,capital,Bern\n"
        )
    (tmp_path / "there" / "study.yaml").write_text(
        "suite: quickstart\nknowledge: [facts.csv]\nmodels: [random]\nreport: none\n"
    )
    monkeypatch.chdir(tmp_path / "here")
    own = merkhet.run("../there/study.yaml", out=tmp_path / "own")
    given = merkhet.run("../there/study.yaml", knowledge=["facts.csv"], out=tmp_path / "given")
    assert "Paris" in own.questions.questions["target"].to_pylist()
    assert "Rome" in given.questions.questions["target"].to_pylist()
