"""Ranks that do not depend on the order of candidates: ties are ranked by expectation."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


def expected_ranks(scores: FloatArray, golds: IntArray) -> tuple[FloatArray, IntArray]:
    """Expected rank of each gold candidate and the size of its tie group.

    A candidate tied with t - 1 others, b candidates being better, has rank b + (t + 1) / 2 on average over all ways
    to break the tie; its optimistic rank is b + 1 and its pessimistic one b + t. Higher scores are better.
    """
    order = np.sort(scores)
    own = scores[golds]
    better = len(scores) - np.searchsorted(order, own, side="right")
    ties = len(scores) - np.searchsorted(order, own, side="left") - better
    return better + (ties + 1) / 2.0, ties.astype(np.int64)


def expected_ranks_by_row(ordered: FloatArray, lines: IntArray, own: FloatArray) -> tuple[FloatArray, IntArray]:
    """The same in many lists of scores, one a line and in ascending order: of gold candidates, by line and score."""
    better = ordered.shape[1] - _places(ordered, lines, own, np.less_equal)
    ties = ordered.shape[1] - _places(ordered, lines, own, np.less) - better
    return better + (ties + 1) / 2.0, ties


def _places(ordered: FloatArray, lines: IntArray, values: FloatArray, before: np.ufunc) -> IntArray:
    """How many scores of its ordered line stand before each value: all lines are halved at once."""
    low = np.zeros(len(values), dtype=np.int64)
    high = np.full(len(values), ordered.shape[1])
    for _ in range(ordered.shape[1].bit_length()):
        middle = (low + high) // 2
        beyond = (low < high) & before(ordered[lines, np.minimum(middle, ordered.shape[1] - 1)], values)
        low = np.where(beyond, middle + 1, low)
        high = np.where(beyond, high, np.maximum(low, middle))
    return low


def top_columns(scores: FloatArray, ordered: FloatArray, count: int) -> IntArray:
    """The columns of each line's best scores, so many or all, the best first; tied ones in the order of columns.

    The same scores are given in ascending order, line by line, besides.
    """
    width = scores.shape[1]
    count = min(count, width)
    least = ordered[:, width - count]
    chosen = np.flatnonzero(scores >= least[:, None])
    lines, columns = chosen // width, chosen % width
    # Of those that are tied for the last places, the first ones by their columns.
    last = scores[lines, columns] == least[lines]
    left = count - np.bincount(lines[~last], minlength=len(scores))
    tied = np.cumsum(last)
    before = np.concatenate([[0], tied])[np.searchsorted(lines, np.arange(len(scores)))]
    kept = ~last | (tied - before[lines] <= left[lines])
    columns = columns[kept].reshape(len(scores), count)
    order = np.argsort(-np.take_along_axis(scores, columns, axis=1), axis=1, kind="stable")
    return np.take_along_axis(columns, order, axis=1)


@dataclass(frozen=True)
class BestGold:
    """Where the best-ranked right answers stand: one entry a question.

    ``first`` is the first place of their tie group, ``ties`` its size, ``golds`` how many of it are right.
    """

    first: FloatArray
    ties: FloatArray
    golds: FloatArray

    @property
    def rank(self) -> FloatArray:
        """Expected rank of the best right answer: first - 1 + (ties + 1) / (golds + 1)."""
        return self.first - 1.0 + (self.ties + 1.0) / (self.golds + 1.0)

    def probability_within(self, k: int) -> FloatArray:
        """Probability that a right answer is among the first k, over all ways to break ties.

        1 - C(t - g, j) / C(t, j) with j = k - (first - 1) places left for the tie group.
        """
        places = np.clip(k - (self.first - 1.0), 0.0, self.ties)
        return 1.0 - miss_probability(self.ties, self.golds, places)


def best_gold(gold_ranks: list[list[float]], gold_ties: list[list[int]]) -> BestGold:
    """The best-ranked right answers of each question, from the expected ranks of all of them."""
    first = np.empty(len(gold_ranks))
    ties = np.empty(len(gold_ranks))
    golds = np.empty(len(gold_ranks))
    for i, (ranks, sizes) in enumerate(zip(gold_ranks, gold_ties, strict=True)):
        best = min(range(len(ranks)), key=ranks.__getitem__)
        ties[i] = sizes[best]
        first[i] = ranks[best] - (sizes[best] - 1) / 2.0
        golds[i] = sum(rank == ranks[best] for rank in ranks)
    return BestGold(first, ties, golds)


def miss_probability(total: FloatArray, golds: FloatArray, draws: FloatArray) -> FloatArray:
    """Probability that none of g golds is among d drawn without replacement from m: C(m - g, d) / C(m, d)."""
    result = np.ones(np.broadcast(total, golds, draws).shape)
    steps = int(np.max(golds, initial=0))
    for i in range(steps):
        # One gold after another misses the drawn places; the product stops where a question has no more golds.
        factor = np.clip((total - draws - i) / np.maximum(total - i, 1.0), 0.0, 1.0)
        result = np.where(i < golds, result * factor, result)
    return result
