"""The report of a run as one HTML file that needs nothing else: no network, no fonts, no figures beside it."""

from __future__ import annotations

from typing import Any

from markupsafe import Markup

from gnomon.foundation.pages import render_page
from gnomon.reports import figures, sections
from gnomon.reports import formatting as show
from gnomon.reports.analyses import analysis_sections
from gnomon.reports.data import ReportData
from gnomon.reports.outcomes import Outcomes, outcomes
from gnomon.reports.samples import sample_questions
from gnomon.reports.scoreboard import Scoreboard, grouped_rows, scoreboard


def render_html(data: ReportData) -> str:
    """The whole report as the text of one HTML page.

    Equal data give equal text. Everything that came from data is escaped, and a content security policy in the page
    forbids the network and any script but the page's own. Figures are static SVG; without ``gnomon[report]`` the
    page has its tables only, and says so.
    """
    return render_page("gnomon.reports", "templates", "report.html.j2", "report.css", "sort.js", **_content(data))


def _content(data: ReportData) -> dict[str, Any]:
    baselines = data.baselines()
    main_methods = data.suite.get("main_methods") or ()
    board = scoreboard(data.scores, data.suite.get("headline") or (), baselines, main_methods)
    judged = outcomes(data.questions, data.answers, data.candidates, board)
    colours = figures.line_colours(judged.series, baselines)
    groups = sections.group_names(data.scores)
    date = show.printable(str(data.record.get("date", ""))[:16].replace("T", ", "))
    return {
        "title": show.printable(data.title),
        "suite": {
            "title": show.printable(data.suite.get("title") or data.suite.get("name") or ""),
            "about": show.printable(data.suite.get("about") or ""),
            "methods": show.printable(data.suite.get("methods") or ""),
            "citations": [show.printable(text) for text in data.suite.get("citations") or ()],
        },
        "date": date,
        "version": show.printable(data.record.get("gnomon") or ""),
        "tiles": _tiles(data, board, judged),
        "sentences": [show.printable(text) for text in data.findings.get("sentences") or ()],
        "main": sections.main_table(board, colours),
        "every": sections.every_score(data.scores),
        "drawing": figures.can_draw(),
        "figures": _figures(data, board, judged, colours, groups),
        "groups": [
            {"name": show.printable(name), "id": f"by-{place}", "tables": tables}
            for place, name in enumerate(groups)
            if (tables := sections.group_tables(data.scores, name, board.columns, board.series, len(groups)))
        ],
        "comparisons": sections.comparisons(data.findings),
        "analyses": [
            {**section, "figures": [_marked(figure) for figure in section["figures"]]}
            for section in analysis_sections(data.analyses, baselines)
        ],
        "sampled": sections.sampled(data.record),
        "samples": sample_questions(data.questions, data.answers, judged),
        "colours": list(colours.values()),
        "unusable": sections.unusable(data),
        "models": sections.model_table(data.record),
        "environment": sections.environment(data.record),
        "command": show.printable(data.record.get("command") or ""),
        "study": sections.plain_json(dict(data.study)) if data.study else "",
    }


def _tiles(data: ReportData, board: Scoreboard, judged: Outcomes) -> list[tuple[str, str]]:
    questions = data.record.get("questions") or {}
    asked = questions.get("count")
    models = {line.model for line in judged.series}
    baselines = models & data.baselines()
    tiles = [(show.count(data.questions.num_rows if asked is None else asked), "questions")]
    if questions.get("facts") is not None:
        tiles.append((show.count(questions["facts"]), "facts"))
    tasks = len(set(judged.tasks) | {column.task for column in board.columns})
    tiles += [(str(tasks), "task" if tasks == 1 else "tasks")]
    # A model that stores under several conditions has a name for each, and so has the baseline.
    base = {model.get("name"): model.get("base") or model.get("name") for model in data.record.get("models") or ()}
    own = len({base.get(name, name) for name in models - baselines})
    tiles.append((str(own), "model" if own == 1 else "models"))
    if own < len(models - baselines):
        tiles.append((str(len(models - baselines) // own), "conditions"))
    if baselines:
        count = len({base.get(name, name) for name in baselines})
        tiles.append((str(count), "baseline" if count == 1 else "baselines"))
    return tiles


def _figures(
    data: ReportData, board: Scoreboard, judged: Outcomes, colours: dict[Any, str], groups: list[str]
) -> dict[str, Any]:
    if not figures.can_draw():
        return {"scores": [], "heat": None, "ranks": []}
    places = ((group, column) for group in groups for column in board.columns)
    drawn = (
        figures.heat_figure(grouped_rows(data.scores, group), group, column, board.series) for group, column in places
    )
    heat = next((figure for figure in drawn if figure is not None), None)
    return {
        "scores": [_marked(figure) for figure in figures.score_figures(board, colours)],
        "heat": _marked(heat) if heat else None,
        "ranks": [_marked(figure) for figure in figures.rank_figures(judged)],
    }


def _marked(figure: figures.Figure) -> dict[str, Any]:
    """The drawing is ours and was cleaned by :func:`gnomon.reports.svg.embed`; the caption is escaped as text."""
    return {"caption": figure.caption, "svg": Markup(figure.svg)}
