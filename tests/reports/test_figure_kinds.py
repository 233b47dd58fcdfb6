"""Every kind of figure, from what the analyses found to marks on paper: as many as there are numbers."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, replace
from pathlib import Path

import examined_runs
import linguistic_runs
import pytest
from memory_runs import storage_run
from ontology_runs import make_ontology_run
from report_runs import ARABIC, CHINESE, HOSTILE, make_run, score
from svg_readers import ALLOWED, Drawn, place

from merkhet.analysis.analysis_options import AnalysisOptions
from merkhet.analysis.cooccurrence import cooccurrence
from merkhet.analysis.distribution import distribution
from merkhet.analysis.layer_accuracy import layers
from merkhet.analysis.text_length import lengths
from merkhet.core import text as fmt
from merkhet.core.schemas import SCORES, make_table
from merkhet.reports._chart_style import MAX_LABEL
from merkhet.reports._labels import shorten_labels
from merkhet.reports.figure_files import can_convert, latex_figures, report_charts, save_charts
from merkhet.suites.lama_tk.analyses.storage import storage
from merkhet.suites.ontoprobe.analyses.premise_effects import premises

needs_converter = pytest.mark.skipif(not can_convert(), reason="vl-convert is not installed")
LONG = "an-organisation-with-a-long-name/" + "a-model-with-a-long-name-" * 10
COLUMN, TEXT = 3.03, 6.3
"""Inches of a column and of the text of a paper with two columns."""


def co_occurring(folder: Path):
    given = examined_runs.make_input()
    (folder / "corpus.txt").write_text(examined_runs.corpus_text(given, times=1), encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MERKHET_CACHE", str(folder / "cache"))
        return cooccurrence(replace(given, options=AnalysisOptions(corpus=str(folder))))


ANALYSES = {
    "storage": lambda _: storage(storage_run().inputs),
    "cooccurrence": co_occurring,
    "lengths": lambda _: lengths(linguistic_runs.make_input(each=30)),
    "layers": lambda _: layers(linguistic_runs.make_input(each=20)),
    "premises": lambda _: premises(make_ontology_run()),
    "distribution": lambda _: distribution(examined_runs.make_input()),
}
MARK = {"lines": "path", "bars": "rect", "stack": "rect"}


@pytest.fixture(scope="module", params=ANALYSES)
def found(request, tmp_path_factory):
    """What an analysis found, and the charts of a run that has it."""
    analysis = ANALYSES[request.param](tmp_path_factory.mktemp("analysis"))
    content = asdict(analysis)
    charts = report_charts(make_run(analyses=[{**content, "name": "own"}], findings={}))
    return content["figures"], [chart for chart in charts if chart.name.startswith("own")]


def test_every_number_of_an_analysis_is_a_mark(found):
    figures, charts = found
    assert figures and len(figures) == len(charts)
    for figure, chart in zip(figures, charts, strict=True):
        number = "count" if figure["kind"] == "stack" else "value"
        known = [row for row in figure["rows"] if row[number] is not None]
        shown = [title for title, _ in Drawn(chart).titled(MARK[figure["kind"]])]
        assert len(shown) == len(known) > 1, chart.name
        percent = chart_is_percent(figure)
        assert Counter(map(told_number, shown)) == Counter(
            fmt.count(row["count"]) if figure["kind"] == "stack" else fmt.score(row["value"], percent=percent)
            for row in known
        )
        if figure["kind"] != "stack":
            ends = [row for row in known if row["low"] is not None]
            told = Counter(title.partition("[")[2].partition("]")[0] for title in shown if "[" in title)
            assert told == Counter(fmt.interval(row["low"], row["high"], percent=percent)[1:-1] for row in ends)
            assert ("95% bootstrap intervals" in chart.caption) == bool(ends)


def told_number(title: str) -> str:
    return title.rpartition(": ")[2].split(" [")[0].split(", n =")[0]


def chart_is_percent(figure: dict) -> bool:
    """As the figure says, or whether no value is beyond 1."""
    values = [row["value"] for row in figure["rows"] if row.get("value") is not None]
    stated = figure.get("percent")
    return all(abs(value) <= 1 for value in values) if stated is None else stated


@needs_converter
def test_pictures_and_documents_are_whole(found, tmp_path):
    _, charts = found
    for path in save_charts(charts[:1], tmp_path, ["png", "pdf", "svg"])[:3]:
        content = path.read_bytes()
        start, end = {
            ".png": (b"\x89PNG\r\n\x1a\n", b"IEND\xaeB`\x82"),
            ".pdf": (b"%PDF-", b"%%EOF"),
            ".svg": (b"<?xml", b"</svg>"),
        }[path.suffix]
        assert content.startswith(start) and content.rstrip().endswith(end) and len(content) > 2000


def test_lines_are_as_high_as_their_numbers():
    rows = [{"x": x, "line": "m", "value": value, "low": None, "high": None, "n": 9} for x, value in ((0, 0), (1, 1))]
    rows.append({"x": 2, "line": "m", "value": 0.25, "low": None, "high": None, "n": 9})
    figure = {"kind": "lines", "caption": "c", "x": "layer", "rows": rows, "percent": True}
    chart = report_charts(make_run(analyses=[{"name": "own", "figures": [figure]}]))[-1]
    x, y = zip(*(place(element) for _, element in Drawn(chart).points()), strict=True)
    assert y[0] - y[2] == pytest.approx((y[0] - y[1]) / 4, abs=0.5) and y[0] > y[1]
    assert x[2] - x[1] == pytest.approx(x[1] - x[0], abs=0.5)


def test_an_axis_that_does_not_begin_at_nothing_is_told():
    for zero, said in ((True, False), (False, True)):
        rows = [{"x": x, "line": "m", "value": 0.97, "low": 0.95, "high": 0.99, "n": 9} for x in (10, 100)]
        figure = {"kind": "lines", "caption": "c", "x": "facts", "rows": rows, "percent": True, "zero": zero}
        chart = report_charts(make_run(analyses=[{"name": "own", "figures": [figure]}]))[-1]
        assert ("The score axis begins at 90%." in chart.caption) == said


def many_models() -> list[dict]:
    rows = [score(f"model {m}", task, "r@1", 0.04 * m + 0.2) for m in range(12) for task in ("completion", "checking")]
    groups = [score(f"model {m}", "completion", "r@1", 0.05 * m, domain=f"d{d}") for m in range(12) for d in range(3)]
    return rows + groups


RUNS = {
    "usual": make_run,
    "many models": lambda: make_run(scores=make_table(SCORES, many_models()), suite={}),
    "names": lambda: make_run(models=(HOSTILE, ARABIC, CHINESE * 5, LONG), relations=(HOSTILE, ARABIC, LONG)),
    "one question": lambda: make_run(models=("m",), size=1),
}


def check_letters(charts) -> None:
    """Letters have at least 7 points in a column of a paper, or over both where a figure is wider than a panel."""
    for chart in charts:
        drawn = Drawn(chart)
        wide, least = drawn.width, min(drawn.font_sizes())
        room = COLUMN if "\\begin{figure}" in latex_figures([chart]) else TEXT
        assert 0.75 * least * min(1, room / (wide / 96)) >= 7, (chart.name, wide, least)


@pytest.mark.parametrize("name", RUNS)
def test_letters_have_seven_points_in_a_paper(name):
    check_letters(report_charts(RUNS[name]()))


def test_letters_of_analyses_have_seven_points_in_a_paper(found):
    check_letters(found[1])


@needs_converter
def test_wide_figures_go_over_the_columns_of_a_paper(tmp_path):
    charts = {
        chart.name: chart for chart in report_charts(make_run(scores=make_table(SCORES, many_models()), suite={}))
    }
    kept = [charts["scores-completion-r1"], charts["models-by-domain-completion-r1"]]
    tex = save_charts(kept, tmp_path, ["pdf"])[-1].read_text(encoding="utf-8")
    panel, wide = tex.split("\n\n")
    assert "\\begin{figure}[t]" in panel and "\\begin{figure*}[t]" in wide and "\\end{figure*}" in wide


def test_twelve_models_have_colours_of_their_own():
    charts = report_charts(make_run(scores=make_table(SCORES, many_models()), suite={}))
    bars = [element for _, element in Drawn(charts[0]).titled("rect")]
    assert len(bars) == 24 and len({one.get("fill") for one in bars}) == 12
    assert "Bars are in the order of the legend." in charts[0].caption
    left = [float(one.get("x")) for one in bars[:12]]
    assert left == sorted(left)


@pytest.mark.parametrize("kind", ["lines", "bars", "stack"])
def test_hostile_names_are_text_in_described_figures(kind, tmp_path):
    names = (HOSTILE, "</text><script>alert(1)</script>", "a \"b\" 'c' \\ ${x} {y}", ARABIC, CHINESE * 10, LONG)
    rows = [
        {"x": x, "line": one, "bar": one, "part": x, "panel": x, "count": 3, "value": 0.5, "low": 0.4, "high": 0.6}
        for one in names
        for x in names
    ]
    figure = {"kind": kind, "caption": HOSTILE, "x": HOSTILE, "y": HOSTILE, "legend": HOSTILE, "rows": rows}
    chart = report_charts(make_run(analyses=[{"name": HOSTILE, "figures": [figure]}]))[-1]
    (path,) = save_charts([chart], tmp_path, ["svg"])
    drawn = Drawn(path.read_text(encoding="utf-8").partition("\n")[2])
    assert {one.tag for one in drawn.elements()} <= ALLOWED and not drawn.outside()
    texts = set(drawn.texts())
    assert {shorten_labels(names, MAX_LABEL)[CHINESE * 10], ARABIC} & texts and any(
        (text or "").startswith("<script>") for text in texts
    )
    assert path.name == f"{chart.name}.svg" and path.parent == tmp_path


def test_no_name_below_a_group_of_bars_is_left_out():
    names = ["statement with a long name", "boundary case of a thing", "implicit", "one-word-that-is-rather-long"]
    for count in (1, 2, 4):
        rows = [{"x": x, "bar": bar, "value": 0.5, "n": 3} for x in names[:count] for bar in "abcd"]
        figure = {"kind": "bars", "caption": "c", "rows": rows, "percent": True}
        chart = report_charts(make_run(analyses=[{"name": "own", "figures": [figure]}]))[-1]
        texts = " ".join(Drawn(chart).texts())
        for name in names[:count]:
            assert all(word in texts for word in name.split())


@pytest.mark.browser
@pytest.mark.parametrize("kind", ["lines", "bars", "stack"])
def test_pages_of_described_figures_show_them_and_fetch_nothing(kind, tmp_path, page):
    names = ("</script><script>document.title = 1</script>", "two words 'and' \\ \"more\" \u2028 of them", CHINESE)
    rows = [
        {"x": x, "line": one, "bar": one, "part": x, "count": 3, "value": 0.5, "low": 0.4, "high": 0.6, "n": 7}
        for one in names
        for x in names
    ]
    figure = {"kind": kind, "caption": names[0], "rows": rows, "percent": True}
    chart = report_charts(make_run(analyses=[{"name": "own", "figures": [figure]}]))[-1]
    (path,) = save_charts([chart], tmp_path, ["html"])
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(path.as_uri())
    page.wait_for_selector("#figure svg")
    drawn = page.locator(f"#figure svg {MARK[kind]}:has(title)").filter(has_text=CHINESE)
    assert drawn.count() == 5, "three of each, one of them both"
    assert asked == [path.as_uri()] and page.title() == chart.title
    assert page.locator("#figure svg text", has_text=CHINESE).count()
