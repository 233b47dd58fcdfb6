from __future__ import annotations

import re
import sys

import numpy as np
import pytest
from report_pages import Page
from report_runs import ARABIC, CHINESE, HOSTILE, make_run, score

from gnomon.foundation.tables import SCORES, make_table
from gnomon.reports import render_html
from gnomon.reports.figures import can_draw, line_colours, rank_bins, short_labels
from gnomon.reports.outcomes import best_ranks
from gnomon.reports.scoreboard import Series
from gnomon.reports.svg import embed


@pytest.mark.parametrize("missing", ["altair", "vl_convert"])
def test_without_the_parts_that_draw_the_page_has_tables_and_says_so(missing, monkeypatch):
    monkeypatch.setitem(sys.modules, missing, None)
    page = Page(render_html(make_run()))
    assert "figures need gnomon[report]" in page.text
    assert not page.all("svg") and not page.all("figure")
    assert "60.0 [56.0, 64.0]" in page.text and page.mistakes == []


needs_drawing = pytest.mark.skipif(not can_draw(), reason="altair or vl-convert is not installed")


@needs_drawing
def test_scores_ranks_and_a_heat_map_are_drawn_and_told():
    page = Page(render_html(make_run()))
    labels = [attributes["aria-label"] for attributes in page.all("svg")]
    assert len(labels) == len(page.all("figure")) == 7
    assert all(attributes["role"] == "img" for attributes in page.all("svg"))
    assert "SmolLM2-135M: 60.0 [56.0, 64.0], chance 5.0, n = 100" in labels[0]
    assert any(label.startswith("Heat map: completion R@1 in percent by relation") for label in labels)
    drawn = [data for tag, data in page.texts if tag == "text"]
    assert {"SmolLM2-135M", "melting point", "chance", "rank"} <= {data.strip("\u200a") for data in drawn}
    assert "figures need" not in page.text


@needs_drawing
def test_bars_are_as_long_as_the_scores():
    rows = [score("a", "completion", "r@1", 0.8), score("b", "completion", "r@1", 0.4)]
    html = render_html(make_run(scores=make_table(SCORES, rows)))
    page = Page(html)
    tips = [data for tag, data in page.texts if tag == "title"]
    assert any(tip.startswith("a: 80.0") for tip in tips)
    widths = [float(width) for width in re.findall(r'<path d="M0,[\d.]+h([\d.]+)v[^>]*><title>[ab]: ', html)]
    assert len(widths) == 2
    assert widths[0] == pytest.approx(2 * widths[1], rel=0.01)


@needs_drawing
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


@needs_drawing
def test_names_in_figures_are_text():
    page = Page(render_html(make_run(models=(HOSTILE, ARABIC, CHINESE), relations=(HOSTILE, ARABIC))))
    drawn = [data for tag, data in page.texts if tag in ("text", "title")]
    assert any(data.startswith("<script>") for data in drawn)
    assert ARABIC in drawn and CHINESE in drawn
    assert len(page.all("script")) == 1


def test_embedding_leaves_out_whatever_could_act_or_load():
    svg = (
        '<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" onload="x()">'
        '<script>x()</script><image href="http://example.org/a.png"/><a xlink:href="http://example.org"><text>n</text>'
        '</a><foreignObject><div>x</div></foreignObject><clipPath id="c"/><g clip-path="url(#c)"><text>id="c" &lt;b'
        "</text></g></svg>"
    )
    clean = embed(svg, "one", 'a "label"')
    assert "example.org" not in clean and "script" not in clean and "onload" not in clean and "foreign" not in clean
    assert 'id="one-c"' in clean and 'clip-path="url(#one-c)"' in clean
    assert '>id="c" &lt;b<' in clean, "text is left as it is"
    assert 'aria-label="a &quot;label&quot;"' in clean


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


@needs_drawing
def test_a_heat_map_says_which_models_and_groups_it_leaves_out():
    rows = [
        score(f"m{model}", "completion", "r@1", 0.5, relation=f"r{number}")
        for model in range(30)
        for number in range(45)
    ]
    rows += [score(f"m{model}", "completion", "r@1", 0.5) for model in range(30)]
    text = Page(render_html(make_run(scores=make_table(SCORES, rows)))).text
    assert "The 40 with most questions of 45. The first 24 models of 30." in text
