"""Bias for places and letters, and agreement between ways of asking, of answers whose bias is known."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from talkers import Talker, capital, city, knows, shown

from merkhet.analysis.answer_format import choice_bias, count_choices, forms
from merkhet.analysis.types import AnalysisInput
from merkhet.core.records import Answer, Question
from merkhet.metrics.metrics import get_metric
from merkhet.models.chat.chat_messages import ChatRequest
from merkhet.probes.chat.answer import answer
from merkhet.probes.chat.choose import choose

QUESTIONS = [capital(number) for number in range(80)]


def given(answers: list[Answer], questions: list[Question] = QUESTIONS) -> AnalysisInput:
    asked = {one.question_id: one for one in questions}
    rows = [{"question_id": one.question_id, "task": one.task, "domain": None} for one in questions]
    return AnalysisInput(
        questions=rows,
        questions_by_id=asked,
        answers=[one.as_row() for one in answers],
        clusters={name: name for name in asked},
        headline=[("completion", get_metric("accuracy"))],
    )


def table(found: Any, caption: str) -> list[tuple[Any, ...]]:
    return list(next(one for one in found.tables if one.caption.startswith(caption)).rows)


def test_one_who_always_says_a_is_drawn_to_it() -> None:
    answers = list(choose(Talker(lambda _: "A"), QUESTIONS, orders=4))
    found = forms(given(answers))
    assert found is not None
    ((_, _, count, first, last, drawn, by_letter, same),) = table(found, "Bias")
    assert (count, first.value, last.value, drawn, by_letter) == (320, 1.0, 0.0, 0.75, None)
    assert same.value == 0.0
    assert "talker prefers the letter A: 100.0% of its choices, but 25.0% of the right ones." in found.sentences
    letters = {(row["line"], row["x"]): row["value"] for row in found.figures[0].rows}
    assert letters["talker", "A"] == 1.0 and letters["the right choice", "C"] == 0.25


def test_one_who_knows_has_no_bias_and_is_the_same_in_all_orders() -> None:
    found = forms(given(list(choose(Talker(knows(city)), QUESTIONS, orders=4))))
    assert found is not None
    ((_, _, _, first, last, drawn, _, same),) = table(found, "Bias")
    assert (first.value, last.value, drawn, same.value) == (1.0, 1.0, 0.0, 1.0)
    assert not [text for text in found.sentences if "prefers" in text]


def test_one_who_is_wrong_in_the_same_way_in_every_order_is_consistent() -> None:
    def next_city(request: ChatRequest) -> str:
        return f"city {(int(city(request).split()[1]) + 1) % 4}"

    found = forms(given(list(choose(Talker(knows(next_city)), QUESTIONS, orders=4))))
    assert found is not None
    ((*_, first, _, _, _, same),) = table(found, "Bias")
    assert (first.value, same.value) == (0.0, 1.0)


def test_one_who_guesses_is_rarely_said_to_prefer_a_letter() -> None:
    """With 24 choices, some letter of a guesser is often chosen half more than it is right, by luck alone."""
    lucky = preferring = 0
    for seed in range(40):
        draw = random.Random(seed)
        found = given(list(choose(Talker(lambda _, draw=draw: draw.choice("ABCD")), QUESTIONS[:24])), QUESTIONS[:24])
        chosen, right = count_choices(found, found.answers, "letter")
        top = int(np.argmax(chosen - right))
        lucky += bool(chosen[top] > 1.5 * right[top] and choice_bias(chosen, right) > 0.1)
        preferring += any("prefers" in text for text in forms(found).sentences)
    assert lucky > 8 and preferring <= 4


def test_replies_that_are_no_answers_are_counted_and_choose_no_place() -> None:
    def says(request: ChatRequest) -> str:
        number = int(request.messages[-1][1].partition("country ")[2].split()[0])
        return {0: "I'm sorry, I can't.", 1: "?"}.get(number % 4, "A")

    answers = list(choose(Talker(says), QUESTIONS))
    found = forms(given(answers))
    assert found is not None
    assert table(found, "Outcomes") == [("talker", "choose", 80, 0.5, 0.25, 0.25)]
    assert "talker gave no answer to 25.0% and declined 25.0% of 80 questions (choose)." in found.sentences
    chosen, right = count_choices(given(answers), [one.as_row() for one in answers], "position")
    assert chosen.sum() == right.sum() == 40


def test_with_mixed_letters_a_liking_for_a_letter_is_told_from_one_for_a_place() -> None:
    def first_shown(request: ChatRequest) -> str:
        return next(line[0] for line in request.messages[-1][1].splitlines() if line[1:3] == ". ")

    for says, places, letters, told in (
        (lambda _: "A", 0.0, 0.75, "prefers the letter A: 100.0%"),
        (first_shown, 0.75, 0.0, "prefers position 1: 100.0%"),
    ):
        found = forms(given(list(choose(Talker(says), QUESTIONS, orders=4, mixed_letters=True))))
        assert found is not None
        ((*_, by_place, by_letter, _),) = table(found, "Bias")
        # Letters and places are drawn: what has no pull has only what chance gives it.
        assert by_place == pytest.approx(places, abs=0.08)
        assert by_letter == pytest.approx(letters, abs=0.08)
        assert [text for text in found.sentences if "prefers" in text and told in text]
        assert len([text for text in found.sentences if "prefers" in text]) == 1
        assert [figure.x for figure in found.figures] == ["letter", "position"]


def test_ways_that_agree_and_ways_that_do_not() -> None:
    def half(request: ChatRequest) -> str:
        """Right about the first half, in every way of asking."""
        number = int(request.messages[-1][1].partition("country ")[2].split()[0])
        right = city(request) if number < 40 else "nowhere"
        return knows(lambda _: right)(request) if right in shown(request) else right if not shown(request) else "Z"

    model = Talker(half)
    found = forms(given([*choose(model, QUESTIONS), *answer(model, QUESTIONS)]))
    assert found is not None
    ((name, ways, count, alike, kappa),) = table(found, "Agreement")
    assert (name, ways, count) == ("talker", "chosen by letter – answered freely", 80)
    assert (alike.value, kappa.value) == (1.0, 1.0)
    luck = Talker(lambda request: "A" if shown(request) else city(request))
    found = forms(given([*choose(luck, QUESTIONS), *answer(luck, QUESTIONS)]))
    assert found is not None
    ((*_, kappa),) = table(found, "Agreement")
    assert kappa.value == pytest.approx(0.0, abs=1e-9)


def test_nobody_was_talked_to() -> None:
    plain = [Answer(one.question_id, "m", "rank", "sum", "city 0", (("city 0", 1.0),)) for one in QUESTIONS]
    assert forms(given(plain)) is None


def test_pull() -> None:
    assert choice_bias(np.array([4.0, 0.0]), np.array([2.0, 2.0])) == 0.5
    assert choice_bias(np.array([2.0, 2.0]), np.array([1.0, 1.0])) == 0.0
    assert np.isnan(choice_bias(np.zeros(3), np.zeros(3)))
