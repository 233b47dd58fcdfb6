"""The probe choose: orders, letters, votes, what is drawn, and what no answer comes to."""

from __future__ import annotations

import math
from collections import Counter

import pytest
from all_cases import check_all
from talkers import Talker, capital, city, knows, shown

from merkhet.core.errors import InputError
from merkhet.core.records import Answer
from merkhet.models.chat.chat_messages import ChatRequest
from merkhet.probes.chat.choose import choose, order_choices, sample_choices


def by_question(answers: list[Answer]) -> dict[str, Answer]:
    return {one.question_id: one for one in answers}


def test_one_who_knows_is_always_right_and_one_who_says_a_is_right_by_chance() -> None:
    questions = [capital(number) for number in range(200)]
    found = by_question(list(choose(Talker(knows(city)), questions)))
    assert all(one.gold_ranks == (1.0,) and one.outcome == "answered" for one in found.values())
    assert all(found[q.question_id].prediction == q.target for q in questions)
    always_a = list(choose(Talker(lambda _: "A"), questions))
    right = sum(one.gold_ranks == (1.0,) for one in always_a)
    assert 30 <= right <= 70
    assert {one.positions for one in always_a} == {(0,)}


def test_the_right_choice_moves_evenly_through_the_places() -> None:
    questions = [capital(number) for number in range(60)]
    model = Talker(lambda _: "A")
    found = list(choose(model, questions, orders=4))
    for one in found:
        assert sorted(one.right_positions) == [0, 1, 2, 3]
        # One who always says A chooses each once: nothing stands out, and chance is what it scores.
        assert one.gold_ranks == (2.5,) and one.gold_ties == (4,)
        assert len(one.replies) == 4
    assert len(model.heard) == 240


def test_orders_are_drawn_by_the_seed_and_the_question_alone() -> None:
    question = capital(3, 8)
    orders = [order_choices(question, question.candidates, number, 8, 1) for number in range(8)]
    assert len(set(orders)) == 8 and all(sorted(one) == sorted(question.candidates) for one in orders)
    backwards = capital(3, 8, candidates=question.candidates[::-1])
    assert order_choices(backwards, backwards.candidates, 2, 8, 1) == orders[2]
    firsts = Counter(order_choices(capital(n, 8), capital(n, 8).candidates, 0, 1, 0)[0] for n in range(400))
    assert min(firsts.values()) > 20
    assert order_choices(question, question.candidates, 0, 1, 2) != orders[0]


def test_of_many_candidates_the_right_one_and_wrong_ones_are_shown() -> None:
    question = capital(5, 300, answers=("city 5", "city 6", "city 7"), target="city 5")
    drawn = sample_choices(question, 20, 0)
    assert len(drawn) == len(set(drawn)) == 20 and "city 5" in drawn
    assert not {"city 6", "city 7"} & set(drawn)
    model = Talker(knows(lambda _: "city 5"))
    (answer,) = choose(model, [question])
    assert len(shown(model.heard[0])) == 20
    assert answer.among == 20 and answer.golds == ("city 5",) and answer.gold_ranks == (1.0,)
    few = capital(5, 300, answers=tuple(f"city {n}" for n in range(295)), target="city 5")
    assert len(sample_choices(few, 20, 0)) == 6


def test_where_all_are_shown_the_candidates_are_the_questions_own() -> None:
    (answer,) = choose(Talker(knows(city)), [capital(1)])
    assert answer.among is None


def likely(request: ChatRequest) -> dict[str, object]:
    """One who gives 0.6 to what is right and 0.3 to the first letter."""
    choices = shown(request)
    shares = [0.05] * len(choices)
    shares[0] += 0.3
    shares[choices.index(city(request))] += 0.6
    return {"text": "A", "letters": {"ABCD"[place]: math.log(share) for place, share in enumerate(shares)}}


def test_letters_rank_all_choices_and_orders_cancel_a_pull_to_the_first() -> None:
    questions = [capital(number) for number in range(20)]
    model = Talker(likely, letters=True)
    found = by_question(list(choose(model, questions, orders=4)))
    for question in questions:
        one = found[question.question_id]
        assert one.method == "letters"
        scores = dict(one.ranked)
        # Over all orders the pull is the same for each: what is right has 0.6 more than any other.
        total = sum([0.05] * 4) + 0.3 + 0.6
        assert scores[question.target] == pytest.approx((0.05 + 0.6 + 0.3 / 4) / total)
        assert {round(v, 9) for k, v in scores.items() if k != question.target} == {round((0.05 + 0.075) / total, 9)}
    (both, text) = choose(model, questions[:1], ["letters", "text"])
    assert (both.method, text.method) == ("letters", "text")
    assert text.positions == (0,)


def test_letters_that_were_not_given_stand_last() -> None:
    model = Talker(lambda request: {"text": "B", "letters": {"B": -0.2, "C": -2.0}}, letters=True)
    (one,) = choose(model, [capital(0)])
    first, second, *rest = one.ranked
    assert first[1] > second[1] > rest[0][1] == rest[1][1]


def test_without_letters_the_method_letters_is_refused() -> None:
    with pytest.raises(InputError, match="has no method 'letters'"):
        list(choose(Talker(lambda _: "A"), [capital(0)], ["letters"]))


def test_no_answer_is_wrong_and_says_so() -> None:
    def check(text: str, outcome: str) -> None:
        (one,) = choose(Talker(lambda _: text), [capital(0)])
        assert (one.outcome, one.prediction, one.ranked) == (outcome, None, ())
        assert one.gold_ranks == (4.0,) and one.positions == (None,)
        assert one.unusable is None and one.replies == (text,)

    check_all(check, [("Well…", "no answer"), ("I'm sorry, I can't.", "refused")])


def test_an_order_without_an_answer_counts_as_a_vote_for_nothing() -> None:
    def sometimes(request: ChatRequest) -> str:
        return knows(city)(request) if shown(request)[0] == city(request) else "?"

    (one,) = choose(Talker(sometimes), [capital(2)], orders=4)
    assert one.prediction == "city 2" and one.ranked[0][1] == 0.25
    assert sum(place is None for place in one.positions) == 3


def test_what_cannot_be_asked_says_why() -> None:
    questions = [
        capital(0, answers=("nowhere",), target="nowhere"),
        capital(1, candidates=("city 1",)),
        capital(2, words=("w",), candidates=("a [MASK]", "b [MASK]"), answers=("a [MASK]",)),
    ]
    reasons = [one.unusable for one in choose(Talker(lambda _: "A"), questions)]
    assert reasons[:2] == ["no right answer among the candidates", "there is only one candidate"]
    assert "probe compare" in str(reasons[2])
    (mute,) = choose(Talker(lambda _: {"unusable": "too long"}), [capital(0)], orders=1)
    assert mute.unusable == "too long"


def test_bad_options() -> None:
    def check(options: dict[str, int], told: str) -> None:
        with pytest.raises(InputError, match=told):
            list(choose(Talker(lambda _: "A"), [capital(0)], **options))

    check_all(
        check,
        [
            ({"orders": 0}, "orders .* got 0$"),
            ({"most": 1}, "most .* got 1$"),
            ({"most": 27}, "most must be an integer from 2 to 26, got 27$"),
        ],
    )


def test_examples_are_shown_with_their_letters() -> None:
    training = [capital(100 + number, template=f"relation {number % 3}/1") for number in range(9)]
    model = Talker(knows(city))
    (answer,) = choose(model, [capital(1)], shots=3, examples=training, seed=4)
    messages = model.heard[0].messages
    assert [role for role, _ in messages] == ["user", "assistant"] * 3 + ["user"]
    for (_, asked), (_, reply) in zip(messages[0:6:2], messages[1:6:2], strict=True):
        assert reply == knows(city)(ChatRequest((("user", asked),), 8))
    assert "country 1 " in messages[-1][1]
    assert answer.gold_ranks == (1.0,)
    # One of each relation.
    numbers = [int(text.partition("country ")[2].split()[0]) % 3 for _, text in messages[0:6:2]]
    assert len(set(numbers)) == 3
    with pytest.raises(
        InputError, match="shots must be ≤ 9, the number of training questions of the task completion, got 10"
    ):
        list(choose(model, [capital(1)], shots=10, examples=training))


def test_mixed_letters_name_the_same_choices() -> None:
    questions = [capital(number) for number in range(40)]

    def letter_of_right(request: ChatRequest) -> str:
        lines = request.messages[-1][1].splitlines()
        return next(line[0] for line in lines if line[1:] == f". {city(request)}")

    found = list(choose(Talker(letter_of_right), questions, orders=2, mixed_letters=True))
    assert all(one.gold_ranks == (1.0,) and one.letters == one.right_letters for one in found)
    assert all(one.positions == one.right_positions for one in found)
    assert Counter(letter for one in found for letter in one.letters).keys() == set("ABCD")
    assert any("ABCD".index(str(one.letters[0])) != one.positions[0] for one in found)
    plain = list(choose(Talker(knows(city)), questions, orders=2))
    assert all(
        "ABCD".index(str(x)) == place for one in plain for x, place in zip(one.letters, one.positions, strict=True)
    )


def test_chinese_questions_are_asked_in_chinese() -> None:
    model = Talker(lambda _: "答案是A")
    (one,) = choose(model, [capital(0, language="zh", prompt="法国的首都是[MASK]。")])
    assert "只回答选项的字母" in model.heard[0].messages[-1][1]
    assert "法国的首都是____。" in model.heard[0].messages[-1][1]
    assert one.outcome == "answered"


def test_a_reply_with_an_alias_of_the_right_choice_names_it() -> None:
    question = capital(1, answers=("city 1", "Old Town"))
    said = [next(choose(Talker(lambda _, reply=reply: reply), [question])) for reply in ("Old town.", "New Town")]
    assert [one.prediction for one in said] == ["city 1", None]
    assert [one.outcome for one in said] == ["answered", "no answer"]
    assert said[0].gold_ranks == (1.0,) and said[0].golds == said[1].golds == ("city 1",)
