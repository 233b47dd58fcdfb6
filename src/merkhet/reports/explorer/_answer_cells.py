"""What became of every question by every way of asking it: arrays made from the table of answers.

Answers are judged as the report judges them (:mod:`merkhet.reports._answer_outcomes`). A question asked several times
in one way counts as right where more than half of its usable answers are right; its rank is their mean.
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

from merkhet.metrics.text_overlap import exact_match
from merkhet.reports._answer_outcomes import RIGHT, UNUSABLE, WRONG, best_ranks
from merkhet.reports.formatting import finite_or_none

UNASKED = -2
"""Where there is no answer: the question was not asked in that way."""
COLUMNS = ("question_id", "model", "probe", "method", "prediction", "gold_ranks", "gold_ties", "unusable")
"""What is read of every answer; ranked lists are read when a question is opened."""

Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Way:
    """One way of asking: a model, a probe and a method; ``label`` names it, as short as tells it from the others."""

    model: str
    probe: str
    method: str
    label: str


@dataclass(frozen=True)
class Cells:
    """Arrays of ways times questions, and the rows of the answers of each question."""

    ways: tuple[Way, ...]
    verdict: npt.NDArray[np.int8]
    """RIGHT, WRONG, UNUSABLE or UNASKED."""
    rank: Floats
    """Rank of the best-ranked right answer; NaN where nothing was ranked."""
    tied: Bools
    """Whether the best-ranked right answer shares its place with others."""
    repeated: bool
    strangers: int
    """Answers to questions that are not in the run."""
    _order: Ints
    _starts: Ints

    def answer_rows(self, question: int) -> list[int]:
        """The rows of a question's answers in the table of answers."""
        found: list[int] = self._order[self._starts[question] : self._starts[question + 1]].tolist()
        return found


def make_cells(answers: pa.Table, ids: pa.ChunkedArray, golds: pa.ChunkedArray) -> Cells:
    """Judge all answers, given the ids of the questions and their right answers."""
    count = len(ids)
    question = np.asarray(pc.fill_null(_flat(pc.index_in(answers["question_id"], value_set=_flat(ids))), -1))
    question = question.astype(np.int64)
    ways, way = _ways(answers)
    rank = best_ranks(answers["gold_ranks"])
    verdict = _verdicts(answers, question, rank, golds)
    tied = _tied(answers, rank)
    shape = (len(ways), count)
    cells = np.full(shape, UNASKED, dtype=np.int8), np.full(shape, np.nan), np.zeros(shape, dtype=bool)
    repeated = False
    for number in range(len(ways)):
        own = np.flatnonzero((way == number) & (question >= 0))
        repeated |= _fill([array[number] for array in cells], question[own], verdict[own], rank[own], tied[own])
    known = np.flatnonzero(question >= 0)
    order = known[np.argsort(question[known], kind="stable")]
    starts = np.searchsorted(question[order], np.arange(count + 1))
    return Cells(ways, *cells, repeated, len(question) - len(known), order, starts)


def _fill(into: Sequence[Any], question: Ints, verdict: Ints, rank: Floats, tied: Bools) -> bool:
    """Put the answers of one way into its rows; whether some question was asked several times."""
    verdicts, ranks, ties = into
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
    right = golds.take(pa.array(question[written])).to_pylist()
    known: dict[tuple[str, tuple[str, ...]], bool] = {}
    for row, text, own in zip(written.tolist(), texts, right, strict=True):
        pair = text, tuple(own or ())
        if pair not in known:
            known[pair] = bool(exact_match(*pair))
        verdict[row] = RIGHT if known[pair] else WRONG
    return verdict


def verdict_of(answer: Mapping[str, Any], golds: Sequence[str]) -> int:
    """The verdict on one answer, given its row and the right answers of its question."""
    ranks = [rank for rank in answer["gold_ranks"] or () if finite_or_none(rank) is not None]
    if answer["unusable"] is not None or not (ranks or answer["prediction"] is not None):
        return UNUSABLE
    right = min(ranks) <= 1.0 if ranks else exact_match(answer["prediction"], golds)
    return RIGHT if right else WRONG


def _tied(answers: pa.Table, rank: Floats) -> Bools:
    """Whether a right answer of the best rank has company there, as far as the answers tell."""
    ranks, ties = _flat(answers["gold_ranks"]), _flat(answers["gold_ties"])
    tied = np.zeros(len(rank), dtype=bool)
    sizes = [np.asarray(pc.fill_null(pc.list_value_length(lists), 0)) for lists in (ranks, ties)]
    told = np.flatnonzero((sizes[0] == sizes[1]) & (sizes[0] > 0))
    if len(told):
        ranks, ties = (lists.take(pa.array(told)) for lists in (ranks, ties))
        row = told[np.asarray(pc.list_parent_indices(ranks))]
        places = np.asarray(pc.fill_null(pc.list_flatten(ranks), float("nan")))
        company = np.asarray(pc.fill_null(pc.list_flatten(ties), 0))
        tied[row[(places == rank[row]) & (company > 1)]] = True
    return tied


def _ways(answers: pa.Table) -> tuple[tuple[Way, ...], Ints]:
    """The ways of asking in the order in which they first occur, and the way of each answer."""
    encoded = [_flat(pc.dictionary_encode(_flat(answers[name]))) for name in ("model", "probe", "method")]
    names = [one.dictionary.to_pylist() for one in encoded]
    codes = [np.asarray(one.indices).astype(np.int64) for one in encoded]
    key = (codes[0] * (len(names[1]) + 1) + codes[1]) * (len(names[2]) + 1) + codes[2]
    _, first, inverse = np.unique(key, return_index=True, return_inverse=True)
    order = np.argsort(first, kind="stable")
    rows = [first[place] for place in order]
    model, probe, method = ([str(own[code[row]]) for row in rows] for own, code in zip(names, codes, strict=True))
    found = list(zip(model, probe, method, strict=True))
    labels = _labels(found)
    number = np.empty(len(order), dtype=np.int64)
    number[order] = np.arange(len(order))
    ways = tuple(Way(*parts, label) for parts, label in zip(found, labels, strict=True))
    return ways, number[inverse] if len(inverse) else np.empty(0, dtype=np.int64)


def _labels(ways: Sequence[tuple[str, str, str]]) -> list[str]:
    """A model's name; with the method where it was asked in several ways, and the probe where these have one name."""
    models, methods = Counter(way[0] for way in ways), Counter((way[0], way[2]) for way in ways)
    labels = []
    for model, probe, method in ways:
        parts = f"{probe}, {method}" if methods[model, method] > 1 else method
        labels.append(f"{model} ({parts})" if models[model] > 1 else model)
    seen = Counter(labels)
    return [
        label if seen[label] == 1 else f"{label} #{number}"  # A model's own name may look like another's label.
        for number, label in enumerate(labels, 1)
    ]


def _flat(column: Any) -> Any:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
