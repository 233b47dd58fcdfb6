"""Columns of the main table with what a model's controls score, beside its own scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from merkhet.core import text as fmt
from merkhet.reports.scoreboard import Scoreboard, ScoreColumn, Series
from merkhet.reports.table_model import ReportTable, Row, TableCell, TableColumn, score_cell

ControlScore = Mapping[str, Any]
"""Score of a control, by column of the score table and ``control``."""
_MEANINGS = {
    "association": "what the model’s own input embeddings get right, without reading the sentence",
    "subject-blind": "the model’s score with the subject of the sentence hidden",
}


def add_control_columns(table: ReportTable, board: Scoreboard, controls: Sequence[ControlScore]) -> ReportTable:
    """Insert a column for each control after the score that it belongs to, and explain the controls in the note.

    Args:
        table: Table of a scoreboard: a column of names, the columns of the scoreboard, and further columns.
    """
    heads, rows, foot = [table.columns[0]], [row[:1] for row in table.rows], [row[:1] for row in table.foot]
    shown: dict[str, None] = {}
    for index, column in enumerate(board.columns, 1):
        of_column = [row for row in controls if (row["task"], row["metric"]) == (column.task, column.metric)]
        names = list(dict.fromkeys(str(row["control"]) for row in of_column if row["value"] is not None))
        shown |= dict.fromkeys(names)
        heads += [table.columns[index], *(_head(column, name) for name in names)]
        rows = [
            (*row, full[index], *(_control_cell(of_column, name, line, column) for name in names))
            for row, full, line in zip(rows, table.rows, board.series, strict=True)
        ]
        foot = [
            (*row, full[index], *(TableCell("") for _ in names)) for row, full in zip(foot, table.foot, strict=True)
        ]
    if not shown:
        return table
    rest = 1 + len(board.columns)
    note = " ".join(
        [table.note, *(f"{fmt.printable(name)}: {_MEANINGS[name]}." for name in shown if name in _MEANINGS)]
    )
    return replace(
        table,
        columns=(*heads, *table.columns[rest:]),
        rows=_with_rest(rows, table.rows, rest),
        foot=_with_rest(foot, table.foot, rest),
        note=note,
    )


def describe_controls(controls: Sequence[ControlScore]) -> list[tuple[str, str]]:
    """Return the name and the meaning of each control with scores."""
    names = dict.fromkeys(str(row["control"]) for row in controls if row["value"] is not None)
    return [(name, _MEANINGS[name]) for name in names if name in _MEANINGS]


def _with_rest(rows: Sequence[Row], full_rows: Sequence[Row], start: int) -> tuple[Row, ...]:
    return tuple((*row, *full[start:]) for row, full in zip(rows, full_rows, strict=True))


def _head(column: ScoreColumn, control: str) -> TableColumn:
    return TableColumn(fmt.printable(f"{column.label}, {control}"), tip=_MEANINGS.get(control, ""))


def _control_cell(scores: Sequence[ControlScore], control: str, line: Series, column: ScoreColumn) -> TableCell:
    """Make the cell of a control for a line of the scoreboard."""
    row = next((row for row in scores if row["control"] == control and line.covers(row)), None)
    if row is None:
        return TableCell(fmt.DASH)
    value = fmt.finite_or_none(row["value"])
    tip = f"n = {int(row['n']):,} {fmt.interval(row.get('low'), row.get('high'), percent=column.percent)}".strip()
    return score_cell(value, percent=column.percent, n=int(row["n"]), chance=row.get("chance"), tip=tip)
