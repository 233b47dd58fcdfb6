"""The probe ``answer``: the model fills the blank in its own words."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

from merkhet.core import SLOT
from merkhet.core.records import Answer, Question
from merkhet.models.chat.chat_messages import ChatReply, ChatRequest, Converses
from merkhet.models.protocol import Model
from merkhet.probes.chat._chat_prompts import answer_text, conversation
from merkhet.probes.chat._few_shot import Examples
from merkhet.probes.chat._reply_parsing import written
from merkhet.probes.probe_support import compares_senses, known_methods

PROBE = METHOD = "answer"
LENGTH = 32


def answer(
    model: Model,
    questions: Sequence[Question],
    methods: Sequence[str] = (),
    *,
    shots: int = 0,
    seed: int = 0,
    examples: Sequence[Question] = (),
) -> Iterator[Answer]:
    """Let the model say what belongs in each slot; ``shots`` of the ``examples`` are shown before.

    Nothing is ranked: what was said is compared with every right answer, by words (``exact``, ``f1``). A reply that
    says nothing, or declines, is a wrong answer with its own ``outcome``.
    """
    known_methods(model, methods, (METHOD,))
    shown = Examples(examples, shots, seed, lambda one: (answer_text(one), one.target))
    asked: list[Question] = []
    for question in questions:
        reason = compares_senses(question)
        if not isinstance(model, Converses):
            reason = f"a model of the kind {model.kind} cannot be talked to"
        if reason is None:
            asked.append(question)
        else:
            yield Answer(question.question_id, model.name, PROBE, METHOD, unusable=reason)
    if not asked or not isinstance(model, Converses):
        return
    started = time.perf_counter()
    requests = [ChatRequest(conversation(shown.of(one.task), answer_text(one)), LENGTH) for one in asked]
    for reply in model.reply(requests):
        yield _answer(model.name, asked[reply.index], reply, (time.perf_counter() - started) / len(asked))


answer.needs_chat = True  # type: ignore[attr-defined]


def _answer(name: str, question: Question, reply: ChatReply, seconds: float) -> Answer:
    if reply.unusable is not None:
        return Answer(question.question_id, name, PROBE, METHOD, unusable=reply.unusable, seconds=seconds)
    before, after = question.prompt.split(SLOT)
    said = written(reply, before, after)
    return Answer(
        question.question_id,
        name,
        PROBE,
        METHOD,
        prediction=said.text or "",
        ranked=((said.text, 0.0),) if said.text else (),
        seconds=seconds,
        outcome=said.outcome,
        replies=(reply.text,),
    )
