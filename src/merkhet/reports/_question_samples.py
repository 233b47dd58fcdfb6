"""Sample questions of a run, and questions that only one of two models answered correctly."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from merkhet.core import SLOT
from merkhet.core import text as fmt
from merkhet.questions.sense_text import bracketed_words
from merkhet.reports._answer_outcomes import RIGHT, UNUSABLE, WRONG, Outcomes
from merkhet.reports._page_budget import page_bytes, take_fitting
from merkhet.reports.report_data import ReportData

_TOP = 3
_QUESTIONS_BUDGET = 500_000
"""Approximate maximum size of all sample questions in a page, in bytes."""
_MAX_NAME = 80
_MANY_LINES = 8
_MANY_TASKS = 6
_MAX_PROMPT, _MAX_ANSWER = 1500, 300
_MAX_PREMISES = 12


def sample_questions(
    questions: pa.Table, answers: pa.Table, outcomes: Outcomes, premises: pa.Table | None = None
) -> list[dict[str, Any]]:
    """Sample, for each task and model, some questions that the model answered correctly and some that it did not.

    Questions are drawn in the order of a hash of their ids, so the sample is reproducible. With more than eight
    scoreboard lines, a question shows only the answers of the lines for which it was drawn. Long texts and many tasks
    reduce the sample to limit the size of the page.
    """
    per_verdict = 2 if len(outcomes.series) <= _MANY_LINES // 2 and len(outcomes.tasks) <= _MANY_TASKS else 1
    drawn_lines = _draw(questions, outcomes, per_verdict)
    shown_rows = _rows_to_show(outcomes, drawn_lines)
    tasks = []
    budget = _QUESTIONS_BUDGET
    for task, name in enumerate(outcomes.tasks):
        chosen = drawn_lines.get(task, {})
        if chosen and budget > 0:
            views = (
                _question_card(questions, answers, outcomes, question, shown_rows[question], premises)
                for question in chosen
            )
            cards = take_fitting(
                views, _QUESTIONS_BUDGET // len(drawn_lines), minimum=min(2, 1 + budget // _QUESTIONS_BUDGET)
            )
            budget -= page_bytes(cards)
            tasks.append({"task": fmt.printable(name), "questions": cards})
    return tasks


def sample_note(record: Mapping[str, Any]) -> str:
    """Describe how the run's questions were sampled from all asked questions; empty if none were left out."""
    sample = record.get("sampled")
    if not isinstance(sample, Mapping) or sample.get("questions") == sample.get("of"):
        return ""
    return fmt.printable(
        f"{fmt.count(sample.get('questions'))} of {fmt.counted(sample.get('of') or 0, 'question')} asked, drawn "
        f"by the seed; scores cover all questions, and all answers are in the run’s folder {sample.get('all')}."
    )


def _draw(questions: pa.Table, outcomes: Outcomes, per_verdict: int) -> dict[int, dict[int, set[int]]]:
    """Draw ``per_verdict`` right and wrong answers for each task and scoreboard line.

    Returns:
        For each task and each drawn question, the lines for which the question was drawn.
    """
    key = np.array([_question_hash(identity) for identity in questions["question_id"].to_pylist()], dtype=np.uint64)
    usable = np.flatnonzero((outcomes.line >= 0) & (outcomes.question >= 0) & (outcomes.verdict != UNUSABLE))
    order = usable[np.argsort(key[outcomes.question[usable]], kind="stable")] if len(usable) else usable
    counts: dict[tuple[int, int, int], int] = {}
    drawn_lines: dict[int, dict[int, set[int]]] = {}
    open_quotas = len(outcomes.series) * 2 * len(outcomes.tasks)
    columns = (outcomes.task[order], outcomes.line[order], outcomes.verdict[order], outcomes.question[order])
    for task, line, verdict, question in zip(*(column.tolist() for column in columns), strict=True):
        quota = (task, line, verdict)
        count = counts.get(quota, 0)
        if count < per_verdict:
            counts[quota] = count + 1
            drawn_lines.setdefault(task, {}).setdefault(question, set()).add(line)
            open_quotas -= count + 1 == per_verdict
            if not open_quotas:
                break
    return drawn_lines


def _question_hash(identity: str) -> int:
    return int.from_bytes(hashlib.sha256(identity.encode()).digest()[:8], "big")


def _rows_to_show(outcomes: Outcomes, drawn_lines: dict[int, dict[int, set[int]]]) -> dict[int, dict[int, int]]:
    """Return, for each drawn question, the row of its answer in the answer table for each line to show."""
    lines = {question: question_lines for chosen in drawn_lines.values() for question, question_lines in chosen.items()}
    show_all = len(outcomes.series) <= _MANY_LINES
    rows: dict[int, dict[int, int]] = {question: {} for question in lines}
    for row in np.flatnonzero(np.isin(outcomes.question, list(lines)) & (outcomes.line >= 0)).tolist():
        question, line = int(outcomes.question[row]), int(outcomes.line[row])
        if show_all or line in lines[question]:
            rows[question].setdefault(line, row)
    return rows


def _question_card(
    questions: pa.Table,
    answers: pa.Table,
    outcomes: Outcomes,
    index: int,
    rows: dict[int, int],
    premises: pa.Table | None = None,
) -> dict[str, Any]:
    """Format a question and its answers for the page.

    ``rows`` maps a scoreboard line to the row of its answer in the answer table.
    """
    question = questions.slice(index, 1).to_pylist()[0]
    before, _, after = _truncate(question["prompt"]).partition(SLOT)
    senses = bracketed_words(question)
    golds = [_answer_text(answer, senses) for answer in question["answers"] or ()]
    tags = dict.fromkeys(
        fmt.printable(question[name]) for name in ("domain", "rule", "template", "split") if question[name]
    )
    replies = [_reply_view(answers, outcomes, rows[line], line, set(golds), senses) for line in sorted(rows)]
    return {
        "id": question["question_id"],
        "before": before,
        "slot": fmt.printable(senses.get(question["prompt"], "?")),
        "after": after,
        "golds": golds[:8],
        "more_golds": max(0, len(golds) - 8),
        "choices": int(outcomes.choices[index]),
        "tags": [_truncate(tag, 60) for tag in tags],
        "premises": _premise_views(question, premises),
        "replies": replies,
        "right": sum(answer["verdict"] == "right" for answer in replies),
        "of": len(replies),
    }


def _premise_views(question: Mapping[str, Any], premises: pa.Table | None) -> list[dict[str, str]]:
    """Return the premises of a question as sentences; the axiom is named where it is not the question's own."""
    if premises is None or not question["rule"]:
        return []
    rows = premises.filter(pc.equal(premises["question_id"], question["question_id"])).to_pylist()
    return [
        {
            "text": _truncate(row["sentence"], _MAX_ANSWER),
            "axiom": "" if row["axiom"] == question["rule"] else fmt.printable(row["axiom"]),
        }
        for row in rows[:_MAX_PREMISES]
        if row["sentence"]
    ]


def _reply_view(
    answers: pa.Table, outcomes: Outcomes, row: int, line: int, golds: set[str], senses: Mapping[str, str]
) -> dict[str, Any]:
    answer = answers.slice(row, 1).to_pylist()[0]
    ranked = [item for item in answer["ranked"] or () if item is not None][:_TOP]
    top = [(_answer_text(item["candidate"] or "", senses), fmt.finite_or_none(item["score"])) for item in ranked]
    if not top and answer["prediction"] is not None:
        top = [(_answer_text(answer["prediction"], senses), None)]
    verdicts = {RIGHT: "right", WRONG: "wrong", UNUSABLE: "unusable"}
    return {
        "line": line,
        "model": _truncate(outcomes.series[line].label, _MAX_NAME),
        "verdict": verdicts[int(outcomes.verdict[row])],
        "reason": fmt.printable(answer["unusable"] or _refusal_text(answer)),
        "rank": fmt.rank(float(outcomes.rank[row])),
        "top": [{"text": text, "score": _score_text(value), "gold": text in golds} for text, value in top],
    }


def _refusal_text(answer: Mapping[str, Any]) -> str:
    """Return the replies of a chat model that gave no answer; empty for answers and for other models."""
    outcome = answer.get("outcome")
    if outcome in (None, "answered"):
        return ""
    return f"{outcome}: {_truncate(' / '.join(answer.get('replies') or ()), _MAX_ANSWER)}"


def _answer_text(text: str, senses: Mapping[str, str]) -> str:
    """Truncate an answer, and fill the slot of a usage example with its word from ``senses``."""
    short = _truncate(text, _MAX_ANSWER)
    return short.replace(SLOT, fmt.printable(senses[text]), 1) if text in senses else short


def _score_text(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:.2f}" if abs(value) >= 0.1 else f"{value:.2g}"


def _truncate(text: str, limit: int = _MAX_PROMPT) -> str:
    """Truncate a text to ``limit`` characters; the part around the slot of a prompt is kept."""
    text = fmt.printable(text)
    if len(text) <= limit:
        return text
    slot = text.find(SLOT)
    start = max(0, min(slot - limit // 2, len(text) - limit)) if slot >= 0 else 0
    return ("…" if start else "") + text[start : start + limit] + ("…" if start + limit < len(text) else "")


_MAX_CHANGED = 20
_MAX_CHANGED_PER_PAIR = 6
MAX_PAIRS = 6


def changed_questions(
    data: ReportData, outcomes: Outcomes, pairs: list[tuple[str, str]], tasks: set[str]
) -> list[dict[str, Any]]:
    """Count, for each pair of models, the questions that both, neither, or only one of the models got right.

    Questions that only one model got right are sampled in the order of a hash of their ids, which is reproducible.
    """
    limit = _MAX_CHANGED if len(pairs) == 1 else _MAX_CHANGED_PER_PAIR
    ids = data.questions["question_id"].to_pylist()
    asked = np.isin(np.array(data.questions["task"].to_pylist(), dtype=np.str_), sorted(tasks))
    sections = []
    for model, other in pairs[:MAX_PAIRS]:
        first, second = (_answer_rows(outcomes, name, len(ids)) for name in (model, other))
        both = asked & (first >= 0) & (second >= 0)
        verdicts = [np.where(both, outcomes.verdict[rows], -2) for rows in (first, second)]
        usable = np.isin(verdicts[0], (RIGHT, WRONG)) & np.isin(verdicts[1], (RIGHT, WRONG))
        right = [usable & (verdict == RIGHT) for verdict in verdicts]
        sides = []
        for name, right_here, right_there in ((model, *right), (other, *right[::-1])):
            only_here = sorted(
                np.flatnonzero(right_here & ~right_there).tolist(), key=lambda index: _question_hash(ids[index])
            )
            cards = []
            for index in only_here[:limit]:
                rows = {int(outcomes.line[row]): int(row) for row in (first[index], second[index])}
                cards.append(_question_card(data.questions, data.answers, outcomes, index, rows, data.premises))
            sides.append({"model": fmt.printable(name), "count": len(only_here), "questions": cards})
        sections.append(
            {
                "model": fmt.printable(model),
                "other": fmt.printable(other),
                "both": int(np.sum(right[0] & right[1])),
                "neither": int(np.sum(usable & ~right[0] & ~right[1])),
                "sides": sides,
            }
        )
    return sections


def _answer_rows(outcomes: Outcomes, model: str, count: int) -> npt.NDArray[np.int64]:
    """Return, for each question, the row of the model's answer in the answer table; -1 without an answer.

    If several scoreboard lines of the model have an answer, the first line counts.
    """
    rows = np.full(count, -1, dtype=np.int64)
    for line in reversed([index for index, series in enumerate(outcomes.series) if series.model == model]):
        answer_rows = np.flatnonzero((outcomes.line == line) & (outcomes.question >= 0))[::-1]
        rows[outcomes.question[answer_rows]] = answer_rows
    return rows
