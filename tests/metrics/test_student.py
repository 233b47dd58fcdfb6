"""Student's distribution against scipy's."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special, stats

from merkhet.metrics.t_distribution import incomplete_beta, student_p_value, student_quantile

FREEDOMS = st.floats(1, 5000)


@settings(deadline=None)
@given(t=st.floats(-30, 30), freedom=FREEDOMS)
def test_tails_are_students(t, freedom):
    assert student_p_value(t, freedom) == pytest.approx(2 * stats.t.sf(abs(t), freedom), rel=1e-6, abs=1e-300)


@settings(deadline=None)
@given(probability=st.floats(0.0005, 0.9995), freedom=FREEDOMS)
def test_quantiles_are_students(probability, freedom):
    assert student_quantile(probability, freedom) == pytest.approx(
        stats.t.ppf(probability, freedom), rel=1e-6, abs=1e-7
    )


@settings(deadline=None)
@given(x=st.floats(0, 1), a=st.floats(0.5, 2000), b=st.floats(0.5, 2000))
def test_the_incomplete_beta_function_is_scipys(x, a, b):
    assert incomplete_beta(x, a, b) == pytest.approx(special.betainc(a, b, x), rel=1e-6, abs=1e-12)


def test_many_degrees_of_freedom_are_normal():
    assert student_quantile(0.975, float("inf")) == pytest.approx(stats.norm.ppf(0.975))
    assert student_p_value(1.7, 1e9) == pytest.approx(2 * stats.norm.sf(1.7))
    assert student_quantile(0.5, 3) == 0.0
