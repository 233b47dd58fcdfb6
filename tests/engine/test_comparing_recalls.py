"""Models that memorized, compared on all that they recalled, by a plain reading of the files."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from merkhet import InputError, open_run
from merkhet.analysis.training_text import ONE_TRAINING
from merkhet.api import memorize
from merkhet.engine.run_comparison import ComparisonChoice, compare_runs

FEW, MANY = "random:1x32, 30 facts", "random:1x32, 60 facts"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("memorized")
    settings = ["options.sizes=[30,60]", "options.conflict=[with]", "report=none"]
    settings += ["learning.settings.vocabulary=400", "learning.settings.epochs=20"]
    return memorize("storage", models=["random:1x32"], settings=settings, out=folder / "one").folder


def recalled(run: Path, model: str, task: str = "statement") -> dict[str, float]:
    """Whether a right answer comes first, by statement."""
    rows = [row for row in pq.read_table(run / "answers.parquet").to_pylist() if row["model"] == model]
    rows = [row for row in rows if row["question_id"].partition("~")[0].endswith(f"-{task}")]
    assert all(tie == 1 for row in rows for tie in row["gold_ties"])
    return {row["question_id"].partition("~")[0]: float(min(row["gold_ranks"]) == 1.0) for row in rows}


def test_models_are_paired_by_statement(run: Path) -> None:
    found = compare_runs([open_run(run)], ComparisonChoice(by="relation"))
    (one,) = found.comparisons
    assert {one["model"], one["other"]} == {FEW, MANY} and one["task"] == "statement" and one["metric"] == "acc@1"
    own, others = (recalled(run, one[side]) for side in ("model", "other"))
    shared = sorted(own.keys() & others.keys())
    assert one["n"] == len(shared) == 4 * one["facts"] == 120 < len(own) + len(others) - len(shared)
    assert one["value"] == pytest.approx(np.mean([own[name] for name in shared]))
    assert one["other_value"] == pytest.approx(np.mean([others[name] for name in shared]))
    assert one["difference"] == pytest.approx(one["value"] - one["other_value"])
    assert one["p"] is None and one["trainings"] == 1 and found.order is None and not found.pairs
    assert found.verdict[0].startswith(f"On statement acc@1, “{one['model']}” minus “{one['other']}” is +")
    assert found.verdict[1:] == [ONE_TRAINING]
    assert found.group_sentences == ["By relation, no difference is tested: see above why these models get no verdict."]
    asked = f"({len(own)} to {len(others)})" if len(own) < len(others) else f"({len(others)} to {len(own)})"
    assert any(
        text.startswith(f"On statement, models were asked different statements {asked}") for text in found.remarks
    )
    assert sum(group["n"] for group in found.groups) == one["n"]


def test_the_same_recalls_in_two_runs_are_equal(run: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(run, tmp_path / "copy")
    found = compare_runs([open_run(run), open_run(copy)], ComparisonChoice(against=f"{FEW} (one)"))
    (same,) = [one for one in found.comparisons if one["model"] == f"{FEW} (copy)" and one["task"] == "statement"]
    assert same["equal"] and same["difference"] == 0.0 and same["p"] is None and same["n"] == 120
    assert found.question_remarks == [f"Both runs asked the same {found.shared[0]['both']} statements."]
    assert any("has the same weights in one and copy" in said for said in found.remarks)


def test_columns_and_metrics_that_recalls_do_not_have_are_refused(run: Path) -> None:
    for choice, words in (
        (ComparisonChoice(by="domain"), "models that memorized cannot be compared by 'domain'"),
        (ComparisonChoice(metrics=["mrr"]), "no run has the metric 'mrr'; there are: acc@1"),
    ):
        with pytest.raises(InputError) as refused:
            compare_runs([open_run(run)], choice)
        assert words in str(refused.value)


def test_beside_a_run_that_did_not_memorize_questions_are_compared_as_they_are(run: Path, tmp_path: Path) -> None:
    plain = shutil.copytree(run, tmp_path / "plain")
    shutil.rmtree(plain / ".merkhet" / "steps")  # They would say that it is damaged.
    record = json.loads((plain / "run.json").read_text())
    del record["card"]["experiment"]
    record["models"] = [{key: one[key] for key in one if key != "condition"} for one in record["models"]]
    (plain / "run.json").write_text(json.dumps(record))
    found = compare_runs([open_run(run), open_run(plain)])
    same = [one for one in found.comparisons if {one["model"], one["other"]} == {f"{FEW} (one)", f"{FEW} (plain)"}]
    assert {one["n"] for one in same if one["task"] == "statement"} == {120} and all(one["equal"] for one in same)
    assert found.question_remarks[0].endswith(" questions.")
