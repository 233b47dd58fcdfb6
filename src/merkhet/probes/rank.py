"""The probe ``rank``: every candidate scored in its sentence, right answers ranked by expectation under ties.

Questions that have as many candidates are ranked together, whatever the method; scores that several of them share are
ranked once.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from merkhet.core.records import Answer, Question
from merkhet.metrics.ranks import expected_ranks_by_row, top_columns
from merkhet.models.protocol import CandidateScores, FloatArray, Model
from merkhet.probes.probe_support import KEPT, compares_senses, known_methods, results_for

_AT_ONCE = 2**19
"""How many scores are ranked at once."""


def rank_candidates(model: Model, questions: Sequence[Question], methods: Sequence[str] = ()) -> Iterator[Answer]:
    """Rank the candidates of each question by the model's scores; without methods, by the model's usual one.

    A question that the model cannot be asked gives an answer that says why (``unusable``), never none.
    """
    # A model that scores in no way says so itself, whatever it is asked.
    wanted = known_methods(model, methods, model.methods) if model.methods else tuple(methods) or ("rank",)
    started = time.perf_counter()
    scored = results_for(
        questions,
        compares_senses,
        lambda some: model.score_candidates(some, wanted),
        lambda index, reason: [CandidateScores(index, unusable=reason)],
    )
    seconds = (time.perf_counter() - started) / max(1, len(questions))
    yield from ranked_answers(model, "rank", questions, scored, wanted, seconds)


def ranked_answers(
    model: Model,
    probe: str,
    questions: Sequence[Question],
    scored: Sequence[CandidateScores],
    methods: Sequence[str],
    seconds: float,
) -> Iterator[Answer]:
    """The answers that scores of candidates give, in the order of questions, repeats and methods."""
    scored = sorted(scored, key=lambda result: (result.index, result.repeat or 0))
    standings = _standings(questions, scored, methods)
    for result, standing in zip((result for result in scored for _ in methods), standings, strict=True):
        yield Answer(
            questions[result.index].question_id,
            model.name,
            probe,
            seconds=seconds,
            repeat=result.repeat,
            **standing,
        )


def _standings(
    questions: Sequence[Question], scored: Sequence[CandidateScores], methods: Sequence[str]
) -> list[dict[str, Any]]:
    """What each answer says besides whose it is, in the order of results and methods."""
    found: list[dict[str, Any]] = []
    offered: dict[int, _Candidates] = {}
    lines: dict[tuple[int, int], _Line] = {}
    for result in scored:
        question = questions[result.index]
        same = id(question.candidates)
        if same not in offered:
            offered[same] = _Candidates(question.candidates)
        golds = offered[same].golds(question.answers)
        for method in methods:
            standing = {"method": method, "unusable": result.unusable}
            found.append(standing)
            if result.by_method is not None and golds:
                scores = result.by_method[method]
                if (same, id(scores)) not in lines:
                    lines[same, id(scores)] = _Line(scores, offered[same])
                lines[same, id(scores)].asked[golds].append(standing)
            elif result.by_method is not None:
                standing["unusable"] = "no right answer among the candidates"
    by_width: dict[int, list[_Line]] = defaultdict(list)
    for line in lines.values():
        by_width[len(line.scores)].append(line)
    for width, own in by_width.items():
        size = max(1, _AT_ONCE // width)
        for start in range(0, len(own), size):
            _rank(own[start : start + size], width)
    return found


class _Candidates:
    """Candidates in the order of their texts: those that are tied then stand in it."""

    def __init__(self, candidates: Sequence[str]) -> None:
        self.numbers = sorted(range(len(candidates)), key=candidates.__getitem__)
        self.order = np.array(self.numbers, dtype=np.int64)
        self.texts = [candidates[number] for number in self.numbers]
        self.columns: dict[str, list[int]] = defaultdict(list)
        for column, text in enumerate(self.texts):
            self.columns[text].append(column)
        self._golds: dict[tuple[str, ...], tuple[int, ...]] = {}

    def golds(self, answers: tuple[str, ...]) -> tuple[int, ...]:
        """The columns of the right answers, in the order in which the candidates were given."""
        if answers not in self._golds:
            found = [column for text in set(answers) & self.columns.keys() for column in self.columns[text]]
            self._golds[answers] = tuple(sorted(found, key=self.numbers.__getitem__))
        return self._golds[answers]


@dataclass
class _Line:
    """Scores of candidates; the columns of right answers that they were asked for, and the answers that ask so."""

    scores: FloatArray
    offered: _Candidates
    asked: dict[tuple[int, ...], list[dict[str, Any]]] = field(default_factory=lambda: defaultdict(list))


def _rank(some: Sequence[_Line], width: int) -> None:
    """Find where right answers stand in lines of scores, and what stands first there."""
    scores = np.empty((len(some), width))
    for row, line in zip(scores, some, strict=True):
        row[:] = line.scores[line.offered.order]
    ordered = np.sort(scores, axis=1)
    # What is no number, or not finite, is sorted to one of the ends.
    finite = np.isfinite(ordered[:, 0]) & np.isfinite(ordered[:, -1])
    scores[~finite] = ordered[~finite] = 0.0
    best = top_columns(scores, ordered, KEPT)
    values = np.take_along_axis(scores, best, axis=1).tolist()
    asked = [(number, golds) for number, line in enumerate(some) for golds in line.asked]
    columns = np.array([column for _, golds in asked for column in golds])
    lines = np.repeat([number for number, _ in asked], [len(golds) for _, golds in asked])
    ranks, ties = (found.tolist() for found in expected_ranks_by_row(ordered, lines, scores[lines, columns]))
    stop = 0
    for line, good, places, own in zip(some, finite.tolist(), best.tolist(), values, strict=True):
        texts = line.offered.texts
        first = tuple(zip([texts[column] for column in places], own, strict=True))
        for golds, standings in line.asked.items():
            start, stop = stop, stop + len(golds)
            standing: dict[str, Any] = {"unusable": "a score is not a number"}
            if good:
                standing = {
                    "prediction": first[0][0],
                    "ranked": first,
                    "golds": tuple([texts[column] for column in golds]),
                    "gold_ranks": tuple(ranks[start:stop]),
                    "gold_ties": tuple(ties[start:stop]),
                }
            for one in standings:
                one.update(standing)
