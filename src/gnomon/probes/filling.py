"""The probe ``fill``: the model's whole vocabulary ranked in the slot, nothing offered to it."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

from gnomon.foundation.records import Answer, Question
from gnomon.models import FillsSlots, Model
from gnomon.probes.asking import KEPT, known_methods

METHODS = ("mask",)


def fill_slots(model: Model, questions: Sequence[Question], methods: Sequence[str] = ()) -> Iterator[Answer]:
    """Fill each slot by one mask, and rank the right answers among all pieces of the model's vocabulary.

    An answer is right if it is a single piece; a question none of whose answers is one, or a model that has no mask to
    fill, gives an answer that says so (``unusable``), never none.
    """
    (method,) = known_methods(model, methods, METHODS)
    started = time.perf_counter()
    if not isinstance(model, FillsSlots):
        for question in questions:
            yield Answer(
                question.question_id, model.name, "fill", method, unusable=f"a {model.kind} model has no mask to fill"
            )
        return
    filled = list(model.fill_slots(questions, KEPT))
    seconds = (time.perf_counter() - started) / max(1, len(questions))
    for one in filled:
        yield Answer(
            question_id=questions[one.index].question_id,
            model=model.name,
            probe="fill",
            method=method,
            prediction=one.pieces[0][0] if one.pieces else None,
            ranked=one.pieces,
            golds=one.golds,
            gold_ranks=one.gold_ranks,
            gold_ties=one.gold_ties,
            among=one.among or None,
            unusable=one.unusable,
            seconds=seconds,
        )
