"""Probe ``judge``: the model says whether a statement is true."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from merkhet.core.ids import derived_seed
from merkhet.core.records import Answer, Question
from merkhet.core.settings import NonNegativeInt
from merkhet.models.chat.chat_messages import ChatModel, ChatReply, ChatRequest
from merkhet.models.protocol import Model
from merkhet.probes.chat._chat_prompts import build_messages, decide_prompt, judge_prompt, prompt_texts
from merkhet.probes.chat._few_shot import FewShotExamples
from merkhet.probes.chat._reply_parsing import ANSWERED, parse_verdict
from merkhet.probes.probe_support import find_slot_problem, select_methods

PROBE = METHOD = "judge"
MAX_TOKENS = 16


@dataclass(frozen=True)
class _Statement:
    """A statement to judge."""

    question: Question
    repeat: int | None
    prompt: str
    right: str
    """The right verdict."""
    verdicts: tuple[tuple[str, ...], tuple[str, ...]]
    """The two verdicts, each with its names; the first name is recorded."""


def judge(
    model: Model,
    questions: Sequence[Question],
    methods: Sequence[str] = (),
    *,
    shots: NonNegativeInt = 0,
    seed: int = 0,
    examples: Sequence[Question] = (),
) -> Iterator[Answer]:
    """Let the model judge statements.

    A question with two candidates (true and false, yes and no) is asked as it is. Any other is judged twice: with the
    right answer in its slot, and with a wrong candidate that is drawn; its score is the mean. A reply without a
    verdict, or a refusal, is wrong and has its own ``outcome``.

    Args:
        model: A chat model.
        questions: The questions.
        methods: ``judge`` or nothing.
        shots: How many few-shot examples precede a statement.
        seed: The seed of their draw, and of the draw of wrong candidates.
        examples: The questions that examples are drawn from.
    """
    select_methods(model, methods, (METHOD,))
    few_shot = FewShotExamples(examples, shots, seed, lambda example: _format_example(example, seed))
    statements: list[_Statement] = []
    for question in questions:
        reason = find_slot_problem(question)
        if not isinstance(model, ChatModel):
            reason = f"a model of the kind {model.kind} cannot be talked to"
        question_statements = [] if reason else make_statements(question, seed)
        statements += question_statements
        if not question_statements:
            reason = reason or "there is no wrong candidate to make a false statement of"
            yield Answer(question.question_id, model.name, PROBE, METHOD, unusable=reason)
    if not statements or not isinstance(model, ChatModel):
        return
    started = time.perf_counter()
    requests = [
        ChatRequest(build_messages(few_shot.for_task(statement.question.task), statement.prompt), MAX_TOKENS)
        for statement in statements
    ]
    for reply in model.reply(requests):
        seconds = (time.perf_counter() - started) / len(statements)
        yield _make_answer(model.name, statements[reply.index], reply, seconds)


judge.needs_chat = True  # type: ignore[attr-defined]


def make_statements(question: Question, seed: int) -> list[_Statement]:
    """Make the statements of a question: itself if it has two candidates, else a true and a false one."""
    candidates = tuple(dict.fromkeys(question.candidates))
    texts = prompt_texts(question)
    if len(candidates) == 2:
        first, second = ((name,) for name in candidates)
        return [_Statement(question, None, decide_prompt(question), question.target, (first, second))]
    wrong = sorted(set(candidates) - set(question.answers))
    if not wrong:
        return []
    drawn = random.Random(derived_seed("false statement", seed, question.question_id)).choice(wrong)
    verdicts = ((texts.true, *texts.also_true), (texts.false, *texts.also_false))
    return [
        _Statement(question, 0, judge_prompt(question, question.target), texts.true, verdicts),
        _Statement(question, 1, judge_prompt(question, drawn), texts.false, verdicts),
    ]


def _format_example(question: Question, seed: int) -> tuple[str, str]:
    statements = make_statements(question, seed)
    # The hash balances true and false examples approximately.
    statement = statements[derived_seed("true or false", seed, question.question_id) % len(statements)]
    return statement.prompt, statement.right


def _make_answer(model_name: str, statement: _Statement, reply: ChatReply, seconds: float) -> Answer:
    answer = Answer(statement.question.question_id, model_name, PROBE, METHOD, repeat=statement.repeat, seconds=seconds)
    if reply.unusable is not None:
        return replace(answer, unusable=reply.unusable)
    parsed = parse_verdict(reply, statement.verdicts)
    is_right = parsed.outcome == ANSWERED and parsed.text == statement.right
    return replace(
        answer,
        prediction=parsed.text,
        golds=(statement.right,),
        gold_ranks=(1.0 if is_right else 2.0,),
        gold_ties=(1,),
        among=2,
        outcome=parsed.outcome,
        replies=(reply.text,),
    )
