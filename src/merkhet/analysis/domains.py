"""Scores by question type and domain."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import chain

from merkhet.analysis.finding_types import NO_QUESTIONS, Finding, Kind, Verdict
from merkhet.analysis.types import NO_DOMAIN, Analysis, AnalysisInput, Column, Estimate, Line, Table
from merkhet.core.text import join_names, join_some, metric_label

_MOST_NAMED = 4


def domains(inputs: AnalysisInput) -> Analysis | None:
    """Tabulate scores by question type and domain, one table per model, probe and method.

    Return None without answers or domains.
    """
    if not inputs.has_domains:
        return None
    ids_by_domain: dict[tuple[str, str], list[str]] = defaultdict(list)
    for row in inputs.questions:
        ids_by_domain[row["task"], row["domain"] or NO_DOMAIN].append(row["question_id"])
    tables = [_table(inputs, line, ids_by_domain) for line in inputs.usable if inputs.usable[line]]
    if not tables:
        return None
    explanation = (
        "The headline score of every question type in every domain, with 95% bootstrap intervals over facts. A "
        "dash marks a domain without questions."
    )
    return Analysis(
        "domains",
        "Question types by domain",
        explanation,
        tuple(tables),
        sentences=tuple(_describe_missing(inputs, ids_by_domain)),
        findings=tuple(_find_unasked(inputs, ids_by_domain)),
    )


def _table(inputs: AnalysisInput, line: Line, ids_by_domain: dict[tuple[str, str], list[str]]) -> Table:
    rows = []
    metrics = {task: inputs.metric(task, line) for task in inputs.tasks}
    for task, metric in metrics.items():
        groups = {domain: ids_by_domain.get((task, domain), []) for domain in inputs.domains}
        cells: list[Estimate | None] = []
        for domain, question_ids in {"": list(chain(*groups.values())), **groups}.items():
            answered = sorted(inputs.usable[line].keys() & set(question_ids))
            # Use the seeds of the scores table to get the same intervals.
            seed_parts = (task, "domain", domain) if domain else (task, "", "")
            cells.append(inputs.score(line, answered, metric, *seed_parts) if answered else None)
        rows.append((task, *cells))
    kind = "share" if all(metric.share for metric in metrics.values()) else "number"
    names = join_names(list(dict.fromkeys(metric_label(metric.name) for metric in metrics.values())))
    columns = (Column("Task"), Column("all", kind), *(Column(domain, kind) for domain in inputs.domains))
    return Table(f"{inputs.labels[line]}: {names}.", columns, tuple(rows))


def _describe_missing(inputs: AnalysisInput, ids_by_domain: dict[tuple[str, str], list[str]]) -> list[str]:
    facts = Counter(row["domain"] for row in inputs.facts)
    unasked = _unasked_domains(inputs, ids_by_domain)
    empty = [name for name in unasked if not facts[name]]
    silent = [name for name in unasked if facts[name]]
    sentences = []
    if empty:
        them = "it" if len(empty) == 1 else "them"
        sentences.append(
            f"This run's knowledge has no facts of {join_names(empty)}, so nothing was asked about {them}."
        )
    if silent:
        sentences.append(f"This run has facts of {join_names(silent)}, but no questions about them.")
    return sentences


def _unasked_domains(inputs: AnalysisInput, ids_by_domain: dict[tuple[str, str], list[str]]) -> list[str]:
    asked = {domain for _, domain in ids_by_domain}
    return [name for name in inputs.domains if name not in asked]


def _find_unasked(inputs: AnalysisInput, ids_by_domain: dict[tuple[str, str], list[str]]) -> Iterator[Finding]:
    """Yield a finding if there are domains with facts but without a question, such as under a small limit."""
    facts = Counter(row["domain"] for row in inputs.facts)
    silent = [name for name in _unasked_domains(inputs, ids_by_domain) if facts[name]]
    if silent:
        yield Finding(
            Kind.DESIGN,
            Verdict.NONE,
            group_column="domain",
            group=join_some(silent, _MOST_NAMED),
            count=len(silent),
            total=len(inputs.domains),
            reason=NO_QUESTIONS,
        )
