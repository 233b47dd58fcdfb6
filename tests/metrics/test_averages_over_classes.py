"""Scores averaged over classes, answers that could not be given counted as wrong, and ties that are wrong."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from merkhet.core.records import Question
from merkhet.metrics.bootstrap import averaged_interval, class_weights, clustered_interval
from merkhet.metrics.metrics import get_metric
from merkhet.metrics.score_table import score_answers

METRICS = [get_metric(name) for name in ("p@1", "strict-accuracy", "mean-rank")]
CANDIDATES = ("a", "b", "c", "d")


def question(name: str) -> Question:
    return Question(name, "task", "[MASK]", ("a",), "a", CANDIDATES)


def answer(name: str, rank: float | None, tie: int = 1) -> dict[str, Any]:
    return {
        "question_id": name,
        "model": "m",
        "probe": "rank",
        "method": "sum",
        "unusable": "too long" if rank is None else None,
        "ranked": [{"candidate": "a" if rank == 1 else "b", "score": 1.0}],
        "golds": ["a"],
        "gold_ranks": [] if rank is None else [rank],
        "gold_ties": [] if rank is None else [tie],
        "among": None,
        "repeat": None,
    }


def scores(given: dict[str, tuple[str, float | None]], **settings: Any) -> dict[tuple[str, str | None], dict[str, Any]]:
    """Scores by metric and class of questions given as name: (class, rank)."""
    table = score_answers(
        "suite",
        {name: question(name) for name in given},
        {name: {"domain": kind} for name, (kind, _) in given.items()},
        {name: name for name in given},
        [answer(name, rank) for name, (_, rank) in given.items()],
        METRICS,
        seed=0,
        **settings,
    )
    return {(row["metric"], row.get("domain")): row for row in table.to_pylist()}


GIVEN = {
    **{f"c{i}": ("C", 1.0) for i in range(2)},
    **{f"d{i}": ("D", 1.0 if i < 2 else 3.0) for i in range(8)},
    "d9": ("D", None),
    "d8": ("D", None),
}


def test_the_overall_score_is_the_mean_over_classes_of_the_mean_within_each() -> None:
    found = scores(GIVEN, average_over="domain")
    assert found["p@1", "C"]["value"] == 1.0
    assert found["p@1", "D"]["value"] == 0.25
    assert found["p@1", None]["value"] == pytest.approx((1.0 + 0.25) / 2)
    assert found["p@1", None]["n"] == 10
    assert found["p@1", None]["chance"] == pytest.approx(0.25)
    assert found["p@1", None]["low"] <= 0.625 <= found["p@1", None]["high"]
    assert scores(GIVEN)["p@1", None]["value"] == pytest.approx(4 / 10)


def test_what_could_not_be_asked_counts_as_wrong_where_that_is_wanted() -> None:
    found = scores(GIVEN, average_over="domain", unusable_is_wrong=True)
    assert found["p@1", "D"]["value"] == pytest.approx(2 / 10)
    assert found["p@1", "D"]["chance"] == pytest.approx(0.25 * 8 / 10)
    assert (found["p@1", "D"]["n"], found["p@1", "D"]["unusable"]) == (10, 2)
    assert found["p@1", None]["value"] == pytest.approx((1.0 + 0.2) / 2)
    # A rank that is not there has no value that could stand for it.
    assert (found["mean-rank", "D"]["n"], found["mean-rank", "D"]["unusable"]) == (8, 2)
    assert found["mean-rank", "D"]["value"] == pytest.approx((2 * 1 + 6 * 3) / 8)


def test_where_nothing_could_be_asked_all_is_wrong_or_there_is_no_score() -> None:
    given = {"x": ("C", None), "y": ("C", None)}
    wrong = scores(given, unusable_is_wrong=True)["p@1", None]
    assert (wrong["value"], wrong["low"], wrong["n"], wrong["unusable"], wrong["chance"]) == (0.0, 0.0, 2, 2, None)
    left_out = scores(given)["p@1", None]
    assert (left_out["value"], left_out["n"], left_out["unusable"]) == (None, 0, 2)


def test_a_tie_is_half_right_or_wrong() -> None:
    table = score_answers(
        "suite",
        {name: question(name) for name in "xy"},
        {name: {} for name in "xy"},
        {name: name for name in "xy"},
        [answer("x", 1.5, tie=2), answer("y", 1.0)],
        METRICS,
        seed=0,
    )
    found = {row["metric"]: row for row in table.to_pylist()}
    assert found["p@1"]["value"] == 0.75
    assert found["strict-accuracy"]["value"] == 0.5
    assert found["strict-accuracy"]["chance"] is None


def test_one_class_is_a_plain_mean_with_its_interval() -> None:
    generator = np.random.default_rng(1)
    values, clusters = generator.random(60), generator.integers(0, 20, 60)
    plain = clustered_interval(values, clusters, seed=3)
    assert averaged_interval(values, clusters, np.zeros(60), seed=3) == plain


def test_intervals_over_classes_hold_the_truth_as_often_as_they_say() -> None:
    """Means over two classes of unlike sizes: of many samples about 95 in 100 intervals hold the true mean."""
    generator = np.random.default_rng(5)
    held = 0
    for trial in range(200):
        first, second = generator.random(200) < 0.7, generator.random(40) < 0.2
        values = np.concatenate([first, second]).astype(float)
        kinds = np.repeat([0, 1], [200, 40])
        found = averaged_interval(values, np.arange(240), kinds, seed=trial, resamples=500)
        held += found.low <= 0.45 <= found.high
    assert 180 <= held <= 198


def test_clusters_may_reach_over_classes() -> None:
    values = np.array([1.0, 1.0, 0.0, 0.0, 1.0, 0.0])
    together = averaged_interval(values, np.array([0, 0, 1, 1, 2, 3]), np.array([0, 1, 0, 1, 0, 1]), seed=0)
    assert together.value == pytest.approx(((1 + 0 + 1) / 3 + (1 + 0 + 0) / 3) / 2)
    assert together.low < together.value < together.high


def test_weights_make_a_mean_over_classes() -> None:
    values, kinds = np.array([1.0, 0.0, 0.0, 1.0]), np.array(["x", "x", "x", "y"])
    assert np.mean(values * class_weights(kinds)) == pytest.approx((1 / 3 + 1) / 2)
