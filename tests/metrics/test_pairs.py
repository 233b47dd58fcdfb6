"""McNemar's test, effect sizes and what else is told of two models: against statsmodels and by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.contingency_tables import mcnemar

from merkhet.metrics.paired_tests import (
    PairedDetails,
    cluster_deviation,
    discordant_odds,
    effect_size,
    mcnemar_test,
    paired_details,
)

ROWS = st.lists(st.tuples(st.booleans(), st.booleans(), st.integers(0, 9)), min_size=2, max_size=40)


def columns(rows):
    first, second, owners = (np.array(column) for column in zip(*rows, strict=True))
    return first.astype(float), second.astype(float), owners


def obuchowski(first, second, owners):
    """Her statistic, cluster by cluster."""
    sums = [float((first - second)[owners == own].sum()) for own in set(owners.tolist())]
    statistic = sum(sums) ** 2 * (len(sums) - 1) / len(sums) / sum(value**2 for value in sums)
    return float(stats.chi2.sf(statistic, 1))


@settings(deadline=None)
@given(rows=ROWS)
def test_one_question_a_fact_is_the_exact_test_of_statsmodels(rows):
    first, second, _ = columns(rows)
    both = [[np.sum((first == a) & (second == b)) for b in (1, 0)] for a in (1, 0)]
    assert mcnemar_test(first, second, np.arange(len(first))) == pytest.approx(mcnemar(both, exact=True).pvalue)


@settings(deadline=None)
@given(rows=ROWS)
def test_several_questions_a_fact_are_obuchowskis_test(rows):
    first, second, owners = columns(rows)
    p = mcnemar_test(first, second, owners)
    if len(set(owners.tolist())) == len(owners) or not (first != second).any():
        return
    if len(set(owners.tolist())) < 2:
        assert np.isnan(p)
    elif all((first - second)[owners == own].sum() == 0 for own in set(owners.tolist())):
        assert p == 1.0
    else:
        assert p == pytest.approx(obuchowski(first, second, owners))


@settings(deadline=None)
@given(rows=ROWS, data=st.data())
def test_details_do_not_depend_on_the_order_and_are_turned_with_the_models(rows, data):
    first, second, owners = columns(rows)
    found = paired_details(first, second, owners)
    order = list(data.draw(st.permutations(range(len(rows)))))
    moved = paired_details(first[order], second[order], owners[order])
    assert vars(moved) == pytest.approx(vars(found))
    back = paired_details(second, first, owners)
    assert (back.mcnemar, back.detectable) == pytest.approx((found.mcnemar, found.detectable))
    if found.effect is not None:
        assert back.effect == pytest.approx(-found.effect)
    if found.odds is not None:
        assert back.odds == pytest.approx(1 / found.odds)
    for value in vars(found).values():
        assert value is None or math.isfinite(value)
    assert found.mcnemar is None or 0 < found.mcnemar <= 1
    assert found.detectable is None or 0 < found.detectable <= 1


def test_asking_the_same_again_tells_no_more():
    generator = np.random.default_rng(3)
    first, second = (generator.random((2, 50)) < [[0.7], [0.5]]).astype(float)
    once = paired_details(first, second, np.arange(50))
    often = paired_details(np.repeat(first, 4), np.repeat(second, 4), np.repeat(np.arange(50), 4))
    assert (often.effect, often.odds, often.detectable) == pytest.approx((once.effect, once.odds, once.detectable))
    assert once.mcnemar / 3 < often.mcnemar < 3 * once.mcnemar


def test_effect_sizes():
    differences = np.array([0.2, -0.1, 0.4, 0.3, 0.0])
    alone = np.arange(5)
    assert effect_size(differences, alone) == pytest.approx(differences.mean() / differences.std(ddof=1))
    assert effect_size(np.zeros(5), alone) == 0.0
    assert np.isnan(effect_size(np.full(5, 0.3), alone))
    assert np.isnan(cluster_deviation(differences, np.zeros(5, dtype=int)))


def test_odds_of_discordant_pairs():
    first, second = np.array([1.0, 1, 1, 0, 1]), np.array([0.0, 0, 0, 1, 1])
    assert discordant_odds(first, second) == 3.0
    assert discordant_odds(first[:3], second[:3]) == 3.5 / 0.5
    assert discordant_odds(first, second, np.array([1.0, 1, 1, 6, 1])) == 0.5
    assert np.isnan(discordant_odds(first, first))


def test_nothing_is_told_that_cannot_be():
    ones, same = np.ones(12), np.zeros(12, dtype=int)
    assert paired_details(ones, ones, same) == PairedDetails(1)
    alike = paired_details(ones, ones, np.arange(12))
    assert (alike.facts, alike.mcnemar, alike.effect, alike.odds) == (12, 1.0, 0.0, None)
    assert 7.9 / 12 < alike.detectable < 1
    assert paired_details(ones[:5], ones[:5], np.arange(5)).detectable is None, "five facts can show no difference"
    ranks = paired_details(-3 * ones, -3 * ones, np.arange(12))
    assert (ranks.mcnemar, ranks.detectable) == (None, None)
    always = paired_details(ones, 0 * ones, np.arange(12))
    assert always.effect is None and always.odds == 25.0 and always.mcnemar == pytest.approx(2**-11)
    assert paired_details(ones / 2, 0 * ones, np.arange(12)).mcnemar is None
