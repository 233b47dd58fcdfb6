"""Probe ``fill``, which ranks a masked model's whole vocabulary in the slot."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from merkhet.core.records import Answer, Question
from merkhet.models.protocol import FilledSlot, FillsSlots, Model
from merkhet.probes.probe_support import TOP_K, ask_usable, refuse_model, select_methods

METHODS = ("mask",)


def fill_slots(model: Model, questions: Sequence[Question], methods: Sequence[str] = ()) -> Iterator[Answer]:
    """Put one mask into each slot, and rank the right answers among all tokens of the model's vocabulary.

    Only right answers that are single tokens are ranked. If a question has none, or the model has no mask, ``unusable``
    in the answer is the reason.
    """
    (method,) = select_methods(model, methods, METHODS)
    if not isinstance(model, FillsSlots):
        article = "an" if model.kind[:1] in "aeiou" else "a"
        reason = f"{article} {model.kind} model has no mask to fill"
        yield from refuse_model(model, "fill", questions, (method,), reason)
        return
    filled, seconds = ask_usable(
        questions,
        lambda usable: model.fill_slots(usable, TOP_K),
        lambda index, reason: [FilledSlot(index, unusable=reason)],
    )
    for slot in sorted(filled, key=lambda slot: slot.index):
        yield Answer(
            question_id=questions[slot.index].question_id,
            model=model.name,
            probe="fill",
            method=method,
            prediction=slot.pieces[0][0] if slot.pieces else None,
            ranked=slot.pieces,
            golds=slot.golds,
            gold_ranks=slot.gold_ranks,
            gold_ties=slot.gold_ties,
            among=slot.among or None,
            unusable=slot.unusable,
            seconds=seconds,
        )
