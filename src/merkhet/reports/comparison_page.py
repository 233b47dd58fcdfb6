"""Models compared, as a page that needs nothing else: verdict, paired table, figures, groups, what changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from markupsafe import Markup

from merkhet.core.html_page import render_page
from merkhet.reports import figures
from merkhet.reports import formatting as show
from merkhet.reports._answer_outcomes import outcomes
from merkhet.reports._chart_style import drawn, line_colours
from merkhet.reports._forest_plot import difference_chart
from merkhet.reports._question_samples import MOST_PAIRS, changed_questions
from merkhet.reports._report_sections import main_table, sampled
from merkhet.reports._reproduction import model_table, public_command
from merkhet.reports.analysis_sections import analysis_sections
from merkhet.reports.comparison_tables import all_groups_table, all_pairs_table, legend, split_tests
from merkhet.reports.report_data import ReportData
from merkhet.reports.scoreboard import scoreboard

Row = Mapping[str, Any]


@dataclass(frozen=True)
class ComparisonData:
    """Runs compared, ready to be shown. ``data`` holds their tables; all else is plain values.

    ``comparisons`` are of whole tasks, ``groups`` of the groups that ``column`` makes, each with the scores of both
    models on the questions that they share (``value``, ``other_value``). ``sided`` are the comparisons again, all of a
    pair told from the side of the same model. ``shared`` counts questions by pairs of runs.
    """

    data: ReportData
    runs: Sequence[Row]
    models: Sequence[str]
    reference: str | None
    verdict: Sequence[str]
    order: str | None
    pairs: Sequence[Row]
    comparisons: Sequence[Row]
    sided: Sequence[Row]
    column: str | None = None
    groups: Sequence[Row] = ()
    groups_said: Sequence[str] = ()
    shared: Sequence[Row] = ()
    questions: Sequence[str] = ()
    remarks: Sequence[str] = ()
    extrinsic: Sequence[Row] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        """All but the tables, for programs."""
        content: dict[str, Any] = {
            "comparisons": list(self.comparisons),
            "verdict": list(self.verdict),
            "order": self.order,
            "pairs": list(self.pairs),
            "models": list(self.models),
            "reference": self.reference,
            "runs": list(self.runs),
            "questions": list(self.shared),
            "remarks": [*self.questions, *self.remarks],
        }
        if self.column is not None:
            content |= {"by": self.column, "groups": list(self.groups), "groups_verdict": list(self.groups_said)}
        if self.extrinsic:
            content["extrinsic"] = self.extrinsic[0]
        return content


def render_comparison(found: ComparisonData) -> str:
    """The comparison as the text of one HTML page, in the look and with the safeguards of the report."""
    return render_page("merkhet.reports", "templates", "comparison.html.j2", "report.css", "sort.js", **_content(found))


def _content(found: ComparisonData) -> dict[str, Any]:
    data = found.data
    board = scoreboard(data.scores, _headline(found), data.baselines(), data.suite.get("main_methods") or ())
    judged = outcomes(data.questions, data.answers, data.candidates, board)
    colours = line_colours(judged.series, data.baselines())
    pairs = list(dict.fromkeys((one["model"], one["other"]) for one in found.sided))
    tasks = {one["task"] for one in found.comparisons}
    paired, tests = split_tests(all_pairs_table(found.sided))
    return {
        "title": show.printable(_title(found)),
        "suite": show.printable(data.suite.get("title") or data.suite.get("name") or ""),
        "version": show.printable(data.record.get("merkhet") or ""),
        "verdict": [show.printable(text) for text in found.verdict],
        "paired": paired,
        "tests": tests,
        "legend": [show.printable(text).partition(": ") for text in legend([*found.comparisons, *found.groups])],
        "main": main_table(board, colours),
        "figures": _figures(found, board, colours),
        "unshared": any(one["only_run"] or one["only_other"] for one in found.shared),
        "groups": all_groups_table(found.groups, found.column) if found.column else None,
        "column": show.printable(found.column or ""),
        "groups_said": [show.printable(text) for text in found.groups_said],
        "changed": changed_questions(data, judged, pairs, tasks),
        "pairs_left_out": max(0, len(pairs) - MOST_PAIRS),
        "sampled": sampled(data.record),
        "colours": list(colours.values()),
        "extrinsic": analysis_sections(list(found.extrinsic), data.baselines()),
        "remarks": [show.printable(text) for text in (*found.questions, *found.remarks)],
        "models": _models(data.record, found.models),
        "runs": [
            {
                "name": show.printable(run["name"]),
                "date": show.printable(str(run.get("date") or show.DASH)[:16].replace("T", ", ")),
                "merkhet": show.printable(run.get("merkhet") or show.DASH),
                "seed": show.printable(show.DASH if run.get("seed") is None else run["seed"]),
                "questions": show.count(run.get("questions")),
                "command": public_command(str(run.get("command") or "")),
            }
            for run in found.runs
        ],
    }


def _title(found: ComparisonData) -> str:
    if found.reference:
        return f"Models compared with {found.reference}"
    names, more = list(found.models[:3]), len(found.models) - 3
    return f"{' and '.join(names)} compared" if more <= 0 else f"{', '.join(names)} and {more} more models compared"


def _models(record: Row, names: Sequence[str]) -> list[dict[str, str]]:
    """What is known of the models that were compared. One that was asked in several ways has a record for each."""
    shown = frozenset(map(show.printable, names))
    records = [model for model in model_table(record) if model["name"] in shown]
    return list({(model["name"], model["fingerprint"]): model for model in reversed(records)}.values())[::-1]


def _headline(found: ComparisonData) -> list[tuple[str, str]]:
    """The tasks and metrics that were compared; those of the suite where nothing was."""
    compared = list(dict.fromkeys((one["task"], one["metric"]) for one in found.comparisons))
    return compared or [(entry["task"], entry["metric"]) for entry in found.data.suite.get("headline") or ()]


def _figures(found: ComparisonData, board: Any, colours: Any) -> dict[str, Any]:
    charts = {
        "differences": difference_chart(found.sided),
        "grouped": figures.grouped_chart(board, colours, found.data.baselines()),
    }
    shown = {name: drawn(chart) if chart is not None else None for name, chart in charts.items()}
    return {
        name: None if figure is None else {"caption": figure.caption, "svg": Markup(figure.svg)}
        for name, figure in shown.items()
    }
