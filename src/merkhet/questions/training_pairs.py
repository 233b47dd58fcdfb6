"""Statements of training questions, on which baselines that compare names fit their thresholds."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from merkhet.core.records import affirmative_choice
from merkhet.core.schemas import PAIRS, make_table

TRAINING_SPLIT = "train"


def find_training_pairs(pool: pa.Table, asked: pa.Table, entities: pa.Table) -> pa.Table:
    """Return the statements that training questions in ``pool`` ask a verdict on; none if such questions are asked.

    A task asks for verdicts if all its training questions offer the same two choices, up to case, and mention two
    names, which are not the choices.

    Args:
        pool: All questions, asked or not.
        asked: The questions of the run.
        entities: Names of the entities in each question.
    """
    if TRAINING_SPLIT in asked["split"].unique().to_pylist():
        return make_table(PAIRS, [])
    is_training = pc.fill_null(pc.equal(pool["split"], TRAINING_SPLIT), False)
    has_task = pc.is_in(pool["task"], value_set=pc.unique(asked["task"]))
    training = pool.filter(pc.and_(is_training, has_task))
    pairs: list[dict[str, Any]] = []
    for task in pc.unique(training["task"]).to_pylist():
        questions = training.filter(pc.equal(training["task"], task))
        has_two = pc.fill_null(pc.equal(pc.list_value_length(questions["choices"]), 2), False)
        if pc.all(has_two).as_py():
            pairs += _read_pairs(task, questions, entities)
    return make_table(PAIRS, pairs)


def _read_pairs(task: str, questions: pa.Table, entities: pa.Table) -> list[dict[str, Any]]:
    """Return the statements of the training questions of a task with two choices; none if it asks for no verdicts."""
    rows = pc.index_in(questions["question_id"], entities["question_id"].combine_chunks())
    names = entities["entities"].combine_chunks().take(rows.combine_chunks()).to_pylist()
    columns = (questions[name].to_pylist() for name in ("template", "target", "choices"))
    pairs, verdicts = [], set()
    for template, target, choices, pair in zip(*columns, names, strict=True):
        verdicts.add(frozenset(choice.lower() for choice in choices))
        if len(verdicts) > 1 or len(pair or ()) != 2 or set(pair) == set(choices):
            return []
        relation = template.partition("/")[0] if template else task
        holds = target == affirmative_choice(choices)
        pairs.append({"task": task, "relation": relation, "first": pair[0], "second": pair[1], "holds": holds})
    return pairs
