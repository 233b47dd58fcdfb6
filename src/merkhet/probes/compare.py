"""The probe ``compare``: is a word, as it is used in a sentence, nearer to one usage or to another."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

from merkhet.core.records import Answer, Question
from merkhet.models.layer_methods import expanded, refuse_unknown_layers
from merkhet.models.protocol import CandidateScores, ComparesSenses, Model
from merkhet.probes.probe_support import known_methods, results_for
from merkhet.probes.rank import ranked_answers


def compare_senses(model: Model, questions: Sequence[Question], methods: Sequence[str] = ()) -> Iterator[Answer]:
    """Rank the candidates of each question by how near their word is to the prompt's; equal ones are tied.

    Without methods the model's usual one is used. A method that stands for several (``word@all``: every layer) gives an
    answer by each of them. A question that compares no senses, or that the model cannot be asked, gives answers that
    say why (``unusable``), never none.
    """
    if not isinstance(model, ComparesSenses):
        for question in questions:
            for method in methods or ("word",):
                reason = _problem(question) or f"a model of the kind {model.kind} compares no senses"
                yield Answer(question.question_id, model.name, "compare", method, unusable=reason)
        return
    refuse_unknown_layers(model.name, methods, model.comparing_methods)
    wanted = known_methods(model, methods, model.comparing_methods)
    started = time.perf_counter()
    compared = results_for(
        questions,
        _problem,
        lambda some: model.compare_senses(some, wanted),
        lambda index, reason: [CandidateScores(index, unusable=reason)],
    )
    seconds = (time.perf_counter() - started) / max(1, len(questions))
    found = tuple(dict.fromkeys(method for one in compared for method in one.by_method or ()))
    names = found or expanded(wanted, model.comparing_methods)
    yield from ranked_answers(model, "compare", questions, compared, names, seconds)


compare_senses.compares_senses = True  # type: ignore[attr-defined]


def _problem(question: Question) -> str | None:
    """Why a question cannot be asked by this probe; None if it can."""
    if not question.words:
        return "this question has no words to compare; ask it by another probe"
    try:
        _ = question.usages
    except ValueError:
        return "its words do not fit: each of its sentences needs a slot, and there is one word for all or one for each"
    return None
