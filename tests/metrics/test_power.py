"""Detectable differences and the facts they take: against statsmodels, against exact sums, and by simulation."""

from __future__ import annotations

import numpy as np
import pytest
from all_cases import check_all
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.power import TTestPower

from merkhet.metrics.bootstrap import paired_difference
from merkhet.metrics.paired_tests import (
    cluster_deviation,
    detectable_difference,
    facts_needed,
    mcnemar_test,
    paired_details,
)


def test_without_a_step_it_is_the_power_of_a_paired_t_test():
    def check(facts, significance, power):
        found = detectable_difference(1.5, facts, significance=significance, power=power)
        exact = 1.5 * TTestPower().solve_power(nobs=facts, alpha=significance, power=power)
        assert found == pytest.approx(exact, rel=0.015)

    check_all(check, [(facts, *test) for facts in (20, 60, 400) for test in ((0.05, 0.8), (0.01, 0.9))])


@settings(deadline=None)
@given(deviation=st.floats(0.01, 2), step=st.floats(0, 1), facts=st.integers(2, 3000))
def test_detectable_differences_are_monotone(deviation, step, facts):
    found = detectable_difference(deviation, facts, step=step)
    assert detectable_difference(deviation, facts + 1, step=step) < found
    assert detectable_difference(1.1 * deviation, facts, step=step) > found
    assert detectable_difference(deviation, facts, step=step + 0.1) > found
    assert detectable_difference(deviation, facts, step=step, power=0.9) > found


@settings(deadline=None)
@given(difference=st.floats(0.005, 0.5), deviation=st.floats(0.05, 1), step=st.floats(0, 1))
def test_facts_needed_are_just_enough(difference, deviation, step):
    facts = facts_needed(difference, deviation, step=step)
    assert detectable_difference(deviation, facts, step=step) <= difference
    assert facts == 2 or detectable_difference(deviation, facts - 1, step=step) > difference


def test_what_cannot_be_planned_is_refused():
    with pytest.raises(ValueError, match="above 0"):
        facts_needed(0.0, 0.3)
    with pytest.raises(ValueError, match="more than"):
        facts_needed(1e-9, 1.0)
    assert np.isnan(detectable_difference(0.0, 50)) and np.isnan(detectable_difference(0.3, 1))


def drawn_pair(generator, facts, share, other):
    """Right or wrong answers of two models to 1 to 4 questions of each fact; what is hard for one is for the other."""
    owners = np.repeat(np.arange(facts), generator.integers(1, 5, facts))
    hard = np.sqrt(0.4) * generator.normal(size=facts)[owners] + np.sqrt(0.3) * generator.normal(size=len(owners))
    own = np.sqrt(0.3) * generator.normal(size=(2, len(owners)))
    first, second = hard + own < stats.norm.ppf([[share], [other]])
    return first.astype(float), second.astype(float), owners


@pytest.mark.parametrize(
    ("facts", "share"),
    [(60, 0.8), pytest.param(150, 0.6, marks=pytest.mark.slow), pytest.param(150, 0.95, marks=pytest.mark.slow)],
)
def test_a_detectable_difference_is_found_four_times_of_five(facts, share):
    """What equal models' answers say could be found, is found at that size by the permutation test."""
    generator = np.random.default_rng(8)
    sizes = [paired_details(*drawn_pair(generator, facts, share, share)).detectable for _ in range(40)]
    size = float(np.median(sizes))
    found = [
        paired_difference(*drawn_pair(generator, facts, share, share - size), seed=i, resamples=2, flips=999).p < 0.05
        for i in range(400)
    ]
    message = f"{facts} facts, share {share}: a difference of {size:.3f} was found in {np.mean(found):.3f} of samples"
    print(message)
    assert 0.68 <= np.mean(found) <= 0.9, message


def test_facts_needed_are_those_of_a_paired_t_test():
    def check(difference, deviation):
        exact = TTestPower().solve_power(effect_size=difference / deviation, alpha=0.05, power=0.8)
        assert facts_needed(difference, deviation) == pytest.approx(exact, abs=2)

    check_all(check, [(0.05, 0.4), (0.1, 0.4), (0.2, 0.5), (0.02, 0.3)])


def exact_power(facts, only_first, only_second):
    """The power of McNemar's exact test, summed over how many facts differ and how many of these are the first's."""
    alone = np.arange(facts)
    found = 0.0
    for differ in range(facts + 1):
        share = stats.binom.pmf(differ, facts, only_first + only_second)
        if share < 1e-9:
            continue
        for ahead in range(differ + 1):
            first, second = (alone < ahead).astype(float), ((alone >= ahead) & (alone < differ)).astype(float)
            p = stats.binom.pmf(ahead, differ, only_first / (only_first + only_second))
            if p > 1e-9 and mcnemar_test(first, second, alone) < 0.05:
                found += share * p
    return found


@pytest.mark.parametrize(("facts", "shared"), [(100, 0.05), (100, 0.15), (60, 0.1)])
def test_a_difference_of_right_and_wrong_answers_is_found_by_mcnemars_test_as_often_as_said(facts, shared):
    """Equal models that each have a share of facts alone; then such a difference with the same product of shares."""
    values = np.zeros(10_000)
    values[: round(10_000 * shared)] = 1.0
    values[-round(10_000 * shared) :] = -1.0
    deviation = cluster_deviation(values, np.arange(10_000))
    size = detectable_difference(deviation, facts, step=1.0)
    ahead = (size + np.sqrt(size**2 + 4 * shared**2)) / 2
    assert ahead * (ahead - size) == pytest.approx(shared**2)
    assert 0.74 <= exact_power(facts, ahead, ahead - size) <= 0.88
