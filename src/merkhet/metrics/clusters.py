"""Intervals and paired differences that treat a cluster of questions as one observation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from merkhet.core.records import Question, question_column
from merkhet.metrics._closed_form import robust_difference, robust_interval
from merkhet.metrics.bootstrap import Interval, PairedDifference, clustered_interval, paired_difference
from merkhet.metrics.paired_tests import PairedDetails, paired_details
from merkhet.metrics.ranks import FloatArray

MAX_BOOTSTRAP_FACTS = 500
"""Maximum number of facts for bootstrap intervals if prompts are clusters too; more facts use the closed form."""
IntArray = NDArray[np.int64]


@dataclass(frozen=True)
class Clusters:
    """Cluster numbers of questions, by fact and optionally by prompt.

    A prompt with several right answers may become several questions, one per answer. The model responds to them alike,
    so these questions are not independent, although their facts differ.
    """

    facts: IntArray
    prompts: IntArray | None = None

    def take(self, rows: NDArray[Any]) -> Clusters:
        """Select the cluster numbers of the questions ``rows``."""
        return Clusters(self.facts[rows], None if self.prompts is None else self.prompts[rows])

    @cached_property
    def few(self) -> bool:
        """Whether to resample facts instead of using the closed form.

        True if prompts are not clusters, or if there are few facts and no prompt is repeated.
        """
        if self.prompts is None:
            return True
        distinct_prompts = not len(self.prompts) or int(np.bincount(self.prompts).max()) == 1
        return distinct_prompts and int(np.count_nonzero(np.bincount(self.facts))) <= MAX_BOOTSTRAP_FACTS

    def interval(self, values: FloatArray, seed: int) -> Interval:
        """Estimate the mean and its 95% interval, by bootstrap over facts or in closed form for facts and prompts."""
        if self.few or self.prompts is None:
            return clustered_interval(values, self.facts, seed=seed)
        return robust_interval(values, self.facts, self.prompts)

    def difference(
        self, first: FloatArray, second: FloatArray, seed: int, weights: FloatArray | None = None
    ) -> PairedDifference:
        """Estimate the paired difference of two models, by bootstrap or in closed form like :meth:`interval`."""
        if not len(first):
            return PairedDifference(*[float("nan")] * 4)
        if self.few or self.prompts is None:
            return paired_difference(first, second, self.facts, seed=seed, weights=weights)
        return robust_difference(first, second, self.facts, self.prompts)

    def details(self, first: FloatArray, second: FloatArray, weights: FloatArray | None = None) -> PairedDetails:
        """Compute further paired statistics of two models, such as McNemar's test and the effect size."""
        if self.few or self.prompts is None:
            return paired_details(first, second, self.facts, weights=weights)
        return paired_details(first, second, self.facts, self.prompts)


def question_clusters(
    ids: Sequence[str], clusters: Mapping[str, str], prompts_of: Mapping[str, Question] | None = None
) -> Clusters:
    """Return the cluster numbers of the questions ``ids``; with ``prompts_of``, prompts are clusters too."""
    facts = sorted_codes([clusters[name] for name in ids])
    return Clusters(facts, None if prompts_of is None else sorted_codes(question_column(prompts_of, "prompt", ids)))


def sorted_codes(names: Sequence[str]) -> IntArray:
    """Return the index of each name in the sorted list of distinct names."""
    numbers = {name: number for number, name in enumerate(sorted(set(names)))}
    return np.array([numbers[name] for name in names], dtype=np.int64)
