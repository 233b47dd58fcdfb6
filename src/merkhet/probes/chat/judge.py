"""Probe ``judge``, in which a chat model decides whether a statement is true."""

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
    """A prompt with a statement to judge, or with a question that has two candidates."""

    right: str = ""
    """The right verdict."""
    verdicts: tuple[tuple[str, ...], ...] = ()
    """The two possible verdicts, each a tuple of names; answers record the first name."""


def judge(
    model: Model,
    questions: Sequence[Question],
    methods: Sequence[str] = (),
    *,
    shots: NonNegativeInt = 0,
    seed: int = 0,
    examples: Sequence[Question] = (),
) -> Iterator[Answer]:
    """Ask the model to judge statements.

    A question with two candidates (such as true and false, or yes and no) is asked as it is. Any other question becomes
    two statements: one with the right answer in its slot, one with a random wrong candidate. The question's score is
    the mean over both statements. A reply without a verdict, or a refusal, counts as wrong; ``outcome`` tells the two
    apart.

    Args:
        model: A chat model; any other model gives unusable answers.
        questions: The questions to ask.
        methods: Empty, or ``judge``, the only method.
        shots: The number of few-shot examples before each statement.
        seed: The seed for drawing few-shot examples and wrong candidates.
        examples: The questions from which few-shot examples are drawn.
    """
    few_shot = FewShotExamples(examples, shots, seed, lambda example: _format_example(example, seed))

    def make_prompts(question: Question) -> list[_Statement] | str:
        return make_statements(question, seed) or "there is no wrong candidate to make a false statement of"

    return ask_by_chat(model, "judge", questions, methods, few_shot, MAX_TOKENS, make_prompts, _parse_reply)


judge.needs_chat = True  # type: ignore[attr-defined]


def make_statements(question: Question, seed: int) -> list[_Statement]:
    """Turn a question into a true and a false statement; a question with two candidates is asked as it is.

    The list is empty if the question has no wrong candidate.
    """
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
    # The hash gives about as many true as false examples.
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
