"""What analyses found becomes sections of the report, whatever analysis it was."""

from __future__ import annotations

import re
from dataclasses import replace
from xml.etree import ElementTree

import pytest
from examined_runs import TASKS, make_input
from linguistic_runs import make_input as make_linguistic_run
from ontology_runs import make_ontology_run
from report_pages import Page
from report_runs import HOSTILE, MODELS, make_run
from svg_readers import Drawn

from merkhet.analysis import ANALYSES
from merkhet.core.schemas import ANSWERS, make_table
from merkhet.reports._plot_layout import legend_columns
from merkhet.reports.analysis_sections import analysis_sections
from merkhet.reports.figures import rank_bins
from merkhet.reports.html_report import render_html
from merkhet.suites.ontoprobe.suite import SUITE as ONTOPROBE

TABLE = {
    "caption": "one of everything",
    "columns": [
        {"name": kind, "kind": kind} for kind in ("text", "count", "share", "points", "number", "correlation", "p")
    ],
    "rows": [
        [
            "a",
            1234,
            {"value": 0.5, "low": 0.25, "high": 0.75, "n": 8},
            {"value": 0.1, "low": -0.1, "high": 0.3},
            12.345,
            {"value": -0.456, "low": -0.5, "high": None},
            0.0001,
        ],
        [None] * 7,
    ],
}
LINES = {
    "kind": "lines",
    "caption": "scores by bucket",
    "x": "bucket",
    "rows": [
        {"x": x, "line": line, "model": line, "value": value, "low": value - 0.1, "high": value + 0.1, "n": 5}
        for line, value in (("m", 0.8), ("guess", 0.2))
        for x in ("0", "1–2", "3–9")
    ],
}
STACK = {
    "kind": "stack",
    "caption": "questions",
    "rows": [{"bar": bar, "part": part, "count": 30} for bar in ("x", "y") for part in ("p", "q", "r")],
}
BARS = {
    "kind": "bars",
    "caption": "MRR by premises.",
    "x": "P1",
    "legend": "P2",
    "rows": [
        {"panel": panel, "x": x, "bar": bar, "value": 0.5, "low": 0.4, "high": 0.6, "n": 7}
        for panel in ("rdfs2", "rdfs3", "rdfs11")
        for x in ("NO", "IM", "EX")
        for bar in ("NO", "IM", "EX")
    ],
}
CURVES = {
    "kind": "lines",
    "caption": "loss",
    "x": "epoch",
    "percent": False,
    "rows": [{"x": x, "line": line, "value": 1 / x} for line in ("TP", "SCO") for x in range(1, 101)],
}
LONG_NAMES = ("an-unusually-long-model-name", "b")
FOUND = {
    "name": "own",
    "title": "Own: an analysis",
    "explanation": "Why.",
    "sentences": ["It is so."],
    "tables": [TABLE],
}


@pytest.fixture(scope="module")
def found():
    given = make_input()
    names = ("distribution", "domains", "consistency", "compression")
    return [ANALYSES.get(name)(given).as_json() for name in names]


def test_every_analysis_is_a_section_with_its_tables_and_figures(found):
    page = Page(render_html(make_run(analyses=found)))
    assert page.mistakes == []
    ids = [attributes["id"] for attributes in page.all("section")]
    places = [name for name in ids if name.startswith("analysis-")]
    assert places == ["analysis-0", "analysis-1", "analysis-2", "analysis-3"]
    assert ids.index("compared") < ids.index("analysis-0") and ids.index("analysis-3") < ids.index("questions")
    assert {f"#{name}" for name in places} <= {attributes["href"] for attributes in page.all("a")}
    for analysis in found:
        assert analysis["title"] in page.text and analysis["explanation"] in page.text
        assert all(sentence in page.text for sentence in analysis["sentences"])
        assert all(table["caption"] in page.text for table in analysis["tables"])
    without = Page(render_html(make_run()))
    assert len(page.all("svg")) == 2 + len(without.all("svg"))
    own = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(own) == len(set(own))


@pytest.mark.slow
def test_an_ontology_run_is_shown_with_all_its_figures():
    given = make_ontology_run()
    found = [analysis(given).as_json() for analysis in ONTOPROBE.analyses]
    page = Page(render_html(make_run(analyses=found)))
    assert page.mistakes == []
    without = Page(render_html(make_run()))
    assert len(page.all("svg")) == len(without.all("svg")) + sum(len(analysis["figures"]) for analysis in found)
    for analysis in found:
        assert analysis["title"] in page.text
        assert all(sentence in page.text for sentence in analysis["sentences"])


def test_a_run_without_analyses_has_no_such_section():
    plain = render_html(make_run())
    assert render_html(make_run(analyses=[])) == plain
    assert "analysis-" not in plain


def test_cells_are_shown_as_what_they_are():
    (section,) = analysis_sections([FOUND])
    first, second = section.tables[0].rows
    assert [cell.text for cell in first] == ["a", "1,234", "50.0", "+10.0", "12.3", "-0.46", "< 0.001"]
    assert [cell.interval for cell in first] == ["", "", "[25.0, 75.0]", "[-10.0, +30.0]", "", "", ""]
    assert first[2].tip == "n = 8" and first[1].value == 1234
    assert {cell.text for cell in second} == {"–"}
    page = Page(render_html(make_run(analyses=[FOUND])))
    assert "50.0 [25.0, 75.0]" in page.text and page.mistakes == []


def test_tables_aside_are_folded_and_long_ones_cut():
    long = {"caption": "long", "aside": True, "columns": [{"name": "c"}], "rows": [["x"]] * 700}
    page = Page(render_html(make_run(analyses=[{**FOUND, "tables": [long]}])))
    assert "200 more rows are in the run’s analyses.json." in page.text
    assert any(tag == "summary" and data == "long" for tag, data in page.texts) and page.mistakes == []


def test_lines_and_stacks_are_drawn_and_told():
    html = render_html(make_run(analyses=[{**FOUND, "figures": [LINES, STACK]}]))
    labels = [attributes["aria-label"] for attributes in Page(html).all("svg")][:2]
    assert labels[0].startswith("Line chart of scores by bucket. m, 0: 80.0 [70.0, 90.0], n = 5;")
    assert labels[1] == "Stacked bars: questions. x, p: 30; x, q: 30; x, r: 30; y, p: 30; y, q: 30; y, r: 30."
    widths = re.findall(r'<rect [^>]*width="([\d.]+)"[^>]*><title>[xy], [pqr]: 30', html)
    assert len(widths) == 6
    assert [float(width) for width in widths] == pytest.approx([float(widths[0])] * 6, abs=0.011), (
        "equal parts are equally long"
    )


def test_groups_of_bars_are_drawn_in_panels_and_told():
    html = render_html(make_run(analyses=[{**FOUND, "figures": [BARS, {**BARS, "rows": BARS["rows"][:9]}]}]))
    several, one = [attributes["aria-label"] for attributes in Page(html).all("svg")][:2]
    assert several.startswith("Bar chart of MRR by premises. rdfs2, P1 NO, P2 NO: 50.0 [40.0, 60.0], n = 7; ")
    assert several.count("n = 7") == 27 and one.count("n = 7") == 9
    drawn = [svg for svg in re.findall(r"(?s)<svg.*?</svg>", html) if "Bar chart of MRR" in svg]
    assert [len(re.findall(r"<title>rdfs\d+, P1", svg)) for svg in drawn] == [27, 9]
    assert [[name in svg for name in (">rdfs2<", ">rdfs3<", ">rdfs11<")] for svg in drawn] == [[True] * 3, [False] * 3]
    for svg in drawn:
        drawn = Drawn(svg)
        assert not drawn.outside() and {"NO", "IM", "EX", "P2"} <= set(drawn.texts())


def test_bars_without_intervals_panels_or_titles_are_drawn():
    rows = [{"x": "R@1", "bar": "mean", "value": 3.5}, {"x": "R@1", "bar": "max", "value": None}]
    html = render_html(make_run(analyses=[{**FOUND, "figures": [{"kind": "bars", "caption": "c.", "rows": rows}]}]))
    assert Page(html).all("svg")[0]["aria-label"] == "Bar chart of c. R@1, mean: 3.5."


def test_long_curves_mark_some_of_their_points_and_are_no_shares():
    svg = analysis_sections([{**FOUND, "figures": [CURVES]}])[0].figures[0].svg
    told = re.findall(r"<title>(TP, \d+: [^<]*)</title>", svg)
    assert told[0] == "TP, 1: 1" and told[1] == "TP, 11: 0.0909" and len(told) == 10
    assert "%" not in re.sub(r"<style.*?</style>|width=\S+", "", svg) and ">epoch<" in svg


def test_whole_numbers_have_whole_ticks():
    rows = [{"x": layer, "line": "bert", "value": 0.5 + layer / 20} for layer in range(4)]
    (section,) = analysis_sections(
        [{"name": "layers", "figures": [{"kind": "lines", "rows": rows, "caption": "by layer"}]}]
    )
    svg = ElementTree.fromstring(section.figures[0].svg)
    texts = [element.text for element in svg.iter() if element.tag.endswith("text")]
    assert [text for text in texts if text and text.replace(".", "").isdigit()] == ["0", "1", "2", "3"]


def test_sizes_stand_on_a_logarithmic_axis_and_high_shares_are_told_apart():
    rows = [{"x": x, "line": "m", "value": 0.99 - x / 1e6, "low": 0.91, "high": 0.995} for x in (1000, 10_000, 31_623)]
    figure = {"kind": "lines", "caption": "by size", "rows": rows, "percent": True}
    texts, places = {}, {}
    for name, more in (("plain", {}), ("log", {"log": True, "zero": False})):
        svg = analysis_sections([{**FOUND, "figures": [{**figure, **more}]}])[0].figures[0].svg
        texts[name] = [element.text for element in ElementTree.fromstring(svg).iter() if element.tag.endswith("text")]
        marks = re.findall(r'transform="translate\(([\d.]+),[-\d.]+\)"[^>]*><title>m, ', svg)
        places[name] = [float(place) for place in marks]
    assert {"1k", "10k", "31.6k", "90%"} <= set(texts["log"]) and "0%" not in texts["log"] and "0%" in texts["plain"]
    first, second, third = places["log"]
    assert (second - first) / (third - second) == pytest.approx(2, rel=0.02)
    zero = {**figure, "rows": [*rows, {"x": 0, "line": "m", "value": 0.5}], "log": True}
    assert analysis_sections([{**FOUND, "figures": [zero]}])[0].figures, "no logarithm of nothing"


def test_a_run_of_senses_and_clozes_is_shown_with_its_figures():
    given = make_linguistic_run(skill={"bert": 0.5, "bert, mlm": 0.6, "bert, mlm+nsp": 0.4})
    names = ("classes", "lengths", "layers", "objectives")
    shown = analysis_sections([ANALYSES.get(name, None)(given).as_json() for name in names])
    assert [section.title for section in shown] == [
        "Knowledge by class",
        "Accuracy by text length",
        "Senses by layer",
        "Training objectives",
    ]
    assert [len(section.figures) for section in shown] == [0, 2, 1, 0]


def test_more_lines_than_colours_are_still_told_apart():
    rows = [{"x": x, "line": f"task {line}", "value": 0.01 * line} for line in range(11) for x in ("a", "b")]
    svg = analysis_sections([{**FOUND, "figures": [{**LINES, "rows": rows}]}])[0].figures[0].svg
    marks = re.findall(r'<path[^>]*?d="([^"]+)" fill="(#[0-9A-Fa-f]{6})"[^>]*><title>task \d+, a', svg)
    assert len(marks) == len({(shape[:12], colour) for shape, colour in marks}) == 11


def test_what_cannot_be_drawn_is_left_out():
    nothing = [{**LINES, "rows": []}, {"kind": "cake", "caption": "c", "rows": [{"x": 1}]}, {**STACK, "rows": []}]
    nothing.append({**LINES, "rows": [{**row, "value": None} for row in LINES["rows"]]})
    nothing.append({**BARS, "rows": [{**row, "value": None} for row in BARS["rows"]]})
    assert analysis_sections([{**FOUND, "figures": nothing}])[0].figures == []


def test_baselines_are_grey_in_lines():
    grey = analysis_sections([{**FOUND, "figures": [LINES]}], {"guess"})[0].figures[0].svg
    plain = analysis_sections([{**FOUND, "figures": [LINES]}])[0].figures[0].svg
    assert "#9a9a9a" in grey and "#9a9a9a" not in plain


def test_texts_of_analyses_are_text():
    hostile = {
        "name": HOSTILE,
        "title": HOSTILE,
        "explanation": HOSTILE,
        "sentences": [HOSTILE],
        "tables": [
            {"caption": HOSTILE, "columns": [{"name": HOSTILE}], "rows": [[HOSTILE]], "aside": aside}
            for aside in (0, 1)
        ],
        "figures": [
            {
                **LINES,
                "caption": HOSTILE,
                "x": HOSTILE,
                "rows": [{**row, "line": HOSTILE} for row in LINES["rows"][:3]],
            },
            {**STACK, "caption": HOSTILE, "rows": [{"bar": HOSTILE, "part": HOSTILE, "count": 2}]},
            {
                **dict.fromkeys(("caption", "x", "legend"), HOSTILE),
                "kind": "bars",
                "rows": [{"panel": panel, "x": HOSTILE, "bar": HOSTILE, "value": 0.5} for panel in (HOSTILE, "p")],
            },
        ],
    }
    page = Page(render_html(make_run(analyses=[hostile])))
    assert page.mistakes == [] and len(page.all("script")) == 1
    assert not any("alert" in data for tag, data in page.texts if tag in ("script", "style"))


@pytest.mark.parametrize(
    ("models", "among"),
    [
        (LONG_NAMES, 250_002),
        *(pytest.param(LONG_NAMES, among, marks=pytest.mark.slow) for among in (4, 1000, 30_522)),
        *(pytest.param(MODELS, among, marks=pytest.mark.slow) for among in (4, 1000, 30_522, 250_002)),
    ],
)
def test_no_legend_of_ranks_is_cut_off(models, among):
    run = make_run(models=models)
    rows = [row | {"among": among, "gold_ranks": [float(among)]} for row in run.answers.to_pylist()]
    html = render_html(replace(run, answers=make_table(ANSWERS, rows)))
    drawings = [svg for svg in re.findall(r"(?s)<svg.*?</svg>", html) if "Rank of the best right answer" in svg]
    assert drawings
    for svg in drawings:
        drawn = Drawn(svg)
        assert set(drawn.texts()) >= set(rank_bins(max(among, 20))[1][-1:]) or among == 4
        assert not drawn.outside() and not drawn.overlapping()


def test_legends_are_as_wide_as_they_may_be():
    assert legend_columns([20.0] * 3, 100) == 3 and legend_columns([20.0] * 3, 87) == 2
    assert legend_columns([300.0, 300.0], 352) == 1
    assert legend_columns([50.0] * 6, 200) < legend_columns([50.0] * 6, 400) == 6
    assert legend_columns([20.0] * 8, 7 * 34) == 4, "rows are even"


def test_every_task_of_the_run_is_in_its_tables(found):
    tables = {analysis["name"]: analysis["tables"][0] for analysis in found}
    assert [row[0] for row in tables["domains"]["rows"]] == list(TASKS)
