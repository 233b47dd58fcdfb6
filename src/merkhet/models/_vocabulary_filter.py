"""Filter of candidates that a model's vocabulary cannot represent; they are ranked last without being scored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from merkhet.core.records import Question
from merkhet.models.protocol import FloatArray, IntArray
from merkhet.models.tokenize_candidates import CandidateTokenizer

MAX_SHARE = 0.1
"""The maximum share of a list that is ranked last without a score; beyond it, the question is unusable."""


def drop_unwritable(
    tokenizer: CandidateTokenizer, questions: Sequence[Question]
) -> tuple[list[Question], dict[int, IntArray]]:
    """Drop candidates with unknown tokens from the questions' lists.

    A model cannot prefer a candidate that its vocabulary cannot represent, so a wrong one is ranked last. At most
    ``MAX_SHARE`` of a list is dropped, because a question must not become easy for a model that lacks words. If a
    right answer would be dropped, the list stays unchanged, and the question later becomes unusable.

    Returns:
        All questions, and for the index of each shortened question the indices of its remaining candidates.
    """
    shortened, remaining = [], {}
    for index, question in enumerate(questions):
        writable = _writable_indices(tokenizer, question.candidates)
        if writable is not None:
            candidates = tuple(question.candidates[position] for position in writable)
            if set(question.answers) & set(question.candidates) <= set(candidates):
                question, remaining[index] = replace(question, candidates=candidates), writable
        shortened.append(question)
    return shortened, remaining


def restore_dropped(scores: Mapping[str, FloatArray], remaining: IntArray | None, count: int) -> dict[str, FloatArray]:
    """Extend scores to all ``count`` candidates; the dropped candidates share one score below the lowest."""
    if remaining is None:
        return dict(scores)
    restored = {}
    for method, values in scores.items():
        restored[method] = np.full(count, np.min(values) - 1.0)
        restored[method][remaining] = values
    return restored


def _writable_indices(tokenizer: CandidateTokenizer, candidates: tuple[str, ...]) -> IntArray | None:
    """Return the indices of candidates without unknown tokens; None if none, or too many, would be dropped."""
    if tokenizer.unknown is None or len(candidates) * MAX_SHARE < 1:
        return None
    if candidates not in tokenizer.writable_indices:
        encodings = tokenizer.backend.encode_batch(list(candidates), add_special_tokens=False)
        writable = [
            index for index, encoding in enumerate(encodings) if encoding.ids and tokenizer.unknown not in encoding.ids
        ]
        few_dropped = 0 < len(candidates) - len(writable) <= MAX_SHARE * len(candidates)
        tokenizer.writable_indices[candidates] = np.array(writable, dtype=np.int64) if few_dropped else None
    return tokenizer.writable_indices[candidates]
