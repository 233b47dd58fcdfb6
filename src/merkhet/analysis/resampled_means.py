"""Unweighted means over tasks and models, with a joint bootstrap over facts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from merkhet.analysis.types import Estimate
from merkhet.core.ids import derived_seed
from merkhet.metrics.bootstrap import resampled_sums
from merkhet.metrics.ranks import FloatArray

Key: TypeAlias = tuple[str, ...]
Group: TypeAlias = tuple[FloatArray, NDArray[np.int64]]
"""Values, and the cluster id (fact) of each value."""
RESAMPLES = 2000


def resampled_means(groups: Mapping[Key, Group], *, seed: int, resamples: int = RESAMPLES) -> dict[Key, FloatArray]:
    """Compute the mean of each group, and its means in ``resamples`` bootstrap resamples.

    All groups share the drawn facts, which makes differences and means over groups paired. Facts are resampled within
    strata of facts that occur in the same tasks.

    Args:
        groups: Values and facts of each group; the first part of a key is a task or rule.

    Returns:
        An array of length ``resamples + 1`` per group: the mean, followed by the means of the resamples. NaN marks
        resamples without a fact of the group, and all resamples of a group with a single fact.
    """
    facts = np.unique(np.concatenate([clusters for _, clusters in groups.values()])) if groups else np.empty(0)
    fact_indices = {key: np.searchsorted(facts, clusters) for key, (_, clusters) in groups.items()}
    sums = {key: np.bincount(fact_indices[key], values, len(facts)) for key, (values, _) in groups.items()}
    counts = {key: np.bincount(fact_indices[key], minlength=len(facts)).astype(np.float64) for key in groups}
    numerators = {key: np.zeros(resamples + 1) for key in groups}
    denominators = {key: np.zeros(resamples + 1) for key in groups}
    for tasks, members in _strata(fact_indices, len(facts)).items():
        present = [key for key in groups if counts[key][members].any()]
        stacked: FloatArray = np.stack([part[key][members] for part in (sums, counts) for key in present], axis=1)
        drawn = resampled_sums(stacked, seed=derived_seed(seed, "averages", *tasks), resamples=resamples)
        totals = np.concatenate([stacked.sum(axis=0)[None, :], drawn])
        for column, key in enumerate(present):
            numerators[key] += totals[:, column]
            denominators[key] += totals[:, len(present) + column]
    with np.errstate(invalid="ignore", divide="ignore"):
        means = {key: numerators[key] / denominators[key] for key in groups}
    for key in groups:
        if np.count_nonzero(counts[key]) < 2:
            means[key][1:] = np.nan
    return means


def average_draws(draws: Iterable[FloatArray]) -> FloatArray:
    """Average arrays of :func:`resampled_means` elementwise."""
    mean: FloatArray = np.mean(list(draws), axis=0)
    return mean


def estimate_from_draws(draws: FloatArray, n: int | None = None) -> Estimate:
    """Make an estimate from an array of :func:`resampled_means`.

    The first entry is the value, and the other entries give a 95% percentile interval, unless all of them are NaN.
    """
    value, rest = float(draws[0]), draws[1:][~np.isnan(draws[1:])]
    if np.isnan(value) or not len(rest):
        return Estimate(None if np.isnan(value) else value, n=n)
    low, high = np.quantile(rest, (0.025, 0.975))
    return Estimate(value, float(low), float(high), n)


def _strata(fact_indices: Mapping[Key, NDArray[np.int64]], size: int) -> dict[tuple[str, ...], NDArray[np.int64]]:
    """Group facts by the tasks that they occur in."""
    tasks = list(dict.fromkeys(key[0] for key in fact_indices))
    occurs = np.zeros((size, len(tasks)), dtype=bool)
    for key, indices in fact_indices.items():
        occurs[indices, tasks.index(key[0])] = True
    facts_by_tasks: dict[tuple[str, ...], list[int]] = defaultdict(list)
    for fact, row in enumerate(occurs.tolist()):
        facts_by_tasks[tuple(sorted(task for task, inside in zip(tasks, row, strict=True) if inside))].append(fact)
    return {names: np.array(members) for names, members in facts_by_tasks.items()}


def pool_groups(groups: Sequence[Group]) -> Group:
    """Concatenate the values and facts of several groups."""
    return np.concatenate([values for values, _ in groups]), np.concatenate([clusters for _, clusters in groups])
