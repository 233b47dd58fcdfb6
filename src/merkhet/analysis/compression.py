"""What is left of a model's knowledge in its smaller, distilled version."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from merkhet.analysis.comparison import Comparison, correct_comparisons
from merkhet.analysis.consistency import answered_sets, question_sets
from merkhet.analysis.types import Analysis, AnalysisInput, Column, Estimate, Line, Table, estimate, percent
from merkhet.core.errors import InputError, did_you_mean
from merkhet.core.ids import derived_seed
from merkhet.metrics.association import ratio_interval
from merkhet.metrics.bootstrap import paired_difference
from merkhet.metrics.metrics import F1

_EXPLANATION = (
    "A model against its smaller version on the questions that both answered: how far the larger one is ahead "
    "(paired, 95% bootstrap interval over facts, p of a sign-flip permutation test, Holm-corrected over this table), "
    "which share of the larger one's score the smaller one has, and, of the Q-sets that the larger one has all right, "
    "the share that the smaller one has all right too."
)
_COLUMNS = (
    Column("Model"),
    Column("smaller"),
    Column("Task"),
    Column("share kept", "share"),
    Column("Q-sets kept", "share"),
    Column("difference", "points"),
    Column("p", "p"),
    Column("score", "share"),
    Column("of the smaller", "share"),
    Column("n", "count"),
)


def compression(given: AnalysisInput) -> Analysis | None:
    """Every pair (option ``pairs``, or models told apart by ``distil``) on every task; None where there is no pair."""
    compared: list[Comparison] = []
    rest: list[tuple[str, str, float, float, Estimate, Estimate]] = []
    for model, smaller in model_pairs(given.options.get("pairs"), _models(given)):
        for large, small in _shared_ways(given, model, smaller):
            for task in given.tasks:
                found = _compare(given, large, small, task)
                if found:
                    compared.append(found[0])
                    rest.append((given.labels[large], given.labels[small], *found[1:]))
    if not compared:
        return None
    rows = []
    sentences = []
    for one, (model, smaller, score, less, share, sets) in zip(correct_comparisons(compared), rest, strict=True):
        ahead = Estimate(one.difference, one.low, one.high, one.n)
        rows.append((model, smaller, one.task, share, sets, ahead, one.p, score, less, one.n))
        if share.value is not None:
            kept = f" and {percent(sets.value)} of its all-right Q-sets" if sets.value is not None else ""
            sentences.append(f"{smaller} keeps {percent(share.value)} of {model}'s {one.task} score{kept}.")
    table = Table("Models and their smaller versions on the same questions.", _COLUMNS, tuple(rows))
    return Analysis(
        "compression", "Compression: what a smaller version keeps", _EXPLANATION, (table,), sentences=tuple(sentences)
    )


def check_pairs(value: Any, _home: Path, models: Sequence[str]) -> Any:
    """The option ``pairs`` as it is; refuses what is not pairs of models of the study."""
    model_pairs(value, models)
    return value


def model_pairs(wanted: Any, models: Sequence[str]) -> list[tuple[str, str]]:
    """Pairs of a model and its smaller version: those wanted, or those whose names differ by ``distil`` alone."""
    if wanted is None:
        bare = {name: name.rpartition("/")[2].lower() for name in models}
        return [
            (model, other)
            for model in models
            for other in models
            if bare[other].startswith("distil") and bare[other].removeprefix("distil") == bare[model]
        ]
    if not isinstance(wanted, Sequence) or isinstance(wanted, str):
        raise InputError(f"the option 'pairs' is {wanted!r}; write [[model, smaller version], …]")
    pairs = []
    for pair in wanted:
        if not isinstance(pair, Sequence) or isinstance(pair, str) or len(pair) != 2:
            raise InputError(f"the option 'pairs' holds {pair!r}; write each pair as [model, smaller version]")
        for name in pair:
            if name not in models:
                raise InputError(
                    f"the option 'pairs' names {name!r}, no model of this study; {did_you_mean(name, models)}"
                )
        pairs.append((str(pair[0]), str(pair[1])))
    return pairs


def _models(given: AnalysisInput) -> list[str]:
    return list(dict.fromkeys(line.model for line in given.usable))


def _shared_ways(given: AnalysisInput, model: str, smaller: str) -> list[tuple[Line, Line]]:
    """Lines of both models by the same probe and method; their first lines where they share none."""
    first, second = ([line for line in given.usable if line.model == name] for name in (model, smaller))
    own = {(line.probe, line.method): line for line in second}
    shared = [(line, own[line.probe, line.method]) for line in first if (line.probe, line.method) in own]
    return shared or [(first[0], second[0])]


def _compare(
    given: AnalysisInput, large: Line, small: Line, task: str
) -> tuple[Comparison, float, float, Estimate, Estimate] | None:
    shared = sorted(
        name
        for name in given.usable[large].keys() & given.usable[small].keys()
        if given.questions_by_id[name].task == task
    )
    clusters = given.cluster_ids(shared)
    if len(set(clusters.tolist())) < 2:
        return None
    own, other = (given.metric(task, line) for line in (large, small))
    metric = own if own.share and own.name == other.name else F1
    first, second = (given.values(line, shared, metric) for line in (large, small))
    seed = derived_seed(given.seed, "compression", task, metric.name)
    ahead = paired_difference(first, second, clusters, seed=seed)
    one = Comparison(
        task, metric.name, large.model, small.model, ahead.difference, ahead.low, ahead.high, ahead.p, len(shared)
    )
    share = estimate(ratio_interval(second, first, clusters, seed=seed), len(shared))
    return one, float(first.mean()), float(second.mean()), share, _sets_kept(given, large, small, task, seed)


def _sets_kept(given: AnalysisInput, large: Line, small: Line, task: str, seed: int) -> Estimate:
    there = [
        [name for name in group if name in given.usable[small]]
        for group in answered_sets(given, large, question_sets(given)[task])
    ]
    kept = [group for group in there if len(group) > 1]
    if not kept:
        return Estimate(None, n=0)
    ids = [name for group in kept for name in group]
    every = []
    for line in (large, small):
        right = dict(zip(ids, given.right_probabilities(line, ids).tolist(), strict=True))
        every.append(np.array([np.prod([right[name] for name in group]) for group in kept]))
    interval = ratio_interval(every[0] * every[1], every[0], np.arange(len(kept)), seed=seed)
    return estimate(interval, int(np.count_nonzero(every[0])))
