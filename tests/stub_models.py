"""Stub models whose scores are known: one that ties all candidates, one that guesses, and one that is always right."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from merkhet.core.ids import digest
from merkhet.core.records import Question
from merkhet.models.baselines import RandomBaseline
from merkhet.models.protocol import CandidateScores


class Guesser(RandomBaseline):
    """A model that draws scores, by two methods."""

    kind = "stub"
    methods: tuple[str, ...] = ("first", "second")
    writing_methods = comparing_methods = methods

    def __init__(self, name: str, seed: int = 0) -> None:
        super().__init__(name, seed)
        self.fingerprint = digest(["stub", name, seed])


class Constant(Guesser):
    def score_candidates(self, questions: Sequence[Question], methods: Sequence[str]) -> Iterator[CandidateScores]:
        for index, question in enumerate(questions):
            yield CandidateScores(index, {method: np.zeros(len(question.candidates)) for method in methods})


class Perfect(Guesser):
    def score_candidates(self, questions: Sequence[Question], methods: Sequence[str]) -> Iterator[CandidateScores]:
        for index, question in enumerate(questions):
            is_right = np.array([float(text in question.answers) for text in question.candidates])
            yield CandidateScores(index, dict.fromkeys(methods, is_right))


class TwoFaced(Perfect):
    """Always right by its first method, and always wrong by its second."""

    def score_candidates(self, questions: Sequence[Question], methods: Sequence[str]) -> Iterator[CandidateScores]:
        for scores in super().score_candidates(questions, methods):
            signs = {method: -1.0 if method == "second" else 1.0 for method in methods}
            by_method = {method: signs[method] * scores.by_method[method] for method in methods}
            yield CandidateScores(scores.index, by_method)


def constant() -> Constant:
    return Constant("constant")


def guesser() -> Guesser:
    return Guesser("guesser", 1)


def perfect() -> Perfect:
    return Perfect("perfect")


def two_faced() -> TwoFaced:
    return TwoFaced("two-faced")
