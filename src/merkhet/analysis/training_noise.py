"""What several trainings of the same model with other seeds say together: the mean, how far they lie apart, and which
differences between conditions outlive the luck of one training."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np

from merkhet.analysis.comparison import Comparison, correct_comparisons
from merkhet.analysis.memory_types import LABELS, are_comparable, format_paired_difference
from merkhet.analysis.types import Analysis, Column, Estimate, Figure, Table, TableRow, join_names, percent, quote_name
from merkhet.metrics.t_distribution import student_p_value, student_quantile

_EXPLANATION = (
    "Every model was trained several times, each time with another seed (the order of statements, and where a model "
    "begins from random weights, these); the other sections are about the first training. Intervals are Student's over "
    "the trainings and say what another training may give on the same statements. Differences are between trainings of "
    "the same seed; their p-values are those of the paired t test, Holm-corrected over the table. With few trainings "
    "only what is large or steady can be told."
)
_LEVEL = 0.95


@dataclass(frozen=True)
class TrainingScores:
    """The scores of one model under one condition on one task, by metric, one for each training in order."""

    model: str
    base: str
    condition: Mapping[str, Any]
    task: str
    scores: Mapping[str, tuple[float, ...]]


def trainings(found: Sequence[TrainingScores]) -> Analysis | None:
    """Means over trainings with their spread, and conditions compared; None where nothing was trained twice."""
    several = [one for one in found if any(len(values) > 1 for values in one.scores.values())]
    if not several:
        return None
    metrics = list(dict.fromkeys(metric for one in several for metric in one.scores))
    compared = correct_comparisons(list(_differences(several, metrics)))
    spread = tuple(_row(one, metric) for metric in metrics for one in several)
    columns: tuple[Column, ...] = (
        *(Column("Model"), Column("asked"), Column("Score"), Column("trainings", "count"), Column("mean", "share")),
        *(Column("standard deviation", "share"), Column("least", "share"), Column("most", "share")),
    )
    tables = [Table("Scores over trainings.", columns, spread)]
    if compared:
        columns = (
            *(Column("Model"), Column("against"), Column("asked"), Column("Score")),
            *(Column("difference", "points"), Column("p", "p"), Column("trainings", "count")),
        )
        rows = tuple(
            (one.model, one.other, one.task, LABELS.get(one.metric, one.metric), _apart(one), one.p, one.n)
            for one in compared
        )
        tables.append(Table("Differences between trainings of the same seed.", columns, rows))
    first = metrics[0]
    bars = tuple(
        {"panel": one.task, "x": one.model.removeprefix(f"{one.base}, "), "bar": one.base, **_drawn(one, first)}
        for one in several
    )
    caption = f"{LABELS.get(first, first)} over trainings: the mean, and what another training may give."
    said = [_told(one, first) for one in several]
    said += [_clear(one) for one in compared if one.metric == first and one.p < 0.05]
    figure = Figure("bars", caption, bars, legend="Model")
    return Analysis("trainings", "Several trainings", _EXPLANATION, tuple(tables), (figure,), tuple(said))


def mean_over_trainings(values: Sequence[float]) -> Estimate:
    r"""The mean over trainings with Student's interval, which is not there for one training or where all are equal.

    .. math:: \bar v \pm t_{k-1} \, s / \sqrt{k}
    """
    mean, (low, high) = float(np.mean(values)), _reach(values)
    if low is None or high is None:
        return Estimate(mean, n=len(values))
    return Estimate(mean, max(0.0, low), min(1.0, high), len(values))


def _reach(values: Sequence[float]) -> tuple[float, float] | tuple[None, None]:
    count = len(values)
    deviation = float(np.std(values, ddof=1)) if count > 1 else 0.0
    if deviation <= 1e-12:
        return None, None
    reach = student_quantile(0.5 + _LEVEL / 2.0, count - 1) * deviation / math.sqrt(count)
    return float(np.mean(values)) - reach, float(np.mean(values)) + reach


def _row(one: TrainingScores, metric: str) -> TableRow:
    values = one.scores[metric]
    deviation = float(np.std(values, ddof=1)) if len(values) > 1 else None
    label = LABELS.get(metric, metric)
    return (one.model, one.task, label, len(values), mean_over_trainings(values), deviation, min(values), max(values))


def _drawn(one: TrainingScores, metric: str) -> dict[str, Any]:
    return vars(mean_over_trainings(one.scores[metric]))


def _differences(several: Sequence[TrainingScores], metrics: Sequence[str]) -> Iterator[Comparison]:
    """Every two that differ in one thing only, the better one first, by what lies between trainings of one seed."""
    for metric in metrics:
        for one, other in combinations(several, 2):
            if one.task != other.task or not are_comparable(one.base, one.condition, other.base, other.condition):
                continue
            ours, theirs = (np.array(each.scores[metric]) for each in (one, other))
            apart = ours - theirs if len(ours) == len(theirs) else np.zeros(0)
            low, high = _reach(apart.tolist()) if len(apart) else (None, None)
            if low is None or high is None:
                continue
            mean, count = float(apart.mean()), len(apart)
            p = student_p_value(mean / (float(apart.std(ddof=1)) / math.sqrt(count)), count - 1)
            found = Comparison(one.task, metric, one.model, other.model, mean, low, high, p, count)
            yield (
                found
                if mean >= 0
                else replace(found, model=other.model, other=one.model, difference=-mean, low=-high, high=-low)
            )


def _apart(one: Comparison) -> Estimate:
    return Estimate(one.difference, one.low, one.high, one.n)


def _told(one: TrainingScores, metric: str) -> str:
    values, mean = one.scores[metric], mean_over_trainings(one.scores[metric])
    ends = f" [{100 * mean.low:.1f}, {100 * mean.high:.1f}]" if mean.low is not None and mean.high is not None else ""
    shown = join_names([percent(value) for value in values])
    return (
        f"{quote_name(one.model)} was trained {len(values)} times: {LABELS.get(metric, metric)} on {one.task} is "
        f"{shown}, "
        f"on average {percent(mean.value or 0.0)}{ends}."
    )


def _clear(one: Comparison) -> str:
    return (
        f"Over {one.n} trainings, {quote_name(one.model)} is above {quote_name(one.other)} on {one.task}: "
        f"{format_paired_difference(one)}."
    )
