"""P-values and quantiles of Student's t distribution for any degrees of freedom, without scipy."""

from __future__ import annotations

import math
from functools import lru_cache
from statistics import NormalDist

_NORMAL = NormalDist()
_TINY = 1e-300
_NORMAL_DEGREES = 1e7
"""Degrees of freedom from which Student's distribution equals the normal distribution to seven digits."""


def student_p_value(t: float, degrees: float) -> float:
    r"""Return the two-sided p-value of Student's t.

    .. math:: P(|T_f| \ge |t|) = I_{f / (f + t^2)}(f / 2, 1 / 2)

    with f degrees of freedom and the regularised incomplete beta function I.
    """
    if degrees >= _NORMAL_DEGREES:
        return math.erfc(abs(t) / math.sqrt(2.0))
    return incomplete_beta(degrees / (degrees + t * t), degrees / 2.0, 0.5)


@lru_cache(maxsize=4096)
def student_quantile(probability: float, degrees: float) -> float:
    """Return a quantile of Student's t distribution, by inverting :func:`student_p_value`."""
    z = _NORMAL.inv_cdf(probability)
    if degrees >= _NORMAL_DEGREES or z == 0.0:
        return z
    tail = 2.0 * min(probability, 1.0 - probability)
    low, high = 0.0, 2.0 * abs(z)
    while student_p_value(high, degrees) > tail:
        low, high = high, 2.0 * high
    while high - low > 1e-12 * high:
        middle = (low + high) / 2.0
        low, high = (middle, high) if student_p_value(middle, degrees) > tail else (low, middle)
    return math.copysign((low + high) / 2.0, z)


def incomplete_beta(x: float, a: float, b: float) -> float:
    """Compute the regularised incomplete beta function by a continued fraction, where it converges fast."""
    if x <= 0.0 or x >= 1.0:
        return min(max(x, 0.0), 1.0)
    if x > (a + 1.0) / (a + b + 2.0):
        return 1.0 - incomplete_beta(1.0 - x, b, a)
    front = math.exp(
        math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x) - math.log(a)
    )
    # Lentz's algorithm: the fraction is the product of ratios of numerators and denominators, which never become 0.
    above, below = 1.0, 1.0 / (1.0 - (a + b) * x / (a + 1.0) or _TINY)
    value = below
    for m in range(1, 10_000):
        for term in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            below = 1.0 / (1.0 + term * below or _TINY)
            above = 1.0 + term / above or _TINY
            value *= below * above
        if abs(below * above - 1.0) < 1e-14:
            break
    return front * value
