"""The probes answer and judge."""

from __future__ import annotations

import pytest
from talkers import Talker, capital, city

from merkhet.metrics.metrics import MetricNotApplicableError, get_metric
from merkhet.metrics.score_table import collect_responses
from merkhet.models.chat.chat_messages import ChatRequest
from merkhet.models.loading import load_model
from merkhet.probes.chat.answer import answer
from merkhet.probes.chat.judge import judge


def test_answers_are_compared_word_by_word_and_by_every_right_answer() -> None:
    questions = [capital(0), capital(1, answers=("city 1", "the old town"), target="city 1"), capital(2), capital(3)]
    said = {"0": "The capital of country 0 is City 0.", "1": "Old town!", "2": "I'm sorry, I can't help.", "3": "…"}

    def says(request: ChatRequest) -> str:
        return said[request.messages[-1][1].partition("country ")[2][0]]

    found = sorted(answer(Talker(says), questions), key=lambda one: one.question_id)
    assert [one.outcome for one in found] == ["answered", "answered", "refused", "no answer"]
    assert [one.prediction for one in found] == ["City 0", "Old town!", "", ""]
    responses = collect_responses([one.as_row() for one in found], {one.question_id: one for one in questions})
    assert get_metric("exact").values(responses).tolist() == [1.0, 1.0, 0.0, 0.0]
    assert get_metric("no-answer").values(responses).tolist() == [0.0, 0.0, 0.0, 1.0]
    assert get_metric("refused").values(responses).tolist() == [0.0, 0.0, 1.0, 0.0]
    with pytest.raises(MetricNotApplicableError):
        get_metric("accuracy").values(responses)


def test_a_statement_is_judged_true_and_another_false() -> None:
    def says(request: ChatRequest) -> str:
        statement = request.messages[-1][1].splitlines()[2]
        return "True." if statement.endswith(f"is {city(request)}.") else "False, it is another."

    questions = [capital(number) for number in range(10)]
    found = list(judge(Talker(says), questions))
    assert len(found) == 20
    assert all(one.gold_ranks == (1.0,) and one.outcome == "answered" and one.among == 2 for one in found)
    assert {(one.repeat, one.prediction) for one in found} == {(0, "true"), (1, "false")}
    yes = list(judge(Talker(lambda _: "yes"), questions))
    assert sum(one.gold_ranks == (1.0,) for one in yes) == 10
    responses = collect_responses([one.as_row() for one in found], {one.question_id: one for one in questions})
    assert get_metric("accuracy").values(responses).tolist() == [1.0] * 20
    assert get_metric("accuracy").chance is not None
    with pytest.raises(MetricNotApplicableError):
        get_metric("exact").values(responses)


def test_a_question_with_two_candidates_is_judged_as_it_is() -> None:
    question = capital(
        0, prompt='"It is." Is this true? [MASK].', candidates=("Yes", "No"), answers=("No",), target="No"
    )
    model = Talker(lambda _: "No.")
    (one,) = judge(model, [question])
    assert one.repeat is None and one.gold_ranks == (1.0,) and one.prediction == "No"
    assert "Reply with one of these alone: Yes or No." in model.heard[0].messages[-1][1]
    (wrong,) = judge(Talker(lambda _: "Perhaps"), [question])
    assert wrong.gold_ranks == (2.0,) and wrong.outcome == "no answer"


def test_nothing_wrong_to_say() -> None:
    question = capital(0, candidates=("a", "b", "c"), answers=("a", "b", "c"), target="a")
    (one,) = judge(Talker(lambda _: "true"), [question])
    assert one.unusable == "there is no wrong candidate to make a false statement of"


@pytest.mark.parametrize("probe", [answer, judge])
def test_a_model_that_cannot_be_talked_to_says_so(probe: object) -> None:
    (one,) = probe(load_model("random"), [capital(0)])  # type: ignore[operator]
    assert one.unusable == "a model of the kind baseline cannot be talked to"


def test_examples_come_with_their_answers() -> None:
    training = [capital(50 + number) for number in range(4)]
    model = Talker(lambda _: "city 1")
    list(answer(model, [capital(1)], shots=2, examples=training))
    asked = model.heard[0].messages
    assert [asked[1][1], asked[3][1]] == [city(ChatRequest((asked[0],), 8)), city(ChatRequest((asked[2],), 8))]
    list(judge(model, [capital(1)], shots=2, examples=training))
    assert {text for role, text in model.heard[-1].messages if role == "assistant"} <= {"true", "false"}
