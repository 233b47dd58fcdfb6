"""Run report as one self-contained HTML page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup

from merkhet.analysis import ANALYSES
from merkhet.core import text as fmt
from merkhet.core.templating import render_page
from merkhet.reports import _heat_maps as heat
from merkhet.reports import figures
from merkhet.reports._answer_outcomes import Outcomes, judge_answers
from merkhet.reports._calibration_section import (
    calibration_sentences,
    calibration_status,
    calibration_warnings,
    card_views,
    missing_views,
)
from merkhet.reports._chart_style import NamedChart, draw_figure, line_colours
from merkhet.reports._citations import bibliography
from merkhet.reports._control_columns import describe_controls
from merkhet.reports._forest_plot import difference_chart
from merkhet.reports._import_description import imported_sources, only_imported
from merkhet.reports._labels import shorten_labels
from merkhet.reports._methods_section import count_asked, describe_metrics, methods_text
from merkhet.reports._page_budget import take_fitting_each
from merkhet.reports._question_samples import sample_note, sample_questions
from merkhet.reports._reproduction import environment, is_shortened, model_table, public_command, study_text
from merkhet.reports.analysis_sections import analysis_sections, section_view
from merkhet.reports.comparison_tables import explain_tests, run_comparisons, verdict_table
from merkhet.reports.report_data import ReportData
from merkhet.reports.scoreboard import LOWER_IS_BETTER, Scoreboard, ScoreColumn, ScoreRow, order_tasks, rows_by_group
from merkhet.reports.table_model import FEW_NOTE
from merkhet.reports.table_writers import as_page_table
from merkhet.reports.tables import (
    all_scores_table,
    board_table,
    group_report_tables,
    run_scoreboard,
    unusable_table,
)

_FIGURES_BUDGET, _ANALYSES_BUDGET = 1_200_000, 750_000
"""Approximate maximum sizes of the figures of the report and of those of the analyses, in bytes."""
_SCORES_BUDGET, _PAIRS_BUDGET, _REASONS_BUDGET, _GROUPS_BUDGET = 200_000, 150_000, 60_000, 1_600_000
_ANALYSIS_TABLES_BUDGET = 400_000
"""Maximum size of the rows of all analysis tables, in bytes."""
_MAX_SCORES, _MAX_COMPARISONS, _MAX_REASONS, _MAX_GROUPS = 500, 400, 300, 300
_MAX_GROUP_CELLS = 15_000
_MAX_LEADERS, _MAX_NAMED = 8, 3
_MAX_SENTENCES, _MAX_SENTENCE, _MAX_NAME = 14, 800, 80
_IN_SCORES = "rows are in the run’s scores.parquet"


def render_html(data: ReportData) -> str:
    """Render the report as one HTML page with static SVG figures.

    The output is deterministic. All data is escaped, and the content security policy of the page forbids network access
    and injected scripts.
    """
    return render_page("merkhet.reports", "templates", "report.html.j2", "report.css", "sort.js", **_content(data))


def _content(data: ReportData) -> dict[str, Any]:
    baselines = data.baselines()
    board = run_scoreboard(data)
    outcomes = judge_answers(data.questions, data.answers, data.candidates, board)
    colours = line_colours(outcomes.series, baselines)
    groups = rows_by_group(data.scores)
    calibration = calibration_status(data)
    paragraphs, sources = methods_text(data, outcomes.choices.tolist(), calibration)
    date = fmt.printable(str(data.record.get("date", ""))[:16].replace("T", ", "))
    version = fmt.printable(data.record.get("merkhet") or "")
    command, study = public_command(str(data.record.get("command") or "")), study_text(data.study)
    citations = [str(text) for text in data.suite.get("citations") or ()]
    name = str(data.suite.get("name") or data.record.get("suite") or "")
    analyses = _analyses(data)
    own_analyses = [_is_of_suite(analysis, data.suite) for analysis in data.analyses]
    return {
        "title": fmt.printable(data.title),
        "suite": {
            # Imported questions have the title of the page; their suite only gives probes and metrics.
            "title": ""
            if only_imported(data)
            else fmt.printable(data.suite.get("title") or data.suite.get("name") or ""),
            "about": fmt.printable(data.suite.get("about") or ""),
            "sources": [fmt.printable(name) for name in imported_sources(data)],
        },
        "date": date,
        "version": version,
        "counts": _count_run(data, board, outcomes),
        "warnings": calibration_warnings(calibration),
        "summary": _summarize(data, board),
        "trust": calibration_sentences(calibration),
        "absent": list(board.absent),
        "spread": any(cell.wording_sd is not None for cell in board.cells.values()),
        "scores": _scores(data, board, [colours[line] for line in board.series]),
        "controls": describe_controls(data.controls),
        "metrics": [pair for pair in describe_metrics(column.metric for column in board.columns) if pair[1]],
        "all_scores": _all_scores(data),
        "figures": _figures(data, board, outcomes, colours, groups),
        "groups": _groups(data, board, groups),
        "comparisons": _comparisons(data),
        "cards": card_views(calibration.cards, calibration),
        "other_cards": card_views(calibration.other_cards, calibration, len(calibration.cards)),
        "missing_cards": missing_views(calibration),
        "experiments": [view for view, own in zip(analyses, own_analyses, strict=True) if own],
        "analyses": [view for view, own in zip(analyses, own_analyses, strict=True) if not own],
        "sample_note": sample_note(data.record),
        "samples": sample_questions(data.questions, data.answers, outcomes, data.premises),
        "answers": data.answers.num_rows,
        "colours": list(colours.values()),
        "unusable": _unusable(data),
        "methods": paragraphs,
        "bibliography": fmt.printable("\n\n".join(bibliography(version, name, citations, sources))),
        "models": model_table(data.record),
        "environment": environment(data.record),
        "command": command,
        "study": study,
        "shortened": is_shortened(command, study),
        "memorized": bool(data.suite.get("experiment")),
    }


def _scores(data: ReportData, board: Scoreboard, colours: Sequence[str]) -> Markup:
    """Render the table of models by headline scores; the markup is empty if there are no scores."""
    table = board_table(board, unusable=True, controls=data.controls)
    table = table.with_labels({0: "Model"}, foot={1: "questions (n)"})
    return as_page_table(table, colours=colours) if table.rows else Markup()


def _all_scores(data: ReportData) -> dict[str, Any]:
    table = all_scores_table(data.scores)
    labels = {0: "Model", 1: "Task", 2: "Probe", 3: "Method", 4: "Metric", 5: "score", 7: "above chance"}
    shown = table.first_rows(_MAX_SCORES).with_labels(labels)
    rest = "scores are in the run’s scores.parquet"
    return {"count": len(table.rows), "table": as_page_table(shown, dense=True, budget=_SCORES_BUDGET, rest=rest)}


def _groups(data: ReportData, board: Scoreboard, groups: Mapping[str, list[ScoreRow]]) -> list[dict[str, Any]]:
    """Render the score tables of each group column; tables are shortened if there are many cells."""
    tables_per_page = max(1, len(groups) * len(board.columns))
    limit = min(_MAX_GROUPS, max(10, _MAX_GROUP_CELLS // max(1, tables_per_page * len(board.series))))
    sections = []
    for index, (group, rows) in enumerate(groups.items()):
        tables = [
            {
                "title": column.label,
                "note": FEW_NOTE if table.has_few() else "",
                "table": as_page_table(
                    table.with_labels({1: "n"}),
                    bars=range(3, len(table.columns)) if column.percent else (),
                    budget=_GROUPS_BUDGET // tables_per_page,
                    rest=_IN_SCORES,
                ),
            }
            for column, table in group_report_tables(rows, group, board, limit, data.group_order(group)).items()
        ]
        if tables:
            sections.append({"name": fmt.printable(group), "id": f"by-{index}", "tables": tables})
    return sections


def _comparisons(data: ReportData) -> dict[str, Any]:
    pairs = run_comparisons(data)
    table = verdict_table(pairs, _MAX_COMPARISONS)
    rest = "comparisons are in the run’s findings.json"
    shown = as_page_table(table, dense=True, budget=_PAIRS_BUDGET, rest=rest) if pairs else Markup()
    return {"table": shown, "explained": explain_tests(pairs)}


def _unusable(data: ReportData) -> dict[str, Any]:
    table = unusable_table(data, _MAX_REASONS)
    rest = "rows are in the run’s findings.json"
    return {
        "table": as_page_table(table, budget=_REASONS_BUDGET, rest=rest) if table.rows else Markup(),
        "asked": bool(data.answers.num_rows),
        "wrong": bool(data.suite.get("unusable_is_wrong")),
    }


def _figures(
    data: ReportData,
    board: Scoreboard,
    outcomes: Outcomes,
    colours: dict[Any, str],
    groups: Mapping[str, list[ScoreRow]],
) -> dict[str, Any]:
    """Draw the figures that fit into the page, by kind, and count the omitted figures.

    The kinds are all scores in one chart, one chart per score, a heat map of groups by models, heat maps of domains by
    tasks for each model, ranks, and differences between models.
    """
    maps = (
        heat.heat_chart(rows, group, column, board.series, data.group_order(group))
        for group, rows in groups.items()
        for column in board.columns
    )
    charts: dict[str, Sequence[NamedChart | None]] = {
        "grouped": [figures.grouped_chart(board, colours, data.baselines())] if len(board.columns) > 1 else [],
        "scores": figures.score_charts(board, colours),
        "heat": [next((chart for chart in maps if chart is not None), None)],
        "tasks": heat.task_heat_charts(
            *(groups.get("domain", ()), "domain", board.columns, board.series, data.group_order("domain"))
        ),
        "ranks": figures.rank_charts(outcomes),
        "differences": [difference_chart(data.findings.get("comparisons") or ())],
    }
    drawn = {kind: [draw_figure(chart) for chart in of_kind if chart is not None] for kind, of_kind in charts.items()}
    fitting, left_out = take_fitting_each(drawn, _FIGURES_BUDGET)
    return {**fitting, "left_out": left_out}


def _is_of_suite(analysis: Mapping[str, Any], suite: Mapping[str, Any]) -> bool:
    """Return whether an analysis belongs to the suite, and is not one that any suite may add."""
    name = str(analysis.get("name") or "")
    return name not in ANALYSES or name in (suite.get("analyses") or ())


def _analyses(data: ReportData) -> list[dict[str, Any]]:
    """Render the sections of analyses, with those figures that fit into the page."""
    sections = analysis_sections(data.analyses, data.baselines())
    fitting, _ = take_fitting_each({section.id: section.figures for section in sections}, _ANALYSES_BUDGET)
    budget = _ANALYSIS_TABLES_BUDGET // max(1, sum(len(section.tables) for section in sections))
    return [
        {
            **section_view(section, budget, "rows are in the run’s analyses.json"),
            "figures": fitting[section.id],
            "undrawn": len(section.figures) - len(fitting[section.id]),
        }
        for section in sections
    ]


def _count_run(data: ReportData, board: Scoreboard, outcomes: Outcomes) -> dict[str, Any]:
    """Count questions, facts, tasks, models, baselines, and training conditions per model."""
    asked = count_asked(data)
    # A model or baseline that was trained under several conditions has one name per condition.
    base_of = {model.get("name"): model.get("base") or model.get("name") for model in data.record.get("models") or ()}
    names = {line.model for line in outcomes.series}
    models, baselines = names - data.baselines(), names & data.baselines()
    model_count = len({base_of.get(name, name) for name in models})
    return {
        "questions": asked.questions,
        "facts": asked.facts,
        "asked_tasks": order_tasks(asked.tasks, board),
        "tasks": len(set(outcomes.tasks) | {column.task for column in board.columns}),
        "models": model_count,
        "baselines": len({base_of.get(name, name) for name in baselines}),
        "conditions": len(models) // model_count if model_count else 1,
    }


def _summarize(data: ReportData, board: Scoreboard) -> dict[str, Any]:
    """Collect the best models of each headline score and the sentences of the findings."""
    sentences = [fmt.truncate(fmt.printable(text), _MAX_SENTENCE) for text in data.findings.get("sentences") or ()]
    names = shorten_labels((line.label for line in board.series), _MAX_NAME)
    leaders = [_leader(column, board, data.baselines(), names) for column in board.columns if board.best.get(column)]
    return {
        "leaders": leaders[:_MAX_LEADERS],
        "more_leaders": max(0, len(leaders) - _MAX_LEADERS),
        "sentences": sentences[:_MAX_SENTENCES],
        "more_sentences": sentences[_MAX_SENTENCES:],
    }


def _leader(
    column: ScoreColumn, board: Scoreboard, baselines: frozenset[str], names: Mapping[str, str]
) -> dict[str, Any]:
    best = sorted(board.best[column], key=board.series.index)
    scored = [line for line in board.series if (cell := board.cells.get((line, column))) and cell.value is not None]
    model_lines = [line for line in scored if line.model not in baselines]
    leading = {line.model for line in best}
    sign = -1 if column.metric in LOWER_IS_BETTER else 1
    baseline = max(
        (line for line in scored if line.model in baselines - leading),
        key=lambda line: sign * (board.cells[line, column].value or 0.0),
        default=None,
    )
    return {
        "column": column,
        "cell": board.cells[best[0], column],
        # If too many models share the best value, none is named.
        "names": [names[line.label] for line in best] if len(best) <= _MAX_NAMED else [],
        "tied": len(best),
        "is_baseline": not model_lines,
        "lines": len(model_lines),
        "models": len({line.model for line in model_lines}),
        "chances": board.chances(column),
        "baseline": "" if baseline is None else names[baseline.label],
        "baseline_cell": None if baseline is None else board.cells[baseline, column],
    }
