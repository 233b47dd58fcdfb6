"""Whether longer texts are easier: scores by the length of a question's text."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

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
    join_names,
    metric_label,
    quote_name,
)
from merkhet.core import SLOT
from merkhet.core.errors import InputError, did_you_mean
from merkhet.core.ids import derived_seed
from merkhet.metrics.association import rank_correlation
from merkhet.metrics.bootstrap import Interval, clustered_interval

TASKS = ("encyclopedia",)
EDGES = (16, 32, 48, 64, 96, 128)
_KEYS = ("tasks", "edges")
_EXPLANATION = (
    "The length of a text is the number of its characters with the right answer in place. Questions are put into "
    "buckets of it, with the mean score of each bucket and its 95% bootstrap interval over facts; a bucket with few "
    "questions has a wide one. The rank correlation (Spearman's rho, 95% bootstrap interval over facts) is over "
    "questions, not over buckets. Longer texts may also differ in what they are about."
)


def lengths(given: AnalysisInput) -> Analysis | None:
    """Scores by bucket of length, a figure for each task and probe; None where no such task was asked."""
    tasks, edges = _parse_option(given.options.get("lengths"))
    size = {row["question_id"]: len(row["prompt"].replace(SLOT, row["target"], 1)) for row in given.questions}
    figures, tables, correlations, sentences = [], [], [], []
    for task in tasks:
        by_probe: dict[str, list[Line]] = defaultdict(list)
        for line in given.usable:
            if any(given.questions_by_id[name].task == task for name in given.usable[line]):
                by_probe[line.probe].append(line)
        for probe, lines in by_probe.items():
            figure, table = _buckets(given, task, probe, lines, size, edges)
            figures.append(figure)
            tables.append(table)
            found = {line: _correlation(given, task, line, size) for line in lines}
            correlations += [
                (_labels(lines)[line], task, probe, estimate(rho, len(given.counted_ids(line, task))))
                for line, rho in found.items()
            ]
            sentences += [text for text in [_sentence(given, task, probe, found)] if text is not None]
    if not figures:
        return None
    columns = (Column("Model"), Column("Task"), Column("Probe"), Column("Spearman’s rho", "correlation"))
    table = Table("Rank correlation of the score with the length of the text.", columns, tuple(correlations))
    return Analysis(
        "lengths",
        "Accuracy by text length",
        _EXPLANATION,
        (table, *tables),
        tuple(figures),
        tuple(sentences),
    )


def check_lengths(value: Any, _home: Path, _models: Sequence[str]) -> Any:
    """The option ``lengths`` as it is; refuses what is no mapping of tasks and edges."""
    _parse_option(value)
    return value


def bucket_names(edges: Sequence[int]) -> list[str]:
    """What lies below the first edge, from each edge to the next, and from the last one on."""
    inner = (f"{start}–{end - 1}" if end - 1 > start else str(start) for start, end in pairwise(edges))
    return [f"below {edges[0]}", *inner, f"{edges[-1]}+"]


def _parse_option(value: Any) -> tuple[Sequence[str], Sequence[int]]:
    if value is None:
        return TASKS, EDGES
    if not isinstance(value, Mapping):
        raise InputError(f"the option 'lengths' is {value!r}; write {{tasks: [encyclopedia], edges: [16, 32, 64]}}")
    for key in value:
        if key not in _KEYS:
            raise InputError(f"the option 'lengths' has no key {key!r}; {did_you_mean(str(key), _KEYS)}")
    tasks, edges = value.get("tasks", TASKS), value.get("edges", EDGES)
    if not isinstance(tasks, Sequence) or isinstance(tasks, str) or not all(isinstance(name, str) for name in tasks):
        raise InputError(f"the option 'lengths' has the tasks {tasks!r}; write a list of names of tasks")
    whole = isinstance(edges, Sequence) and all(type(edge) is int and edge > 0 for edge in edges)
    if not whole or not edges or any(first >= second for first, second in pairwise(edges)):
        raise InputError(f"the option 'lengths' has the edges {edges!r}; write whole numbers above 0 that grow")
    return list(dict.fromkeys(tasks)), list(edges)


def _buckets(
    given: AnalysisInput, task: str, probe: str, lines: Sequence[Line], size: Mapping[str, int], edges: Sequence[int]
) -> tuple[Figure, Table]:
    names = bucket_names(edges)
    cells: dict[tuple[int, Line], Estimate] = {}
    for line in lines:
        metric = given.metric(task, line)
        members: dict[int, list[str]] = defaultdict(list)
        for name in given.counted_ids(line, task):
            members[bisect_right(edges, size[name])].append(name)
        for place, ids in members.items():
            seed = derived_seed(given.seed, "lengths", task, names[place], metric.name)
            interval = clustered_interval(given.counted_values(line, ids, metric), given.cluster_ids(ids), seed=seed)
            cells[place, line] = estimate(interval, len(ids))
    used = sorted({place for place, _ in cells})
    metrics = " and ".join(dict.fromkeys(metric_label(given.metric(task, line)) for line in lines))
    kind = "share" if all(given.metric(task, line).share for line in lines) else "number"
    label = _labels(lines)
    rows = tuple(
        (
            names[place],
            max((cell.n or 0 for (own, _), cell in cells.items() if own == place), default=0),
            *(cells.get((place, line)) for line in lines),
        )
        for place in used
    )
    columns = (
        *(Column("Characters"), Column("questions", "count")),
        *(Column(label[line], kind) for line in lines),
    )
    caption = f"{task}, {probe}: {metrics} by length of the text"
    drawn = tuple(
        {"x": names[place], "line": label[line], "model": line.model, **vars(cells[place, line])}
        for line in lines
        for place in used
        if (place, line) in cells
    )
    figure = Figure("lines", caption, drawn, "characters", percent=kind == "share", y=metrics)
    return figure, Table(f"{caption}.", columns, rows, aside=True)


def _labels(lines: Sequence[Line]) -> dict[Line, str]:
    """What lines of one probe are called: the model, with its method where it has several."""
    several = {line.model for line in lines if sum(other.model == line.model for other in lines) > 1}
    return {line: f"{line.model} ({line.method})" if line.model in several else line.model for line in lines}


def _correlation(given: AnalysisInput, task: str, line: Line, size: Mapping[str, int]) -> Interval:
    ids = given.counted_ids(line, task)
    metric = given.metric(task, line)
    sign = 1.0 if metric.higher_is_better else -1.0
    values = sign * given.counted_values(line, ids, metric)
    found = np.array([size[name] for name in ids], dtype=np.float64)
    seed = derived_seed(given.seed, "lengths", task, metric.name)
    return rank_correlation(found, values, given.cluster_ids(ids), seed=seed)


def _sentence(given: AnalysisInput, task: str, probe: str, found: Mapping[Line, Interval]) -> str | None:
    """For which models the score grows with length, for which it falls, and for which that cannot be told."""
    label = _labels(list(found))
    grows, falls, unknown = "grows", "falls", "cannot be told to change"
    sides: dict[str, list[str]] = {grows: [], falls: [], unknown: []}
    models = [line for line in found if line.model not in given.baselines]
    for line in models:
        rho = found[line]
        number = "" if np.isnan(rho.low) else f" (rho {rho.value:.2f} [{rho.low:.2f}, {rho.high:.2f}])"
        sides[grows if rho.low > 0 else falls if rho.high < 0 else unknown].append(f"{quote_name(label[line])}{number}")
    if not models:
        return None
    parts = [f"{side} with the length of the text for {join_names(names)}" for side, names in sides.items() if names]
    return f"On {task} ({probe}), {metric_label(given.metric(task, models[0]))} {'; it '.join(parts)}."
