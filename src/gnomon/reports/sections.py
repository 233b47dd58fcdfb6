"""The tables of the report as plain values, ready for the template."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from gnomon.reports import formatting as show
from gnomon.reports.data import ReportData
from gnomon.reports.scoreboard import Cell, Column, Scoreboard, Series, cell, group_columns, grouped_rows, overall_rows

MOST_GROUPS = 300
CLEAR = 0.05
"""Below it a difference is told as one."""
_MOST_CELLS = 15_000
_MOST_METRICS = 500
_FIRST_GROUPS = ("relation", "domain")


def number_cell(found: Cell | None, percent: bool, *, best: bool = False) -> dict[str, Any]:
    """A cell of a table of scores: text, interval, the number to sort by, and what to say when pointed at."""
    if found is None:
        return {"text": show.DASH, "interval": "", "sort": "", "tip": "not asked", "best": False, "bar": None}
    chance = "" if found.chance is None else f", chance {show.score(found.chance, percent=percent)}"
    share = percent and found.value is not None
    return {
        "text": show.score(found.value, percent=percent),
        "interval": show.interval(found.low, found.high, percent=percent),
        "sort": "" if found.value is None else f"{found.value:.6g}",
        "tip": f"n = {found.n:,}, {found.unusable:,} unusable{chance}",
        "best": best,
        "bar": f"{100 * min(1.0, max(0.0, found.value or 0.0)):.1f}" if share else None,
    }


def main_table(board: Scoreboard, colours: Mapping[Series, str]) -> dict[str, Any]:
    """Models by headline scores, with rows for chance and for the number of questions."""
    lines = []
    for line in board.series:
        cells = [board.cells.get((line, column)) for column in board.columns]
        by_task = {column.task: found for column, found in zip(board.columns, cells, strict=True) if found}
        lines.append(
            {
                "label": line.label,
                "colour": colours[line],
                "cells": [
                    number_cell(found, column.percent, best=line in board.best.get(column, ()))
                    for column, found in zip(board.columns, cells, strict=True)
                ],
                "unusable": show.count(sum(found.unusable for found in by_task.values())),
            }
        )
    return {
        "spaced": any(found.low is not None for found in board.cells.values()),
        "columns": [column.label for column in board.columns],
        "lines": lines,
        "chance": [show.span(board.chances(column), percent=column.percent) for column in board.columns],
        "n": [_counts(board, column) for column in board.columns],
    }


def every_score(scores: pa.Table) -> dict[str, Any]:
    """All overall scores in long form."""
    rows = overall_rows(scores)
    shown = []
    for row in rows[:_MOST_METRICS]:
        found = cell(row)
        percent = found.value is None or abs(found.value) <= 1
        names = [show.printable(row[name]) for name in ("model", "task", "probe", "method")]
        shown.append(
            {
                "names": [*names, show.metric_label(show.printable(row["metric"]))],
                "score": number_cell(found, percent),
                "chance": show.score(found.chance, percent=percent),
                "n": found.n,
                "unusable": found.unusable,
            }
        )
    return {"rows": shown, "left_out": len(rows) - len(shown)}


def group_names(scores: pa.Table) -> list[str]:
    """The group columns that hold something, relation and domain first."""
    there = [name for name in group_columns(scores) if grouped_rows(scores, name)]
    return sorted(there, key=lambda name: (name not in _FIRST_GROUPS, name not in _FIRST_GROUPS[:1]))


def group_tables(
    scores: pa.Table, group: str, columns: Sequence[Column], series: Sequence[Series], share: int = 1
) -> list[dict[str, Any]]:
    """One table for each headline score: the groups by the models, largest groups first.

    Where ``share`` group columns share the page, each shows as many rows as leave the page a readable size.
    """
    limit = _MOST_CELLS // max(1, share * len(columns) * len(series))
    limit = min(MOST_GROUPS, max(10, limit))
    rows = grouped_rows(scores, group)
    tables = []
    for column in columns:
        found: dict[str, dict[Series, Cell]] = {}
        for row in rows:
            line = next((line for line in series if line.covers(row)), None)
            if line is not None and (row["task"], row["metric"]) == (column.task, column.metric):
                found.setdefault(str(row[group]), {}).setdefault(line, cell(row))
        if not found:
            continue
        lines = [line for line in series if any(line in cells for cells in found.values())]
        sizes = {name: max(entry.n for entry in cells.values()) for name, cells in found.items()}
        order = sorted(found, key=lambda name: (-sizes[name], name))
        shown = []
        for name in order[:limit]:
            chances = [entry.chance for entry in found[name].values() if entry.chance is not None]
            shown.append(
                {
                    "name": show.printable(name),
                    "n": sizes[name],
                    "chance": show.span(chances, percent=column.percent),
                    "chance_sort": f"{chances[0]:.6g}" if chances else "",
                    "cells": [number_cell(found[name].get(line), column.percent) for line in lines],
                }
            )
        tables.append(
            {
                "title": column.label,
                "models": [line.label for line in lines],
                "spaced": any(entry.low is not None for cells in found.values() for entry in cells.values()),
                "rows": shown,
                "left_out": len(order) - len(shown),
            }
        )
    return tables


def comparisons(findings: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Paired comparisons of models, with what each of them tells."""
    rows = []
    for item in findings.get("comparisons") or ():
        low, high, p = (show.finite(item.get(name)) for name in ("low", "high", "p"))
        model, other = show.printable(item.get("model", "")), show.printable(item.get("other", ""))
        if low is None or high is None:
            verdict = ""
        elif (low > 0 or high < 0) and (p is None or p < CLEAR):  # The interval is not corrected for many pairs, p is.
            verdict = f"{model if low > 0 else other} is ahead"
        else:
            verdict = "not told apart"
        rows.append(
            {
                "column": show.printable(f"{item.get('task', '')} {show.metric_label(str(item.get('metric', '')))}"),
                "model": model,
                "other": other,
                "difference": show.difference(item.get("difference")),
                "sort": show.finite(item.get("difference")),
                "interval": f"[{show.difference(low)}, {show.difference(high)}]"
                if low is not None and high is not None
                else "",
                "p": show.probability(item.get("p")),
                "p_sort": show.finite(item.get("p")),
                "verdict": verdict,
                "told": verdict.endswith("ahead"),
            }
        )
    return rows


def unusable(data: ReportData) -> list[dict[str, Any]]:
    """Questions that could not be asked, by model and reason: as the findings name them, or counted from answers."""
    named = data.findings.get("unusable")
    if named is None:
        kept = data.answers.filter(pc.is_valid(data.answers["unusable"]))
        kept = kept.group_by(["model", "unusable"], use_threads=False).aggregate([("question_id", "count_distinct")])
        named = [
            {"model": row["model"], "reason": row["unusable"], "count": row["question_id_count_distinct"]}
            for row in kept.to_pylist()
        ]
    return [
        {
            "model": show.printable(item.get("model", "")),
            "reason": show.printable(item.get("reason", "")),
            "count": show.count(item.get("count")),
            "sort": show.finite(item.get("count")),
        }
        for item in named
    ]


def sampled(record: Mapping[str, Any]) -> str:
    """What the questions and answers of a run are a sample of, where they are not all that was asked."""
    found = record.get("sampled")
    if not isinstance(found, Mapping) or found.get("questions") == found.get("of"):
        return ""
    return show.printable(
        f"{show.count(found.get('questions'))} of the {show.count(found.get('of'))} questions that were asked, drawn "
        f"by the seed; the scores are of all of them, and all answers are in the run’s folder {found.get('all')}."
    )


def model_table(record: Mapping[str, Any]) -> list[dict[str, str]]:
    """The models as they were run: where from, the weights' hash, size, speed."""
    return [
        {
            "name": show.printable(model.get("name", show.DASH)),
            "kind": show.printable(model.get("kind") or show.DASH),
            "source": show.printable(model.get("source") or show.DASH),
            "fingerprint": show.printable(model.get("fingerprint") or show.DASH),
            "parameters": show.count(model.get("parameters")),
            "dtype": show.printable(model.get("dtype") or show.DASH),
            "seconds": show.quantity(model.get("seconds")),
            "rate": show.quantity(model.get("questions_per_second")),
        }
        for model in record.get("models") or ()
    ]


def environment(record: Mapping[str, Any]) -> list[tuple[str, str]]:
    """What else the run depended on, as pairs of a name and a value."""
    questions = record.get("questions") or {}
    pairs: list[tuple[str, Any]] = [
        ("gnomon", record.get("gnomon")),
        ("Python", record.get("python")),
        ("seed", record.get("seed")),
        ("questions", show.count(questions.get("count")) if questions.get("count") is not None else None),
        ("questions’ digest", questions.get("digest")),
        ("facts", show.count(questions.get("facts")) if questions.get("facts") is not None else None),
    ]
    pairs += [(f"questions, {task}", show.count(size)) for task, size in (questions.get("by_task") or {}).items()]
    pairs += [(str(name), value) for name, value in _pairs(record.get("machine"), "machine")]
    pairs += [(str(name), value) for name, value in _pairs(record.get("versions"), "versions")]
    return [(show.printable(name), show.printable(value)) for name, value in pairs if value not in (None, "")]


def plain_json(content: Any) -> str:
    """A mapping as text that people can read."""
    return show.printable(json.dumps(content, ensure_ascii=False, indent=2, default=str))


def _pairs(content: Any, name: str) -> list[tuple[str, Any]]:
    if not isinstance(content, Mapping):
        return [] if content is None else [(name, content)]
    return [
        (str(key), json.dumps(value, ensure_ascii=False, default=str) if isinstance(value, dict | list) else value)
        for key, value in content.items()
    ]


def _counts(board: Scoreboard, column: Column) -> str:
    sizes = sorted({board.cells[line, column].n for line in board.series if (line, column) in board.cells})
    if not sizes:
        return show.DASH
    return show.count(sizes[0]) if len(sizes) == 1 else f"{show.count(sizes[0])}–{show.count(sizes[-1])}"
