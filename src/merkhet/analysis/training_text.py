"""Sentences on differences between trained models."""

from __future__ import annotations

from collections.abc import Sequence

from merkhet.analysis.differences import format_p, format_points, format_size
from merkhet.analysis.finding_types import FEW, FEW_QUESTIONS, TRAINED_ONCE, UNMEASURED, Finding, Kind, Verdict
from merkhet.core.text import counted, metric_label, quote_name
from merkhet.metrics.metrics import get_metric, is_available_metric

ONE_TRAINING = (
    "One training of each model cannot tell an effect of the training condition from the luck of a seed. Where a model "
    "was trained once, differences therefore have no verdict and no p-value, and their intervals are over questions, "
    "for these trained models alone. To compare conditions, train several times: --set learning.trainings=3."
)
_MOST_DESCRIBED = 8


def describe_trainings(findings: Sequence[Finding]) -> list[str]:
    """Describe differences between trained models, and explain once why single trainings have no verdict.

    Of many differences, those with a verdict come first, and the rest are counted.
    """
    chosen = [finding for finding in findings if finding.kind is Kind.TRAININGS]
    order = {Verdict.AHEAD: 0, Verdict.NO_DIFFERENCE: 1}
    ordered = sorted(chosen, key=lambda finding: order.get(finding.verdict, 2))
    sentences = [f"{describe_difference(finding)}." for finding in ordered[:_MOST_DESCRIBED]]
    if len(ordered) > _MOST_DESCRIBED:
        sentences.append(f"{len(ordered) - _MOST_DESCRIBED:,} more differences of trained models are in the tables.")
    if any(finding.reason == TRAINED_ONCE for finding in chosen):
        sentences.append(ONE_TRAINING)
    return sentences


def describe_difference(finding: Finding) -> str:
    """Describe one difference between trained models in a clause without a full stop."""
    model, other = quote_name(finding.model or ""), quote_name(finding.other or "")
    place = f"{finding.task} {metric_label(finding.metric or '')}"
    place += f" ({finding.group_column} {finding.group})" if finding.group is not None else ""
    numbers = format_finding(finding)
    if finding.verdict is Verdict.AHEAD:
        return f"{model} is ahead of {other} on {place}: {numbers}"
    if finding.verdict is Verdict.NO_DIFFERENCE:
        excludes_zero = (finding.low or 0.0) > 0.0 or (finding.high or 0.0) < 0.0
        corrected = " after correction for the number of comparisons" if excludes_zero else ""
        return f"{model} and {other} do not differ significantly on {place}{corrected}: {numbers}"
    return f"On {place}, {model} minus {other} is {numbers}"


def format_finding(finding: Finding) -> str:
    """Format a difference between trained models: points, interval, number of trainings, p and power."""
    share = get_metric(finding.metric).share if finding.metric and is_available_metric(finding.metric) else True
    row = {"difference": finding.value or 0.0, "low": finding.low, "high": finding.high, "metric": finding.metric}
    points = format_points({**row, "share": share})
    if finding.reason == TRAINED_ONCE:
        return f"{points} over {counted(finding.n or 0, 'question')}, for one training"
    text = f"{points} over {counted(finding.trainings or 0, 'training')}"
    if finding.reason == FEW:
        are = "question is" if finding.n == 1 else "questions are"
        return f"{text}; {finding.n} {are} too few for a verdict (fewer than {FEW_QUESTIONS})"
    if finding.reason == UNMEASURED:
        return f"{text}; too few statements meet the condition for a verdict"
    text += f", p {format_p(finding.p)}" if finding.p is not None else ""
    if finding.verdict is Verdict.NO_DIFFERENCE and finding.detectable is not None and share:
        text += f"; without correction, 80% power to detect a difference of {format_size(finding.detectable)} points"
    return text
