"""Requests of the probes ``answer`` and ``judge``, in which each prompt gets one reply and one answer."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from merkhet.core.records import Answer, Question
from merkhet.models.chat.chat_messages import ChatModel, ChatReply, ChatRequest
from merkhet.models.protocol import Model
from merkhet.probes.chat._chat_prompts import build_messages
from merkhet.probes.chat._few_shot import FewShotExamples
from merkhet.probes.probe_support import find_slot_problem, select_methods


@dataclass(frozen=True)
class ChatPrompt:
    """The text of a prompt, and the question that it asks."""

    question: Question
    prompt: str
    repeat: int | None = None


Prompt = TypeVar("Prompt", bound=ChatPrompt)


def describe_refusal(model: Model) -> str:
    """Return the reason why chat probes cannot ask a model that is not a chat model."""
    return f"a model of the kind {model.kind} cannot be talked to"


def ask_by_chat(
    model: Model,
    probe: str,
    questions: Sequence[Question],
    methods: Sequence[str],
    few_shot: FewShotExamples,
    max_tokens: int,
    make_prompts: Callable[[Question], Sequence[Prompt] | str],
    parse_reply: Callable[[Prompt, ChatReply], dict[str, Any]],
) -> Iterator[Answer]:
    """Ask a chat model questions by a probe that has a single method, and parse the replies.

    ``make_prompts`` returns the prompts of a question, or the reason why it cannot be asked. ``parse_reply`` turns a
    reply into fields of an answer.
    """
    select_methods(model, methods, (probe,))
    prompts: list[Prompt] = []
    for question in questions:
        made = find_slot_problem(question) or make_prompts(question)
        if not isinstance(model, ChatModel):
            made = describe_refusal(model)
        if isinstance(made, str):
            yield Answer(question.question_id, model.name, probe, probe, unusable=made)
        else:
            prompts += made
    if not prompts or not isinstance(model, ChatModel):
        return
    started = time.perf_counter()
    requests = [
        ChatRequest(build_messages(few_shot.for_task(prompt.question.task), prompt.prompt), max_tokens)
        for prompt in prompts
    ]
    for reply in model.reply(requests):
        prompt = prompts[reply.index]
        seconds = (time.perf_counter() - started) / len(prompts)
        answer = Answer(prompt.question.question_id, model.name, probe, probe, repeat=prompt.repeat, seconds=seconds)
        if reply.unusable is not None:
            yield replace(answer, unusable=reply.unusable)
        else:
            yield replace(answer, replies=(reply.text,), **parse_reply(prompt, reply))
