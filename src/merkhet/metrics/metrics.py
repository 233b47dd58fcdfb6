"""Metrics per question, and their chance levels.

Every metric is a pure function of :class:`Responses` that returns an array with one value per question. The score is
the mean of these values. A metric with a parameter has an ``@`` in its name, as in ``r@5``.

A metric of ranks is the exact expectation over all ways to break ties, and its chance level is the same expectation
with all candidates tied. A scorer that gives every candidate the same score, and one that draws its scores at random,
therefore both have the chance level as their expected score.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Literal

import numpy as np

from merkhet.core.errors import InputError, MerkhetError
from merkhet.metrics.ranks import FloatArray, GoldRanks, Rankings, TieGroups
from merkhet.metrics.text_overlap import bag_f1, exact_match, mean_agreement, same_words, word_f1
from merkhet.metrics.tie_expectations import PerRank, expected_reciprocal_mean_rank, expected_value


class MetricNotApplicableError(MerkhetError):
    """A metric cannot be computed: written answers have no ranks, and judged answers have no words."""


Prediction = str | tuple[str, ...]
"""A predicted text, or several texts of which the best one counts."""

_MANY_TEXTS = 25
"""Longer lists of tied candidates are compared through an index of their words."""


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
    def rankings(self) -> Rankings:
        """Ranks of all right answers, and the numbers of ranked and of right candidates."""
        return Rankings(self.golds, lambda: self.candidate_counts, self.gold_counts)

    @cached_property
    def target_rankings(self) -> Rankings:
        """Ranks of the masked answers alone; of all right answers where the masked answer is unknown."""
        rankings = self.rankings
        if not len(self.targets):
            return rankings
        targets = np.array([-1 if target is None else target for target in self.targets], dtype=np.int64)
        right = np.where(targets < 0, rankings.right, 1.0)
        return Rankings(rankings.golds.select(targets), rankings.count_candidates, right)

    @property
    def best(self) -> TieGroups:
        """Tie group of each question's best right answer."""
        return self.rankings.best

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
Expectation = Callable[[Rankings], FloatArray]
"""Function from rankings to each question's expected value over all ways to break ties."""


def _undeclared(responses: Responses) -> FloatArray:
    """Stand for missing values; :class:`Metric` replaces it or refuses the metric when it is made."""
    raise NotImplementedError


@dataclass(frozen=True)
class Metric:
    """A metric with its chance level.

    Declare a metric of ranks by ``per_rank`` or ``expectation``: its values are then exact expectations over all ways
    to break ties, and its chance level follows. Any other metric has ``values``, and no chance level unless it is
    given.
    """

    name: str
    values: MetricFunction = _undeclared
    """Value of each question."""
    chance: MetricFunction | None = None
    """Expected value of the metric for a random order of the candidates; None if it is undefined."""
    share: bool = True
    """Whether values lie in [0, 1] and are shown in percent."""
    higher_is_better: bool = True
    per_rank: PerRank | None = None
    """Value at each rank of the right answer that counts."""
    expectation: Expectation | None = None
    """Expected value over all ways to break ties, for a metric that depends on more than one rank."""
    rank_of: Literal["best", "target"] = "best"
    """Answer whose rank counts in ``per_rank`` and ``expectation``: the best right answer, or the masked answer."""

    def __post_init__(self) -> None:
        if self.values is not _undeclared:
            return
        expectation = self.expectation
        if self.per_rank is not None:
            expectation = partial(_expected_per_rank, per_rank=self.per_rank)
        if expectation is None:
            raise InputError(f"the metric {self.name} declares nothing; give it values, per_rank or expectation")
        is_of_target = self.rank_of == "target"
        object.__setattr__(self, "values", partial(_expected, expectation=expectation, is_of_target=is_of_target))
        if self.chance is None:
            by_chance = partial(_expected_by_chance, expectation=expectation, is_of_target=is_of_target)
            object.__setattr__(self, "chance", by_chance)


def _expected(responses: Responses, expectation: Expectation, is_of_target: bool) -> FloatArray:
    return expectation(responses.target_rankings if is_of_target else responses.rankings)


def _expected_by_chance(responses: Responses, expectation: Expectation, is_of_target: bool) -> FloatArray:
    """Return the expectation with all candidates tied; NaN if the number of candidates is unknown."""
    rankings = responses.target_rankings if is_of_target else responses.rankings
    return np.where(rankings.candidates >= rankings.right, expectation(rankings.all_tied), np.nan)


def _expected_per_rank(rankings: Rankings, per_rank: PerRank) -> FloatArray:
    return expected_value(rankings.best, per_rank)


def recall_at(rankings: Rankings, k: int) -> FloatArray:
    r"""Compute R@k: whether the best right answer is among the first k candidates.

    .. math:: \mathrm{R@}k = \tfrac{1}{n} \sum_i P(\min_{g \in G_i} r_i(g) \le k)

    In [0, 1], higher is better. By chance with g right among m candidates: 1 - C(m - g, k) / C(m, k). Hit@k is the same
    for the masked answer alone: never above R@k, and min(k, m) / m by chance.
    """
    return rankings.best.probability_within(k)


def strict_accuracy(responses: Responses) -> FloatArray:
    """Compute strict accuracy: whether a right answer ranks first without a tie. In [0, 1], higher is better.

    A tie counts as wrong and is not broken, so there is no chance level that all guessers share.
    """
    return np.where((responses.best.first == 1.0) & (responses.best.ties == 1.0), 1.0, 0.0)


def reciprocal_rank(ranks: FloatArray) -> FloatArray:
    r"""Return one over the rank of the best right answer.

    .. math:: \mathrm{MRR} = \tfrac{1}{n} \sum_i E\left[1 / \min_{g \in G_i} r_i(g)\right]

    In (0, 1], higher is better. By chance with one right among m candidates: H_m / m, with the harmonic number H_m.
    """
    return 1.0 / ranks


def mean_reciprocal_rank_of_all(rankings: Rankings) -> FloatArray:
    r"""Compute one over the mean rank of all right answers, which is high only if all of them rank high.

    .. math::
        \mathrm{MRR_a} = \tfrac{1}{n} \sum_i
        E\left[\left( \tfrac{1}{|G_i|} \sum_{g \in G_i} r_i(g) \right)^{-1}\right]

    In (0, 1], higher is better; 2 / (g + 1) if the g right answers take the first g ranks. By chance with m
    candidates: H_m / m with one right answer, and a little above 2 / (m + 1) with many. Not applicable if only some
    right answers have ranks.
    """
    if np.any(rankings.golds.counts < rankings.right):
        raise MetricNotApplicableError("only some right answers have ranks")
    return expected_reciprocal_mean_rank(rankings.golds)


def rank_of_best(rankings: Rankings) -> FloatArray:
    r"""Compute the expected rank of the best right answer.

    .. math:: \mathrm{MR} = \tfrac{1}{n} \sum_i E\left[\min_{g \in G_i} r_i(g)\right]

    In [1, m], lower is better. By chance with g right among m candidates: (m + 1) / (g + 1).
    """
    return rankings.best.rank


def optimistic_rank(responses: Responses) -> FloatArray:
    """Compute the rank of the best right answer, with ties broken in its favour. In [1, m], lower is better."""
    return responses.best.first


def pessimistic_rank(responses: Responses) -> FloatArray:
    """Compute the rank of the best right answer, with ties broken against it. In [1, m], lower is better."""
    return responses.best.first + responses.best.ties - responses.best.golds


def rank_index(rankings: Rankings) -> FloatArray:
    r"""Compute the rank of the best right answer, adjusted for chance.

    .. math:: 1 - \tfrac{r - 1}{E[r] - 1}

    with the expected rank r and its expectation E[r] by chance. 1 is the first rank, 0 is chance, and negative values
    are worse than chance; higher is better. A question whose candidates are all right counts as 1.
    """
    room = rankings.all_tied.best.rank - 1.0
    return np.where(room > 0, 1.0 - (rankings.best.rank - 1.0) / np.where(room > 0, room, 1.0), 1.0)


def adjust_for_chance(metric: Metric) -> Metric:
    r"""Adjust a metric for chance: 1 is perfect, 0 is chance, below 0 is worse than chance.

    .. math:: \tfrac{v_i - c_i}{1 - c_i}

    with the value v and the chance level c of each question. A question whose chance level is 1 keeps its value.
    """
    if metric.chance is None or not metric.share:
        raise InputError(f"adjusted-{metric.name}: {metric.name} has no chance level to adjust by; use {metric.name}")
    chance = metric.chance

    def adjust(raw: FloatArray, expected: FloatArray) -> FloatArray:
        full = 1.0 - expected <= 1e-12
        return np.where(full, raw, (raw - expected) / np.where(full, 1.0, 1.0 - expected))

    def values(responses: Responses) -> FloatArray:
        return adjust(metric.values(responses), chance(responses))

    def values_by_chance(responses: Responses) -> FloatArray:
        expected = chance(responses)
        return adjust(expected, expected)

    return Metric(f"adjusted-{metric.name}", values, values_by_chance)


def f1(responses: Responses) -> FloatArray:
    """Compute the mean word F1 of the top candidates with the nearest right answer, in [0, 1]; higher is better."""
    return _agreement(word_f1, bag_f1, responses)


def f1_chance(responses: Responses) -> FloatArray:
    """Compute the word F1 of a random candidate."""
    return _candidate_agreement(bag_f1, responses)


def exact(responses: Responses) -> FloatArray:
    """Compute whether the top candidate equals a right answer, ignoring case, punctuation and articles."""
    return _agreement(exact_match, same_words, responses)


def exact_chance(responses: Responses) -> FloatArray:
    """Compute the probability that a random candidate matches a right answer exactly."""
    return _candidate_agreement(same_words, responses)


def outcome_share(responses: Responses, outcome: str) -> FloatArray:
    """Compute whether each reply of a chat model has this outcome, as 0 or 1."""
    if not any(responses.outcomes):
        raise MetricNotApplicableError("only replies of chat models have outcomes")
    return np.array([float(reply == outcome) for reply in responses.outcomes])


def _agreement(
    measure: Callable[[Prediction, Sequence[str]], float],
    measure_bags: Callable[[list[str], list[str]], float],
    responses: Responses,
) -> FloatArray:
    """Return the mean agreement of each question's top predictions with the nearest right answer.

    Args:
        measure_bags: The measure of two bags of words, for long lists of tied candidates.
    """
    known: dict[tuple[Prediction, tuple[str, ...]], float] = {}
    values = np.zeros(len(responses.words))
    long = []
    for i, (texts, answers) in enumerate(zip(responses.words, responses.answers, strict=True)):
        if len(texts) > _MANY_TEXTS:
            long.append(i)
            continue
        key = tuple(answers)
        for text in texts:
            if (text, key) not in known:
                known[text, key] = measure(text, answers)
        values[i] = sum(known[text, key] for text in texts) / len(texts) if texts else 0.0
    if long:
        tied: list[Any] = [responses.words[i] for i in long]
        values[long] = mean_agreement(measure_bags, tied, [responses.answers[i] for i in long])
    return values


def _candidate_agreement(measure_bags: Callable[[list[str], list[str]], float], responses: Responses) -> FloatArray:
    """Return the mean agreement of each question's candidates with the nearest right answer; NaN without candidates."""
    known = [bool(texts) for texts in responses.candidates]
    return np.where(known, mean_agreement(measure_bags, responses.candidates, responses.answers), np.nan)


def _make_metric_at(name: str, rank_of: Literal["best", "target"], k: str) -> Metric:
    """Make the metric ``name@k``; raise InputError if ``k`` is not a positive integer."""
    if not k.isdecimal() or int(k) < 1:
        raise InputError(f"{name}@{k}: {name}@ needs a positive integer, as in {name}@5")
    return Metric(f"{name}@{int(k)}", expectation=partial(recall_at, k=int(k)), rank_of=rank_of)


make_recall = partial(_make_metric_at, "r", "best")
make_precision = partial(_make_metric_at, "p", "best")
make_accuracy = partial(_make_metric_at, "acc", "best")
make_hit = partial(_make_metric_at, "hit", "target")

ACCURACY = Metric("accuracy", expectation=partial(recall_at, k=1))
STRICT_ACCURACY = Metric("strict-accuracy", strict_accuracy)
MRR = Metric("mrr", per_rank=reciprocal_rank)
MRR_ALL = Metric("mrr_a", expectation=mean_reciprocal_rank_of_all)
MEAN_RANK = Metric("mean-rank", expectation=rank_of_best, share=False, higher_is_better=False)
OPTIMISTIC_RANK = Metric("optimistic-rank", optimistic_rank, share=False, higher_is_better=False)
PESSIMISTIC_RANK = Metric("pessimistic-rank", pessimistic_rank, share=False, higher_is_better=False)
RANK_INDEX = Metric("rank-index", expectation=rank_index)
NO_ANSWER = Metric("no-answer", partial(outcome_share, outcome="no answer"), higher_is_better=False)
REFUSED = Metric("refused", partial(outcome_share, outcome="refused"), higher_is_better=False)
F1 = Metric("f1", f1, f1_chance)
EXACT = Metric("exact", exact, exact_chance)


def as_metric(name: str, part: Any) -> Metric:
    """Convert a registered Metric or function of Responses to a Metric.

    A function with the attribute ``per_rank = True`` is a function of ranks, as :attr:`Metric.per_rank`. The attribute
    ``chance`` of another function, if any, computes the chance level.
    """
    if isinstance(part, Metric):
        return part
    if callable(part):
        name = name.rpartition(":")[2]
        if getattr(part, "per_rank", False):
            return Metric(name, per_rank=part)
        return Metric(name, part, getattr(part, "chance", None))
    raise InputError(f"the metric {name!r} is neither a Metric nor a function of Responses; name one")


def is_available_metric(name: str) -> bool:
    """Return whether :func:`get_metric` finds this name without importing foreign code."""
    from merkhet.metrics import METRICS, registered_name

    if not METRICS.is_available(registered_name(name)):
        return False
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
