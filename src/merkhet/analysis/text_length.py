"""Scores by the length of a question's text."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np

from merkhet.analysis.types import (
    Analysis,
    AnalysisInput,
    Column,
    Estimate,
    Figure,
    Line,
    Table,
    estimate,
    make_columns,
    metric_label,
)
from merkhet.core import SLOT
from merkhet.core.ids import derived_seed
from merkhet.core.text import join_names, quote_name
from merkhet.metrics.association import rank_correlation
from merkhet.metrics.bootstrap import Interval

_EXPLANATION = (
    "The length of a text is its number of characters with the right answer in place. Each bucket of lengths has the "
    "mean score of its questions with a 95% bootstrap interval over facts. The rank correlation (Spearman's rho, 95% "
    "bootstrap interval over facts) is over questions, not over buckets. Longer texts may also differ in topic."
)


def lengths(inputs: AnalysisInput) -> Analysis | None:
    """Score buckets of text length, for each task and probe; None if no such task was asked."""
    tasks, edges = inputs.options.lengths.tasks, inputs.options.lengths.edges
    text_lengths = {row["question_id"]: len(row["prompt"].replace(SLOT, row["target"], 1)) for row in inputs.questions}
    figures, tables, correlation_rows, sentences = [], [], [], []
    for task in tasks:
        by_probe: dict[str, list[Line]] = defaultdict(list)
        for line in inputs.usable:
            if any(inputs.questions_by_id[question_id].task == task for question_id in inputs.usable[line]):
                by_probe[line.probe].append(line)
        for probe, lines in by_probe.items():
            figure, table = _buckets(inputs, task, probe, lines, text_lengths, edges)
            figures.append(figure)
            tables.append(table)
            correlations = {line: _correlation(inputs, task, line, text_lengths) for line in lines}
            correlation_rows += [
                (_labels(lines)[line], task, probe, estimate(rho, len(inputs.counted_ids(line, task))))
                for line, rho in correlations.items()
            ]
            sentences += [text for text in [_describe_trend(inputs, task, probe, correlations)] if text is not None]
    if not figures:
        return None
    columns = make_columns("Model", "Task", "Probe", "Spearman’s rho:correlation")
    table = Table("Rank correlation of the score with the length of the text.", columns, tuple(correlation_rows))
    title = "Accuracy by text length"
    return Analysis("lengths", title, _EXPLANATION, (table, *tables), tuple(figures), tuple(sentences))


def bucket_names(edges: Sequence[int]) -> list[str]:
    """Name the buckets: below the first edge, from each edge to the next, and from the last edge on."""
    inner = (f"{start}–{end - 1}" if end - 1 > start else str(start) for start, end in pairwise(edges))
    return [f"below {edges[0]}", *inner, f"{edges[-1]}+"]


def _buckets(
    inputs: AnalysisInput,
    task: str,
    probe: str,
    lines: Sequence[Line],
    text_lengths: Mapping[str, int],
    edges: Sequence[int],
) -> tuple[Figure, Table]:
    names = bucket_names(edges)
    cells: dict[tuple[int, Line], Estimate] = {}
    for line in lines:
        metric = inputs.metric(task, line)
        members: dict[int, list[str]] = defaultdict(list)
        for question_id in inputs.counted_ids(line, task):
            members[bisect_right(edges, text_lengths[question_id])].append(question_id)
        for bucket, ids in members.items():
            values = inputs.counted_values(line, ids, metric)
            cells[bucket, line] = inputs.mean(values, ids, "lengths", task, names[bucket], metric.name)
    used_buckets = sorted({bucket for bucket, _ in cells})
    metrics = " and ".join(dict.fromkeys(metric_label(inputs.metric(task, line)) for line in lines))
    kind = "share" if all(inputs.metric(task, line).share for line in lines) else "number"
    label = _labels(lines)
    rows = tuple(
        (
            names[bucket],
            max((cell.n or 0 for (cell_bucket, _), cell in cells.items() if cell_bucket == bucket), default=0),
            *(cells.get((bucket, line)) for line in lines),
        )
        for bucket in used_buckets
    )
    columns = (*make_columns("Characters", "questions:count"), *(Column(label[line], kind) for line in lines))
    caption = f"{task}, {probe}: {metrics} by length of the text"
    points = tuple(
        {"x": names[bucket], "line": label[line], "model": line.model, **vars(cells[bucket, line])}
        for line in lines
        for bucket in used_buckets
        if (bucket, line) in cells
    )
    figure = Figure("lines", caption, points, "characters", percent=kind == "share", y=metrics)
    return figure, Table(f"{caption}.", columns, rows, aside=True)


def _labels(lines: Sequence[Line]) -> dict[Line, str]:
    """Label the lines of one probe by model, with the method if a model has several."""
    several = {line.model for line in lines if sum(sibling.model == line.model for sibling in lines) > 1}
    return {line: f"{line.model} ({line.method})" if line.model in several else line.model for line in lines}


def _correlation(inputs: AnalysisInput, task: str, line: Line, text_lengths: Mapping[str, int]) -> Interval:
    ids = inputs.counted_ids(line, task)
    metric = inputs.metric(task, line)
    sign = 1.0 if metric.higher_is_better else -1.0
    values = sign * inputs.counted_values(line, ids, metric)
    lengths_array = np.array([text_lengths[question_id] for question_id in ids], dtype=np.float64)
    seed = derived_seed(inputs.seed, "lengths", task, metric.name)
    return rank_correlation(lengths_array, values, inputs.cluster_ids(ids), seed=seed)


def _describe_trend(inputs: AnalysisInput, task: str, probe: str, correlations: Mapping[Line, Interval]) -> str | None:
    """Word for which models the score grows with length, for which it falls, and for which neither is significant."""
    label = _labels(list(correlations))
    grows, falls, unknown = "increases", "decreases", "does not change significantly"
    sides: dict[str, list[str]] = {grows: [], falls: [], unknown: []}
    models = [line for line in correlations if line.model not in inputs.baselines]
    for line in models:
        rho = correlations[line]
        number = "" if np.isnan(rho.low) else f" (rho {rho.value:.2f} [{rho.low:.2f}, {rho.high:.2f}])"
        sides[grows if rho.low > 0 else falls if rho.high < 0 else unknown].append(f"{quote_name(label[line])}{number}")
    if not models:
        return None
    parts = [f"{side} with the length of the text for {join_names(names)}" for side, names in sides.items() if names]
    return f"On {task} ({probe}), {metric_label(inputs.metric(task, models[0]))} {'; it '.join(parts)}."
