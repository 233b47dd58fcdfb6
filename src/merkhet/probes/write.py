"""Probe ``write``, in which a model writes text into the slot."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from merkhet.core.records import Answer, Question
from merkhet.models.protocol import Model, WritesAnswers, WrittenAnswer
from merkhet.probes.probe_support import ask_usable, refuse_model, select_methods


def write_answers(model: Model, questions: Sequence[Question], methods: Sequence[str] = ()) -> Iterator[Answer]:
    """Ask the model to write text into each question's slot.

    Without ``methods``, the model's default method is used. An answer has a prediction and its score, but no ranks. If
    the model cannot write or cannot be asked a question, ``unusable`` in the answer is the reason.
    """
    if not isinstance(model, WritesAnswers):
        reason = f"a model of the kind {model.kind} writes no answers"
        yield from refuse_model(model, "write", questions, methods or ("write",), reason)
        return
    selected = select_methods(model, methods, model.writing_methods)
    written, seconds = ask_usable(
        questions,
        lambda usable: model.write_answers(usable, selected),
        lambda index, reason: [WrittenAnswer(index, method, unusable=reason) for method in selected],
    )
    for answer in sorted(written, key=lambda answer: (answer.index, selected.index(answer.method))):
        unusable = answer.unusable or (None if math.isfinite(answer.score) else "a score is not a number")
        texts = (answer.text, *answer.alternatives)
        yield Answer(
            question_id=questions[answer.index].question_id,
            model=model.name,
            probe="write",
            method=answer.method,
            prediction=None if unusable else answer.text,
            ranked=() if unusable else tuple((text, answer.score) for text in texts),
            unusable=unusable,
            seconds=seconds / len(selected),
        )
