"""Questions as they were asked: a sample of a run, and those that two models answered differently."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from merkhet.core import SLOT
from merkhet.questions.sense_text import bracketed_words
from merkhet.reports import formatting as show
from merkhet.reports._answer_outcomes import RIGHT, UNUSABLE, WRONG, Outcomes
from merkhet.reports._page_budget import fitting, weight
from merkhet.reports.report_data import ReportData

TOP = 3
_ROOM = 500_000
"""Bytes of a page that all questions may take, about."""
_NAME = 80
_MANY_LINES = 8
_MANY_TASKS = 6
_LONG, _ANSWER = 1500, 300


def sample_questions(questions: pa.Table, answers: pa.Table, judged: Outcomes) -> list[dict[str, Any]]:
    """For each task, questions that each model answered rightly and wrongly, with what the models said.

    Questions are taken in the order of a hash of their ids, so that the sample depends on nothing else. Where there
    are more than eight models, a question shows only those for which it was drawn. Where texts are long, or tasks many,
    there are fewer questions, so that a page stays one that can be opened.
    """
    each = 2 if len(judged.series) <= _MANY_LINES // 2 and len(judged.tasks) <= _MANY_TASKS else 1
    drawn = _draw(questions, judged, each)
    shown_rows = _rows_to_show(judged, drawn)
    tasks = []
    room = _ROOM
    for task, name in enumerate(judged.tasks):
        chosen = drawn.get(task, {})
        if chosen and room > 0:
            cards = (question_card(questions, answers, judged, question, shown_rows[question]) for question in chosen)
            kept = fitting(cards, _ROOM // len(drawn), least=min(2, 1 + room // _ROOM))
            room -= weight(kept)
            tasks.append({"task": show.printable(name), "questions": kept})
    return tasks


def _draw(questions: pa.Table, judged: Outcomes, each: int) -> dict[int, dict[int, set[int]]]:
    """By task, the questions drawn and the lines each was drawn for."""
    key = np.array([question_hash(identity) for identity in questions["question_id"].to_pylist()], dtype=np.uint64)
    usable = np.flatnonzero((judged.line >= 0) & (judged.question >= 0) & (judged.verdict != UNUSABLE))
    order = usable[np.argsort(key[judged.question[usable]], kind="stable")] if len(usable) else usable
    left: dict[tuple[int, int, int], int] = {}
    drawn: dict[int, dict[int, set[int]]] = {}
    places = len(judged.series) * 2 * len(judged.tasks)
    columns = (judged.task[order], judged.line[order], judged.verdict[order], judged.question[order])
    for task, line, verdict, question in zip(*(column.tolist() for column in columns), strict=True):
        quota = (task, line, verdict)
        taken = left.get(quota, 0)
        if taken < each:
            left[quota] = taken + 1
            drawn.setdefault(task, {}).setdefault(question, set()).add(line)
            places -= taken + 1 == each
            if not places:
                break
    return drawn


def question_hash(identity: str) -> int:
    """A number by which questions are ordered as if they were drawn."""
    return int.from_bytes(hashlib.sha256(identity.encode()).digest()[:8], "big")


def _rows_to_show(judged: Outcomes, drawn: dict[int, dict[int, set[int]]]) -> dict[int, dict[int, int]]:
    """For each drawn question, the row of the answer of each line that is shown with it."""
    lines = {question: wanted for chosen in drawn.values() for question, wanted in chosen.items()}
    everyone = len(judged.series) <= _MANY_LINES
    rows: dict[int, dict[int, int]] = {question: {} for question in lines}
    for row in np.flatnonzero(np.isin(judged.question, list(lines)) & (judged.line >= 0)).tolist():
        question, line = int(judged.question[row]), int(judged.line[row])
        if everyone or line in lines[question]:
            rows[question].setdefault(line, row)
    return rows


def question_card(
    questions: pa.Table, answers: pa.Table, judged: Outcomes, place: int, rows: dict[int, int]
) -> dict[str, Any]:
    """A question as it was asked, with what the answers in these rows, by line, say."""
    question = questions.slice(place, 1).to_pylist()[0]
    before, _, after = _short(question["prompt"]).partition(SLOT)
    senses = bracketed_words(question)
    golds = [_answer(answer, senses) for answer in question["answers"] or ()]
    tags = dict.fromkeys(
        show.printable(question[name]) for name in ("domain", "rule", "template", "split") if question[name]
    )
    said = [_said(answers, judged, rows[line], line, set(golds), senses) for line in sorted(rows)]
    return {
        "id": question["question_id"],
        "before": before,
        "slot": show.printable(senses.get(question["prompt"], "?")),
        "after": after,
        "golds": golds[:8],
        "more_golds": max(0, len(golds) - 8),
        "choices": int(judged.choices[place]),
        "tags": [_short(tag, 60) for tag in tags],
        "said": said,
        "right": sum(answer["verdict"] == "right" for answer in said),
        "of": len(said),
    }


def _said(
    answers: pa.Table, judged: Outcomes, row: int, line: int, golds: set[str], senses: Mapping[str, str]
) -> dict[str, Any]:
    answer = answers.slice(row, 1).to_pylist()[0]
    ranked = [item for item in answer["ranked"] or () if item is not None][:TOP]
    top = [(_answer(item["candidate"] or "", senses), show.finite(item["score"])) for item in ranked]
    if not top and answer["prediction"] is not None:
        top = [(_answer(answer["prediction"], senses), None)]
    verdicts = {RIGHT: "right", WRONG: "wrong", UNUSABLE: "unusable"}
    return {
        "line": line,
        "model": _short(judged.series[line].label, _NAME),
        "verdict": verdicts[int(judged.verdict[row])],
        "reason": show.printable(answer["unusable"] or _no_answer(answer)),
        "rank": show.rank(float(judged.rank[row])),
        "top": [{"text": text, "score": _score(value), "gold": text in golds} for text, value in top],
    }


def _no_answer(answer: Mapping[str, Any]) -> str:
    """What a model replied instead of an answer; nothing where it answered, or was not talked to."""
    outcome = answer.get("outcome")
    if outcome in (None, "answered"):
        return ""
    return f"{outcome}: {_short(' / '.join(answer.get('replies') or ()), _ANSWER)}"


def _answer(text: str, senses: Mapping[str, str]) -> str:
    """An answer that fits a page; a usage of a word has the word in its slot."""
    shown = _short(text, _ANSWER)
    return shown.replace(SLOT, show.printable(senses[text]), 1) if text in senses else shown


def _score(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:.2f}" if abs(value) >= 0.1 else f"{value:.2g}"


def _short(text: str, limit: int = _LONG) -> str:
    """Text that fits a page. A prompt is cut around its slot, never through it."""
    text = show.printable(text)
    if len(text) <= limit:
        return text
    slot = text.find(SLOT)
    start = max(0, min(slot - limit // 2, len(text) - limit)) if slot >= 0 else 0
    return ("…" if start else "") + text[start : start + limit] + ("…" if start + limit < len(text) else "")


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
