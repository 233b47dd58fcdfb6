"""Probe ``answer``: the model fills the blank in its own words."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

from merkhet.core import SLOT
from merkhet.core.records import Answer, Question
from merkhet.core.settings import NonNegativeInt
from merkhet.models.chat.chat_messages import ChatModel, ChatReply, ChatRequest
from merkhet.models.protocol import Model
from merkhet.probes.chat._chat_prompts import answer_prompt, build_messages
from merkhet.probes.chat._few_shot import FewShotExamples
from merkhet.probes.chat._reply_parsing import parse_answer
from merkhet.probes.probe_support import find_slot_problem, select_methods

PROBE = METHOD = "answer"
MAX_TOKENS = 32


def answer(
    model: Model,
    questions: Sequence[Question],
    methods: Sequence[str] = (),
    *,
    shots: NonNegativeInt = 0,
    seed: int = 0,
    examples: Sequence[Question] = (),
) -> Iterator[Answer]:
    """Let the model fill each blank in its own words.

    The reply is compared with every right answer by words (``exact``, ``f1``). A reply without an answer, or a refusal,
    is a wrong answer with its own ``outcome``.

    Args:
        model: A chat model.
        questions: The questions.
        methods: ``answer`` or nothing.
        shots: How many few-shot examples precede a question.
        seed: The seed of their draw.
        examples: The questions that they are drawn from.
    """
    select_methods(model, methods, (METHOD,))
    few_shot = FewShotExamples(examples, shots, seed, lambda example: (answer_prompt(example), example.target))
    usable: list[Question] = []
    for question in questions:
        reason = find_slot_problem(question)
        if not isinstance(model, ChatModel):
            reason = f"a model of the kind {model.kind} cannot be talked to"
        if reason is None:
            usable.append(question)
        else:
            yield Answer(question.question_id, model.name, PROBE, METHOD, unusable=reason)
    if not usable or not isinstance(model, ChatModel):
        return
    started = time.perf_counter()
    requests = [
        ChatRequest(build_messages(few_shot.for_task(question.task), answer_prompt(question)), MAX_TOKENS)
        for question in usable
    ]
    for reply in model.reply(requests):
        yield _make_answer(model.name, usable[reply.index], reply, (time.perf_counter() - started) / len(usable))


answer.needs_chat = True  # type: ignore[attr-defined]


def _make_answer(model_name: str, question: Question, reply: ChatReply, seconds: float) -> Answer:
    if reply.unusable is not None:
        return Answer(question.question_id, model_name, PROBE, METHOD, unusable=reply.unusable, seconds=seconds)
    before, after = question.prompt.split(SLOT)
    parsed = parse_answer(reply, before, after)
    return Answer(
        question.question_id,
        model_name,
        PROBE,
        METHOD,
        prediction=parsed.text or "",
        ranked=((parsed.text, 0.0),) if parsed.text else (),
        seconds=seconds,
        outcome=parsed.outcome,
        replies=(reply.text,),
    )
