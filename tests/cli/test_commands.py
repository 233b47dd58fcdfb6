"""The command line as scripts rely on it."""

from __future__ import annotations

import json
import re
from itertools import combinations
from pathlib import Path

import pyarrow.parquet as pq
import pytest

COINS = tuple(f"coin{number}" for number in range(4))
"""The models of the fixture ``coin_runs``."""


def test_lists(merkhet) -> None:
    for what in ("suites", "models", "probes", "metrics", "packs"):
        listed = json.loads(merkhet(what, "--json", check=0).stdout)
        assert listed and all(entry["name"] for entry in listed), what
        shown = merkhet(what, check=0).stdout
        assert [entry["name"] for entry in listed if entry["name"] not in shown] == [], what


def test_packs_hold_at_least_5000_facts_each_with_a_licence(merkhet) -> None:
    packs = json.loads(merkhet("packs", "--json", check=0).stdout)
    assert sum(pack["facts"] for pack in packs) >= 5000
    assert all(pack["licence"] for pack in packs)


def test_run_prints_a_table_and_says_where_the_report_is(merkhet, tmp_path: Path) -> None:
    done = merkhet(
        "run", "quickstart", "--model", "frequency", "--model", "random", "--limit", "20", "--out", "run", check=0
    )
    assert "quickstart: 60 questions from" in done.stderr
    assert "frequency: 20/20 questions" in done.stderr and "random: 60/60 questions" in done.stderr
    for word in ("completion R@1", "checking accuracy", "distinction accuracy", "chance", "random"):
        assert word in done.stdout
    assert "run/report.html" in done.stdout
    assert "\x1b[" not in done.stdout + done.stderr
    assert (tmp_path / "run" / "report.html").is_file()


def test_run_with_json_prints_the_scores_of_the_task_that_was_asked_and_nothing_else(merkhet, tmp_path: Path) -> None:
    arguments = ("--model", "random", "--task", "checking", "--limit", "10", "--set", "report=none", "--out", "run")
    done = merkhet("run", "quickstart", *arguments, "--json", check=0)
    scores = json.loads((tmp_path / "run" / "scores.json").read_text())
    assert json.loads(done.stdout) == scores
    assert {score["task"] for score in scores} == {"checking"}


def test_build_then_run_with_data_asks_the_same_questions(merkhet, tmp_path: Path) -> None:
    given = ("quickstart", "--knowledge", "elements", "--limit", "30")
    built = json.loads(merkhet("build", *given, "--out", "made", "--json", check=0).stdout)
    assert built["questions"] == 90
    ask = ("--model", "random", "--set", "report=none")
    merkhet("run", *given, *ask, "--out", "direct", check=0)
    merkhet("run", "quickstart", "--data", "made", *ask, "--out", "read", check=0)
    ids = [
        sorted(pq.read_table(tmp_path / run / "questions.parquet")["question_id"].to_pylist())
        for run in ("direct", "read")
    ]
    assert ids[0] == ids[1]
    assert (tmp_path / "direct" / "scores.json").read_bytes() == (tmp_path / "read" / "scores.json").read_bytes()


def test_the_seed_decides_the_questions(merkhet, tmp_path: Path) -> None:
    for seed, folder in ((0, "a"), (0, "b"), (1, "c")):
        given = ("--knowledge", "elements", "--limit", "20", "--seed", seed)
        merkhet("build", "quickstart", *given, "--out", folder, check=0)
    a, b, c = ((tmp_path / folder / "questions.parquet").read_bytes() for folder in "abc")
    assert a == b != c


def test_report_and_compare(merkhet, coin_runs: Path) -> None:
    assert "Report: all.html" in merkhet("report", "one", "two", "--out", "all.html", check=0).stdout
    page = (coin_runs / "all.html").read_text()
    assert all(name in page for name in (*COINS, "random"))
    compared = json.loads(merkhet("compare", "one", "two", "--json", check=0).stdout)
    assert {(one["task"], frozenset((one["model"], one["other"]))) for one in compared} == {
        (task, frozenset(pair)) for task in ("completion", "checking", "distinction") for pair in combinations(COINS, 2)
    }
    assert "points" in merkhet("compare", "one", check=0).stdout


@pytest.mark.usefixtures("coin_runs")
def test_tables_figures_and_the_explorer_read_runs(merkhet) -> None:
    rows = merkhet("tables", "one", "--as", "csv", check=0).stdout.splitlines()
    assert rows[0].startswith("model,") and {row.partition(",")[0] for row in rows[1:]} >= {*COINS[:3], "random"}
    listed = json.loads(merkhet("figures", "one", "--list", "--json", check=0).stdout)
    assert any(figure["name"].startswith("scores") for figure in listed)
    refused = merkhet("explore", "absent", check=2)
    assert "absent" in refused.stderr and refused.stderr.count("\n") == 1


@pytest.fixture
def downstream(coin_runs: Path) -> Path:
    """The runs, beside a table of scores on other tasks (also of a model that no run has) and one that is bad."""
    scores = {"model": ["CMRC", "XNLI"], "coin0": [60, 0.2], "coin1": [61, 0.3], "coin2": [62, 0.4], "coin3": [64, 0.1]}
    lines = [",".join(map(str, (name, *row))) for name, row in scores.items()]
    (coin_runs / "other.csv").write_text("\n".join([*lines, "absent,70,0.7"]) + "\n")
    (coin_runs / "bad.csv").write_text("model,CMRC\ncoin0,high\n")
    return coin_runs


@pytest.mark.usefixtures("downstream")
def test_scores_on_other_tasks_are_set_against_those_of_runs(merkhet) -> None:
    said = merkhet("compare", "one", "two", "--downstream", "other.csv", check=0).stdout
    for words in ("points", "Intrinsic against extrinsic", "Spearman", "but not in this run: absent."):
        assert words in said
    assert re.search(r"CMRC\s+4\s+\S*\d\.\d\d", said), "the correlation over four models"
    plain = json.loads(merkhet("compare", "one", "two", "--json", check=0).stdout)
    both = json.loads(merkhet("compare", "one", "two", "--downstream", "other.csv", "--json", check=0).stdout)
    assert both["comparisons"] == plain and both["extrinsic"]["name"] == "extrinsic"
    pairs = both["extrinsic"]["tables"][1]["rows"]
    assert {(row[1], row[2]) for row in pairs} == {("CMRC", 4), ("XNLI", 4)} and len(pairs) == 6
    for command in ("compare", "report"):
        refused = merkhet(command, "one", "--downstream", "bad.csv", check=2)
        assert (
            "bad.csv:2: the score on 'CMRC' must be a number such as 71.4 or 0.714, got 'high'" in refused.stderr
            and refused.stderr.count("\n") == 1
        )


@pytest.mark.slow
def test_reports_show_scores_on_other_tasks_where_they_are_given(merkhet, downstream: Path) -> None:
    merkhet("report", "one", "two", "--downstream", "other.csv", "--out", "all.html", check=0)
    merkhet("report", "one", "--downstream", "other.csv", "--out", "one.html", check=0)
    for file in ("all.html", "one.html"):
        assert "Rank correlation over models." in (downstream / file).read_text()
    merkhet("report", "one", check=0)
    assert "Intrinsic against" not in (downstream / "one" / "report.html").read_text()


def test_version(merkhet) -> None:
    import merkhet as package

    assert merkhet("--version", check=0).stdout.strip() == f"merkhet {package.__version__}"
