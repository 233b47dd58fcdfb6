"""Protocols that models implement, and the results that their methods return."""

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
"""The prefix in the name of a model behind a chat endpoint: ``chat:NAME@URL``."""
LOCAL_CHAT_SETTINGS = ("system", "length")
"""The chat settings that apply to a model on this machine."""
RANDOM_PREFIX = "random:"
"""The prefix in the name of a model with random weights: ``random:2x128``."""
ASSOCIATION_PREFIX = "association:"
"""The prefix in the name of an association baseline: ``association:MODEL`` reads the embeddings of MODEL."""
ANSWER_LENGTH = 8
"""The maximum number of tokens of a written answer, and the number of masks in the slot of a masked model."""


NO_GOLD = "no right answer among the candidates"
"""The reason why a question cannot be ranked if none of its right answers is a candidate."""


@dataclass(frozen=True)
class CandidateScores:
    """Scores of one question's candidates by each method, or the reason why the question has no scores."""

    index: int
    """The index of the question in the list passed to the model."""
    by_method: dict[str, FloatArray] | None = None
    """For each method, the scores of all candidates; higher means likelier.

    A read-only array is ranked once for all questions that share it, in whatever block they are asked.
    """
    unusable: str | None = None
    """The reason why the model cannot be asked this question; None if it can."""
    repeat: int | None = None
    """The number of the repeat if a question is scored several times (pseudowords, random orders); else None."""


def refuse_questions(questions: Sequence[Question], reason: str) -> Iterator[CandidateScores]:
    """Mark every question as unusable for the same ``reason``."""
    return (CandidateScores(index, unusable=reason) for index in range(len(questions)))


@runtime_checkable
class Model(Protocol):
    """A language model or a baseline."""

    name: str
    kind: str
    fingerprint: str
    """A hash of everything that decides the model's answers (weights, tokenizer, settings); part of cache keys."""
    methods: tuple[str, ...]
    """The names of the methods that score candidates, the default first."""

    def score_candidates(self, questions: Sequence[Question], methods: Sequence[str]) -> Iterator[CandidateScores]:
        """Score every candidate of every question by each method; results come in any order."""

    def describe(self) -> dict[str, str | int | float]:
        """Describe the model (parameters, dtype, device) for the record of a run."""


@dataclass(frozen=True)
class RankedCandidates:
    """The best candidates of one question and the ranks of its right answers, without ties."""

    index: int
    """The index of the question in the list passed to the model."""
    method: str
    ranked: tuple[tuple[str, float], ...]
    """The best candidates with their scores."""
    golds: tuple[str, ...]
    """The right answers among the candidates."""
    gold_ranks: tuple[float, ...]
    """The rank of each answer in ``golds``."""


@runtime_checkable
class RanksCandidates(Protocol):
    """A model that ranks long lists of candidates without scoring each candidate."""

    def rank_candidates(
        self, questions: Sequence[Question], methods: Sequence[str], count: int
    ) -> Iterator[CandidateScores | RankedCandidates]:
        """Rank the candidates of each question as :meth:`Model.score_candidates` scores them.

        A question gets either its scores, or its ``count`` best candidates by each method.
        """


@dataclass(frozen=True)
class FilledSlot:
    """The ranking of a model's vocabulary in a question's slot, or the reason why it is missing."""

    index: int
    pieces: tuple[tuple[str, float], ...] = ()
    """The likeliest tokens of the vocabulary with their log-probabilities."""
    golds: tuple[str, ...] = ()
    """The right answers that are single tokens."""
    gold_ranks: tuple[float, ...] = ()
    """The rank of each token in ``golds``, expected under random tie-breaks."""
    gold_ties: tuple[int, ...] = ()
    """For each token in ``golds``, the number of tokens with the same score, itself included."""
    among: int = 0
    """The number of tokens that were ranked."""
    unusable: str | None = None


@runtime_checkable
class FillsSlots(Protocol):
    """A model that ranks its whole vocabulary in a slot."""

    def fill_slots(self, questions: Sequence[Question], count: int) -> Iterator[FilledSlot]:
        """Rank the vocabulary in each slot and return its ``count`` likeliest tokens; results come in any order."""


@dataclass(frozen=True)
class WrittenAnswer:
    """The text that a model wrote into a question's slot by one method, or the reason why it is missing."""

    index: int
    method: str
    text: str = ""
    score: float = 0.0
    """The mean log-probability of the text's tokens; for a baseline, the score of the written candidate."""
    unusable: str | None = None
    alternatives: tuple[str, ...] = ()
    """Further answers with the same score; only the best answer is evaluated."""


@runtime_checkable
class WritesAnswers(Protocol):
    """A model that writes text into a slot."""

    writing_methods: tuple[str, ...]
    """The names of the methods that write answers, the default first."""

    def write_answers(
        self, questions: Sequence[Question], methods: Sequence[str], length: int = ANSWER_LENGTH
    ) -> Iterator[WrittenAnswer]:
        """Write an answer of at most ``length`` tokens per question and method; results come in any order."""


@runtime_checkable
class ComparesSenses(Protocol):
    """A model that compares the sense of a word in one sentence with words in other sentences."""

    comparing_methods: tuple[str, ...]
    """The names of the methods that compare senses, the default first.

    A name such as ``word@all`` stands for one method per layer, so results may have more methods than requested.
    """

    def compare_senses(self, questions: Sequence[Question], methods: Sequence[str]) -> Iterator[CandidateScores]:
        """Score how similar the prompt's word is to each candidate's word; results come in any order."""


@runtime_checkable
class NeedsAllQuestions(Protocol):
    """A model that is prepared for all questions of a run before it answers one, such as the frequency baseline."""

    def prepare(self, questions: Sequence[Question], frequencies: Sequence[Mapping[str, Any]]) -> None:
        """Prepare for a run.

        Args:
            questions: All questions of the run, with their right answers. A baseline must not use these.
            frequencies: Answer counts as mappings with the keys task, relation, answer and count. They come from
                training questions or from facts that no question asks about; empty if there are none.
        """


@runtime_checkable
class NeedsPairs(Protocol):
    """A model that is prepared with the statements of training questions, such as baselines that compare names."""

    def prepare_pairs(self, pairs: Sequence[Mapping[str, Any]]) -> None:
        """Prepare for a run.

        Args:
            pairs: Statements that training questions ask a verdict on, as mappings with the keys task, relation, first,
                second (the names in the statement) and holds (whether it is true).
        """
