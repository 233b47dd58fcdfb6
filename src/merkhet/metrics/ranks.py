"""Expected ranks under random tie-breaking."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
_MAX_GOLDS = 64


def expected_ranks(scores: FloatArray, golds: IntArray) -> tuple[FloatArray, IntArray]:
    """Return the expected rank of each gold candidate and the size of its tie group.

    Higher scores are better. Let b candidates be better than a candidate in a tie group of size t. Averaged over all
    ways to break the tie, the rank of the candidate is b + (t + 1) / 2; its optimistic rank is b + 1, and its
    pessimistic rank is b + t.
    """
    return expected_ranks_in(np.sort(scores), scores[golds])


def expected_ranks_in(ordered: FloatArray, gold_scores: FloatArray) -> tuple[FloatArray, IntArray]:
    """Return the expected ranks and tie group sizes of gold candidates, given all scores in ascending order."""
    better = len(ordered) - np.searchsorted(ordered, gold_scores, side="right")
    ties = len(ordered) - np.searchsorted(ordered, gold_scores, side="left") - better
    return better + (ties + 1) / 2.0, ties.astype(np.int64)


def expected_ranks_by_row(ordered: FloatArray, rows: IntArray, gold_scores: FloatArray) -> tuple[FloatArray, IntArray]:
    """Return expected ranks and tie group sizes of gold candidates in many lists of scores.

    Each row of ``ordered`` is a list of scores in ascending order. ``rows`` and ``gold_scores`` are the row and the
    score of each gold candidate.
    """
    better = ordered.shape[1] - _search_rows(ordered, rows, gold_scores, np.less_equal)
    ties = ordered.shape[1] - _search_rows(ordered, rows, gold_scores, np.less) - better
    return better + (ties + 1) / 2.0, ties


def _search_rows(ordered: FloatArray, rows: IntArray, values: FloatArray, precedes: np.ufunc) -> IntArray:
    """Count the scores that precede each value in its row of ``ordered``, by binary search over all rows at once."""
    low = np.zeros(len(values), dtype=np.int64)
    high = np.full(len(values), ordered.shape[1])
    for _ in range(ordered.shape[1].bit_length()):
        middle = (low + high) // 2
        beyond = (low < high) & precedes(ordered[rows, np.minimum(middle, ordered.shape[1] - 1)], values)
        low = np.where(beyond, middle + 1, low)
        high = np.where(beyond, high, np.maximum(low, middle))
    return low


def top_columns(scores: FloatArray, ordered: FloatArray, count: int) -> IntArray:
    """Return the column numbers of the ``count`` best scores of each row, best first.

    Ties are in the order of columns. ``ordered`` has the rows of ``scores`` sorted in ascending order.
    """
    width = scores.shape[1]
    count = min(count, width)
    threshold = ordered[:, width - count]
    chosen = np.flatnonzero(scores >= threshold[:, None])
    rows, columns = chosen // width, chosen % width
    # Of the scores tied at the threshold, take the first by column.
    tied = scores[rows, columns] == threshold[rows]
    remaining = count - np.bincount(rows[~tied], minlength=len(scores))
    tied_count = np.cumsum(tied)
    count_before_row = np.concatenate([[0], tied_count])[np.searchsorted(rows, np.arange(len(scores)))]
    selected = ~tied | (tied_count - count_before_row[rows] <= remaining[rows])
    columns = columns[selected].reshape(len(scores), count)
    order = np.argsort(-np.take_along_axis(scores, columns, axis=1), axis=1, kind="stable")
    return np.take_along_axis(columns, order, axis=1)


@dataclass(frozen=True)
class TieGroups:
    """Tie groups in which the best of some right answers is sought, one entry per question."""

    first: FloatArray
    """First rank of the tie group."""
    ties: FloatArray
    """Size of the tie group."""
    golds: FloatArray
    """Number of right answers in the tie group."""

    @property
    def rank(self) -> FloatArray:
        """Expected rank of the best right answer: first - 1 + (ties + 1) / (golds + 1)."""
        return self.first - 1.0 + (self.ties + 1.0) / (self.golds + 1.0)

    def probability_within(self, k: float | FloatArray) -> FloatArray:
        """Return the probability that a right answer is among the first k, over all ways to break ties.

        ``k`` is one number, or one per question. The probability is 1 - C(t - g, j) / C(t, j) for g right answers in a
        tie group of size t, of which j = k - (first - 1) are among the first k.
        """
        remaining = np.clip(k - (self.first - 1.0), 0.0, self.ties)
        return 1.0 - miss_probability(self.ties, self.golds, remaining)


@dataclass(frozen=True)
class GoldRanks:
    """Expected ranks of the right answers of many questions, in flat arrays."""

    counts: IntArray
    """Number of ranked right answers of each question."""
    ranks: FloatArray
    ties: FloatArray

    @classmethod
    def from_lists(cls, gold_ranks: Sequence[Sequence[float]], gold_ties: Sequence[Sequence[int]]) -> GoldRanks:
        """Flatten the ranks and tie group sizes, given as one list per question."""
        counts = np.array([len(ranks) for ranks in gold_ranks], dtype=np.int64)
        ranks, ties = (
            np.array([number for numbers in lists for number in numbers], dtype=np.float64)
            for lists in (gold_ranks, gold_ties)
        )
        return cls(counts, ranks, ties)

    @classmethod
    def all_tied(cls, candidates: FloatArray, golds: FloatArray) -> GoldRanks:
        """Return the ranks of right answers if all candidates of a question are tied."""
        counts = golds.astype(np.int64)
        ties = np.repeat(candidates, counts)
        return cls(counts, (ties + 1.0) / 2.0, ties)

    @cached_property
    def starts(self) -> IntArray:
        """Index in the flat arrays of each question's first right answer."""
        starts: IntArray = np.cumsum(self.counts) - self.counts
        return starts

    def select(self, indices: IntArray) -> GoldRanks:
        """Select the right answer with this index of each question; all right answers where the index is negative."""
        selected = np.repeat(indices < 0, self.counts)
        selected[(self.starts + indices)[indices >= 0]] = True
        return GoldRanks(np.where(indices < 0, self.counts, 1), self.ranks[selected], self.ties[selected])

    def best(self) -> TieGroups:
        """Return the tie group of each question's best right answers; every question must have a right answer."""
        if not len(self.counts):
            return TieGroups(np.zeros(0), np.zeros(0), np.zeros(0))
        best = np.minimum.reduceat(self.ranks, self.starts)
        is_best = self.ranks == np.repeat(best, self.counts)
        ties = np.maximum.reduceat(np.where(is_best, self.ties, 0.0), self.starts)
        return TieGroups(best - (ties - 1.0) / 2.0, ties, np.add.reduceat(is_best.astype(np.float64), self.starts))


@dataclass(frozen=True)
class Rankings:
    """Ranks of the right answers of many questions, with the sizes of the rankings."""

    golds: GoldRanks
    """Ranked right answers that count, at least one per question."""
    count_candidates: Callable[[], FloatArray]
    """Function that counts the ranked candidates of each question; called only if a metric needs the numbers."""
    right: FloatArray
    """Number of right candidates of each question that count, ranked in ``golds`` or not."""

    @cached_property
    def candidates(self) -> FloatArray:
        """Number of ranked candidates of each question."""
        return self.count_candidates()

    @cached_property
    def best(self) -> TieGroups:
        """Tie group of each question's best right answer."""
        return self.golds.best()

    @cached_property
    def all_tied(self) -> Rankings:
        """The same questions with all candidates tied: the expectation over tie-breaks is then the chance level."""
        golds = GoldRanks.all_tied(np.maximum(self.candidates, self.right), self.right)
        return Rankings(golds, self.count_candidates, self.right)


def best_gold(gold_ranks: Sequence[Sequence[float]], gold_ties: Sequence[Sequence[int]]) -> TieGroups:
    """Return the tie group of the best-ranked right answers, from the expected ranks of all right answers."""
    return GoldRanks.from_lists(gold_ranks, gold_ties).best()


def miss_probability(total: FloatArray, golds: FloatArray, draws: FloatArray) -> FloatArray:
    """Return C(m - g, d) / C(m, d): the probability that d draws without replacement from m items miss all g golds."""
    probability = np.ones(np.broadcast(total, golds, draws).shape)
    steps = int(np.max(golds, initial=0))
    if steps > max(_MAX_GOLDS, np.max(draws, initial=0)):  # Golds and draws are exchangeable; iterate over the fewer.
        return miss_probability(total, draws, golds)
    for i in range(steps):
        # The factor is the probability that one more gold is missed; a question without further golds is finished.
        factor = np.clip((total - draws - i) / np.maximum(total - i, 1.0), 0.0, 1.0)
        probability = np.where(i < golds, probability * factor, probability)
    return probability
