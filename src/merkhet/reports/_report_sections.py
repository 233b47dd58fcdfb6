"""The tables of the report as plain values, ready for the template."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from merkhet.metrics.corrections import SIGNIFICANCE_LEVEL
from merkhet.reports import formatting as show
from merkhet.reports._page_budget import fitting
from merkhet.reports.report_data import ReportData
from merkhet.reports.scoreboard import Cell, Column, Scoreboard, Series, cell, group_columns, grouped_rows, overall_rows

MOST_GROUPS = 300
"""Below it a difference is told as one."""
_MOST_CELLS = 15_000
_MOST_METRICS = 500
_MOST_COMPARED = 400
_MOST_REASONS = 300
_ROOM_FOR_SCORES, _ROOM_FOR_PAIRS, _ROOM_FOR_REASONS, _ROOM_FOR_GROUPS = 200_000, 150_000, 60_000, 1_600_000
"""Bytes of a page, about; names stand twice where they may be cut."""
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
        unasked = sum(found.unusable for found in by_task.values())
        lines.append(
            {
                "label": line.label,
                "colour": colours[line],
                "cells": [
                    number_cell(found, column.percent, best=line in board.best.get(column, ()))
                    for column, found in zip(board.columns, cells, strict=True)
                ],
                "unusable": show.count(unasked),
                "unusable_sort": unasked,
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
    adjusted = any(show.finite(row.get("adjusted")) is not None for row in rows)
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
                "chance_sort": "" if found.chance is None else f"{found.chance:.6g}",
                "adjusted": _adjusted(row),
                "n": found.n,
                "unusable": found.unusable,
            }
        )
    shown = fitting(shown, _ROOM_FOR_SCORES)
    return {"rows": shown, "adjusted": adjusted, "left_out": len(rows) - len(shown)}


def _adjusted(row: Mapping[str, Any]) -> dict[str, str]:
    """A score adjusted for chance: 0 is guessing, 100 is all right."""
    value = show.finite(row.get("adjusted"))
    return {"text": show.score(value), "sort": "" if value is None else f"{value:.6g}"}


def group_names(scores: pa.Table) -> list[str]:
    """The group columns that hold something, relation and domain first."""
    there = [name for name in group_columns(scores) if grouped_rows(scores, name)]
    return sorted(there, key=lambda name: (name not in _FIRST_GROUPS, name not in _FIRST_GROUPS[:1]))


def _headline_rows(scores: pa.Table, columns: Sequence[Column]) -> pa.Table:
    """The rows that are of a headline's task and metric, or nearly: those of its tasks and metrics."""
    tasks, metrics = (pa.array({getattr(one, name) for one in columns}, pa.string()) for name in ("task", "metric"))
    return scores.filter(pc.and_(pc.is_in(scores["task"], tasks), pc.is_in(scores["metric"], metrics)))


def group_tables(
    scores: pa.Table, group: str, columns: Sequence[Column], series: Sequence[Series], share: int = 1
) -> list[dict[str, Any]]:
    """One table for each headline score: the groups by the models, largest groups first.

    Where ``share`` group columns share the page, each shows as many rows as leave the page a readable size.
    """
    limit = _MOST_CELLS // max(1, share * len(columns) * len(series))
    limit = min(MOST_GROUPS, max(10, limit))
    of_column: dict[tuple[str, str], dict[str, dict[Series, Cell]]] = {}
    line_of: dict[tuple[str, str, str], Series | None] = {}
    for row in grouped_rows(_headline_rows(scores, columns), group):
        way = (row["model"], row["probe"], row["method"])
        if way not in line_of:
            line_of[way] = next((line for line in series if line.covers(row)), None)
        line = line_of[way]
        if line is not None:
            found = of_column.setdefault((row["task"], row["metric"]), {})
            found.setdefault(str(row[group]), {}).setdefault(line, cell(row))
    tables = []
    for column in columns:
        found = of_column.get((column.task, column.metric), {})
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
        shown = fitting(shown, _ROOM_FOR_GROUPS // max(1, share * len(columns)))
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


def comparisons(findings: Mapping[str, Any]) -> dict[str, Any]:
    """Paired comparisons of models, with what each of them tells; columns that no comparison fills are left out."""
    found = list(findings.get("comparisons") or ())
    known = {name for name in _FURTHER if any(show.finite(item.get(name)) is not None for item in found)}
    rows = fitting([_comparison(item, known) for item in found[:_MOST_COMPARED]], _ROOM_FOR_PAIRS)
    further = [(label, tip) for name, (label, tip, _) in _FURTHER.items() if name in known]
    explained = [pair for pair in further if pair[0] not in ("questions", "facts")]
    return {"columns": further, "explained": explained, "rows": rows, "left_out": len(found) - len(rows)}


def _comparison(item: Mapping[str, Any], known: Collection[str]) -> dict[str, Any]:
    low, high, p = (show.finite(item.get(name)) for name in ("low", "high", "p"))
    model, other = show.printable(item.get("model", "")), show.printable(item.get("other", ""))
    if low is None or high is None:
        verdict = "too little to tell"
    elif (low > 0 or high < 0) and (
        p is None or p < SIGNIFICANCE_LEVEL
    ):  # The interval is not corrected for many pairs, p is.
        verdict = f"{model if low > 0 else other} is ahead"
    else:
        verdict = "not told apart"
    cells = []
    for name, (_, _, shown) in _FURTHER.items():
        if name in known:
            value = show.finite(item.get(name))
            cells.append({"text": shown(value), "sort": "" if value is None else f"{value:.6g}"})
    group = f", {item.get('group_column') or 'group'} {item['group']}" if item.get("group") is not None else ""
    return {
        "column": show.printable(f"{item.get('task', '')} {show.metric_label(str(item.get('metric', '')))}{group}"),
        "model": model,
        "other": other,
        "difference": show.difference(item.get("difference")),
        "sort": show.finite(item.get("difference")),
        "interval": f"[{show.difference(low)}, {show.difference(high)}]"
        if low is not None and high is not None
        else "",
        "p": show.probability(item.get("p")),
        "p_sort": show.finite(item.get("p")),
        "cells": cells,
        "verdict": verdict,
        "told": verdict.endswith("ahead"),
    }


def _points(value: float | None) -> str:
    return show.DASH if value is None else show.score(value)


def _ratio(value: float | None) -> str:
    return show.DASH if value is None else f"{value:,.2f}" if value < 100 else f"{value:,.0f}"


def effect_in_words(value: float | None) -> str:
    """Cohen's d with the word that his book has for it."""
    if value is None:
        return show.DASH
    size = abs(value)
    word = next((name for name, least in _EFFECTS if size >= least), "negligible")
    return f"{value:.2f} {word}".replace("-0.00", "0.00")


_EFFECTS = (("large", 0.8), ("medium", 0.5), ("small", 0.2))
_FURTHER: dict[str, tuple[str, str, Callable[[float | None], str]]] = {
    "q": ("q", "Benjamini and Hochberg’s q: the share of false discoveries", show.probability),
    "mcnemar": ("McNemar", "p of McNemar’s test, uncorrected", show.probability),
    "effect": ("effect size", "Cohen’s d of the paired differences", effect_in_words),
    "odds": ("odds ratio", "of questions that only one of the two got right", _ratio),
    "detectable": ("detectable", "smallest true difference, in points, that would be found with 80% power", _points),
    "n": ("questions", "that both were asked", show.count),
    "facts": ("facts", "that these are about", show.count),
}
"""What a comparison may have besides: its column, what that says, and how a number is shown."""


def unusable(data: ReportData) -> dict[str, Any]:
    """Questions that could not be asked, by model and reason: as the findings name them, or counted from answers."""
    named = data.findings.get("unusable")
    if named is None:
        kept = data.answers.filter(pc.is_valid(data.answers["unusable"]))
        kept = kept.group_by(["model", "unusable"], use_threads=False).aggregate([("question_id", "count_distinct")])
        named = [
            {"model": row["model"], "reason": row["unusable"], "count": row["question_id_count_distinct"]}
            for row in kept.to_pylist()
        ]
    rows = [
        {
            "model": show.printable(item.get("model", "")),
            "reason": show.printable(item.get("reason", "")),
            "count": show.count(item.get("count")),
            "sort": show.finite(item.get("count")),
        }
        for item in named[:_MOST_REASONS]
    ]
    rows = fitting(rows, _ROOM_FOR_REASONS)
    return {
        "rows": rows,
        "left_out": len(named) - len(rows),
        "asked": bool(data.answers.num_rows),
        "wrong": bool(data.suite.get("unusable_is_wrong")),
    }


def sampled(record: Mapping[str, Any]) -> str:
    """What the questions and answers of a run are a sample of, where they are not all that was asked."""
    found = record.get("sampled")
    if not isinstance(found, Mapping) or found.get("questions") == found.get("of"):
        return ""
    return show.printable(
        f"{show.count(found.get('questions'))} of the {show.count(found.get('of'))} questions that were asked, drawn "
        f"by the seed; the scores are of all of them, and all answers are in the run’s folder {found.get('all')}."
    )


def _counts(board: Scoreboard, column: Column) -> str:
    sizes = sorted({board.cells[line, column].n for line in board.series if (line, column) in board.cells})
    if not sizes:
        return show.DASH
    return show.count(sizes[0]) if len(sizes) == 1 else f"{show.count(sizes[0])}–{show.count(sizes[-1])}"
