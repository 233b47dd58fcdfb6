"""The probe ``write``: the model itself writes what stands in the slot, nothing is offered to it."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence

from merkhet.core.records import Answer, Question
from merkhet.models.protocol import Model, WritesAnswers, WrittenAnswer
from merkhet.probes.probe_support import compares_senses, known_methods, results_for


def write_answers(model: Model, questions: Sequence[Question], methods: Sequence[str] = ()) -> Iterator[Answer]:
    """Have each slot filled with what the model writes; without methods, in the model's usual way.

    Nothing is ranked: an answer has a prediction with its score, and no ranks of right answers. A question that the
    model cannot be asked, or a model that cannot write, gives an answer that says so (``unusable``), never none.
    """
    if not isinstance(model, WritesAnswers):
        for question in questions:
            for method in methods or ("write",):
                reason = compares_senses(question) or f"a model of the kind {model.kind} writes no answers"
                yield Answer(question.question_id, model.name, "write", method, unusable=reason)
        return
    wanted = known_methods(model, methods, model.writing_methods)
    started = time.perf_counter()
    written = results_for(
        questions,
        compares_senses,
        lambda some: model.write_answers(some, wanted),
        lambda index, reason: [WrittenAnswer(index, method, unusable=reason) for method in wanted],
    )
    seconds = (time.perf_counter() - started) / max(1, len(questions) * len(wanted))
    for one in sorted(written, key=lambda one: (one.index, wanted.index(one.method))):
        unusable = one.unusable or (None if math.isfinite(one.score) else "a score is not a number")
        yield Answer(
            question_id=questions[one.index].question_id,
            model=model.name,
            probe="write",
            method=one.method,
            prediction=None if unusable else one.text,
            ranked=() if unusable else tuple((text, one.score) for text in (one.text, *one.others)),
            unusable=unusable,
            seconds=seconds,
        )
