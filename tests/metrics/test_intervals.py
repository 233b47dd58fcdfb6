"""Intervals and paired tests over clusters, against scipy, exact formulas and simulation."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from all_cases import check_all
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from merkhet.metrics import bootstrap
from merkhet.metrics.bootstrap import clustered_interval, effective_degrees_of_freedom, paired_difference


def alone(values):
    """A cluster for each value."""
    return np.array([f"f{i:04}" for i in range(len(values))])


def clustered(generator, clusters, share, spread, most=4):
    """Right or wrong answers to questions of many facts: a fact that is known is known in most of its questions."""
    sizes = generator.integers(1, most + 1, size=clusters)
    known = generator.beta(share / spread, (1 - share) / spread, size=clusters)
    owners = np.repeat(np.arange(clusters), sizes)
    return (generator.random(len(owners)) < known[owners]).astype(float), owners


VALUES = st.lists(
    st.tuples(st.sampled_from([0.0, 0.1, 1 / 3, 2 / 3, 0.7, 1.0]), st.integers(0, 8)), min_size=2, max_size=25
)


@settings(deadline=None)
@given(rows=VALUES, data=st.data())
def test_the_value_is_the_mean_and_the_order_of_rows_does_not_matter(rows, data):
    values, owners = (np.array(column) for column in zip(*rows, strict=True))
    found = clustered_interval(values, owners, seed=1, resamples=200)
    assert found.value == pytest.approx(values.mean())
    order = list(data.draw(st.permutations(range(len(rows)))))
    moved = clustered_interval(values[order], owners[order], seed=1, resamples=200)
    assert (moved.value, moved.low, moved.high) == pytest.approx((found.value, found.low, found.high), nan_ok=True)
    if len(set(owners.tolist())) > 1 and np.ptp(values) > 0:
        assert values.min() - 1e-9 <= found.low <= found.high <= values.max() + 1e-9


@pytest.mark.parametrize("kind", ["normal", "skewed", "binary", "rare"])
def test_one_value_a_cluster_agrees_with_scipy(kind):
    """BCa as scipy has it, at the level that makes up for few clusters: a normal quantile becomes a wider Student's."""
    generator = np.random.default_rng(7)
    values = {
        "normal": lambda: generator.normal(0.5, 0.1, 80),
        "skewed": lambda: generator.exponential(1.0, 80),
        "binary": lambda: (generator.random(200) < 0.4).astype(float),
        "rare": lambda: (generator.random(300) < 0.05).astype(float),
    }[kind]()
    found = clustered_interval(values, alone(values), seed=3, resamples=20_000)
    size = len(values)
    freedom = min(size - 1, 2 * size / (stats.kurtosis(values, fisher=False) - 1))
    reach = np.sqrt(size / (size - 1)) * stats.t.ppf(0.975, freedom)
    other = stats.bootstrap(
        (values,),
        np.mean,
        n_resamples=20_000,
        method="BCa",
        confidence_level=1 - 2 * stats.norm.sf(reach),
        rng=np.random.default_rng(5),
    )
    width = other.confidence_interval.high - other.confidence_interval.low
    near = max(
        0.06 * width, 1.01 / size if kind in ("binary", "rare") else 0.0
    )  # Means of right and wrong go by steps.
    assert found.low == pytest.approx(other.confidence_interval.low, abs=near)
    assert found.high == pytest.approx(other.confidence_interval.high, abs=near)


@pytest.mark.parametrize("level", [0.8, 0.95])
@pytest.mark.parametrize("sizes", [(1, 1), (1, 4)])
def test_without_the_widening_it_is_scipys_interval_of_a_ratio_over_clusters(monkeypatch, sizes, level):
    """The normal quantile itself in place of the wider one: sums and sizes of clusters, resampled together."""
    generator = np.random.default_rng(17)
    owners = np.repeat(np.arange(60), generator.integers(sizes[0], sizes[1] + 1, 60))
    values = generator.beta(0.6, 1.8, 60)[owners] + generator.normal(0, 0.05, len(owners))
    monkeypatch.setattr(
        bootstrap, "_widened_quantile", lambda influences, level: float(stats.norm.ppf(0.5 + level / 2))
    )
    found = clustered_interval(values, owners, seed=3, level=level, resamples=40_000)
    sums, counts = np.bincount(owners, weights=values), np.bincount(owners).astype(float)
    other = stats.bootstrap(
        (sums, counts),
        lambda sums, counts, axis: sums.sum(axis=axis) / counts.sum(axis=axis),
        **{"method": "BCa", "paired": True, "vectorized": True, "confidence_level": level, "n_resamples": 40_000},
        rng=np.random.default_rng(5),
    ).confidence_interval
    assert (found.low, found.high) == pytest.approx(tuple(other), abs=0.02 * (other.high - other.low))


def test_a_seed_gives_the_same_interval_again_and_another_seed_another():
    values, owners = clustered(np.random.default_rng(0), 50, 0.5, 0.3)
    one = clustered_interval(values, owners, seed=5)
    assert clustered_interval(values, owners, seed=5) == one
    assert clustered_interval(values, owners, seed=6) != one
    first, second = values, values[::-1]
    assert paired_difference(first, second, owners, seed=5) == paired_difference(first, second, owners, seed=5)


def test_all_right_or_all_wrong_gives_the_exact_binomial_interval():
    def check(value, clusters, level):
        owners = np.repeat(np.arange(clusters), 3)
        found = clustered_interval(np.full(3 * clusters, value), owners, seed=0, level=level)
        exact = stats.binomtest(int(value) * clusters, clusters).proportion_ci(level, method="exact")
        assert (found.low, found.high) == pytest.approx((exact.low, exact.high))
        assert found.value == value

    check_all(check, product((0.0, 1.0), (2, 10, 75), (0.9, 0.95)))


def test_one_cluster_has_no_interval_and_no_values_no_mean():
    found = clustered_interval(np.array([0.0, 1.0, 1.0]), np.array(["f", "f", "f"]), seed=0)
    assert found.value == pytest.approx(2 / 3)
    assert np.isnan([found.low, found.high]).all()
    nothing = clustered_interval(np.array([]), np.array([], dtype=str), seed=0)
    assert np.isnan([nothing.value, nothing.low, nothing.high]).all()


@pytest.mark.parametrize("copies", [2, 10])
def test_asking_the_same_again_does_not_narrow_the_interval(copies):
    generator = np.random.default_rng(11)
    values = (generator.random(60) < 0.6).astype(float)
    once = clustered_interval(values, alone(values), seed=2)
    often = clustered_interval(np.repeat(values, copies), np.repeat(alone(values), copies), seed=2)
    assert (often.low, often.high) == pytest.approx((once.low, once.high))
    unclustered = clustered_interval(np.repeat(values, copies), alone(np.repeat(values, copies)), seed=2)
    assert unclustered.high - unclustered.low < 0.8 * (once.high - once.low)


def test_intervals_cover_the_truth_as_often_as_they_say():
    generator = np.random.default_rng(2024)
    sets, share, covered = 300, 0.7, 0
    for number in range(sets):
        values, owners = clustered(generator, 60, share, 0.8)
        found = clustered_interval(values, owners, seed=number, resamples=1000)
        covered += found.low <= share <= found.high
    print(f"coverage of a 95% interval over {sets} simulated sets: {covered / sets:.3f}")
    assert 0.88 <= covered / sets <= 0.99


def exact_p(sums):
    """The share of all sign flips that lie at least as far from 0."""
    observed = abs(sum(sums))
    flips = [abs(float(np.dot(signs, sums))) for signs in product((1, -1), repeat=len(sums))]
    return np.mean([flip >= observed - 1e-9 for flip in flips])


@settings(deadline=None, max_examples=20)
@given(sums=st.lists(st.sampled_from([-1.0, -0.3, 0.0, 0.1, 0.2, 0.7, 1.0]), min_size=2, max_size=7))
def test_the_p_value_is_the_share_of_sign_flips_over_clusters(sums):
    first = np.repeat(np.array(sums), 2) / 2
    owners = np.repeat(np.arange(len(sums)), 2)
    found = paired_difference(first, np.zeros(len(first)), owners, seed=1, resamples=50)
    assert found.p == pytest.approx(exact_p(sums), abs=0.025)
    assert found.difference == pytest.approx(np.mean(first))


def test_the_p_value_agrees_with_scipy():
    generator = np.random.default_rng(3)
    first, second = generator.normal(0.3, 1, 40), generator.normal(0.0, 1, 40)
    found = paired_difference(first, second, alone(first), seed=1)
    other = stats.permutation_test(
        (first, second),
        lambda a, b, axis: np.mean(a - b, axis=axis),
        permutation_type="samples",
        vectorized=True,
        n_resamples=20_000,
        rng=np.random.default_rng(4),
    )
    assert found.p == pytest.approx(other.pvalue, abs=0.02)


@pytest.mark.parametrize("facts", [4, 8])
def test_few_facts_have_the_exact_p_of_scipy(facts):
    """All exchanges of the two models within facts, which scipy goes through where they are few."""
    generator = np.random.default_rng(6)
    owners = np.repeat(np.arange(facts), generator.integers(1, 4, facts))
    first, second = generator.random(len(owners)) + 0.3, generator.random(len(owners))
    exact = stats.permutation_test(
        [np.bincount(owners, weights=one) for one in (first, second)],
        lambda a, b, axis: np.sum(a - b, axis=axis),
        **{"permutation_type": "samples", "vectorized": True, "n_resamples": 100_000},
    )
    assert len(exact.null_distribution) == 2**facts
    found = paired_difference(first, second, owners, seed=1, resamples=2)
    assert found.p == pytest.approx(exact.pvalue, abs=0.01)


def test_equal_models_are_seldom_told_apart():
    generator = np.random.default_rng(99)
    sets, small, all_p = 300, 0, []
    for number in range(sets):
        sizes = generator.integers(1, 4, size=30)
        owners = np.repeat(np.arange(30), sizes)
        common = generator.random(30)[owners]
        pair = [(generator.random(len(owners)) < common).astype(float) for _ in range(2)]
        p = paired_difference(*pair, owners, seed=number, resamples=10, flips=999).p
        all_p.append(p)
        small += p < 0.05
    print(f"share of p below 0.05 under the null hypothesis: {small / sets:.3f}; median p {np.median(all_p):.2f}")
    assert small / sets <= 0.09
    assert 0.3 <= np.median(all_p) <= 0.75


def test_a_clear_difference_is_found_and_has_a_sign():
    generator = np.random.default_rng(1)
    first = (generator.random(100) < 0.9).astype(float)
    second = (generator.random(100) < 0.4).astype(float)
    ahead = paired_difference(first, second, alone(first), seed=1)
    behind = paired_difference(second, first, alone(first), seed=1)
    assert ahead.difference == pytest.approx(first.mean() - second.mean())
    assert behind.difference == pytest.approx(-ahead.difference)
    assert 0 < ahead.low < ahead.difference < ahead.high
    assert behind.low < behind.high < 0
    assert ahead.p == behind.p == pytest.approx(1 / 10_001)


def test_copies_of_a_model_do_not_differ():
    values = np.array([0.0, 1.0, 1.0, 0.5])
    same = paired_difference(values, values, alone(values), seed=1)
    assert (same.difference, same.p) == (0.0, 1.0)
    # No difference in four facts: the share of facts that differ may be as high as the exact binomial interval of none.
    most = stats.binomtest(0, 4).proportion_ci(0.95, method="exact").high
    assert (same.low, same.high) == pytest.approx((-most, most))


def test_a_difference_that_is_always_the_same():
    ones, zeros = np.ones(10), np.zeros(10)
    least = stats.binomtest(10, 10).proportion_ci(0.95, method="exact").low
    always = paired_difference(ones, zeros, alone(ones), seed=1)
    assert (always.difference, always.low, always.high) == pytest.approx((1.0, least, 1.0))
    never = paired_difference(zeros, ones, alone(ones), seed=1)
    assert (never.difference, never.low, never.high) == pytest.approx((-1.0, -1.0, -least))
    ranks = paired_difference(-7 * ones, -9 * ones, alone(ones), seed=1)
    assert (ranks.difference, ranks.low, ranks.high) == (2.0, 2.0, 2.0), "nothing bounds a rank"
    weighted = paired_difference(ones, ones, alone(ones), seed=1, weights=np.linspace(0.2, 1.8, 10))
    assert (weighted.low, weighted.high) == pytest.approx((least - 1.0, 1.0 - least))


def test_a_single_cluster_has_a_difference_and_no_interval():
    lone = paired_difference(np.array([1.0, 1.0]), np.array([0.0, 1.0]), np.zeros(2, dtype=int), seed=1)
    assert lone.difference == 0.5 and np.isnan([lone.low, lone.high]).all() and lone.p == 1.0


@settings(deadline=None)
@given(
    influences=st.lists(st.floats(-1e150, 1e150, allow_subnormal=False), min_size=2, max_size=30),
    factor=st.floats(1e-3, 1e3),
)
def test_degrees_of_freedom_lie_between_one_and_the_clusters_less_one(influences, factor):
    values = np.array(influences)
    freedom = effective_degrees_of_freedom(values)
    assert 1.0 <= freedom <= max(1.0, len(values) - 1)
    assert effective_degrees_of_freedom(values[::-1] * factor) == pytest.approx(freedom)


def test_degrees_of_freedom_are_two_for_each_of_few_that_vary():
    few = np.zeros(1000)
    few[:5] = 1.0
    assert effective_degrees_of_freedom(few) == pytest.approx(10, rel=0.01)
    assert effective_degrees_of_freedom(np.tile([1.0, -1.0], 500)) == 999
