"""Metrics per question, and their chance levels.

Every metric is a pure function of :class:`Responses` that returns an array with one value per question. The score is
the mean of these values. A metric with a parameter has an ``@`` in its name, as in ``r@5``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np

from merkhet.core.errors import InputError, MerkhetError
from merkhet.metrics.ranks import BestGold, FloatArray, GoldRanks, miss_probability
from merkhet.metrics.text_overlap import bag_f1, exact_match, mean_agreement, same_words, word_f1


class MetricNotApplicableError(MerkhetError):
    """A metric cannot be computed: written answers have no ranks, and judged answers have no words."""


Prediction = str | tuple[str, ...]
"""A predicted text, or several texts of which the best one counts."""


@dataclass(frozen=True)
class Responses:
    """A model's responses and the gold answers; every sequence has one entry per question.

    Written answers have no ranks. Properties that need ranks raise MetricNotApplicableError for such answers, which
    then have no score in metrics of ranks.
    """

    top: Sequence[Sequence[Prediction]]
    """Candidates tied for the best score, or the written answer; several written answers form one tuple."""
    answers: Sequence[Sequence[str]]
    """Right answers."""
    candidates: Sequence[Sequence[str]]
    gold_ranks: Sequence[Sequence[float]]
    """Expected ranks of the right answers among the candidates."""
    gold_ties: Sequence[Sequence[int]]
    """Sizes of the tie groups of the right answers."""
    targets: Sequence[int | None] = ()
    """Index in ``gold_ranks`` of the masked answer; None if the masked answer is not ranked."""
    among: Sequence[int | None] = ()
    """Number of ranked items, if it differs from the number of candidates."""
    outcomes: Sequence[str | None] = ()
    """Outcome of a chat model's reply: answered, no answer or refused."""
    right_counts: Sequence[int | None] = ()
    """Number of right candidates, if ``gold_ranks`` has only some of them."""

    @cached_property
    def words(self) -> Sequence[Sequence[Prediction]]:
        """Top predictions as text; not available for judged answers."""
        outcomes = self.outcomes or [None] * len(self.top)
        if any(outcome == "answered" and not len(texts) for outcome, texts in zip(outcomes, self.top, strict=True)):
            raise MetricNotApplicableError("judged answers have no words")
        return self.top

    @cached_property
    def golds(self) -> GoldRanks:
        """Ranks of the right answers in flat arrays, at least one per question."""
        golds = GoldRanks.from_lists(self.gold_ranks, self.gold_ties)
        if not golds.counts.all():
            raise MetricNotApplicableError("written answers have no ranks")
        return golds

    @cached_property
    def ranks(self) -> Sequence[Sequence[float]]:
        """Expected ranks of each question's right answers, at least one per question."""
        return self.gold_ranks if self.golds.counts.all() else ()

    @cached_property
    def best(self) -> BestGold:
        """Tie group of each question's best right answer."""
        return self.golds.best()

    @cached_property
    def target(self) -> BestGold:
        """Tie group of each question's masked answer, or of its best right answer if the masked answer is unknown."""
        golds = self.golds
        if not len(self.targets):
            return self.best
        index = np.array([-1 if target is None else target for target in self.targets], dtype=np.int64)
        masked = golds.take(np.cumsum(golds.counts) - golds.counts + np.maximum(index, 0)).best()
        columns = ((masked.first, self.best.first), (masked.ties, self.best.ties), (masked.golds, self.best.golds))
        return BestGold(*(np.where(index >= 0, own, best) for own, best in columns))

    @cached_property
    def candidate_counts(self) -> FloatArray:
        """Number of candidates of each question."""
        counts = [len(candidates) for candidates in self.candidates]
        if len(self.among):
            counts = [ranked or count for ranked, count in zip(self.among, counts, strict=True)]
        return np.array(counts, dtype=np.float64)

    @cached_property
    def gold_counts(self) -> FloatArray:
        """Number of right candidates of each question."""
        counts = self.golds.counts.astype(np.float64)
        if len(self.right_counts):
            known = np.array([count or 0 for count in self.right_counts], dtype=np.float64)
            counts = np.where(known > 0, known, counts)
        return counts


MetricFunction = Callable[[Responses], FloatArray]


@dataclass(frozen=True)
class Metric:
    """A metric with its chance level."""

    name: str
    values: MetricFunction
    chance: MetricFunction | None
    """Expected value of the metric for a random order of the candidates; None if it is undefined."""
    share: bool = True
    """Whether values lie in [0, 1] and are shown in percent."""
    higher_is_better: bool = True


def recall_at(responses: Responses, k: int) -> FloatArray:
    r"""Compute R@k: whether the best right answer is among the first k candidates, in expectation over ties.

    .. math:: \mathrm{R@}k = \tfrac{1}{n} \sum_i P(\min_{g \in G_i} r_i(g) \le k)

    In [0, 1], higher is better. By chance with g right among m candidates: 1 - C(m - g, k) / C(m, k).
    """
    return responses.best.probability_within(k)


def recall_at_chance(responses: Responses, k: int) -> FloatArray:
    """Compute R@k of a random order of the candidates."""
    draws = np.minimum(float(k), responses.candidate_counts)
    return 1.0 - miss_probability(responses.candidate_counts, responses.gold_counts, draws)


def strict_accuracy(responses: Responses) -> FloatArray:
    """Compute strict accuracy: whether a right answer ranks first without a tie. In [0, 1], higher is better."""
    first = [
        any(rank == 1.0 and tie == 1 for rank, tie in zip(ranks, ties, strict=True))
        for ranks, ties in zip(responses.ranks, responses.gold_ties, strict=True)
    ]
    return np.array(first, dtype=np.float64)


def strict_accuracy_chance(responses: Responses) -> FloatArray:
    """Compute the strict accuracy of a random order, which has no ties."""
    return responses.gold_counts / responses.candidate_counts


def reciprocal_rank(responses: Responses) -> FloatArray:
    r"""Compute one over the expected rank of the best-ranked right answer.

    .. math:: \mathrm{MRR} = \tfrac{1}{n} \sum_i 1 / \min_{g \in G_i} r_i(g)

    In (0, 1], higher is better. By chance with one right among m candidates: H_m / m, with the harmonic number H_m.
    """
    return 1.0 / responses.best.rank


def reciprocal_rank_chance(responses: Responses) -> FloatArray:
    """Compute the expected reciprocal rank of the best of g right answers in a random order of m candidates."""
    known: dict[tuple[float, float], float] = {}
    values = np.empty(len(responses.candidate_counts))
    for i, pair in enumerate(zip(responses.candidate_counts, responses.gold_counts, strict=True)):
        if pair not in known:
            total, golds = pair
            ranks = np.arange(1.0, total + 1.0)
            misses = miss_probability(np.full_like(ranks, total), np.full_like(ranks, golds), ranks)
            probabilities = np.concatenate([[1.0], misses[:-1]]) - misses
            known[pair] = float(np.sum(probabilities / ranks))
        values[i] = known[pair]
    return values


def mean_reciprocal_rank_of_all(responses: Responses) -> FloatArray:
    r"""Compute one over the mean rank of all right answers, which is high only if all of them rank high.

    .. math:: \mathrm{MRR_a} = \tfrac{1}{n} \sum_i \left( \tfrac{1}{|G_i|} \sum_{g \in G_i} r_i(g) \right)^{-1}

    In (0, 1], higher is better; 2 / (g + 1) if the g right answers take the first g ranks. By chance with m candidates:
    2 / (m + 1).
    """
    return np.array([1.0 / (sum(ranks) / len(ranks)) for ranks in responses.ranks])


def mean_reciprocal_rank_of_all_chance(responses: Responses) -> FloatArray:
    """Compute one over (m + 1) / 2, the mean rank in a random order of m candidates."""
    return 2.0 / (responses.candidate_counts + 1.0)


def hit_at(responses: Responses, k: int) -> FloatArray:
    r"""Compute Hit@k: whether the masked answer is among the first k candidates, in expectation over ties.

    .. math:: \mathrm{Hit@}k = \tfrac{1}{n} \sum_i P(r_i(t_i) \le k)

    In [0, 1], higher is better. Never above R@k, which counts any right answer. By chance with m candidates:
    min(k, m) / m.
    """
    return responses.target.probability_within(k)


def hit_at_chance(responses: Responses, k: int) -> FloatArray:
    """Compute Hit@k of a random order of the candidates."""
    return np.minimum(float(k), responses.candidate_counts) / responses.candidate_counts


def rank_of_best(responses: Responses) -> FloatArray:
    r"""Compute the expected rank of the best right answer.

    .. math:: \mathrm{MR} = \tfrac{1}{n} \sum_i \min_{g \in G_i} r_i(g)

    In [1, m], lower is better. By chance with g right among m candidates: (m + 1) / (g + 1).
    """
    return responses.best.rank


def rank_of_best_chance(responses: Responses) -> FloatArray:
    """Compute the expected rank of the best of g right answers in a random order of m candidates: (m + 1) / (g + 1)."""
    return (responses.candidate_counts + 1.0) / (responses.gold_counts + 1.0)


def optimistic_rank(responses: Responses) -> FloatArray:
    """Compute the rank of the best right answer, with ties broken in its favour. In [1, m], lower is better."""
    return responses.best.first


def pessimistic_rank(responses: Responses) -> FloatArray:
    """Compute the rank of the best right answer, with ties broken against it. In [1, m], lower is better."""
    return responses.best.first + responses.best.ties - responses.best.golds


def rank_index(responses: Responses) -> FloatArray:
    r"""Compute the rank of the best right answer, adjusted for chance.

    .. math:: 1 - \tfrac{r - 1}{E[r] - 1}

    with the expected rank r and its expectation E[r] by chance. 1 is the first rank, 0 is chance, and negative values
    are worse than chance; higher is better. A question whose candidates are all right counts as 1.
    """
    expected = rank_of_best_chance(responses) - 1.0
    return np.where(expected > 0, 1.0 - (responses.best.rank - 1.0) / np.where(expected > 0, expected, 1.0), 1.0)


def zeros(responses: Responses) -> FloatArray:
    """Return 0 for each question, the chance level of metrics that are adjusted for chance."""
    return np.zeros(len(responses.gold_ranks))


def adjust_for_chance(metric: Metric) -> Metric:
    r"""Adjust a metric for chance: 1 is perfect, 0 is chance, below 0 is worse than chance.

    .. math:: \tfrac{v_i - c_i}{1 - c_i}

    with the value v and the chance level c of each question. A question whose chance level is 1 keeps its value.
    """
    if metric.chance is None or not metric.share:
        raise InputError(f"adjusted-{metric.name}: {metric.name} has no chance level to adjust by; use {metric.name}")
    chance = metric.chance

    def values(responses: Responses) -> FloatArray:
        raw, expected = metric.values(responses), chance(responses)
        room = 1.0 - expected
        return np.where(room > 1e-12, (raw - expected) / np.where(room > 1e-12, room, 1.0), raw)

    return Metric(f"adjusted-{metric.name}", values, zeros)


def f1(responses: Responses) -> FloatArray:
    """Compute the mean word F1 of the top candidates with the nearest right answer, in [0, 1]; higher is better."""
    return _agreement(word_f1, responses.words, responses.answers)


def f1_chance(responses: Responses) -> FloatArray:
    """Compute the word F1 of a random candidate."""
    return mean_agreement(bag_f1, responses.candidates, responses.answers)


def exact(responses: Responses) -> FloatArray:
    """Compute whether the top candidate equals a right answer, ignoring case, punctuation and articles."""
    return _agreement(exact_match, responses.words, responses.answers)


def exact_chance(responses: Responses) -> FloatArray:
    """Compute the probability that a random candidate matches a right answer exactly."""
    return mean_agreement(same_words, responses.candidates, responses.answers)


def outcome_share(responses: Responses, outcome: str) -> FloatArray:
    """Compute whether each reply of a chat model has this outcome, as 0 or 1."""
    if not any(responses.outcomes):
        raise MetricNotApplicableError("only replies of chat models have outcomes")
    return np.array([float(reply == outcome) for reply in responses.outcomes])


def _agreement(
    measure: Callable[[Prediction, Sequence[str]], float],
    predictions: Sequence[Sequence[Prediction]],
    golds: Sequence[Sequence[str]],
) -> FloatArray:
    known: dict[tuple[Prediction, tuple[str, ...]], float] = {}
    values = np.empty(len(predictions))
    for i, (texts, answers) in enumerate(zip(predictions, golds, strict=True)):
        key = tuple(answers)
        for text in texts:
            if (text, key) not in known:
                known[text, key] = measure(text, answers)
        values[i] = sum(known[text, key] for text in texts) / len(texts) if texts else 0.0
    return values


def _make_metric_at(name: str, values: Callable[..., FloatArray], chance: Callable[..., FloatArray], k: str) -> Metric:
    """Make the metric ``name@k``; raise InputError if ``k`` is not a positive integer."""
    if not k.isdecimal() or int(k) < 1:
        raise InputError(f"{name}@{k}: {name}@ needs a positive integer, as in {name}@5")
    return Metric(f"{name}@{int(k)}", partial(values, k=int(k)), partial(chance, k=int(k)))


make_recall = partial(_make_metric_at, "r", recall_at, recall_at_chance)
make_precision = partial(_make_metric_at, "p", recall_at, recall_at_chance)
make_accuracy = partial(_make_metric_at, "acc", recall_at, recall_at_chance)
make_hit = partial(_make_metric_at, "hit", hit_at, hit_at_chance)

ACCURACY = Metric("accuracy", partial(recall_at, k=1), partial(recall_at_chance, k=1))
STRICT_ACCURACY = Metric("strict-accuracy", strict_accuracy, strict_accuracy_chance)
MRR = Metric("mrr", reciprocal_rank, reciprocal_rank_chance)
MRR_ALL = Metric("mrr_a", mean_reciprocal_rank_of_all, mean_reciprocal_rank_of_all_chance)
MEAN_RANK = Metric("mean-rank", rank_of_best, rank_of_best_chance, share=False, higher_is_better=False)
OPTIMISTIC_RANK = Metric("optimistic-rank", optimistic_rank, None, share=False, higher_is_better=False)
PESSIMISTIC_RANK = Metric("pessimistic-rank", pessimistic_rank, None, share=False, higher_is_better=False)
RANK_INDEX = Metric("rank-index", rank_index, zeros)
NO_ANSWER = Metric("no-answer", partial(outcome_share, outcome="no answer"), None, higher_is_better=False)
REFUSED = Metric("refused", partial(outcome_share, outcome="refused"), None, higher_is_better=False)
F1 = Metric("f1", f1, f1_chance)
EXACT = Metric("exact", exact, exact_chance)


def as_metric(name: str, part: Any) -> Metric:
    """Convert a registered Metric or function of Responses to a Metric.

    The attribute ``chance`` of a function, if any, computes the chance level.
    """
    if isinstance(part, Metric):
        return part
    if callable(part):
        return Metric(name.rpartition(":")[2], part, getattr(part, "chance", None))
    raise InputError(f"the metric {name!r} is neither a Metric nor a function of Responses; name one")


def is_metric(name: str) -> bool:
    """Return whether :func:`get_metric` finds this name when no study folder is given."""
    try:
        get_metric(name)
    except InputError:
        return False
    return True


def get_metric(name: str, folder: Path | None = None) -> Metric:
    """Return a metric by name, such as ``accuracy``, ``r@5``, ``adjusted-accuracy`` or ``file.py:function``."""
    from merkhet.metrics import METRICS

    if name.startswith("adjusted-"):
        return adjust_for_chance(get_metric(name.removeprefix("adjusted-"), folder))
    family, at, parameter = name.partition("@")
    if at and f"{family}@k" in METRICS:
        made: Metric = METRICS.get(f"{family}@k")(parameter)
        return made
    return as_metric(name, METRICS.get(name, folder))
