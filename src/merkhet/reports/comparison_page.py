"""Comparison report of models as one self-contained HTML page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from merkhet.core import text as fmt
from merkhet.core.templating import render_page
from merkhet.reports import figures
from merkhet.reports._answer_outcomes import judge_answers
from merkhet.reports._chart_style import Figure, draw_figure, line_colours
from merkhet.reports._forest_plot import difference_chart
from merkhet.reports._import_description import only_imported
from merkhet.reports._question_samples import MAX_PAIRS, changed_questions, sample_note
from merkhet.reports._reproduction import model_table, public_command
from merkhet.reports.analysis_sections import analysis_sections, section_view
from merkhet.reports.comparison_tables import all_groups_table, all_pairs_table, legend, split_tests
from merkhet.reports.report_data import ReportData
from merkhet.reports.scoreboard import build_scoreboard
from merkhet.reports.table_writers import as_page_table
from merkhet.reports.tables import board_table

Row = Mapping[str, Any]
_REST = "are in what --json prints"
_ANALYSIS_BUDGET = 400_000
"""Maximum size of the rows of an analysis table, in bytes."""


@dataclass(frozen=True)
class ComparisonData:
    """A comparison of models from one or more runs: tables in ``data``, results as JSON values."""

    data: ReportData
    runs: Sequence[Row]
    models: Sequence[str]
    reference: str | None
    """Model that the user chose to compare all other models with; None without such a choice."""
    verdict: Sequence[str]
    order: str | None
    pairs: Sequence[Row]
    comparisons: Sequence[Row]
    """Comparisons over whole tasks; ``value`` and ``other_value`` are the scores on the shared questions."""
    oriented: Sequence[Row]
    """``comparisons`` with models swapped where needed, so that a pair always has the same first model."""
    column: str | None = None
    """Column by which ``groups`` are formed; None without groups."""
    groups: Sequence[Row] = ()
    """Comparisons within groups of questions."""
    group_sentences: Sequence[str] = ()
    shared: Sequence[Row] = ()
    """Counts of shared questions for each pair of runs."""
    question_remarks: Sequence[str] = ()
    """Sentences about the questions that the runs share."""
    remarks: Sequence[str] = ()
    extrinsic: Sequence[Row] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        """Return all fields except the tables in ``data`` as JSON values."""
        content: dict[str, Any] = {
            "comparisons": list(self.comparisons),
            "verdict": list(self.verdict),
            "order": self.order,
            "pairs": list(self.pairs),
            "models": list(self.models),
            "reference": self.reference,
            "runs": list(self.runs),
            "questions": list(self.shared),
            "remarks": [*self.question_remarks, *self.remarks],
        }
        if self.column is not None:
            content |= {"by": self.column, "groups": list(self.groups), "groups_verdict": list(self.group_sentences)}
        if self.extrinsic:
            content["extrinsic"] = self.extrinsic[0]
        return content


def render_comparison(comparison: ComparisonData) -> str:
    """Render the comparison as one HTML page, in the style of the run report."""
    return render_page(
        "merkhet.reports", "templates", "comparison.html.j2", "report.css", "sort.js", **_content(comparison)
    )


def _content(comparison: ComparisonData) -> dict[str, Any]:
    data = comparison.data
    main_methods = data.suite.get("main_methods") or ()
    board = build_scoreboard(data.scores, _headline(comparison), data.baselines(), main_methods, comparison.models)
    outcomes = judge_answers(data.questions, data.answers, data.candidates, board)
    colours = line_colours(outcomes.series, data.baselines())
    pairs = list(dict.fromkeys((pair["model"], pair["other"]) for pair in comparison.oriented))
    tasks = {pair["task"] for pair in comparison.comparisons}
    groups = all_groups_table(comparison.groups, comparison.column or "")
    scores = replace(board_table(board).with_labels({0: "Model"}), title="Scores, not paired.")
    paired, tests = split_tests(all_pairs_table(comparison.oriented))
    return {
        "title": fmt.printable(_title(comparison)),
        "suite": "" if only_imported(data) else fmt.printable(data.suite.get("title") or data.suite.get("name") or ""),
        "version": fmt.printable(data.record.get("merkhet") or ""),
        "verdict": [fmt.printable(text) for text in comparison.verdict],
        "paired": as_page_table(paired, caption=True) if paired.rows else "",
        "tests": as_page_table(tests, caption=True) if tests is not None else "",
        "legend": legend([*comparison.comparisons, *comparison.groups]),
        "scores": as_page_table(scores, caption=True, colours=[colours[line] for line in board.series])
        if scores.rows
        else "",
        "figures": _figures(comparison, board, colours),
        "unshared": bool(board.columns) and any(pair["only_run"] or pair["only_other"] for pair in comparison.shared),
        "groups": as_page_table(groups, caption=True, rest=_REST) if groups.rows else "",
        "column": fmt.printable(comparison.column or ""),
        "group_sentences": [fmt.printable(text) for text in comparison.group_sentences],
        "changed": changed_questions(data, outcomes, pairs, tasks),
        "pairs_left_out": max(0, len(pairs) - MAX_PAIRS),
        "sample_note": sample_note(data.record),
        "colours": list(colours.values()),
        "extrinsic": [
            section_view(section, _ANALYSIS_BUDGET, f"rows {_REST}")
            for section in analysis_sections(list(comparison.extrinsic), data.baselines())
        ],
        "remarks": [fmt.printable(text) for text in (*comparison.question_remarks, *comparison.remarks)],
        "models": _models(data.record, comparison.models),
        "runs": [
            {
                "name": fmt.printable(run["name"]),
                "date": fmt.printable(str(run.get("date") or fmt.DASH)[:16].replace("T", ", ")),
                "merkhet": fmt.printable(run.get("merkhet") or fmt.DASH),
                "seed": fmt.printable(fmt.DASH if run.get("seed") is None else run["seed"]),
                "questions": fmt.count(run.get("questions")),
                "command": public_command(str(run.get("command") or "")),
            }
            for run in comparison.runs
        ],
    }


def _title(comparison: ComparisonData) -> str:
    if comparison.reference:
        return f"Models compared with {comparison.reference}"
    names, more = list(comparison.models[:3]), len(comparison.models) - 3
    return f"{' and '.join(names)} compared" if more <= 0 else f"{', '.join(names)} and {more} more models compared"


def _models(record: Row, names: Sequence[str]) -> list[dict[str, str]]:
    """Return one row of the model table for each compared model.

    A model that was asked with several probes has several records; only the first is kept.
    """
    compared = frozenset(map(fmt.printable, names))
    records = [model for model in model_table(record) if model["name"] in compared]
    return list({(model["name"], model["fingerprint"]): model for model in reversed(records)}.values())[::-1]


def _headline(comparison: ComparisonData) -> list[tuple[str, str]]:
    """Return the pairs of task and metric that were compared; without comparisons, the suite's headline scores."""
    compared = list(dict.fromkeys((pair["task"], pair["metric"]) for pair in comparison.comparisons))
    return compared or [(entry["task"], entry["metric"]) for entry in comparison.data.suite.get("headline") or ()]


def _figures(comparison: ComparisonData, board: Any, colours: Any) -> list[Figure]:
    grouped = figures.grouped_chart(board, colours, comparison.data.baselines())
    return [draw_figure(chart) for chart in (difference_chart(comparison.oriented), grouped) if chart is not None]
