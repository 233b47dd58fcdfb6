"""Questions that a model cannot tell apart: they are asked once, and each gets the answer by its right answers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from merkhet.core.records import Answer, Question
from merkhet.models.protocol import NO_GOLD

SHARING_PROBES = ("rank", "write")
"""Probes whose answers depend on the prompt and the candidates alone, and on right answers only to rank them."""


def ask_once(questions: Sequence[Question], ask: Callable[[Sequence[Question]], Iterable[Answer]]) -> Iterator[Answer]:
    """Ask one of the questions with equal prompts and candidates, and yield an answer to each.

    Args:
        ask: Function that asks questions and returns their answers.
    """
    groups: dict[tuple[str, tuple[str, ...]], list[Question]] = {}
    for question in questions:
        groups.setdefault((question.prompt, question.candidates), []).append(question)
    groups_by_id = {group[0].question_id: group for group in groups.values()}
    for answer in ask([_with_all_answers(group) for group in groups.values()]):
        group = groups_by_id[answer.question_id]
        yield from (_answer_to(question, answer) for question in group) if len(group) > 1 else [answer]


def _with_all_answers(group: Sequence[Question]) -> Question:
    """Return the first question of a group, with the right answers of all."""
    if len(group) == 1:
        return group[0]
    return replace(group[0], answers=tuple(dict.fromkeys(answer for question in group for answer in question.answers)))


def _answer_to(question: Question, shared: Answer) -> Answer:
    """Return the answer to one of the questions that share an answer."""
    answer = replace(shared, question_id=question.question_id)
    if not shared.golds:
        return answer
    right = set(question.answers)
    rows = [row for row, gold in enumerate(shared.golds) if gold in right]
    if not rows:
        return Answer(question.question_id, shared.model, shared.probe, shared.method, unusable=NO_GOLD)
    return replace(
        answer,
        golds=tuple(shared.golds[row] for row in rows),
        gold_ranks=tuple(shared.gold_ranks[row] for row in rows),
        gold_ties=tuple(shared.gold_ties[row] for row in rows),
    )
