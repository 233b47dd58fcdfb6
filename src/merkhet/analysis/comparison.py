"""Paired comparisons of models on the same questions, with corrected p-values."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np

from merkhet.core.ids import derived_seed
from merkhet.core.records import Question
from merkhet.metrics.bootstrap import class_weights, paired_difference
from merkhet.metrics.corrections import benjamini_hochberg
from merkhet.metrics.corrections import holm as holm_corrected
from merkhet.metrics.metrics import Metric, MetricNotApplicableError
from merkhet.metrics.paired_tests import paired_details
from merkhet.metrics.ranks import FloatArray
from merkhet.metrics.score_table import collect_responses, mean_by_question

Row = dict[str, Any]


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


@dataclass(frozen=True)
class _AnswerPair:
    """Two models' answers to the questions of a task."""

    task: str
    metric: Metric
    models: tuple[str, str]
    answers: tuple[Mapping[str, Sequence[Row]], Mapping[str, Sequence[Row]]]
    """The counted answers of each model, by question id."""


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
    comparisons = []
    for pair in _pairs(answers, questions, headline, unusable_is_wrong=unusable_is_wrong):
        shared = sorted(pair.answers[0].keys() & pair.answers[1].keys())
        if groups is None:
            pair_seed = derived_seed(seed, pair.task, pair.metric.name)
            comparisons += _compare_pair(pair, shared, questions, clusters, classes or {}, pair_seed)
            continue
        members: dict[str, list[str]] = defaultdict(list)
        for question_id in shared:
            if groups.get(question_id) is not None:
                members[groups[question_id]].append(question_id)
        for group, ids in sorted(members.items()):
            pair_seed = derived_seed(seed, pair.task, column, group, pair.metric.name)
            in_group = _compare_pair(pair, ids, questions, clusters, {}, pair_seed)
            comparisons += [replace(comparison, group_column=column, group=group) for comparison in in_group]
    return correct_comparisons(comparisons)


def _pairs(
    answers: Sequence[Row],
    questions: Mapping[str, Question],
    headline: Sequence[tuple[str, Metric]],
    *,
    unusable_is_wrong: bool,
) -> list[_AnswerPair]:
    methods: dict[tuple[str, str], dict[str, str]] = defaultdict(dict)
    answers_by_probe: dict[tuple[str, str, str], dict[str, list[Row]]] = defaultdict(lambda: defaultdict(list))
    for answer in sorted(answers, key=lambda answer: is_layer_method(answer["method"])):
        model, task, probe = answer["model"], questions[answer["question_id"]].task, answer["probe"]
        if methods[model, task].setdefault(probe, answer["method"]) == answer["method"]:
            answers_by_probe[model, task, probe][answer["question_id"]].append(answer)
    models = list(dict.fromkeys(model for model, _ in methods))
    pairs = []
    for task, metric in headline:
        count_unusable = unusable_is_wrong and metric.share and metric.higher_is_better
        for model, other in combinations(models, 2):
            probe = next((name for name in methods[model, task] if name in methods[other, task]), None)
            if probe is not None:
                model_answers, other_answers = (
                    _usable_answers(answers_by_probe[name, task, probe], count_unusable) for name in (model, other)
                )
                pairs.append(_AnswerPair(task, metric, (model, other), (model_answers, other_answers)))
    return pairs


def _usable_answers(answers: Mapping[str, Sequence[Row]], keep_unanswered: bool) -> dict[str, list[Row]]:
    """Select the usable answers to each question; keep questions without any only if these count as wrong."""
    usable = {
        question_id: [answer for answer in repeats if answer["unusable"] is None]
        for question_id, repeats in answers.items()
    }
    return {question_id: repeats for question_id, repeats in usable.items() if repeats or keep_unanswered}


def _compare_pair(
    pair: _AnswerPair,
    shared: Sequence[str],
    questions: Mapping[str, Question],
    clusters: Mapping[str, str],
    classes: Mapping[str, str],
    seed: int,
) -> list[Comparison]:
    """Compare two models on shared questions, with uncorrected p; empty for fewer than two facts."""
    try:
        values = [
            _values(pair.metric, [answers[question_id] for question_id in shared], questions)
            for answers in pair.answers
        ]
    except MetricNotApplicableError:
        return []
    known = np.isfinite(values[0]) & np.isfinite(values[1])
    shared = [question_id for question_id, is_known in zip(shared, known, strict=True) if is_known]
    _, cluster_ids = np.unique(
        np.array([clusters[question_id] for question_id in shared], dtype=np.str_), return_inverse=True
    )
    if not len(cluster_ids) or int(cluster_ids.max()) < 1:
        return []
    question_classes = np.array([classes.get(question_id, "") for question_id in shared], dtype=np.str_)
    weights = class_weights(question_classes) if len(np.unique(question_classes)) > 1 else None
    sign = 1.0 if pair.metric.higher_is_better else -1.0
    first, second = (sign * metric_values[known] for metric_values in values)
    ahead = float(np.average(first - second, weights=weights)) >= 0.0
    models = pair.models if ahead else pair.models[::-1]
    first, second = (first, second) if ahead else (second, first)
    paired = paired_difference(first, second, cluster_ids, seed=seed, weights=weights)
    details = paired_details(first, second, cluster_ids, weights=weights)
    fields: Row = {"model": models[0], "other": models[1], "n": len(shared), "p_raw": paired.p}
    return [Comparison(task=pair.task, metric=pair.metric.name, **fields, **asdict(paired), **asdict(details))]


def is_layer_method(method: str) -> bool:
    """Tell whether a method uses a single layer; a model is compared by such a method only if it has no other."""
    return "@" in method


def _values(metric: Metric, answers: Sequence[Sequence[Row]], questions: Mapping[str, Question]) -> FloatArray:
    """Compute the metric of each question as the mean over its answers; 0 without answers."""
    counts = np.array([len(repeats) for repeats in answers], dtype=np.int64)
    values = np.zeros(len(answers))
    if counts.any():
        answer_values = metric.values(
            collect_responses([answer for repeats in answers for answer in repeats], questions)
        )
        values[counts > 0] = mean_by_question(answer_values, (np.cumsum(counts) - counts)[counts > 0])
    return values


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
