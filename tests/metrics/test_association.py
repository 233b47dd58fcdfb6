from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import spearmanr

from merkhet.metrics.association import _weighted_rho, permutation_correlation, rank_correlation, ratio_interval

rows = st.lists(
    st.tuples(st.integers(0, 5), st.sampled_from([0.0, 0.5, 1.0]), st.integers(0, 4)), min_size=3, max_size=40
)


@settings(deadline=None)
@given(rows)
def test_rho_is_spearmans(drawn):
    first, second, clusters = (np.array(column, dtype=float) for column in zip(*drawn, strict=True))
    found = rank_correlation(first, second, clusters, seed=0, resamples=20)
    if np.ptp(first) == 0 or np.ptp(second) == 0:
        assert np.isnan(found.value)
    else:
        assert found.value == pytest.approx(spearmanr(first, second).statistic, abs=1e-12)
        assert np.isnan(found.low) or -1 - 1e-12 <= found.low <= found.high <= 1 + 1e-12


@settings(deadline=None)
@given(rows, st.data())
def test_rows_drawn_several_times_are_there_several_times(drawn, data):
    first, second, _ = (np.array(column, dtype=float) for column in zip(*drawn, strict=True))
    times = np.array(data.draw(st.lists(st.integers(0, 3), min_size=len(drawn), max_size=len(drawn))))
    left, right = np.repeat(first, times), np.repeat(second, times)
    codes = [np.unique(column, return_inverse=True)[1] for column in (first, second)]
    rho = _weighted_rho(codes[0], codes[1], times.astype(float))
    if len(left) < 2 or np.ptp(left) == 0 or np.ptp(right) == 0:
        assert np.isnan(rho)
    else:
        assert rho == pytest.approx(spearmanr(left, right).statistic, abs=1e-12)


def test_the_interval_of_rho_covers_the_truth():
    generator = np.random.default_rng(5)
    covered = 0
    for trial in range(100):
        normal = generator.multivariate_normal([0, 0], [[1, 0.5], [0.5, 1]], size=80)
        found = rank_correlation(normal[:, 0], normal[:, 1], np.arange(80), seed=trial, resamples=300)
        covered += found.low <= 6 / np.pi * np.arcsin(0.25) <= found.high
    assert covered >= 88


def test_whole_clusters_are_drawn():
    first = np.repeat(np.arange(12.0), 10)
    second = np.repeat(np.random.default_rng(0).permutation(12).astype(float), 10)
    alone = rank_correlation(first, second, np.arange(120), seed=1)
    together = rank_correlation(first, second, np.repeat(np.arange(12), 10), seed=1)
    assert together.high - together.low > 2 * (alone.high - alone.low)


def test_a_ratio_is_of_sums_and_its_interval_covers_it():
    generator = np.random.default_rng(3)
    covered = 0
    for trial in range(100):
        below = generator.binomial(1, 0.8, size=120).astype(float)
        above = below * generator.binomial(1, 0.5, size=120)
        found = ratio_interval(above, below, np.arange(120), seed=trial, resamples=300)
        assert found.value == pytest.approx(above.sum() / below.sum())
        covered += found.low <= 0.5 <= found.high
    assert covered >= 88


def test_a_ratio_to_nothing_is_none():
    zeros, ones = np.zeros(4), np.ones(4)
    assert np.isnan(ratio_interval(ones, zeros, np.arange(4), seed=0).value)
    one = ratio_interval(ones, ones, np.zeros(4), seed=0)
    assert one.value == 1.0 and np.isnan(one.low)
    assert np.isnan(rank_correlation(zeros[:0], zeros[:0], zeros[:0], seed=0).value)
    assert np.isnan(rank_correlation(np.arange(4.0), np.arange(4.0), zeros, seed=0).low)


few = st.lists(st.tuples(st.integers(0, 3), st.sampled_from([0.0, 0.3, 0.7, 1.0])), min_size=2, max_size=5)


@given(few)
@settings(deadline=None, max_examples=60)
def test_p_is_the_share_of_all_orders(drawn):
    first, second = (np.array(column, dtype=float) for column in zip(*drawn, strict=True))
    found = permutation_correlation(first, second, seed=0)
    assert found.n == len(drawn)
    if np.ptp(first) == 0 or np.ptp(second) == 0:
        assert np.isnan(found.rho) and np.isnan(found.p)
        return
    orders = [spearmanr(first, second[list(order)]).statistic for order in permutations(range(len(drawn)))]
    assert found.rho == pytest.approx(orders[0], abs=1e-12)
    assert found.p == pytest.approx(np.mean([abs(rho) >= abs(orders[0]) - 1e-9 for rho in orders]))


def test_p_of_many_is_near_that_of_all_orders_and_seeded():
    generator = np.random.default_rng(1)
    first, second = generator.normal(size=9), np.round(generator.normal(size=9), 0)
    found = permutation_correlation(first, second, seed=4)
    again, other = (permutation_correlation(first, second, seed=seed) for seed in (4, 5))
    orders = np.array(list(permutations(range(9))))
    left = first.argsort().argsort().astype(float)
    right = np.array([np.mean(np.flatnonzero(np.sort(second) == value)) for value in second])
    rhos = np.abs((right - 4.0)[orders] @ (left - 4.0))
    assert found == again != other
    assert found.p == pytest.approx(np.mean(rhos >= rhos[0] - 1e-9), abs=0.03)
    assert permutation_correlation(np.arange(40.0), np.arange(40.0), seed=0).p == pytest.approx(1 / 10_001)


def test_under_no_relation_p_is_fair():
    generator = np.random.default_rng(2)
    low = sum(permutation_correlation(*generator.normal(size=(2, 6)), seed=0).p <= 0.1 for _ in range(400))
    assert 20 <= low <= 60
    assert np.isnan(permutation_correlation(np.zeros(0), np.zeros(0), seed=0).rho)
