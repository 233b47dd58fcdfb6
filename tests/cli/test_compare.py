"""``merkhet compare`` as a user runs it: what is printed and written, exit codes, and names that want to do harm."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from compared_runs import changed, half

COMPARISON = {
    *("task", "metric", "model", "other", "difference", "low", "high", "p", "p_raw", "q", "n", "facts"),
    *("mcnemar", "effect", "odds", "detectable", "group_column", "group"),
    *("value", "other_value", "share", "higher_is_better", "equal", "trainings"),
}
WHOLE = {"comparisons", "verdict", "order", "pairs", "models", "reference", "runs", "questions", "remarks"}


@pytest.fixture
def run(able_and_weak: Path) -> Path:
    return able_and_weak


def strictly(text: str) -> Any:
    """JSON as the standard has it: without NaN and Infinity."""

    def refuse(name: str) -> None:
        raise AssertionError(f"{name} is not JSON")

    return json.loads(text, parse_constant=refuse)


def test_the_verdict_the_table_and_what_its_columns_mean_fit_a_terminal(merkhet, run: Path, monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    said = merkhet("compare", run, "--by", "domain", "--out", "page.html", check=0).stdout
    lines = said.splitlines()
    assert lines[0].startswith("able knows more than weak: it is ahead on ")
    assert max(map(len, lines)) <= 80 and "\x1b" not in said
    table = lines[lines.index("able against weak") :]
    rows = [line.split() for line in table if line.startswith("completion R@1")]
    assert len(rows[0]) >= 6 and rows[0][4].startswith("+") and rows[0][5].startswith("[")
    assert "By domain, " in said and "able against weak on completion R@1, by domain" in said
    meanings = said[said.index("What the columns mean") :]
    names = ("scores", "difference", "p (Holm)", "q", "McNemar", "effect", "odds", "detectable")
    assert all(f"\n{name}: " in meanings for name in names)
    assert "Page: page.html" in said


def test_wide_terminals_have_one_table_for_a_pair(merkhet, run: Path, monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "140")
    said = merkhet("compare", run, check=0).stdout
    (row,) = [line for line in said.splitlines() if line.startswith("completion R@1")]
    assert row.split()[-2:] == ["40", "40"]


def test_json_is_a_list_and_with_options_an_object(merkhet, run: Path, tmp_path: Path) -> None:
    plain = strictly(merkhet("compare", run, "--json", check=0).stdout)
    assert len(plain) == 3 and all(one.keys() == COMPARISON for one in plain)
    arguments = ("--against", "able", "--baselines", "--by", "relation", "--metric", "mrr")
    whole = strictly(merkhet("compare", run, *arguments, "--json", "--out", "all.json", check=0).stdout)
    assert whole.keys() == WHOLE | {"by", "groups", "groups_verdict"}
    assert whole == strictly((tmp_path / "all.json").read_text())
    assert whole["reference"] == "able" and whole["models"] == ["random", "able", "weak"]
    assert {(one["model"], one["other"], one["metric"]) for one in whole["comparisons"]} == {
        ("random", "able", "mrr"),
        ("weak", "able", "mrr"),
    }
    assert all(one.keys() == COMPARISON and one["group_column"] == "relation" for one in whole["groups"])
    assert {pair["relation"] for pair in whole["pairs"]} <= {"ahead", "mixed", "alike"}
    assert whole["runs"][0]["questions"] == 120


def test_where_nothing_is_compared_it_exits_with_1_and_shows_the_scores(merkhet, run: Path, tmp_path: Path) -> None:
    for first, name in ((True, "able"), (False, "weak")):
        changed(
            run,
            tmp_path / name,
            questions=lambda rows, first=first: half(rows, first=first),
            answers=lambda rows, name=name: [row for row in rows if row["model"] == name],
        )
    done = merkhet("compare", "able", "weak", "--task", "checking", "--out", "page.html", check=1)
    assert "The runs share no question" in done.stdout and "Scores, not paired:" in done.stdout
    assert "What the columns mean" not in done.stdout
    assert "No questions could be paired." in (tmp_path / "page.html").read_text()
    done = merkhet("compare", "able", "--json", check=1)
    assert strictly(done.stdout) == [] and "only one model, able, answered in able" in done.stderr


def test_what_is_no_finished_run_or_wanted_wrongly_is_refused_in_one_line(merkhet, run: Path, tmp_path: Path) -> None:
    unfinished = tmp_path / "unfinished"
    shutil.copytree(run, unfinished)
    (unfinished / "scores.parquet").unlink()
    (tmp_path / "empty").mkdir()
    for arguments, words in (
        (("empty",), "empty is not a finished run; 'merkhet run' makes one"),
        ((run, "absent"), "absent is not a finished run"),
        (("unfinished",), "unfinished is not a finished run; start the same command again to finish it"),
        ((run, run), "is named twice; name each run once"),
    ):
        done = merkhet("compare", *arguments, check=2)
        assert words in done.stderr and done.stderr.count("\n") == 1 and done.stdout == ""
    done = merkhet("compare", run, "--out", "numbers.csv", check=2)
    assert (
        "must end in .html (a page) or .json (all numbers), got numbers.csv" in done.stderr
        and not (tmp_path / "numbers.csv").exists()
    )


def test_names_cannot_steer_the_terminal(merkhet, run: Path, tmp_path: Path) -> None:
    """Escape sequences that clear the screen or set its title, also in the name of a folder, in tables and in words."""
    bad = "able\x1b[2J\x1b]0;title\x07\x9b31m\u202e"
    odd = changed(
        run,
        tmp_path / "odd\x1b[31m",
        questions=lambda rows: [{**row, "domain": f"{row['domain']}\x1b[5m[bold]"} for row in rows],
        names={"able": bad},
    )
    done = merkhet("compare", odd, run, "--by", "domain", "--out", "page.html", check=0)
    for text in (done.stdout, done.stderr, (tmp_path / "page.html").read_text()):
        assert not set("\x1b\x07\x9b\u202e") & set(text)
    assert "able�[2J" in done.stdout and "�[5m[bold]" in done.stdout
    assert "\x1b" not in merkhet("compare", odd, "--against", "nobody", check=2).stderr
    whole = strictly(merkhet("compare", odd, "--json", check=0).stdout)
    assert {one["model"] for one in whole} | {one["other"] for one in whole} == {bad, "weak"}
