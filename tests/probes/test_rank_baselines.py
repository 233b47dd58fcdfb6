"""Baselines rank large sets of candidates as one question at a time would be ranked; random orders are uniform."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))
from test_rank import standing

from merkhet.core.answer_columns import make_answer_table
from merkhet.core.errors import InputError
from merkhet.core.ids import derived_seed
from merkhet.core.records import Answer, Question
from merkhet.core.schemas import ANSWERS, make_table
from merkhet.models.baselines import ConstantBaseline, FrequencyBaseline, RandomBaseline, TrainFrequencyBaseline
from merkhet.models.protocol import CandidateScores
from merkhet.models.random_order import RandomOrders
from merkhet.models.sorted_candidates import SharedCache, SortedCandidates
from merkhet.probes import rank as ranking
from merkhet.probes.rank import rank_candidates

WIDTH = 400
COUNTS = [
    {"task": "t", "relation": f"relation-{part}", "answer": f"name {part} {number}", "count": 1 + 90 // (number + 1)}
    for part in range(2)
    for number in range(0, WIDTH, 3)
] + [{"task": "other", "relation": "other", "answer": "name 0 7", "count": 3}]


def lists() -> list[tuple[str, ...]]:
    """Candidates in no order: two large sets, a part of the first, and four choices."""
    draw = np.random.default_rng(5)
    large = [tuple(f"name {part} {number}" for number in draw.permutation(WIDTH)) for part in range(2)]
    return [*large, large[0][: WIDTH - 40], large[0][:4]]


def make_questions(count: int = 160) -> list[Question]:
    draw = np.random.default_rng(6)
    questions, candidate_lists = [], lists()
    for number in range(count):
        candidates = candidate_lists[number % len(candidate_lists)]
        answers = tuple(dict.fromkeys(candidates[place] for place in draw.integers(0, len(candidates), 1 + number % 3)))
        if number % 23 == 0:
            answers = ("no candidate",)
        task, relation = ("other", "unseen") if number % 11 == 0 else ("t", f"relation-{number % 2}")
        questions.append(
            Question(f"q{number}", task, "[MASK]", answers, answers[0], candidates, template=f"{relation}/1")
        )
    return questions


def prepared(model: Any) -> Any:
    if model.needs_counts:
        model.prepare([], COUNTS)
    return model


def baselines() -> list[Any]:
    return [prepared(make()) for make in (FrequencyBaseline, ConstantBaseline, TrainFrequencyBaseline, RandomBaseline)]


def plain_scores(model: Any, question: Question) -> list[np.ndarray]:
    if isinstance(model, FrequencyBaseline):
        counted = {(row["task"], row["relation"]) for row in COUNTS}
        keys = [(question.task, question.relation), (question.task, question.task)]
        key = next((key for key in keys if key in counted), None)
        by_answer = {row["answer"]: row["count"] for row in COUNTS if (row["task"], row["relation"]) == key}
        return [np.array([float(by_answer.get(text, 0)) for text in question.candidates])]
    method = model.methods[0]
    return [result.by_method[method] for result in type_of(model).score_candidates([question], (method,))]


def type_of(model: Any) -> Any:
    """Return a new baseline of the same kind, which has ranked nothing before."""
    return prepared(type(model)())


def one_by_one(model: Any, questions: Sequence[Question]) -> list[Answer]:
    answers = []
    for question in questions:
        scores = plain_scores(model, question)
        for repeat, values in enumerate(scores):
            blank = Answer(question.question_id, model.name, "rank", model.methods[0])
            answers.append(
                replace(blank, **standing(question, values.copy()), repeat=repeat if len(scores) > 1 else None)
            )
    return answers


def in_order(answers: Sequence[Answer]) -> list[Answer]:
    bare = [replace(answer, seconds=None) for answer in answers]
    return sorted(bare, key=lambda answer: (int(answer.question_id[1:]), answer.repeat or 0))


@pytest.mark.parametrize("model", baselines(), ids=lambda model: model.name)
def test_baselines_rank_as_one_question_at_a_time(model: Any) -> None:
    questions = make_questions(24 if model.name == "train-frequency" else 70)
    expected = one_by_one(model, questions)
    assert in_order(list(rank_candidates(model, questions))) == expected
    blocks = [questions[start : start + 7] for start in range(0, len(questions), 7)]
    assert in_order([answer for block in blocks for answer in rank_candidates(model, block)]) == expected


def test_a_full_cache_changes_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    questions, model = make_questions(), prepared(FrequencyBaseline())
    expected = in_order(list(rank_candidates(model, questions)))
    monkeypatch.setattr(ranking, "_shared_rankings", SharedCache(1))
    model._scores = SharedCache(1)
    found = [answer for question in questions for answer in rank_candidates(model, [question])]
    assert in_order(found) == expected


def test_new_counts_give_new_ranks() -> None:
    questions, model = make_questions(2)[1:], FrequencyBaseline()
    answers = []
    for counted in (questions[0].candidates[:1], questions[0].answers):
        model.prepare([], [{"task": "t", "relation": "relation-1", "answer": text, "count": 2} for text in counted])
        answers += list(rank_candidates(model, questions))
    assert answers[0].gold_ranks != answers[1].gold_ranks
    assert answers[1].gold_ranks == ((len(questions[0].answers) + 1) / 2,) * len(questions[0].answers)


@pytest.mark.parametrize("length", [1, 2, 3, 10, 61, 101, 1000])
def test_an_order_is_a_permutation_and_its_inverse(length: int) -> None:
    everything = np.arange(length)
    orders = RandomOrders(length)
    seen = set()
    for key in range(20):
        keys = np.full(length, key * 2**59 + 3, dtype=np.uint64)
        ranks = orders.ranks(keys, everything)
        assert sorted(ranks.tolist()) == everything.tolist()
        assert orders.numbers(keys, ranks).tolist() == everything.tolist()
        seen.add(tuple(ranks.tolist()))
    assert len(seen) > 15 or length < 10


def plain_rank(length: int, key: int, number: int) -> int:
    """The rank of a number, computed with integers of any size."""
    base, limit = max(1, math.isqrt(length - 1) + 1), 2**64
    while True:
        first, second = divmod(number, base)
        for place in range(8):
            mixed = (key + (second * 8 + place + 1) * 0x9E3779B97F4A7C15) % limit
            mixed = (mixed ^ mixed >> 30) * 0xBF58476D1CE4E5B9 % limit
            mixed = (mixed ^ mixed >> 27) * 0x94D049BB133111EB % limit
            first, second = second, (first + (mixed ^ mixed >> 31)) % base
        number = first * base + second
        if number < length:
            return number


@pytest.mark.parametrize("length", [1, 2, 5, 101, 20_000])
def test_ranks_are_those_of_plain_integers(length: int) -> None:
    draw = np.random.default_rng(length)
    keys = np.append(draw.integers(0, 2**64, 200, dtype=np.uint64), np.array([0, 2**64 - 1], dtype=np.uint64))
    numbers = draw.integers(0, length, len(keys))
    expected = [plain_rank(length, key, number) for key, number in zip(keys.tolist(), numbers.tolist(), strict=True)]
    assert RandomOrders(length).ranks(keys, numbers).tolist() == expected
    assert RandomOrders(length).numbers(keys, np.array(expected)).tolist() == numbers.tolist()


def test_random_ranks_and_scores_agree() -> None:
    model, asked = RandomBaseline(seed=3), [one for one in make_questions(24) if len(one.candidates) > 100]
    for answer, question in zip(in_order(list(rank_candidates(model, asked))), asked, strict=True):
        places = {text: place for place, text in enumerate(sorted(question.candidates))}
        width, key = len(places), derived_seed(3, question.question_id)
        ranks = tuple(plain_rank(width, key, places[text]) + 1.0 for text in answer.golds)
        assert answer.gold_ranks == ranks and set(answer.golds) == set(question.answers) & places.keys()
        assert all(
            (plain_rank(width, key, places[text]), 1.0 - (place + 0.5) / width) == (place, score)
            for place, (text, score) in enumerate(answer.ranked)
        )


def test_a_candidate_listed_twice_has_both_places() -> None:
    candidates = SortedCandidates(("b", "c", "a", "b", "c", "b"))
    assert candidates.texts == ["a", "b", "b", "b", "c", "c"]
    assert candidates.gold_columns(("b",)) == (1, 2, 3)
    assert candidates.gold_columns(("c", "b")) == (1, 4, 2, 5, 3)
    assert candidates.gold_columns(("d",)) == candidates.gold_columns(("d", "e")) == ()
    assert candidates.gold_columns(("d", "a")) == (0,)


def chi_square(counts: Sequence[int], expected: float) -> float:
    return float(sum((count - expected) ** 2 / expected for count in counts))


def test_random_ranks_are_uniform_and_independent() -> None:
    count, length = 24_000, 120
    candidates = tuple(f"name {number:03d}" for number in range(length))
    answers = (candidates[3], candidates[64], candidates[119])
    questions = [Question(f"q{number}", "t", "[MASK]", answers, answers[0], candidates) for number in range(count)]
    found = list(rank_candidates(RandomBaseline(), questions))
    ranks = np.array([answer.gold_ranks for answer in found])
    # 0.1% quantiles of the chi-square distribution with 119, 5 and 119 degrees of freedom.
    for column in range(3):
        assert chi_square(np.bincount(ranks[:, column].astype(int), minlength=length + 1)[1:], count / length) < 174
    orders = np.bincount(np.argsort(ranks, axis=1) @ [9, 3, 1], minlength=27)
    assert chi_square([number for number in orders if number], count / 6) < 20.5
    best = np.bincount([candidates.index(str(answer.prediction)) for answer in found], minlength=length)
    assert chi_square(best, count / length) < 174
    # The best of three answers: the expected minimum of three of 120 ranks is 121 / 4.
    assert abs(ranks.min(axis=1).mean() - 121 / 4) < 0.5
    for answer in found[:300]:
        places = {text: place + 1.0 for place, (text, _) in enumerate(answer.ranked)}
        for gold, rank in zip(answer.golds, answer.gold_ranks, strict=True):
            assert places.get(gold) == (rank if rank <= len(answer.ranked) else None)


def test_a_subclass_that_scores_in_another_way_is_ranked_by_its_scores() -> None:
    class Alphabetical(RandomBaseline):
        def score_candidates(self, questions: Sequence[Question], methods: Sequence[str]) -> Iterator[CandidateScores]:
            for index, question in enumerate(questions):
                order = np.argsort(np.argsort(question.candidates)).astype(float)
                yield CandidateScores(index, dict.fromkeys(methods, -order))

    questions = [question for question in make_questions(8) if question.answers[0] != "no candidate"]
    for answer, question in zip(rank_candidates(Alphabetical(), questions), questions, strict=True):
        assert answer.prediction == min(question.candidates)


def test_random_writes_what_it_ranks_first() -> None:
    model, questions = (
        RandomBaseline(),
        [question for question in make_questions(30) if question.answers[0] != "no candidate"],
    )
    written = {answer.index: answer.text for answer in model.write_answers(questions, model.methods)}
    ranked = {answer.question_id: answer.prediction for answer in rank_candidates(model, questions)}
    assert [written[number] for number in range(len(questions))] == [ranked[one.question_id] for one in questions]


def test_another_seed_gives_another_order() -> None:
    questions = make_questions(8)[1:3]
    ranks = [[a.gold_ranks for a in rank_candidates(RandomBaseline(seed=seed), questions)] for seed in (0, 1, 0)]
    assert ranks[0] == ranks[2] != ranks[1]


def test_columns_of_answers_equal_the_table_of_their_rows() -> None:
    answers = [answer for model in baselines() for answer in rank_candidates(model, make_questions(30))]
    answers += [
        Answer("q1", "m", "p", "x", unusable="none", repeat=3, positions=(1, None), letters=(None, "A"), seconds=1),
        Answer("q2", "m", "p", "x", prediction="é", ranked=(("é", 1),), replies=("a", "b"), among=4, right=2),
    ]
    # Answers share a long list of ties, and an equal list is another object.
    ties = [tuple(range(100)), tuple(range(100)), ()]
    tied = [Answer(f"q{number}", "m", "p", "x", tied_first=ties[number % 3], golds=("a",)) for number in range(30)]
    for some in (answers, answers[:1], [], tied, tied[:3], tied[1:2]):
        assert make_answer_table(some).equals(make_table(ANSWERS, [answer.as_row() for answer in some]))


def test_an_answer_of_wrong_types_is_named() -> None:
    sound = Answer("q1", "m", "p", "x")
    values = {"golds": "abc", "ranked": (("a", "b"),), "right": 0.5, "tied_first": (*range(40), "a")}
    for field, value in values.items():
        with pytest.raises(InputError, match=f"row 2: '{field}' must be"):
            make_answer_table([sound, replace(sound, question_id="q2", **{field: value})])
