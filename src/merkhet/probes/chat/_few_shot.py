"""Few-shot examples of chat probes."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Sequence

from merkhet.core.errors import InputError
from merkhet.core.ids import derived_seed
from merkhet.core.records import Question
from merkhet.core.settings import NonNegativeInt, check_value

ExampleTurns = Sequence[tuple[str, str]]
"""Few-shot examples, each a prompt and the right reply."""


class FewShotExamples:
    """Few-shot examples of each task, drawn at random from ``questions``.

    All questions of a task get the same examples. Every relation of the task gets one example before any relation gets
    a second one. ``format_example`` turns a question into a prompt and the right reply.
    """

    def __init__(
        self,
        questions: Sequence[Question],
        shots: int,
        seed: int,
        format_example: Callable[[Question], tuple[str, str]],
    ) -> None:
        check_value("shots", NonNegativeInt, shots)
        self.shots, self.seed, self.format_example = shots, seed, format_example
        self.by_task: dict[str, list[Question]] = defaultdict(list)
        for question in questions if shots else ():
            self.by_task[question.task].append(question)
        self._turns: dict[str, ExampleTurns] = {}

    def for_task(self, task: str) -> ExampleTurns:
        """Return the examples of a task; raise InputError if the task has fewer than ``shots`` questions."""
        if not self.shots:
            return ()
        if task not in self._turns:
            questions = self.by_task[task]
            if len(questions) < self.shots:
                raise InputError(
                    f"shots must be ≤ {len(questions)}, the number of training questions of the task {task}, "
                    f"got {self.shots}"
                )
            self._turns[task] = [self.format_example(question) for question in self._draw(questions, task)]
        return self._turns[task]

    def _draw(self, questions: Sequence[Question], task: str) -> list[Question]:
        shuffled = sorted(questions, key=lambda question: question.question_id)
        random.Random(derived_seed("examples", self.seed, task)).shuffle(shuffled)
        counts: dict[str, int] = defaultdict(int)
        rounds = []
        for question in shuffled:
            rounds.append((counts[question.relation], question))
            counts[question.relation] += 1
        return [question for _, question in sorted(rounds, key=lambda pair: pair[0])[: self.shots]]
