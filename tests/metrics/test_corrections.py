"""Corrected p-values and scores, against statsmodels and by what must hold."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from frozen_heap import frozen_heap
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from statsmodels.stats.multitest import multipletests

from merkhet.metrics.corrections import benjamini_hochberg, chance_adjusted, holm

PROBABILITIES = arrays(float, st.integers(1, 30), elements=st.floats(1e-6, 1) | st.sampled_from([0.01, 0.05, 1.0]))


@pytest.fixture(scope="module", autouse=True)
def little_to_collect() -> Iterator[None]:
    """Statsmodels collects garbage in every correction by Holm's method."""
    with frozen_heap():
        yield


@settings(deadline=None, max_examples=40)
@given(p=PROBABILITIES)
def test_corrections_are_those_of_statsmodels(p):
    assert holm(p) == pytest.approx(multipletests(p, method="holm")[1])
    assert benjamini_hochberg(p) == pytest.approx(multipletests(p, method="fdr_bh")[1])


@settings(deadline=None)
@given(p=PROBABILITIES, data=st.data())
def test_corrections_are_bounded_ordered_and_do_not_depend_on_places(p, data):
    order = np.array(data.draw(st.permutations(range(len(p)))))
    for correct in (holm, benjamini_hochberg):
        found = correct(p)
        assert np.all(found >= p - 1e-15) and np.all(found <= 1.0)
        assert correct(p[order]) == pytest.approx(found[order])
        assert np.all(np.diff(found[np.argsort(p, kind="stable")]) >= 0)
    assert np.all(benjamini_hochberg(p) <= holm(p) + 1e-15)


def test_no_p_values_and_one():
    for correct in (holm, benjamini_hochberg):
        assert correct(np.zeros(0)).tolist() == []
        assert correct(np.array([0.03])).tolist() == [0.03]


@settings(deadline=None)
@given(value=st.floats(0, 1), chance=st.floats(0, 0.99))
def test_a_score_against_chance_is_zero_at_chance_and_one_at_best(value, chance):
    found = chance_adjusted(value, chance)
    assert found <= 1.0 and (found >= 0.0) == (value >= chance)
    assert chance_adjusted(chance, chance) == 0.0 and chance_adjusted(1.0, chance) == pytest.approx(1.0)


def test_what_cannot_be_adjusted_is_not():
    assert chance_adjusted(0.625, 0.25) == 0.5
    assert chance_adjusted(None, 0.2) is None and chance_adjusted(0.2, None) is None
    assert chance_adjusted(1.0, 1.0) is None and chance_adjusted(float("nan"), 0.1) is None
