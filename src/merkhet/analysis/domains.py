"""Scores by question type and domain, with the domains that have nothing to ask about."""

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
    estimate,
    join_names,
    metric_label,
)
from merkhet.core.ids import derived_seed
from merkhet.metrics.bootstrap import clustered_interval


def domains(given: AnalysisInput) -> Analysis | None:
    """One table a model: question types by all domains that the schema names; None where nothing was answered."""
    ids: dict[tuple[str, str], list[str]] = defaultdict(list)
    for row in given.questions:
        ids[row["task"], row["domain"] or NO_DOMAIN].append(row["question_id"])
    tables = [_table(given, line, ids) for line in given.usable if given.usable[line]]
    if not tables:
        return None
    explanation = (
        "The headline score of every question type in every domain that the schema names, with 95% bootstrap intervals "
        "over facts. A dash stands where there is no question."
    )
    return Analysis(
        "domains", "Question types by domain", explanation, tuple(tables), sentences=tuple(_missing(given, ids))
    )


def _table(given: AnalysisInput, line: Line, ids: dict[tuple[str, str], list[str]]) -> Table:
    rows: list[TableRow] = []
    answers = given.usable[line]
    shown = {}
    for task in given.tasks:
        metric = given.metric(task, line)
        shown[task] = metric
        cells: list[Estimate | None] = []
        groups = {name: ids.get((task, name), []) for name in given.domains}
        for column, members in {**groups, "": [name for group in groups.values() for name in group]}.items():
            kept = sorted(name for name in members if name in answers)
            if not kept:
                cells.append(None)
                continue
            # The seeds of the table of scores: a score is the same wherever it stands.
            parts = (task, "domain", column) if column else (task, "", "")
            seed = derived_seed(given.seed, *parts, metric.name)
            interval = clustered_interval(given.values(line, kept, metric), given.cluster_ids(kept), seed=seed)
            cells.append(estimate(interval, len(kept)))
        rows.append((task, cells[-1], *cells[:-1]))
    kind = "share" if all(metric.share for metric in shown.values()) else "number"
    names = join_names(list(dict.fromkeys(metric_label(metric) for metric in shown.values())))
    columns = (Column("Task"), Column("all", kind), *(Column(name, kind) for name in given.domains))
    return Table(f"{given.labels[line]}: {names}.", columns, tuple(rows))


def _missing(given: AnalysisInput, ids: dict[tuple[str, str], list[str]]) -> list[str]:
    asked = {domain for _, domain in ids}
    facts = Counter(row["domain"] for row in given.facts)
    unasked = [name for name in given.domains if name not in asked]
    empty = [name for name in unasked if not facts[name]]
    silent = [name for name in unasked if facts[name]]
    sentences = []
    if empty:
        sentences.append(
            f"There are no facts of {join_names(empty)} in this run's knowledge, so nothing was asked of it."
        )
    if silent:
        sentences.append(f"There are facts of {join_names(silent)}, but no question in this run is about them.")
    return sentences
