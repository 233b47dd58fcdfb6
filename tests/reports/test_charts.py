"""Charts: what they show, and whether every reader can tell it apart."""

from __future__ import annotations

import itertools
import re

import numpy as np
import pytest
from report_runs import HOSTILE, make_run, score
from svg_readers import Drawn, place

from merkhet.core.schemas import ANSWERS, QUESTIONS, SCORES, make_table
from merkhet.core.text import file_slug, unique_names
from merkhet.reports._chart_specs import chart_from_spec
from merkhet.reports._chart_style import COLOURS, DASHES, DOTTED, GREYS, SEGMENT_COLOURS, SYMBOLS, VERMILION
from merkhet.reports._forest_plot import difference_chart
from merkhet.reports.figure_files import report_charts
from merkhet.reports.figures import RANK_SHADES

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


@pytest.mark.parametrize("palette", [COLOURS, SEGMENT_COLOURS, GREYS, RANK_SHADES])
@pytest.mark.parametrize("vision", [*VISIONS, "grey"])
def test_neighbours_in_a_group_of_bars_differ(palette, vision):
    for first, second in itertools.pairwise(palette):
        assert apart(first, second, vision) > 8, (first, second)


def lines_of(count: int, baselines: int = 0) -> Drawn:
    names = [f"m{number}" for number in range(count)]
    rows = [{"x": x, "line": name, "value": 0.5, "low": 0.4, "high": 0.6, "n": 7} for name in names for x in (1, 2)]
    return Drawn(chart_from_spec({"kind": "lines", "rows": rows}, "l", names[count - baselines :]))


def test_lines_that_share_a_colour_or_look_alike_in_grey_differ_in_shape_or_dash():
    drawn = lines_of(14, baselines=2)
    dashes = [
        tuple(map(float, dash.split(","))) if (dash := element.get("stroke-dasharray")) else ()
        for element in drawn.elements()
        if element.get("stroke-linejoin") == "round"
    ]
    points = [(element.get("fill"), element.get("d")) for title, element in drawn.points() if ", 1:" in title]
    assert len(dashes) == 28 and dashes[:14] == dashes[14:], "the legend shows the dash of each line"
    looks = [(colour, dash, shape) for (colour, shape), dash in zip(points, dashes[:14], strict=True)]
    for (colour, dash, shape), (other, dashed, shaped) in itertools.combinations(looks, 2):
        alike = any(apart(colour, other, vision) < 10 for vision in (*VISIONS, "grey"))
        assert not alike or dash != dashed or shape != shaped
    assert [dash for _, dash, _ in looks[-2:]] == [DOTTED] * 2, "baselines are dotted"
    assert all(colour in GREYS for colour, _, _ in looks[-2:]) and DOTTED not in DASHES
    assert len({(colour, shape) for colour, _, shape in looks}) == 14
    assert len({shape for _, _, shape in looks}) == len(set(SYMBOLS)) == len(SYMBOLS), "each shape is drawn as its own"


def test_all_scores_are_in_one_figure_a_bar_each():
    charts = {chart.name: chart for chart in report_charts(make_run())}
    drawn = Drawn(charts["scores"])
    shown = drawn.bars()
    assert len(shown) == 6 and sum("SmolLM2-135M: 60.0 [56.0, 64.0], chance 5.0" in label for label in shown) == 1
    dashed = [title for title, element in drawn.titled("rect") if element.get("stroke-dasharray")]
    assert len(dashed) == 2 and {title.split(":")[0] for title in dashed} == {"frequency"}
    assert "n = 100 questions per score" in charts["scores"].caption and "95% bootstrap" in charts["scores"].caption
    assert "chance" in charts["scores"].caption


def test_many_scores_go_into_rows_and_what_is_no_share_is_named():
    rows = [score(f"m{m}", f"task{t}", "r@1", 0.5) for m in range(9) for t in range(11)]
    rows += [score("m0", "task0", "mean_rank", 31.0)]
    suite = {"headline": [*((f"task{t}", "r@1") for t in range(11)), ("task0", "mean_rank")]}
    chart = report_charts(make_run(scores=make_table(SCORES, rows), suite=suite))[0]
    assert len(Drawn(chart).bars()) == 99 and "Not drawn" in chart.caption and "mean_rank" in chart.caption
    assert Drawn(chart).width == chart.drawing.width < 800


def test_a_map_of_domains_by_tasks_is_coloured_against_chance():
    rows = [
        score("m", task, metric, value, domain=domain, chance=chance)
        for task, metric, chance in (("completion", "r@1", 0.0), ("checking", "accuracy", 0.5))
        for domain, value in (("law", 0.5), ("art", 0.25))
    ]
    rows += [score("m", "completion", "r@1", 0.5), score("m", "checking", "accuracy", 0.5)]
    charts = {chart.name: chart for chart in report_charts(make_run(scores=make_table(SCORES, rows)))}
    squares = Drawn(charts["tasks-by-domain-m"]).titled("rect")
    above = {tuple(title.partition(": ")[0].split(", ")[1:]): element.get("fill") for title, element in squares}
    assert above == {
        ("law", "completion R@1"): "#7fb3d8",
        ("art", "completion R@1"): "#bbd5e8",
        ("law", "checking accuracy"): "#f7f7f7",
        ("art", "checking accuracy"): "#f1b26e",
    }, "half way above chance, a quarter, at chance, half way below"
    assert "n = 100 questions per cell" in charts["tasks-by-domain-m"].caption


def test_settings_of_two_premises_are_bars_with_their_names():
    given = ("NO", "IM", "EX")
    rows = [
        {"x": x, "bar": bar, "value": 0.1 * place, "low": None, "high": None, "n": 5 + place}
        for place, (x, bar) in enumerate(itertools.product(given, given))
    ]
    described = {"kind": "bars", "caption": "MRR.", "x": "P1", "legend": "P2", "y": "MRR", "rows": rows}
    chart = chart_from_spec(described, "premises-1")
    drawn = Drawn(chart)
    texts = drawn.texts()
    assert {f"{x}/{bar}" for x, bar in itertools.product(given, given)} <= set(texts)
    assert {"P1/P2", "MRR"} <= set(texts) and len(drawn.bars()) == 9
    assert chart.caption == "MRR. n = 5–13 questions per bar."


PAIR = {"task": "t", "metric": "r@1", "model": "a", "other": "b", "difference": 0.15, "low": 0.08, "high": 0.22}


def test_a_forest_plot_fills_what_is_told_from_nothing():
    pairs = [
        {**PAIR, "p": 0.001, "n": 40},
        {**PAIR, "p": 0.2, "n": 50},
        {**PAIR, "low": -0.1, "p": 0.001},
        {**PAIR, "model": HOSTILE, "difference": None},
        {**PAIR, "metric": "mean_rank", "difference": 12.0, "low": 3.0, "high": 20.0, "p": 0.001},
    ]
    chart = difference_chart(pairs)
    drawn = Drawn(chart)
    points = [element for _, element in drawn.points()]
    assert [element.get("fill") for element in points] == [COLOURS[0], "white", COLOURS[0]], (
        "by p alone, as the caption says"
    )
    assert "t R@1: a − b: 15.0 [8.0, 22.0], p = 0.200" in drawn.marks()
    intervals = next(one for one in drawn.elements() if one.get("stroke-width") == "1.5").get("d").split("M")[1:]
    ends = [[float(part.split(",")[0]) for part in interval.split("L")] for interval in intervals]
    for (x, _), (low, high), share in zip(map(place, points), ends, (0.5, 0.5, 25 / 32), strict=True):
        assert (x - low) / (high - low) == pytest.approx(share, abs=0.01), "15 between 8 and 22, or -10 and 22"
    assert "n = 40–50 questions per pair" in chart.caption and "+20" in drawn.texts()
    assert difference_chart([]) is None and difference_chart([{}]) is None
    alone = Drawn(difference_chart(pairs[-1:]))
    assert "t mean_rank: a − b: 12 [3, 20], p = 0.001" in alone.marks(), "drawn where there is nothing else"


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
        drawn = Drawn(chart)
        assert min(drawn.font_sizes()) >= 11, chart.name
        assert re.search(r"n = \d", chart.caption) or chart.name == "differences", chart.caption
        if "by" not in chart.name.split("-"):
            assert AXES[chart.name.split("-")[0]](chart) <= set(drawn.texts()), chart.name


AXES = {
    "scores": lambda chart: {"score"} if chart.name == "scores" else {chart.title},
    "ranks": lambda chart: {"share of questions"},
    "differences": lambda chart: {"difference in points"},
    "own": lambda chart: {"questions"} if chart.caption.startswith("questions") else {"bucket", "score"},
}
"""The titles of the axes of each kind of figure; a heat map has none, for its numbers are written in."""


def test_names_of_files_are_short_safe_and_stay_the_same():
    assert file_slug("scores", "completion", "r@1") == "scores-completion-r1"
    hostile = [
        file_slug("ranks", name) for name in ("../../etc/passwd", "中文", "英文", "x" * 300, "", "con", "é", "a/b\\c:d")
    ]
    assert hostile[0] == "ranks-etc-passwd" and hostile[-2] == "ranks-e"
    assert hostile[1] != hostile[2] and all(re.fullmatch(r"[a-z0-9][a-z0-9-]{0,59}", name) for name in hostile)
    assert file_slug("") and file_slug("中文") == file_slug("中文")
    assert unique_names(["a", "a", "b", "a", "a-2"]) == ["a", "a-2", "b", "a-3", "a-2-2"]


def test_nothing_to_draw_is_no_charts_and_little_is_drawn():
    empty = {"questions": make_table(QUESTIONS, []), "answers": make_table(ANSWERS, []), "findings": {}}
    assert report_charts(make_run(scores=make_table(SCORES, []), **empty)) == []
    nothing = [score("m", "completion", "r@1", float("nan"), low=None, high=None, chance=None)]
    nothing += [score("m", "completion", "r@1", None, relation=name) for name in ("r", "s")]
    assert report_charts(make_run(scores=make_table(SCORES, nothing), **empty)) == []
    one = report_charts(make_run(scores=make_table(SCORES, [score("m", "completion", "r@1", 0.5)]), **empty))
    assert [chart.name for chart in one] == ["scores", "scores-completion-r1"]
    for chart in one:
        assert len(Drawn(chart).bars()) == 1
