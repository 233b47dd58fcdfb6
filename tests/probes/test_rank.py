"""The probe ``rank`` equals the obvious way: one question, one method, all candidates sorted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from all_cases import check_all
from hypothesis import given, settings
from hypothesis import strategies as st

from merkhet.core.records import Answer, Question
from merkhet.metrics.ranks import expected_ranks, expected_ranks_by_row, top_columns
from merkhet.models.protocol import CandidateScores
from merkhet.probes import rank as ranking
from merkhet.probes.rank import rank_candidates

METHODS = ("one", "two", "three")
TOP_K = 25


@dataclass
class Given:
    """A model whose scores are given."""

    scores: list[CandidateScores]
    name: str = "given"
    kind: str = "baseline"
    fingerprint: str = "0"
    methods: tuple[str, ...] = METHODS

    def score_candidates(self, questions: Sequence[Question], methods: Sequence[str]) -> Iterator[CandidateScores]:
        yield from self.scores

    def describe(self) -> dict[str, Any]:
        return {}


def one_by_one(model: Given, questions: Sequence[Question], methods: Sequence[str]) -> Iterator[Answer]:
    for result in sorted(model.scores, key=lambda result: (result.index, result.repeat or 0)):
        question = questions[result.index]
        for method in methods:
            blank = Answer(question.question_id, model.name, "rank", method, repeat=result.repeat)
            if result.by_method is None:
                yield replace(blank, unusable=result.unusable)
            else:
                yield replace(blank, **standing(question, result.by_method[method]))


def standing(question: Question, scores: np.ndarray) -> dict[str, Any]:
    right = set(question.answers)
    golds = np.array([i for i, text in enumerate(question.candidates) if text in right], dtype=np.int64)
    if not len(golds) or not np.all(np.isfinite(scores)):
        return {"unusable": "a score is not a number" if len(golds) else "no right answer among the candidates"}
    ranks, ties = expected_ranks(scores, golds)
    order = sorted(range(len(scores)), key=lambda i: (-scores[i], question.candidates[i]))[:TOP_K]
    alphabetical = sorted(zip(question.candidates, scores, strict=True), key=lambda pair: pair[0])
    first = [place for place, (_, score) in enumerate(alphabetical) if score == max(scores)]
    return {
        "prediction": question.candidates[order[0]],
        "ranked": tuple((question.candidates[i], float(scores[i])) for i in order),
        "golds": tuple(question.candidates[i] for i in golds),
        "gold_ranks": tuple(float(rank) for rank in ranks),
        "gold_ties": tuple(int(size) for size in ties),
        "tied_first": runs(first) if len(first) > TOP_K else (),
    }


def runs(places: Sequence[int]) -> tuple[int, ...]:
    """The start and the stop of every run of places that follow each other."""
    starts = [place for place in places if place - 1 not in places]
    stops = [place + 1 for place in places if place + 1 not in places]
    return tuple(number for pair in zip(starts, stops, strict=True) for number in pair)


def check(model: Given, questions: Sequence[Question], methods: Sequence[str] = METHODS) -> None:
    found = [replace(answer, seconds=None) for answer in rank_candidates(model, questions, methods)]
    expected = list(one_by_one(model, questions, methods))
    assert found == expected
    for answer in found:
        assert all(type(value) is float for _, value in answer.ranked)
        assert all(type(rank) is float for rank in answer.gold_ranks)
        assert all(type(size) is int for size in answer.gold_ties)


@st.composite
def asked(draw: st.DrawFn) -> tuple[Given, list[Question]]:
    """Questions that share some lists of candidates, with scores that are often tied and sometimes no numbers."""
    letters = st.text("abcdeé", min_size=1, max_size=3)
    lists = [tuple(draw(st.lists(letters, min_size=1, max_size=60))) for _ in range(draw(st.integers(1, 3)))]
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    levels = draw(st.sampled_from((1, 2, 5, 1000)))
    questions, results = [], []
    kept: list[tuple[int, np.ndarray]] = []
    for index in range(draw(st.integers(0, 8))):
        number = draw(st.integers(0, len(lists) - 1))
        candidates = lists[number]
        answers = tuple(draw(st.lists(st.sampled_from((*candidates, "none")), min_size=1, max_size=4)))
        questions.append(Question(f"q{index}", "t", "[MASK]", answers, answers[0], candidates))
        for repeat in range(draw(st.integers(1, 3))):
            by_method = {}
            for method in METHODS:
                scores = random.integers(0, levels, len(candidates)) / 7.0 - 0.3
                scores[random.random(len(scores)) < 0.05] = -0.0
                if draw(st.integers(0, 15)) == 0:
                    scores[random.integers(len(scores))] = draw(st.sampled_from((np.nan, np.inf, -np.inf)))
                same = [array for other, array in kept if other == number]
                if same and draw(st.integers(0, 3)) == 0:
                    scores = same[0]
                kept.append((number, scores))
                by_method[method] = scores
            if draw(st.integers(0, 9)) == 0:
                results.append(CandidateScores(index, unusable="too long", repeat=repeat))
            else:
                results.append(CandidateScores(index, by_method, repeat=repeat if draw(st.booleans()) else None))
    return Given(draw(st.permutations(results))), questions


@settings(max_examples=150, deadline=None)
@given(case=asked(), at_once=st.sampled_from((1, 100, 2**19)))
def test_answers_equal_those_of_one_by_one(case: tuple[Given, list[Question]], at_once: int) -> None:
    before = ranking._SCORES_AT_ONCE
    ranking._SCORES_AT_ONCE = at_once
    try:
        check(*case)
        check(*case, methods=("two",))
    finally:
        ranking._SCORES_AT_ONCE = before


def test_many_candidates() -> None:
    check_all(check_many_candidates, [3, 40, 10**9])


def check_many_candidates(levels: int) -> None:
    random = np.random.default_rng(levels)
    candidates = tuple(f"c{number}" for number in random.permutation(783))
    questions = [
        Question(f"q{i}", "t", "[MASK]", (*candidates[i : i + 3], "c5"), candidates[i], candidates) for i in range(20)
    ]
    results = [
        CandidateScores(i, {method: random.integers(0, levels, 783).astype(float) for method in METHODS})
        for i in range(20)
    ]
    check(Given(results), questions)


def test_a_question_without_candidates() -> None:
    asked = [Question("q", "t", "[MASK]", ("a",), "a", ())]
    check(Given([CandidateScores(0, {method: np.empty(0) for method in METHODS})]), asked)
    check(Given([]), [])


@settings(max_examples=100, deadline=None)
@given(width=st.integers(1, 40), count=st.integers(1, 30), levels=st.sampled_from((1, 3, 50)), seed=st.integers(0, 999))
def test_ranks_of_many_lines(width: int, count: int, levels: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    scores = random.integers(0, levels, (7, width)).astype(float)
    lines, golds = random.integers(0, 7, 30), random.integers(0, width, 30)
    ordered = np.sort(scores, axis=1)
    ranks, ties = expected_ranks_by_row(ordered, lines, scores[lines, golds])
    for line, gold, rank, size in zip(lines, golds, ranks, ties, strict=True):
        expected = expected_ranks(scores[line], np.array([gold]))
        assert (rank, size) == (expected[0][0], expected[1][0])
    for line, columns in zip(scores, top_columns(scores, ordered, count), strict=True):
        assert columns.tolist() == sorted(range(width), key=lambda column: (-line[column], column))[:count]
