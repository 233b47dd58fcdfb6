"""Intervals in closed form, against the bootstrap, scipy and simulation."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from merkhet.metrics._closed_form import clustered_variance, robust_difference, robust_interval
from merkhet.metrics.bootstrap import clustered_interval, paired_difference


def clustered(generator, count, share, spread=0.3, most=4):
    sizes = generator.integers(1, most + 1, size=count)
    known = generator.beta(share / spread, (1 - share) / spread, size=count)
    owners = np.repeat(np.arange(count), sizes)
    return (generator.random(len(owners)) < known[owners]).astype(float), owners


@pytest.mark.parametrize("share", [0.03, 0.3, 0.9, 0.99])
def test_many_clusters_tell_the_same_as_resampling(share):
    values, owners = clustered(np.random.default_rng(4), 3000, share)
    found, drawn = robust_interval(values, owners), clustered_interval(values, owners, seed=1, resamples=4000)
    width = drawn.high - drawn.low
    assert found.value == pytest.approx(drawn.value)
    assert (found.low, found.high) == pytest.approx((drawn.low, drawn.high), abs=0.06 * width)


def test_differences_tell_the_same_as_resampling():
    generator = np.random.default_rng(2)
    first, owners = clustered(generator, 1500, 0.6)
    second = np.where(generator.random(len(first)) < 0.9, first, generator.random(len(first)) < 0.5).astype(float)
    found, drawn = robust_difference(first, second, owners), paired_difference(first, second, owners, seed=1)
    width = drawn.high - drawn.low
    assert (found.low, found.high) == pytest.approx((drawn.low, drawn.high), abs=0.06 * width)
    assert found.p == pytest.approx(drawn.p, abs=0.02)


@pytest.mark.parametrize("share", [0.5, 0.97])
def test_two_kinds_of_clusters_are_covered(share):
    """What a fact and a prompt move together: the truth is in 95% of intervals or so, and in fewer by facts alone."""
    generator = np.random.default_rng(7)
    facts, prompts = np.divmod(np.arange(3600), 60)
    level = stats.norm.ppf(share) * np.sqrt(1.6)
    held = naive = 0
    for _ in range(300):
        order = generator.permutation(3600)[:1200]
        fact, prompt = generator.normal(0, np.sqrt(0.3), (2, 60))
        values = (level + fact[facts] + prompt[prompts] + generator.normal(size=3600) > 0).astype(float)[order]
        own = robust_interval(values, facts[order], prompts[order])
        held += own.low <= share <= own.high
        plain = robust_interval(values, facts[order])
        naive += plain.low <= share <= plain.high
    assert 0.91 <= held / 300 <= 0.99
    assert naive < held


def test_one_value_a_cluster_is_wilsons_interval():
    values = (np.arange(4000) < 3900).astype(float)
    found = robust_interval(values, np.arange(4000))
    t = stats.t.ppf(0.975, 8000 / (stats.kurtosis(values, fisher=False) - 1))
    exact = stats.binomtest(3900, 4000).proportion_ci(1 - 2 * stats.norm.sf(t), method="wilson")
    assert (found.low, found.high) == pytest.approx((exact.low, exact.high), abs=2e-6)
    assert clustered_variance(values, np.arange(4000)) == pytest.approx(values.var(ddof=1) / 4000)


def test_nothing_is_told_that_cannot_be():
    same = np.arange(40) // 4
    assert robust_interval(np.ones(40), same) == clustered_interval(np.ones(40), same, seed=0)
    assert np.isnan(robust_interval(np.arange(9) / 9.0, np.arange(9) // 3).low)
    assert np.isnan(robust_interval(np.zeros(0), np.zeros(0, dtype=int)).value)
    few = robust_difference(np.ones(9), np.zeros(9), np.arange(9) // 3)
    assert few.difference == 1 and np.isnan(few.p)
    equal = robust_difference(np.ones(40), np.ones(40), same)
    most = stats.binomtest(0, 10).proportion_ci(method="exact").high
    assert (equal.difference, equal.low, equal.high, equal.p) == pytest.approx((0, -most, most, 1))
    balanced = robust_difference(np.tile([1.0, 0.0], 20), np.tile([0.0, 1.0], 20), same)
    assert (balanced.difference, balanced.low, balanced.high, balanced.p) == (0, 0, 0, 1)
    assert robust_difference(np.ones(40), np.zeros(40), same).p == 2.0**-9
    lone = robust_interval(np.array([1.0] + [0.0] * 39), same)
    assert 0 <= lone.low < lone.value < lone.high < 1
