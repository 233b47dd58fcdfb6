"""Line charts of scores with their tables: one line for each model."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from merkhet.analysis.types import AnalysisInput, Column, Estimate, Figure, Line, Table, TableRow


@dataclass(frozen=True)
class Series:
    """A line of a chart, and a column of its table."""

    label: str
    model: str
    scores: Mapping[int | str, Estimate]
    """The score at each position of the x axis."""


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
    """Make a chart and a collapsed table of series.

    Args:
        columns: The first columns of the table.
        rows: The positions of the x axis, each with the first cells of its row in the table.
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
    """Score each line on each bucket of a task's questions.

    Args:
        ids: The questions of each line, sorted.
        buckets: The bucket of each question: an index into ``names``.
        sizes: The number of questions in each bucket.
        group: Begins the caption.
        seed_names: The last part of each bucket's seed.
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
