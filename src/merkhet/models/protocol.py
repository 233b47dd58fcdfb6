"""What every model is to the rest of the house."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from merkhet.core.records import Question

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

ENDPOINT = "chat:"
"""The prefix of a model behind an endpoint: ``chat:NAME@URL``."""
LOCAL_CHAT = ("system", "length")
"""The chat settings that a model on this machine takes."""
RANDOM_WEIGHTS = "random:"
"""The prefix of a model with random weights: ``random:2x128``."""
ANSWER_LENGTH = 8
"""How many tokens a written answer has at most; a masked model has so many masks in the slot, tuned or not."""


@dataclass(frozen=True)
class CandidateScores:
    """Scores of one question's candidates by each method asked for, or the reason why there are none.

    ``index`` is the place of the question in what was given; scores are higher for likelier candidates. A model that
    asks a question several times (with other pseudowords, in other random orders) numbers them by ``repeat``.
    """

    index: int
    by_method: dict[str, FloatArray] | None = None
    unusable: str | None = None
    repeat: int | None = None


@runtime_checkable
class Model(Protocol):
    """A language model, or something that stands in for one.

    ``fingerprint`` is a hash of all that decides its answers (weights, tokenizer, settings): caches hold it.
    ``methods`` are the ways it can score a candidate, the usual one first.
    """

    name: str
    kind: str
    fingerprint: str
    methods: tuple[str, ...]

    def score_candidates(self, questions: Sequence[Question], methods: Sequence[str]) -> Iterator[CandidateScores]:
        """Score every candidate of every question, in whatever order is fastest."""

    def describe(self) -> dict[str, str | int | float]:
        """Facts about the model for the record of a run: parameters, dtype, device."""


@dataclass(frozen=True)
class FilledSlot:
    """What a model says in a question's slot when nothing is offered to it, or the reason why there is nothing.

    ``pieces`` are the likeliest pieces of its vocabulary with their log-probabilities; ``golds`` are the right
    answers that are such a piece, ``gold_ranks`` and ``gold_ties`` say where they stand among all (``among``).
    """

    index: int
    pieces: tuple[tuple[str, float], ...] = ()
    golds: tuple[str, ...] = ()
    gold_ranks: tuple[float, ...] = ()
    gold_ties: tuple[int, ...] = ()
    among: int = 0
    unusable: str | None = None


@runtime_checkable
class FillsSlots(Protocol):
    """A model that ranks its whole vocabulary in a slot."""

    def fill_slots(self, questions: Sequence[Question], count: int) -> Iterator[FilledSlot]:
        """The likeliest pieces for each slot, as many as asked for, in whatever order is fastest."""


@dataclass(frozen=True)
class WrittenAnswer:
    """What a model wrote into a question's slot by a method, or the reason why there is nothing.

    ``score`` is the mean log-probability of what was written, or a stand-in's score of it. ``others`` are further
    answers of equal standing, the best of which counts.
    """

    index: int
    method: str
    text: str = ""
    score: float = 0.0
    unusable: str | None = None
    others: tuple[str, ...] = ()


@runtime_checkable
class WritesAnswers(Protocol):
    """A model that writes what stands in a slot; ``writing_methods`` are the ways it can, the usual one first."""

    writing_methods: tuple[str, ...]

    def write_answers(
        self, questions: Sequence[Question], methods: Sequence[str], length: int = ANSWER_LENGTH
    ) -> Iterator[WrittenAnswer]:
        """Write an answer of at most so many tokens for each question and method, in any order."""


@runtime_checkable
class ComparesSenses(Protocol):
    """A model that says how near a word in one sentence is to words in others.

    ``comparing_methods`` are the ways it can, the usual one first; some stand for several (all layers), so the results
    may have more methods than were asked for.
    """

    comparing_methods: tuple[str, ...]

    def compare_senses(self, questions: Sequence[Question], methods: Sequence[str]) -> Iterator[CandidateScores]:
        """The similarity of the word in each prompt to the word in each candidate, by every method, in any order."""


@runtime_checkable
class NeedsAllQuestions(Protocol):
    """A model that must see all the questions of a run before the first is asked (the frequency baseline)."""

    def prepare(self, questions: Sequence[Question], frequencies: Sequence[Mapping[str, Any]]) -> None:
        """Look at all the questions, and at rows of (task, relation, answer, count) where the suite knows them."""
