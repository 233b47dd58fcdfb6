"""Figures of a run, and writers of figure files: SVG, PNG, PDF and self-contained HTML."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

from markupsafe import Markup

from merkhet.core import text as fmt
from merkhet.core.errors import InputError, did_you_mean
from merkhet.core.files import atomic_path, write_text
from merkhet.core.templating import render_page
from merkhet.reports._answer_outcomes import judge_answers
from merkhet.reports._chart_specs import chart_from_spec
from merkhet.reports._chart_style import NamedChart, line_colours
from merkhet.reports._forest_plot import difference_chart
from merkhet.reports._heat_maps import heat_chart, task_heat_charts
from merkhet.reports._plot_layout import PANEL
from merkhet.reports.figures import grouped_chart, rank_charts, score_charts
from merkhet.reports.report_data import ReportData, select_named
from merkhet.reports.scoreboard import rows_by_group
from merkhet.reports.tables import run_scoreboard

FORMATS = ("png", "pdf", "svg", "html")
CONVERTED = frozenset({"png", "pdf"})
"""Formats that vl-convert makes from SVG."""
NEEDS_CONVERTER = "PNG and PDF need vl-convert: pip install 'merkhet[report]'"
_PNG_DPI, _CSS_DPI, _PDF_DPI = 300, 96, 72
"""Resolution in units per inch: pixels of a PNG, CSS pixels of a figure, points of a PDF."""
_LATEX_FIGURE = r"""\begin{%(environment)s}[t]
  \centering
%(content)s
  \caption{%(caption)s}
  \label{fig:%(name)s}
\end{%(environment)s}
"""


def can_convert() -> bool:
    """Return whether vl-convert, which converts SVG to PNG and PDF, is installed."""
    return find_spec("vl_convert") is not None


def report_charts(data: ReportData) -> list[NamedChart]:
    """Make all charts for which a run has data, with unique names.

    The charts show all scores together, each score, heat maps of groups by models and of domains by tasks, ranks,
    paired differences, and the results of analyses.
    """
    charts = [chart for chart in _charts(data) if chart is not None]
    names = fmt.unique_names(chart.name for chart in charts)
    return [replace(chart, name=name) for chart, name in zip(charts, names, strict=True)]


def _charts(data: ReportData) -> Iterator[NamedChart | None]:
    baselines = data.baselines()
    board = run_scoreboard(data)
    outcomes = judge_answers(data.questions, data.answers, data.candidates, board)
    colours = line_colours(outcomes.series, baselines)
    yield grouped_chart(board, colours, baselines)
    yield from score_charts(board, colours)
    groups = rows_by_group(data.scores)
    for group, rows in groups.items():
        for column in board.columns:
            yield heat_chart(rows, group, column, board.series, data.group_order(group))
    for group in ["domain"] if "domain" in groups else list(groups)[:1]:
        yield from task_heat_charts(groups[group], group, board.columns, board.series, data.group_order(group))
    yield from rank_charts(outcomes)
    yield difference_chart(data.findings.get("comparisons") or ())
    for analysis in data.analyses:
        for index, spec in enumerate(analysis.get("figures") or (), 1):
            yield chart_from_spec(spec, fmt.file_slug(analysis.get("name") or "analysis", index), baselines)


def select_charts(charts: Sequence[NamedChart], names: Sequence[str]) -> list[NamedChart]:
    """Return the charts with the given names, in the order of ``names``; all charts if ``names`` is empty."""
    return select_named({chart.name: chart for chart in charts}, names, "figure", "the run has nothing to draw")


def save_charts(charts: Sequence[NamedChart], folder: str | Path, formats: Sequence[str] = FORMATS) -> list[Path]:
    """Write each chart in each format as ``folder/NAME.FORMAT``.

    With PNG or PDF, also write figures.tex, which includes the figures in a paper. PNG has 300 dpi. PNG and PDF need
    vl-convert, which ``merkhet[report]`` installs.

    Returns:
        The paths of the written files.

    Raises:
        InputError: if a format is unknown, vl-convert is missing, or ``folder`` is a file.
    """
    for format_ in formats:
        if format_ not in FORMATS:
            raise InputError(f"unknown figure format {format_!r}; {did_you_mean(format_, FORMATS)}")
    if CONVERTED & set(formats) and not can_convert():
        raise InputError(f"{NEEDS_CONVERTER}; SVG and HTML do not")
    folder = Path(folder)
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is not a folder; choose another one with --out")
    written = []
    for chart in charts:
        for format_ in dict.fromkeys(formats):
            target = folder / f"{chart.name}.{format_}"
            content = _WRITERS[format_](chart)
            with atomic_path(target) as path:
                path.write_bytes(content)
            written.append(target)
    if charts and CONVERTED & set(formats):
        write_text(folder / "figures.tex", latex_figures(charts))
        written.append(folder / "figures.tex")
    return written


def latex_figures(charts: Sequence[NamedChart]) -> str:
    """Write LaTeX that includes the figures with captions and labels; wide figures span both columns."""
    from merkhet.reports._latex_tables import escape_latex, preamble, shrink_to_fit

    packages = preamble(["graphicx"], "".join(chart.caption for chart in charts))
    figures = [
        _LATEX_FIGURE
        % {
            "environment": "figure" if chart.drawing.width <= PANEL else "figure*",
            "content": shrink_to_fit(f"\\includegraphics{{{chart.name}}}"),
            "caption": escape_latex(chart.caption),
            "name": chart.name,
        }
        for chart in charts
    ]
    return packages + "\n".join(figures)


def _svg(chart: NamedChart) -> bytes:
    return chart.drawing.document(chart.caption, chart.description).encode("utf-8", "replace")


def _png(chart: NamedChart) -> bytes:
    import vl_convert

    # vl-convert assumes 72 pixels per inch.
    svg = chart.drawing.document(chart.caption, chart.description)
    image: bytes = vl_convert.svg_to_png(svg, scale=_PDF_DPI / _CSS_DPI, ppi=_PNG_DPI)
    return image


def _pdf(chart: NamedChart) -> bytes:
    import vl_convert

    document: bytes = vl_convert.svg_to_pdf(
        chart.drawing.document(chart.caption, chart.description, _PDF_DPI / _CSS_DPI)
    )
    return document


def chart_page(chart: NamedChart) -> str:
    """Render an HTML page without scripts: the figure, with values as tooltips, and its caption."""
    return render_page(
        *("merkhet.reports", "templates", "figure.html.j2", "figure.css"),
        title=fmt.printable(chart.title or chart.caption),
        caption=fmt.printable(chart.caption),
        svg=Markup(chart.drawing.inline(chart.description)),
    )


_WRITERS: Mapping[str, Callable[[NamedChart], bytes]] = {
    "png": _png,
    "pdf": _pdf,
    "svg": _svg,
    "html": lambda chart: chart_page(chart).encode("utf-8", "replace"),
}
