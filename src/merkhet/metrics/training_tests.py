"""Student's interval, test and power of differences over trainings with different seeds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from merkhet.metrics.t_distribution import student_p_value, student_quantile

_LEVEL = 0.95
_EQUAL = 1e-12
"""Standard deviation up to which differences count as identical."""
_STEPS = 4000


@dataclass(frozen=True)
class TrainingTest:
    """A mean difference over trainings with its 95% interval."""

    difference: float
    low: float
    high: float
    p: float
    detectable: float
    """Smallest true difference that the test detects with a power of 80%."""


def training_test(differences: Sequence[float], resolution: float) -> TrainingTest:
    r"""Test whether the mean of one difference per training is 0, by the paired t test.

    .. math:: t = \bar d \sqrt{k} / s, \quad \bar d \pm t_{k-1} \, s / \sqrt{k}

    for k ≥ 2 trainings whose differences have the standard deviation s. Identical differences have s = 0 because scores
    are counts, not because trainings never vary. They are tested as if one of them had been larger by ``resolution``:
    s = resolution / √k.

    Args:
        resolution: Smallest amount by which a difference can change, such as one question.

    Raises:
        ValueError: There are fewer than two trainings.
    """
    mean, count = float(np.mean(differences)), len(differences)
    if count < 2:
        raise ValueError(f"a test over trainings needs at least 2 of them, got {count}")
    mean = 0.0 if abs(mean) <= _EQUAL else mean
    deviation = float(np.std(differences, ddof=1))
    deviation = deviation if deviation > _EQUAL else resolution / math.sqrt(count)
    error = deviation / math.sqrt(count)
    half_width = student_quantile(0.5 + _LEVEL / 2.0, count - 1) * error
    p = student_p_value(mean / error, count - 1)
    return TrainingTest(mean, mean - half_width, mean + half_width, p, detectable_over_trainings(deviation, count))


def student_interval(values: Sequence[float]) -> tuple[float, float] | tuple[None, None]:
    """Return Student's 95% interval of the mean; (None, None) for a single value or for identical values."""
    count = len(values)
    deviation = float(np.std(values, ddof=1)) if count > 1 else 0.0
    if deviation <= _EQUAL:
        return None, None
    half_width = student_quantile(0.5 + _LEVEL / 2.0, count - 1) * deviation / math.sqrt(count)
    return float(np.mean(values)) - half_width, float(np.mean(values)) + half_width


def detectable_over_trainings(deviation: float, count: int) -> float:
    r"""Return the smallest true difference that the two-sided t test at 5% detects with a power of 80%.

    .. math:: \delta_{k-1} \, s / \sqrt{k}

    with the non-centrality δ at which the noncentral t distribution with k - 1 degrees of freedom exceeds the critical
    value with a probability of 80%.
    """
    return _noncentrality(count - 1) * deviation / math.sqrt(count)


@lru_cache(maxsize=256)
def _noncentrality(degrees: int, power: float = 0.8) -> float:
    """Find the non-centrality with this power by bisection; the opposite tail (below 1e-5) is neglected."""
    critical = student_quantile(0.5 + _LEVEL / 2.0, degrees)
    # The estimated standard deviation in units of the true one: a chi variable divided by the root of its degrees.
    spread = 14.0 / math.sqrt(2.0 * degrees)
    ratios = np.linspace(max(0.0, 1.0 - spread), 1.0 + spread, _STEPS + 1)
    weights = np.full(len(ratios), 2.0)  # Simpson's rule
    weights[1::2] = 4.0
    weights[[0, -1]] = 1.0
    with np.errstate(divide="ignore"):
        logarithms = np.where(ratios > 0, (degrees - 1) * np.log(np.where(ratios > 0, ratios, 1.0)), 0.0)
    density = np.exp(logarithms - degrees * (ratios**2 - 1.0) / 2.0)
    if degrees > 1:
        density[ratios == 0.0] = 0.0
    weights = weights * density / float(np.sum(weights * density))

    def power_at(shift: float) -> float:
        tails = [math.erfc((critical * ratio - shift) / math.sqrt(2.0)) / 2.0 for ratio in ratios.tolist()]
        return float(np.dot(weights, tails))

    low, high = 0.0, 2.0 * critical + 3.0
    while high - low > 1e-7 * high:
        middle = (low + high) / 2.0
        low, high = (middle, high) if power_at(middle) < power else (low, middle)
    return (low + high) / 2.0
