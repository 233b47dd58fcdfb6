r"""Exact expectations over all ways to break ties."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from merkhet.core.errors import InputError
from merkhet.metrics.ranks import FloatArray, GoldRanks, IntArray, TieGroups

PerRank = Callable[[FloatArray], FloatArray]
"""Function from ranks (1, 2, …) to the value of a right answer at each rank."""

_NUMBERS_AT_ONCE = 2**20
_STEP = 0.25
"""Step of the trapezoidal rule in log t; its relative error is below 1e-15."""
_LOWEST, _HIGHEST = 1e-5, 40.0
"""Bounds of t times the sum of ranks: the integrand is a parabola in t below, and less than 1e-15 above."""


def expected_value(groups: TieGroups, per_rank: PerRank) -> FloatArray:
    r"""Return the expected value of the best right answer of each question, over all ways to break ties.

    .. math:: E = \sum_{j=1}^{m-g+1} \frac{C(m - j, g - 1)}{C(m, g)} v(f + j - 1)

    with the value v of each rank, for g right answers in a tie group of size m whose first rank is f. A question whose
    rank is not a number has the value NaN.
    """
    is_number = np.isfinite(groups.first)
    columns = (np.where(is_number, groups.first, 1.0), groups.ties, groups.golds)
    first, ties, golds = (np.rint(column).astype(np.int64) for column in columns)
    golds = np.minimum(golds, ties)
    last = int(np.max(first + ties - golds, initial=1))
    table = np.asarray(per_rank(np.arange(1.0, last + 1.0)), dtype=np.float64)
    if table.shape != (last,):
        raise InputError(f"per_rank must return one value for each of {last} ranks, got the shape {table.shape}")
    values = table[first - 1]
    tied = np.flatnonzero(golds < ties)
    for rows in _equal_rows(tied, ties, golds):
        probabilities = _first_gold_probabilities(int(ties[rows[0]]), int(golds[rows[0]]))
        windows = np.lib.stride_tricks.sliding_window_view(table, len(probabilities))
        starts, index = np.unique(first[rows] - 1, return_inverse=True)
        size = max(1, _NUMBERS_AT_ONCE // len(probabilities))
        parts = [windows[starts[begin : begin + size]] @ probabilities for begin in range(0, len(starts), size)]
        values[rows] = np.concatenate(parts)[index]
    return np.where(is_number, values, np.nan)


def _equal_rows(rows: IntArray, ties: IntArray, golds: IntArray) -> list[IntArray]:
    """Divide rows into those with equal tie groups and equal numbers of right answers."""
    if not len(rows):
        return []
    order = rows[np.lexsort((golds[rows], ties[rows]))]
    changes = (np.diff(ties[order]) != 0) | (np.diff(golds[order]) != 0)
    return np.split(order, np.flatnonzero(changes) + 1)


def _first_gold_probabilities(ties: int, golds: int) -> FloatArray:
    """Return the probabilities that the first of the right answers takes place 1, 2, … of the tie group."""
    places = np.arange(1.0, ties - golds + 1.0)
    return np.cumprod(np.concatenate([[golds / ties], (ties - golds - places + 1.0) / (ties - places)]))


def expected_reciprocal_mean_rank(golds: GoldRanks) -> FloatArray:
    r"""Return the expectation of one over the mean rank of all right answers, over all ways to break ties.

    .. math:: E\left[\frac{k}{S}\right]
        = k \int_0^1 E\left[z^{S - 1}\right] dz
        = k \int_0^1 z^{S_0 - 1} \prod_b \frac{1}{C(m_b, g_b)} {m_b \brack g_b}_z dz

    with the sum S of the ranks of k right answers and its minimum :math:`S_0`, for :math:`g_b` right answers in tie
    groups of sizes :math:`m_b`. The Gaussian binomial is the generating function of the sum of :math:`g_b` places.

    With :math:`z = e^{-t}` and :math:`t = e^y`, the integral runs over all real y. The trapezoidal rule with step h has
    there the relative error :math:`2 \sum_n |\Gamma(1 + 2 \pi i n / h)|` for every S: adaptation would gain nothing.
    """
    counts = golds.counts
    owners, ties, group_golds, minimum = _tie_groups(golds)
    values = counts / minimum
    # A tie group without wrong answers has a known sum of ranks; a rank that is not a number has none.
    is_random = (group_golds < ties) & np.isfinite(minimum)[owners]
    owners, ties, group_golds = owners[is_random], ties[is_random], group_golds[is_random]
    if not len(owners):
        return values
    questions, starts, group_counts = np.unique(owners, return_index=True, return_counts=True)
    mean_sums = minimum[questions] + np.add.reduceat(group_golds * (ties - group_golds) / 2.0, starts)
    low, high = np.log(_LOWEST / mean_sums.max()), np.log(_HIGHEST / minimum[questions].min())
    times = np.exp(np.arange(low, high + _STEP, _STEP))
    keys, codes = np.unique(ties * (group_golds.max() + 1) + group_golds, return_inverse=True)
    transforms = np.stack([_transform(*divmod(int(key), int(group_golds.max()) + 1), times) for key in keys])
    size = max(1, _NUMBERS_AT_ONCE // len(times))
    for begin in range(0, len(questions), size):
        rows, firsts, groups = (array[begin : begin + size] for array in (questions, starts, group_counts))
        integrand = np.exp(np.outer(-minimum[rows], times))
        for number in range(int(groups.max())):
            has_group = groups > number
            integrand[has_group] *= transforms[codes[firsts[has_group] + number]]
        below = times[0] / np.expm1(_STEP) - mean_sums[begin : begin + size] * times[0] ** 2 / np.expm1(2.0 * _STEP)
        # Unlike a matrix product, the sum of a row does not depend on other rows.
        values[rows] = counts[rows] * _STEP * (np.multiply(integrand, times, out=integrand).sum(axis=1) + below)
    return values


def _tie_groups(golds: GoldRanks) -> tuple[IntArray, IntArray, IntArray, FloatArray]:
    """Return each tie group's question, size and number of right answers, and each question's lowest sum of ranks."""
    owners = np.repeat(np.arange(len(golds.counts)), golds.counts)
    order = np.lexsort((golds.ranks, owners))
    owners, ranks, ties = owners[order], golds.ranks[order], golds.ties[order]
    starts = np.flatnonzero((np.diff(owners, prepend=-1) != 0) | (np.diff(ranks, prepend=-1.0) != 0))
    group_golds = np.diff(np.append(starts, len(owners)))
    owners, ranks = owners[starts], ranks[starts]
    sizes = np.maximum(np.rint(ties[starts]).astype(np.int64), group_golds)
    # The mean place of the golds is that of the group, (m + 1) / 2; their lowest mean place is (g + 1) / 2.
    lowest = group_golds * (ranks - (sizes - group_golds) / 2.0)
    return owners, sizes, group_golds, np.bincount(owners, lowest, minlength=len(golds.counts)).astype(np.float64)


def _transform(ties: int, golds: int, times: FloatArray) -> FloatArray:
    r"""Return the Laplace transform of the sum of the places of ``golds`` among ``ties``, counted from its minimum.

    This is the Gaussian binomial :math:`{m \brack g}_z / C(m, g)` at :math:`z = e^{-t}`: a product of the ratios of
    :math:`(1 - z^{m-r+i}) / (m-r+i)` to :math:`(1 - z^i) / i`, none of which exceeds 1.
    """
    product = np.ones(len(times))
    fewer = min(golds, ties - golds)
    for i in range(1, fewer + 1):
        upper = ties - fewer + i
        product *= (np.expm1(-upper * times) / upper) / (np.expm1(-i * times) / i)
    return product
