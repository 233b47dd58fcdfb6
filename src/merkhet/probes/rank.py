"""Probe ``rank``, which ranks candidates by their score in the sentence, with expected ranks for ties.

Score arrays of equal length are ranked together. A score array that several questions share is ranked once.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from merkhet.core.records import Answer, Question
from merkhet.metrics.ranks import expected_ranks_by_row, top_columns
from merkhet.models.protocol import CandidateScores, FloatArray, Model
from merkhet.probes.probe_support import TOP_K, ask_usable, select_methods

_SCORES_AT_ONCE = 2**19


def rank_candidates(model: Model, questions: Sequence[Question], methods: Sequence[str] = ()) -> Iterator[Answer]:
    """Rank the candidates of each question by the model's scores.

    Without ``methods``, the model's default method is used. If the model cannot be asked a question, ``unusable`` in
    the answer is the reason.
    """
    # A model without methods marks every question as unusable, whatever the method.
    selected = select_methods(model, methods, model.methods) if model.methods else tuple(methods) or ("rank",)
    scored, seconds = ask_usable(
        questions,
        lambda usable: model.score_candidates(usable, selected),
        lambda index, reason: [CandidateScores(index, unusable=reason)],
    )
    yield from rank_answers(model, "rank", questions, scored, selected, seconds)


def rank_answers(
    model: Model,
    probe: str,
    questions: Sequence[Question],
    scored: Sequence[CandidateScores],
    methods: Sequence[str],
    seconds: float,
) -> Iterator[Answer]:
    """Turn scores of candidates into ranked answers, ordered by question, repeat and method."""
    scored = sorted(scored, key=lambda result: (result.index, result.repeat or 0))
    rankings = _rank_results(questions, scored, methods)
    for result, ranking in zip((result for result in scored for _ in methods), rankings, strict=True):
        yield Answer(
            questions[result.index].question_id, model.name, probe, seconds=seconds, repeat=result.repeat, **ranking
        )


def _rank_results(
    questions: Sequence[Question], scored: Sequence[CandidateScores], methods: Sequence[str]
) -> list[dict[str, Any]]:
    """Return the ranking fields of each answer, ordered by score result and method."""
    rankings: list[dict[str, Any]] = []
    candidate_lists: dict[int, _SortedCandidates] = {}
    rows: dict[tuple[int, int], _ScoreRow] = {}
    for result in scored:
        question = questions[result.index]
        list_id = id(question.candidates)
        if list_id not in candidate_lists:
            candidate_lists[list_id] = _SortedCandidates(question.candidates)
        golds = candidate_lists[list_id].gold_columns(question.answers)
        for method in methods:
            ranking = {"method": method, "unusable": result.unusable}
            rankings.append(ranking)
            if result.by_method is not None and golds:
                scores = result.by_method[method]
                if (list_id, id(scores)) not in rows:
                    rows[list_id, id(scores)] = _ScoreRow(scores, candidate_lists[list_id])
                rows[list_id, id(scores)].rankings[golds].append(ranking)
            elif result.by_method is not None:
                ranking["unusable"] = "no right answer among the candidates"
    by_width: dict[int, list[_ScoreRow]] = defaultdict(list)
    for row in rows.values():
        by_width[len(row.scores)].append(row)
    for width, same_width in by_width.items():
        size = max(1, _SCORES_AT_ONCE // width)
        for start in range(0, len(same_width), size):
            _rank_rows(same_width[start : start + size], width)
    return rankings


class _SortedCandidates:
    """A list of candidates in alphabetical order, in which tied candidates are listed."""

    def __init__(self, candidates: Sequence[str]) -> None:
        self.indices = sorted(range(len(candidates)), key=candidates.__getitem__)
        self.order = np.array(self.indices, dtype=np.int64)
        self.texts = [candidates[index] for index in self.indices]
        self.columns: dict[str, list[int]] = defaultdict(list)
        for column, text in enumerate(self.texts):
            self.columns[text].append(column)
        self._gold_columns: dict[tuple[str, ...], tuple[int, ...]] = {}

    def gold_columns(self, answers: tuple[str, ...]) -> tuple[int, ...]:
        """Return the alphabetical positions of the right answers, in the original order of the candidates."""
        if answers not in self._gold_columns:
            columns = [column for text in set(answers) & self.columns.keys() for column in self.columns[text]]
            self._gold_columns[answers] = tuple(sorted(columns, key=self.indices.__getitem__))
        return self._gold_columns[answers]


@dataclass
class _ScoreRow:
    scores: FloatArray
    candidates: _SortedCandidates
    rankings: dict[tuple[int, ...], list[dict[str, Any]]] = field(default_factory=lambda: defaultdict(list))
    """For each tuple of gold columns, the ranking fields to fill in."""


def _rank_rows(rows: Sequence[_ScoreRow], width: int) -> None:
    """Fill in the ranking fields of score rows that all have ``width`` scores."""
    scores = np.empty((len(rows), width))
    for values, row in zip(scores, rows, strict=True):
        values[:] = row.scores[row.candidates.order]
    ordered = np.sort(scores, axis=1)
    # Sorting moves NaN and infinity to the ends.
    finite = np.isfinite(ordered[:, 0]) & np.isfinite(ordered[:, -1])
    scores[~finite] = ordered[~finite] = 0.0
    top = top_columns(scores, ordered, TOP_K)
    top_scores = np.take_along_axis(scores, top, axis=1).tolist()
    tied_first = _runs_tied_first(scores, ordered)
    gold_sets = [(index, golds) for index, row in enumerate(rows) for golds in row.rankings]
    columns = np.array([column for _, golds in gold_sets for column in golds])
    lines = np.repeat([index for index, _ in gold_sets], [len(golds) for _, golds in gold_sets])
    ranks, ties = (array.tolist() for array in expected_ranks_by_row(ordered, lines, scores[lines, columns]))
    stop = 0
    row_numbers = zip(rows, finite.tolist(), top.tolist(), top_scores, strict=True)
    for number, (row, is_finite, row_top, row_scores) in enumerate(row_numbers):
        texts = row.candidates.texts
        ranked = tuple(zip([texts[column] for column in row_top], row_scores, strict=True))
        for golds, rankings in row.rankings.items():
            start, stop = stop, stop + len(golds)
            fields: dict[str, Any] = {"unusable": "a score is not a number"}
            if is_finite:
                fields = {
                    "prediction": ranked[0][0],
                    "ranked": ranked,
                    "golds": tuple([texts[column] for column in golds]),
                    "gold_ranks": tuple(ranks[start:stop]),
                    "gold_ties": tuple(ties[start:stop]),
                    "tied_first": tied_first.get(number, ()),
                }
            for ranking in rankings:
                ranking.update(fields)


def _runs_tied_first(scores: FloatArray, ordered: FloatArray) -> dict[int, tuple[int, ...]]:
    """Return the runs of columns tied for the best score, for each row in which they exceed the recorded candidates.

    ``ordered`` has the rows of ``scores`` sorted in ascending order.
    """
    if scores.shape[1] <= TOP_K:
        return {}
    rows = np.flatnonzero(ordered[:, -1] == ordered[:, -1 - TOP_K])
    is_tied = scores[rows] == ordered[rows, -1:]
    return {
        int(row): tuple(np.flatnonzero(np.diff(tied, prepend=False, append=False)).tolist())
        for row, tied in zip(rows, is_tied, strict=True)
    }
