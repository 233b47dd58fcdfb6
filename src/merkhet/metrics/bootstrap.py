"""Cluster bootstrap intervals and paired permutation tests."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from merkhet.metrics.ranks import FloatArray
from merkhet.metrics.t_distribution import student_quantile

_NORMAL = NormalDist()
_MAX_CELLS = 4_000_000
_MANY_CLUSTERS = 5_000
"""Number of clusters above which the frequencies of equal clusters are drawn from a multinomial distribution."""


@dataclass(frozen=True)
class Interval:
    """An estimate with the ends of its confidence interval; NaN if undefined."""

    value: float
    low: float = math.nan
    high: float = math.nan


def clustered_interval(
    values: FloatArray, clusters: NDArray[np.generic], *, seed: int, level: float = 0.95, resamples: int = 2000
) -> Interval:
    r"""Estimate the mean with a BCa bootstrap interval that resamples clusters, not values.

    Answers to questions about one fact are correlated, so they are drawn together. Bias correction and acceleration
    follow Efron (1987), with the acceleration from the cluster jackknife. A bootstrap of G clusters underestimates the
    variance, so the normal quantiles are widened following Hesterberg (2015),

    .. math:: z_{1 - \alpha/2} \to \sqrt{G / (G - 1)} \; t_{1 - \alpha/2, f}

    with Student's t for the degrees of freedom f of :func:`effective_degrees_of_freedom`. If all values are equal, the
    bootstrap does not vary, and :func:`constant_interval` is used instead. With fewer than two clusters, both ends are
    NaN.
    """
    if not len(values):
        return Interval(math.nan)
    sums, counts = cluster_sums(values, clusters)
    mean = float(sums.sum() / counts.sum())
    if len(sums) < 2:
        return Interval(mean)
    if np.ptp(values) == 0.0:
        return Interval(mean, *constant_interval(mean, len(sums), level))
    means = np.sort(resampled_means(sums, counts, seed=seed, resamples=resamples))
    return _bca_interval(mean, means, (sums.sum() - sums) / (counts.sum() - counts), level)


def averaged_interval(
    values: FloatArray,
    clusters: NDArray[np.generic],
    classes: NDArray[np.generic],
    *,
    seed: int,
    level: float = 0.95,
    resamples: int = 2000,
) -> Interval:
    r"""Estimate the unweighted mean of class means, with a BCa interval that resamples clusters.

    .. math:: \tfrac{1}{K} \sum_k \tfrac{1}{n_k} \sum_{i \in k} v_i

    A class without values in a resample is skipped. With one class this is :func:`clustered_interval`.
    """
    _, kind = np.unique(classes, return_inverse=True)
    if not len(values) or kind.max() == 0:
        return clustered_interval(values, clusters, seed=seed, level=level, resamples=resamples)
    _, cluster = np.unique(clusters, return_inverse=True)
    shape = int(cluster.max()) + 1, int(kind.max()) + 1
    cells = cluster * shape[1] + kind
    sums, counts = (
        np.bincount(cells, weights, shape[0] * shape[1]).reshape(shape) for weights in (values, np.ones(len(cells)))
    )
    mean = float(_mean_of_means(sums.sum(axis=0), counts.sum(axis=0)))
    if shape[0] < 2:
        return Interval(mean)
    if np.ptp(values) == 0.0:
        return Interval(mean, *constant_interval(mean, shape[0], level))
    drawn = resampled_sums(np.concatenate([sums, counts], axis=1), seed=seed, resamples=resamples)
    means = np.sort(_mean_of_means(drawn[:, : shape[1]], drawn[:, shape[1] :]))
    left_out = _mean_of_means(sums.sum(axis=0) - sums, counts.sum(axis=0) - counts)
    return _bca_interval(mean, means, left_out, level)


def _mean_of_means(sums: FloatArray, counts: FloatArray) -> FloatArray:
    """Average the class means (last axis) over the classes that have values."""
    has_values = counts > 0
    within = np.divide(sums, counts, out=np.zeros_like(sums), where=has_values)
    means: FloatArray = within.sum(axis=-1) / has_values.sum(axis=-1)
    return means


def class_weights(classes: NDArray[np.generic]) -> FloatArray:
    """Return the weights that turn the mean of values into the unweighted mean of class means."""
    _, kind, counts = np.unique(classes, return_inverse=True, return_counts=True)
    weights: FloatArray = len(kind) / (len(counts) * counts[kind])
    return weights


def resampled_sums(columns: FloatArray, *, seed: int, resamples: int) -> FloatArray:
    """Return the column sums of bootstrap resamples of the rows.

    If there are very many rows but few distinct ones, the frequencies of distinct rows are drawn from a multinomial.
    """
    sums = _resample_distinct(columns, seed=seed, resamples=resamples)
    if sums is not None:
        return sums
    generator = np.random.default_rng(seed)
    size = len(columns)
    parts: list[FloatArray] = []
    step = max(1, _MAX_CELLS // size)
    for start in range(0, resamples, step):
        rows = min(step, resamples - start)
        drawn = generator.integers(0, size, size=(rows, size)) + size * np.arange(rows)[:, None]
        times = np.bincount(drawn.ravel(), minlength=rows * size).reshape(rows, size).astype(np.float64)
        parts.append(times @ columns)
    return np.concatenate(parts)


def _resample_distinct(columns: FloatArray, *, seed: int, resamples: int) -> FloatArray | None:
    distinct = _distinct_rows(columns)
    if distinct is None:
        return None
    rows, counts = distinct
    times = np.random.default_rng(seed).multinomial(len(columns), counts / len(columns), size=resamples)
    return times.astype(np.float64) @ rows


def _distinct_rows(columns: FloatArray) -> tuple[FloatArray, NDArray[np.int64]] | None:
    """Return the distinct rows and their counts; None if there are few rows or most rows are distinct."""
    if len(columns) <= _MANY_CLUSTERS:
        return None
    ordered = columns[np.lexsort(columns.T)]
    first = np.concatenate([[True], (ordered[1:] != ordered[:-1]).any(axis=1)])
    starts = np.flatnonzero(first)
    if 8 * len(starts) > len(columns):
        return None
    return ordered[starts], np.diff(np.append(starts, len(columns)))


def cluster_sums(values: FloatArray, clusters: NDArray[np.generic]) -> tuple[FloatArray, FloatArray]:
    """Return the sum and the number of values of each cluster, in the order of cluster ids."""
    _, index = np.unique(clusters, return_inverse=True)
    sums: FloatArray = np.bincount(index, weights=values).astype(np.float64)
    return sums, np.bincount(index).astype(np.float64)


def resampled_means(sums: FloatArray, counts: FloatArray, *, seed: int, resamples: int) -> FloatArray:
    """Return the means of bootstrap resamples of the clusters; see :func:`resampled_sums`."""
    drawn = _resample_distinct(np.stack([sums, counts], axis=1), seed=seed, resamples=resamples)
    if drawn is not None:
        return drawn[:, 0] / drawn[:, 1]
    generator = np.random.default_rng(seed)
    means = np.empty(resamples)
    step = max(1, _MAX_CELLS // len(sums))
    for start in range(0, resamples, step):
        rows = min(step, resamples - start)
        indices = generator.integers(0, len(sums), size=(rows, len(sums)))
        means[start : start + rows] = sums[indices].sum(axis=1) / counts[indices].sum(axis=1)
    return means


def effective_degrees_of_freedom(influences: FloatArray) -> float:
    r"""Return the effective degrees of freedom of a variance estimated from one number per cluster.

    .. math:: f = \min\left(G - 1, \tfrac{2 G}{\kappa - 1}\right), \quad
        \kappa = G \sum_c u_c^4 / \Big(\sum_c u_c^2\Big)^2

    with the influence u of each of G clusters on the mean. Similar influences (κ = 3 if normal, κ = 1 if equal in size)
    give G - 1. If a few clusters make up the variance, such as the few errors of a nearly perfect model, each of them
    adds about two degrees of freedom. This is Satterthwaite's moment matching with empirical squares (Pan and Wall
    2002). The result is at least 1.
    """
    count = len(influences)
    greatest = float(np.max(np.abs(influences)))
    if not greatest > 0.0:
        return max(1.0, count - 1.0)
    squares = np.square(influences / greatest)
    excess = count * float(np.square(squares).sum()) / float(squares.sum()) ** 2 - 1.0
    return max(1.0, min(count - 1.0, 2.0 * count / excess if excess > 0 else count))


def _bca_interval(mean: float, means: FloatArray, left_out: FloatArray, level: float) -> Interval:
    # Sums of the same values in another order differ by rounding; such means count as equal to the mean, not below it.
    equal = np.abs(means - mean) <= 1e-12 * np.max(np.abs(means))
    below = (np.sum(means[~equal] < mean) + 0.5 * np.sum(equal)) / len(means)
    bias = _NORMAL.inv_cdf(float(np.clip(below, 1.0 / len(means), 1.0 - 1.0 / len(means))))
    influences = left_out.mean() - left_out
    spread = float(np.sum(influences**2))
    acceleration = float(np.sum(influences**3)) / (6.0 * spread**1.5) if spread > 0 else 0.0
    reach = _widened_quantile(influences, level)

    def end(quantile: float) -> float:
        z = bias + quantile
        room = 1.0 - acceleration * z
        return float(np.quantile(means, _NORMAL.cdf(bias + z / room) if room > 0 else float(z > 0)))

    return Interval(mean, end(-reach), end(reach))


def _widened_quantile(influences: FloatArray, level: float) -> float:
    """Return the two-sided quantile of a confidence level, widened for few clusters."""
    count = len(influences)
    quantile = student_quantile(0.5 + level / 2.0, effective_degrees_of_freedom(influences))
    return math.sqrt(count / (count - 1.0)) * quantile


def constant_interval(value: float, clusters: int, level: float) -> tuple[float, float]:
    """Return the interval of the mean of equal values: exact binomial for 0 and 1, otherwise of zero width."""
    bound = ((1.0 - level) / 2.0) ** (1.0 / clusters)
    if value == 1.0:
        return bound, 1.0
    if value == 0.0:
        return 0.0, 1.0 - bound
    return value, value


@dataclass(frozen=True)
class PairedDifference:
    """Difference of two models on the same questions, with its interval and p-value."""

    difference: float
    low: float
    high: float
    p: float


def paired_difference(
    first: FloatArray,
    second: FloatArray,
    clusters: NDArray[np.generic],
    *,
    seed: int,
    weights: FloatArray | None = None,
    level: float = 0.95,
    resamples: int = 2000,
    flips: int = 10_000,
) -> PairedDifference:
    """Estimate the (weighted) mean of ``first`` - ``second``, with a clustered interval and a permutation p-value.

    The interval is a percentile interval over resampled clusters, with the widened quantiles of
    :func:`clustered_interval`. Skewness is not corrected: differences of two models are nearly symmetric, and their
    skewness is mostly noise. If all differences are equal, the interval is :func:`constant_difference_interval`.

    Under the null hypothesis the models are exchangeable within a cluster, so the sign of each cluster's sum of
    differences is random. The two-sided p is (1 + flips at least as far from 0) / (1 + flips).
    """
    differences = first - second
    sums, counts = cluster_sums(differences if weights is None else weights * differences, clusters)
    mean = float(sums.sum() / counts.sum())
    low = high = math.nan
    if np.ptp(differences) == 0.0:
        low, high = constant_difference_interval(first, second, len(sums), level)
    elif len(sums) > 1:
        means = resampled_means(sums, counts, seed=seed, resamples=resamples)
        tail = _NORMAL.cdf(-_widened_quantile(sums - mean * counts, level))
        low, high = (float(end) for end in np.quantile(means, (tail, 1.0 - tail)))
    return PairedDifference(mean, low, high, _sign_flip_p_value(sums, seed=seed, flips=flips))


def _sign_flip_p_value(sums: FloatArray, *, seed: int, flips: int) -> float:
    """Return the p-value of the total of ``sums`` under random sign flips.

    The flips of sums with equal magnitude are drawn from a binomial distribution if there are very many sums.
    """
    observed = abs(sums.sum()) - 1e-12 * np.abs(sums).sum()
    generator = np.random.default_rng([seed, 1])
    distinct = _distinct_rows(np.abs(sums)[:, None])
    if distinct is not None:
        magnitudes, counts = distinct
        positive = generator.binomial(counts, 0.5, size=(flips, len(counts)))
        extreme = int(np.sum(np.abs((2.0 * positive - counts) @ magnitudes[:, 0]) >= observed))
        return (1 + extreme) / (1 + flips)
    extreme = 0
    step = max(1, _MAX_CELLS // len(sums))
    for start in range(0, flips, step):
        rows = min(step, flips - start)
        signs = generator.integers(0, 2, size=(rows, len(sums)), dtype=np.int8) * 2 - 1
        extreme += int(np.sum(np.abs(signs @ sums) >= observed))
    return (1 + extreme) / (1 + flips)


def constant_difference_interval(
    first: FloatArray, second: FloatArray, clusters: int, level: float
) -> tuple[float, float]:
    r"""Return the interval of a difference that is the same for every question.

    Two models that agree on all G clusters may still differ on facts that were not asked. The exact binomial interval
    for 0 of G bounds the share of such facts by :math:`b = 1 - (\alpha/2)^{1/G}`. For values in [0, 1], a difference
    of 0 has the interval from -b to b, and a difference of 1 has the interval from 1 - b to 1. Any other constant
    difference has an interval of zero width.
    """
    value = float(first[0] - second[0])
    shares = min(first.min(), second.min()) >= 0.0 and max(first.max(), second.max()) <= 1.0
    if not shares or value not in (-1.0, 0.0, 1.0):
        return value, value
    bound = constant_interval(0.0, clusters, level)[1]
    return max(-1.0, value - bound), min(1.0, value + bound)
