"""What all probes have in common."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from gnomon.foundation import InputError, did_you_mean
from gnomon.foundation.records import Answer, Question
from gnomon.models import Model

KEPT = 25
"""How many ranked candidates an answer keeps."""


class Probe(Protocol):
    """What a probe is: a function from a model and questions to answers, one for each question and method."""

    def __call__(self, model: Model, questions: Sequence[Question], methods: Sequence[str] = ()) -> Iterator[Answer]:
        """Ask the questions, in any order."""


def known_methods(model: Model, wanted: Sequence[str], known: Sequence[str]) -> tuple[str, ...]:
    """The methods to use: those asked for, or the first known one; refuses what is not known."""
    for method in wanted:
        if method not in known:
            raise InputError(f"{model.name} has no method {method!r}; {did_you_mean(method, known)}")
    return tuple(wanted) or tuple(known[:1])
