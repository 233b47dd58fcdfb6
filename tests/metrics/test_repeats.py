"""A question that was answered several times counts once, by the mean."""

from __future__ import annotations

import numpy as np
import pytest

from merkhet.core.records import Question
from merkhet.core.schemas import ANSWERS, make_table
from merkhet.metrics.answer_table import scoring_rows
from merkhet.metrics.metrics import get_metric
from merkhet.metrics.score_table import score_answers

CANDIDATES = ("a", "b", "c", "d")
QUESTIONS = {name: Question(name, "t", "x is [MASK]", ("a",), "a", CANDIDATES) for name in ("q1", "q2", "q3")}


def answer(question, rank, repeat, unusable=None):
    ranks = [] if unusable else [rank]
    return {
        **{"question_id": question, "model": "m", "probe": "rank", "method": "x", "repeat": repeat},
        **{"ranked": [] if unusable else [{"candidate": "a", "score": 1.0}, {"candidate": "b", "score": 0.0}]},
        **{
            "golds": ["a"] if ranks else [],
            "gold_ranks": ranks,
            "gold_ties": [1] * len(ranks),
            "unusable": unusable,
            "among": None,
        },
    }


ROWS = [
    *(answer("q1", rank, repeat) for repeat, rank in enumerate((1.0, 2.0))),
    answer("q2", 4.0, None),
    *(answer("q3", 1.0, repeat, "too long") for repeat in range(2)),
]


def scores(rows, **more):
    groups = {name: {} for name in QUESTIONS}
    clusters = {name: name for name in QUESTIONS}
    return score_answers("s", QUESTIONS, groups, clusters, rows, [get_metric("mrr")], seed=0, **more).to_pylist()


def test_values_are_means_over_repeats_and_questions_are_counted_once():
    (row,) = scores(scoring_rows(make_table(ANSWERS, ROWS)))
    assert row["value"] == pytest.approx(np.mean([np.mean([1, 1 / 2]), 1 / 4]))
    assert (row["n"], row["unusable"]) == (2, 1)


def test_the_order_of_answers_does_not_matter():
    assert scores(ROWS) == scores(ROWS[::-1])


def test_groups_may_depend_on_the_model():
    rows = scores(ROWS, groups_by_model={("m", "q1"): {"premises": "EX/EX"}, ("other", "q2"): {"premises": "NO/NO"}})
    by_group = {row.get("premises"): (row["n"], row["value"]) for row in rows}
    assert by_group == {None: (2, pytest.approx(0.5)), "EX/EX": (1, pytest.approx(0.75))}


def test_of_what_was_ranked_all_that_is_tied_for_the_first_place_is_kept():
    ranked = [[("a", 2.0), ("b", 2.0), ("c", 1.0)], [], [("d", 1.0), ("a", 0.5)]]
    rows = [
        {**answer("q1", 1.0, None), "ranked": [{"candidate": name, "score": score} for name, score in some]}
        for some in ranked
    ]
    table = make_table(ANSWERS, [{**answer("q2", 1.0, None)}, *rows]).slice(1)
    kept = [[entry["candidate"] for entry in row["ranked"]] for row in scoring_rows(table)]
    assert kept == [["a", "b"], [], ["d"]]
    assert scoring_rows(make_table(ANSWERS, [])) == []
