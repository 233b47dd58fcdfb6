"""p-values corrected for their number, and scores corrected for what guessing gives."""

from __future__ import annotations

import numpy as np

from merkhet.metrics.ranks import FloatArray

SIGNIFICANCE_LEVEL = 0.05
"""A difference is clear if its corrected p is below this."""


def holm(p_values: FloatArray) -> FloatArray:
    r"""Holm's step-down correction: in no more than 5% of tables is even one of those below 0.05 false.

    .. math:: \tilde p_{(i)} = \max_{j \le i} \min(1, (m - j + 1) \, p_{(j)})

    for the m p-values in rising order. In [p, 1]; holds whatever the tests have to do with one another.
    """
    order = np.argsort(p_values, kind="stable")
    left = len(p_values) - np.arange(len(p_values))
    return _in_place(np.maximum.accumulate(np.minimum(1.0, left * p_values[order])), order)


def benjamini_hochberg(p_values: FloatArray) -> FloatArray:
    r"""Benjamini and Hochberg's step-up correction: of those below 0.05 no more than 5% are false, on average.

    .. math:: q_{(i)} = \min_{j \ge i} \min(1, \tfrac{m}{j} \, p_{(j)})

    for the m p-values in rising order. In [p, 1], never above Holm's; for tests that are independent of one another or
    go together.
    """
    order = np.argsort(p_values, kind="stable")
    found = p_values[order] * len(p_values) / np.arange(1, len(p_values) + 1)
    return _in_place(np.minimum(1.0, np.minimum.accumulate(found[::-1])[::-1]), order)


def _in_place(ordered: FloatArray, order: np.ndarray[tuple[int], np.dtype[np.intp]]) -> FloatArray:
    found = np.empty(len(ordered))
    found[order] = ordered
    return found


def chance_adjusted(value: float | None, chance: float | None) -> float | None:
    r"""A share against guessing: 1 is perfect, 0 is what guessing gives, below 0 is worse.

    .. math:: \tfrac{v - c}{1 - c}

    None where one of the two is unknown, or guessing is always right. (The metric ``adjusted-accuracy`` does the same
    question by question, which differs where questions have unlike numbers of candidates.)
    """
    if value is None or chance is None or not np.isfinite([value, chance]).all() or chance >= 1.0:
        return None
    return (value - chance) / (1.0 - chance)
