from __future__ import annotations

import re
import sys
from xml.etree import ElementTree

import numpy as np
import pytest
from report_pages import Page
from report_runs import ARABIC, CHINESE, HOSTILE, make_run, score
from svg_readers import ALLOWED, Drawn

from merkhet.core.schemas import SCORES, make_table
from merkhet.reports._answer_outcomes import best_ranks
from merkhet.reports._chart_style import line_colours, short_labels
from merkhet.reports.figure_files import report_charts
from merkhet.reports.figures import rank_bins, score_charts
from merkhet.reports.html_report import render_html
from merkhet.reports.scoreboard import Series, build_scoreboard


def board_of(rows, suite):
    return build_scoreboard(make_table(SCORES, rows), suite["headline"])


def test_drawing_takes_nothing_but_a_plain_install(monkeypatch):
    whole = render_html(make_run())
    for missing in ("altair", "pandas", "vl_convert"):
        monkeypatch.setitem(sys.modules, missing, None)
    assert render_html(make_run()) == whole and len(Page(whole).all("svg")) == 7


def test_scores_ranks_and_a_heat_map_are_drawn_and_told():
    page = Page(render_html(make_run()))
    labels = [attributes["aria-label"] for attributes in page.all("svg")]
    assert len(labels) == len(page.all("figure")) == 7
    assert all(attributes["role"] == "img" for attributes in page.all("svg"))
    assert "SmolLM2-135M: 60.0 [56.0, 64.0], chance 5.0, n = 100" in labels[0]
    assert any(label.startswith("Heat map: completion R@1 in percent by relation") for label in labels)
    drawn = [data for tag, data in page.texts if tag == "text"]
    assert {"SmolLM2-135M", "melting point", "chance", "rank"} <= {data.strip("\u200a") for data in drawn}


def test_bars_are_as_long_as_the_scores():
    rows = [score("a", "completion", "r@1", 0.8), score("b", "completion", "r@1", 0.4)]
    html = render_html(make_run(scores=make_table(SCORES, rows)))
    page = Page(html)
    tips = [data for tag, data in page.texts if tag == "title"]
    assert any(tip.startswith("a: 80.0") for tip in tips)
    widths = [float(width) for width in re.findall(r'<rect [^>]*width="([\d.]+)"[^>]*><title>[ab]: ', html)]
    assert len(widths) == 2
    assert widths[0] == pytest.approx(2 * widths[1], rel=0.01)


def test_scores_below_nothing_and_beyond_shares_are_drawn_too():
    rows = [
        score("a", "completion", "r@1", -0.2, low=-0.3, high=-0.1),
        score("a", "completion", "mean_rank", 37.0),
        score("b", "completion", "r@1", 0.4),
        score("b", "completion", "mean_rank", 12.0, low=None, high=None),
    ]
    suite = {"headline": [("completion", "r@1"), ("completion", "mean_rank")]}
    page = Page(render_html(make_run(scores=make_table(SCORES, rows), suite=suite)))
    labels = " ".join(attributes["aria-label"] for attributes in page.all("svg"))
    assert "a: -20.0 [-30.0, -10.0]" in labels and "b: 12 , chance" not in labels and "b: 12, chance" in labels
    shares, ranks = score_charts(board_of(rows, suite), dict.fromkeys(map(Series, "ab"), "#000000"))
    below, above = (element for _, element in Drawn(shares).titled("rect"))
    zero = float(above.get("x"))
    assert float(below.get("x")) + float(below.get("width")) == pytest.approx(zero, abs=0.02), "a bar ends at 0"
    assert float(below.get("width")) == pytest.approx(float(above.get("width")) / 2, rel=0.01)
    assert "−20%" in Drawn(shares).texts() and "40" in Drawn(ranks).texts()


def test_names_in_figures_are_text():
    page = Page(render_html(make_run(models=(HOSTILE, ARABIC, CHINESE), relations=(HOSTILE, ARABIC))))
    drawn = [data for tag, data in page.texts if tag in ("text", "title")]
    assert any(data.startswith("<script>") for data in drawn)
    assert ARABIC in drawn and CHINESE in drawn
    assert len(page.all("script")) == 1


def test_an_inline_figure_is_labelled_and_has_nothing_that_acts_or_loads():
    data = make_run(models=(HOSTILE, ARABIC, CHINESE), relations=(HOSTILE, ARABIC), title=HOSTILE)
    for chart in report_charts(data):
        told = f'a "label" & {chart.description}'
        drawn = Drawn(chart.drawing.inline(told))
        assert {element.tag for element in drawn.elements()} <= ALLOWED
        names = {name for element in drawn.elements() for name in element.attrib}
        assert not any(name.startswith("on") or "href" in name or name in ("id", "style", "class") for name in names)
        assert drawn.root.get("role") == "img" and drawn.root.get("aria-label") == told
        assert "url(" not in chart.drawing.inline(told)


def test_characters_that_no_document_may_hold_are_replaced_in_figures():
    rows = [{"bar": "x\ud800", "part": "\x0b", "count": 3}]
    stack = {"name": "own", "figures": [{"kind": "stack", "caption": "\ud800", "rows": rows}]}
    charts = report_charts(make_run(models=("bad\x00name\x1b[31m", "other"), analyses=[stack]))
    assert charts[-1].name == "own-1"
    for chart in charts:
        ElementTree.fromstring(chart.drawing.document(chart.caption, chart.description).encode("utf-8"))
        assert not set("\x00\x0b\x1b\ud800") & set(chart.drawing.inline(chart.description))


def test_equal_data_give_equal_figures():
    first, second = (
        [chart.drawing.document(chart.caption, chart.description) for chart in report_charts(make_run())]
        for _ in range(2)
    )
    assert first == second and len(set(first)) == len(first) > 5


@pytest.mark.parametrize("limit", [1, 2, 3, 4, 5, 6, 10, 11, 100, 101, 1000, 20_000])
def test_every_rank_has_its_bin(limit):
    edges, labels = rank_bins(limit)
    assert len(labels) == len(edges) + 1 <= 7
    assert edges == sorted(set(edges))
    for rank in {1, 2, limit}:
        place = int(np.searchsorted(edges, rank, side="left"))
        ends = [int(part.replace(",", "")) for part in labels[place].split("–")]
        assert ends[0] <= rank <= ends[-1]


def test_best_ranks_are_the_least_of_each_row():
    import pyarrow as pa

    rows = [[3.0, 1.5], None, [], [float("nan"), 7.0], [None, 2.0], [4.0]]
    column = pa.chunked_array([rows[:3], rows[3:]], type=pa.list_(pa.float64()))
    expected = [1.5, np.nan, np.nan, 7.0, 2.0, 4.0]
    np.testing.assert_array_equal(best_ranks(column), expected)
    np.testing.assert_array_equal(best_ranks(column.slice(2, 3)), expected[2:5])


def test_baselines_are_grey_and_models_differ():
    series = [Series("a"), Series("random"), Series("b")]
    colours = line_colours(series, {"random"})
    assert colours[series[1]] == "#9a9a9a" and colours[series[0]] != colours[series[2]] != "#9a9a9a"


def test_short_names_are_still_told_apart():
    series = [
        Series("lab/model-7b"),
        Series("other/model-7b"),
        Series("lab/tiny"),
        Series("x" * 60 + "-first-ones"),
        Series("x" * 60 + "-first-ones", "sum"),
        Series("x" * 61 + "-first-ones"),
        Series(HOSTILE),
    ]
    short = list(short_labels(series).values())
    assert short[:3] == ["lab/model-7b", "other/model-7b", "tiny"]
    assert len(set(short)) == len(series) and max(map(len, short)) <= 30
    assert short[-1].startswith("<script>")


def test_a_heat_map_says_which_models_and_groups_it_leaves_out():
    rows = [
        score(f"m{model}", "completion", "r@1", 0.5, relation=f"r{number}")
        for model in range(30)
        for number in range(45)
    ]
    rows += [score(f"m{model}", "completion", "r@1", 0.5) for model in range(30)]
    text = Page(render_html(make_run(scores=make_table(SCORES, rows)))).text
    assert "The 40 groups with the most questions, of 45. The first 24 models of 30." in text
