"""Closed-form confidence intervals and differences for values in many clusters or in two kinds of clusters."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from merkhet.metrics.bootstrap import (
    Interval,
    PairedDifference,
    constant_difference_interval,
    constant_interval,
    effective_degrees_of_freedom,
)
from merkhet.metrics.ranks import FloatArray
from merkhet.metrics.t_distribution import student_p_value, student_quantile

_MIN_CLUSTERS = 4
IntArray = NDArray[np.int64]


def robust_interval(values: FloatArray, *clusters: IntArray, level: float = 0.95) -> Interval:
    r"""Estimate the mean with an interval that treats a cluster as one observation.

    ``clusters`` are one or two arrays with the cluster number of each value. The mean has the variance V of
    :func:`clustered_variance`. If all values are in [0, 1], the result is Wilson's interval, which stays in [0, 1], for
    the number m of independent trials with that variance. Otherwise the interval is symmetric. Wilson's interval is

    .. math:: \left(v + \tfrac{t^2}{2m} \pm t \sqrt{V + \tfrac{t^2}{4m^2}}\right) / \left(1 + \tfrac{t^2}{m}\right),
        \quad m = v (1 - v) / V

    with the mean v and the quantile t of Student's distribution for the degrees of freedom of
    :func:`merkhet.metrics.bootstrap.effective_degrees_of_freedom`. If all values are 0 or all are 1, the result is the
    exact binomial interval for the number of clusters. With fewer than four clusters, both ends are NaN.
    """
    if not len(values):
        return Interval(math.nan)
    mean, variance, count, degrees = _estimate(values, clusters)
    if count < _MIN_CLUSTERS:
        return Interval(mean)
    if np.ptp(values) == 0.0:
        return Interval(mean, *constant_interval(mean, count, level))
    t = student_quantile(0.5 + level / 2.0, degrees)
    if values.min() < 0.0 or values.max() > 1.0:
        return Interval(mean, mean - t * math.sqrt(variance), mean + t * math.sqrt(variance))
    share = t * t * variance / (mean * (1.0 - mean))
    centre, reach = mean + share / 2.0, t * math.sqrt(variance + share * share / (4.0 * t * t))
    return Interval(mean, (centre - reach) / (1.0 + share), (centre + reach) / (1.0 + share))


def robust_difference(
    first: FloatArray, second: FloatArray, *clusters: IntArray, level: float = 0.95
) -> PairedDifference:
    """Estimate the mean of ``first`` - ``second``, with a symmetric interval and a two-sided p-value.

    Interval and p-value use the clustered variance and Student's t for the degrees of freedom of
    :func:`merkhet.metrics.bootstrap.effective_degrees_of_freedom`. If the variance is 0, the p-value is that of a sign
    test over clusters. If all differences are equal, the interval is
    :func:`merkhet.metrics.bootstrap.constant_difference_interval`. With fewer than four clusters, interval and p-value
    are NaN.
    """
    differences = first - second
    mean, variance, count, degrees = _estimate(differences, clusters)
    if count < _MIN_CLUSTERS:
        return PairedDifference(mean, math.nan, math.nan, math.nan)
    if variance == 0.0:
        same = np.ptp(differences) == 0.0
        ends = constant_difference_interval(first, second, count, level) if same else (mean, mean)
        return PairedDifference(mean, *ends, 1.0 if mean == 0.0 else 2.0 ** (1 - min(count, 1000)))
    deviation = math.sqrt(variance)
    reach = student_quantile(0.5 + level / 2.0, degrees) * deviation
    return PairedDifference(mean, mean - reach, mean + reach, student_p_value(mean / deviation, degrees))


def clustered_variance(values: FloatArray, *clusters: IntArray, centre: float | None = None) -> float:
    r"""Return the variance of the mean of clustered values.

    With one kind of clusters, this is the variance of the ratio estimator for G clusters and n values. The deviations
    are taken from the mean, or from ``centre``, the mean under a null hypothesis:

    .. math:: V = \frac{G}{G - 1} \frac{1}{n^2} \sum_c \Big(\sum_{i \in c} (v_i - \bar v)\Big)^2

    With two kinds of clusters (statements of one fact, statements of one prompt), the result is the sum of the two
    variances minus the variance of single values, which both contain (Cameron, Gelbach and Miller 2011, if no two
    values share both clusters). The result is never below the larger of the two variances. NaN with fewer than two
    clusters.
    """
    return _estimate(values, clusters, centre)[1]


def _estimate(
    values: FloatArray, clusters: tuple[IntArray, ...], centre: float | None = None
) -> tuple[float, float, int, float]:
    """Return mean, variance of the mean, number of clusters and degrees of freedom.

    With two kinds of clusters, the smaller number of clusters and of degrees of freedom is returned.
    """
    mean = float(values.mean()) if len(values) else math.nan
    counts = [int(np.count_nonzero(np.bincount(numbers))) for numbers in clusters]
    if not counts or min(counts) < 2:
        return mean, math.nan, min(counts, default=0), math.nan
    deviations = values - (mean if centre is None else centre)
    sums = [
        np.bincount(numbers, weights=deviations)[np.bincount(numbers) > 0].astype(np.float64) for numbers in clusters
    ]
    variances = [_variance(cluster_sums, len(values)) for cluster_sums in sums]
    crossed = sum(variances) - (len(variances) - 1) * _variance(deviations, len(values))
    return mean, max(crossed, *variances), min(counts), min(map(effective_degrees_of_freedom, sums))


def _variance(sums: FloatArray, size: int) -> float:
    return float(np.square(sums).sum()) * len(sums) / (len(sums) - 1) / size**2
