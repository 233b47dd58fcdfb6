"""Candidates that a vocabulary cannot write: a few of a long list stand last; else there is no answer."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from merkhet.core.records import Question
from merkhet.models.loading import load_model
from merkhet.probes.rank import rank_candidates

KNOWN = ("Paris", "Rome", "Berlin", "Poland", "capital", "city", "France", "Italy", "Spain", "Germany", "Austria")
QUESTION = Question("q", "t", "The capital of France is [MASK].", ("Paris",), "Paris", KNOWN)


@pytest.mark.parametrize("family", ["bert-cased", "bert-uncased"])
def test_a_few_unwritable_candidates_stand_last(model_folders: dict[str, Path], family: str) -> None:
    model = load_model(str(model_folders[family]))
    methods = model.methods[:3]
    with_one = replace(QUESTION, candidates=(*KNOWN[:4], "東", *KNOWN[4:]))
    plain, more = (next(iter(model.score_candidates([one], methods))) for one in (QUESTION, with_one))
    for method in methods:
        scores = more.by_method[method]
        np.testing.assert_array_equal(np.delete(scores, 4), plain.by_method[method])
        assert scores[4] < np.min(plain.by_method[method])
    (answer,) = rank_candidates(model, [with_one])
    assert answer.unusable is None
    assert answer.ranked[-1][0] == "東"


def test_more_than_a_tenth_or_a_right_one_makes_a_question_unusable(model_folders: dict[str, Path]) -> None:
    model = load_model(str(model_folders["bert-cased"]))
    cases = [
        replace(QUESTION, candidates=(*KNOWN, "東", "西")),  # Two of thirteen.
        replace(QUESTION, candidates=(*KNOWN[:8], "東")),  # One of nine.
        replace(QUESTION, candidates=(*KNOWN, "東"), answers=("Paris", "東")),
    ]
    for answer in rank_candidates(model, cases):
        assert answer.unusable is not None and "holds a token that this model does not know" in answer.unusable


def test_causal_models_leave_them_out_too(model_folders: dict[str, Path]) -> None:
    """Here one of the candidates is taken for unknown: the others are scored as if it had not been there."""
    model = load_model(str(model_folders["llama-sentencepiece"]))
    question = replace(QUESTION, candidates=(*KNOWN, "Rome or Paris"))
    model.candidate_tokenizer.writable_indices[question.candidates] = np.arange(len(KNOWN))
    methods = ("sum", "per-character", "sentence-mean")
    plain, more = (next(iter(model.score_candidates([one], methods))) for one in (QUESTION, question))
    for method in methods:
        np.testing.assert_allclose(more.by_method[method][:-1], plain.by_method[method], atol=1e-5)
        assert more.by_method[method][-1] < np.min(plain.by_method[method])
