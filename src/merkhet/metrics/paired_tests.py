"""Paired tests of two models: McNemar, effect sizes, and the smallest detectable difference."""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass

import numpy as np

from merkhet.metrics._closed_form import IntArray, clustered_variance
from merkhet.metrics.ranks import FloatArray
from merkhet.metrics.t_distribution import incomplete_beta, student_quantile


@dataclass(frozen=True)
class PairedDetails:
    """Further statistics of two models on the same questions; None where a statistic is undefined."""

    facts: int
    """Number of facts, the first kind of clusters."""
    mcnemar: float | None = None
    """P-value of McNemar's test, for values of 0 and 1."""
    effect: float | None = None
    """Cohen's d of the paired values."""
    odds: float | None = None
    """Odds ratio of the discordant pairs, for values of 0 and 1."""
    detectable: float | None = None
    """Smallest true difference that a paired test detects with a power of 80%."""


def paired_details(
    first: FloatArray, second: FloatArray, *clusters: IntArray, weights: FloatArray | None = None
) -> PairedDetails:
    """Compute the paired statistics of two models from their values per question.

    ``clusters`` are one or two arrays of cluster numbers. ``weights`` turn the difference into a mean over classes.
    With fewer than two clusters, only ``facts`` is set.
    """
    counts = [len(np.unique(numbers)) for numbers in clusters]
    if min(counts) < 2:
        return PairedDetails(counts[0])
    values = np.concatenate([first, second])
    right_or_wrong = bool(np.isin(values, (0.0, 1.0)).all())
    shares = bool(values.min() >= 0.0 and values.max() <= 1.0)
    differences = first - second if weights is None else weights * (first - second)
    detectable = detectable_difference(
        cluster_deviation(differences, *clusters), min(counts), step=_step(differences, *clusters, shares=shares)
    )
    return PairedDetails(
        counts[0],
        mcnemar=_finite(mcnemar_test(first, second, *clusters, weights=weights)) if right_or_wrong else None,
        effect=_finite(effect_size(differences, *clusters)),
        odds=_finite(discordant_odds(first, second, weights)) if right_or_wrong else None,
        detectable=_finite(detectable) if not shares or detectable <= 1.0 else None,
    )


def mcnemar_test(
    first: FloatArray, second: FloatArray, *clusters: IntArray, weights: FloatArray | None = None
) -> float:
    r"""Return the two-sided p-value of McNemar's test that two models are right equally often.

    Values must be 0 or 1. Let b be the number of questions that only the first model has right, and c the number that
    only the second model has right. With one question per cluster, this is the exact binomial test:

    .. math:: p = \min\big(1, 2 \, P(X \le \min(b, c))\big), \quad X \sim \mathrm{Bin}(b + c, 1/2)

    With several questions per cluster, this is Obuchowski's (1998) test, which treats a cluster as one observation,

    .. math:: \chi^2_1 = \frac{G - 1}{G} \frac{\big(\sum_k (b_k - c_k)\big)^2}{\sum_k (b_k - c_k)^2}

    Weighted questions use this test too, with sums of weights instead of counts. Two kinds of clusters use the variance
    of :func:`merkhet.metrics._closed_form.clustered_variance`. The p-value is 1 if the models never differ.
    """
    differences = first - second
    if not differences.any():
        return 1.0
    if weights is None and all(len(np.unique(numbers)) == len(first) for numbers in clusters):
        only_first, only_second = int(np.sum(differences > 0)), int(np.sum(differences < 0))
        fewer, more = sorted((only_first, only_second))
        return min(1.0, 2.0 * incomplete_beta(0.5, more, fewer + 1.0))
    weighted = differences if weights is None else weights * differences
    variance = clustered_variance(weighted, *clusters, centre=0.0)
    if not variance > 0.0:
        return 1.0 if variance == 0.0 else math.nan
    return math.erfc(abs(float(weighted.mean())) / math.sqrt(2.0 * variance))


def discordant_odds(first: FloatArray, second: FloatArray, weights: FloatArray | None = None) -> float:
    r"""Return the odds ratio b / c of the discordant pairs, for values of 0 and 1.

    Only the first model is right on b questions, and only the second on c. In (0, ∞); above 1, the first model is
    better. If b or c is 0, one half is added to both (Haldane and Anscombe). NaN if the models never differ. McNemar's
    test is a test of whether these odds are 1.
    """
    differences = first - second
    weights = np.ones(len(first)) if weights is None else weights
    only_first, only_second = float(weights[differences > 0].sum()), float(weights[differences < 0].sum())
    if only_first == only_second == 0.0:
        return math.nan
    half = 0.0 if only_first > 0.0 and only_second > 0.0 else 0.5
    return (only_first + half) / (only_second + half)


def cluster_deviation(differences: FloatArray, *clusters: IntArray) -> float:
    r"""Return the standard deviation of differences between clusters.

    .. math:: s = \sqrt{G V}

    with G clusters and the variance V of :func:`merkhet.metrics._closed_form.clustered_variance`. With one question per
    cluster, this is the usual standard deviation. Further questions about the same facts do not reduce it. NaN with
    fewer than two clusters.
    """
    facts = min((len(np.unique(numbers)) for numbers in clusters), default=0)
    return math.sqrt(facts * clustered_variance(differences, *clusters)) if facts > 1 else math.nan


def _step(differences: FloatArray, *clusters: IntArray, shares: bool) -> float:
    """Return the weighted mean size of the clusters' nonzero differences, relative to the mean cluster size.

    If no cluster differs, return 1 for shares and 0 otherwise.
    """
    fewest = min(clusters, key=lambda numbers: len(np.unique(numbers)))
    sums = np.abs(np.bincount(fewest, weights=differences))
    if not sums.any():
        return 1.0 if shares else 0.0
    facts = len(np.unique(fewest))
    return float(np.square(sums).sum() / sums.sum()) * facts / len(differences)


def effect_size(differences: FloatArray, *clusters: IntArray) -> float:
    r"""Return Cohen's d of paired values: the mean difference in standard deviations between clusters.

    .. math:: d = \bar d / s

    with the standard deviation s of :func:`cluster_deviation`. With one question per cluster, this is the usual d. By
    convention 0.2 is small, 0.5 medium and 0.8 large. 0 if the mean difference is 0, NaN if all clusters differ by the
    same amount.
    """
    mean, deviation = float(differences.mean()), cluster_deviation(differences, *clusters)
    if mean == 0.0:
        return 0.0
    return mean / deviation if deviation > 1e-12 * abs(mean) else math.nan


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


_MAX_FACTS = 10**9


def detectable_difference(
    deviation: float, facts: int, *, step: float = 0.0, significance: float = 0.05, power: float = 0.8
) -> float:
    r"""Return the smallest true difference of two models that a two-sided test detects with probability ``power``.

    .. math:: \delta^2 = \tfrac{k^2}{G} \sqrt{s^4 + m^2 \delta^2}, \quad
        k = t_{1 - \alpha/2, G - 1} + t_{1 - \beta, G - 1}

    with the observed standard deviation s between facts (:func:`cluster_deviation`) and the number of facts G. Without
    a ``step`` m, this is the usual δ = k s / √G of a paired t-test. With a step, m / G is added to δ.

    The step corrects s for the true difference: models that hardly differ have a small s, which would be larger if they
    differed. Let a share b of facts favour one model and a share c the other, each by m. Keep the product of b and c
    fixed. Then the difference m (b - c) has the variance m² (b + c), which is the root above. If two models never
    differed, about 7.9 facts must differ in favour of one model (Connor 1987).

    NaN with fewer than two facts, or if both s and m are 0.
    """
    if facts < 2 or not math.isfinite(deviation) or (deviation == 0.0 and step == 0.0):
        return math.nan
    freedom = facts - 1.0
    reach = student_quantile(1.0 - significance / 2.0, freedom) + student_quantile(power, freedom)
    unit = reach * reach / facts
    half = (unit * step) ** 2 / 2.0
    return math.sqrt(half + math.hypot(half, unit * deviation * deviation)) + step / facts


def facts_needed(
    difference: float, deviation: float, *, step: float = 0.0, significance: float = 0.05, power: float = 0.8
) -> int:
    """Return the smallest number of facts that makes ``difference`` detectable (:func:`detectable_difference`).

    Raises:
        ValueError: The difference or the deviation is not above 0, or more than 10⁹ facts would be needed.
    """
    if not difference > 0.0 or not 0.0 < deviation < math.inf:
        raise ValueError(f"difference and deviation must be above 0, got {difference} and {deviation}")

    def enough(facts: int) -> bool:
        return detectable_difference(deviation, facts, step=step, significance=significance, power=power) <= difference

    facts = bisect_left(range(_MAX_FACTS + 1), True, lo=2, key=enough)
    if facts > _MAX_FACTS:
        raise ValueError(f"more than {_MAX_FACTS:,} facts would be needed to find a difference of {difference}")
    return facts
