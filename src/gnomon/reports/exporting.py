"""Every figure of a report as a chart, and charts as files: PNG and PDF for papers, SVG, pages that open offline."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from html import escape
from pathlib import Path
from typing import Any

from gnomon.foundation import InputError, atomic_path, did_you_mean, write_text
from gnomon.reports import formatting as show
from gnomon.reports.charts import described_chart
from gnomon.reports.data import ReportData
from gnomon.reports.differences import difference_chart
from gnomon.reports.drawing import (
    PANEL,
    NamedChart,
    can_draw,
    line_colours,
    specification,
    svg_of,
    vega_lite_version,
)
from gnomon.reports.figures import grouped_chart, rank_charts, score_charts
from gnomon.reports.heat import heat_chart, task_heat_charts
from gnomon.reports.outcomes import outcomes
from gnomon.reports.scoreboard import grouped_rows, scoreboard
from gnomon.reports.sections import group_names
from gnomon.reports.svg import scaled, standalone, width

FORMATS = ("png", "pdf", "svg", "html")
_DOTS = 300
_INCH = 96
"""A figure's pixels are those of CSS, 96 an inch; a PNG has 300 dots an inch, and says so."""
_COLUMN = PANEL + 1
"""Wider figures go over the columns of a paper."""


def report_charts(data: ReportData) -> list[NamedChart]:
    """Every figure of a run that has something to show, each with a name of its own.

    Scores (all in one, and a panel each), heat maps of groups by models and of domains by tasks, ranks, paired
    differences, and what the analyses describe. Refuses where the parts that draw are not installed.
    """
    if not can_draw():
        raise InputError("drawing figures needs altair and vl-convert: pip install 'gnomon[report]'")
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

    PNG has 300 dots an inch on white. An HTML page holds all that it needs to draw itself; nothing is fetched.
    """
    for form in formats:
        if form not in FORMATS:
            raise InputError(f"there is no format {form!r} for a figure; {did_you_mean(form, FORMATS)}")
    if not can_draw():
        raise InputError("drawing figures needs altair and vl-convert: pip install 'gnomon[report]'")
    folder = Path(folder)
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is not a folder. Choose another place with --out.")
    bundle = _bundle() if "html" in formats and charts else ""
    writers: Mapping[str, Callable[[NamedChart], bytes]] = {
        "png": _png,
        "pdf": _pdf,
        "svg": lambda one: standalone(svg_of(one.chart, "white"), one.caption, one.told).encode(),
        "html": lambda one: chart_page(one, bundle).encode("utf-8", "replace"),
    }
    written = []
    for one in charts:
        for form in dict.fromkeys(formats):
            target = folder / f"{one.name}.{form}"
            content = writers[form](one)
            with atomic_path(target) as path:
                path.write_bytes(content)
            written.append(target)
    if charts and {"png", "pdf"} & set(formats):
        write_text(folder / "figures.tex", latex_figures(charts))
        written.append(folder / "figures.tex")
    return written


def latex_figures(charts: Sequence[NamedChart]) -> str:
    """LaTeX that includes the figures, each with its caption and a label; one wider than a panel goes over columns."""
    from gnomon.reports.latex import escaped, fitted, preamble

    needed = preamble(["graphicx"], "".join(chart.caption for chart in charts))
    figures = [
        f"\\begin{{{place}}}[t]\n"
        "  \\centering\n" + fitted(f"\\includegraphics{{{one.name}}}") + "\n"
        f"  \\caption{{{escaped(one.caption)}}}\n"
        f"  \\label{{fig:{one.name}}}\n"
        f"\\end{{{place}}}\n"
        for one in charts
        for place in ["figure" if width(svg_of(one.chart)) <= _COLUMN else "figure*"]
    ]
    return needed + "\n".join(figures)


def _png(one: NamedChart) -> bytes:
    import vl_convert

    # vl-convert takes 72 pixels for an inch.
    described = specification(one.chart, "white")
    image: bytes = vl_convert.vegalite_to_png(described, vl_version=vega_lite_version(), scale=72 / _INCH, ppi=_DOTS)
    return image


def _pdf(one: NamedChart) -> bytes:
    import vl_convert

    document: bytes = vl_convert.svg_to_pdf(scaled(svg_of(one.chart, "white"), 72 / _INCH))
    return document


def _bundle() -> str:
    import vl_convert

    script: str = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;", vega_lite_version())
    return script.replace("</script", "<\\/script")


_PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; \
script-src 'unsafe-inline' 'unsafe-eval'; img-src data: blob:">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
body {{ margin: 1.5rem auto; max-width: 60rem; padding: 0 1rem; font: 15px/1.5 Arial, "Liberation Sans", sans-serif;
  color: #26272b; background: #fff; }}
figure {{ margin: 0; }}
#figure {{ overflow-x: auto; padding-right: 40px; min-height: 3rem; }}
figcaption {{ margin-top: .8rem; max-width: 44rem; overflow-wrap: anywhere; }}
</style>
</head>
<body>
<figure><div id="figure" role="img" aria-label="{told}"></div><figcaption dir="auto">{caption}</figcaption></figure>
<script type="application/json" id="specification">{specification}</script>
<script>{bundle}</script>
<script>
vegaEmbed("#figure", JSON.parse(document.getElementById("specification").textContent),
  {{renderer: "svg", downloadFileName: "{name}",
    actions: {{export: true, source: false, compiled: false, editor: false}}}});
</script>
</body>
</html>
"""


def chart_page(one: NamedChart, bundle: str) -> str:
    """A page that draws the chart by the script it brings, and tells of a mark that is pointed at."""
    described = _with_tips(specification(one.chart, "white"))
    # Nothing in the JSON can end the script that holds it.
    plain = json.dumps(described, ensure_ascii=False).replace("<", "\\u003c").replace("\u2028", "\\u2028")
    return _PAGE.format(
        title=escape(one.title or one.caption),
        told=escape(show.printable(one.told)),
        caption=escape(one.caption),
        specification=plain,
        bundle=bundle,
        name=one.name,
    )


def _with_tips(described: Any) -> Any:
    """The specification with a tip wherever a mark has a description."""
    if isinstance(described, list):
        return [_with_tips(part) for part in described]
    if not isinstance(described, dict):
        return described
    found = {key: value if key == "datasets" else _with_tips(value) for key, value in described.items()}
    if "description" in found and isinstance(found["description"], dict):
        found["tooltip"] = found["description"]
    return found
