"""Probe ``answer``, in which a chat model fills the blank in its own words."""

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
    """Ask the model to fill each question's blank in its own words.

    The metrics ``exact`` and ``f1`` compare the words of the reply with those of each right answer. A reply without an
    answer, or a refusal, counts as wrong; ``outcome`` tells the two apart.

    Args:
        model: A chat model; any other model gives unusable answers.
        questions: The questions to ask.
        methods: Empty, or ``answer``, the only method.
        shots: The number of few-shot examples before each question.
        seed: The seed for drawing few-shot examples.
        examples: The questions from which few-shot examples are drawn.
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
