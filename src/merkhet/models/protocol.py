"""Protocols and results of models."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from merkhet.core.records import Question

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

ENDPOINT_PREFIX = "chat:"
"""The prefix of a model behind an endpoint: ``chat:NAME@URL``."""
LOCAL_CHAT_SETTINGS = ("system", "length")
"""The chat settings of a model on this machine."""
RANDOM_PREFIX = "random:"
"""The prefix of a model with random weights: ``random:2x128``."""
ANSWER_LENGTH = 8
"""The maximum number of tokens of a written answer; a masked model, trained or not, has as many masks in the slot."""


@dataclass(frozen=True)
class CandidateScores:
    """Scores of one question's candidates by each method, or the reason why there are none."""

    index: int
    """The index of the question in the list that was asked."""
    by_method: dict[str, FloatArray] | None = None
    """For each method the scores of all candidates, higher for likelier ones."""
    unusable: str | None = None
    """Why the question cannot be asked."""
    repeat: int | None = None
    """The number of the repeat, where a model asks a question several times (pseudowords, random orders)."""


def refuse_questions(questions: Sequence[Question], reason: str) -> Iterator[CandidateScores]:
    """Mark every question as unusable."""
    return (CandidateScores(index, unusable=reason) for index in range(len(questions)))


@runtime_checkable
class Model(Protocol):
    """A language model or a baseline."""

    name: str
    kind: str
    fingerprint: str
    """A hash of everything that decides its answers (weights, tokenizer, settings); part of cache keys."""
    methods: tuple[str, ...]
    """The methods to score a candidate, the default first."""

    def score_candidates(self, questions: Sequence[Question], methods: Sequence[str]) -> Iterator[CandidateScores]:
        """Score every candidate of every question, in any order."""

    def describe(self) -> dict[str, str | int | float]:
        """Describe the model for the record of a run: parameters, dtype, device."""


@dataclass(frozen=True)
class FilledSlot:
    """The ranking of a model's vocabulary in a question's slot, or the reason why there is none."""

    index: int
    pieces: tuple[tuple[str, float], ...] = ()
    """The likeliest tokens of the vocabulary with their log-probabilities."""
    golds: tuple[str, ...] = ()
    """The right answers that are single tokens."""
    gold_ranks: tuple[float, ...] = ()
    """The expected rank of each under random tie-breaks."""
    gold_ties: tuple[int, ...] = ()
    """How many tokens share the score of each, itself included."""
    among: int = 0
    """The size of the ranked vocabulary."""
    unusable: str | None = None


@runtime_checkable
class FillsSlots(Protocol):
    """A model that ranks its whole vocabulary in a slot."""

    def fill_slots(self, questions: Sequence[Question], count: int) -> Iterator[FilledSlot]:
        """Rank the vocabulary in each slot and list the ``count`` likeliest tokens, in any order."""


@dataclass(frozen=True)
class WrittenAnswer:
    """The text that a model wrote into a question's slot by a method, or the reason why there is none."""

    index: int
    method: str
    text: str = ""
    score: float = 0.0
    """The mean log-probability of the text's tokens, or a baseline's score."""
    unusable: str | None = None
    alternatives: tuple[str, ...] = ()
    """Further answers with the same score; the best of all counts."""


@runtime_checkable
class WritesAnswers(Protocol):
    """A model that writes text into a slot."""

    writing_methods: tuple[str, ...]
    """The methods to write an answer, the default first."""

    def write_answers(
        self, questions: Sequence[Question], methods: Sequence[str], length: int = ANSWER_LENGTH
    ) -> Iterator[WrittenAnswer]:
        """Write an answer of at most ``length`` tokens for each question and method, in any order."""


@runtime_checkable
class ComparesSenses(Protocol):
    """A model that compares the sense of a word in one sentence with words in other sentences."""

    comparing_methods: tuple[str, ...]
    """The methods to compare senses, the default first.

    Some represent several (``word@all``: all layers), so results may have more methods than requested.
    """

    def compare_senses(self, questions: Sequence[Question], methods: Sequence[str]) -> Iterator[CandidateScores]:
        """Score the similarity of each prompt's word to each candidate's, by every method, in any order."""


@runtime_checkable
class NeedsAllQuestions(Protocol):
    """A model that must see all questions of a run before the first is asked (the frequency baseline)."""

    def prepare(self, questions: Sequence[Question], frequencies: Sequence[Mapping[str, Any]]) -> None:
        """Prepare for a run; frequencies are rows of task, relation, answer and count, if the suite has them."""
