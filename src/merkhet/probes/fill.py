"""The probe ``fill``: the model's whole vocabulary ranked in the slot, nothing offered to it."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

from merkhet.core.records import Answer, Question
from merkhet.models.protocol import FilledSlot, FillsSlots, Model
from merkhet.probes.probe_support import KEPT, compares_senses, known_methods, results_for

METHODS = ("mask",)


def fill_slots(model: Model, questions: Sequence[Question], methods: Sequence[str] = ()) -> Iterator[Answer]:
    """Fill each slot by one mask, and rank the right answers among all pieces of the model's vocabulary.

    An answer is right if it is a single piece; a question none of whose answers is one, or a model that has no mask to
    fill, gives an answer that says so (``unusable``), never none.
    """
    (method,) = known_methods(model, methods, METHODS)
    started = time.perf_counter()
    if not isinstance(model, FillsSlots):
        article = "an" if model.kind[:1] in "aeiou" else "a"
        for question in questions:
            reason = compares_senses(question) or f"{article} {model.kind} model has no mask to fill"
            yield Answer(question.question_id, model.name, "fill", method, unusable=reason)
        return
    filled = results_for(
        questions,
        compares_senses,
        lambda some: model.fill_slots(some, KEPT),
        lambda index, reason: [FilledSlot(index, unusable=reason)],
    )
    seconds = (time.perf_counter() - started) / max(1, len(questions))
    for one in sorted(filled, key=lambda one: one.index):
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
