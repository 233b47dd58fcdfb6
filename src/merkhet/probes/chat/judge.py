"""Probe ``judge``: the model says whether a statement is true."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from merkhet.core.ids import derived_seed
from merkhet.core.records import Answer, Question
from merkhet.core.settings import NonNegativeInt
from merkhet.models.chat.chat_messages import ChatReply
from merkhet.models.protocol import Model
from merkhet.probes.chat._chat_asking import ChatPrompt, ask_by_chat
from merkhet.probes.chat._chat_prompts import decide_prompt, judge_prompt, prompt_texts
from merkhet.probes.chat._few_shot import FewShotExamples
from merkhet.probes.chat._reply_parsing import ANSWERED, parse_verdict

MAX_TOKENS = 16


@dataclass(frozen=True)
class _Statement(ChatPrompt):
    """A statement to judge."""

    right: str = ""
    """The right verdict."""
    verdicts: tuple[tuple[str, ...], ...] = ()
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
        shots: The number of few-shot examples before a statement.
        seed: The seed of the draws of examples and of wrong candidates.
        examples: The questions that examples are drawn from.
    """
    few_shot = FewShotExamples(examples, shots, seed, lambda example: _format_example(example, seed))

    def make_prompts(question: Question) -> list[_Statement] | str:
        return make_statements(question, seed) or "there is no wrong candidate to make a false statement of"

    return ask_by_chat(model, "judge", questions, methods, few_shot, MAX_TOKENS, make_prompts, _parse_reply)


judge.needs_chat = True  # type: ignore[attr-defined]


def make_statements(question: Question, seed: int) -> list[_Statement]:
    """Make a true and a false statement of a question; a question with two candidates is asked as it is."""
    candidates = tuple(dict.fromkeys(question.candidates))
    texts = prompt_texts(question)
    if len(candidates) == 2:
        names = tuple((name,) for name in candidates)
        return [_Statement(question, decide_prompt(question), None, question.target, names)]
    wrong = sorted(set(candidates) - set(question.answers))
    if not wrong:
        return []
    drawn = random.Random(derived_seed("false statement", seed, question.question_id)).choice(wrong)
    verdicts = ((texts.true, *texts.also_true), (texts.false, *texts.also_false))
    return [
        _Statement(question, judge_prompt(question, question.target), 0, texts.true, verdicts),
        _Statement(question, judge_prompt(question, drawn), 1, texts.false, verdicts),
    ]


def _format_example(question: Question, seed: int) -> tuple[str, str]:
    statements = make_statements(question, seed)
    # The hash balances true and false examples approximately.
    statement = statements[derived_seed("true or false", seed, question.question_id) % len(statements)]
    return statement.prompt, statement.right


def _parse_reply(statement: _Statement, reply: ChatReply) -> dict[str, Any]:
    parsed = parse_verdict(reply, statement.verdicts)
    is_right = parsed.outcome == ANSWERED and parsed.text == statement.right
    return {
        "prediction": parsed.text,
        "golds": (statement.right,),
        "gold_ranks": (1.0 if is_right else 2.0,),
        "gold_ties": (1,),
        "among": 2,
        "outcome": parsed.outcome,
    }
