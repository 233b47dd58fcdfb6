"""Every figure of a report, and figures as files: SVG, PNG and PDF for papers, pages that open offline."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from html import escape
from importlib.util import find_spec
from pathlib import Path

from merkhet.core.errors import InputError, did_you_mean
from merkhet.core.files import atomic_path, write_text
from merkhet.reports import formatting as show
from merkhet.reports._answer_outcomes import outcomes
from merkhet.reports._chart_specs import described_chart
from merkhet.reports._chart_style import NamedChart, line_colours
from merkhet.reports._forest_plot import difference_chart
from merkhet.reports._heat_maps import heat_chart, task_heat_charts
from merkhet.reports._plot_layout import PANEL
from merkhet.reports._report_sections import group_names
from merkhet.reports.figures import grouped_chart, rank_charts, score_charts
from merkhet.reports.report_data import ReportData
from merkhet.reports.scoreboard import grouped_rows, scoreboard

FORMATS = ("png", "pdf", "svg", "html")
CONVERTED = frozenset({"png", "pdf"})
"""Formats that vl-convert makes of the SVG."""
NEEDS_CONVERTER = "PNG and PDF need vl-convert: pip install 'merkhet[report]'"
_DOTS, _INCH, _POINTS = 300, 96, 72
"""A figure's pixels are those of CSS, 96 an inch; a PNG has 300 dots an inch, and says so; a PDF has 72 points."""


def can_convert() -> bool:
    """Return whether vl-convert is installed, which makes PNG and PDF of SVG."""
    return find_spec("vl_convert") is not None


def report_charts(data: ReportData) -> list[NamedChart]:
    """Every figure of a run that has something to show, each with a name of its own.

    Scores (all in one, and a panel each), heat maps of groups by models and of domains by tasks, ranks, paired
    differences, and what the analyses describe.
    """
    charts = [chart for chart in _charts(data) if chart is not None]
    names = show.distinct(chart.name for chart in charts)
    return [replace(chart, name=name) for chart, name in zip(charts, names, strict=True)]


def _charts(data: ReportData) -> Iterator[NamedChart | None]:
    baselines = data.baselines()
    board = scoreboard(data.scores, data.suite.get("headline") or (), baselines, data.suite.get("main_methods") or ())
    judged = outcomes(data.questions, data.answers, data.candidates, board)
    colours = line_colours(judged.series, baselines)
    yield grouped_chart(board, colours, baselines)
    yield from score_charts(board, colours)
    groups = group_names(data.scores)
    rows = {group: grouped_rows(data.scores, group) for group in groups}
    for group in groups:
        for column in board.columns:
            yield heat_chart(rows[group], group, column, board.series)
    for group in [group for group in groups if group == "domain"] or groups[:1]:
        yield from task_heat_charts(rows[group], group, board.columns, board.series)
    yield from rank_charts(judged)
    yield difference_chart(data.findings.get("comparisons") or ())
    for analysis in data.analyses:
        for place, described in enumerate(analysis.get("figures") or (), 1):
            yield described_chart(described, show.file_name(analysis.get("name") or "analysis", place), baselines)


def chosen(charts: Sequence[NamedChart], names: Sequence[str]) -> list[NamedChart]:
    """The charts of these names in their order; refuses a name that there is not."""
    by_name = {chart.name: chart for chart in charts}
    for name in names:
        if name not in by_name:
            hint = did_you_mean(name, by_name) if by_name else "there is nothing to draw in this run"
            raise InputError(f"there is no figure {name!r} in this run; {hint}")
    return [by_name[name] for name in dict.fromkeys(names)] if names else list(charts)


def save_charts(charts: Sequence[NamedChart], folder: str | Path, formats: Sequence[str] = FORMATS) -> list[Path]:
    """Write each chart in each format as ``folder/NAME.FORMAT``, and figures.tex, which includes them in a paper.

    PNG has 300 dots an inch. PNG and PDF are converted from the SVG by vl-convert, which ``merkhet[report]`` installs.
    """
    for form in formats:
        if form not in FORMATS:
            raise InputError(f"there is no format {form!r} for a figure; {did_you_mean(form, FORMATS)}")
    if CONVERTED & set(formats) and not can_convert():
        raise InputError(f"{NEEDS_CONVERTER}; SVG and HTML need nothing more")
    folder = Path(folder)
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is not a folder. Choose another place with --out.")
    written = []
    for chart in charts:
        for form in dict.fromkeys(formats):
            target = folder / f"{chart.name}.{form}"
            content = _WRITERS[form](chart)
            with atomic_path(target) as path:
                path.write_bytes(content)
            written.append(target)
    if charts and CONVERTED & set(formats):
        write_text(folder / "figures.tex", latex_figures(charts))
        written.append(folder / "figures.tex")
    return written


def latex_figures(charts: Sequence[NamedChart]) -> str:
    """LaTeX that includes the figures, each with its caption and a label; one wider than a panel goes over columns."""
    from merkhet.reports._latex_tables import escaped, fitted, preamble

    needed = preamble(["graphicx"], "".join(chart.caption for chart in charts))
    figures = [
        f"\\begin{{{place}}}[t]\n"
        "  \\centering\n" + fitted(f"\\includegraphics{{{one.name}}}") + "\n"
        f"  \\caption{{{escaped(one.caption)}}}\n"
        f"  \\label{{fig:{one.name}}}\n"
        f"\\end{{{place}}}\n"
        for one in charts
        for place in ["figure" if one.drawing.width <= PANEL else "figure*"]
    ]
    return needed + "\n".join(figures)


def _svg(chart: NamedChart) -> bytes:
    return chart.drawing.document(chart.caption, chart.told).encode("utf-8", "replace")


def _png(chart: NamedChart) -> bytes:
    import vl_convert

    # vl-convert takes 72 pixels for an inch.
    svg = chart.drawing.document(chart.caption, chart.told)
    image: bytes = vl_convert.svg_to_png(svg, scale=_POINTS / _INCH, ppi=_DOTS)
    return image


def _pdf(chart: NamedChart) -> bytes:
    import vl_convert

    document: bytes = vl_convert.svg_to_pdf(chart.drawing.document(chart.caption, chart.told, _POINTS / _INCH))
    return document


_STYLE = """
body { margin: 1.5rem auto; max-width: 60rem; padding: 0 1rem; font: 15px/1.5 Arial, "Liberation Sans", sans-serif;
  color: #26272b; background: #fff; }
figure { margin: 0; }
#figure { overflow-x: auto; }
figcaption { margin-top: .8rem; max-width: 44rem; overflow-wrap: anywhere; }
"""
_STYLE_HASH = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
_PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'sha256-{style_hash}'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<figure><div id="figure">{svg}</div><figcaption dir="auto">{caption}</figcaption></figure>
</body>
</html>
"""


def chart_page(chart: NamedChart) -> str:
    """Return a page with the figure and its caption, without any script; a mark that is pointed at tells its value."""
    return _PAGE.format(
        title=escape(show.printable(chart.title or chart.caption)),
        caption=escape(show.printable(chart.caption)),
        svg=chart.drawing.inline(chart.told),
        style=_STYLE,
        style_hash=_STYLE_HASH,
    )


_WRITERS: Mapping[str, Callable[[NamedChart], bytes]] = {
    "png": _png,
    "pdf": _pdf,
    "svg": _svg,
    "html": lambda chart: chart_page(chart).encode("utf-8", "replace"),
}
