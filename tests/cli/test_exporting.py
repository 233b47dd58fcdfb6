"""Tables and figures from the command line on runs that have little: one model, one question, no answers, no number."""

from __future__ import annotations

import csv
import io
import json
import math
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest


@pytest.fixture(scope="module")
def small(tmp_path_factory) -> Path:
    """A real run of one model and one question of each task."""
    from merkhet.api import run

    folder = tmp_path_factory.mktemp("runs") / "small"
    run("quickstart", models=["frequency"], limit=1, out=folder)
    return folder


def changed(run: Path, folder: Path, name: str, change) -> Path:
    """A copy of the run in which a table is another."""
    shutil.copytree(run, folder)
    shutil.rmtree(folder / ".merkhet" / "steps")  # They would say that it is damaged.
    pq.write_table(change(pq.read_table(folder / name)), folder / name)
    return folder


def with_column(table: pa.Table, name: str, value: object) -> pa.Table:
    place = table.schema.get_field_index(name)
    column = pa.array([value] * len(table), table.schema.field(name).type)
    return table.set_column(place, table.schema.field(name), column)


def test_one_model_and_one_question_have_tables_and_figures(merkhet, small, tmp_path):
    rows = list(csv.DictReader(io.StringIO(merkhet("tables", small, "--as", "csv", check=0).stdout)))
    assert [row["model"] for row in rows] == ["frequency"] and rows[0]["completion R@1 n"] == "1"
    names = [one["name"] for one in json.loads(merkhet("tables", small, "--list", "--json", check=0).stdout)]
    assert "scores" in names and "comparisons" not in names, "there is nothing to compare"
    done = merkhet("figures", small, "--out", "figures", "--as", "png", "--as", "svg", check=0)
    assert "Figures: figures (" in done.stdout
    found = sorted(path.name for path in (tmp_path / "figures").iterdir())
    assert {"scores.png", "scores.svg", "ranks-completion.png", "figures.tex"} <= set(found)
    assert all((tmp_path / "figures" / name).stat().st_size > 1000 for name in found if name.endswith("png"))


def test_lists_name_what_there_is(merkhet, small):
    shown = merkhet("tables", small, "--list", check=0).stdout.splitlines()
    assert shown[0].split(maxsplit=1) == ["scores", "Scores by model."]
    figures = merkhet("figures", small, "--list", check=0).stdout.splitlines()
    assert figures[0].startswith("scores ") and not any("\t" in line for line in figures)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("tables", "--table", "scors"), "scores"),
        (("tables", "--as", "markdwn"), "markdown"),
        (("figures", "--out", "f", "--figure", "scors"), "scores"),
        (("figures", "--out", "f", "--as", "pgn"), "png"),
    ],
)
def test_a_name_that_there_is_not_is_answered_with_one_that_there_is(merkhet, small, tmp_path, arguments, said):
    done = merkhet(arguments[0], small, *arguments[1:])
    assert done.returncode == 2 and done.stdout == ""
    assert arguments[-1] in done.stderr and said in done.stderr and "Traceback" not in done.stderr
    assert not (tmp_path / "f").exists()


def test_a_folder_that_is_there_is_added_to_and_a_name_given_twice_is_one(merkhet, small, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine.txt").write_text("kept")
    (tmp_path / "out" / "scores.csv").write_text("old")
    arguments = ("--table", "scores", "--table", "scores", "--as", "csv", "--as", "csv")
    assert "1 table, 1 file)" in merkhet("tables", small, *arguments, "--out", "out", check=0).stdout
    merkhet("figures", small, "--figure", "scores", "--figure", "scores", "--as", "pdf", "--out", "out", check=0)
    assert (tmp_path / "out" / "mine.txt").read_text() == "kept"
    assert (tmp_path / "out" / "scores.csv").read_text().startswith("model,")
    assert (tmp_path / "out" / "figures.tex").read_text().count("includegraphics") == 1


def test_a_run_without_answers_and_scores_says_so(merkhet, small, tmp_path):
    empty = changed(small, tmp_path / "empty", "scores.parquet", lambda table: table.slice(0, 0))
    for path in (empty / "answers.parquet", *sorted((empty / "answers").glob("**/*.parquet"))):
        if path.exists():
            pq.write_table(pq.read_table(path).slice(0, 0), path)
    for name in ("findings.json", "analyses.json"):
        if (empty / name).exists():
            (empty / name).write_text("{}" if name == "findings.json" else "[]")
    assert "None: this run has no scores" in merkhet("tables", empty, "--list", check=0).stdout
    table = merkhet("tables", empty)
    assert table.returncode == 2 and "this run has no scores" in table.stderr
    figure = merkhet("figures", empty, "--out", "f")
    assert figure.returncode == 2 and "there is nothing to draw in this run" in figure.stderr
    assert not (tmp_path / "f").exists()


def test_scores_that_are_no_numbers_are_dashes_and_not_drawn(merkhet, small, tmp_path):
    def without_numbers(table):
        for name in ("value", "low", "high"):
            table = with_column(table, name, math.nan)
        return table

    broken = changed(small, tmp_path / "broken", "scores.parquet", without_numbers)
    for form in ("csv", "markdown", "latex", "html", "terminal"):
        shown = merkhet("tables", broken, "--as", form, check=0).stdout
        assert "nan" not in shown.lower() and "frequency" in shown
    listed = json.loads(merkhet("figures", broken, "--list", "--json", check=0).stdout)
    assert not any(one["name"].startswith("scores") for one in listed)


def test_what_is_no_run_is_refused(merkhet, tmp_path):
    (tmp_path / "nothing").mkdir()
    for command in (("tables", "nothing"), ("figures", "nothing", "--out", "f")):
        done = merkhet(*command)
        assert done.returncode == 2 and "nothing" in done.stderr and "Traceback" not in done.stderr
    assert not (tmp_path / "f").exists()
