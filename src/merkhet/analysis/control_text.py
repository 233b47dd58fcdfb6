"""Sentences on the controls of models and on their liking for positions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence

from merkhet.analysis.differences import format_p
from merkhet.analysis.finding_types import Finding, Verdict
from merkhet.core import text as fmt
from merkhet.core.text import join_some, percent, quote_name

_MOST_TASKS = 8
_WORDS = {
    "association": {
        Verdict.AHEAD: "does better than its own word association on",
        Verdict.NO_DIFFERENCE: (
            "does no better and no worse, as far as can be shown, than its own word association on"
        ),
        Verdict.BEHIND: "does worse than its own word association on",
    },
    "subject-blind": {
        Verdict.AHEAD: "does better with the subject than with the subject hidden on",
        Verdict.NO_DIFFERENCE: (
            "does no better and no worse, as far as can be shown, with the subject than with the subject hidden on"
        ),
        Verdict.BEHIND: "does worse with the subject than with the subject hidden on",
    },
}
"""Predicates by control and verdict; "it" replaces the model's name in the second clause of a sentence."""

Label = Callable[[Finding], str]


def render_controls(findings: Sequence[Finding], task: Label) -> list[str]:
    """Say in one sentence for each model and control on which tasks the model does better, as well, and worse."""
    lines: dict[tuple[str, str], list[Finding]] = defaultdict(list)
    for finding in findings:
        lines[finding.model or "", finding.control or ""].append(finding)
    sentences = []
    for (model, control), rows in lines.items():
        clauses = []
        for verdict, predicate in _WORDS.get(control, {}).items():
            items = [f"{task(row)} ({_scores(row)})" for row in rows if row.verdict is verdict]
            if items:
                clauses.append(f"{predicate} {join_some(items, _MOST_TASKS)}")
        if clauses:
            sentences.append(f"{quote_name(model)} {'; it '.join(clauses)}.")
    return sentences


def _scores(finding: Finding) -> str:
    """Format both scores and the p-value, such as ``33.2% against 20.1%, paired, p < 0.001``."""
    difference = (finding.value or 0.0) * (1.0 if finding.higher_is_better else -1.0)
    reference = finding.reference or 0.0
    first, second = (
        f"{fmt.score(value, percent=finding.share)}{'%' * finding.share}"
        for value in (reference + difference, reference)
    )
    p = "p unknown" if finding.p is None else f"p {format_p(finding.p)}"
    return f"{first} against {second}, paired, {p}"


def render_positions(findings: Sequence[Finding], task: Label) -> list[str]:
    """Name the positions that models like; models without a liking are left out."""
    liked = [finding for finding in findings if finding.verdict is Verdict.LIKED]
    methods: dict[tuple[str | None, str | None], set[tuple[str | None, str | None]]] = defaultdict(set)
    for finding in findings:
        methods[finding.model, finding.task].add((finding.probe, finding.method))
    sentences = []
    for finding in liked:
        several = len(methods[finding.model, finding.task]) > 1
        how = f" ({finding.probe}, {finding.method})" if several else ""
        p = "p unknown" if finding.p is None else f"p {format_p(finding.p)}"
        sentences.append(
            f"{quote_name(finding.model or '')}{how} likes the {finding.group} of the options that {task(finding)} "
            f"shows: {percent(finding.value or 0.0)} of its choices, where {percent(finding.reference or 0.0)} are "
            f"expected ({p})."
        )
    return sentences
