"""Means and spread of scores over trainings with different seeds, and differences between conditions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import combinations

import numpy as np

from merkhet.analysis.comparison import Comparison, are_comparable, correct_comparisons
from merkhet.analysis.memorized_run import LABELS, MemorizedModel, MemorizedRun, difference_cells, load_metric
from merkhet.analysis.training_comparison import is_measurable, training_findings
from merkhet.analysis.training_text import describe_trainings
from merkhet.analysis.types import Analysis, AnalysisInput, Column, Estimate, Figure, Table, TableRow
from merkhet.core.text import join_names, join_pairs, percent, quote_name
from merkhet.metrics.training_tests import student_interval

_EXPLANATION = (
    "Every model was trained several times, each time with another seed, which sets the order of statements and any "
    "random initial weights. The other sections show the scores of the first training. Intervals are Student's over "
    "the trainings: they estimate the mean score of such trainings on the same statements. Differences are between "
    "trainings of the same seed, on the statements that both models were asked; their p-values are those of the paired "
    "t test, Holm-corrected over the table. “Detectable” is the smallest true difference that one such test finds with "
    "80% power: with few trainings, only large or very stable differences are significant."
)
_MAX_PAIRS = 6


@dataclass(frozen=True)
class TrainingScores:
    """Scores of one model on one task over several trainings, on all statements that it was asked."""

    memorized: MemorizedModel
    task: str
    metric: str
    values: tuple[float, ...]
    """One score for each training in order."""


def training_noise(inputs: AnalysisInput) -> Analysis | None:
    """Tabulate means and spread over trainings, and compare conditions; None if no model was trained twice."""
    run = MemorizedRun(inputs)
    scores = _training_scores(run)
    if not scores:
        return None
    comparisons, unshared = _compare_conditions(run)
    first = run.metrics[0]
    by_metric = {metric: [entry for entry in comparisons if entry.metric == metric] for metric in run.metrics}
    tables = [_score_table(scores)]
    tables += [_difference_table(metric, rows, metric != first) for metric, rows in by_metric.items() if rows]
    shown = [entry for entry in scores if entry.metric == first]
    sentences = [_describe_trainings(entry) for entry in shown]
    findings = training_findings(map(asdict, comparisons))
    sentences += describe_trainings([finding for finding in findings if finding.metric == first])
    if unshared:
        sentences.append(f"Not compared, because they share no statement: {join_pairs(unshared, _MAX_PAIRS)}.")
    figures = (_bar_figure(shown, first),)
    title = "Several trainings"
    return Analysis("trainings", title, _EXPLANATION, tuple(tables), figures, tuple(sentences), findings)


def _training_scores(run: MemorizedRun) -> list[TrainingScores]:
    """Compute the scores of all models that were asked after several trainings."""
    entries = []
    for metric in run.metrics:
        for memorized in run.models:
            for task in run.inputs.tasks:
                values = [recalled.values(metric) for recalled in run.repeated(memorized.model, task)]
                if len(values) > 1:
                    means = tuple(float(of_training.mean()) for of_training in values)
                    entries.append(TrainingScores(memorized, task, metric, means))
    return entries


def _compare_conditions(run: MemorizedRun) -> tuple[list[Comparison], list[str]]:
    """Compare every two models that differ in one respect, by the statements that both were asked.

    Models that differ in conflict are left out if too few statements conflict.

    Returns:
        The comparisons with the better model first, corrected for each metric, and the pairs without shared statements.
    """
    comparisons: list[Comparison] = []
    unshared: list[str] = []
    conditions = run.inputs.conditions
    for first, second in combinations(run.models, 2):
        pair = (first.model, second.model)
        if not are_comparable(*(conditions[model] for model in pair)):
            continue
        with_conflict = first if first.conflict else second
        if first.conflict != second.conflict and not is_measurable(*run.count_conflicts(with_conflict)):
            continue
        compared = [
            comparison
            for metric in run.metrics
            for task in run.inputs.tasks
            if task in first.tasks & second.tasks
            for comparison in run.paired.compare(pair, task, load_metric(metric))
        ]
        comparisons += [comparison for comparison in compared if (comparison.trainings or 0) > 1]
        if not compared:
            unshared.append(join_names([quote_name(model) for model in pair]))
    by_metric = ([entry for entry in comparisons if entry.metric == metric] for metric in run.metrics)
    return [entry for entries in by_metric for entry in correct_comparisons(entries)], unshared


def _score_table(scores: Sequence[TrainingScores]) -> Table:
    columns = (
        *(Column("Model"), Column("asked"), Column("Score"), Column("trainings", "count"), Column("mean", "share")),
        *(Column("standard deviation", "share"), Column("least", "share"), Column("most", "share")),
    )
    return Table("Scores over trainings.", columns, tuple(map(_score_row, scores)), unit="trainings")


def _score_row(entry: TrainingScores) -> TableRow:
    values = entry.values
    head = (entry.memorized.model, entry.task, LABELS.get(entry.metric, entry.metric), len(values))
    return (*head, mean_over_trainings(values), float(np.std(values, ddof=1)), min(values), max(values))


def _difference_table(metric: str, comparisons: Sequence[Comparison], aside: bool) -> Table:
    columns = (
        *(Column("Model"), Column("against"), Column("asked"), Column("Score"), Column("difference", "points")),
        *(Column("p", "p"), Column("statements", "count"), Column("trainings", "count"), Column("detectable", "share")),
    )
    rows = tuple(
        (entry.model, entry.other, entry.task, *difference_cells(entry), entry.detectable) for entry in comparisons
    )
    caption = f"Differences in {LABELS.get(metric, metric)} between trainings of the same seed."
    return Table(caption, columns, rows, aside=aside, unit="trainings")


def _bar_figure(scores: Sequence[TrainingScores], metric: str) -> Figure:
    bars = tuple(
        {
            "panel": entry.task,
            "x": entry.memorized.model.removeprefix(f"{entry.memorized.base}, "),
            "bar": entry.memorized.base,
            **vars(mean_over_trainings(entry.values)),
        }
        for entry in scores
    )
    caption = f"{LABELS.get(metric, metric)} over trainings: the mean with its 95% interval."
    return Figure("bars", caption, bars, legend="Model", unit="trainings")


def mean_over_trainings(values: Sequence[float]) -> Estimate:
    r"""Compute the mean over k trainings with Student's interval.

    .. math:: \bar v \pm t_{k-1} \, s / \sqrt{k}

    A single training, or equal scores, have no interval.
    """
    mean, (low, high) = float(np.mean(values)), student_interval(values)
    if low is None or high is None:
        return Estimate(mean, n=len(values))
    return Estimate(mean, max(0.0, low), min(1.0, high), len(values))


def _describe_trainings(entry: TrainingScores) -> str:
    mean = mean_over_trainings(entry.values)
    ends = f" [{100 * mean.low:.1f}, {100 * mean.high:.1f}]" if mean.low is not None and mean.high is not None else ""
    formatted = join_names([percent(value) for value in entry.values])
    return (
        f"{quote_name(entry.memorized.model)} was trained {len(entry.values)} times: "
        f"{LABELS.get(entry.metric, entry.metric)} on {entry.task} is {formatted}, on average "
        f"{percent(mean.value or 0.0)}{ends}."
    )
