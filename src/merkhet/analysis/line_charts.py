"""Line charts of scores, with tables of the same scores."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from merkhet.analysis.types import AnalysisInput, Column, Estimate, Figure, Line, Table, TableRow


@dataclass(frozen=True)
class Series:
    """A line of a chart, which is also a column of the chart's table."""

    label: str
    model: str
    scores: Mapping[int | str, Estimate]
    """Score at each position of the x axis."""


def chart_series(
    caption: str,
    series: Sequence[Series],
    columns: Sequence[Column],
    rows: Mapping[int | str, TableRow],
    *,
    x: str,
    y: str,
    share: bool = True,
) -> tuple[Figure, Table]:
    """Make a line chart and a collapsed table of the same scores.

    Args:
        columns: First columns of the table.
        rows: Positions of the x axis, each with the first cells of its table row.
        x: Title of the x axis.
        y: Title of the y axis.
        share: Whether the scores are shares.
    """
    points = tuple(
        {"x": position, "line": line.label, "model": line.model, **vars(line.scores[position])}
        for position in rows
        for line in series
        if position in line.scores
    )
    score_columns = (Column(line.label, "share" if share else "number") for line in series)
    cells = tuple((*head, *(line.scores.get(position) for line in series)) for position, head in rows.items())
    figure = Figure("lines", caption, points, x, percent=share, y=y)
    return figure, Table(f"{caption}.", (*columns, *score_columns), cells, aside=True)


def chart_buckets(
    inputs: AnalysisInput,
    task: str,
    ids: Mapping[Line, Sequence[str]],
    labels: Mapping[Line, str],
    buckets: Mapping[str, int],
    names: Sequence[str],
    sizes: Counter[int],
    *,
    group: str,
    x: str,
    caption_end: str,
    seed_parts: tuple[str, ...],
    seed_names: Sequence[str | int],
) -> tuple[Figure, Table]:
    """Chart the scores of each model, probe and method on each bucket of a task's questions.

    Args:
        ids: Sorted question ids of each model, probe and method.
        buckets: Bucket of each question, as an index into ``names``.
        sizes: Number of questions in each bucket.
        group: Name of the questions, at the beginning of the caption.
        seed_names: Last part of each bucket's seed.
    """
    series = []
    for line, line_ids in ids.items():
        metric = inputs.metric(task, line)
        members: dict[int, list[str]] = defaultdict(list)
        for question_id in line_ids:
            members[buckets[question_id]].append(question_id)
        scores: dict[int | str, Estimate] = {
            names[bucket]: inputs.score(line, bucket_ids, metric, *seed_parts, seed_names[bucket])
            for bucket, bucket_ids in members.items()
        }
        series.append(Series(labels[line], line.model, scores))
    metrics = inputs.metric_labels(task, list(ids))
    return chart_series(
        f"{group}: {metrics} by {caption_end}",
        series,
        (Column(x.capitalize()), Column("questions", "count")),
        {names[bucket]: (names[bucket], sizes[bucket]) for bucket in sorted(sizes)},
        x=x,
        y=metrics,
        share=all(inputs.metric(task, line).share for line in ids),
    )
