"""The baseline ``constant`` ties all candidates: a run shows it at chance in every task and metric."""

from __future__ import annotations

import json
from pathlib import Path

from small_packs import run_small, small_pack

from merkhet.core.records import Question
from merkhet.models.loading import load_model
from merkhet.probes.compare import compare_senses
from merkhet.probes.write import write_answers

METRICS = ("accuracy", "r@5", "mrr", "mrr_a", "mean-rank", "rank-index", "f1", "exact", "adjusted-mrr")


def test_a_run_shows_constant_at_chance_in_every_task_group_and_metric(made_once, tmp_path: Path) -> None:
    done = run_small(small_pack(made_once), tmp_path / "run", "constant", settings=[f"metrics=[{', '.join(METRICS)}]"])
    rows = json.loads((done.folder / "scores.json").read_text(encoding="utf-8"))
    assert {row["metric"] for row in rows} == set(METRICS) and len({row["task"] for row in rows}) >= 3
    for row in rows:
        assert row["unusable"] == 0 and row["value"] == row["chance"], row
        assert row["low"] is None or row["low"] <= row["chance"] <= row["high"], row


def test_constant_compares_and_does_not_write() -> None:
    model = load_model("constant")
    assert (model.name, model.kind) == ("constant", "baseline")
    (written,) = write_answers(model, [Question("q", "t", "[MASK]", ("a",), "a", ("a", "b"))])
    assert written.prediction is None and "writes no answers" in str(written.unusable)
    texts = ("a [MASK].", "the [MASK].", "no [MASK].")
    (compared,) = compare_senses(model, [Question("q", "t", "[MASK]", texts[:1], texts[0], texts, words=("bank",))])
    assert (compared.gold_ranks, compared.gold_ties) == ((2.0,), (3,))
