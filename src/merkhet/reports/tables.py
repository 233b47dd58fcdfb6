"""Tables of a run as :class:`ReportTable`, to be written as CSV, Markdown, LaTeX, HTML or for a terminal."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
from rich.console import Console
from rich.table import Table

from merkhet.core.errors import InputError, did_you_mean
from merkhet.reports import formatting as fmt
from merkhet.reports._latex_tables import as_latex
from merkhet.reports._report_sections import group_names
from merkhet.reports._table_writers import as_csv, as_html, as_markdown, as_terminal
from merkhet.reports.report_data import ReportData
from merkhet.reports.scoreboard import (
    LOWER_IS_BETTER,
    Scoreboard,
    ScoreCell,
    ScoreColumn,
    Series,
    above_chance,
    build_scoreboard,
    cell_from_row,
    grouped_rows,
    is_share,
    overall_rows,
)
from merkhet.reports.table_model import (
    ReportTable,
    Row,
    TableCell,
    TableColumn,
    count_cell,
    range_cell,
    score_cell,
    text_cell,
)

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
    "comparison_report_table",
    "report_tables",
    "score_report_table",
    "select_tables",
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
    """Make every table of a run that has rows, with unique names and all rows.

    ``scores`` holds the headline scores, ``all-scores`` every overall score, ``by-GROUP-TASK-METRIC`` the scores of
    groups, ``comparisons`` the paired differences of models, and ``ANALYSIS-1`` … the tables of the analyses.
    """
    board = _build_board(data)
    tables = [score_report_table(data), all_scores_table(data.scores)]
    for group in group_names(data.scores):
        tables += group_report_tables(data.scores, group, board.columns, board.series)
    tables.append(comparison_report_table(data))
    for analysis in data.analyses:
        name = analysis.get("name") or "analysis"
        for index, spec in enumerate(analysis.get("tables") or (), 1):
            tables.append(table_from_spec(spec, fmt.file_slug(name, index)))
    tables = [table for table in tables if table.rows]
    names = fmt.unique_names(table.name for table in tables)
    return [
        ReportTable(name, table.title, table.columns, table.rows, table.note, table.foot)
        for name, table in zip(names, tables, strict=True)
    ]


def select_tables(tables: Sequence[ReportTable], names: Sequence[str]) -> list[ReportTable]:
    """Return the tables of these names in their order, or all tables if there are no names.

    Raises:
        InputError: if the run has no table of a name.
    """
    by_name = {table.name: table for table in tables}
    for name in names:
        if name not in by_name:
            hint = did_you_mean(name, by_name) if by_name else "the run has no scores"
            raise InputError(f"no table {name!r} in this run; {hint}")
    return [by_name[name] for name in dict.fromkeys(names)] if names else list(tables)


def score_report_table(data: ReportData) -> ReportTable:
    """Make the table of models by headline scores, with chance and the number of questions in its foot."""
    return board_table(_build_board(data))


def board_table(board: Scoreboard, *, sizes: bool = True) -> ReportTable:
    """Make the table of a scoreboard.

    Args:
        sizes: whether to add the row with the numbers of questions.
    """
    rows: list[Row] = []
    for line in board.series:
        cells = (
            _board_cell(board.cells.get((line, column)), column, best=line in board.best.get(column, ()))
            for column in board.columns
        )
        rows.append((text_cell(line.label), *cells))
    foot: list[Row] = [
        (text_cell("chance"), *(range_cell(board.chances(column), percent=column.percent) for column in board.columns))
    ]
    if sizes:
        foot.append((text_cell("questions"), *(_question_count_cell(board, column) for column in board.columns)))
    columns = (TableColumn("model", number=False), *(TableColumn(column.label) for column in board.columns))
    note = f"{_PERCENT} {_BEST}" if any(score.low is not None for score in board.cells.values()) else _BEST
    return ReportTable("scores", "Scores by model.", columns, tuple(rows), note, tuple(foot))


def all_scores_table(scores: pa.Table) -> ReportTable:
    """Make the table of every overall score in long form, with chance-adjusted values (0 at chance, 1 if perfect)."""
    rows = overall_rows(scores)
    has_adjusted = any(fmt.finite_or_none(row.get("adjusted")) is not None for row in rows)
    shares = {metric: is_share(rows, metric) for metric in {row["metric"] for row in rows}}
    lines: list[Row] = []
    for row in rows:
        score, percent = cell_from_row(row), shares[row["metric"]]
        if has_adjusted:
            adjusted = fmt.finite_or_none(row.get("adjusted"))
        else:
            adjustable = percent and row["metric"] not in LOWER_IS_BETTER
            adjusted = above_chance(score.value, score.chance) if adjustable else None
        names = (text_cell(row[name]) for name in ("model", "task", "probe", "method"))
        lines.append(
            (
                *names,
                text_cell(fmt.metric_label(str(row["metric"]))),
                score_cell(score.value, score.low, score.high, percent=percent),
                score_cell(score.chance, percent=percent),
                score_cell(adjusted, percent=percent),
                count_cell(score.n),
                count_cell(score.unusable),
            )
        )
    columns = (
        *(TableColumn(name, number=False) for name in ("model", "task", "probe", "method", "metric")),
        *(TableColumn(name) for name in ("value", "chance", "adjusted", "n", "unusable")),
    )
    note = f"{_PERCENT} Adjusted for chance: (value − chance) / (1 − chance)."
    return ReportTable("all-scores", "Every overall score.", columns, tuple(lines), note)


def group_report_tables(
    scores: pa.Table, group: str, columns: Sequence[ScoreColumn], series: Sequence[Series]
) -> list[ReportTable]:
    """Make one table for each headline score: groups by models, largest groups first."""
    rows = grouped_rows(scores, group)
    tables = []
    for column in columns:
        scores_by_group: dict[str, dict[Series, ScoreCell]] = {}
        for row in rows:
            line = next((line for line in series if line.covers(row)), None)
            if line is not None and (row["task"], row["metric"]) == (column.task, column.metric):
                scores_by_group.setdefault(str(row[group]), {}).setdefault(line, cell_from_row(row))
        lines = [line for line in series if any(line in cells for cells in scores_by_group.values())]
        sizes = {name: max(score.n for score in cells.values()) for name, cells in scores_by_group.items()}
        group_rows: list[Row] = []
        for name in sorted(scores_by_group, key=lambda name: (-sizes[name], name)):
            chances = [score.chance for score in scores_by_group[name].values() if score.chance is not None]
            board_cells = (_board_cell(scores_by_group[name].get(line), column) for line in lines)
            group_rows.append(
                (text_cell(name), count_cell(sizes[name]), range_cell(chances, percent=column.percent), *board_cells)
            )
        label = fmt.printable(group)
        heads = (TableColumn(label, number=False), TableColumn("questions"), TableColumn("chance"))
        tables.append(
            ReportTable(
                fmt.file_slug("by", group, column.task, column.metric),
                f"{column.label} by {label}.",
                (*heads, *(TableColumn(line.label) for line in lines)),
                tuple(group_rows),
                _PERCENT if column.percent else "",
            )
        )
    return tables


def comparison_report_table(data: ReportData) -> ReportTable:
    """Make the table of paired differences of models, without the test columns that no pair fills."""
    pairs = [pair for pair in data.findings.get("comparisons") or () if isinstance(pair, Mapping)]
    rows = overall_rows(data.scores)
    grouped = any(pair.get("group") is not None for pair in pairs)
    tests = [test for test in _TESTS if any(fmt.finite_or_none(pair.get(test[0])) is not None for pair in pairs)]
    lines: list[Row] = []
    for pair in pairs:
        metric = str(pair.get("metric", ""))
        kind = "points" if metric not in LOWER_IS_BETTER and is_share(rows, metric) else "signed"
        lines.append(
            (
                text_cell(pair.get("task")),
                text_cell(fmt.metric_label(metric)),
                *([text_cell(pair.get("group_column")), text_cell(pair.get("group"))] if grouped else []),
                text_cell(pair.get("model")),
                text_cell(pair.get("other")),
                _value_cell({**pair, "value": pair.get("difference")}, kind),
                *(_value_cell(pair.get(key), kind if form == "points" else form) for key, _, form in tests),
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


def table_from_spec(spec: Mapping[str, Any], name: str) -> ReportTable:
    """Make a table from the description that an analysis gives."""
    columns = [(fmt.printable(column["name"]), str(column.get("kind", "text"))) for column in spec["columns"]]
    rows = tuple(
        tuple(_value_cell(value, kind) for value, (_, kind) in zip(row, columns, strict=True))
        for row in spec.get("rows") or ()
    )
    heads = tuple(TableColumn(label, number=kind != "text") for label, kind in columns)
    return ReportTable(name, fmt.printable(spec.get("caption") or ""), heads, rows)


def _build_board(data: ReportData) -> Scoreboard:
    return build_scoreboard(
        data.scores, data.suite.get("headline") or (), data.baselines(), data.suite.get("main_methods") or ()
    )


def _board_cell(score: ScoreCell | None, column: ScoreColumn, *, best: bool = False) -> TableCell:
    if score is None:
        return TableCell(fmt.DASH)
    return score_cell(
        score.value, score.low, score.high, percent=column.percent, best=best, n=score.n, chance=score.chance
    )


def _question_count_cell(board: Scoreboard, column: ScoreColumn) -> TableCell:
    sizes = sorted({board.cells[line, column].n for line in board.series if (line, column) in board.cells})
    if len(sizes) < 2:
        return count_cell(sizes[0] if sizes else None)
    return TableCell(f"{fmt.count(sizes[0])}–{fmt.count(sizes[-1])}")


def _value_cell(content: Any, kind: str) -> TableCell:
    """Make a cell of a plain value or of an estimate with interval."""
    estimate = content if isinstance(content, Mapping) else {"value": content}
    if kind == "text":
        return text_cell(estimate.get("value"))
    value, low, high = (fmt.finite_or_none(estimate.get(name)) for name in ("value", "low", "high"))
    n = (
        fmt.finite_or_none(estimate.get("n"))
        if isinstance(content, Mapping) and kind not in ("points", "signed")
        else None
    )
    ends = f"[{fmt.number(low, kind)}, {fmt.number(high, kind)}]" if low is not None and high is not None else ""
    return TableCell(fmt.number(value, kind), value, low, high, n=None if n is None else round(n), interval=ends)


def score_table(
    scores: pa.Table,
    headline: Iterable[Any],
    *,
    width: int | None = None,
    baselines: Collection[str] = (),
    main_methods: Collection[str] = (),
) -> Table:
    """Render models by headline scores for a terminal: ``41.2  [39.3, 43.0]`` in percent, chance in the last row.

    The best of each column is bold. A table wider than ``width`` is stacked, one block of rows for each headline score,
    so that no number is cut.

    Args:
        width: characters of a line; None is the width of the terminal.
        baselines: models that cannot be the best.
        main_methods: methods that get a row; if a model used none of them, each of its methods gets one.
    """
    board = build_scoreboard(scores, headline, baselines, main_methods)
    if not board.columns:
        return Table("no scores yet", box=None, pad_edge=False)
    table = board_table(board, sizes=False)
    table = replace(table, columns=(TableColumn("", number=False), *table.columns[1:]))
    return as_terminal(table, Console().width if width is None else width)
