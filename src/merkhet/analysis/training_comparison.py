"""Differences between trained models, with the training as the unit, and the findings that they support."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from merkhet.analysis.finding_types import (
    FEW,
    FEW_QUESTIONS,
    TRAINED_ONCE,
    UNMEASURED,
    Finding,
    Kind,
    Verdict,
)
from merkhet.core.text import finite_or_none
from merkhet.metrics.clusters import Clusters
from merkhet.metrics.corrections import SIGNIFICANCE_LEVEL
from merkhet.metrics.ranks import FloatArray
from merkhet.metrics.training_tests import training_test

MIN_STATEMENTS = 5 * FEW_QUESTIONS
"""Smallest number of statements that must meet a condition before a verdict on its effect is given."""
MIN_SHARE = 0.01
"""Smallest share of the statements that must meet a condition before a verdict on its effect is given."""


def compare_trainings(
    sides: Sequence[tuple[FloatArray, FloatArray]], clusters: Clusters, seed: int, weights: FloatArray | None = None
) -> dict[str, Any] | None:
    """Compare two sides whose values differ between trainings, with the training as the unit.

    With several trainings, the interval and the p-value are Student's over one difference per training. With one, the
    interval is over questions, and there is no p-value. Fewer than ``FEW_QUESTIONS`` questions have no p-value either.

    Args:
        sides: Values of both sides on the same questions, after each training.

    Returns:
        Fields of a :class:`merkhet.analysis.comparison.Comparison`; None if no difference can be computed.
    """
    facts = len(np.unique(clusters.facts))
    if len(sides) == 1:
        paired = clusters.difference(*sides[0], seed, weights)
        if not all(map(math.isfinite, (paired.difference, paired.low, paired.high))):
            return None
        return {**asdict(paired), "p": None, "facts": facts, "trainings": 1}
    count = len(sides[0][0])
    differences = [float(np.average(first - second, weights=weights)) for first, second in sides]
    test = training_test(differences, 1.0 / count)
    p = test.p if count >= FEW_QUESTIONS else None
    return {**asdict(test), "p": p, "p_raw": p, "facts": facts, "trainings": len(sides)}


def is_measurable(count: int, of: int) -> bool:
    """Return whether enough statements meet a condition to measure its effect."""
    return count >= MIN_STATEMENTS and count >= MIN_SHARE * of


def is_trained(comparison: Mapping[str, Any]) -> bool:
    """Return whether the run trained a model of a comparison, so that the unit is the training."""
    return comparison.get("trainings") is not None


def training_findings(comparisons: Iterable[Mapping[str, Any]]) -> tuple[Finding, ...]:
    """Make findings of the comparisons of trained models; others are left out.

    Comparisons are rows with the fields of :class:`merkhet.analysis.comparison.Comparison`.
    """
    return tuple(training_finding(row) for row in comparisons if is_trained(row))


def training_finding(comparison: Mapping[str, Any]) -> Finding:
    """Make the finding of a comparison of trained models; the model that is ahead comes first."""
    verdict, reason = _judge(comparison)
    sides = (comparison["model"], comparison["other"])
    value, low, high = (finite_or_none(comparison.get(name)) for name in ("difference", "low", "high"))
    if verdict is Verdict.AHEAD and (value or 0.0) < 0.0:
        sides = sides[::-1]
        value, low, high = (None if end is None else 0.0 - end for end in (value, high, low))
    return Finding(
        Kind.TRAININGS,
        verdict,
        model=sides[0],
        other=sides[1],
        task=comparison["task"],
        metric=comparison["metric"],
        group_column=comparison.get("group_column"),
        group=comparison.get("group"),
        value=value,
        low=low,
        high=high,
        n=comparison["n"],
        facts=comparison.get("facts"),
        trainings=comparison["trainings"],
        p=finite_or_none(comparison.get("p")),
        detectable=finite_or_none(comparison.get("detectable")),
        reason=reason,
    )


def _judge(comparison: Mapping[str, Any]) -> tuple[Verdict, str | None]:
    """Return the verdict that a comparison of trained models supports; without one, also the reason."""
    if comparison["trainings"] < 2:
        return Verdict.NONE, TRAINED_ONCE
    if comparison["n"] < FEW_QUESTIONS:
        return Verdict.NONE, FEW
    name = "q" if comparison.get("group_column") and comparison.get("q") is not None else "p"
    p = finite_or_none(comparison.get(name))
    if p is None:
        return Verdict.NONE, UNMEASURED
    return (Verdict.AHEAD if p < SIGNIFICANCE_LEVEL else Verdict.NO_DIFFERENCE), None
