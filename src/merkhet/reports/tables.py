"""Every table of a report as one kind of thing, which is written as CSV, Markdown, LaTeX, HTML or for a terminal."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
from rich.console import Console
from rich.table import Table

from merkhet.core.errors import InputError, did_you_mean
from merkhet.reports import formatting as show
from merkhet.reports._latex_tables import as_latex
from merkhet.reports._report_sections import group_names
from merkhet.reports._table_writers import as_csv, as_html, as_markdown, as_terminal
from merkhet.reports.report_data import ReportData
from merkhet.reports.scoreboard import (
    LOWER_IS_BETTER,
    Cell,
    Column,
    Scoreboard,
    Series,
    above_chance,
    cell,
    grouped_rows,
    is_share,
    overall_rows,
    scoreboard,
)
from merkhet.reports.table_model import ReportTable, Row, TableCell, TableColumn, counts, measure, spread, words

__all__ = [
    "ReportTable",
    "TableCell",
    "TableColumn",
    "as_csv",
    "as_html",
    "as_latex",
    "as_markdown",
    "as_terminal",
    "board_table",
    "chosen",
    "comparison_report_table",
    "report_tables",
    "score_report_table",
]

_PERCENT = "Shares are in percent, with 95% bootstrap intervals clustered by fact in brackets."
_BEST = "The best of a column is bold; a baseline only where there are no other models."
_TESTS: tuple[tuple[str, str, str], ...] = (
    ("p", "p (Holm)", "p"),
    ("q", "q (Benjamini–Hochberg)", "p"),
    ("p_raw", "p (uncorrected)", "p"),
    ("mcnemar", "p (McNemar)", "p"),
    ("effect", "Cohen’s d", "number"),
    ("odds", "odds ratio", "number"),
    ("detectable", "detectable", "points"),
    ("n", "questions", "count"),
    ("facts", "facts", "count"),
)


def report_tables(data: ReportData) -> list[ReportTable]:
    """Every table of a run that has rows, each with a name of its own.

    ``scores`` are the headline scores, ``all-scores`` all overall ones, ``by-GROUP-TASK-METRIC`` those of groups,
    ``comparisons`` the paired differences of models, and ``ANALYSIS-1`` … what the analyses found. Nothing is left out,
    however long a table is.
    """
    board = _board(data)
    tables = [score_report_table(data), all_scores_table(data.scores)]
    for group in group_names(data.scores):
        tables += group_report_tables(data.scores, group, board.columns, board.series)
    tables.append(comparison_report_table(data))
    for analysis in data.analyses:
        name = analysis.get("name") or "analysis"
        for place, described in enumerate(analysis.get("tables") or (), 1):
            tables.append(described_table(described, show.file_name(name, place)))
    tables = [table for table in tables if table.rows]
    names = show.distinct(table.name for table in tables)
    return [
        ReportTable(name, table.title, table.columns, table.rows, table.note, table.foot)
        for name, table in zip(names, tables, strict=True)
    ]


def chosen(tables: Sequence[ReportTable], names: Sequence[str]) -> list[ReportTable]:
    """The tables of these names in their order; refuses a name that there is not."""
    by_name = {table.name: table for table in tables}
    for name in names:
        if name not in by_name:
            hint = did_you_mean(name, by_name) if by_name else "there are no scores in it"
            raise InputError(f"there is no table {name!r} in this run; {hint}")
    return [by_name[name] for name in dict.fromkeys(names)] if names else list(tables)


def score_report_table(data: ReportData) -> ReportTable:
    """Models by headline scores, with chance and the number of questions below."""
    return board_table(_board(data))


def board_table(board: Scoreboard, *, sizes: bool = True) -> ReportTable:
    """The same of a scoreboard; without ``sizes`` the row of numbers of questions is left out."""
    rows: list[Row] = []
    for line in board.series:
        found = (
            _scored(board.cells.get((line, column)), column, best=line in board.best.get(column, ()))
            for column in board.columns
        )
        rows.append((words(line.label), *found))
    foot: list[Row] = [
        (words("chance"), *(spread(board.chances(column), percent=column.percent) for column in board.columns))
    ]
    if sizes:
        foot.append((words("questions"), *(_sizes(board, column) for column in board.columns)))
    columns = (TableColumn("model", number=False), *(TableColumn(column.label) for column in board.columns))
    note = f"{_PERCENT} {_BEST}" if any(found.low is not None for found in board.cells.values()) else _BEST
    return ReportTable("scores", "Scores by model.", columns, tuple(rows), note, tuple(foot))


def all_scores_table(scores: pa.Table) -> ReportTable:
    """Every overall score in long form, with its value adjusted for chance: 0 at chance, 1 where all is right."""
    rows = overall_rows(scores)
    known = any(show.finite(row.get("adjusted")) is not None for row in rows)
    shares = {metric: is_share(rows, metric) for metric in {row["metric"] for row in rows}}
    lines: list[Row] = []
    for row in rows:
        found, percent = cell(row), shares[row["metric"]]
        if known:
            adjusted = show.finite(row.get("adjusted"))
        else:
            fit = percent and row["metric"] not in LOWER_IS_BETTER
            adjusted = above_chance(found.value, found.chance) if fit else None
        names = (words(row[name]) for name in ("model", "task", "probe", "method"))
        lines.append(
            (
                *names,
                words(show.metric_label(str(row["metric"]))),
                measure(found.value, found.low, found.high, percent=percent),
                measure(found.chance, percent=percent),
                measure(adjusted, percent=percent),
                counts(found.n),
                counts(found.unusable),
            )
        )
    columns = (
        *(TableColumn(name, number=False) for name in ("model", "task", "probe", "method", "metric")),
        *(TableColumn(name) for name in ("value", "chance", "adjusted", "n", "unusable")),
    )
    note = f"{_PERCENT} Adjusted for chance: (value − chance) / (1 − chance)."
    return ReportTable("all-scores", "Every overall score.", columns, tuple(lines), note)


def group_report_tables(
    scores: pa.Table, group: str, columns: Sequence[Column], series: Sequence[Series]
) -> list[ReportTable]:
    """One table for each headline score: the groups by the models, largest groups first."""
    rows = grouped_rows(scores, group)
    tables = []
    for column in columns:
        found: dict[str, dict[Series, Cell]] = {}
        for row in rows:
            line = next((line for line in series if line.covers(row)), None)
            if line is not None and (row["task"], row["metric"]) == (column.task, column.metric):
                found.setdefault(str(row[group]), {}).setdefault(line, cell(row))
        lines = [line for line in series if any(line in cells for cells in found.values())]
        sizes = {name: max(entry.n for entry in cells.values()) for name, cells in found.items()}
        shown: list[Row] = []
        for name in sorted(found, key=lambda name: (-sizes[name], name)):
            chances = [entry.chance for entry in found[name].values() if entry.chance is not None]
            scored = (_scored(found[name].get(line), column) for line in lines)
            shown.append((words(name), counts(sizes[name]), spread(chances, percent=column.percent), *scored))
        label = show.printable(group)
        heads = (TableColumn(label, number=False), TableColumn("questions"), TableColumn("chance"))
        tables.append(
            ReportTable(
                show.file_name("by", group, column.task, column.metric),
                f"{column.label} by {label}.",
                (*heads, *(TableColumn(line.label) for line in lines)),
                tuple(shown),
                _PERCENT if column.percent else "",
            )
        )
    return tables


def comparison_report_table(data: ReportData) -> ReportTable:
    """Paired differences of models, with the tests that were done; columns that no pair fills are left out."""
    pairs = [pair for pair in data.findings.get("comparisons") or () if isinstance(pair, Mapping)]
    rows = overall_rows(data.scores)
    grouped = any(pair.get("group") is not None for pair in pairs)
    tests = [test for test in _TESTS if any(show.finite(pair.get(test[0])) is not None for pair in pairs)]
    lines: list[Row] = []
    for pair in pairs:
        metric = str(pair.get("metric", ""))
        kind = "points" if metric not in LOWER_IS_BETTER and is_share(rows, metric) else "signed"
        lines.append(
            (
                words(pair.get("task")),
                words(show.metric_label(metric)),
                *([words(pair.get("group_column")), words(pair.get("group"))] if grouped else []),
                words(pair.get("model")),
                words(pair.get("other")),
                _kept({**pair, "value": pair.get("difference")}, kind),
                *(_kept(pair.get(key), kind if form == "points" else form) for key, _, form in tests),
            )
        )
    heads = ("task", "metric", *(("group", "of") if grouped else ()), "model", "other")
    columns = (
        *(TableColumn(name, number=False) for name in heads),
        TableColumn("difference"),
        *(TableColumn(label) for _, label, _ in tests),
    )
    note = (
        "Differences are paired by question, in percentage points where scores are shares, with 95% intervals in "
        "brackets; these are not corrected for the number of pairs, p (Holm) is."
    )
    return ReportTable("comparisons", "Models compared on the same questions.", columns, tuple(lines), note)


def described_table(described: Mapping[str, Any], name: str) -> ReportTable:
    """A table of an analysis."""
    columns = [(show.printable(column["name"]), str(column.get("kind", "text"))) for column in described["columns"]]
    rows = tuple(
        tuple(_kept(value, kind) for value, (_, kind) in zip(row, columns, strict=True))
        for row in described.get("rows") or ()
    )
    heads = tuple(TableColumn(label, number=kind != "text") for label, kind in columns)
    return ReportTable(name, show.printable(described.get("caption") or ""), heads, rows)


def _board(data: ReportData) -> Scoreboard:
    return scoreboard(
        data.scores, data.suite.get("headline") or (), data.baselines(), data.suite.get("main_methods") or ()
    )


def _scored(found: Cell | None, column: Column, *, best: bool = False) -> TableCell:
    if found is None:
        return TableCell(show.DASH)
    return measure(
        found.value, found.low, found.high, percent=column.percent, best=best, n=found.n, chance=found.chance
    )


def _sizes(board: Scoreboard, column: Column) -> TableCell:
    sizes = sorted({board.cells[line, column].n for line in board.series if (line, column) in board.cells})
    if len(sizes) < 2:
        return counts(sizes[0] if sizes else None)
    return TableCell(f"{show.count(sizes[0])}–{show.count(sizes[-1])}")


def _kept(content: Any, kind: str) -> TableCell:
    """A value or an estimate of an analysis as a cell."""
    found = content if isinstance(content, Mapping) else {"value": content}
    if kind == "text":
        return words(found.get("value"))
    value, low, high = (show.finite(found.get(name)) for name in ("value", "low", "high"))
    n = show.finite(found.get("n")) if isinstance(content, Mapping) and kind not in ("points", "signed") else None
    ends = f"[{show.number(low, kind)}, {show.number(high, kind)}]" if low is not None and high is not None else ""
    return TableCell(show.number(value, kind), value, low, high, n=None if n is None else round(n), interval=ends)


def score_table(
    scores: pa.Table,
    headline: Iterable[Any],
    *,
    width: int | None = None,
    baselines: Collection[str] = (),
    main_methods: Collection[str] = (),
) -> Table:
    """Models as rows, headline scores as columns: ``41.2  [39.3, 43.0]`` in percent, chance in the last row.

    The best of each column is bold; ``baselines`` are not among those compared. Where the table is wider than
    ``width`` (the terminal's own if None), it is stacked: one block of rows for each headline score, so that no
    number is ever cut. A model that answered by several methods has a row for each, or for ``main_methods`` alone.
    """
    board = scoreboard(scores, headline, baselines, main_methods)
    if not board.columns:
        return Table("no scores yet", box=None, pad_edge=False)
    table = board_table(board, sizes=False)
    table = replace(table, columns=(TableColumn("", number=False), *table.columns[1:]))
    return as_terminal(table, Console().width if width is None else width)
