"""Rank metrics equal the mean over every way to break ties, and their chance the mean over every order."""

from __future__ import annotations

from itertools import pairwise, permutations

import numpy as np
import pytest
from all_cases import check_all
from hypothesis import given, settings
from hypothesis import strategies as st

from merkhet.core.errors import InputError
from merkhet.metrics.metrics import Responses, get_metric
from merkhet.metrics.ranks import expected_ranks

SCORES = st.lists(st.sampled_from([0.0, 0.5, 1.0]), min_size=2, max_size=5)


@st.composite
def worlds(draw):
    scores = draw(SCORES)
    places = st.sets(st.integers(0, len(scores) - 1), min_size=1, max_size=len(scores))
    golds = sorted(draw(places))
    return scores, golds, draw(st.integers(0, len(golds) - 1))


def responses(scores, golds, target) -> Responses:
    ranks, ties = expected_ranks(np.array(scores), np.array(golds))
    names = [f"c{i}" for i in range(len(scores))]
    return Responses(
        top=[[names[i] for i in range(len(scores)) if scores[i] == max(scores)]],
        answers=[[names[i] for i in golds]],
        candidates=[names],
        gold_ranks=[ranks.tolist()],
        gold_ties=[ties.tolist()],
        targets=[target],
    )


def orders(scores):
    """Every order of the candidates that the scores allow, each equally likely."""
    return [
        order for order in permutations(range(len(scores))) if all(scores[a] >= scores[b] for a, b in pairwise(order))
    ]


def mean_over(all_orders, value) -> float:
    return float(
        np.mean([value({candidate: place + 1 for place, candidate in enumerate(order)}) for order in all_orders])
    )


@settings(deadline=None)
@given(world=worlds(), k=st.integers(1, 6))
def test_values_are_means_over_all_tie_breaks(world, k):
    scores, golds, target = world
    given_ = responses(*world)
    allowed = orders(scores)

    def best(ranks):
        return min(ranks[gold] for gold in golds)

    within = mean_over(allowed, lambda ranks: best(ranks) <= k)
    for name in ("r", "p", "acc"):
        assert get_metric(f"{name}@{k}").values(given_)[0] == pytest.approx(within)
    hit = mean_over(allowed, lambda ranks: ranks[golds[target]] <= k)
    assert get_metric(f"hit@{k}").values(given_)[0] == pytest.approx(hit)
    assert hit <= within + 1e-12
    rank = mean_over(allowed, best)
    assert get_metric("mean-rank").values(given_)[0] == pytest.approx(rank)
    reciprocal = mean_over(allowed, lambda ranks: 1 / best(ranks))
    assert get_metric("mrr").values(given_)[0] == pytest.approx(reciprocal)
    of_all = mean_over(allowed, lambda ranks: 1 / np.mean([ranks[gold] for gold in golds]))
    assert get_metric("mrr_a").values(given_)[0] == pytest.approx(of_all)
    firsts = [min(order.index(gold) + 1 for gold in golds) for order in allowed]
    assert get_metric("optimistic-rank").values(given_)[0] == min(firsts)
    assert get_metric("pessimistic-rank").values(given_)[0] == max(firsts)


@settings(deadline=None)
@given(world=worlds(), k=st.integers(1, 6))
def test_chances_are_means_over_all_orders(world, k):
    scores, golds, target = world
    given_ = responses(*world)
    every = list(permutations(range(len(scores))))

    def best(ranks):
        return min(ranks[gold] for gold in golds)

    assert get_metric(f"r@{k}").chance(given_)[0] == pytest.approx(mean_over(every, lambda ranks: best(ranks) <= k))
    hit = mean_over(every, lambda ranks: ranks[golds[target]] <= k)
    assert get_metric(f"hit@{k}").chance(given_)[0] == pytest.approx(hit)
    rank = mean_over(every, best)
    assert get_metric("mean-rank").chance(given_)[0] == pytest.approx(rank)
    of_all = mean_over(every, lambda ranks: 1 / np.mean([ranks[gold] for gold in golds]))
    assert get_metric("mrr_a").chance(given_)[0] == pytest.approx(of_all)
    index = get_metric("rank-index")
    value = get_metric("mean-rank").values(given_)[0]
    assert index.values(given_)[0] == pytest.approx(1.0 if rank == 1 else 1 - (value - 1) / (rank - 1))
    assert index.chance(given_)[0] == pytest.approx(1.0 if rank == 1 else 0.0)


def test_adjusted_metrics_are_nothing_at_chance_and_one_at_best():
    check_all(check_adjusted, ["r@1", "accuracy", "mrr", "mrr_a", "hit@2", "exact", "f1"])


def check_adjusted(name):
    metric, less = get_metric(name), get_metric(f"adjusted-{name}")
    given_ = responses([1.0, 0.0, 0.0, 0.0], [0], 0)
    assert less.values(given_)[0] == pytest.approx(1.0)
    value, chance = metric.values(responses([0.0, 1.0, 0.5, 0.0], [2], 0))[0], metric.chance(given_)[0]
    assert less.values(responses([0.0, 1.0, 0.5, 0.0], [2], 0))[0] == pytest.approx((value - chance) / (1 - chance))
    assert less.chance(given_).tolist() == [0.0]


def test_ranks_have_their_direction_and_no_adjusted_version():
    for name in ("mean-rank", "optimistic-rank", "pessimistic-rank"):
        metric = get_metric(name)
        assert not metric.higher_is_better
        assert not metric.share
        with pytest.raises(InputError, match=f"adjusted-{name}: {name} has no chance level"):
            get_metric(f"adjusted-{name}")
    with pytest.raises(InputError, match="hit@0: hit@ needs a positive integer"):
        get_metric("hit@0")
    with pytest.raises(InputError, match="did you mean"):
        get_metric("mrra")


def test_without_a_target_the_best_right_answer_stands_for_it():
    scores, golds = [0.2, 0.9, 0.5], [0, 1]
    ranks, ties = expected_ranks(np.array(scores), np.array(golds))
    bare = Responses([["b"]], [["a", "b"]], [["a", "b", "c"]], [ranks.tolist()], [ties.tolist()])
    assert get_metric("hit@1").values(bare)[0] == 1.0
    assert get_metric("hit@1").values(responses(scores, golds, 0))[0] == 0.0
