"""Ranks and the metrics made of them, against every way to break ties, one after another."""

from __future__ import annotations

from itertools import combinations, pairwise, permutations
from math import comb

import numpy as np
import pytest
from all_cases import check_all
from hypothesis import given, settings
from hypothesis import strategies as st

from merkhet.metrics.metrics import MRR, Responses, make_recall
from merkhet.metrics.ranks import best_gold, expected_ranks


@st.composite
def scored(draw):
    """Scores with many ties, and one to three right candidates."""
    scores = draw(st.lists(st.sampled_from([0.0, 0.5, 1.0]), min_size=1, max_size=6))
    golds = draw(st.lists(st.integers(0, len(scores) - 1), min_size=1, max_size=3, unique=True))
    return scores, golds


def orders(scores):
    """Every order of the candidates that puts better ones first."""
    everybody = range(len(scores))
    return [order for order in permutations(everybody) if all(scores[a] >= scores[b] for a, b in pairwise(order))]


def responses(scores, golds) -> Responses:
    ranks, ties = expected_ranks(np.array(scores), np.array(golds))
    names = [f"c{i}" for i in range(len(scores))]
    return Responses([[]], [[names[g] for g in golds]], [names], [ranks.tolist()], [ties.tolist()])


def unordered(total, golds) -> Responses:
    """Responses of which only the numbers of candidates and of right ones matter."""
    return responses([0.0] * total, list(range(golds)))


@settings(deadline=None)
@given(case=scored())
def test_expected_rank_is_the_mean_over_all_ways_to_break_ties(case):
    scores, golds = case
    ranks, ties = expected_ranks(np.array(scores), np.array(golds))
    for gold, rank, tie in zip(golds, ranks, ties, strict=True):
        assert rank == pytest.approx(np.mean([order.index(gold) + 1 for order in orders(scores)]))
        assert tie == scores.count(scores[gold])


@settings(deadline=None)
@given(case=scored(), k=st.integers(1, 7))
def test_the_best_right_answer_is_where_it_is_over_all_ways_to_break_ties(case, k):
    scores, golds = case
    found = responses(scores, golds)
    best = [min(order.index(gold) + 1 for gold in golds) for order in orders(scores)]
    assert found.best.rank[0] == pytest.approx(np.mean(best))
    assert make_recall(str(k)).values(found)[0] == pytest.approx(np.mean([rank <= k for rank in best]))
    assert MRR.values(found)[0] == pytest.approx(np.mean([1 / rank for rank in best]))


@settings(deadline=None)
@given(case=scored(), data=st.data())
def test_ranks_do_not_depend_on_the_order_of_candidates(case, data):
    scores, golds = case
    order = data.draw(st.permutations(range(len(scores))))
    moved = [order.index(gold) for gold in golds]
    one = expected_ranks(np.array(scores), np.array(golds))
    other = expected_ranks(np.array(scores)[list(order)], np.array(moved))
    assert one[0].tolist() == other[0].tolist()
    assert one[1].tolist() == other[1].tolist()


def test_chance_is_the_mean_over_all_orders():
    def check(total, golds):
        drawn = [min(places) + 1 for places in combinations(range(total), golds)]
        found = unordered(total, golds)
        assert MRR.chance(found)[0] == pytest.approx(np.mean([1 / rank for rank in drawn]))
        for k in range(1, total + 2):
            recall = make_recall(str(k)).chance(found)[0]
            assert recall == pytest.approx(np.mean([rank <= k for rank in drawn]))
            expected = 1 - comb(total - golds, min(k, total)) / comb(total, min(k, total))
            assert recall == pytest.approx(expected)

    check_all(check, [(total, golds) for total in range(1, 8) for golds in (1, 2, 3) if golds <= total])


def test_chance_of_the_reciprocal_rank_of_one_right_answer_is_harmonic():
    def check(total):
        expected = sum(1 / i for i in range(1, total + 1)) / total
        assert MRR.chance(unordered(total, 1))[0] == pytest.approx(expected)

    check_all(check, [1, 2, 20, 1000])


def test_many_questions_at_once_are_as_many_questions_alone():
    cases = [([1.0, 1.0, 0.0], [0]), ([0.0, 0.5, 0.5, 0.5], [1, 3]), ([0.0], [0]), ([0.0, 1.0, 1.0, 1.0], [0, 1])]
    alone = [responses(*case) for case in cases]
    together = Responses(
        *[[getattr(one, name)[0] for one in alone] for name in ("top", "answers", "candidates")],
        gold_ranks=[one.gold_ranks[0] for one in alone],
        gold_ties=[one.gold_ties[0] for one in alone],
    )
    recall = make_recall("2")
    for metric in (recall.values, MRR.values, recall.chance, MRR.chance):
        assert metric(together).tolist() == pytest.approx([metric(one)[0] for one in alone])


def test_best_gold_by_hand():
    found = best_gold([[1.0, 4.0], [2.5, 2.5]], [[1, 1], [2, 2]])
    assert found.first.tolist() == [1.0, 2.0]
    assert found.ties.tolist() == [1.0, 2.0]
    assert found.golds.tolist() == [1.0, 2.0]
    assert found.rank.tolist() == [1.0, 2.0]
