"""Unweighted means over tasks and models, with intervals that resample the facts behind all of them together."""

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
"""Values and the facts that they stand and fall with."""
RESAMPLES = 2000


def resampled_means(groups: Mapping[Key, Group], *, seed: int, resamples: int = RESAMPLES) -> dict[Key, FloatArray]:
    """Of each group (its values and their facts) the mean, followed by its means in ``resamples`` resamples.

    A fact is drawn as often for one group as for any other, so whatever is computed of several groups, entry by entry,
    is paired: a difference, a mean over models. Keys begin with a task or rule; facts are drawn among those of the
    same tasks. A group that a resample misses has NaN there, and one of a single fact has NaN in all resamples.
    """
    facts = np.unique(np.concatenate([clusters for _, clusters in groups.values()])) if groups else np.empty(0)
    places = {key: np.searchsorted(facts, clusters) for key, (_, clusters) in groups.items()}
    sums = {key: np.bincount(places[key], values, len(facts)) for key, (values, _) in groups.items()}
    counts = {key: np.bincount(places[key], minlength=len(facts)).astype(np.float64) for key in groups}
    over = {key: np.zeros(resamples + 1) for key in groups}
    under = {key: np.zeros(resamples + 1) for key in groups}
    for tasks, members in _strata(places, len(facts)).items():
        inside = [key for key in groups if counts[key][members].any()]
        stacked: FloatArray = np.stack([part[key][members] for part in (sums, counts) for key in inside], axis=1)
        drawn = resampled_sums(stacked, seed=derived_seed(seed, "averages", *tasks), resamples=resamples)
        totals = np.concatenate([stacked.sum(axis=0)[None, :], drawn])
        for place, key in enumerate(inside):
            over[key] += totals[:, place]
            under[key] += totals[:, len(inside) + place]
    with np.errstate(invalid="ignore", divide="ignore"):
        means = {key: over[key] / under[key] for key in groups}
    for key in groups:
        if np.count_nonzero(counts[key]) < 2:
            means[key][1:] = np.nan
    return means


def average_draws(draws: Iterable[FloatArray]) -> FloatArray:
    """The unweighted mean of what :func:`resampled_means` gives, entry by entry."""
    mean: FloatArray = np.mean(list(draws), axis=0)
    return mean


def estimate_from_draws(draws: FloatArray, n: int | None = None) -> Estimate:
    """The first entry as the value, with a 95% percentile interval of the others; without one where there are none."""
    value, rest = float(draws[0]), draws[1:][~np.isnan(draws[1:])]
    if np.isnan(value) or not len(rest):
        return Estimate(None if np.isnan(value) else value, n=n)
    low, high = np.quantile(rest, (0.025, 0.975))
    return Estimate(value, float(low), float(high), n)


def _strata(places: Mapping[Key, NDArray[np.int64]], size: int) -> dict[tuple[str, ...], NDArray[np.int64]]:
    """The facts by the tasks that they occur in."""
    tasks = list(dict.fromkeys(key[0] for key in places))
    there = np.zeros((size, len(tasks)), dtype=bool)
    for key, own in places.items():
        there[own, tasks.index(key[0])] = True
    found: dict[tuple[str, ...], list[int]] = defaultdict(list)
    for fact, row in enumerate(there.tolist()):
        found[tuple(sorted(task for task, inside in zip(tasks, row, strict=True) if inside))].append(fact)
    return {names: np.array(members) for names, members in found.items()}


def pool_groups(parts: Sequence[Group]) -> Group:
    """Several groups as one."""
    return np.concatenate([values for values, _ in parts]), np.concatenate([clusters for _, clusters in parts])
