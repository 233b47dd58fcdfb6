"""Candidates that a vocabulary cannot write: a few of a long list stand last, and are not put through the model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from merkhet.core.records import Question
from merkhet.models.protocol import FloatArray, IntArray
from merkhet.models.tokenize_candidates import CandidateTokenizer

MOST = 0.1
"""The share of a list that may stand last; where it is more, the question cannot be asked."""


def without_unwritable(
    candidate_tokenizer: CandidateTokenizer, questions: Sequence[Question]
) -> tuple[list[Question], dict[int, IntArray]]:
    """The questions with the candidates that can be written, and for those with fewer the places of the kept ones.

    A model cannot prefer what it cannot write, so that wrong answers of this kind may stand last; but only a few, lest
    a question become easy by what a model does not know. A right answer that cannot be written leaves the list as it
    is, and the question unusable.
    """
    asked, kept = [], {}
    for index, question in enumerate(questions):
        places = _kept_places(candidate_tokenizer, question.candidates)
        if places is not None:
            candidates = tuple(question.candidates[place] for place in places)
            if set(question.answers) & set(question.candidates) <= set(candidates):
                question, kept[index] = replace(question, candidates=candidates), places
        asked.append(question)
    return asked, kept


def with_the_rest_last(scores: Mapping[str, FloatArray], places: IntArray | None, count: int) -> dict[str, FloatArray]:
    """The scores of all candidates from those of the kept ones: the others are below the lowest, and tied."""
    if places is None:
        return dict(scores)
    found = {}
    for method, own in scores.items():
        found[method] = np.full(count, np.min(own) - 1.0)
        found[method][places] = own
    return found


def _kept_places(candidate_tokenizer: CandidateTokenizer, candidates: tuple[str, ...]) -> IntArray | None:
    """The places of the candidates that can be written; None where that is all, or too few."""
    if candidate_tokenizer.unknown is None or len(candidates) * MOST < 1:
        return None
    if candidates not in candidate_tokenizer.kept_places:
        encodings = candidate_tokenizer.backend.encode_batch(list(candidates), add_special_tokens=False)
        known = [place for place, one in enumerate(encodings) if one.ids and candidate_tokenizer.unknown not in one.ids]
        few = 0 < len(candidates) - len(known) <= MOST * len(candidates)
        candidate_tokenizer.kept_places[candidates] = np.array(known, dtype=np.int64) if few else None
    return candidate_tokenizer.kept_places[candidates]
