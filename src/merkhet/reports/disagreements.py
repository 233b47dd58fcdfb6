"""Questions that only one of two models got right, as they were asked."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from merkhet.reports import formatting as show
from merkhet.reports.answer_outcomes import RIGHT, WRONG, Outcomes
from merkhet.reports.question_samples import question_card, question_hash
from merkhet.reports.report_data import ReportData

_MOST = 20
_MOST_OF_SEVERAL = 6
MOST_PAIRS = 6


def changed_questions(
    data: ReportData, judged: Outcomes, pairs: list[tuple[str, str]], tasks: set[str]
) -> list[dict[str, Any]]:
    """For each pair of models, how many questions both, none and only one of them got right, and some of the latter.

    Questions are taken in the order of a hash of their ids, so that the choice depends on nothing else.
    """
    most = _MOST if len(pairs) == 1 else _MOST_OF_SEVERAL
    ids = data.questions["question_id"].to_pylist()
    asked = np.isin(np.array(data.questions["task"].to_pylist(), dtype=np.str_), sorted(tasks))
    found = []
    for model, other in pairs[:MOST_PAIRS]:
        first, second = (_rows(judged, name, len(ids)) for name in (model, other))
        both = asked & (first >= 0) & (second >= 0)
        verdicts = [np.where(both, judged.verdict[rows], -2) for rows in (first, second)]
        usable = np.isin(verdicts[0], (RIGHT, WRONG)) & np.isin(verdicts[1], (RIGHT, WRONG))
        right = [usable & (verdict == RIGHT) for verdict in verdicts]
        sides = []
        for name, mine, theirs in ((model, *right), (other, *right[::-1])):
            alone = sorted(np.flatnonzero(mine & ~theirs).tolist(), key=lambda place: question_hash(ids[place]))
            cards = [
                question_card(
                    data.questions,
                    data.answers,
                    judged,
                    place,
                    {int(judged.line[row]): int(row) for row in (first[place], second[place])},
                )
                for place in alone[:most]
            ]
            sides.append({"model": show.printable(name), "count": len(alone), "questions": cards})
        found.append(
            {
                "model": show.printable(model),
                "other": show.printable(other),
                "both": int(np.sum(right[0] & right[1])),
                "neither": int(np.sum(usable & ~right[0] & ~right[1])),
                "sides": sides,
            }
        )
    return found


def _rows(judged: Outcomes, model: str, count: int) -> npt.NDArray[np.int64]:
    """The row of a model's answer to each question, by its first line that has one; -1 where there is none."""
    rows = np.full(count, -1, dtype=np.int64)
    for line in reversed([place for place, series in enumerate(judged.series) if series.model == model]):
        own = np.flatnonzero((judged.line == line) & (judged.question >= 0))[::-1]
        rows[judged.question[own]] = own
    return rows
