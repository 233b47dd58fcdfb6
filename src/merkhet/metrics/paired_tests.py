"""Paired tests of two models: McNemar, effect sizes, and the smallest detectable difference."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from merkhet.metrics._closed_form import IntArray, clustered_variance
from merkhet.metrics.ranks import FloatArray
from merkhet.metrics.t_distribution import incomplete_beta, student_quantile

_NAN = float("nan")


@dataclass(frozen=True)
class PairedDetails:
    """What else is said of two models on the same questions; None where there is no such number.

    ``mcnemar`` and ``odds`` are for answers that are right or wrong; ``facts`` is the number of clusters of the first
    kind.
    """

    facts: int
    mcnemar: float | None = None
    effect: float | None = None
    odds: float | None = None
    detectable: float | None = None


def paired_details(
    first: FloatArray, second: FloatArray, *clusters: IntArray, weights: FloatArray | None = None
) -> PairedDetails:
    """All of this for two lists of values, one a question, and the numbers of the clusters that each belongs to.

    ``weights`` make the difference a mean over classes. With fewer than two clusters there is only their number, and
    a share of more than 1 is not detectable.
    """
    counts = [len(np.unique(own)) for own in clusters]
    if min(counts) < 2:
        return PairedDetails(counts[0])
    together = np.concatenate([first, second])
    right_or_wrong = bool(np.isin(together, (0.0, 1.0)).all())
    shares = bool(together.min() >= 0.0 and together.max() <= 1.0)
    differences = first - second if weights is None else weights * (first - second)
    found = detectable_difference(
        cluster_deviation(differences, *clusters), min(counts), step=_step(differences, *clusters, shares=shares)
    )
    return PairedDetails(
        counts[0],
        mcnemar=_known(mcnemar_test(first, second, *clusters, weights=weights)) if right_or_wrong else None,
        effect=_known(effect_size(differences, *clusters)),
        odds=_known(discordant_odds(first, second, weights)) if right_or_wrong else None,
        detectable=_known(found) if not shares or found <= 1.0 else None,
    )


def mcnemar_test(
    first: FloatArray, second: FloatArray, *clusters: IntArray, weights: FloatArray | None = None
) -> float:
    r"""The two-sided p of McNemar's test that two models are right equally often, for values of 0 and 1; in (0, 1].

    With one question a cluster it is the exact binomial test on the b questions that only the first has right and the
    c that only the second has:

    .. math:: p = \min\big(1, 2 \, P(X \le \min(b, c))\big), \quad X \sim \mathrm{Bin}(b + c, 1/2)

    With several it is Obuchowski's (1998), which takes a cluster as one observation,

    .. math:: \chi^2_1 = \frac{G - 1}{G} \frac{\big(\sum_k (b_k - c_k)\big)^2}{\sum_k (b_k - c_k)^2}

    and so does it where questions have weights, by sums of weights in place of numbers. (Clusters of two kinds have
    the variance of :func:`merkhet.metrics._closed_form.clustered_variance`.) 1 where the models never differ.
    """
    differences = first - second
    if not differences.any():
        return 1.0
    if weights is None and all(len(np.unique(own)) == len(first) for own in clusters):
        only_first, only_second = int(np.sum(differences > 0)), int(np.sum(differences < 0))
        fewer, more = sorted((only_first, only_second))
        return min(1.0, 2.0 * incomplete_beta(0.5, more, fewer + 1.0))
    weighted = differences if weights is None else weights * differences
    variance = clustered_variance(weighted, *clusters, centre=0.0)
    if not variance > 0.0:
        return 1.0 if variance == 0.0 else _NAN
    return math.erfc(abs(float(weighted.mean())) / math.sqrt(2.0 * variance))


def discordant_odds(first: FloatArray, second: FloatArray, weights: FloatArray | None = None) -> float:
    r"""How many questions only the first model has right for each that only the second has: b / c.

    For values of 0 and 1. In (0, ∞); above 1 the first model is better. Where b or c is 0, a half is added to both
    (Haldane and Anscombe); NaN where the models never differ. The odds ratio of matched pairs, which McNemar's test is
    about.
    """
    differences = first - second
    known = np.ones(len(first)) if weights is None else weights
    only_first, only_second = float(known[differences > 0].sum()), float(known[differences < 0].sum())
    if only_first == only_second == 0.0:
        return _NAN
    half = 0.0 if only_first > 0.0 and only_second > 0.0 else 0.5
    return (only_first + half) / (only_second + half)


def cluster_deviation(differences: FloatArray, *clusters: IntArray) -> float:
    r"""The standard deviation of differences between clusters: that of the mean, times the root of their number.

    .. math:: s = \sqrt{G V}

    with V of :func:`merkhet.metrics._closed_form.clustered_variance`. With one question a cluster it is the usual one.
    It does not shrink where the same facts are only asked about more often. NaN with fewer than two clusters.
    """
    facts = min((len(np.unique(own)) for own in clusters), default=0)
    return math.sqrt(facts * clustered_variance(differences, *clusters)) if facts > 1 else _NAN


def _step(differences: FloatArray, *clusters: IntArray, shares: bool) -> float:
    """By how much a cluster differs that differs, in mean clusters; all of it where none does, if values are shares."""
    fewest = min(clusters, key=lambda own: len(np.unique(own)))
    sums = np.abs(np.bincount(fewest, weights=differences))
    if not sums.any():
        return 1.0 if shares else 0.0
    facts = len(np.unique(fewest))
    return float(np.square(sums).sum() / sums.sum()) * facts / len(differences)


def effect_size(differences: FloatArray, *clusters: IntArray) -> float:
    r"""Cohen's d of paired values: the mean difference in standard deviations between clusters.

    .. math:: d = \bar d / s

    with s of :func:`cluster_deviation`; with one question a cluster this is the usual d of paired values. 0.2 is called
    small, 0.5 medium, 0.8 large. 0 where there is no difference, NaN where all clusters differ by the same.
    """
    mean, deviation = float(differences.mean()), cluster_deviation(differences, *clusters)
    if mean == 0.0:
        return 0.0
    return mean / deviation if deviation > 1e-12 * abs(mean) else _NAN


def cohens_h(share: float, other: float) -> float:
    r"""How far two shares are apart on a scale where the same step is equally hard to see everywhere.

    .. math:: h = 2 \arcsin \sqrt{p_1} - 2 \arcsin \sqrt{p_2}

    In [-π, π]; 0.2 is called small, 0.5 medium, 0.8 large.
    """
    return 2.0 * math.asin(math.sqrt(share)) - 2.0 * math.asin(math.sqrt(other))


def _known(value: float) -> float | None:
    return value if math.isfinite(value) else None


_MOST = 10**9


def detectable_difference(
    deviation: float, facts: int, *, step: float = 0.0, significance: float = 0.05, power: float = 0.8
) -> float:
    r"""The smallest true difference of two models that a two-sided test finds in 80% of samples of so many facts.

    .. math:: \delta^2 = \tfrac{k^2}{G} \sqrt{s^4 + m^2 \delta^2}, \quad
        k = t_{1 - \alpha/2, G - 1} + t_{1 - \beta, G - 1}

    with the observed standard deviation s between facts (:func:`merkhet.metrics.paired_tests.cluster_deviation`).
    Without a ``step`` m it is the usual δ = k s / √G of a paired t-test. But models that hardly differ vary hardly, and
    would vary more if they did differ: a share b of facts is for the one and c for the other, each by m mean facts,
    and a difference of m (b - c) with the same product of b and c has a variance of m² (b + c), which is the root
    above. Where two models never differed, it takes some 7.9 facts that do, all on one side (Connor 1987). NaN with
    fewer than
    two facts, or where neither s nor m is above 0.
    """
    if facts < 2 or not math.isfinite(deviation) or (deviation == 0.0 and step == 0.0):
        return _NAN
    freedom = facts - 1.0
    reach = student_quantile(1.0 - significance / 2.0, freedom) + student_quantile(power, freedom)
    unit = reach * reach / facts
    half = (unit * step) ** 2 / 2.0
    return math.sqrt(half + math.hypot(half, unit * deviation * deviation)) + step / facts


def facts_needed(
    difference: float, deviation: float, *, step: float = 0.0, significance: float = 0.05, power: float = 0.8
) -> int:
    """The smallest number of facts whose :func:`detectable_difference` is not above this one.

    Refuses (ValueError) a difference or a deviation that is not above 0, and what would take more than 10⁹ facts.
    """
    if not difference > 0.0 or not 0.0 < deviation < math.inf:
        raise ValueError(f"a difference and a deviation above 0 are needed, not {difference} and {deviation}")

    def enough(facts: int) -> bool:
        found = detectable_difference(deviation, facts, step=step, significance=significance, power=power)
        return found <= difference

    few, many = 1, 2
    while not enough(many):
        few, many = many, 2 * many
        if many > _MOST:
            raise ValueError(f"more than {_MOST:,} facts would be needed to find a difference of {difference}")
    while many - few > 1:
        middle = (few + many) // 2
        few, many = (few, middle) if enough(middle) else (middle, many)
    return many
