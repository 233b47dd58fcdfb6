"""A suite's analyses are made of its runs, again only when what they read has changed, and stand in the report."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from examined_runs import corpus_text, make_input, make_questions
from small_packs import small_run

import merkhet
from merkhet.analysis import ANALYSES
from merkhet.analysis.types import Analysis
from merkhet.core.errors import InputError
from merkhet.core.schemas import ENTITIES, make_table
from merkhet.engine._analysis_step import make_analysis_input
from merkhet.engine.combine_runs import combine_runs
from merkhet.engine.run_folder import open_run
from merkhet.engine.suite import Suite
from merkhet.questions.question_files import read_questions, write_questions
from merkhet.reports.html_report import render_html
from merkhet.suites import SUITES


@pytest.fixture
def suite(monkeypatch, tmp_path):
    """The made-up questions as a suite with all analyses."""
    monkeypatch.setenv("MERKHET_CACHE", str(tmp_path / "cache"))
    made = Suite(
        name="made-up",
        title="Made up",
        about="questions for tests",
        build=lambda study, home: make_questions(8),
        tasks=("completion", "distinction", "checking", "reasoning"),
        headline=(("completion", "f1"), ("checking", "f1")),
        defaults={"metrics": ["f1"], "probes": ["rank"]},
        analyses=tuple(ANALYSES),
    )
    SUITES.add("made-up", made)
    yield made
    SUITES.remove("made-up")


@pytest.fixture
def corpus(tmp_path):
    pytest.importorskip("tantivy")
    folder = tmp_path / "texts"
    folder.mkdir()
    (folder / "a.txt").write_text(corpus_text(make_input(8)), encoding="utf-8")
    return folder


def run(out: Path, *models: object, report: str = "none", settings: Sequence[str] = (), **more: object) -> merkhet.Run:
    given = [f"report={report}", *settings]
    return merkhet.run("made-up", models=models or ["random", "frequency"], out=out, settings=given, **more)


def done(out: Path) -> dict[str, str]:
    return {file.stem: json.loads(file.read_text())["key"] for file in (out / ".merkhet" / "steps").glob("*.json")}


def test_analyses_are_written_shown_and_made_again_when_the_corpus_alone_has_changed(suite, corpus, tmp_path):
    def start() -> merkhet.Run:
        return run(tmp_path / "run", report="html", settings=[f"options.corpus={corpus}"])

    made = start()
    assert [found["name"] for found in made.analyses] == ["distribution", "domains", "consistency", "cooccurrence"]
    page = made.report.read_text(encoding="utf-8")
    for found in made.analyses:
        assert found["title"] in page
    assert made.record["card"]["analyses"] == list(ANALYSES)
    before = done(tmp_path / "run")
    start()
    assert done(tmp_path / "run") == before
    (corpus / "b.txt").write_text("More.")
    after = start()
    changed = {name for name, key in done(tmp_path / "run").items() if before[name] != key}
    assert changed == {"examine", "analyse", "report"}
    assert "The corpus has 85 paragraphs" in after.report.read_text(encoding="utf-8")


def test_pairs_are_those_of_the_study(suite, tmp_path):
    models = [{"model": "random", "label": "coin"}, {"model": "random", "label": "often"}]
    made = run(tmp_path / "run", *models, settings=["options.pairs=[[often, coin]]"])
    (found,) = [one for one in made.analyses if one["name"] == "compression"]
    assert {tuple(row[:2]) for row in found["tables"][0]["rows"]} == {("often", "coin")}


def test_what_an_analysis_could_not_use_is_refused_before_anything_is_asked(suite, tmp_path):
    for setting, words in (
        ("options.corpus=nowhere", "the corpus nowhere is not a folder or file of texts"),
        ("options.pairs=[[random, tiny]]", "names 'tiny', which is not a model of this study"),
        ("options.corpse=x", "has no option 'corpse'; did you mean 'corpus'?"),
    ):
        with pytest.raises(InputError) as refused:
            run(tmp_path / "run", settings=[setting])
        assert words in str(refused.value) and not (tmp_path / "run").exists()


def test_names_written_beside_the_questions_are_read(suite, tmp_path):
    made = run(tmp_path / "run").questions
    assert make_analysis_input(made, answers=[], headline=[]).entities == {}
    rows = [{"question_id": "q_1", "entities": ["New York", "Kyiv"]}, {"question_id": "q_2", "entities": []}]
    write_questions(replace(made, entities=make_table(ENTITIES, rows)), tmp_path / "named")
    found = make_analysis_input(read_questions(tmp_path / "named"), answers=[], headline=[])
    assert found.entities == {"q_1": ("New York", "Kyiv"), "q_2": ()}


def test_runs_put_together_are_examined_together(suite, corpus, tmp_path):
    def named(label: str) -> dict[str, str]:
        return {"model": "random", "label": label}

    one = run(tmp_path / "one", named("bert"), settings=[f"options.corpus={corpus}"])
    two = run(tmp_path / "two", named("distilbert"))
    assert "compression" not in {found["name"] for found in (*one.analyses, *two.analyses)}
    both = combine_runs([open_run(tmp_path / "one"), open_run(tmp_path / "two")])
    names = [found["name"] for found in both.analyses]
    assert names == ["distribution", "domains", "consistency", "compression"], "files of a study are not read again"
    row = both.analyses[-1]["tables"][0]["rows"][0]
    assert row[:2] == ["bert", "distilbert"] and row[3]["value"] == 1.0
    assert "Compression" in render_html(both)
    assert list(combine_runs([one]).analyses) == one.analyses


def test_a_run_of_before_has_none(suite, tmp_path):
    made = run(tmp_path / "run")
    (made.folder / "analyses.json").unlink()
    old = open_run(made.folder)
    assert old.analyses == [] and "analysis-0" not in render_html(combine_runs([old]))


def test_a_suite_without_analyses_has_no_such_step(made_once):
    made = open_run(small_run(made_once))
    assert not (made.folder / "analyses.json").exists() and made.analyses == []


def test_ones_own_analysis_is_a_function(suite, tmp_path):
    def count(given):
        return Analysis("count", "Answers counted", "How many.", sentences=(f"{len(given.answers)} answers.",))

    ANALYSES.add("count", count)
    try:
        object.__setattr__(suite, "analyses", ("count",))
        made = run(tmp_path / "run", "random", report="html")
        assert made.analyses[0]["sentences"] == ["48 answers."]
        assert "Answers counted" in made.report.read_text(encoding="utf-8")
    finally:
        ANALYSES.remove("count")
