"""The probe ``rank``: every candidate scored in its sentence, right answers ranked by expectation under ties."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

import numpy as np

from gnomon.foundation.records import Answer, Question
from gnomon.models import Model
from gnomon.models.protocol import FloatArray
from gnomon.probes.asking import KEPT, known_methods
from gnomon.scores import expected_ranks


def rank_candidates(model: Model, questions: Sequence[Question], methods: Sequence[str] = ()) -> Iterator[Answer]:
    """Rank the candidates of each question by the model's scores; without methods, by the model's usual one.

    A question that the model cannot be asked gives an answer that says why (``unusable``), never none.
    """
    wanted = known_methods(model, methods, model.methods)
    started = time.perf_counter()
    scored = list(model.score_candidates(questions, wanted))
    seconds = (time.perf_counter() - started) / max(1, len(questions))
    for result in sorted(scored, key=lambda result: result.index):
        question = questions[result.index]
        for method in wanted:
            if result.by_method is None:
                yield Answer(
                    question.question_id, model.name, "rank", method, unusable=result.unusable, seconds=seconds
                )
            else:
                yield _answer(model, question, method, result.by_method[method], seconds)


def _answer(model: Model, question: Question, method: str, scores: FloatArray, seconds: float) -> Answer:
    right = set(question.answers)
    golds = np.array([i for i, text in enumerate(question.candidates) if text in right], dtype=np.int64)
    if not len(golds) or not np.all(np.isfinite(scores)):
        reason = "no right answer among the candidates" if not len(golds) else "a score is not a number"
        return Answer(question.question_id, model.name, "rank", method, unusable=reason, seconds=seconds)
    ranks, ties = expected_ranks(scores, golds)
    order = _best(scores, question.candidates)
    return Answer(
        question_id=question.question_id,
        model=model.name,
        probe="rank",
        method=method,
        prediction=question.candidates[order[0]],
        ranked=tuple((question.candidates[i], float(scores[i])) for i in order),
        golds=tuple(question.candidates[i] for i in golds),
        gold_ranks=tuple(float(rank) for rank in ranks),
        gold_ties=tuple(int(size) for size in ties),
        seconds=seconds,
    )


def _best(scores: FloatArray, candidates: Sequence[str]) -> list[int]:
    """The first candidates in the order of their scores, those that are tied by their texts."""
    if len(scores) > KEPT:
        least = np.partition(scores, -KEPT)[-KEPT]
        places: Sequence[int] = np.flatnonzero(scores >= least).tolist()
    else:
        places = range(len(scores))
    return sorted(places, key=lambda i: (-scores[i], candidates[i]))[:KEPT]
