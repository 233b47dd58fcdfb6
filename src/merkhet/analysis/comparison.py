"""Paired comparisons of models on the same questions, with corrected p-values."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from merkhet.analysis.types import AnalysisInput, Line, Row
from merkhet.core.ids import derived_seed
from merkhet.core.records import Question
from merkhet.metrics.bootstrap import class_weights, paired_difference
from merkhet.metrics.corrections import benjamini_hochberg
from merkhet.metrics.corrections import holm as holm_corrected
from merkhet.metrics.metrics import Metric, MetricNotApplicableError
from merkhet.metrics.paired_tests import paired_details


@dataclass(frozen=True)
class Comparison:
    """A paired difference between two models. None: the number is not available."""

    task: str
    metric: str
    model: str
    other: str
    difference: float
    """Score of ``model`` minus score of ``other`` on the questions that both were asked."""
    low: float
    high: float
    p: float
    """p of a permutation test, Holm-corrected over the table."""
    n: int
    """Number of questions."""
    p_raw: float | None = None
    """The same p, uncorrected."""
    q: float | None = None
    """Benjamini-Hochberg q over the table."""
    mcnemar: float | None = None
    """Uncorrected p of McNemar's test."""
    effect: float | None = None
    """Cohen's d of the paired values."""
    odds: float | None = None
    """Odds ratio of the questions that only one of the models has right."""
    detectable: float | None = None
    """The smallest true difference that a single test finds in 80% of samples (:mod:`merkhet.metrics.paired_tests`)."""
    facts: int | None = None
    """Number of clusters among the questions."""
    group_column: str | None = None
    group: str | None = None
    """The group that is compared: a value of ``group_column``."""


def compare_models(
    answers: Sequence[Row],
    questions: Mapping[str, Question],
    clusters: Mapping[str, str],
    headline: Sequence[tuple[str, Metric]],
    *,
    seed: int,
    classes: Mapping[str, str] | None = None,
    unusable_is_wrong: bool = False,
    groups: Mapping[str, str] | None = None,
    column: str | None = None,
) -> list[Comparison]:
    """Compare every pair of models on every headline metric, paired by question and clustered by fact.

    Two models are compared by the first probe that both were asked by, each by its first method. A question with
    several answers counts once, by their mean. A question for which a metric is undefined is skipped.

    Args:
        clusters: The fact of each question.
        classes: The class of each question; with it, a difference is the mean over classes.
        unusable_is_wrong: Score unusable questions 0, in metrics that are a share and better if higher; else skip them.
        groups: The group of each question. If given, models are compared within each group, by the plain mean over its
            questions as in the scores: ``classes`` is ignored. p-values are corrected over all groups.
        column: The column that the groups come from.

    Returns:
        Comparisons with the better model first.
    """
    inputs = AnalysisInput((), questions, answers, clusters, headline, unusable_is_wrong=unusable_is_wrong)
    comparisons: list[Comparison] = []
    for task, metric, pair in _line_pairs(inputs):
        shared = _shared_ids(inputs, task, metric, pair)
        if groups is None:
            pair_seed = derived_seed(seed, task, metric.name)
            comparisons += _compare_pair(inputs, task, metric, pair, shared, pair_seed, classes or {})
            continue
        members: dict[str, list[str]] = defaultdict(list)
        for question_id in shared:
            if groups.get(question_id) is not None:
                members[groups[question_id]].append(question_id)
        for group, ids in sorted(members.items()):
            pair_seed = derived_seed(seed, task, column, group, metric.name)
            in_group = _compare_pair(inputs, task, metric, pair, ids, pair_seed, {})
            comparisons += [replace(comparison, group_column=column, group=group) for comparison in in_group]
    return correct_comparisons(comparisons)


def _line_pairs(inputs: AnalysisInput) -> Iterator[tuple[str, Metric, tuple[Line, Line]]]:
    """Pair models on each headline task by the first probe that both were asked by, each by its first method."""
    by_probe: dict[tuple[str, str], dict[str, Line]] = defaultdict(dict)
    lines = sorted(inputs.usable, key=lambda line: is_layer_method(line.method))
    for line in lines:
        for question_id in (*inputs.usable[line], *inputs.unusable[line]):
            by_probe[line.model, inputs.questions_by_id[question_id].task].setdefault(line.probe, line)
    for task, metric in inputs.headline:
        for model, other in combinations(dict.fromkeys(line.model for line in lines), 2):
            first, second = by_probe[model, task], by_probe[other, task]
            probe = next((name for name in first if name in second), None)
            if probe is not None:
                yield task, metric, (first[probe], second[probe])


def _shared_ids(inputs: AnalysisInput, task: str, metric: Metric, pair: tuple[Line, Line]) -> list[str]:
    """List the questions that count for both lines; unusable ones count only in shares that are better if higher."""
    shared = set.intersection(*(set(inputs.counted_ids(line, task)) for line in pair))
    if not (metric.share and metric.higher_is_better):
        shared = shared.intersection(*(inputs.usable[line] for line in pair))
    return sorted(shared)


def _compare_pair(
    inputs: AnalysisInput,
    task: str,
    metric: Metric,
    pair: tuple[Line, Line],
    shared: Sequence[str],
    seed: int,
    classes: Mapping[str, str],
) -> list[Comparison]:
    """Compare two models on shared questions, with uncorrected p; empty for fewer than two facts."""
    try:
        values = [inputs.values(line, shared, metric) for line in pair]
    except MetricNotApplicableError:
        return []
    known = np.isfinite(values[0]) & np.isfinite(values[1])
    shared = [question_id for question_id, is_known in zip(shared, known, strict=True) if is_known]
    _, cluster_ids = np.unique(
        np.array([inputs.clusters[question_id] for question_id in shared], dtype=np.str_), return_inverse=True
    )
    if not len(cluster_ids) or int(cluster_ids.max()) < 1:
        return []
    question_classes = np.array([classes.get(question_id, "") for question_id in shared], dtype=np.str_)
    weights = class_weights(question_classes) if len(np.unique(question_classes)) > 1 else None
    sign = 1.0 if metric.higher_is_better else -1.0
    first, second = (sign * line_values[known] for line_values in values)
    model, other = (line.model for line in pair)
    if float(np.average(first - second, weights=weights)) < 0.0:
        first, second, model, other = second, first, other, model
    paired = paired_difference(first, second, cluster_ids, seed=seed, weights=weights)
    details = paired_details(first, second, cluster_ids, weights=weights)
    return [Comparison(task, metric.name, model, other, **vars(paired), n=len(shared), p_raw=paired.p, **vars(details))]


def is_layer_method(method: str) -> bool:
    """Tell whether a method uses a single layer; a model is compared by such a method only if it has no other."""
    return "@" in method


def correct_comparisons(comparisons: Sequence[Comparison]) -> list[Comparison]:
    """Correct the p-values of one table: p by Holm, q by Benjamini and Hochberg.

    Both start from ``p_raw`` where it is set, so that tables can be joined and corrected anew.
    """
    raw_p = np.array(
        [comparison.p if comparison.p_raw is None else comparison.p_raw for comparison in comparisons], dtype=np.float64
    )
    return [
        replace(comparison, p=float(p), q=float(q), p_raw=float(uncorrected))
        for comparison, p, q, uncorrected in zip(
            comparisons, holm_corrected(raw_p), benjamini_hochberg(raw_p), raw_p, strict=True
        )
    ]
