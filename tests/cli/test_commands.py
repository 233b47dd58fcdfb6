"""The command line as scripts rely on it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest


@pytest.mark.parametrize("what", ["suites", "models", "probes", "metrics", "packs"])
def test_lists(gnomon, what: str) -> None:
    listed = json.loads(gnomon(what, "--json", check=0).stdout)
    assert all(entry["name"] for entry in listed)
    shown = gnomon(what, check=0).stdout
    assert all(entry["name"] in shown for entry in listed)


def test_packs_hold_at_least_5000_facts_each_with_a_licence(gnomon) -> None:
    packs = json.loads(gnomon("packs", "--json", check=0).stdout)
    assert sum(pack["facts"] for pack in packs) >= 5000
    assert all(pack["licence"] for pack in packs)


def test_run_prints_a_table_and_says_where_the_report_is(gnomon, tmp_path: Path) -> None:
    done = gnomon(
        "run", "quickstart", "--model", "frequency", "--model", "random", "--limit", "40", "--out", "run", check=0
    )
    assert "quickstart: 120 questions from" in done.stderr
    assert "frequency: 120/120 questions" in done.stderr
    for word in ("completion R@1", "checking accuracy", "distinction accuracy", "chance", "random"):
        assert word in done.stdout
    assert "run/report.html" in done.stdout
    assert "\x1b[" not in done.stdout + done.stderr
    assert (tmp_path / "run" / "report.html").is_file()


def test_run_with_json_prints_the_scores_and_nothing_else(gnomon, tmp_path: Path) -> None:
    done = gnomon("run", "quickstart", "--model", "random", "--limit", "10", "--json", "--out", "run", check=0)
    assert json.loads(done.stdout) == json.loads((tmp_path / "run" / "scores.json").read_text())


def test_run_of_one_task(gnomon, tmp_path: Path) -> None:
    gnomon("run", "quickstart", "--model", "random", "--task", "checking", "--limit", "10", "--out", "run", check=0)
    scores = json.loads((tmp_path / "run" / "scores.json").read_text())
    assert {score["task"] for score in scores} == {"checking"}


def test_build_then_run_with_data_asks_the_same_questions(gnomon, tmp_path: Path) -> None:
    built = json.loads(gnomon("build", "quickstart", "--limit", "30", "--out", "made", "--json", check=0).stdout)
    assert built["questions"] == 90
    gnomon("run", "quickstart", "--limit", "30", "--model", "random", "--out", "direct", check=0)
    gnomon("run", "quickstart", "--data", "made", "--model", "random", "--out", "read", check=0)
    ids = [
        sorted(pq.read_table(tmp_path / run / "questions.parquet")["question_id"].to_pylist())
        for run in ("direct", "read")
    ]
    assert ids[0] == ids[1]
    assert (tmp_path / "direct" / "scores.json").read_bytes() == (tmp_path / "read" / "scores.json").read_bytes()


def test_the_seed_decides_the_questions(gnomon, tmp_path: Path) -> None:
    for seed, folder in ((0, "a"), (0, "b"), (1, "c")):
        gnomon("build", "quickstart", "--limit", "20", "--seed", seed, "--out", folder, check=0)
    a, b, c = ((tmp_path / folder / "questions.parquet").read_bytes() for folder in "abc")
    assert a == b != c


def test_report_and_compare(gnomon, tmp_path: Path) -> None:
    (tmp_path / "study.yaml").write_text(
        "suite: quickstart\nlimit: 30\nmodels: ['coins.py:first', 'coins.py:second']\n"
    )
    (tmp_path / "coins.py").write_text(
        "from gnomon.models.baselines import RandomBaseline\n"
        "class Coin(RandomBaseline):\n    kind = 'causal'\n"
        "def first():\n    return Coin('first', seed=1)\n"
        "def second():\n    return Coin('second', seed=2)\n"
    )
    gnomon("run", "study.yaml", "--out", "one", check=0)
    gnomon("run", "quickstart", "--limit", "30", "--model", "random", "--out", "two", check=0)
    assert "Report: all.html" in gnomon("report", "one", "two", "--out", "all.html", check=0).stdout
    page = (tmp_path / "all.html").read_text()
    assert all(name in page for name in ("first", "second", "random"))
    compared = json.loads(gnomon("compare", "one", "two", "--json", check=0).stdout)
    assert {(one["task"], frozenset((one["model"], one["other"]))) for one in compared} == {
        (task, frozenset(("first", "second"))) for task in ("completion", "checking", "distinction")
    }
    assert "points" in gnomon("compare", "one", check=0).stdout


def test_scores_on_other_tasks_are_set_against_those_of_runs(gnomon, tmp_path: Path) -> None:
    names = [f"coin{number}" for number in range(4)]
    (tmp_path / "coins.py").write_text(
        "from gnomon.models.baselines import RandomBaseline\n"
        "class Coin(RandomBaseline):\n    kind = 'causal'\n"
        + "".join(f"def {name}():\n    return Coin('{name}', seed={place})\n" for place, name in enumerate(names))
    )
    for folder, own in (("one", names[:3]), ("two", names[3:])):
        models = ", ".join(f"'coins.py:{name}'" for name in own)
        (tmp_path / f"{folder}.yaml").write_text(f"suite: quickstart\nlimit: 20\nmodels: [random, {models}]\n")
        gnomon("run", f"{folder}.yaml", "--out", folder, "-q", check=0)
    scores = {"model": ["CMRC", "XNLI"], "coin0": [60, 0.1], "coin1": [61, 0.2], "coin2": [62, 0.4], "coin3": [64, 0.3]}
    lines = [",".join(map(str, (name, *row))) for name, row in scores.items()]
    (tmp_path / "other.csv").write_text("\n".join([*lines, "absent,70,0.7"]) + "\n")
    said = gnomon("compare", "one", "two", "--downstream", "other.csv", check=0).stdout
    for words in ("points", "Intrinsic against extrinsic", "Spearman", "but not in this run: absent.", "0.083"):
        assert words in said
    plain = json.loads(gnomon("compare", "one", "two", "--json", check=0).stdout)
    both = json.loads(gnomon("compare", "one", "two", "--downstream", "other.csv", "--json", check=0).stdout)
    assert both["comparisons"] == plain and both["extrinsic"]["name"] == "extrinsic"
    pairs = both["extrinsic"]["tables"][1]["rows"]
    assert {(row[1], row[2]) for row in pairs} == {("CMRC", 4), ("XNLI", 4)} and len(pairs) == 6
    gnomon("report", "one", "two", "--downstream", "other.csv", "--out", "all.html", check=0)
    gnomon("report", "one", "--downstream", "other.csv", "--out", "one.html", check=0)
    for file in ("all.html", "one.html"):
        assert "Rank correlation over models." in (tmp_path / file).read_text()
    assert "Intrinsic against" not in (tmp_path / "one" / "report.html").read_text()
    (tmp_path / "bad.csv").write_text("model,CMRC\ncoin0,high\n")
    for command in ("compare", "report"):
        refused = gnomon(command, "one", "--downstream", "bad.csv", check=2)
        assert "bad.csv:2: the score on 'CMRC' is 'high'" in refused.stderr and refused.stderr.count("\n") == 1


def test_help_and_lists_import_nothing_heavy() -> None:
    code = (
        "import sys\nsys.argv = ['gnomon', '{}']\nfrom gnomon.cli import main\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "heavy = {{'torch', 'transformers', 'vl_convert', 'pandas'{}}} & set(sys.modules)\nassert not heavy, heavy"
    )
    for command, more in (("--help", ", 'pyarrow', 'duckdb', 'pydantic', 'numpy'"), ("models", ""), ("suites", "")):
        subprocess.run([sys.executable, "-c", code.format(command, more)], check=True, capture_output=True, timeout=60)


def test_version(gnomon) -> None:
    import gnomon as package

    assert gnomon("--version", check=0).stdout.strip() == f"gnomon {package.__version__}"
