"""The table of scores: every model, task, probe and method, over all questions and by group."""

from __future__ import annotations

import random

import pytest

from merkhet.core.records import Question
from merkhet.metrics.metrics import get_metric
from merkhet.metrics.score_table import score_answers

CANDIDATES = ("New York", "New Delhi", "Paris", "Rome")
QUESTIONS = {
    f"q{i}": Question(
        f"q{i}", "completion" if i < 8 else "checking", f"{i} [MASK]", ("New York",), "New York", CANDIDATES
    )
    for i in range(10)
}
CLUSTERS = {name: f"f{int(name[1:]) // 2}" for name in QUESTIONS}
GROUPS = {name: {"relation": "even" if int(name[1:]) % 2 == 0 else "odd", "domain": None} for name in QUESTIONS}
METRICS = [get_metric(name) for name in ("r@1", "mrr", "f1")]


def answer(question, model="m", *, right=True, unusable=None, ranked=None, rank=None, ties=1, method="mean"):
    order = ranked or [(name, -i) for i, name in enumerate(CANDIDATES if right else CANDIDATES[::-1])]
    return {
        "question_id": question,
        "model": model,
        "probe": "rank",
        "method": method,
        "ranked": [] if unusable else [{"candidate": name, "score": float(score)} for name, score in order],
        "golds": [] if unusable else ["New York"],
        "gold_ranks": [] if unusable else [rank or (1.0 if right else 4.0)],
        "gold_ties": [] if unusable else [ties],
        "among": None,
        "unusable": unusable,
    }


def score(answers, metrics=METRICS, seed=0):
    return score_answers("own", QUESTIONS, GROUPS, CLUSTERS, answers, metrics, seed=seed)


def one(table, **wanted):
    wanted = {"relation": None, "model": "m", "task": "completion", "metric": "r@1", **wanted}
    found = [row for row in table.to_pylist() if all(row.get(key) == value for key, value in wanted.items())]
    assert len(found) == 1, found
    return found[0]


@pytest.fixture
def answers():
    completion = [answer(f"q{i}", right=i % 3 != 0) for i in range(7)]
    return [
        *completion,
        answer("q7", unusable="too long"),
        *[answer(f"q{i}", "other", right=i == 2) for i in range(10)],
        answer("q8", right=False),
        answer("q9", unusable="too long"),
        *[answer(f"q{i}", right=True, method="sum") for i in range(8)],
    ]


def test_scores_are_means_over_usable_answers_by_model_task_method_and_group(answers):
    table = score(answers)
    assert one(table, method="mean")["value"] == pytest.approx(4 / 7)
    assert one(table, method="mean", metric="mrr")["value"] == pytest.approx((4 + 3 / 4) / 7)
    assert one(table, method="sum")["value"] == 1.0
    assert one(table, model="other")["value"] == pytest.approx(1 / 8)
    assert one(table, method="mean", relation="even")["value"] == pytest.approx(2 / 4)
    assert one(table, method="mean", relation="odd")["value"] == pytest.approx(2 / 3)
    assert one(table, model="other", task="checking", relation="odd")["n"] == 1
    assert {row["suite"] for row in table.to_pylist()} == {"own"}
    assert "domain" not in table.column_names


def test_what_could_not_be_asked_is_counted_and_left_out(answers):
    table = score(answers)
    assert (one(table, method="mean")["n"], one(table, method="mean")["unusable"]) == (7, 1)
    odd = one(table, method="mean", relation="odd")
    assert (odd["n"], odd["unusable"]) == (3, 1)
    nothing = one(table, task="checking", relation="odd")
    assert (nothing["n"], nothing["unusable"], nothing["value"], nothing["low"]) == (0, 1, None, None)


def test_chance_stands_beside_every_score(answers):
    table = score(answers)
    assert one(table, method="mean")["chance"] == pytest.approx(1 / 4)
    assert one(table, method="mean", metric="mrr")["chance"] == pytest.approx((1 + 1 / 2 + 1 / 3 + 1 / 4) / 4)
    assert one(table, method="mean", metric="f1")["chance"] == pytest.approx((1 + 0.5) / 4)


def test_a_score_against_chance_stands_beside_every_share_that_has_one(answers):
    metrics = [*METRICS, get_metric("mean-rank"), get_metric("accuracy")]
    rows = score(answers, metrics).to_pylist()
    assert {row["metric"] for row in rows if row["adjusted"] is None and row["n"]} == {"mean-rank"}
    for row in rows:
        if row["adjusted"] is not None:
            above, room = row["value"] - row["chance"], 1.0 - row["chance"]
            assert row["adjusted"] * room == pytest.approx(above)
    assert one(score(answers), method="mean")["adjusted"] == pytest.approx((4 / 7 - 1 / 4) / (3 / 4))
    assert one(score(answers), method="sum")["adjusted"] == 1.0
    below = one(score(answers), model="other")
    assert below["adjusted"] == pytest.approx((1 / 8 - 1 / 4) / (3 / 4)) and below["adjusted"] < 0


def test_the_order_of_answers_does_not_matter(answers):
    def key(row):
        return str([row.get(name) for name in ("model", "task", "method", "metric", "relation")])

    expected = sorted(score(answers).to_pylist(), key=key)
    for seed in range(5):
        random.Random(seed).shuffle(answers)
        assert sorted(score(answers).to_pylist(), key=key) == expected


def test_intervals_are_over_facts_and_the_same_for_a_seed(answers):
    row = one(score(answers), method="mean")
    assert row["low"] < row["value"] < row["high"]
    assert one(score(answers), method="mean") == row
    single = one(score([answer("q0"), answer("q1", right=False)]))
    assert (single["value"], single["low"], single["high"]) == (0.5, None, None)


def test_tied_tops_are_shared_in_f1_and_ranked_by_expectation():
    tied = [("New York", 0), ("New Delhi", 0), ("Paris", -1), ("Rome", -2)]
    table = score([answer(f"q{i}", ranked=tied, rank=1.5, ties=2) for i in range(4)])
    assert one(table, metric="f1")["value"] == pytest.approx((1 + 0.5) / 2)
    assert one(table, metric="r@1")["value"] == pytest.approx(0.5)
    assert one(table, metric="mrr")["value"] == pytest.approx((1 + 1 / 2) / 2)


def test_equal_ranks_have_an_interval_of_no_width():
    first, third = (score([answer(f"q{i}", rank=rank) for i in range(4)], [get_metric("mean-rank")]) for rank in (1, 3))
    for table, rank in ((first, 1.0), (third, 3.0)):
        row = one(table, metric="mean-rank")
        assert (row["value"], row["low"], row["high"]) == (rank, rank, rank)
    share = one(score([answer(f"q{i}") for i in range(4)]), metric="r@1")
    assert share["low"] < share["value"] == share["high"] == 1.0


def test_a_metric_without_chance_has_none():
    import numpy as np

    from merkhet.metrics.metrics import as_metric

    metric = as_metric("half", lambda responses: np.full(len(responses.top), 0.5))
    row = one(score([answer("q0"), answer("q2")], [metric]), metric="half")
    assert (row["value"], row["chance"]) == (0.5, None)


def test_questions_without_a_number_are_left_out_and_no_number_is_none(answers):
    import json
    from dataclasses import replace

    import numpy as np

    from merkhet.engine.score_step import score_objects

    plain = get_metric("r@1")
    hole = replace(plain, name="hole", values=lambda given: np.r_[np.nan, plain.values(given)[1:]])
    nothing = replace(plain, name="nothing", values=lambda given: np.full(len(given.answers), np.nan))
    table = score(answers, [plain, hole, nothing])
    all_of_them, some = (one(table, method="mean", metric=name) for name in ("r@1", "hole"))
    assert (all_of_them["n"], some["n"], some["unusable"]) == (7, 6, 1)
    assert (all_of_them["value"], some["value"]) == pytest.approx((4 / 7, 4 / 6)), "the first one is wrong"
    assert some["low"] <= some["value"] <= some["high"] and some["chance"] == pytest.approx(1 / 4)
    none = one(table, method="mean", metric="nothing")
    assert [none[key] for key in ("n", "value", "low", "high", "chance", "adjusted")] == [
        0,
        None,
        None,
        None,
        None,
        None,
    ]
    assert json.loads(json.dumps(score_objects(table), allow_nan=False))


@pytest.mark.parametrize("questions", [[], ["q0"], ["q0", "q1"]], ids=["no answer", "one question", "one fact"])
def test_too_little_for_an_interval(questions):
    table = score([answer(name) for name in questions])
    if not questions:
        assert table.num_rows == 0 and "adjusted" in table.column_names
        return
    row = one(table)
    assert (row["n"], row["value"], row["adjusted"]) == (len(questions), 1.0, 1.0)
    assert (row["low"], row["high"]) == (None, None)
