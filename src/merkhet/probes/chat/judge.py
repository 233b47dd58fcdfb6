"""The probe ``judge``: the model says whether a statement is true."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from merkhet.core.ids import derived_seed
from merkhet.core.records import Answer, Question
from merkhet.models.chat.chat_messages import ChatReply, ChatRequest, Converses
from merkhet.models.protocol import Model
from merkhet.probes.chat._chat_prompts import conversation, decide_text, judge_text, words_for
from merkhet.probes.chat._few_shot import Examples
from merkhet.probes.chat._reply_parsing import ANSWERED, decided
from merkhet.probes.probe_support import compares_senses, known_methods

PROBE = METHOD = "judge"
LENGTH = 16


@dataclass(frozen=True)
class _Statement:
    """What is judged: ``names`` are the verdicts with their other names, the first of each is its own."""

    question: Question
    repeat: int | None
    text: str
    right: str
    names: tuple[tuple[str, ...], tuple[str, ...]]


def judge(
    model: Model,
    questions: Sequence[Question],
    methods: Sequence[str] = (),
    *,
    shots: int = 0,
    seed: int = 0,
    examples: Sequence[Question] = (),
) -> Iterator[Answer]:
    """Let the model judge statements; ``shots`` of the ``examples`` are shown before.

    A question with two candidates (true and false, yes and no) is asked as it is. Every other one is judged twice: with
    the right answer in its slot, and with a wrong candidate that is drawn by the ``seed``; its score is the mean.
    A reply that judges nothing, or declines, is wrong and has its own ``outcome``.
    """
    known_methods(model, methods, (METHOD,))
    shown = Examples(examples, shots, seed, lambda one: _example(one, seed))
    asked: list[_Statement] = []
    for question in questions:
        reason = compares_senses(question)
        if not isinstance(model, Converses):
            reason = f"a model of the kind {model.kind} cannot be talked to"
        made = [] if reason else statements(question, seed)
        asked += made
        if not made:
            reason = reason or "there is no wrong candidate to make a false statement of"
            yield Answer(question.question_id, model.name, PROBE, METHOD, unusable=reason)
    if not asked or not isinstance(model, Converses):
        return
    started = time.perf_counter()
    requests = [ChatRequest(conversation(shown.of(one.question.task), one.text), LENGTH) for one in asked]
    for reply in model.reply(requests):
        yield _answer(model.name, asked[reply.index], reply, (time.perf_counter() - started) / len(asked))


judge.needs_chat = True  # type: ignore[attr-defined]


def statements(question: Question, seed: int) -> list[_Statement]:
    """What is judged of a question: itself where it has two candidates, else a true and a false statement."""
    candidates = tuple(dict.fromkeys(question.candidates))
    words = words_for(question)
    if len(candidates) == 2:
        first, second = ((name,) for name in candidates)
        return [_Statement(question, None, decide_text(question), question.target, (first, second))]
    wrong = sorted(set(candidates) - set(question.answers))
    if not wrong:
        return []
    drawn = random.Random(derived_seed("false statement", seed, question.question_id)).choice(wrong)
    names = ((words.true, *words.also_true), (words.false, *words.also_false))
    return [
        _Statement(question, 0, judge_text(question, question.target), words.true, names),
        _Statement(question, 1, judge_text(question, drawn), words.false, names),
    ]


def _example(question: Question, seed: int) -> tuple[str, str]:
    made = statements(question, seed)
    # As many true statements as false ones are shown, more or less.
    one = made[derived_seed("true or false", seed, question.question_id) % len(made)]
    return one.text, one.right


def _answer(name: str, one: _Statement, reply: ChatReply, seconds: float) -> Answer:
    plain = Answer(one.question.question_id, name, PROBE, METHOD, repeat=one.repeat, seconds=seconds)
    if reply.unusable is not None:
        return replace(plain, unusable=reply.unusable)
    said = decided(reply, one.names)
    right = said.outcome == ANSWERED and said.text == one.right
    return replace(
        plain,
        prediction=said.text,
        golds=(one.right,),
        gold_ranks=(1.0 if right else 2.0,),
        gold_ties=(1,),
        among=2,
        outcome=said.outcome,
        replies=(reply.text,),
    )
