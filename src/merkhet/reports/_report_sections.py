"""Tables of the HTML report as plain values for the template."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from merkhet.metrics.corrections import SIGNIFICANCE_LEVEL
from merkhet.reports import formatting as fmt
from merkhet.reports._page_budget import take_fitting
from merkhet.reports.report_data import ReportData
from merkhet.reports.scoreboard import (
    Scoreboard,
    ScoreCell,
    ScoreColumn,
    Series,
    cell_from_row,
    group_columns,
    grouped_rows,
    overall_rows,
)

_MAX_GROUPS = 300
_MAX_CELLS = 15_000
_MAX_SCORES = 500
_MAX_COMPARISONS = 400
_MAX_REASONS = 300
_SCORES_BUDGET, _PAIRS_BUDGET, _REASONS_BUDGET, _GROUPS_BUDGET = 200_000, 150_000, 60_000, 1_600_000
"""Approximate bytes of a page. A name that may be truncated is counted twice, because its tooltip repeats it."""
_FIRST_GROUPS = ("relation", "domain")


def score_cell(score: ScoreCell | None, percent: bool, *, best: bool = False) -> dict[str, Any]:
    """Format a score with its interval, sort key and tooltip."""
    if score is None:
        return {"text": fmt.DASH, "interval": "", "sort": "", "tip": "not asked", "best": False, "bar": None}
    chance = "" if score.chance is None else f", chance {fmt.score(score.chance, percent=percent)}"
    has_bar = percent and score.value is not None
    return {
        "text": fmt.score(score.value, percent=percent),
        "interval": fmt.interval(score.low, score.high, percent=percent),
        "sort": "" if score.value is None else f"{score.value:.6g}",
        "tip": f"n = {score.n:,}, {score.unusable:,} unusable{chance}",
        "best": best,
        "bar": f"{100 * min(1.0, max(0.0, score.value or 0.0)):.1f}" if has_bar else None,
    }


def main_table(board: Scoreboard, colours: Mapping[Series, str]) -> dict[str, Any]:
    """Make the table of models by headline scores, with rows for chance and the number of questions."""
    lines = []
    for line in board.series:
        cells = [board.cells.get((line, column)) for column in board.columns]
        by_task = {column.task: score for column, score in zip(board.columns, cells, strict=True) if score}
        unusable = sum(score.unusable for score in by_task.values())
        lines.append(
            {
                "label": line.label,
                "colour": colours[line],
                "cells": [
                    score_cell(score, column.percent, best=line in board.best.get(column, ()))
                    for column, score in zip(board.columns, cells, strict=True)
                ],
                "unusable": fmt.count(unusable),
                "unusable_sort": unusable,
            }
        )
    return {
        "spaced": any(score.low is not None for score in board.cells.values()),
        "columns": [column.label for column in board.columns],
        "lines": lines,
        "chance": [fmt.value_range(board.chances(column), percent=column.percent) for column in board.columns],
        "n": [_question_counts(board, column) for column in board.columns],
    }


def all_scores_table(scores: pa.Table) -> dict[str, Any]:
    """Make the table of all overall scores in long form."""
    rows = overall_rows(scores)
    has_adjusted = any(fmt.finite_or_none(row.get("adjusted")) is not None for row in rows)
    entries = []
    for row in rows[:_MAX_SCORES]:
        score = cell_from_row(row)
        percent = score.value is None or abs(score.value) <= 1
        names = [fmt.printable(row[name]) for name in ("model", "task", "probe", "method")]
        entries.append(
            {
                "names": [*names, fmt.metric_label(fmt.printable(row["metric"]))],
                "score": score_cell(score, percent),
                "chance": fmt.score(score.chance, percent=percent),
                "chance_sort": "" if score.chance is None else f"{score.chance:.6g}",
                "adjusted": _adjusted_cell(row),
                "n": score.n,
                "unusable": score.unusable,
            }
        )
    entries = take_fitting(entries, _SCORES_BUDGET)
    return {"rows": entries, "adjusted": has_adjusted, "left_out": len(rows) - len(entries)}


def _adjusted_cell(row: Mapping[str, Any]) -> dict[str, str]:

    value = fmt.finite_or_none(row.get("adjusted"))
    return {"text": fmt.score(value), "sort": "" if value is None else f"{value:.6g}"}


def group_names(scores: pa.Table) -> list[str]:
    """Return the group columns that have rows, relation and domain first."""
    names = [name for name in group_columns(scores) if grouped_rows(scores, name)]
    return sorted(names, key=lambda name: (name not in _FIRST_GROUPS, name not in _FIRST_GROUPS[:1]))


def _headline_rows(scores: pa.Table, columns: Sequence[ScoreColumn]) -> pa.Table:
    # A cheap superset of the headline's pairs of task and metric.
    tasks, metrics = (
        pa.array({getattr(column, name) for column in columns}, pa.string()) for name in ("task", "metric")
    )
    return scores.filter(pc.and_(pc.is_in(scores["task"], tasks), pc.is_in(scores["metric"], metrics)))


def group_tables(
    scores: pa.Table, group: str, columns: Sequence[ScoreColumn], series: Sequence[Series], share: int = 1
) -> list[dict[str, Any]]:
    """Make one table for each headline score: groups by models, largest groups first.

    Args:
        share: number of group columns that share the page; the more there are, the fewer rows each one shows.
    """
    limit = _MAX_CELLS // max(1, share * len(columns) * len(series))
    limit = min(_MAX_GROUPS, max(10, limit))
    cells_of_score: dict[tuple[str, str], dict[str, dict[Series, ScoreCell]]] = {}
    line_of_way: dict[tuple[str, str, str], Series | None] = {}
    for row in grouped_rows(_headline_rows(scores, columns), group):
        way = (row["model"], row["probe"], row["method"])
        if way not in line_of_way:
            line_of_way[way] = next((line for line in series if line.covers(row)), None)
        line = line_of_way[way]
        if line is not None:
            groups = cells_of_score.setdefault((row["task"], row["metric"]), {})
            groups.setdefault(str(row[group]), {}).setdefault(line, cell_from_row(row))
    tables = []
    for column in columns:
        groups = cells_of_score.get((column.task, column.metric), {})
        if not groups:
            continue
        lines = [line for line in series if any(line in cells for cells in groups.values())]
        sizes = {name: max(score.n for score in cells.values()) for name, cells in groups.items()}
        order = sorted(groups, key=lambda name: (-sizes[name], name))
        entries = []
        for name in order[:limit]:
            chances = [score.chance for score in groups[name].values() if score.chance is not None]
            entries.append(
                {
                    "name": fmt.printable(name),
                    "n": sizes[name],
                    "chance": fmt.value_range(chances, percent=column.percent),
                    "chance_sort": f"{chances[0]:.6g}" if chances else "",
                    "cells": [score_cell(groups[name].get(line), column.percent) for line in lines],
                }
            )
        entries = take_fitting(entries, _GROUPS_BUDGET // max(1, share * len(columns)))
        tables.append(
            {
                "title": column.label,
                "models": [line.label for line in lines],
                "spaced": any(score.low is not None for cells in groups.values() for score in cells.values()),
                "rows": entries,
                "left_out": len(order) - len(entries),
            }
        )
    return tables


def comparison_section(findings: Mapping[str, Any]) -> dict[str, Any]:
    """Make the table of paired comparisons of models, without the test columns that no comparison fills."""
    pairs = list(findings.get("comparisons") or ())
    filled = {name for name in _TEST_COLUMNS if any(fmt.finite_or_none(pair.get(name)) is not None for pair in pairs)}
    rows = take_fitting([_comparison_row(pair, filled) for pair in pairs[:_MAX_COMPARISONS]], _PAIRS_BUDGET)
    test_columns = [(label, tip) for name, (label, tip, _) in _TEST_COLUMNS.items() if name in filled]
    explained = [column for column in test_columns if column[0] not in ("questions", "facts")]
    return {"columns": test_columns, "explained": explained, "rows": rows, "left_out": len(pairs) - len(rows)}


def _comparison_row(pair: Mapping[str, Any], filled: Collection[str]) -> dict[str, Any]:
    low, high, p = (fmt.finite_or_none(pair.get(name)) for name in ("low", "high", "p"))
    model, other = fmt.printable(pair.get("model", "")), fmt.printable(pair.get("other", ""))
    if low is None or high is None:
        verdict = "too little to tell"
    # The interval is not corrected for many pairs, p is.
    elif (low > 0 or high < 0) and (p is None or p < SIGNIFICANCE_LEVEL):
        verdict = f"{model if low > 0 else other} is ahead"
    else:
        verdict = "not told apart"
    cells = []
    for name, (_, _, format_value) in _TEST_COLUMNS.items():
        if name in filled:
            value = fmt.finite_or_none(pair.get(name))
            cells.append({"text": format_value(value), "sort": "" if value is None else f"{value:.6g}"})
    group = f", {pair.get('group_column') or 'group'} {pair['group']}" if pair.get("group") is not None else ""
    return {
        "column": fmt.printable(f"{pair.get('task', '')} {fmt.metric_label(str(pair.get('metric', '')))}{group}"),
        "model": model,
        "other": other,
        "difference": fmt.difference(pair.get("difference")),
        "sort": fmt.finite_or_none(pair.get("difference")),
        "interval": f"[{fmt.difference(low)}, {fmt.difference(high)}]" if low is not None and high is not None else "",
        "p": fmt.p_value(pair.get("p")),
        "p_sort": fmt.finite_or_none(pair.get("p")),
        "cells": cells,
        "verdict": verdict,
        "is_clear": verdict.endswith("ahead"),
    }


def _points(value: float | None) -> str:
    return fmt.DASH if value is None else fmt.score(value)


def _ratio(value: float | None) -> str:
    return fmt.DASH if value is None else f"{value:,.2f}" if value < 100 else f"{value:,.0f}"


def _effect_text(value: float | None) -> str:
    """Format Cohen's d with his word for its size."""
    if value is None:
        return fmt.DASH
    size = abs(value)
    word = next((name for name, minimum in _EFFECTS if size >= minimum), "negligible")
    return f"{value:.2f} {word}".replace("-0.00", "0.00")


_EFFECTS = (("large", 0.8), ("medium", 0.5), ("small", 0.2))
_TEST_COLUMNS: dict[str, tuple[str, str, Callable[[float | None], str]]] = {
    "q": ("q", "Benjamini and Hochberg’s q: the share of false discoveries", fmt.p_value),
    "mcnemar": ("McNemar", "p of McNemar’s test, uncorrected", fmt.p_value),
    "effect": ("effect size", "Cohen’s d of the paired differences", _effect_text),
    "odds": ("odds ratio", "of questions that only one of the two got right", _ratio),
    "detectable": ("detectable", "smallest true difference, in points, that would be found with 80% power", _points),
    "n": ("questions", "that both were asked", fmt.count),
    "facts": ("facts", "that these are about", fmt.count),
}
"""Optional columns of comparisons by key: label, tooltip, and number format."""


def unusable_section(data: ReportData) -> dict[str, Any]:
    """Count the questions that could not be asked by model and reason, from the findings or else from the answers."""
    reasons = data.findings.get("unusable")
    if reasons is None:
        answers = data.answers.filter(pc.is_valid(data.answers["unusable"]))
        counts = answers.group_by(["model", "unusable"], use_threads=False).aggregate(
            [("question_id", "count_distinct")]
        )
        reasons = [
            {"model": row["model"], "reason": row["unusable"], "count": row["question_id_count_distinct"]}
            for row in counts.to_pylist()
        ]
    rows = [
        {
            "model": fmt.printable(reason.get("model", "")),
            "reason": fmt.printable(reason.get("reason", "")),
            "count": fmt.count(reason.get("count")),
            "sort": fmt.finite_or_none(reason.get("count")),
        }
        for reason in reasons[:_MAX_REASONS]
    ]
    rows = take_fitting(rows, _REASONS_BUDGET)
    return {
        "rows": rows,
        "left_out": len(reasons) - len(rows),
        "asked": bool(data.answers.num_rows),
        "wrong": bool(data.suite.get("unusable_is_wrong")),
    }


def sample_note(record: Mapping[str, Any]) -> str:
    """Say what the questions and answers are a sample of; empty if the run keeps all of them."""
    sample = record.get("sampled")
    if not isinstance(sample, Mapping) or sample.get("questions") == sample.get("of"):
        return ""
    return fmt.printable(
        f"{fmt.count(sample.get('questions'))} of the {fmt.count(sample.get('of'))} questions that were asked, drawn "
        f"by the seed; the scores are of all of them, and all answers are in the run’s folder {sample.get('all')}."
    )


def _question_counts(board: Scoreboard, column: ScoreColumn) -> str:
    sizes = sorted({board.cells[line, column].n for line in board.series if (line, column) in board.cells})
    if not sizes:
        return fmt.DASH
    return fmt.count(sizes[0]) if len(sizes) == 1 else f"{fmt.count(sizes[0])}–{fmt.count(sizes[-1])}"
