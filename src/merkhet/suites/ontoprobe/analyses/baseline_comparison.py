"""Findings and sentences that set models against a baseline."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict

from merkhet.analysis.comparison import Comparison
from merkhet.analysis.differences import is_significant, swap_models
from merkhet.analysis.finding_types import FEW_QUESTIONS, Finding, Kind, Verdict
from merkhet.analysis.types import Line
from merkhet.core.text import join_names, join_some, quote_name

FEW_FACTS = f"fewer than {FEW_QUESTIONS} facts, too few for a verdict,"


def comparison_finding(line: Line, template: str, comparison: Comparison) -> Finding:
    """Make the finding on a variant against the baseline; positive differences are in favour of ``model``."""
    row = asdict(comparison)
    row = swap_models(row) if comparison.difference < 0.0 else row
    is_few = comparison.n < FEW_QUESTIONS
    verdict = Verdict.AHEAD if is_significant(row) else Verdict.NO_DIFFERENCE
    return Finding(
        Kind.COMPARISON,
        Verdict.NONE if is_few else verdict,
        model=row["model"],
        task=comparison.task,
        metric=comparison.metric,
        probe=line.probe,
        method=line.method,
        other=row["other"],
        group_column="template",
        group=template.rpartition("/")[2],
        value=row["difference"],
        low=row["low"],
        high=row["high"],
        n=comparison.n,
        facts=comparison.facts,
        p=comparison.p,
        reason=FEW_FACTS if is_few else None,
    )


def describe_comparisons(findings: Sequence[Finding], baseline: str) -> list[str]:
    """Describe, from the findings of :func:`memorizing`, on which tasks each model is above and below the baseline."""
    by_model: dict[str, list[Finding]] = defaultdict(list)
    for finding in findings:
        by_model[(finding.other if finding.model == baseline else finding.model) or ""].append(finding)
    sentences = []
    for model, rows in by_model.items():
        sides: dict[str, list[str]] = {"above": [], "below": [], "no significant difference": [], FEW_FACTS: []}
        for row in rows:
            side = "no significant difference" if row.verdict is Verdict.NO_DIFFERENCE else FEW_FACTS
            if row.verdict is Verdict.AHEAD:
                side = "below" if row.model == baseline else "above"
            sides[side].append(row.task or "")
        how = dict.fromkeys(f"template {row.group} by {row.probe}, {row.method}" for row in rows)
        parts = "; ".join(f"{side} on {join_names(tasks)}" for side, tasks in sides.items() if tasks)
        sentences.append(
            f"{quote_name(model)} (fixed choice: {join_some(list(how), 3)}) against {baseline} in MRR, paired by fact: "
            f"{parts}."
        )
    return sentences
