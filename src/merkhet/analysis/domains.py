"""Scores by question type and domain."""

from __future__ import annotations

from collections import Counter, defaultdict

from merkhet.analysis.types import (
    NO_DOMAIN,
    Analysis,
    AnalysisInput,
    Column,
    Estimate,
    Line,
    Table,
    TableRow,
    metric_label,
)
from merkhet.core.text import join_names


def domains(inputs: AnalysisInput) -> Analysis | None:
    """Tabulate question types by domain, one table per line; None without answers."""
    ids_by_domain: dict[tuple[str, str], list[str]] = defaultdict(list)
    for row in inputs.questions:
        ids_by_domain[row["task"], row["domain"] or NO_DOMAIN].append(row["question_id"])
    tables = [_table(inputs, line, ids_by_domain) for line in inputs.usable if inputs.usable[line]]
    if not tables:
        return None
    explanation = (
        "The headline score of every question type in every domain that the schema names, with 95% bootstrap intervals "
        "over facts. A dash marks a domain without questions."
    )
    return Analysis(
        "domains",
        "Question types by domain",
        explanation,
        tuple(tables),
        sentences=tuple(_describe_missing(inputs, ids_by_domain)),
    )


def _table(inputs: AnalysisInput, line: Line, ids_by_domain: dict[tuple[str, str], list[str]]) -> Table:
    rows: list[TableRow] = []
    answers = inputs.usable[line]
    metrics = {}
    for task in inputs.tasks:
        metric = metrics[task] = inputs.metric(task, line)
        cells: list[Estimate | None] = []
        groups = {domain: ids_by_domain.get((task, domain), []) for domain in inputs.domains}
        for column, question_ids in {**groups, "": [domain for group in groups.values() for domain in group]}.items():
            answered = sorted(domain for domain in question_ids if domain in answers)
            if not answered:
                cells.append(None)
                continue
            # The seeds of the scores table, so that both show the same interval.
            seed_parts = (task, "domain", column) if column else (task, "", "")
            cells.append(inputs.mean(inputs.values(line, answered, metric), answered, *seed_parts, metric.name))
        rows.append((task, cells[-1], *cells[:-1]))
    kind = "share" if all(metric.share for metric in metrics.values()) else "number"
    names = join_names(list(dict.fromkeys(metric_label(metric) for metric in metrics.values())))
    columns = (Column("Task"), Column("all", kind), *(Column(domain, kind) for domain in inputs.domains))
    return Table(f"{inputs.labels[line]}: {names}.", columns, tuple(rows))


def _describe_missing(inputs: AnalysisInput, ids_by_domain: dict[tuple[str, str], list[str]]) -> list[str]:
    asked = {domain for _, domain in ids_by_domain}
    facts = Counter(row["domain"] for row in inputs.facts)
    unasked = [name for name in inputs.domains if name not in asked]
    empty = [name for name in unasked if not facts[name]]
    silent = [name for name in unasked if facts[name]]
    sentences = []
    if empty:
        sentences.append(f"This run's knowledge has no facts of {join_names(empty)}, so nothing was asked about it.")
    if silent:
        sentences.append(f"This run has facts of {join_names(silent)}, but no questions about them.")
    return sentences
