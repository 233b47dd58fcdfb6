"""Significance, power, direction and format of a difference between two models.

Comparisons are mappings with the keys of :class:`merkhet.analysis.comparison.Comparison`, of which older runs may lack
some. There are three further keys:

* ``share`` is false for a metric that is not a share.
* ``higher_is_better`` is false for a metric that is better if lower. The sign of its difference is flipped, so a
  positive difference always means better.
* ``equal`` is true if both models have the same value on every question.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from merkhet.analysis.finding_types import FEW_QUESTIONS
from merkhet.core.text import finite_or_none, metric_label
from merkhet.metrics import paired_tests as power
from merkhet.metrics.corrections import SIGNIFICANCE_LEVEL

ComparisonRow = Mapping[str, Any]
_TWO_SIDED = 1.959964
_POWER = _TWO_SIDED + 0.841621
"""Smallest difference, in standard errors, that a two-sided test at the 5% level detects with 80% power."""
_SMALLEST = 0.005
"""Smallest difference for which the number of facts needed is estimated: half a point."""


def is_significant(comparison: ComparisonRow) -> bool:
    """Return whether a difference is significant, by the corrected p or, within groups, by q.

    Within a group of too few facts, no difference is significant.
    """
    if is_small_group(comparison):
        return False
    p = finite_or_none(comparison.get("q")) if comparison.get("group_column") else None
    p = finite_or_none(comparison.get("p")) if p is None else p
    return p is not None and p < SIGNIFICANCE_LEVEL


def is_small_group(comparison: ComparisonRow) -> bool:
    """Return whether a comparison is within a group of too few facts for a verdict."""
    facts = comparison.get("facts") or comparison.get("n")
    return bool(comparison.get("group_column")) and facts is not None and int(facts) < FEW_QUESTIONS


def is_equal(comparison: ComparisonRow) -> bool:
    """Return whether both models have the same value on every question."""
    return bool(comparison.get("equal"))


def count_facts(comparison: ComparisonRow) -> int:
    """Return the number of facts of a comparison, or the number of questions if that is unknown."""
    return int(comparison.get("facts") or comparison["n"])


def detectable_difference(comparison: ComparisonRow) -> float | None:
    """Return the smallest true difference detected with 80% power; if not stored, estimate it from the interval."""
    smallest = finite_or_none(comparison.get("detectable"))
    if smallest is not None:
        return smallest
    low, high = finite_or_none(comparison.get("low")), finite_or_none(comparison.get("high"))
    return None if low is None or high is None or high <= low else _POWER * (high - low) / (2 * _TWO_SIDED)


def facts_needed(comparison: ComparisonRow) -> int | None:
    """Estimate how many facts are needed to detect the observed difference with 80% power at the 5% level.

    The estimate uses the effect size, or else the interval, whose width shrinks with the square root of the number of
    facts. None if the difference is too small or the interval is missing.
    """
    observed, effect = abs(comparison["difference"]), finite_or_none(comparison.get("effect"))
    if observed < _SMALLEST:
        return None
    if effect:
        return power.facts_needed(observed, observed / abs(effect))
    smallest = detectable_difference(comparison)
    return None if smallest is None else math.ceil(count_facts(comparison) * (smallest / observed) ** 2)


def swap_models(comparison: ComparisonRow) -> dict[str, Any]:
    """Swap the two models of a comparison and reverse the sign of their difference."""
    swapped: dict[str, Any] = {**comparison, "model": comparison["other"], "other": comparison["model"]}
    for name in ("difference", "effect"):
        if comparison.get(name) is not None:
            swapped[name] = 0.0 - comparison[name]
    swapped["low"], swapped["high"] = (
        None if comparison.get(end) is None else 0.0 - comparison[end] for end in ("high", "low")
    )
    if comparison.get("odds") is not None:
        swapped["odds"] = 1.0 / comparison["odds"] if comparison["odds"] else math.inf
    if "value" in comparison:
        swapped["value"], swapped["other_value"] = comparison["other_value"], comparison["value"]
    return swapped


def orient_to(comparison: ComparisonRow, model: str) -> dict[str, Any]:
    """Return the comparison with ``model`` as the first model."""
    return dict(comparison) if comparison["model"] == model else swap_models(comparison)


def format_difference(row: ComparisonRow) -> str:
    """Format a difference with interval and p-value, such as ``+14.2 points [9.1, 19.4], p < 0.001``."""
    name = "q" if row.get("group_column") and row.get("q") is not None else "p"
    return f"{format_points(row)}, {name} {format_p(row[name])}"


def format_points(row: ComparisonRow) -> str:
    """Format a difference with its interval, such as ``+14.2 points [9.1, 19.4]``.

    A metric that is not a share keeps its unit.
    """
    ends = [end for name in ("low", "high") if (end := finite_or_none(row.get(name))) is not None]
    if row.get("share", True):
        formatted_ends = [_decimal(100 * end) for end in ends]
        text = f"{_decimal(100 * row['difference'], '+')} points"
    else:
        formatted_ends = [f"{end:.3g}" for end in ends]
        text = f"{row['difference']:+.3g} in {metric_label(row['metric'])}"
        text += "" if row.get("higher_is_better", True) else ", where less is better,"
    return f"{text} [{', '.join(formatted_ends)}]" if len(ends) == 2 else text


def format_size(share: float) -> str:
    """Format a share in points, without decimals from 10 points and with one decimal below."""
    return f"{100 * share:.0f}" if share >= 0.0995 else f"{100 * share:.1f}"


def format_p(value: float) -> str:
    """Format a p-value with its relation sign, such as ``< 0.001`` or ``= 0.043``."""
    return "< 0.001" if value < 0.001 else f"= {value:.3f}"


def format_range(sizes: Sequence[str]) -> str:
    """Format the first and the last of sorted sizes, or one size if the two look the same."""
    return sizes[0] if sizes[0] == sizes[-1] else f"{sizes[0]} to {sizes[-1]}"


def _decimal(value: float, sign: str = "") -> str:
    """Format a number with one decimal, without a sign before zero."""
    rounded = round(value, 1) + 0.0
    return f"{rounded:{sign if rounded else ''}.1f}"
