"""Outcomes of every question by every way of asking, as arrays.

Answers are judged as in the report (:mod:`merkhet.reports._answer_outcomes`). A question that was asked several times
in one way is right if more than half of its usable answers are right; its rank is their mean.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from merkhet.core.text import finite_or_none
from merkhet.metrics.text_overlap import exact_match
from merkhet.reports._answer_outcomes import RIGHT, UNUSABLE, WRONG, best_ranks

UNASKED = -2
"""Verdict of a question that was not asked in that way."""
COLUMNS = ("question_id", "model", "probe", "method", "prediction", "gold_ranks", "gold_ties", "unusable")
"""Columns that are read of every answer; ranked lists are read when a question is opened."""

Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Way:
    """Identify one way of asking."""

    model: str
    probe: str
    method: str
    label: str
    """The shortest name that is unique among the ways."""


@dataclass(frozen=True)
class Cells:
    """Hold arrays of ways by questions, and the answer rows of each question."""

    ways: tuple[Way, ...]
    verdict: npt.NDArray[np.int8]
    """RIGHT, WRONG, UNUSABLE or UNASKED."""
    rank: Floats
    """Rank of the best-ranked right answer; NaN if nothing was ranked."""
    tied: Bools
    """Whether the best-ranked right answer is tied with other candidates."""
    repeated: bool
    """Whether some question was asked several times in one way."""
    unmatched: int
    """Number of answers to questions that are not in the run."""
    _order: Ints
    _starts: Ints

    def answer_rows(self, question: int) -> list[int]:
        """Return the rows of a question's answers in the answer table."""
        rows: list[int] = self._order[self._starts[question] : self._starts[question + 1]].tolist()
        return rows


def make_cells(answers: pa.Table, ids: pa.ChunkedArray, golds: pa.ChunkedArray) -> Cells:
    """Judge all answers.

    Args:
        ids: ids of the questions.
        golds: right answers of the questions.
    """
    count = len(ids)
    question = np.asarray(pc.fill_null(_flat(pc.index_in(answers["question_id"], value_set=_flat(ids))), -1))
    question = question.astype(np.int64)
    ways, way = _ways(answers)
    rank = best_ranks(answers["gold_ranks"])
    verdict = _verdicts(answers, question, rank, golds)
    tied = _tied_mask(answers, rank)
    shape = (len(ways), count)
    cells = np.full(shape, UNASKED, dtype=np.int8), np.full(shape, np.nan), np.zeros(shape, dtype=bool)
    repeated = False
    for number in range(len(ways)):
        rows = np.flatnonzero((way == number) & (question >= 0))
        repeated |= _fill_way([array[number] for array in cells], question[rows], verdict[rows], rank[rows], tied[rows])
    matched = np.flatnonzero(question >= 0)
    order = matched[np.argsort(question[matched], kind="stable")]
    starts = np.searchsorted(question[order], np.arange(count + 1))
    return Cells(ways, *cells, repeated, len(question) - len(matched), order, starts)


def _fill_way(arrays: Sequence[Any], question: Ints, verdict: Ints, rank: Floats, tied: Bools) -> bool:
    """Fill the arrays of one way; return whether some question was asked several times."""
    verdicts, ranks, ties = arrays
    if len(np.unique(question)) == len(question):
        verdicts[question], ranks[question], ties[question] = verdict, rank, tied
        return False
    count = len(verdicts)
    usable = verdict != UNUSABLE
    asked = np.bincount(question, minlength=count)
    judged = np.bincount(question[usable], minlength=count)
    right = np.bincount(question[verdict == RIGHT], minlength=count)
    verdicts[asked > 0] = UNUSABLE
    verdicts[judged > 0] = np.where(2 * right > judged, RIGHT, WRONG)[judged > 0]
    ranked = ~np.isnan(rank)
    number = np.bincount(question[ranked], minlength=count)
    total = np.bincount(question[ranked], weights=rank[ranked], minlength=count)
    ranks[number > 0] = total[number > 0] / number[number > 0]
    ties[question[tied]] = True
    return True


def _verdicts(answers: pa.Table, question: Ints, rank: Floats, golds: pa.ChunkedArray) -> Ints:
    predicted = np.asarray(_flat(pc.is_valid(answers["prediction"])))
    unusable = np.asarray(_flat(pc.is_valid(answers["unusable"]))) | (np.isnan(rank) & ~predicted)
    verdict = np.where(unusable, UNUSABLE, np.where(rank <= 1.0, RIGHT, WRONG))
    written = np.flatnonzero(np.isnan(rank) & ~unusable & (question >= 0))
    texts = answers["prediction"].take(pa.array(written)).to_pylist()
    gold_lists = golds.take(pa.array(question[written])).to_pylist()
    is_match: dict[tuple[str, tuple[str, ...]], bool] = {}
    for row, text, accepted in zip(written.tolist(), texts, gold_lists, strict=True):
        pair = text, tuple(accepted or ())
        if pair not in is_match:
            is_match[pair] = bool(exact_match(*pair))
        verdict[row] = RIGHT if is_match[pair] else WRONG
    return verdict


def judge_answer(answer: Mapping[str, Any], golds: Sequence[str]) -> int:
    """Judge one row of the answer table."""
    ranks = [rank for rank in answer["gold_ranks"] or () if finite_or_none(rank) is not None]
    if answer["unusable"] is not None or not (ranks or answer["prediction"] is not None):
        return UNUSABLE
    is_right = min(ranks) <= 1.0 if ranks else exact_match(answer["prediction"], golds)
    return RIGHT if is_right else WRONG


def _tied_mask(answers: pa.Table, rank: Floats) -> Bools:
    """Return the answers whose best-ranked right answer is tied, as far as ties are recorded."""
    ranks, ties = _flat(answers["gold_ranks"]), _flat(answers["gold_ties"])
    tied = np.zeros(len(rank), dtype=bool)
    sizes = [np.asarray(pc.fill_null(pc.list_value_length(lists), 0)) for lists in (ranks, ties)]
    recorded = np.flatnonzero((sizes[0] == sizes[1]) & (sizes[0] > 0))
    if len(recorded):
        ranks, ties = (lists.take(pa.array(recorded)) for lists in (ranks, ties))
        row = recorded[np.asarray(pc.list_parent_indices(ranks))]
        gold_ranks = np.asarray(pc.fill_null(pc.list_flatten(ranks), float("nan")))
        tie_sizes = np.asarray(pc.fill_null(pc.list_flatten(ties), 0))
        tied[row[(gold_ranks == rank[row]) & (tie_sizes > 1)]] = True
    return tied


def _ways(answers: pa.Table) -> tuple[tuple[Way, ...], Ints]:
    """Return the ways of asking in the order of first occurrence, and the way of each answer."""
    encoded = [_flat(pc.dictionary_encode(_flat(answers[name]))) for name in ("model", "probe", "method")]
    names = [column.dictionary.to_pylist() for column in encoded]
    codes = [np.asarray(column.indices).astype(np.int64) for column in encoded]
    key = (codes[0] * (len(names[1]) + 1) + codes[1]) * (len(names[2]) + 1) + codes[2]
    _, first, inverse = np.unique(key, return_index=True, return_inverse=True)
    order = np.argsort(first, kind="stable")
    rows = [first[index] for index in order]
    model, probe, method = ([str(values[code[row]]) for row in rows] for values, code in zip(names, codes, strict=True))
    keys = list(zip(model, probe, method, strict=True))
    labels = _labels(keys)
    position = np.empty(len(order), dtype=np.int64)
    position[order] = np.arange(len(order))
    ways = tuple(Way(*parts, label) for parts, label in zip(keys, labels, strict=True))
    return ways, position[inverse] if len(inverse) else np.empty(0, dtype=np.int64)


def _labels(ways: Sequence[tuple[str, str, str]]) -> list[str]:
    """Label ways by model; add the method if a model has several ways, and the probe if the method is ambiguous."""
    models, methods = Counter(way[0] for way in ways), Counter((way[0], way[2]) for way in ways)
    labels = []
    for model, probe, method in ways:
        parts = f"{probe}, {method}" if methods[model, method] > 1 else method
        labels.append(f"{model} ({parts})" if models[model] > 1 else model)
    occurrences = Counter(labels)
    return [
        label if occurrences[label] == 1 else f"{label} #{number}"  # A model's name may equal the label of another way.
        for number, label in enumerate(labels, 1)
    ]


def _flat(column: Any) -> Any:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
