"""Charts before they are drawn: what they show, and whether everybody can tell it apart."""

from __future__ import annotations

import itertools
import re
from xml.etree import ElementTree

import numpy as np
import pytest
from report_runs import HOSTILE, make_run, score

from gnomon.foundation.tables import ANSWERS, QUESTIONS, SCORES, make_table
from gnomon.reports import report_charts
from gnomon.reports.charts import described_chart
from gnomon.reports.differences import difference_chart
from gnomon.reports.drawing import (
    COLOURS,
    DASHES,
    DOTTED,
    GREYS,
    PARTS,
    POINTS,
    VERMILION,
    can_draw,
    specification,
    svg_of,
)
from gnomon.reports.figures import RANK_SHADES
from gnomon.reports.formatting import distinct, file_name

needs_drawing = pytest.mark.skipif(not can_draw(), reason="altair or vl-convert is not installed")

# Machado, Oliveira and Fernandes (2009), "A Physiologically-based Model for Simulation of Color Vision Deficiency",
# IEEE TVCG 15(6), doi:10.1109/TVCG.2009.113: severity 1.0, to be applied to linear RGB.
VISIONS = {
    "usual": np.eye(3),
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "tritanopia": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}
XYZ = np.array([[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.119192, 0.9503041]])


def linear(colour: str) -> np.ndarray:
    shares = np.array([int(colour[place : place + 2], 16) for place in (1, 3, 5)]) / 255
    return np.where(shares <= 0.04045, shares / 12.92, ((shares + 0.055) / 1.055) ** 2.4)


def lab(light: np.ndarray) -> np.ndarray:
    """CIELAB under D65."""
    scaled = XYZ @ np.clip(light, 0, 1) / np.array([0.95047, 1.0, 1.08883])
    f = np.where(scaled > (6 / 29) ** 3, np.cbrt(scaled), scaled / (3 * (6 / 29) ** 2) + 4 / 29)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def apart(first: str, second: str, vision: str) -> float:
    """The distance of two colours as somebody sees them, in CIELAB (2.3 is just noticeable); in grey, of lightness."""
    if vision == "grey":
        return abs(lab(linear(first))[0] - lab(linear(second))[0])
    matrix = np.asarray(VISIONS[vision])
    return float(np.linalg.norm(lab(matrix @ linear(first)) - lab(matrix @ linear(second))))


def test_the_measure_of_colours_is_right():
    assert lab(linear("#ffffff")) == pytest.approx([100, 0, 0], abs=0.01)
    assert lab(linear("#ff0000")) == pytest.approx([53.24, 80.09, 67.20], abs=0.05)
    for matrix in VISIONS.values():
        assert np.asarray(matrix).sum(axis=1) == pytest.approx([1, 1, 1], abs=1e-5), "grey stays grey"
    assert apart("#d62728", "#2ca02c", "deuteranopia") < 0.4 * apart("#d62728", "#2ca02c", "usual"), "red and green"


@pytest.mark.parametrize("vision", VISIONS)
def test_models_are_told_apart_by_colour_whatever_one_s_vision(vision):
    for first, second in itertools.combinations((*COLOURS, VERMILION), 2):
        assert apart(first, second, vision) > 12, (first, second)


@pytest.mark.parametrize("palette", [COLOURS, PARTS, GREYS, RANK_SHADES])
@pytest.mark.parametrize("vision", [*VISIONS, "grey"])
def test_neighbours_in_a_group_of_bars_differ(palette, vision):
    for first, second in itertools.pairwise(palette):
        assert apart(first, second, vision) > 8, (first, second)


def lines_of(count: int, baselines: int = 0) -> dict:
    names = [f"m{number}" for number in range(count)]
    rows = [{"x": x, "line": name, "value": 0.5, "low": 0.4, "high": 0.6, "n": 7} for name in names for x in (1, 2)]
    return specification(described_chart({"kind": "lines", "rows": rows}, "l", names[count - baselines :]).chart)


@needs_drawing
def test_lines_that_share_a_colour_or_look_alike_in_grey_differ_in_shape_or_dash():
    def ranges(layer, channel):
        return layer["encoding"][channel]["scale"]["range"]

    described = lines_of(14, baselines=2)
    _, line, points = described["layer"]
    looks = list(
        zip(ranges(line, "color"), map(tuple, ranges(line, "strokeDash")), ranges(points, "shape"), strict=True)
    )
    for (colour, dash, shape), (other, dashed, shaped) in itertools.combinations(looks, 2):
        alike = any(apart(colour, other, vision) < 10 for vision in (*VISIONS, "grey"))
        assert not alike or dash != dashed or shape != shaped
    assert [dash for _, dash, _ in looks[-2:]] == [DOTTED] * 2, "baselines are dotted"
    assert all(colour in GREYS for colour, _, _ in looks[-2:]) and DOTTED not in DASHES
    assert len({(colour, shape) for colour, _, shape in looks}) == 14 and len(set(POINTS)) == len(POINTS)


def data_of(described: dict, part: dict | None = None) -> list[dict]:
    """The rows of a chart or of one of its layers."""
    return described["datasets"][(part or described)["data"]["name"]]


def elements(svg: str) -> list[ElementTree.Element]:
    return list(ElementTree.fromstring(svg).iter())


def bars(svg: str) -> list[str]:
    return [one.get("aria-label") for one in elements(svg) if one.get("aria-roledescription") == "bar"]


@needs_drawing
def test_all_scores_are_in_one_figure_a_bar_each():
    charts = {chart.name: chart for chart in report_charts(make_run())}
    drawn = svg_of(charts["scores"].chart)
    shown = bars(drawn)
    assert len(shown) == 6 and sum("SmolLM2-135M: 60.0 [56.0, 64.0], chance 5.0" in label for label in shown) == 1
    dashed = [
        one for one in elements(drawn) if one.get("aria-roledescription") == "bar" and one.get("stroke-dasharray")
    ]
    assert {one.get("aria-label").split(":")[0] for one in dashed if one.get("stroke-dasharray") != "1,0"} == {
        "frequency"
    }
    assert "n = 100 questions a score" in charts["scores"].caption and "95% bootstrap" in charts["scores"].caption
    assert "chance" in charts["scores"].caption


@needs_drawing
def test_many_scores_go_into_rows_and_what_is_no_share_is_named():
    rows = [score(f"m{m}", f"task{t}", "r@1", 0.5) for m in range(9) for t in range(11)]
    rows += [score("m0", "task0", "mean_rank", 31.0)]
    suite = {"headline": [*((f"task{t}", "r@1") for t in range(11)), ("task0", "mean_rank")]}
    chart = report_charts(make_run(scores=make_table(SCORES, rows), suite=suite))[0]
    assert len(bars(svg_of(chart.chart))) == 99 and "Not drawn" in chart.caption and "mean_rank" in chart.caption
    assert float(ElementTree.fromstring(svg_of(chart.chart)).get("width")) < 800


@needs_drawing
def test_a_map_of_domains_by_tasks_is_coloured_against_chance():
    rows = [
        score("m", task, metric, value, domain=domain, chance=chance)
        for task, metric, chance in (("completion", "r@1", 0.0), ("checking", "accuracy", 0.5))
        for domain, value in (("law", 0.5), ("art", 0.25))
    ]
    rows += [score("m", "completion", "r@1", 0.5), score("m", "checking", "accuracy", 0.5)]
    charts = {chart.name: chart for chart in report_charts(make_run(scores=make_table(SCORES, rows)))}
    described = specification(charts["tasks-by-domain-m"].chart)
    squares = {(row["group"], row["task"]): row["above"] for row in data_of(described, described["layer"][0])}
    assert squares == {
        ("law", "completion R@1"): 0.5,
        ("art", "completion R@1"): 0.25,
        ("law", "checking accuracy"): 0.0,
        ("art", "checking accuracy"): -0.5,
    }
    assert "n = 100 questions a cell" in charts["tasks-by-domain-m"].caption


@needs_drawing
def test_settings_of_two_premises_are_bars_with_their_names():
    given = ("NO", "IM", "EX")
    rows = [
        {"x": x, "bar": bar, "value": 0.1 * place, "low": None, "high": None, "n": 5 + place}
        for place, (x, bar) in enumerate(itertools.product(given, given))
    ]
    described = {"kind": "bars", "caption": "MRR.", "x": "P1", "legend": "P2", "y": "MRR", "rows": rows}
    chart = described_chart(described, "premises-1")
    drawn = svg_of(chart.chart)
    texts = [one.text for one in elements(drawn) if one.tag.endswith("text")]
    assert {f"{x}/{bar}" for x, bar in itertools.product(given, given)} <= set(texts)
    assert {"P1/P2", "MRR"} <= set(texts) and len(bars(drawn)) == 9
    assert chart.caption == "MRR. n = 5–13 questions a bar."


PAIR = {"task": "t", "metric": "r@1", "model": "a", "other": "b", "difference": 0.15, "low": 0.08, "high": 0.22}


@needs_drawing
def test_a_forest_plot_fills_what_is_told_from_nothing():
    pairs = [
        {**PAIR, "p": 0.001, "n": 40},
        {**PAIR, "p": 0.2, "n": 50},
        {**PAIR, "low": -0.1, "p": 0.001},
        {**PAIR, "model": HOSTILE, "difference": None},
        {**PAIR, "metric": "mean_rank", "difference": 12.0, "low": 3.0, "high": 20.0, "p": 0.001},
    ]
    chart = difference_chart(pairs)
    values = data_of(specification(chart.chart))
    assert [value["clear"] for value in values] == [True, False, False]
    assert values[0]["difference"] == pytest.approx(15) and values[0]["low"] == pytest.approx(8)
    assert "n = 40–50 questions a pair" in chart.caption
    points = [one for one in elements(svg_of(chart.chart)) if one.get("aria-roledescription") == "point"]
    assert [one.get("fill") for one in points] == [COLOURS[0], "white", "white"]
    assert difference_chart([]) is None and difference_chart([{}]) is None
    alone = difference_chart(pairs[-1:])
    assert data_of(specification(alone.chart))[0]["difference"] == 12.0, "drawn where there is nothing else"


@needs_drawing
@pytest.mark.parametrize("names", [("m", "frequency"), (HOSTILE, "中文" * 20, "x" * 300)])
def test_letters_are_large_enough_axes_are_named_and_captions_say_how_many(names):
    rows = [{"x": x, "line": "m", "value": 0.5, "low": 0.4, "high": 0.6, "n": 5} for x in ("0", "1–2")]
    parts = [{"bar": bar, "part": part, "count": 3} for bar in "xy" for part in "pq"]
    figures = [
        {"kind": "lines", "caption": "scores", "x": "bucket", "rows": rows},
        {"kind": "stack", "caption": "questions", "rows": parts},
    ]
    data = make_run(models=names, analyses=[{"name": "own", "figures": figures}])
    charts = report_charts(data)
    assert len(charts) > 8
    for chart in charts:
        found = elements(svg_of(chart.chart))
        sizes = [float(one.get("font-size").removesuffix("px")) for one in found if one.get("font-size")]
        assert min(sizes) >= 11, chart.name
        assert re.search(r"n = \d", chart.caption) or chart.name == "differences", chart.caption
        axes = [one.get("aria-label") for one in found if one.get("aria-roledescription") == "axis"]
        assert all("title" in label for label in axes if "linear scale" in label), chart.name


def test_names_of_files_are_short_safe_and_stay_the_same():
    assert file_name("scores", "completion", "r@1") == "scores-completion-r1"
    hostile = [
        file_name("ranks", name) for name in ("../../etc/passwd", "中文", "英文", "x" * 300, "", "con", "é", "a/b\\c:d")
    ]
    assert hostile[0] == "ranks-etc-passwd" and hostile[-2] == "ranks-e"
    assert hostile[1] != hostile[2] and all(re.fullmatch(r"[a-z0-9][a-z0-9-]{0,59}", name) for name in hostile)
    assert file_name("") and file_name("中文") == file_name("中文")
    assert distinct(["a", "a", "b", "a", "a-2"]) == ["a", "a-2", "b", "a-3", "a-2-2"]


@needs_drawing
def test_nothing_to_draw_is_no_charts_and_little_is_drawn():
    empty = {"questions": make_table(QUESTIONS, []), "answers": make_table(ANSWERS, []), "findings": {}}
    assert report_charts(make_run(scores=make_table(SCORES, []), **empty)) == []
    nothing = [score("m", "completion", "r@1", float("nan"), low=None, high=None, chance=None)]
    nothing += [score("m", "completion", "r@1", None, relation=name) for name in ("r", "s")]
    assert report_charts(make_run(scores=make_table(SCORES, nothing), **empty)) == []
    one = report_charts(make_run(scores=make_table(SCORES, [score("m", "completion", "r@1", 0.5)]), **empty))
    assert [chart.name for chart in one] == ["scores", "scores-completion-r1"]
    for chart in one:
        assert len(bars(svg_of(chart.chart))) == 1
