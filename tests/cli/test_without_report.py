"""The study key ``report: none``: scores without a report, which ``merkhet report`` makes when it is wanted."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

ASK = ("run", "quickstart", "--knowledge", "elements", "--model", "random", "--limit", "10", "--out", "run")
NONE = ("--set", "report=none")


def test_a_run_writes_scores_and_no_report_until_it_is_asked_for(merkhet, tmp_path: Path) -> None:
    run = tmp_path / "run"
    done = merkhet(*ASK, *NONE, check=0)
    assert "Report:" not in done.stdout and "report.html" not in done.stdout + done.stderr
    assert "Scores: run/scores.json" in done.stdout and "completion R@1" in done.stdout
    assert json.loads((run / "scores.json").read_text()) and not (run / "report.html").exists()
    assert "report: none" in (run / "study.yaml").read_text()
    assert "Report: run/report.html" in merkhet("report", "run", check=0).stdout
    assert "completion R@1" in (run / "report.html").read_text(encoding="utf-8")


def test_the_key_in_a_study_is_the_same_as_the_option(merkhet, tmp_path: Path) -> None:
    lines = ("suite: quickstart", "knowledge: [elements]", "models: [random]", "limit: 10", "report: none")
    (tmp_path / "study.yaml").write_text("\n".join(lines) + "\n")
    assert "Report:" not in merkhet("run", "study.yaml", "--out", "run", check=0).stdout
    assert (tmp_path / "run" / "scores.json").is_file() and not (tmp_path / "run" / "report.html").exists()


def test_a_report_of_an_earlier_start_is_removed_and_nothing_is_asked_again(merkhet, tmp_path: Path) -> None:
    run = tmp_path / "run"
    assert "Report: run/report.html" in merkhet(*ASK, check=0).stdout
    report, scores = (run / "report.html").read_bytes(), (run / "scores.json").read_bytes()
    done = merkhet(*ASK, *NONE, check=0)
    assert not (run / "report.html").exists() and (run / "scores.json").read_bytes() == scores
    assert "random: " not in done.stderr, "answers are reused"
    assert "Report: run/report.html" in merkhet(*ASK, check=0).stdout
    assert len((run / "report.html").read_bytes()) == pytest.approx(len(report), rel=0.01)


def test_shards_are_put_together_without_a_report(merkhet, tmp_path: Path) -> None:
    for number in (1, 2):
        merkhet(*ASK[:-1], f"part-{number}", *NONE, "--shard", f"{number}/2", check=0)
    done = merkhet("merge", "part-1", "part-2", "--out", "run", check=0)
    assert "Report:" not in done.stdout and "Scores: run/scores.json" in done.stdout
    assert (tmp_path / "run" / "scores.json").is_file() and not (tmp_path / "run" / "report.html").exists()


def test_another_value_is_refused_in_one_line(merkhet, tmp_path: Path) -> None:
    done = merkhet(*ASK, "--set", "report=pdf", check=2)
    assert done.stdout == "" and done.stderr.count("\n") == 1
    assert all(word in done.stderr for word in ("report", "'pdf'", "html", "none"))
    assert not (tmp_path / "run").exists()
