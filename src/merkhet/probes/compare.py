"""Probe ``compare``, which ranks usages of a word by the similarity of its sense."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from merkhet.core.records import Answer, Question
from merkhet.models.layer_methods import check_layers, expand_layers
from merkhet.models.protocol import CandidateScores, ComparesSenses, Model
from merkhet.probes.probe_support import ask_usable, refuse_model, select_methods
from merkhet.probes.rank import rank_answers


def compare_senses(model: Model, questions: Sequence[Question], methods: Sequence[str] = ()) -> Iterator[Answer]:
    """Rank the candidates of each question by the similarity of their word to the prompt's word.

    Without ``methods``, the model's default method is used. A method for all layers (``word@all``) gives one answer per
    layer. If the question does not compare senses or the model cannot be asked, ``unusable`` in the answer is the
    reason.
    """
    if not isinstance(model, ComparesSenses):
        reason = f"a model of the kind {model.kind} compares no senses"
        yield from refuse_model(model, "compare", questions, methods or ("word",), reason, _find_problem)
        return
    check_layers(model.name, methods, model.comparing_methods)
    selected = select_methods(model, methods, model.comparing_methods)
    compared, seconds = ask_usable(
        questions,
        lambda usable: model.compare_senses(usable, selected),
        lambda index, reason: [CandidateScores(index, unusable=reason)],
        _find_problem,
    )
    scored_methods = tuple(dict.fromkeys(method for result in compared for method in result.by_method or ()))
    names = scored_methods or expand_layers(selected, model.comparing_methods)
    yield from rank_answers(model, "compare", questions, compared, names, seconds)


compare_senses.compares_senses = True  # type: ignore[attr-defined]


def _find_problem(question: Question) -> str | None:
    if not question.words:
        return "this question has no words to compare; ask it by another probe"
    try:
        _ = question.usages
    except ValueError:
        return "its words do not fit: each of its sentences needs a slot, and there is one word for all or one for each"
    return None
