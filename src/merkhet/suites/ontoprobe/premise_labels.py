"""Labels of premises: shown in the text, known to the model, or neither.

A premise that is not shown counts as known ("IM") if it is in the better half of the premises of its rule by the
model's own reciprocal rank of the questions that ask for it alone; the middle one of an odd number is in the better
half, and of equal ones those come first whose questions have the smaller ids. In multiple choice it is known if the
model chose rightly. Whatever could not be asked is not known.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from merkhet.core.schemas import ANSWERS, SETTINGS, make_table, read_table, write_table
from merkhet.engine.plan import Nothing, StepContext
from merkhet.metrics.text_overlap import exact_match
from merkhet.questions.question_files import read_questions

SHOWN, KNOWN, UNKNOWN, OTHER = "EX", "IM", "NO", "OT"
_SHOWS_FIRST = {"both", "first"}
_SHOWS_SECOND = {"both", "second"}

Ranks = Mapping[str, float]
"""For each question the mean reciprocal rank of its best right answer over repeats."""


@dataclass(frozen=True)
class PremiseParams:
    """Whose answers decide what a model knows."""

    families: Mapping[str, tuple[str, ...]]
    """Models whose answers count for a model: for one with soft prompts, itself and the model without them."""
    methods: Mapping[str, str]
    """Method by which each model is asked about premises."""


def label_premises(context: StepContext[PremiseParams, Nothing]) -> None:
    """Write settings.parquet: how premises were given, for every question with premises and every model."""
    params = context.params
    found = read_questions(context.folder)
    premises = found.premises.to_pylist()
    tasks = dict(zip(*(found.questions[name].to_pylist() for name in ("question_id", "task")), strict=True))
    templates = dict(zip(*(found.questions[name].to_pylist() for name in ("question_id", "template")), strict=True))
    table = read_table(ANSWERS, context.folder / "answers.parquet")
    right = {row["question_id"]: row["answers"] for row in found.questions.to_pylist()}
    ranks = reciprocal_ranks(table, params.methods, right)
    answered = _answered(table)
    rows = []
    for model, ids in answered.items():
        family: dict[str, float] = {}
        for name in reversed(params.families.get(model, (model,))):
            family.update(ranks.get(name, {}))
        groups: dict[tuple[str, str | None], list[dict[str, object]]] = defaultdict(list)
        for row in premises:
            if row["question_id"] in ids:
                groups[tasks[row["question_id"]], templates[row["question_id"]]].append(row)
        for members in groups.values():
            rows += [
                {"question_id": name, "model": model, "premises": setting}
                for name, setting in premise_labels(members, family).items()
            ]
    write_table(SETTINGS, make_table(SETTINGS, rows), context.folder / context.step.outputs[0])


def premise_labels(premises: Sequence[Mapping[str, object]], ranks: Ranks) -> dict[str, str]:
    """How the premises of one rule's questions were given, by question: "EX/IM" and the like."""
    known = {}
    for column in ("first", "second"):
        for memory in {str(row["memory"]) for row in premises}:
            groups = {_ids(row[column]) for row in premises if row["memory"] == memory}
            known[column, memory] = _memorized(groups, ranks, memory)
    found = {}
    for row in premises:
        memory, shown = str(row["memory"]), row["shown"]
        first = UNKNOWN if _ids(row["first"]) not in known["first", memory] else KNOWN
        second = UNKNOWN if _ids(row["second"]) not in known["second", memory] else KNOWN
        if shown == "other":
            found[str(row["question_id"])] = f"{OTHER}/{SHOWN}"
        else:
            left = SHOWN if shown in _SHOWS_FIRST else first
            right = SHOWN if shown in _SHOWS_SECOND else second
            found[str(row["question_id"])] = f"{left}/{right}"
    return found


def reciprocal_ranks(
    answers: pa.Table, methods: Mapping[str, str], right: Mapping[str, Sequence[str]]
) -> dict[str, dict[str, float]]:
    """For each model the mean reciprocal rank of the best right answer of every question, by the model's method.

    An answer that was written and not ranked counts 1 if it is right, and else 0.
    """
    usable = answers.filter(pc.is_null(answers["unusable"]))
    usable = usable.select(["model", "method", "question_id", "gold_ranks", "prediction"])
    found: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    columns = (usable[name].to_pylist() for name in usable.column_names)
    for model, method, question, ranks, prediction in zip(*columns, strict=True):
        if methods.get(model, method) == method or not ranks:
            value = 1.0 / min(ranks) if ranks else exact_match(prediction or "", right[question])
            found[model][question].append(value)
    return {
        model: {question: float(np.mean(values)) for question, values in own.items()} for model, own in found.items()
    }


def _memorized(groups: set[tuple[str, ...]], ranks: Ranks, memory: str) -> set[tuple[str, ...]]:
    """Which premises, each given by the questions that ask for it, are known."""
    means = {ids: float(np.mean([ranks[name] for name in ids if name in ranks] or [0.0])) for ids in groups}
    if memory == "right":
        return {ids for ids, mean in means.items() if mean == 1.0}
    order = sorted(groups, key=lambda ids: (-means[ids], ids))
    return {ids for ids in order[: (len(order) + 1) // 2] if means[ids] > 0}


def _answered(answers: pa.Table) -> dict[str, set[str]]:
    pairs = answers.group_by(["model", "question_id"]).aggregate([])
    found: dict[str, set[str]] = defaultdict(set)
    for model, question in zip(pairs["model"].to_pylist(), pairs["question_id"].to_pylist(), strict=True):
        found[model].add(question)
    return found


def _ids(value: object) -> tuple[str, ...]:
    assert isinstance(value, list | tuple)
    return tuple(sorted(value))
