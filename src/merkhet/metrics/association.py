"""Association of two variables: Cohen's kappa, ratios of sums and rank correlation, with clustered intervals."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import permutations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from merkhet.metrics.bootstrap import Interval, resampled_sums
from merkhet.metrics.ranks import FloatArray

_TAILS = (0.025, 0.975)
_MAX_EXACT_SIZE = 8


def ratio_interval(
    numerators: FloatArray, denominators: FloatArray, clusters: NDArray[np.generic], *, seed: int, resamples: int = 2000
) -> Interval:
    r"""Estimate the ratio of two sums over the same questions, with a 95% percentile interval over clusters.

    .. math:: \sum_i a_i / \sum_i b_i

    NaN if the sum of the denominators is 0; resamples where this sum is 0 are dropped. With fewer than two clusters,
    both ends are NaN.
    """
    if not len(denominators) or denominators.sum() == 0:
        return Interval(math.nan)
    value = float(numerators.sum() / denominators.sum())
    _, index = np.unique(clusters, return_inverse=True)
    upper, lower = (np.bincount(index, weights=values) for values in (numerators, denominators))
    if len(upper) < 2:
        return Interval(value)
    generator = np.random.default_rng(seed)
    ratios = []
    for _ in range(resamples):
        drawn = generator.integers(0, len(upper), size=len(upper))
        total = lower[drawn].sum()
        if total > 0:
            ratios.append(upper[drawn].sum() / total)
    return _percentile_interval(value, np.array(ratios))


def _percentile_interval(value: float, draws: FloatArray) -> Interval:
    return Interval(value, *(float(end) for end in np.quantile(draws, _TAILS))) if len(draws) else Interval(value)


def rank_correlation(
    first: FloatArray, second: FloatArray, clusters: NDArray[np.generic], *, seed: int, resamples: int = 1000
) -> Interval:
    """Estimate Spearman's rho (mean ranks for ties) with a 95% percentile interval over clusters.

    In [-1, 1]; NaN if one of the variables is constant. With fewer than two clusters, both ends are NaN.
    """
    if not len(first):
        return Interval(math.nan)
    _, first_codes = np.unique(first, return_inverse=True)
    _, second_codes = np.unique(second, return_inverse=True)
    _, index = np.unique(clusters, return_inverse=True)
    value = _weighted_rho(first_codes, second_codes, np.ones(len(first)))
    size = int(index.max()) + 1
    if np.isnan(value) or size < 2:
        return Interval(value)
    generator = np.random.default_rng(seed)
    draws = np.empty(resamples)
    for resample in range(resamples):
        weights = np.bincount(generator.integers(0, size, size=size), minlength=size).astype(np.float64)
        draws[resample] = _weighted_rho(first_codes, second_codes, weights[index])
    return _percentile_interval(value, draws[~np.isnan(draws)])


@dataclass(frozen=True)
class PermutedCorrelation:
    """Spearman's rho of n pairs, and the p-value of a permutation test."""

    rho: float
    p: float
    n: int


def permutation_correlation(
    first: FloatArray, second: FloatArray, *, seed: int, draws: int = 10_000
) -> PermutedCorrelation:
    """Compute Spearman's rho (mean ranks for ties) with a two-sided p-value from permutations.

    With up to 8 pairs, p is the share of all n! orders whose rho is at least as far from 0. With more pairs, p is
    (1 + such orders) / (1 + orders) over random orders. Rho and p are NaN if one of the variables is constant.
    """
    size = len(first)
    first_ranks, second_ranks = (
        _centred_ranks(*np.unique(values, return_inverse=True, return_counts=True)[1:]) for values in (first, second)
    )
    spread = float(np.sqrt(np.sum(first_ranks**2) * np.sum(second_ranks**2)))
    if size < 2 or spread == 0.0:
        return PermutedCorrelation(math.nan, math.nan, size)
    exact = size <= _MAX_EXACT_SIZE
    if exact:
        orders = np.array(list(permutations(range(size))))
    else:
        generator = np.random.default_rng(seed)
        orders = generator.permuted(np.tile(np.arange(size), (draws, 1)), axis=1)
    rho = float(first_ranks @ second_ranks) / spread
    extreme = int(np.sum(np.abs(second_ranks[orders] @ first_ranks) / spread >= abs(rho) - 1e-12))
    p = extreme / len(orders) if exact else (1 + extreme) / (1 + draws)
    return PermutedCorrelation(rho, p, size)


def _centred_ranks(codes: NDArray[Any], sizes: NDArray[Any]) -> FloatArray:
    """Return mean ranks, centred on 0; ``sizes`` is the number of values with each code."""
    ranks: FloatArray = (np.cumsum(sizes) - sizes / 2.0 - sizes.sum() / 2.0)[codes]
    return ranks


def _weighted_rho(first: NDArray[np.intp], second: NDArray[np.intp], times: FloatArray) -> float:
    """Compute Spearman's rho of pairs given as ordered codes, where each pair occurs ``times`` times."""
    ranks = [_centred_ranks(codes, np.bincount(codes, weights=times)) for codes in (first, second)]
    spread = float(np.sum(times * ranks[0] ** 2) * np.sum(times * ranks[1] ** 2))
    return float(np.sum(times * ranks[0] * ranks[1]) / np.sqrt(spread)) if spread > 0 else math.nan


def kappa_from_counts(cells: FloatArray) -> FloatArray:
    r"""Compute Cohen's kappa from counts; the last axis has both, first only, second only and neither.

    .. math:: \kappa = (p_o - p_e) / (1 - p_e)

    with the observed agreement :math:`p_o` and the agreement :math:`p_e` expected from the margins. 1 if the two always
    agree.
    """
    total = cells.sum(axis=-1)
    both, first, second, neither = np.moveaxis(cells / np.where(total == 0, 1.0, total)[..., None], -1, 0)
    observed = both + neither
    expected = (both + first) * (both + second) + (neither + first) * (neither + second)
    room = 1.0 - expected
    kappa: FloatArray = np.where(room > 1e-12, (observed - expected) / np.where(room > 1e-12, room, 1.0), 1.0)
    return kappa


def agreement_interval(
    first: NDArray[np.bool_],
    second: NDArray[np.bool_],
    clusters: NDArray[np.generic],
    *,
    seed: int,
    resamples: int = 2000,
) -> Interval:
    """Estimate Cohen's kappa of two verdicts on the same questions, with a 95% percentile interval over clusters.

    NaN without questions. With fewer than two clusters, both ends are NaN.
    """
    if not len(first):
        return Interval(math.nan)
    cells = np.stack([first & second, first & ~second, ~first & second, ~first & ~second], axis=1).astype(np.float64)
    _, index = np.unique(clusters, return_inverse=True)
    sums: FloatArray = np.stack([np.bincount(index, weights=column) for column in cells.T], axis=1).astype(np.float64)
    value = float(kappa_from_counts(sums.sum(axis=0)))
    if len(sums) < 2:
        return Interval(value)
    return _percentile_interval(value, kappa_from_counts(resampled_sums(sums, seed=seed, resamples=resamples)))
