"""How far two ways of asking agree beyond what their scores alone would give."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from merkhet.metrics.bootstrap import Interval, drawn_sums
from merkhet.metrics.ranks import FloatArray

_TAILS = (0.025, 0.975)


def kappa_of(cells: FloatArray) -> FloatArray:
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
    value = float(kappa_of(sums.sum(axis=0)))
    if len(sums) < 2:
        return Interval(value, float("nan"), float("nan"))
    drawn = kappa_of(drawn_sums(sums, seed=seed, resamples=resamples))
    return Interval(value, *(float(end) for end in np.quantile(drawn, _TAILS)))
