"""Probe ``answer``: the model fills the blank in its own words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from merkhet.core import SLOT
from merkhet.core.records import Answer, Question
from merkhet.core.settings import NonNegativeInt
from merkhet.models.chat.chat_messages import ChatReply
from merkhet.models.protocol import Model
from merkhet.probes.chat._chat_asking import ChatPrompt, ask_by_chat
from merkhet.probes.chat._chat_prompts import answer_prompt
from merkhet.probes.chat._few_shot import FewShotExamples
from merkhet.probes.chat._reply_parsing import parse_answer

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
        shots: The number of few-shot examples before a question.
        seed: The seed of the draw of examples.
        examples: The questions that they are drawn from.
    """
    few_shot = FewShotExamples(examples, shots, seed, lambda example: (answer_prompt(example), example.target))
    return ask_by_chat(model, "answer", questions, methods, few_shot, MAX_TOKENS, _make_prompts, _parse_reply)


answer.needs_chat = True  # type: ignore[attr-defined]


def _make_prompts(question: Question) -> list[ChatPrompt]:
    return [ChatPrompt(question, answer_prompt(question))]


def _parse_reply(prompt: ChatPrompt, reply: ChatReply) -> dict[str, Any]:
    parsed = parse_answer(reply, *prompt.question.prompt.split(SLOT))
    ranked = ((parsed.text, 0.0),) if parsed.text else ()
    return {"prediction": parsed.text or "", "ranked": ranked, "outcome": parsed.outcome}
