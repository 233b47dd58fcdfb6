"""Comparison of models with their smaller, distilled versions."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from merkhet.analysis.comparison import Comparison, correct_comparisons
from merkhet.analysis.consistency import answered_sets, probability_of_all, question_sets, right_by_set
from merkhet.analysis.types import Analysis, AnalysisInput, Estimate, Line, Table, estimate, make_columns
from merkhet.core.errors import InputError, did_you_mean
from merkhet.core.ids import derived_seed
from merkhet.core.text import percent
from merkhet.metrics.association import ratio_interval
from merkhet.metrics.bootstrap import paired_difference
from merkhet.metrics.metrics import F1

_EXPLANATION = (
    "A model and its smaller version on the questions that both answered: the lead of the larger one (paired, 95% "
    "bootstrap interval over facts, p of a sign-flip permutation test, Holm-corrected over this table), which share "
    "of the larger one's score the smaller one has, and, of the Q-sets that the larger one has all right, the share "
    "that the smaller one has all right too."
)
_COLUMNS = make_columns(
    *("Model", "smaller", "Task", "share kept:share", "Q-sets kept:share", "difference:points", "p:p"),
    *("score:share", "of the smaller:share", "n:count"),
)


def compression(inputs: AnalysisInput) -> Analysis | None:
    """Compare each model with its smaller version (:func:`model_pairs`) on every task; None without such pairs."""
    comparisons: list[Comparison] = []
    details: list[tuple[str, str, float, float, Estimate, Estimate]] = []
    models = list(dict.fromkeys(line.model for line in inputs.usable))
    for model, smaller in model_pairs(inputs.options.pairs, models):
        for large, small in _shared_lines(inputs, model, smaller):
            for task in inputs.tasks:
                compared_task = _compare(inputs, large, small, task)
                if compared_task:
                    comparisons.append(compared_task[0])
                    details.append((inputs.labels[large], inputs.labels[small], *compared_task[1:]))
    if not comparisons:
        return None
    rows, sentences = [], []
    for comparison, (model, smaller, score, smaller_score, share, sets_kept) in zip(
        correct_comparisons(comparisons), details, strict=True
    ):
        ahead = Estimate(comparison.difference, comparison.low, comparison.high, comparison.n)
        rows.append(
            (model, smaller, comparison.task, share, sets_kept, ahead, comparison.p, score, smaller_score, comparison.n)
        )
        if share.value is not None:
            kept = "" if sets_kept.value is None else f" and {percent(sets_kept.value)} of its all-right Q-sets"
            sentences.append(f"{smaller} keeps {percent(share.value)} of {model}'s {comparison.task} score{kept}.")
    table = Table("Models and their smaller versions on the same questions.", _COLUMNS, tuple(rows))
    return Analysis(
        "compression", "Compression: what a smaller version keeps", _EXPLANATION, (table,), sentences=tuple(sentences)
    )


def check_pairs(value: Any, _home: Path, models: Sequence[str]) -> Any:
    """Check that the option ``pairs`` names only models of the study, and return its value."""
    for name in (name for pair in value for name in pair):
        if name not in models:
            raise InputError(
                f"options.pairs names {name!r}, which is not a model of this study; {did_you_mean(name, models)}"
            )
    return value


def model_pairs(pairs: Sequence[tuple[str, str]] | None, models: Sequence[str]) -> Sequence[tuple[str, str]]:
    """Return pairs of a model and its smaller version.

    Without the option ``pairs``, these are models whose names differ only by the prefix ``distil``.
    """
    if pairs is not None:
        return pairs
    base_names = {name: name.rpartition("/")[2].lower() for name in models}
    return [
        (model, smaller)
        for model in models
        for smaller in models
        if base_names[smaller].startswith("distil") and base_names[smaller].removeprefix("distil") == base_names[model]
    ]


def _shared_lines(inputs: AnalysisInput, model: str, smaller: str) -> list[tuple[Line, Line]]:
    """Pair two models by probe and method; if they share none, pair their first probes and methods."""
    first, second = ([line for line in inputs.usable if line.model == name] for name in (model, smaller))
    by_way = {(line.probe, line.method): line for line in second}
    shared = [(line, by_way[line.probe, line.method]) for line in first if (line.probe, line.method) in by_way]
    return shared or [(first[0], second[0])]


def _compare(
    inputs: AnalysisInput, large: Line, small: Line, task: str
) -> tuple[Comparison, float, float, Estimate, Estimate] | None:
    shared = sorted(
        question_id
        for question_id in inputs.usable[large].keys() & inputs.usable[small].keys()
        if inputs.questions_by_id[question_id].task == task
    )
    clusters = inputs.cluster_ids(shared)
    if len(set(clusters.tolist())) < 2:
        return None
    large_metric, small_metric = (inputs.metric(task, line) for line in (large, small))
    metric = large_metric if large_metric.share and large_metric.name == small_metric.name else F1
    first, second = (inputs.values(line, shared, metric) for line in (large, small))
    seed = derived_seed(inputs.seed, "compression", task, metric.name)
    lead = paired_difference(first, second, clusters, seed=seed)
    comparison = Comparison(task, metric.name, large.model, small.model, **vars(lead), n=len(shared))
    share = estimate(ratio_interval(second, first, clusters, seed=seed), len(shared))
    return comparison, float(first.mean()), float(second.mean()), share, _sets_kept(inputs, large, small, task, seed)


def _sets_kept(inputs: AnalysisInput, large: Line, small: Line, task: str, seed: int) -> Estimate:
    groups = answered_sets(inputs, small, answered_sets(inputs, large, question_sets(inputs)[task]))
    if not groups:
        return Estimate(None, n=0)
    first, second = (probability_of_all(right_by_set(inputs, line, groups)) for line in (large, small))
    interval = ratio_interval(first * second, first, np.arange(len(groups)), seed=seed)
    return estimate(interval, int(np.count_nonzero(first)))
