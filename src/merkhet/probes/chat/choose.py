"""The probe ``choose``: lettered choices in a drawn order, one of which the model names."""

from __future__ import annotations

import random
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from merkhet.core.errors import InputError
from merkhet.core.ids import derived_seed
from merkhet.core.records import Answer, Question
from merkhet.models.chat.chat_messages import ChatReply, ChatRequest, Converses
from merkhet.models.protocol import CandidateScores, FloatArray, Model
from merkhet.probes.chat._chat_prompts import LETTERS, choose_text, conversation
from merkhet.probes.chat._few_shot import Examples
from merkhet.probes.chat._reply_parsing import ANSWERED, NO_ANSWER, REFUSED, chosen
from merkhet.probes.probe_support import compares_senses, known_methods
from merkhet.probes.rank import ranked_answers

PROBE = "choose"
BY_LETTERS, BY_TEXT = "letters", "text"
METHODS = (BY_LETTERS, BY_TEXT)
MOST = 20
LENGTH = 24
"""How many tokens a reply may have: enough for a letter with its choice."""


def choose(
    model: Model,
    questions: Sequence[Question],
    methods: Sequence[str] = (),
    *,
    orders: int = 1,
    most: int = MOST,
    mixed_letters: bool = False,
    shots: int = 0,
    seed: int = 0,
    examples: Sequence[Question] = (),
) -> Iterator[Answer]:
    """Let the model choose one of the lettered candidates of each question.

    By ``letters`` the choices are ranked by the log-probabilities of their letters, where the model gives these; by
    ``text`` the reply is read. Without methods it is by letters if it can be. Each question is asked in so many
    ``orders``, all drawn by the ``seed``; the right choice moves evenly through the places, and a choice counts by its
    mean over the orders. Of more than ``most`` candidates the one that was left out and drawn wrong ones are shown.
    With ``mixed_letters`` the letters are drawn too, so that a liking for a letter can be told from one for a place.
    ``shots`` of the ``examples`` are shown before.
    """
    _check(orders, most)
    if not isinstance(model, Converses):
        reason = f"a model of the kind {model.kind} cannot be talked to"
        for question in questions:
            for method in methods or (BY_TEXT,):
                yield Answer(question.question_id, model.name, PROBE, method, unusable=reason)
        return
    known = METHODS if model.gives_letters() else (BY_TEXT,)
    wanted = known_methods(model, methods, known)
    shown = Examples(examples, shots, seed, lambda one: _example(one, most, seed))
    started = time.perf_counter()
    asked: list[_Asked] = []
    for question in questions:
        problem = _problem(question)
        if problem is not None:
            for method in wanted:
                yield Answer(question.question_id, model.name, PROBE, method, unusable=problem)
            continue
        choices = drawn_choices(question, most, seed)
        lists = [
            _List(
                order_of(question, choices, number, orders, seed),
                letters_of(question, len(choices), number, seed) if mixed_letters else LETTERS[: len(choices)],
            )
            for number in range(orders)
        ]
        asked.append(_Asked(question, choices, lists))
    requests = [
        ChatRequest(
            conversation(shown.of(one.question.task), choose_text(one.question, own.choices, own.letters)),
            LENGTH if BY_TEXT in wanted else 1,
            LETTERS[: len(own.choices)] if BY_LETTERS in wanted else (),
        )
        for one in asked
        for own in one.lists
    ]
    for place, replies in _together(model.reply(requests), orders):
        seconds = (time.perf_counter() - started) / max(1, len(questions))
        for method in wanted:
            yield _answer(model, asked[place], replies, method, seconds)


choose.needs_chat = True  # type: ignore[attr-defined]


def drawn_choices(question: Question, most: int, seed: int) -> tuple[str, ...]:
    """The candidates that are shown: all if they are few; else what was left out and wrong ones that are drawn."""
    candidates = tuple(dict.fromkeys(question.candidates))
    if len(candidates) <= most:
        return candidates
    right = set(question.answers)
    target = question.target if question.target in candidates else next(c for c in candidates if c in right)
    wrong = sorted(set(candidates) - right)
    drawn = random.Random(derived_seed("choices", seed, question.question_id)).sample(wrong, min(most - 1, len(wrong)))
    return (target, *drawn)


def order_of(question: Question, choices: Sequence[str], number: int, orders: int, seed: int) -> tuple[str, ...]:
    """The order in which choices are shown for the so-many-eth time: one that is drawn, turned on evenly."""
    drawn = sorted(choices)
    random.Random(derived_seed("order of choices", seed, question.question_id)).shuffle(drawn)
    turned = number * len(drawn) // orders
    return (*drawn[turned:], *drawn[:turned])


def letters_of(question: Question, count: int, number: int, seed: int) -> tuple[str, ...]:
    """The letters before the choices of one order, drawn."""
    letters = list(LETTERS[:count])
    random.Random(derived_seed("letters of choices", seed, question.question_id, number)).shuffle(letters)
    return tuple(letters)


@dataclass(frozen=True)
class _List:
    """The choices in one order, and the letters before them."""

    choices: tuple[str, ...]
    letters: tuple[str, ...]


@dataclass(frozen=True)
class _Asked:
    """A question with the choices that are shown, and the lists in which they are."""

    question: Question
    choices: tuple[str, ...]
    lists: list[_List]


def _check(orders: int, most: int) -> None:
    if orders < 1:
        raise InputError(f"orders is {orders}, and should be 1 or more")
    if not 2 <= most <= len(LETTERS):
        raise InputError(f"most is {most}, and there are letters for 2 to {len(LETTERS)} choices")


def _problem(question: Question) -> str | None:
    reason = compares_senses(question)
    if reason is None and not set(question.answers) & set(question.candidates):
        return "no right answer among the candidates"
    if reason is None and len(set(question.candidates)) < 2:
        return "there is one candidate alone"
    return reason


def _example(question: Question, most: int, seed: int) -> tuple[str, str]:
    choices = order_of(question, drawn_choices(question, most, seed), 0, 1, seed)
    place = next(place for place, choice in enumerate(choices) if choice in question.answers)
    return choose_text(question, choices), LETTERS[place]


def _together(replies: Iterable[ChatReply], orders: int) -> Iterator[tuple[int, list[ChatReply]]]:
    """The replies to a question's orders, as soon as the last of them is there."""
    found: dict[int, list[ChatReply]] = {}
    for one in replies:
        own = found.setdefault(one.index // orders, [])
        own.append(one)
        if len(own) == orders:
            place = one.index // orders
            yield place, sorted(found.pop(place), key=lambda reply: reply.index)


def _answer(model: Model, one: _Asked, replies: Sequence[ChatReply], method: str, seconds: float) -> Answer:
    unusable = next((reply.unusable for reply in replies if reply.unusable is not None), None)
    plain = Answer(one.question.question_id, model.name, PROBE, method, seconds=seconds)
    if unusable is not None:
        return replace(plain, unusable=unusable)
    scored = [_scores(one, own, reply, method) for own, reply in zip(one.lists, replies, strict=True)]
    count = len(one.choices)
    plain = replace(
        plain,
        among=None if count == len(one.question.candidates) else count,
        replies=tuple(reply.text for reply in replies),
        **_places(one, [place for _, place, _ in scored]),
    )
    heard = [scores for scores, _, _ in scored if scores is not None]
    golds = tuple(choice for choice in one.choices if choice in one.question.answers)
    if not heard:
        outcome = REFUSED if all(outcome == REFUSED for _, _, outcome in scored) else NO_ANSWER
        last = tuple(float(count - place) for place in range(len(golds)))
        return replace(plain, outcome=outcome, golds=golds, gold_ranks=last, gold_ties=(1,) * len(golds))
    shown = replace(one.question, candidates=one.choices)
    means = np.sum(heard, axis=0) / len(one.lists)
    (found,) = ranked_answers(model, PROBE, [shown], [CandidateScores(0, {method: means})], [method], seconds)
    kept = ("among", "replies", "positions", "right_positions", "letters", "right_letters")
    return replace(found, outcome=ANSWERED, **{name: getattr(plain, name) for name in kept})


def _places(one: _Asked, chosen_at: Sequence[int | None]) -> dict[str, Any]:
    """Where what was chosen and what is right stood in each list, and by which letters."""
    right = [own.choices.index(_right(one)) for own in one.lists]
    return {
        "positions": tuple(chosen_at),
        "right_positions": tuple(right),
        "letters": tuple(
            None if place is None else own.letters[place] for own, place in zip(one.lists, chosen_at, strict=True)
        ),
        "right_letters": tuple(own.letters[place] for own, place in zip(one.lists, right, strict=True)),
    }


def _right(one: _Asked) -> str:
    """The right choice: what was left out, or the first that is right."""
    golds = [choice for choice in one.choices if choice in one.question.answers]
    return one.question.target if one.question.target in golds else golds[0]


def _scores(one: _Asked, shown: _List, reply: ChatReply, method: str) -> tuple[FloatArray | None, int | None, str]:
    """The score of each choice by one reply, the place of the one that was chosen, and what the reply comes to."""
    choices, letters = shown.choices, shown.letters
    if method == BY_LETTERS and reply.letters:
        least = min(reply.letters.values())
        shares = np.array([reply.letters.get(letter, least - 1.0) for letter in letters])
        shares = np.exp(shares - np.max(shares))
        by_choice = dict(zip(choices, shares / shares.sum(), strict=True))
        return np.array([by_choice[choice] for choice in one.choices]), int(np.argmax(shares)), ANSWERED
    said = chosen(reply, letters, choices)
    if said.text is None:
        return None, None, said.outcome
    votes = np.array([float(choice == said.text) for choice in one.choices])
    return votes, choices.index(said.text), ANSWERED
