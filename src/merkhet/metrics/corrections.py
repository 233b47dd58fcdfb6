"""Corrections of p-values for multiple comparisons, and of scores for chance."""

from __future__ import annotations

import numpy as np

from merkhet.metrics.ranks import FloatArray

SIGNIFICANCE_LEVEL = 0.05
"""Level below which the corrected p-value of a difference is significant."""


def holm(p_values: FloatArray) -> FloatArray:
    r"""Apply Holm's step-down correction, which controls the family-wise error rate.

    .. math:: \tilde p_{(i)} = \max_{j \le i} \min(1, (m - j + 1) \, p_{(j)})

    for the m p-values in ascending order. In [p, 1]. Valid for any dependence between the tests.
    """
    order = np.argsort(p_values, kind="stable")
    remaining = len(p_values) - np.arange(len(p_values))
    return _restore_order(np.maximum.accumulate(np.minimum(1.0, remaining * p_values[order])), order)


def benjamini_hochberg(p_values: FloatArray) -> FloatArray:
    r"""Apply Benjamini and Hochberg's step-up correction, which controls the false discovery rate.

    .. math:: q_{(i)} = \min_{j \ge i} \min(1, \tfrac{m}{j} \, p_{(j)})

    for the m p-values in ascending order. In [p, 1], and never above Holm's corrected p-value. Valid for independent or
    positively dependent tests.
    """
    order = np.argsort(p_values, kind="stable")
    scaled = p_values[order] * len(p_values) / np.arange(1, len(p_values) + 1)
    return _restore_order(np.minimum(1.0, np.minimum.accumulate(scaled[::-1])[::-1]), order)


def _restore_order(ordered: FloatArray, order: np.ndarray[tuple[int], np.dtype[np.intp]]) -> FloatArray:
    values = np.empty(len(ordered))
    values[order] = ordered
    return values


def chance_adjusted(value: float | None, chance: float | None) -> float | None:
    r"""Adjust a share for chance: 1 is perfect, 0 is chance, below 0 is worse than chance.

    .. math:: \tfrac{v - c}{1 - c}

    with the share v and the chance level c. None if v or c is unknown, or c is 1. The metric ``adjusted-accuracy``
    adjusts each question instead, which differs if questions have different numbers of candidates.
    """
    if value is None or chance is None or not np.isfinite([value, chance]).all() or chance >= 1.0:
        return None
    return (value - chance) / (1.0 - chance)
