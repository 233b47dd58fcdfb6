"""95% intervals hold the truth in 93 to 97% of 2,000 simulated runs; bench/interval_coverage.py has more designs."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

DESIGNS = {
    "seldom right": (0.1, 100, (1, 4), 0.5),
    "facts are known or not": (0.7, 120, (2, 2), 0.8),
    "one question a fact": (0.9, 150, (1, 1), 0.0),
}
BENCH = Path(__file__).resolve().parents[2] / "bench"
RUNS = 2000


@pytest.fixture(scope="module")
def coverage():
    sys.path.insert(0, str(BENCH))
    try:
        import interval_coverage
    finally:
        sys.path.remove(str(BENCH))
    return interval_coverage


def simulated(coverage, design, runs):
    """Shares of intervals that hold the truth, and of tests that tell equal models apart, by name."""
    tally = coverage.simulate(coverage.Design(*DESIGNS[design]), runs=runs, seed=1, resamples=999, flips=499)
    held = {way: tally.coverage(way) for way in coverage.WAYS}
    false = {test: tally.false_rate(test) for test in coverage.FALSE}
    assert set(held) == {"BCa", "robust", "difference", "robust difference"}
    print(f"{design}, {runs:,} runs: {held} {false}")
    return held, false


@pytest.mark.slow
@pytest.mark.parametrize("design", DESIGNS)
def test_intervals_hold_the_truth_and_equal_models_are_seldom_told_apart(coverage, design):
    held, false = simulated(coverage, design, RUNS)
    for way, share in held.items():
        assert 0.93 <= share <= 0.97, way
    for test, share in false.items():
        assert 0.02 <= share <= 0.065, test


def test_in_few_runs_intervals_hold_the_truth_about_as_often_as_they_say(coverage):
    """Three standard errors of a share over 200 runs to either side."""
    held, false = simulated(coverage, "seldom right", 200)
    for way, share in held.items():
        assert 0.90 <= share <= 0.995, way
    for test, share in false.items():
        assert 0.004 <= share <= 0.096, test


def test_drawn_answers_are_as_the_design_says(coverage):
    """The simulation itself: shares, the difference, and how alike two questions of one fact are."""
    import numpy as np
    from scipy import stats

    design = coverage.Design(0.3, 200_000, (2, 2), 0.6)
    first, equal, behind, owners = coverage.draw(design, np.random.default_rng(1))
    assert (first.mean(), equal.mean(), behind.mean()) == pytest.approx((0.3, 0.3, 0.25), abs=0.005)
    assert np.bincount(owners).tolist() == [2] * 200_000
    threshold = [stats.norm.ppf(0.3)] * 2
    both = stats.multivariate_normal([0, 0], [[1, 0.6], [0.6, 1]]).cdf(threshold)
    assert np.mean(first[::2] * first[1::2]) == pytest.approx(both, abs=0.005)
    shared = stats.multivariate_normal([0, 0], [[1, 0.5], [0.5, 1]]).cdf(threshold)
    assert np.mean(first * equal) == pytest.approx(shared, abs=0.005)


def test_an_interval_that_takes_questions_for_facts_is_found_out(coverage):
    """Four questions that are known or not together, taken for four facts: too narrow, and seen."""
    import numpy as np

    from merkhet.metrics._closed_form import robust_interval

    design, generator = coverage.Design(0.7, 100, (4, 4), 0.8), np.random.default_rng(2)
    held = 0
    for _ in range(500):
        values, _, _, owners = coverage.draw(design, generator)
        found = robust_interval(values, np.arange(len(owners)))
        held += found.low <= 0.7 <= found.high
    assert held / 500 < 0.85
