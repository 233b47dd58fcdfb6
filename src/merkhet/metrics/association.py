"""Association of two columns: agreement beyond chance, ratios of means and rank correlation, by cluster."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import permutations

import numpy as np
from numpy.typing import NDArray

from merkhet.metrics.bootstrap import Interval, resampled_sums
from merkhet.metrics.ranks import FloatArray

_TAILS = (0.025, 0.975)
_MOST_FOR_ALL_ORDERS = 8


def ratio_interval(
    above: FloatArray, below: FloatArray, clusters: NDArray[np.generic], *, seed: int, resamples: int = 2000
) -> Interval:
    r"""The ratio of two sums over the same questions, with a 95% percentile interval over clusters.

    .. math:: \sum_i a_i / \sum_i b_i

    NaN where the sum below is 0; draws in which it is 0 are left out. With fewer than two clusters there is no
    interval (NaN).
    """
    if not len(below) or below.sum() == 0:
        return Interval(float("nan"), float("nan"), float("nan"))
    value = float(above.sum() / below.sum())
    _, index = np.unique(clusters, return_inverse=True)
    over, under = (np.bincount(index, weights=values) for values in (above, below))
    if len(over) < 2:
        return Interval(value, float("nan"), float("nan"))
    generator = np.random.default_rng(seed)
    ratios = []
    for _ in range(resamples):
        drawn = generator.integers(0, len(over), size=len(over))
        total = under[drawn].sum()
        if total > 0:
            ratios.append(over[drawn].sum() / total)
    return Interval(value, *(float(end) for end in np.quantile(ratios, _TAILS)))


def rank_correlation(
    first: FloatArray, second: FloatArray, clusters: NDArray[np.generic], *, seed: int, resamples: int = 1000
) -> Interval:
    """Spearman's rho (ties have their mean rank) with a 95% percentile interval over clusters.

    In [-1, 1]; NaN where one of the columns does not vary. With fewer than two clusters there is no interval (NaN).
    """
    if not len(first):
        return Interval(float("nan"), float("nan"), float("nan"))
    _, left = np.unique(first, return_inverse=True)
    _, right = np.unique(second, return_inverse=True)
    _, index = np.unique(clusters, return_inverse=True)
    value = _weighted_rho(left, right, np.ones(len(first)))
    size = int(index.max()) + 1
    if np.isnan(value) or size < 2:
        return Interval(value, float("nan"), float("nan"))
    generator = np.random.default_rng(seed)
    draws = np.empty(resamples)
    for place in range(resamples):
        times = np.bincount(generator.integers(0, size, size=size), minlength=size).astype(np.float64)
        draws[place] = _weighted_rho(left, right, times[index])
    draws = draws[~np.isnan(draws)]
    if not len(draws):
        return Interval(value, float("nan"), float("nan"))
    return Interval(value, *(float(end) for end in np.quantile(draws, _TAILS)))


@dataclass(frozen=True)
class PermutedCorrelation:
    """Spearman's rho of n pairs, and the p of a permutation test."""

    rho: float
    p: float
    n: int


def permutation_correlation(
    first: FloatArray, second: FloatArray, *, seed: int, draws: int = 10_000
) -> PermutedCorrelation:
    """Spearman's rho (ties have their mean rank) with a two-sided p: how often another order is as far from 0.

    With up to 8 pairs p is the share of all n! orders, and without ties never below 2 / n!; with more, (1 + orders as
    far) / (1 + orders) over orders drawn by the seed. NaN where one of the columns does not vary.
    """
    size = len(first)
    left, right = _centred_ranks(first), _centred_ranks(second)
    spread = float(np.sqrt(np.sum(left**2) * np.sum(right**2)))
    if size < 2 or spread == 0.0:
        return PermutedCorrelation(float("nan"), float("nan"), size)
    every = size <= _MOST_FOR_ALL_ORDERS
    if every:
        orders = np.array(list(permutations(range(size))))
    else:
        generator = np.random.default_rng(seed)
        orders = generator.permuted(np.tile(np.arange(size), (draws, 1)), axis=1)
    rho = float(left @ right) / spread
    extreme = int(np.sum(np.abs(right[orders] @ left) / spread >= abs(rho) - 1e-12))
    p = extreme / len(orders) if every else (1 + extreme) / (1 + draws)
    return PermutedCorrelation(rho, p, size)


def _centred_ranks(values: FloatArray) -> FloatArray:
    """Mean ranks less their mean."""
    _, codes, sizes = np.unique(values, return_inverse=True, return_counts=True)
    ranks: FloatArray = (np.cumsum(sizes) - sizes / 2.0 - len(values) / 2.0)[codes]
    return ranks


def _weighted_rho(left: NDArray[np.intp], right: NDArray[np.intp], times: FloatArray) -> float:
    """Spearman's rho of rows that are there so many times; the rows are given as codes in the order of the values."""
    total = times.sum()
    ranks = []
    for codes in (left, right):
        sizes = np.bincount(codes, weights=times)
        centred = np.cumsum(sizes) - sizes / 2.0 - total / 2.0
        ranks.append(centred[codes])
    spread = float(np.sum(times * ranks[0] ** 2) * np.sum(times * ranks[1] ** 2))
    return float(np.sum(times * ranks[0] * ranks[1]) / np.sqrt(spread)) if spread > 0 else float("nan")


def kappa_from_counts(cells: FloatArray) -> FloatArray:
    r"""Cohen's kappa of counts in the order both, first alone, second alone, neither (the last axis).

    .. math:: \kappa = (p_o - p_e) / (1 - p_e)

    with the share of agreement and that which the two margins alone would give; 1 where both always say the same.
    """
    total = cells.sum(axis=-1)
    both, first, second, neither = np.moveaxis(cells / np.where(total == 0, 1.0, total)[..., None], -1, 0)
    seen = both + neither
    expected = (both + first) * (both + second) + (neither + first) * (neither + second)
    room = 1.0 - expected
    kappa: FloatArray = np.where(room > 1e-12, (seen - expected) / np.where(room > 1e-12, room, 1.0), 1.0)
    return kappa


def agreement_interval(
    first: NDArray[np.bool_],
    second: NDArray[np.bool_],
    clusters: NDArray[np.generic],
    *,
    seed: int,
    resamples: int = 2000,
) -> Interval:
    """Cohen's kappa of two verdicts on the same questions, with a 95% percentile interval over clusters.

    NaN where there is nothing, without an interval with fewer than two clusters.
    """
    if not len(first):
        return Interval(float("nan"), float("nan"), float("nan"))
    cells = np.stack([first & second, first & ~second, ~first & second, ~first & ~second], axis=1).astype(np.float64)
    _, index = np.unique(clusters, return_inverse=True)
    sums: FloatArray = np.stack([np.bincount(index, weights=column) for column in cells.T], axis=1).astype(np.float64)
    value = float(kappa_from_counts(sums.sum(axis=0)))
    if len(sums) < 2:
        return Interval(value, float("nan"), float("nan"))
    drawn = kappa_from_counts(resampled_sums(sums, seed=seed, resamples=resamples))
    return Interval(value, *(float(end) for end in np.quantile(drawn, _TAILS)))
