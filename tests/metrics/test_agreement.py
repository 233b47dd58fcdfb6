"""Cohen's kappa against statsmodels, and its interval."""

from __future__ import annotations

import numpy as np
import pytest
from all_cases import check_all
from statsmodels.stats.inter_rater import cohens_kappa

from merkhet.metrics.association import agreement_interval, kappa_from_counts


def test_kappa_is_that_of_statsmodels() -> None:
    def check(both: int, first: int, second: int, neither: int) -> None:
        expected = cohens_kappa(np.array([[both, first], [second, neither]])).kappa
        assert float(kappa_from_counts(np.array([both, first, second, neither], dtype=float))) == pytest.approx(
            expected
        )

    check_all(check, [(30, 10, 5, 55), (1, 0, 0, 1), (5, 5, 5, 5), (0, 20, 30, 0), (97, 1, 1, 1)])


def test_two_that_never_differ_agree_fully_even_if_nothing_varies() -> None:
    assert float(kappa_from_counts(np.array([10.0, 0.0, 0.0, 0.0]))) == 1.0


def test_the_interval_resamples_whole_facts() -> None:
    draw = np.random.default_rng(0)
    first = draw.random(200) < 0.6
    second = np.where(draw.random(200) < 0.8, first, ~first)
    alone = agreement_interval(first, second, np.arange(200), seed=0)
    assert alone.low < alone.value < alone.high
    assert alone == agreement_interval(first, second, np.arange(200), seed=0)
    # Each question four times is no more evidence, if it is said which belong together.
    four = [np.repeat(one, 4) for one in (first, second)]
    together = agreement_interval(*four, np.repeat(np.arange(200), 4), seed=0)
    assert together.high - together.low == pytest.approx(alone.high - alone.low, rel=0.15)
    apart = agreement_interval(*four, np.arange(800), seed=0)
    assert apart.high - apart.low < 0.7 * (alone.high - alone.low)


def test_nothing_and_one_fact() -> None:
    nothing = agreement_interval(np.zeros(0, bool), np.zeros(0, bool), np.zeros(0), seed=0)
    assert np.isnan(nothing.value)
    one = agreement_interval(np.array([True, False]), np.array([True, False]), np.zeros(2), seed=0)
    assert one.value == 1.0 and np.isnan(one.low)
