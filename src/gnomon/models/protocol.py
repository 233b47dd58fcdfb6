"""What every model is to the rest of the house."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from gnomon.foundation.records import Question

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class CandidateScores:
    """Scores of one question's candidates by each method asked for, or the reason why there are none.

    ``index`` is the place of the question in what was given; scores are higher for likelier candidates.
    """

    index: int
    by_method: dict[str, FloatArray] | None = None
    unusable: str | None = None


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


@runtime_checkable
class NeedsAllQuestions(Protocol):
    """A model that must see all the questions of a run before the first is asked (the frequency baseline)."""

    def prepare(self, questions: Sequence[Question], frequencies: Sequence[Mapping[str, Any]]) -> None:
        """Look at all the questions, and at rows of (task, relation, answer, count) where the suite knows them."""
