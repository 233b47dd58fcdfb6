"""A scorer that ties all candidates, and one that guesses, have the chance level as expected score in every metric.

The oracle of an expectation is the plain mean over all orders of the candidates, or over random ways to break ties.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, pairwise, permutations, product
from math import comb
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from all_cases import check_all
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad

from merkhet.core.errors import InputError
from merkhet.core.records import Question
from merkhet.metrics import METRICS
from merkhet.metrics.metrics import Metric, MetricNotApplicableError, Responses, get_metric
from merkhet.metrics.ranks import GoldRanks, TieGroups
from merkhet.metrics.score_table import collect_responses, score_answers
from merkhet.metrics.tie_expectations import expected_reciprocal_mean_rank, expected_value
from merkhet.models.baselines import ConstantBaseline, RandomBaseline
from merkhet.models.protocol import CandidateScores, Model
from merkhet.probes.probe_support import TOP_K
from merkhet.probes.rank import rank_candidates

WITHOUT_CHANCE = {"strict-accuracy", "optimistic-rank", "pessimistic-rank", "no-answer", "refused"}
"""Metrics that break no ties, and outcomes of chat models."""
ROOT = Path(__file__).parents[2]


def all_metrics() -> dict[str, Metric]:
    """Every registered metric, families with several parameters, and the chance-adjusted version of each share."""
    names = [f"{name[:-1]}{k}" if name.endswith("@k") else name for name in METRICS for k in (1, 2, 5)]
    metrics = {name: get_metric(name) for name in names}
    adjusted = [f"adjusted-{name}" for name, metric in metrics.items() if metric.chance and metric.share]
    return metrics | {name: get_metric(name) for name in adjusted}


METRICS_WITH_CHANCE = {name: metric for name, metric in all_metrics().items() if metric.chance}


@dataclass
class Given:
    """A model whose scores are given, one list for each question."""

    scores: Sequence[Sequence[float]]
    name: str = "given"
    kind: str = "baseline"
    fingerprint: str = "0"
    methods: tuple[str, ...] = ("given",)

    def score_candidates(self, questions: Sequence[Question], methods: Sequence[str]) -> Iterator[CandidateScores]:
        for index, scores in enumerate(self.scores):
            yield CandidateScores(index, {method: np.array(scores, dtype=float) for method in methods})

    def describe(self) -> dict[str, Any]:
        return {}


def responses_of(model: Model, questions: Sequence[Question]) -> Responses:
    rows = [answer.as_row() for answer in rank_candidates(model, questions)]
    assert not any(row["unusable"] for row in rows)
    return collect_responses(rows, {question.question_id: question for question in questions})


def question(candidates: Sequence[str], answers: Sequence[str], number: int = 0) -> Question:
    return Question(f"q{number:04}", "task", "[MASK]", tuple(answers), answers[0], tuple(candidates))


@st.composite
def questions(draw: st.DrawFn, most: int = 5) -> Question:
    """A question whose candidates share words and may be repeated."""
    texts = st.sampled_from(("New York", "New Delhi", "the Hague", "Hague", "York", "Rome"))
    candidates = draw(st.lists(texts, min_size=1, max_size=most))
    return question(candidates, draw(st.lists(st.sampled_from(candidates), min_size=1, max_size=3)))


def test_only_metrics_that_break_no_ties_have_no_chance():
    assert {name for name, metric in all_metrics().items() if metric.chance is None} == WITHOUT_CHANCE
    assert {"accuracy", "mrr", "mrr_a", "hit@5", "mean-rank", "rank-index", "f1", "exact"} <= METRICS_WITH_CHANCE.keys()


@settings(deadline=None, max_examples=40)
@given(asked=questions(most=40))
def test_a_scorer_that_ties_all_candidates_scores_chance(asked):
    responses = responses_of(ConstantBaseline(), [asked])
    for name, metric in METRICS_WITH_CHANCE.items():
        assert metric.values(responses) == pytest.approx(metric.chance(responses), abs=1e-9), name


@settings(deadline=None, max_examples=20)
@given(asked=questions())
def test_a_random_order_scores_chance_on_average(asked):
    orders = list(permutations(range(len(asked.candidates))))
    repeated = [Question(f"q{i:03}", *list(vars(asked).values())[1:6]) for i in range(len(orders))]
    responses = responses_of(Given(orders), repeated)
    for name, metric in METRICS_WITH_CHANCE.items():
        assert np.mean(metric.values(responses)) == pytest.approx(metric.chance(responses)[0], abs=1e-9), name


@settings(deadline=None, max_examples=40)
@given(asked=questions(), data=st.data())
def test_a_tied_scorer_scores_the_mean_over_all_ways_to_break_its_ties(asked, data):
    size = len(asked.candidates)
    scores = data.draw(st.lists(st.sampled_from((0.0, 0.5, 1.0)), min_size=size, max_size=size))
    allowed = [
        order
        for order in permutations(range(size))
        if all(np.diff([scores[index] for index in np.argsort(order)]) >= 0)
    ]
    broken = [Question(f"q{i:03}", *list(vars(asked).values())[1:6]) for i in range(len(allowed))]
    responses, tied = responses_of(Given(allowed), broken), responses_of(Given([scores]), [asked])
    for name, metric in METRICS_WITH_CHANCE.items():
        assert metric.values(tied)[0] == pytest.approx(np.mean(metric.values(responses)), abs=1e-9), name


def test_a_chooser_that_always_names_the_same_place_scores_chance():
    """It puts one choice first and ties all others, as a chat model does that always answers A."""
    check_all(check_chooser, [2, 4, 20, 26])


def check_chooser(count: int) -> None:
    candidates = [f"c{i:02}" for i in range(count)]
    asked = [question(candidates, [candidates[gold]], gold) for gold in range(count)]
    responses = responses_of(Given([[1.0] + [0.0] * (count - 1)] * count), asked)
    for name, metric in METRICS_WITH_CHANCE.items():
        assert np.mean(metric.values(responses)) == pytest.approx(np.mean(metric.chance(responses)), abs=1e-9), name


def test_ties_beyond_the_recorded_candidates_count_in_word_metrics():
    candidates = [f"{first} {second}" for first in "abcdefghij" for second in "uvwxyz"]
    asked = [question(candidates, [candidates[37], "j"], i) for i in range(3)]
    shares = (1, 2, 3)
    scores = [[float(i % share == 0) for i in range(len(candidates))] for share in shares]
    responses = responses_of(Given(scores), asked)
    for row, share in enumerate(shares):
        tied = candidates[::share]
        assert sorted(responses.top[row]) == sorted(tied)
        for name in ("f1", "exact"):
            alone = responses_of(
                Given([[float(text == top) for text in candidates] for top in tied]), asked[:1] * len(tied)
            )
            expected = np.mean(get_metric(name).values(alone))
            assert get_metric(name).values(responses)[row] == pytest.approx(expected, abs=1e-12), (name, share)
    assert len(candidates[::2]) > TOP_K > len(candidates[::3]) > 0


def test_scores_of_783_tied_candidates_are_chance_for_each_metric():
    generator = np.random.default_rng(0)
    candidates = [f"w{number % 90} {number}" for number in range(783)]
    asked = [
        question(
            candidates, [candidates[i] for i in generator.choice(783, generator.integers(1, 30), replace=False)], i
        )
        for i in range(12)
    ]
    check_scores(ConstantBaseline(), asked, exact=True)


def test_a_random_scorer_has_chance_within_its_interval():
    generator = np.random.default_rng(0)
    candidates = [f"{first} {second}" for first in "abcd" for second in "uvwxy"]
    asked = [
        question(candidates, [candidates[i] for i in generator.choice(20, generator.integers(1, 6), replace=False)], i)
        for i in range(200)
    ]
    check_scores(RandomBaseline(), asked, exact=False)
    check_scores(ConstantBaseline(), asked, exact=True)


def check_scores(model: Model, asked: Sequence[Question], *, exact: bool) -> None:
    by_id = {question.question_id: question for question in asked}
    answers = [answer.as_row() for answer in rank_candidates(model, asked)]
    table = score_answers(
        "own", by_id, {name: {} for name in by_id}, {name: name for name in by_id}, answers,
        list(METRICS_WITH_CHANCE.values()), seed=0,
    )  # fmt: skip
    rows = table.to_pylist()
    assert [row["metric"] for row in rows] == list(METRICS_WITH_CHANCE)
    for row in rows:
        assert row["low"] <= row["chance"] + 1e-9 and row["chance"] - 1e-9 <= row["high"], row
        assert row["value"] == pytest.approx(row["chance"], abs=1e-9) or not exact, row


BLOCKS = st.lists(
    st.tuples(st.integers(0, 3), st.integers(1, 6)).flatmap(
        lambda pair: st.tuples(st.just(pair[0]), st.just(pair[1]), st.integers(1, pair[1]))
    ),
    min_size=1,
    max_size=3,
)
"""Tie groups: number of candidates before, size, right answers."""


def gold_ranks(groups: Sequence[tuple[int, int, int]]) -> GoldRanks:
    """Ranks of the right answers of one question, and of all its tie groups."""
    ranks, ties, better = [], [], 0
    for before, size, golds in groups:
        better += before
        ranks += [better + (size + 1) / 2] * golds
        ties += [size] * golds
        better += size
    return GoldRanks.from_lists([ranks], [ties])


@settings(deadline=None, max_examples=60)
@given(groups=BLOCKS)
def test_mrr_of_all_right_answers_is_the_mean_over_all_places_in_several_tie_groups(groups):
    better, places = 0, []
    for before, size, golds in groups:
        better += before
        places.append(list(combinations(range(better + 1, better + size + 1), golds)))
        better += size
    count = sum(golds for _, _, golds in groups)
    values = [Fraction(count, sum(map(sum, chosen))) for chosen in product(*places)]
    (found,) = expected_reciprocal_mean_rank(gold_ranks(groups))
    assert found == pytest.approx(float(sum(values) / len(values)), rel=1e-12)


def test_mrr_of_all_right_answers_of_one_large_tie_group():
    """Against the number of ways to reach each sum of ranks, in integers, and against adaptive quadrature."""
    cases = [(0, 783, 1), (0, 783, 3), (100, 200, 10), (0, 60, 30), (700, 83, 5), (5, 40, 39), (0, 12, 12)]
    check_all(check_large_group, cases)


def check_large_group(better: int, size: int, golds: int) -> None:
    (found,) = expected_reciprocal_mean_rank(gold_ranks([(better, size, golds)]))
    lowest = golds * better + golds * (golds + 1) // 2
    ways = numbers_of_ways(size, golds)
    exact = sum(Fraction(golds * number, lowest + more) for more, number in enumerate(ways)) / comb(size, golds)
    assert found == pytest.approx(float(exact), rel=1e-12)

    def integrand(z: float) -> float:
        binomial = np.prod([(1 - z ** (size - golds + i)) / (1 - z**i) for i in range(1, golds + 1)])
        return float(golds * z ** (lowest - 1) * binomial / comb(size, golds))

    if golds <= 10:
        ends = [0.0, *(1 - 0.5**n for n in range(1, 16)), 1 - 1e-7]
        parts = [quad(integrand, *pair, epsabs=1e-13)[0] for pair in pairwise(ends)]
        assert found == pytest.approx(sum(parts) + golds * 1e-7, abs=1e-9)


def numbers_of_ways(size: int, golds: int) -> list[int]:
    """The Gaussian binomial: how many choices of places have each sum, from the lowest sum on."""
    degree = golds * (size - golds)
    ways = [1] + [0] * degree
    for i in range(1, golds + 1):
        upper = size - golds + i
        for power in range(degree, upper - 1, -1):
            ways[power] -= ways[power - upper]
        for power in range(i, degree + 1):
            ways[power] += ways[power - i]
    return ways


def test_a_million_tied_candidates_have_the_harmonic_number():
    million = 1_000_000
    harmonic = float(np.sum(1.0 / np.arange(million, 0, -1.0)))
    tied = TieGroups(*(np.array([number]) for number in (1.0, float(million), 1.0)))
    assert expected_value(tied, lambda ranks: 1.0 / ranks)[0] == pytest.approx(harmonic / million, rel=1e-12)
    assert expected_reciprocal_mean_rank(gold_ranks([(0, million, 1)]))[0] == pytest.approx(
        harmonic / million, rel=1e-12
    )


def test_many_questions_together_have_the_values_of_each_alone():
    generator = np.random.default_rng(3)
    cases = [
        [(int(generator.integers(0, 50)), size, int(generator.integers(1, size + 1)))
         for size in generator.integers(1, 30, generator.integers(1, 4)).tolist()]
        for _ in range(300)
    ]  # fmt: skip
    alone = [gold_ranks(groups) for groups in cases]
    together = GoldRanks(
        *(np.concatenate([getattr(one, name) for one in alone]) for name in ("counts", "ranks", "ties"))
    )
    expected = [expected_reciprocal_mean_rank(one)[0] for one in alone]
    assert expected_reciprocal_mean_rank(together) == pytest.approx(expected, rel=1e-12)
    best = [expected_value(one.best(), np.reciprocal)[0] for one in alone]
    assert expected_value(together.best(), np.reciprocal) == pytest.approx(best, rel=1e-12)
    assert expected_reciprocal_mean_rank(GoldRanks.from_lists([], [])).tolist() == []
    assert expected_value(GoldRanks.from_lists([], []).best(), np.reciprocal).tolist() == []


def test_six_scorings_of_names_of_several_tokens_are_those_of_random_tie_breaks():
    """Maximum and first token give many names the same score, as for the superclasses of OntoProbe."""
    generator = np.random.default_rng(8)
    tokens = [(first, 12 + second) for first in range(12) for second in range(6)]
    names = [f"w{first} w{second}" for first, second in tokens]
    pools: dict[str, Callable[[np.ndarray], np.ndarray]] = {
        "mean": lambda scores: scores.mean(axis=1),
        "max": lambda scores: scores.max(axis=1),
        "first": lambda scores: scores[:, 0],
    }
    asked = [
        question(names, [names[i] for i in generator.choice(len(names), generator.integers(1, 5), replace=False)], i)
        for i in range(60)
    ]
    by_token = np.log(generator.dirichlet(np.ones(18), (2, 60)))
    for row, pool in product(range(2), pools):
        scores = [pools[pool](by_token[row, i][np.array(tokens)]) for i in range(60)]
        responses = responses_of(Given(scores), asked)
        sampled = sample_tie_breaks(scores, asked, 200, generator)
        for name, draws in sampled.items():
            error = draws.std(ddof=1) / np.sqrt(len(draws))
            found = float(np.mean(get_metric(name).values(responses)))
            assert abs(found - draws.mean()) <= 4.5 * error + 1e-12, (row, pool, name)
        assert (sampled["mrr"].std() > 1e-9) == (pool != "mean")


def sample_tie_breaks(
    scores: Sequence[np.ndarray], asked: Sequence[Question], draws: int, generator: np.random.Generator
) -> dict[str, np.ndarray]:
    """The mean of each metric over the questions, for each of many random ways to break ties."""
    values: dict[str, list[np.ndarray]] = {name: [] for name in ("mrr", "mrr_a", "r@1", "r@5", "mean-rank", "hit@5")}
    for numbers, one in zip(scores, asked, strict=True):
        order = np.lexsort((generator.random((draws, len(numbers))), np.tile(-numbers, (draws, 1))), axis=-1)
        ranks = np.argsort(order, axis=1) + 1.0
        golds = ranks[:, [one.candidates.index(answer) for answer in one.answers]]
        best = golds.min(axis=1)
        found = (1 / best, 1 / golds.mean(axis=1), best <= 1, best <= 5, best, golds[:, 0] <= 5)
        for column, value in zip(values.values(), found, strict=True):
            column.append(value.astype(float))
    return {name: np.mean(columns, axis=0) for name, columns in values.items()}


def test_a_function_of_ranks_is_a_metric_with_chance(tmp_path):
    (tmp_path / "own.py").write_text(
        "def odd(ranks):\n    return ranks % 2.0\n\nodd.per_rank = True\n\n\n"
        "def plain(responses):\n    return responses.best.rank % 2.0\n\n\n"
        "def short(ranks):\n    return ranks[:1]\n\nshort.per_rank = True\n"
    )
    asked = [question("abcde", "b")]
    tied, untied = responses_of(Given([[1, 1, 1, 0, 0]]), asked), responses_of(Given([[3, 2, 1, 0, -1]]), asked)
    odd = get_metric("own.py:odd", tmp_path)
    assert (odd.name, odd.values(tied)[0], odd.values(untied)[0]) == ("odd", pytest.approx(2 / 3), 0.0)
    assert odd.chance(tied)[0] == pytest.approx(3 / 5)
    assert get_metric("own.py:plain", tmp_path).chance is None
    with pytest.raises(InputError, match="one value for each of 3 ranks"):
        get_metric("own.py:short", tmp_path).values(tied)
    with pytest.raises(InputError, match="declares nothing"):
        Metric("nothing")


def test_metrics_shown_in_the_docs_are_means_over_all_orders(tmp_path):
    shown = re.compile(r"```python\n# (half_credit\.py|gain\.py)\n(.*?)```", re.DOTALL)
    for name in ("README.md", "docs/measuring.md"):
        for file, text in shown.findall((ROOT / name).read_text(encoding="utf-8")):
            (tmp_path / file).write_text(text)
    asked, scores = question("abcdef", ["c", "a"]), [2, 1, 2, 2, 1, 3]
    orders = list(permutations(range(1, 7)))
    allowed = [ranks for ranks in orders if all(np.diff([scores[i] for i in np.argsort(ranks)]) <= 0)]
    expected: dict[str, Callable[[Sequence[int]], float]] = {
        "half_credit.py:half_credit": lambda ranks: {1: 1.0, 2: 0.5}.get(min(ranks[0], ranks[2]), 0.0),
        "gain.py:gain": lambda ranks: 1 / np.log2(1 + min(ranks[0], ranks[2])),
        "gain.py:target_gain": lambda ranks: 1 / np.log2(1 + ranks[2]),
        "gain.py:upper_half": lambda ranks: float(min(ranks[0], ranks[2]) <= 3),
    }
    responses = responses_of(Given([scores]), [asked])
    for name, value in expected.items():
        metric = get_metric(name, tmp_path)
        assert metric.values(responses)[0] == pytest.approx(np.mean([value(ranks) for ranks in allowed])), name
        assert metric.chance(responses)[0] == pytest.approx(np.mean([value(ranks) for ranks in orders])), name


def test_a_metric_of_the_target_has_the_chance_of_one_right_answer():
    asked = [question("abcdef", ["c", "a"])]
    responses = responses_of(ConstantBaseline(), asked)
    target = Metric("target", per_rank=lambda ranks: 1.0 * (ranks <= 2), rank_of="target")
    assert target.chance(responses)[0] == pytest.approx(2 / 6) == get_metric("hit@2").chance(responses)[0]
    unknown = Responses(responses.top, responses.answers, responses.candidates, [[3.5, 3.5]], [[6, 6]])
    assert get_metric("hit@2").chance(unknown)[0] == get_metric("r@2").chance(unknown)[0]


def test_what_is_unknown_has_no_chance():
    """Neither the number of candidates, nor the ranks of all right answers, may be guessed."""
    without = Responses([["a"]], [["a"]], [()], [[1.0]], [[1]])
    check_all(lambda name: without_chance(name, without), ["mrr", "mrr_a", "r@1", "f1", "exact"])
    some = Responses([["a"]], [["a", "b"]], [list("abcd")], [[1.0]], [[1]], right_counts=[2])
    assert get_metric("mrr").values(some)[0] == 1.0
    with pytest.raises(MetricNotApplicableError, match="only some right answers have ranks"):
        get_metric("mrr_a").values(some)


def test_ranks_that_are_not_numbers_have_no_value():
    nan = float("nan")
    golds = GoldRanks.from_lists([[nan], [2.0], [nan, 1.5]], [[3], [3], [2, 2]])
    assert np.isnan(expected_value(golds.best(), np.reciprocal)).tolist() == [True, False, True]
    found = expected_reciprocal_mean_rank(golds)
    assert np.isnan(found).tolist() == [True, False, True] and found[1] == pytest.approx((1 + 1 / 2 + 1 / 3) / 3)


def without_chance(name: str, responses: Responses) -> None:
    metric = get_metric(name)
    assert metric.values(responses)[0] == 1.0 and np.isnan(metric.chance(responses)[0])
    assert np.isnan(get_metric(f"adjusted-{name}").values(responses)[0])
