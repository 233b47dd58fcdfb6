"""The report of a run as one HTML file that needs nothing else: no network, no fonts, no figures beside it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from markupsafe import Markup

from merkhet.core.html_page import render_page
from merkhet.reports import _heat_maps as heat
from merkhet.reports import _report_sections as sections
from merkhet.reports import figures
from merkhet.reports import formatting as show
from merkhet.reports._answer_outcomes import Outcomes, outcomes
from merkhet.reports._calibration_section import card_views, missing_views, trust, trust_sentences, warnings
from merkhet.reports._chart_style import Figure, drawn, line_colours
from merkhet.reports._citations import bibliography
from merkhet.reports._forest_plot import difference_chart
from merkhet.reports._methods_section import methods_text, metrics_in_words
from merkhet.reports._page_budget import fitting_each
from merkhet.reports._question_samples import sample_questions
from merkhet.reports._reproduction import environment, is_shortened, model_table, public_command, study_text
from merkhet.reports._summary import summary, tiles
from merkhet.reports.analysis_sections import analysis_sections
from merkhet.reports.report_data import ReportData
from merkhet.reports.scoreboard import Scoreboard, grouped_rows, scoreboard

_ROOM_FOR_FIGURES, _ROOM_FOR_ANALYSES = 1_200_000, 750_000
"""Bytes of a page that figures may take, about: the report's own, and those of analyses besides."""


def render_html(data: ReportData) -> str:
    """The whole report as the text of one HTML page.

    Equal data give equal text. Everything that came from data is escaped, and a content security policy in the page
    forbids the network and any script but the page's own. Figures are static SVG.
    """
    return render_page("merkhet.reports", "templates", "report.html.j2", "report.css", "sort.js", **_content(data))


def _content(data: ReportData) -> dict[str, Any]:
    baselines = data.baselines()
    main_methods = data.suite.get("main_methods") or ()
    board = scoreboard(data.scores, data.suite.get("headline") or (), baselines, main_methods)
    judged = outcomes(data.questions, data.answers, data.candidates, board)
    colours = line_colours(judged.series, baselines)
    groups = sections.group_names(data.scores)
    found = trust(data)
    numbers = tiles(data, board, judged)
    paragraphs, sources = methods_text(data, judged.choices.tolist(), found)
    date = show.printable(str(data.record.get("date", ""))[:16].replace("T", ", "))
    version = show.printable(data.record.get("merkhet") or "")
    command, study = public_command(str(data.record.get("command") or "")), study_text(data.study)
    citations = [str(text) for text in data.suite.get("citations") or ()]
    name = str(data.suite.get("name") or data.record.get("suite") or "")
    return {
        "title": show.printable(data.title),
        "suite": {
            "title": show.printable(data.suite.get("title") or data.suite.get("name") or ""),
            "about": show.printable(data.suite.get("about") or ""),
        },
        "date": date,
        "version": version,
        "tiles": numbers,
        "warnings": warnings(found),
        "summary": {**summary(data, board, numbers), "trust": trust_sentences(found)},
        "main": sections.main_table(board, colours),
        "metrics": [pair for pair in metrics_in_words(column.metric for column in board.columns) if pair[1]],
        "every": sections.every_score(data.scores),
        "figures": _with_room({**_figures(data, board, judged, colours, groups), "differences": _differences(data)}),
        "groups": [
            {"name": show.printable(name), "id": f"by-{place}", "tables": tables}
            for place, name in enumerate(groups)
            if (tables := sections.group_tables(data.scores, name, board.columns, board.series, len(groups)))
        ],
        "comparisons": sections.comparisons(data.findings),
        "cards": card_views(found.cards, found),
        "other_cards": card_views(found.others, found, len(found.cards)),
        "missing_cards": missing_views(found),
        "analyses": _analyses(data),
        "sampled": sections.sampled(data.record),
        "samples": sample_questions(data.questions, data.answers, judged),
        "answers": data.answers.num_rows,
        "colours": list(colours.values()),
        "unusable": sections.unusable(data),
        "methods": paragraphs,
        "bibliography": show.printable("\n\n".join(bibliography(version, name, citations, sources))),
        "models": model_table(data.record),
        "environment": environment(data.record),
        "command": command,
        "study": study,
        "shortened": is_shortened(command, study),
        "memorized": bool(data.record.get("recalls")),
    }


def _figures(
    data: ReportData, board: Scoreboard, judged: Outcomes, colours: dict[Any, str], groups: list[str]
) -> dict[str, Any]:
    """The report's own figures: all scores in one, a panel a score, one heat map of groups, one a model, and ranks."""
    rows = {group: grouped_rows(data.scores, group) for group in groups}
    maps = (heat.heat_chart(rows[group], group, column, board.series) for group in groups for column in board.columns)
    charts: dict[str, list[Any]] = {
        "grouped": [figures.grouped_chart(board, colours, data.baselines())] if len(board.columns) > 1 else [],
        "scores": figures.score_charts(board, colours),
        "heat": [next((chart for chart in maps if chart is not None), None)],
        "tasks": heat.task_heat_charts(rows.get("domain", ()), "domain", board.columns, board.series),
        "ranks": figures.rank_charts(judged),
    }
    marked = {kind: [_marked(drawn(chart)) for chart in own if chart is not None] for kind, own in charts.items()}
    return {kind: next(iter(own), None) if kind in ("grouped", "heat") else own for kind, own in marked.items()}


def _differences(data: ReportData) -> dict[str, Any] | None:
    """The paired differences as a figure, where there are any."""
    chart = difference_chart(data.findings.get("comparisons") or ())
    return None if chart is None else _marked(drawn(chart))


def _with_room(all_figures: Mapping[str, Any]) -> dict[str, Any]:
    """The figures that find room in a page, of every kind some, and how many there are besides."""
    lists = {kind: own if isinstance(own, list) else [own] if own else [] for kind, own in all_figures.items()}
    kept, left_out = fitting_each(lists, _ROOM_FOR_FIGURES)
    shown = {kind: own if isinstance(all_figures[kind], list) else next(iter(own), None) for kind, own in kept.items()}
    return {**shown, "left_out": left_out}


def _analyses(data: ReportData) -> list[dict[str, Any]]:
    """The sections of analyses, with the figures that find room in a page."""
    found = analysis_sections(data.analyses, data.baselines())
    lists = {section["id"]: [_marked(figure) for figure in section["figures"]] for section in found}
    kept, _ = fitting_each(lists, _ROOM_FOR_ANALYSES)
    return [
        {**section, "figures": kept[section["id"]], "undrawn": len(section["figures"]) - len(kept[section["id"]])}
        for section in found
    ]


def _marked(figure: Figure) -> dict[str, Any]:
    """Mark the SVG as safe, for its texts are escaped where they are drawn; the caption is escaped by the template."""
    return {"caption": figure.caption, "svg": Markup(figure.svg)}
