"""Labels of premises: shown in the text (EX), known to the model (IM), or neither (NO).

Premises that are not shown are ordered by the model's expected reciprocal rank in the questions that ask for one
premise alone. The better half of a rule's premises counts as known, including the middle premise of an odd number.
Ties are broken by question id. In multiple choice, a premise is known if the model answered its question correctly. A
premise without a usable answer is unknown. The first premise of a control question is about something else and has the
label OT.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from merkhet.core.schemas import ANSWERS, SETTINGS, make_table, read_table, write_table
from merkhet.engine.plan import Nothing, StepContext
from merkhet.metrics.metrics import reciprocal_rank
from merkhet.metrics.ranks import best_gold
from merkhet.metrics.text_overlap import exact_match
from merkhet.metrics.tie_expectations import expected_value
from merkhet.questions.question_files import read_questions

SHOWN, KNOWN, UNKNOWN, OTHER = "EX", "IM", "NO", "OT"

Ranks = Mapping[str, float]
"""Reciprocal rank of the best gold answer, averaged over repeated answers, by question id."""


@dataclass(frozen=True)
class PremiseParams:
    """Parameters of :func:`label_premises`."""

    families: Mapping[str, tuple[str, ...]]
    """Models whose answers decide which premises a model knows, by model.

    For a model with soft prompts, these are the model itself and the model without soft prompts.
    """
    methods: Mapping[str, str]
    """Method whose answers about premises count, by model."""


def label_premises(context: StepContext[PremiseParams, Nothing]) -> None:
    """Write settings.parquet: a premise label for each question with premises and each model that answered it."""
    params = context.params
    question_set = read_questions(context.folder)
    premises = question_set.premise_questions.to_pylist()
    questions = question_set.questions
    columns = questions.select(["question_id", "task", "template", "answers"]).to_pylist()
    groups_by_id = {row["question_id"]: (row["task"], row["template"]) for row in columns}
    answers = read_table(ANSWERS, context.folder / "answers.parquet")
    ranks = reciprocal_ranks(answers, params.methods, {row["question_id"]: row["answers"] for row in columns})
    rows = []
    for model, ids in _answered_questions(answers).items():
        family_ranks: dict[str, float] = {}
        for name in reversed(params.families.get(model, (model,))):
            family_ranks.update(ranks.get(name, {}))
        groups: dict[tuple[str, str | None], list[Mapping[str, Any]]] = defaultdict(list)
        for row in premises:
            if row["question_id"] in ids:
                groups[groups_by_id[row["question_id"]]].append(row)
        for members in groups.values():
            rows += [
                {"question_id": name, "model": model, "premises": setting}
                for name, setting in premise_labels(members, family_ranks).items()
            ]
    write_table(SETTINGS, make_table(SETTINGS, rows), context.folder / context.step.outputs[0])


def premise_labels(premises: Sequence[Mapping[str, Any]], ranks: Ranks) -> dict[str, str]:
    """Label the first and second premise of each question of one rule.

    Returns:
        Labels such as ``EX/IM``, by question id.
    """
    known = {
        (side, memory): _memorized({_ids(row[side]) for row in premises if row["memory"] == memory}, ranks, memory)
        for side in ("first", "second")
        for memory in {row["memory"] for row in premises}
    }

    def label(row: Mapping[str, Any], side: str) -> str:
        if row["shown"] in ("both", side):
            return SHOWN
        return KNOWN if _ids(row[side]) in known[side, row["memory"]] else UNKNOWN

    return {
        row["question_id"]: f"{OTHER}/{SHOWN}"
        if row["shown"] == "other"
        else f"{label(row, 'first')}/{label(row, 'second')}"
        for row in premises
    }


def reciprocal_ranks(
    answers: pa.Table, methods: Mapping[str, str], golds: Mapping[str, Sequence[str]]
) -> dict[str, dict[str, float]]:
    """Compute the mean reciprocal rank of the best gold answer, by model and question id.

    A generated answer has no ranks; it counts 1 if it is right and 0 otherwise.

    Args:
        methods: Method whose ranks count, by model. For other models, all methods count.
        golds: Gold answers by question id.
    """
    usable = answers.filter(pc.is_null(answers["unusable"]))
    usable = usable.select(["model", "method", "question_id", "gold_ranks", "gold_ties", "prediction"])
    scores: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    columns = {name: usable[name].to_pylist() for name in usable.column_names}
    all_ranks, all_ties = ([numbers for numbers in columns[name] if numbers] for name in ("gold_ranks", "gold_ties"))
    reciprocals = iter(expected_value(best_gold(all_ranks, all_ties), reciprocal_rank).tolist())
    for model, method, question, ranks, _, prediction in zip(*columns.values(), strict=True):
        value = next(reciprocals) if ranks else exact_match(prediction or "", golds[question])
        if methods.get(model, method) == method or not ranks:
            scores[model][question].append(value)
    return {
        model: {question: float(np.mean(values)) for question, values in by_question.items()}
        for model, by_question in scores.items()
    }


def _memorized(premise_questions: set[tuple[str, ...]], ranks: Ranks, memory: str) -> set[tuple[str, ...]]:
    """Return the premises that a model knows; a premise is given by the ids of the questions that ask for it."""
    means = {ids: float(np.mean([ranks[name] for name in ids if name in ranks] or [0.0])) for ids in premise_questions}
    if memory == "right":
        return {ids for ids, mean in means.items() if mean == 1.0}
    order = sorted(premise_questions, key=lambda ids: (-means[ids], ids))
    return {ids for ids in order[: (len(order) + 1) // 2] if means[ids] > 0}


def _answered_questions(answers: pa.Table) -> dict[str, set[str]]:
    questions: dict[str, set[str]] = defaultdict(set)
    for row in answers.group_by(["model", "question_id"]).aggregate([]).to_pylist():
        questions[row["model"]].add(row["question_id"])
    return questions


def _ids(names: Sequence[str]) -> tuple[str, ...]:
    return tuple(sorted(names))
