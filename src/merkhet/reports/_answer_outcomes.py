"""Outcome of each answer: scoreboard line, task, rank of the best right answer, and verdict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from merkhet.metrics.text_overlap import exact_match
from merkhet.reports.scoreboard import Scoreboard, Series, order_tasks, series_from_rows

RIGHT, WRONG, UNUSABLE = 1, 0, -1


@dataclass(frozen=True)
class Outcomes:
    """Outcomes of all answers; the arrays have one entry per answer, except ``choices``."""

    series: tuple[Series, ...]
    """Lines of the scoreboard, then of the models without scores."""
    tasks: tuple[str, ...]
    line: npt.NDArray[np.int64]
    """Index of the answer's line in ``series``; -1 if the answer belongs to none."""
    task: npt.NDArray[np.int64]
    """Index of the answer's task in ``tasks``; -1 if the question table lacks the question."""
    question: npt.NDArray[np.int64]
    """Row index of the answered question in the question table; -1 if the table lacks the question."""
    rank: npt.NDArray[np.float64]
    """Rank of the best-ranked right answer; NaN if the model ranked no candidates."""
    verdict: npt.NDArray[np.int64]
    """``RIGHT``, ``WRONG`` or ``UNUSABLE``."""
    choices: npt.NDArray[np.int64]
    """Number of candidates of each question, in the order of the question table; 0 if unknown."""


def judge_answers(
    questions: pa.Table, answers: pa.Table, candidates: Mapping[str, Sequence[str]], board: Scoreboard
) -> Outcomes:
    """Judge every answer; an answer is right if a right candidate ranked first.

    An answer without ranks is right if its prediction exactly matches a right answer.
    """
    question = pc.index_in(answers["question_id"], value_set=_flat(questions["question_id"]))
    question = np.asarray(pc.fill_null(_flat(question), -1).cast(pa.int64()))
    tasks, task_of_question = _ordered_tasks(*_codes(questions["task"]), board)
    task = np.where(question >= 0, task_of_question[question] if len(task_of_question) else -1, -1)
    series, line = _lines(answers, task, tasks, board)
    rank = best_ranks(answers["gold_ranks"])
    verdict = np.where(rank <= 1.0, RIGHT, WRONG)
    predicted = np.asarray(_flat(pc.is_valid(answers["prediction"])))
    for row in np.flatnonzero(np.isnan(rank) & predicted & (question >= 0)):
        golds = questions["answers"][int(question[row])].as_py()
        verdict[row] = RIGHT if exact_match(answers["prediction"][int(row)].as_py(), golds) else WRONG
    unusable = np.asarray(_flat(pc.is_valid(answers["unusable"]))) | (np.isnan(rank) & ~predicted)
    verdict = np.where(unusable, UNUSABLE, verdict)
    return Outcomes(series, tasks, line, task, question, rank, verdict, _choice_counts(questions, candidates))


def _ordered_tasks(
    names: tuple[str, ...], codes: npt.NDArray[np.int64], board: Scoreboard
) -> tuple[tuple[str, ...], npt.NDArray[np.int64]]:
    """Put the tasks of the scoreboard first, in its order, and renumber the task of each question."""
    ordered = order_tasks(names, board)
    new_code = np.array([*(ordered.index(name) for name in names), -1], dtype=np.int64)
    return tuple(ordered), new_code[codes]


def best_ranks(gold_ranks: pa.ChunkedArray) -> npt.NDArray[np.float64]:
    """Return the lowest rank in each list of ranks; NaN if the list has no ranks."""
    ranks = np.full(len(gold_ranks), np.inf)
    lists = _flat(gold_ranks)
    if len(lists):
        rows = np.asarray(pc.list_parent_indices(lists))
        values = np.asarray(pc.fill_null(pc.list_flatten(lists), float("nan")), dtype=np.float64)
        known = ~np.isnan(values)
        np.minimum.at(ranks, rows[known], values[known])
    return np.where(np.isinf(ranks), np.nan, ranks)


def _flat(column: Any) -> Any:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def _codes(column: Any) -> tuple[tuple[str, ...], npt.NDArray[np.int64]]:
    encoded = _flat(pc.dictionary_encode(_flat(column)))
    names = tuple(str(name) for name in encoded.dictionary.to_pylist())
    return names, np.asarray(pc.fill_null(encoded.indices, -1), dtype=np.int64)


def _choice_counts(questions: pa.Table, candidates: Mapping[str, Sequence[str]]) -> npt.NDArray[np.int64]:
    choice_counts = np.asarray(pc.fill_null(_flat(pc.list_value_length(questions["choices"])), 0), dtype=np.int64)
    names, code = _codes(questions["candidate_set"])
    sizes = np.array([*(len(candidates.get(name, ())) for name in names), 0], dtype=np.int64)
    return np.where(choice_counts > 0, choice_counts, sizes[code])


def _lines(
    answers: pa.Table, task: npt.NDArray[np.int64], tasks: tuple[str, ...], board: Scoreboard
) -> tuple[tuple[Series, ...], npt.NDArray[np.int64]]:
    """Assign each answer to a scoreboard line.

    Within a task, a line gets only the answers by the first matching combination of model, probe and method.
    """
    names, code = zip(*(_codes(answers[name]) for name in ("model", "probe", "method")), strict=True)
    key = task + 1
    for values, labels in zip(code, names, strict=True):
        key = key * (len(labels) + 1) + values
    _, first, inverse = np.unique(key, return_index=True, return_inverse=True)
    ways = []
    for row in first:
        model, probe, method = (labels[values[row]] for values, labels in zip(code, names, strict=True))
        ways.append({"task": int(task[row]), "metric": "", "model": model, "probe": probe, "method": method})
    order = [int(way) for way in np.argsort(first, kind="stable") if ways[way]["task"] >= 0]
    scored = {line.model for line in board.series}
    unscored_series = series_from_rows(
        [{**ways[way], "task": tasks[ways[way]["task"]]} for way in order if ways[way]["model"] not in scored]
    )
    series = (*board.series, *unscored_series)
    line_of_way = np.full(len(ways) + 1, -1, dtype=np.int64)
    assigned = set()
    for way in order:
        line_index = next((index for index, line in enumerate(series) if line.covers(ways[way])), -1)
        if line_index >= 0 and (ways[way]["task"], line_index) not in assigned:
            assigned.add((ways[way]["task"], line_index))
            line_of_way[way] = line_index
    return series, line_of_way[inverse] if len(inverse) else np.empty(0, dtype=np.int64)
