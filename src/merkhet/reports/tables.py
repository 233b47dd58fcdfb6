"""Report tables of a run: scores, scores by group, comparisons, analyses and unusable questions."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from merkhet.core import text as fmt
from merkhet.reports._control_columns import ControlScore, add_control_columns
from merkhet.reports._terminal_tables import fits_terminal
from merkhet.reports.comparison_tables import comparison_report_table
from merkhet.reports.report_data import ReportData, select_named
from merkhet.reports.scoreboard import (
    LOWER_IS_BETTER,
    Scoreboard,
    ScoreCell,
    ScoreColumn,
    Series,
    above_chance,
    build_scoreboard,
    cell_from_row,
    is_share,
    order_groups,
    overall_rows,
    rows_by_group,
)
from merkhet.reports.table_model import (
    FEW_NOTE,
    ReportTable,
    Row,
    TableCell,
    TableColumn,
    count_cell,
    range_cell,
    score_cell,
    text_cell,
    value_cell,
)
from merkhet.reports.table_writers import as_terminal

_PERCENT = "Shares are in percent, with 95% bootstrap intervals clustered by fact in brackets."
_SPREAD = (
    "±, where shown, is the standard deviation over paraphrases: how much the score varies if each relation is asked "
    "in one of its wordings instead of all. Intervals are over facts alone and do not contain it."
)
_BEST = "The best of a column is bold; a baseline only where there are no other models."


def report_tables(data: ReportData) -> list[ReportTable]:
    """Make all non-empty tables of a run, with unique names and all rows.

    The table ``scores`` contains the headline scores, ``all-scores`` all scores over whole tasks,
    ``by-GROUP-TASK-METRIC`` the scores of groups, ``comparisons`` the paired differences between models, and
    ``ANALYSIS-1``, ``ANALYSIS-2``, … the results of an analysis.
    """
    board = run_scoreboard(data)
    tables = [score_report_table(data), all_scores_table(data.scores)]
    for group, rows in rows_by_group(data.scores).items():
        tables += group_report_tables(rows, group, board, order=data.group_order(group)).values()
    tables.append(comparison_report_table(data))
    for analysis in data.analyses:
        tables += analysis_tables(analysis)
    tables = [table for table in tables if table.rows]
    names = fmt.unique_names(table.name for table in tables)
    return [replace(table, name=name) for name, table in zip(names, tables, strict=True)]


def select_tables(tables: Sequence[ReportTable], names: Sequence[str]) -> list[ReportTable]:
    """Return the tables with the given names, in the order of ``names``; all tables if ``names`` is empty."""
    return select_named({table.name: table for table in tables}, names, "table", "the run has no scores")


def score_report_table(data: ReportData) -> ReportTable:
    """Make the table of models by headline scores, with summary rows for chance and number of questions."""
    return board_table(run_scoreboard(data), controls=data.controls)


def board_table(
    board: Scoreboard,
    *,
    sizes: bool = True,
    unusable: bool = False,
    controls: Sequence[ControlScore] = (),
) -> ReportTable:
    """Make the table of a scoreboard.

    Args:
        controls: Scores of controls, shown beside those of their models.
        sizes: Whether to add a summary row with the number of questions.
        unusable: Whether to add a column with the number of unusable questions.
    """
    rows: list[Row] = []
    for line in board.series:
        cells = [
            _board_cell(board.cells.get((line, column)), column, best=line in board.best.get(column, ()))
            for column in board.columns
        ]
        rows.append((text_cell(line.label), *cells, *([_unusable_cell(board, line)] if unusable else [])))
    foot = [("chance", [range_cell(board.chances(column), percent=column.percent) for column in board.columns])]
    if sizes:
        foot.append(("questions", [_question_count_cell(board, column) for column in board.columns]))
    columns = (
        TableColumn("model", number=False),
        *(TableColumn(column.label) for column in board.columns),
        *([TableColumn("unusable")] if unusable else []),
    )
    scores = board.cells.values()
    note = " ".join(
        [
            *([_PERCENT] if any(score.low is not None for score in scores) else []),
            *([_SPREAD] if any(score.wording_sd is not None for score in scores) else []),
            _BEST,
            *([f"Without scores: {', '.join(board.absent)}."] if board.absent else []),
        ]
    )
    foot_rows = tuple((text_cell(name), *cells, *([TableCell("")] if unusable else [])) for name, cells in foot)
    table = ReportTable("scores", "Scores by model.", columns, tuple(rows), note, foot_rows)
    return add_control_columns(table, board, controls)


def all_scores_table(scores: pa.Table) -> ReportTable:
    """Make the table of all scores over whole tasks, with one score per row.

    The column ``adjusted`` is 0 at chance and 1 for a perfect score.
    """
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
    scores: Iterable[Mapping[str, Any]],
    group: str,
    board: Scoreboard,
    limit: int | None = None,
    order: Sequence[str] = (),
) -> dict[ScoreColumn, ReportTable]:
    """Make a table of groups by models for each headline score that has scores of several groups.

    Each table shows the ``limit`` groups with the most questions, in the order of :func:`order_groups`. Scores of few
    questions are grey.
    """
    tables = {}
    for column, groups in _scores_by_group(scores, group, board).items():
        if len(groups) < 2:
            continue
        lines = [line for line in board.series if any(key[0] == line for key in board.cells)]
        sizes = {name: max(score.n for score in cells.values()) for name, cells in groups.items()}
        shown = sorted(groups, key=lambda name: (-sizes[name], name))[:limit]
        rows: list[Row] = []
        for name in order_groups(shown, order):
            chances = [score.chance for score in groups[name].values() if score.chance is not None]
            cells = (_board_cell(groups[name].get(line), column, group=True) for line in lines)
            rows.append((text_cell(name), count_cell(sizes[name]), range_cell(chances, percent=column.percent), *cells))
        label = fmt.printable(group)
        heads = (TableColumn(label, number=False), TableColumn("questions"), TableColumn("chance"))
        tables[column] = ReportTable(
            fmt.file_slug("by", group, column.task, column.metric),
            f"{column.label} by {label}.",
            (*heads, *(TableColumn(line.label) for line in lines)),
            tuple(rows),
            " ".join(
                [
                    *([_PERCENT] if column.percent else []),
                    *([FEW_NOTE] if any(cell.few for row in rows for cell in row) else []),
                ]
            ),
            left_out=len(groups) - len(rows),
        )
    return tables


def _scores_by_group(
    scores: Iterable[Mapping[str, Any]], group: str, board: Scoreboard
) -> dict[ScoreColumn, dict[str, dict[Series, ScoreCell]]]:
    """Collect the scores of groups by scoreboard column, group and scoreboard line."""
    columns = {(column.task, column.metric): column for column in board.columns}
    cells: dict[ScoreColumn, dict[str, dict[Series, ScoreCell]]] = {column: {} for column in board.columns}
    line_of_way: dict[tuple[str, str, str], Series | None] = {}
    for row in scores:
        if (column := columns.get((row["task"], row["metric"]))) is None:
            continue
        way = (row["model"], row["probe"], row["method"])
        if way not in line_of_way:
            line_of_way[way] = next((line for line in board.series if line.covers(row)), None)
        if (line := line_of_way[way]) is not None:
            cells[column].setdefault(str(row[group]), {}).setdefault(line, cell_from_row(row))
    return {column: groups for column, groups in cells.items() if groups}


def unusable_table(data: ReportData, limit: int | None = None) -> ReportTable:
    """Make the table of unusable questions by model and reason, from the findings or else from the answers.

    Args:
        limit: Maximum number of rows; None for no limit.
    """
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
    rows = tuple(
        (text_cell(reason.get("model")), text_cell(reason.get("reason")), count_cell(reason.get("count")))
        for reason in reasons[:limit]
    )
    heads = (TableColumn("Model", number=False), TableColumn("Reason", number=False), TableColumn("questions"))
    title = "Unusable questions by model and reason."
    return ReportTable("unusable", title, heads, rows, left_out=len(reasons) - len(rows))


def analysis_tables(analysis: Mapping[str, Any]) -> list[ReportTable]:
    """Make the tables of an analysis from its entry in analyses.json."""
    name = analysis.get("name") or "analysis"
    return [
        _table_from_spec(spec, fmt.file_slug(name, index)) for index, spec in enumerate(analysis.get("tables") or (), 1)
    ]


def _table_from_spec(spec: Mapping[str, Any], name: str) -> ReportTable:
    """Make a table from a table specification in analyses.json."""
    of_questions = spec.get("unit", "questions") == "questions"
    columns = [(fmt.printable(column["name"]), str(column.get("kind", "text"))) for column in spec["columns"]]
    rows = tuple(
        tuple(value_cell(value, kind, of_questions=of_questions) for value, (_, kind) in zip(row, columns, strict=True))
        for row in spec.get("rows") or ()
    )
    heads = tuple(TableColumn(label, number=kind != "text") for label, kind in columns)
    table = ReportTable(name, fmt.printable(spec.get("caption") or ""), heads, rows)
    return replace(table, note=FEW_NOTE) if table.has_few() else table


def run_scoreboard(data: ReportData) -> Scoreboard:
    """Build the scoreboard of a run from the headline scores and main methods of its suite."""
    return build_scoreboard(
        data.scores,
        data.suite.get("headline") or (),
        data.baselines(),
        data.suite.get("main_methods") or (),
        data.models(),
    )


def _board_cell(score: ScoreCell | None, column: ScoreColumn, *, best: bool = False, group: bool = False) -> TableCell:
    """Make the cell of a score; ``group`` says whether it is of a group of questions, not of a whole task."""
    if score is None:
        return TableCell(fmt.DASH, tip="not asked")
    percent = column.percent
    chance = "" if score.chance is None else f", chance {fmt.score(score.chance, percent=column.percent)}"
    tip = f"n = {score.n:,}, {score.unusable:,} unusable{chance}"
    if score.wording_sd is not None:
        sd = fmt.score(score.wording_sd, percent=percent)
        tip += f"; standard deviation over paraphrases {sd} ({fmt.counted(score.wording_n, 'fact')})"
    return score_cell(
        score.value,
        score.low,
        score.high,
        percent=percent,
        best=best,
        n=score.n,
        chance=score.chance,
        tip=tip,
        wording_sd=score.wording_sd,
        few=group and score.few,
    )


def _unusable_cell(board: Scoreboard, line: Series) -> TableCell:
    # All scores of a task count the same unusable questions, so each task counts once.
    by_task = {column.task: board.cells[line, column] for column in board.columns if (line, column) in board.cells}
    return count_cell(sum(score.unusable for score in by_task.values()))


def _question_count_cell(board: Scoreboard, column: ScoreColumn) -> TableCell:
    sizes = sorted({board.cells[line, column].n for line in board.series if (line, column) in board.cells})
    if len(sizes) < 2:
        return count_cell(sizes[0] if sizes else None)
    return TableCell(f"{fmt.count(sizes[0])}–{fmt.count(sizes[-1])}")


def score_table(
    scores: pa.Table,
    headline: Iterable[Any],
    *,
    width: int | None = None,
    baselines: Collection[str] = (),
    main_methods: Collection[str] = (),
    models: Iterable[str] = (),
    controls: Sequence[ControlScore] = (),
) -> Table | Group:
    """Render the table of models by headline scores for a terminal.

    A cell shows a score and its interval, such as ``41.2  [39.3, 43.0]`` in percent. The last row shows chance. The
    best value of each column is bold. A table wider than ``width`` is split or stacked, so that no number is cut.

    Args:
        headline: Mappings with ``task`` and ``metric``, or pairs of them; if empty, the first metric of each task.
        width: Maximum characters per line; by default, the width of the terminal.
        baselines: Models that are marked as best only if there are no other models.
        main_methods: Methods to show. All methods are shown for a model and task that has none of them.
        models: Models in the order of the study.
        controls: Scores of controls, shown beside those of their models.
    """
    board = build_scoreboard(scores, headline, baselines, main_methods, models)
    if not board.columns:
        return Table("no scores yet", box=None, pad_edge=False)
    table = board_table(board, sizes=False, controls=controls).with_labels({0: ""})
    width = Console().width if width is None else width
    rendered = as_terminal(table, width)
    if any(cell.spread for row in table.rows for cell in row) and fits_terminal(table, width):
        return Group(rendered, Text("[ ] 95% interval over facts, ± standard deviation over paraphrases", style="dim"))
    return rendered
