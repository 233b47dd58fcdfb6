"""Probe ``rank``, which ranks candidates by their score in the sentence, with expected ranks for ties.

Score arrays of equal length are ranked together. A score array that several questions share is ranked once; if it is
read-only, its ranking is kept for later questions. Models may also rank candidates themselves.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from merkhet.core.records import Answer, Question
from merkhet.metrics.ranks import expected_ranks_by_row, expected_ranks_in, top_columns
from merkhet.models.protocol import NO_GOLD, CandidateScores, FloatArray, Model, RankedCandidates, RanksCandidates
from merkhet.models.sorted_candidates import SHARED_LENGTH, SharedCache, SortedCandidates, sort_candidates
from merkhet.probes.probe_support import TOP_K, ask_usable, select_methods

_SCORES_AT_ONCE = 2**19


def rank_candidates(model: Model, questions: Sequence[Question], methods: Sequence[str] = ()) -> Iterator[Answer]:
    """Rank the candidates of each question by the model's scores.

    Without ``methods``, the model's default method is used. If the model cannot be asked a question, ``unusable`` in
    the answer is the reason.
    """
    # A model without methods marks every question as unusable, whatever the method.
    selected = select_methods(model, methods, model.methods) if model.methods else tuple(methods) or ("rank",)

    def ask(usable: Sequence[Question]) -> Iterable[CandidateScores | RankedCandidates]:
        if isinstance(model, RanksCandidates):
            return model.rank_candidates(usable, selected, TOP_K)
        return model.score_candidates(usable, selected)

    results, seconds = ask_usable(questions, ask, lambda index, reason: [CandidateScores(index, unusable=reason)])
    scored = [result for result in results if isinstance(result, CandidateScores)]
    answers = rank_answers(model, "rank", questions, scored, selected, seconds)
    if len(scored) == len(results):
        yield from answers
        return
    drawn = [result for result in results if isinstance(result, RankedCandidates)]
    yield from (_ranked_answer(model, questions[result.index], result, seconds) for result in drawn)
    yield from answers


def _ranked_answer(model: Model, question: Question, result: RankedCandidates, seconds: float) -> Answer:
    return Answer(
        question.question_id,
        model.name,
        "rank",
        result.method,
        prediction=result.ranked[0][0],
        ranked=result.ranked,
        golds=result.golds,
        gold_ranks=result.gold_ranks,
        gold_ties=(1,) * len(result.golds),
        seconds=seconds,
    )


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
    candidate_lists: dict[int, SortedCandidates] = {}
    gold_columns: dict[tuple[int, tuple[str, ...]], tuple[int, ...]] = {}
    rows: dict[tuple[int, int], _ScoreRow] = {}
    for result in scored:
        question = questions[result.index]
        list_id = id(question.candidates)
        if list_id not in candidate_lists:
            candidate_lists[list_id] = sort_candidates(question.candidates)
        golds = gold_columns.get((list_id, question.answers))
        if golds is None:
            golds = candidate_lists[list_id].gold_columns(question.answers)
            gold_columns[list_id, question.answers] = golds
        for method in methods:
            fields = {"method": method, "unusable": result.unusable}
            if result.by_method is None or not golds:
                rankings.append(fields if result.by_method is None else fields | {"unusable": NO_GOLD})
                continue
            scores = result.by_method[method]
            row = rows.get((list_id, id(scores)))
            if row is None:
                row = rows[list_id, id(scores)] = _ScoreRow(scores, candidate_lists[list_id])
            # Questions with the same right answers share the fields, which are filled in below.
            rankings.append(row.rankings[golds].setdefault((method, result.unusable), fields))
    by_width: dict[int, list[_ScoreRow]] = defaultdict(list)
    for row in rows.values():
        if row.is_shared:
            _fill_in(_rank_shared(row), [row])
        else:
            by_width[len(row.scores)].append(row)
    for width, same_width in by_width.items():
        size = max(1, _SCORES_AT_ONCE // width)
        for start in range(0, len(same_width), size):
            block = same_width[start : start + size]
            _fill_in(_rank_rows(block, width), block)
    return rankings


@dataclass
class _ScoreRow:
    scores: FloatArray
    candidates: SortedCandidates
    rankings: dict[tuple[int, ...], dict[Hashable, dict[str, Any]]] = field(default_factory=lambda: defaultdict(dict))
    """Ranking fields of answers by gold columns, method and reason."""

    @property
    def is_shared(self) -> bool:
        """Whether questions of other blocks may share the scores."""
        return not self.scores.flags.writeable and len(self.scores) >= SHARED_LENGTH


@dataclass(frozen=True)
class _RankedRows:
    """Ranked score rows of equal width."""

    scores: FloatArray
    """Scores of each row in the alphabetical order of its candidates; all 0 if one of them is not a number."""
    ordered: FloatArray
    """The scores of each row in ascending order."""
    is_finite: list[bool]
    ranked: list[tuple[tuple[str, float], ...]]
    """The best candidates of each row with their scores."""
    tied_first: dict[int, tuple[int, ...]]
    """Runs of columns tied for the best score, for each row in which they exceed the recorded candidates."""


_shared_rankings: SharedCache[_RankedRows] = SharedCache(2**23)


def _rank_shared(row: _ScoreRow) -> _RankedRows:
    """Rank scores that many questions share; the ranking is cached."""
    width = len(row.scores)
    return _shared_rankings.get((row.scores, row.candidates), None, 2 * width, lambda: _rank_rows([row], width))


def _rank_rows(rows: Sequence[_ScoreRow], width: int) -> _RankedRows:
    """Rank score rows that all have ``width`` scores."""
    scores = np.empty((len(rows), width))
    for values, row in zip(scores, rows, strict=True):
        values[:] = row.scores[row.candidates.order]
    ordered = np.sort(scores, axis=1)
    # Sorting moves NaN and infinity to the ends.
    finite = np.isfinite(ordered[:, 0]) & np.isfinite(ordered[:, -1])
    scores[~finite] = ordered[~finite] = 0.0
    top = top_columns(scores, ordered, TOP_K)
    top_scores = np.take_along_axis(scores, top, axis=1).tolist()
    ranked = [
        tuple(zip([row.candidates.texts[column] for column in row_top], row_scores, strict=True))
        for row, row_top, row_scores in zip(rows, top.tolist(), top_scores, strict=True)
    ]
    return _RankedRows(scores, ordered, finite.tolist(), ranked, _runs_tied_first(scores, ordered))


def _fill_in(ranked_rows: _RankedRows, rows: Sequence[_ScoreRow]) -> None:
    """Fill in the ranking fields of score rows."""
    scores, ordered = ranked_rows.scores, ranked_rows.ordered
    gold_sets = [(index, golds) for index, row in enumerate(rows) for golds in row.rankings]
    columns = np.array([column for _, golds in gold_sets for column in golds])
    if len(rows) == 1:
        ranks_and_ties = expected_ranks_in(ordered[0], scores[0, columns])
    else:
        lines = np.repeat([index for index, _ in gold_sets], [len(golds) for _, golds in gold_sets])
        ranks_and_ties = expected_ranks_by_row(ordered, lines, scores[lines, columns])
    ranks, ties = (array.tolist() for array in ranks_and_ties)
    stop = 0
    for number, row in enumerate(rows):
        texts, ranked = row.candidates.texts, ranked_rows.ranked[number]
        for golds, rankings in row.rankings.items():
            start, stop = stop, stop + len(golds)
            fields: dict[str, Any] = {"unusable": "a score is not a number"}
            if ranked_rows.is_finite[number]:
                fields = {
                    "prediction": ranked[0][0],
                    "ranked": ranked,
                    "golds": tuple([texts[column] for column in golds]),
                    "gold_ranks": tuple(ranks[start:stop]),
                    "gold_ties": tuple(ties[start:stop]),
                    "tied_first": ranked_rows.tied_first.get(number, ()),
                }
            for ranking in rankings.values():
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
