"""Means and spread of scores over trainings with different seeds, and differences between conditions."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np

from merkhet.analysis.comparison import Comparison, Condition, are_comparable, correct_comparisons
from merkhet.analysis.memorized_run import LABELS, MemorizedRun, difference_cells, format_paired_difference, load_metric
from merkhet.analysis.types import Analysis, AnalysisInput, Column, Estimate, Figure, Table, TableRow
from merkhet.core.text import join_names, percent, quote_name
from merkhet.metrics.answer_table import AnswerTable
from merkhet.metrics.t_distribution import student_p_value, student_quantile

_EXPLANATION = (
    "Every model was trained several times, each time with another seed, which sets the order of statements and any "
    "random initial weights. The other sections are about the first training. Intervals are Student's over the "
    "trainings: they estimate the mean score of such trainings on the same statements. Differences are between "
    "trainings of the same seed; their p-values are those of the paired t test, Holm-corrected over the table. With "
    "few trainings, only large or very stable differences are significant."
)
_LEVEL = 0.95


@dataclass(frozen=True)
class TrainingScores:
    """Scores of one model under one condition on one task, over several trainings."""

    model: str
    base: str
    condition: Mapping[str, Any]
    task: str
    scores: Mapping[str, tuple[float, ...]]
    """Scores by metric, one for each training in order."""


def training_noise(inputs: AnalysisInput) -> Analysis | None:
    """Analyse the scores of models that were trained several times; None if there are no such models."""
    run = MemorizedRun(inputs)
    tables = [inputs.answer_table]
    tables += [AnswerTable(answers, inputs.questions_by_id) for answers in inputs.repeated_answers]
    scores: dict[tuple[str, str], dict[str, list[float]]] = {}
    for table in tables if len(tables) > 1 else ():
        for key in table.cell_rows:
            if key[0] not in inputs.baselines:
                by_metric = scores.setdefault(key[:2], {})
                for metric in run.metrics:
                    value = float(table.cell(*key).values(load_metric(metric)).mean())
                    by_metric.setdefault(metric, []).append(value)
    return trainings(
        [
            TrainingScores(
                model,
                inputs.conditions[model].base,
                inputs.conditions[model].settings,
                task,
                {metric: tuple(values) for metric, values in by_metric.items()},
            )
            for (model, task), by_metric in scores.items()
        ]
    )


def trainings(trainings_scores: Sequence[TrainingScores]) -> Analysis | None:
    """Tabulate means and spread over trainings, and compare conditions; None if no model was trained twice."""
    repeated = [entry for entry in trainings_scores if any(len(values) > 1 for values in entry.scores.values())]
    if not repeated:
        return None
    metrics = list(dict.fromkeys(metric for entry in repeated for metric in entry.scores))
    comparisons = correct_comparisons(list(_compare_conditions(repeated, metrics)))
    spread = tuple(_row(entry, metric) for metric in metrics for entry in repeated)
    columns: tuple[Column, ...] = (
        *(Column("Model"), Column("asked"), Column("Score"), Column("trainings", "count"), Column("mean", "share")),
        *(Column("standard deviation", "share"), Column("least", "share"), Column("most", "share")),
    )
    tables = [Table("Scores over trainings.", columns, spread, unit="trainings")]
    if comparisons:
        columns = (
            *(Column("Model"), Column("against"), Column("asked"), Column("Score")),
            *(Column("difference", "points"), Column("p", "p"), Column("trainings", "count")),
        )
        rows = tuple((entry.model, entry.other, entry.task, *difference_cells(entry)) for entry in comparisons)
        tables.append(Table("Differences between trainings of the same seed.", columns, rows, unit="trainings"))
    first = metrics[0]
    bars = tuple(
        {
            "panel": entry.task,
            "x": entry.model.removeprefix(f"{entry.base}, "),
            "bar": entry.base,
            **vars(mean_over_trainings(entry.scores[first])),
        }
        for entry in repeated
    )
    caption = f"{LABELS.get(first, first)} over trainings: the mean with its 95% interval."
    sentences = [_describe_trainings(entry, first) for entry in repeated]
    sentences += [_describe_difference(entry) for entry in comparisons if entry.metric == first and entry.p < 0.05]
    figure = Figure("bars", caption, bars, legend="Model", unit="trainings")
    return Analysis("trainings", "Several trainings", _EXPLANATION, tuple(tables), (figure,), tuple(sentences))


def mean_over_trainings(values: Sequence[float]) -> Estimate:
    r"""Compute the mean over k trainings with Student's interval.

    .. math:: \bar v \pm t_{k-1} \, s / \sqrt{k}

    A single training, or equal scores, have no interval.
    """
    mean, (low, high) = float(np.mean(values)), _student_interval(values)
    if low is None or high is None:
        return Estimate(mean, n=len(values))
    return Estimate(mean, max(0.0, low), min(1.0, high), len(values))


def _student_interval(values: Sequence[float]) -> tuple[float, float] | tuple[None, None]:
    count = len(values)
    deviation = float(np.std(values, ddof=1)) if count > 1 else 0.0
    if deviation <= 1e-12:
        return None, None
    half_width = student_quantile(0.5 + _LEVEL / 2.0, count - 1) * deviation / math.sqrt(count)
    return float(np.mean(values)) - half_width, float(np.mean(values)) + half_width


def _row(training_scores: TrainingScores, metric: str) -> TableRow:
    values = training_scores.scores[metric]
    deviation = float(np.std(values, ddof=1)) if len(values) > 1 else None
    head = (training_scores.model, training_scores.task, LABELS.get(metric, metric), len(values))
    return (*head, mean_over_trainings(values), deviation, min(values), max(values))


def _compare_conditions(repeated: Sequence[TrainingScores], metrics: Sequence[str]) -> Iterator[Comparison]:
    """Compare every two models that differ in one respect, paired by seed; the better model comes first."""
    for metric in metrics:
        for first, second in combinations(repeated, 2):
            if first.task != second.task or not are_comparable(_condition(first), _condition(second)):
                continue
            first_values, second_values = (np.array(entry.scores[metric]) for entry in (first, second))
            differences = first_values - second_values if len(first_values) == len(second_values) else np.zeros(0)
            low, high = _student_interval(differences.tolist()) if len(differences) else (None, None)
            if low is None or high is None:
                continue
            mean, count = float(differences.mean()), len(differences)
            p = student_p_value(mean / (float(differences.std(ddof=1)) / math.sqrt(count)), count - 1)
            comparison = Comparison(first.task, metric, first.model, second.model, mean, low, high, p, count)
            yield (
                comparison
                if mean >= 0
                else replace(comparison, model=second.model, other=first.model, difference=-mean, low=-high, high=-low)
            )


def _condition(training_scores: TrainingScores) -> Condition:
    return Condition(training_scores.base, "", training_scores.condition)


def _describe_trainings(training_scores: TrainingScores, metric: str) -> str:
    values, mean = training_scores.scores[metric], mean_over_trainings(training_scores.scores[metric])
    ends = f" [{100 * mean.low:.1f}, {100 * mean.high:.1f}]" if mean.low is not None and mean.high is not None else ""
    formatted = join_names([percent(value) for value in values])
    return (
        f"{quote_name(training_scores.model)} was trained {len(values)} times: {LABELS.get(metric, metric)} on "
        f"{training_scores.task} is {formatted}, on average {percent(mean.value or 0.0)}{ends}."
    )


def _describe_difference(comparison: Comparison) -> str:
    return (
        f"Over {comparison.n} trainings, {quote_name(comparison.model)} is above {quote_name(comparison.other)} on "
        f"{comparison.task}: {format_paired_difference(comparison)}."
    )
