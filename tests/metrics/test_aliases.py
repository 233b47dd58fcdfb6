"""Aliases of right answers count in metrics of words, and not at all in metrics of ranks."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest

from merkhet.core.records import Question
from merkhet.metrics.metrics import get_metric
from merkhet.metrics.score_table import collect_responses
from merkhet.models.baselines import ConstantBaseline, RandomBaseline
from merkhet.probes.rank import rank_candidates

RANK_METRICS = ("accuracy", "strict-accuracy", "r@1", "r@5", "hit@2", "mrr", "mrr_a", "mean-rank", "rank-index")


def questions(seed: int) -> list[Question]:
    draw = random.Random(seed)
    made = []
    for number in range(40):
        candidates = tuple(f"town {name}" for name in draw.sample(range(100), draw.randrange(3, 12)))
        answers = tuple(draw.sample(candidates, draw.choice([1, 1, 2])))
        made.append(Question(f"q{number}", "completion", f"{number} is [MASK].", answers, answers[0], candidates))
    return made


def with_aliases(question: Question) -> Question:
    return replace(question, answers=(*question.answers, *(f"old {answer}" for answer in question.answers), "Ville"))


@pytest.mark.parametrize("baseline", [RandomBaseline, ConstantBaseline])
def test_aliases_change_no_rank_no_chance_level_and_no_number_of_right_answers(baseline: type) -> None:
    plain = questions(1)
    aliased = [with_aliases(question) for question in plain]
    assert [question.right_candidates for question in aliased] == [question.right_candidates for question in plain]
    rows = [[answer.as_row() for answer in rank_candidates(baseline(), asked)] for asked in (plain, aliased)]
    for one, other in zip(*rows, strict=True):
        assert {**one, "seconds": None} == {**other, "seconds": None}
    before, after = (
        collect_responses(answers, {question.question_id: question for question in asked})
        for answers, asked in zip(rows, (plain, aliased), strict=True)
    )
    for name in RANK_METRICS:
        metric = get_metric(name)
        np.testing.assert_array_equal(metric.values(before), metric.values(after), name)
        if metric.chance is not None:
            np.testing.assert_array_equal(metric.chance(before), metric.chance(after), name)


def test_a_written_alias_is_right_and_the_chance_level_of_f1_counts_it() -> None:
    question = Question(
        "q", "completion", "It is [MASK].", ("big apple", "New York"), "big apple", ("big apple", "York")
    )
    said = [{"question_id": "q", "model": "m", "probe": "write", "method": "greedy", "prediction": "new york!"}]
    said[0]["ranked"] = [{"candidate": "new york!", "score": 0.0}]
    responses = collect_responses(said, {"q": question})
    assert get_metric("f1").values(responses).tolist() == get_metric("exact").values(responses).tolist() == [1.0]
    chance = get_metric("f1").chance
    assert chance is not None
    # "York" has two thirds of the words of "New York": it is as right by chance as if a model had written it.
    assert chance(responses).tolist() == pytest.approx([(1 + 2 / 3) / 2])
