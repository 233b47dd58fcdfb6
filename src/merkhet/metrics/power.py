"""What a number of facts can show: the smallest difference that is mostly found, and the facts that it takes."""

from __future__ import annotations

import math

from merkhet.metrics.t_distribution import student_quantile

_NAN = float("nan")
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
