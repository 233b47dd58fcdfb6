"""Questions with their answers that are shown before the one that is asked."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Sequence

from merkhet.core.errors import InputError
from merkhet.core.ids import derived_seed
from merkhet.core.records import Question

Shown = Sequence[tuple[str, str]]


class Examples:
    """So many examples for each task, drawn by the seed: the same for all questions of a task.

    Of each relation of the task one is shown before a second one is.
    """

    def __init__(
        self,
        questions: Sequence[Question],
        shots: int,
        seed: int,
        told: Callable[[Question], tuple[str, str]],
    ) -> None:
        if shots < 0:
            raise InputError(f"shots is {shots}, and should be 0 or more")
        self.shots, self.seed, self.told = shots, seed, told
        self.by_task: dict[str, list[Question]] = defaultdict(list)
        for question in questions if shots else ():
            self.by_task[question.task].append(question)
        self.shown: dict[str, Shown] = {}

    def of(self, task: str) -> Shown:
        """The examples of a task, each as what is asked and the right reply; refuses if there are too few."""
        if not self.shots:
            return ()
        if task not in self.shown:
            found = self.by_task[task]
            if len(found) < self.shots:
                raise InputError(
                    f"shots is {self.shots}, and there are {len(found)} training questions of the task {task}; ask "
                    "with fewer, or without"
                )
            self.shown[task] = [self.told(question) for question in self._drawn(found, task)]
        return self.shown[task]

    def _drawn(self, questions: Sequence[Question], task: str) -> list[Question]:
        draw = random.Random(derived_seed("examples", self.seed, task))
        rows = sorted(questions, key=lambda question: question.question_id)
        draw.shuffle(rows)
        turn: dict[str, int] = defaultdict(int)
        numbered = []
        for question in rows:
            numbered.append((turn[question.relation], question))
            turn[question.relation] += 1
        return [question for _, question in sorted(numbered, key=lambda one: one[0])[: self.shots]]
