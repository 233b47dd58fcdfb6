"""A great many clusters of few kinds are drawn kind by kind: the same distributions as one cluster after another."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from merkhet.metrics import bootstrap
from merkhet.metrics.bootstrap import (
    averaged_interval,
    clustered_interval,
    paired_difference,
    resampled_means,
    resampled_sums,
)

CLUSTERS = 6000


@pytest.fixture
def one_by_one(monkeypatch):
    """Call a function without the way for many clusters."""

    def call(function, *given, **named):
        with monkeypatch.context() as patch:
            patch.setattr(bootstrap, "_MANY_CLUSTERS", 10**9)
            return function(*given, **named)

    return call


def answers(seed, share=0.3):
    generator = np.random.default_rng(seed)
    owners = np.repeat(np.arange(CLUSTERS), generator.integers(1, 4, CLUSTERS))
    known = generator.beta(share, 1 - share, CLUSTERS)
    return (generator.random(len(owners)) < known[owners]).astype(float), owners


def test_drawn_means_have_the_same_distribution(one_by_one):
    values, owners = answers(1)
    sums, counts = bootstrap.cluster_sums(values, owners)
    quick = resampled_means(sums, counts, seed=1, resamples=3000)
    plain = one_by_one(resampled_means, sums, counts, seed=2, resamples=3000)
    assert not np.array_equal(quick, one_by_one(resampled_means, sums, counts, seed=1, resamples=3000)), "drawn alike"
    assert stats.ks_2samp(quick, plain).pvalue > 0.01
    shifted = plain + 0.3 * plain.std()
    assert stats.ks_2samp(quick, shifted).pvalue < 0.01, "too few draws to see anything"


def test_drawn_sums_keep_the_columns_of_a_row_together(one_by_one):
    generator = np.random.default_rng(4)
    first = generator.integers(0, 3, CLUSTERS).astype(float)
    columns = np.stack([first, 2.0 - first, np.ones(CLUSTERS)], axis=1)
    found = resampled_sums(columns, seed=1, resamples=500)
    assert np.array_equal(found[:, 0] + found[:, 1], np.full(500, 2.0 * CLUSTERS))
    assert np.array_equal(found[:, 2], np.full(500, float(CLUSTERS)))
    plain = one_by_one(resampled_sums, columns, seed=1, resamples=500)
    assert stats.ks_2samp(found[:, 0], plain[:, 0]).pvalue > 0.01


def test_intervals_and_p_values_are_the_same_but_for_the_draws(one_by_one):
    first, owners = answers(1)
    kept, anew = np.random.default_rng(9).random((2, len(first)))
    second = np.where(kept < 0.9, first, anew < first.mean() + 0.02)
    for function, given in (
        (clustered_interval, (first, owners)),
        (averaged_interval, (first, owners, owners % 3)),
        (paired_difference, (first, second, owners)),
    ):
        quick = function(*given, seed=1, resamples=10_000)
        plain = one_by_one(function, *given, seed=1, resamples=10_000)
        width = plain.high - plain.low
        assert (quick.low, quick.high) == pytest.approx((plain.low, plain.high), abs=0.04 * width)
        if function is paired_difference:
            assert quick.difference == plain.difference
            assert 0.001 < plain.p < 0.6 and quick.p == pytest.approx(plain.p, abs=0.03)


def test_values_that_are_all_unlike_are_drawn_one_by_one(one_by_one):
    generator = np.random.default_rng(3)
    values, owners = generator.normal(size=CLUSTERS), np.arange(CLUSTERS)
    found = clustered_interval(values, owners, seed=1, resamples=100)
    assert found == one_by_one(clustered_interval, values, owners, seed=1, resamples=100)


def test_differences_of_one_size_have_the_p_of_a_sign_test():
    first = (np.arange(CLUSTERS) < 3060).astype(float)
    found = paired_difference(first, 1.0 - first, np.arange(CLUSTERS), seed=1, resamples=10, flips=40_000)
    assert found.p == pytest.approx(stats.binomtest(3060, CLUSTERS).pvalue, abs=0.01)
