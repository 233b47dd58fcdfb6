"""Figures of any data: nothing is cut off, labels do not overlap, marks are as long as their numbers."""

from __future__ import annotations

import math
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from report_runs import ARABIC, CHINESE, HOSTILE, make_run, score
from svg_readers import Drawn, covers

from merkhet.core.schemas import SCORES, make_table
from merkhet.reports._axis_scales import (
    Scale,
    log_ticks,
    number_labels,
    percent_labels,
    si_labels,
    signed_labels,
    tick_step,
    value_axis,
)
from merkhet.reports._chart_specs import chart_from_spec
from merkhet.reports._forest_plot import difference_chart
from merkhet.reports._plot_layout import PANEL, category_labels
from merkhet.reports._text_width import shorten, text_width, wrap
from merkhet.reports.figure_files import report_charts, save_charts

LONG = "an-organisation-with-a-long-name/" + "a-model-with-a-long-name-" * 10
POOL = ("m", "SmolLM2-135M", "two words", LONG, "W" * 40, CHINESE * 4, ARABIC, HOSTILE, "Ünïcödé ёжик 🦔", "")
names = st.sampled_from(POOL) | st.text(st.characters(codec="utf-8", exclude_categories=["C"]), max_size=40)
shares = st.just(0.0) | st.floats(-1, 1).map(lambda value: round(value, 4))
some = settings(max_examples=40, deadline=None)


def check(drawn: Drawn) -> None:
    assert not drawn.outside() and not drawn.overlapping()


@st.composite
def overall_scores(draw) -> list[dict]:
    """Scores of 1 to 24 models on 1 to 8 tasks, some without interval or chance."""
    models = draw(st.lists(names.filter(bool), min_size=1, max_size=24, unique=True))
    tasks = draw(st.lists(names.filter(bool), min_size=1, max_size=8, unique=True))
    rows = []
    for task in tasks:
        chance = draw(st.none() | st.floats(0, 1))
        for model in models:
            value = draw(shares)
            ends = {"low": None, "high": None} if draw(st.booleans()) else {"low": value - 0.1, "high": value + 0.1}
            rows.append(score(model, task, "r@1", value, chance=chance, **ends))
    return rows


@some
@given(overall_scores())
def test_bars_of_scores_are_as_long_as_their_numbers_and_nothing_is_cut_or_covered(rows):
    charts = report_charts(make_run(scores=make_table(SCORES, rows), suite={}, findings={}))
    known = [chart for chart in charts if chart.name.startswith("scores")]
    assert len(known) == 1 + len({row["task"] for row in rows})
    for chart in known:
        drawn = Drawn(chart)
        check(drawn)
        side = "height" if chart.name == "scores" else "width"
        if side == "width":
            assert drawn.width == PANEL
        bars = [(shown_value(title), float(element.get(side))) for title, element in drawn.titled("rect")]
        assert len(bars) == (len(rows) if chart.name == "scores" else len({row["model"] for row in rows}))
        check_proportional(bars)


def shown_value(title: str) -> float:
    """The number that a title tells behind the last colon."""
    return float(re.match(r"-?[\d.]+", title.rpartition(": ")[2]).group())


def check_proportional(bars: list[tuple[float, float]]) -> None:
    """A number is written with one decimal, a length with two."""
    largest, length = max(bars, key=lambda bar: abs(bar[0]))
    for value, size in bars:
        assert size == pytest.approx(length * abs(value) / (abs(largest) or 1.0), abs=0.02 + 0.1 * 3.6)


@some
@given(
    st.lists(names, min_size=2, max_size=12, unique=True),
    st.lists(names.filter(bool), min_size=1, max_size=24, unique=True),
    st.floats(0, 1),
)
def test_heat_maps_have_a_number_for_each_group_and_model_and_none_is_covered(groups, models, value):
    rows = [score(model, "completion", "r@1", value, relation=group) for model in models for group in groups]
    rows += [score(model, "completion", "r@1", value) for model in models]
    charts = report_charts(make_run(scores=make_table(SCORES, rows), suite={}, findings={}))
    maps = [chart for chart in charts if chart.name.startswith("models-by")]
    for chart in maps:
        drawn = Drawn(chart)
        check(drawn)
        assert len(drawn.bars()) == len(models) * len(groups)
    assert len(maps) == 1


@st.composite
def described(draw) -> dict:
    """Figures as analyses describe them, of every kind."""
    lines = draw(st.lists(names, min_size=1, max_size=14, unique=True))
    numbers = st.lists(st.integers(0, 10**6) | st.floats(0.001, 1000), min_size=1, max_size=40, unique=True)
    places = draw(numbers | st.lists(names, min_size=1, max_size=12, unique=True))
    panels = draw(st.lists(names, min_size=1, max_size=5, unique=True)) if isinstance(places[0], str) else [""]
    percent = draw(st.booleans())
    values = shares if percent else st.floats(-1000, 1000)
    rows = [
        {
            **{"x": x, "line": line, "bar": line, "part": str(x), "panel": panel, "n": 7},
            **{"value": (value := draw(values)), "low": value - abs(value) / 5, "high": value, "count": abs(value)},
        }
        for panel in panels
        for line in lines
        for x in places[: 60 // len(lines) + 1]
    ]
    texts = {name: draw(names) for name in ("caption", "x", "y", "legend")}
    return {"rows": rows, "percent": percent, "log": draw(st.booleans()), "zero": draw(st.booleans()), **texts}


@some
@given(st.sampled_from(["lines", "bars", "stack"]), described())
def test_described_figures_are_whole_and_no_label_covers_another(kind, figure):
    chart = chart_from_spec({**figure, "kind": kind}, "own")
    if chart is None:
        assert kind == "stack" and not any(row["count"] for row in figure["rows"])
        return
    check(Drawn(chart))


def test_labels_of_a_panel_stay_off_the_panel_at_the_left_of_the_next_row():
    score = {"value": 0.0, "low": 0.0, "high": 0.0, "n": 7}
    rows = [
        {"panel": panel, "x": name, "bar": "SmolLM2-135M", **score}
        for panel in ("m", "SmolLM2-135M", "two words")
        for name in ("m", "SmolLM2-135M", "two words")
    ]
    spec = {"kind": "bars", "rows": rows, "x": "model", "y": "score", "legend": "model", "caption": "c", "few": 10}
    check(Drawn(chart_from_spec(spec, "own")))


def test_labels_of_values_are_dropped_in_low_panels():
    rows = [{"panel": panel, "x": "x", "bar": "b", "value": value} for panel, value in (("p", 201.0), ("q", -834.0))]
    drawn = Drawn(chart_from_spec({"kind": "bars", "caption": "c", "rows": rows}, "own"))
    check(drawn)
    assert {"−1,000", "200"} & set(drawn.texts()), "some are kept"


@some
@given(
    st.lists(st.tuples(names, names, shares, st.booleans()), min_size=1, max_size=20),
    st.lists(names, min_size=1, max_size=3),
)
def test_differences_are_whole_and_no_label_covers_another(pairs, tasks):
    found = [
        {"task": task, "metric": "r@1", "model": model, "other": other, "difference": difference, "p": 0.01}
        | ({"low": max(-1.0, difference - 0.1), "high": difference} if interval else {})
        for task in tasks
        for model, other, difference, interval in pairs
    ]
    drawn = Drawn(difference_chart(found))
    check(drawn)
    assert len(drawn.points()) == len(found)


@some
@given(st.lists(names, min_size=1, max_size=60), st.floats(4, 200))
def test_labels_of_categories_never_overlap_and_are_dropped_only_where_they_must_be(labels, pitch):
    centres = [pitch * place for place in range(len(labels))]
    marks = [mark for mark in category_labels(labels, centres, pitch, 0.0) if mark.text]
    around = [[mark.corners()[place] for place in (0, 1, 3, 2)] for mark in marks]
    assert not any(covers(one, other) for place, one in enumerate(around) for other in around[:place])
    if pitch >= 13:
        shown = " ".join(mark.text for mark in marks)
        assert all(word in shown for label in labels if text_width(label, 12) < 160 for word in label.split(" "))


@some
@given(st.floats(-1e6, 1e6), st.floats(1e-4, 1e6), st.booleans())
def test_ticks_are_few_even_and_told_apart(low, extent, nice):
    axis = value_axis(low, low + extent, number_labels, nice=nice)
    assert axis.low <= low + 1e-6 * extent and low + extent <= axis.high + 1e-6 * extent
    assert 2 <= len(axis.ticks) + (not nice) <= 10 and len(set(axis.labels)) == len(axis.labels)
    steps = [after - before for before, after in zip(axis.ticks, axis.ticks[1:], strict=False)]
    assert all(step == pytest.approx(tick_step(extent), rel=1e-3) for step in steps)


def test_ticks_and_their_labels():
    assert value_axis(0, 1, percent_labels).labels == ("0%", "20%", "40%", "60%", "80%", "100%")
    assert value_axis(0.9, 0.905, percent_labels).labels[:3] == ("90.0%", "90.1%", "90.2%"), "not 90% three times"
    assert value_axis(-0.3, 1, percent_labels, nice=False).labels[0] == "−20%"
    assert value_axis(0, 0, number_labels).labels[-1] == "1.0", "nothing but zeros still has an axis"
    assert value_axis(3, 3, number_labels).low < 3 < value_axis(3, 3, number_labels).high
    assert value_axis(0, 3, number_labels, integers=True).labels == ("0", "1", "2", "3")
    assert signed_labels([-5, 0, 5]) == ["−5", "0", "+5"]
    assert si_labels([0, 950, 1000, 31_623, 1_500_000]) == ["0", "950", "1k", "31.6k", "1.5M"]
    assert number_labels([0, 2000]) == ["0", "2,000"] and number_labels([0.5, 1.25]) == ["0.50", "1.25"]
    assert log_ticks(1, 100) == [1, 2, 5, 10, 20, 50, 100] and log_ticks(1, 1e6) == [10.0**power for power in range(7)]


def test_scales_are_proportional_or_logarithmic():
    assert [Scale(0, 10, 100, 200)(value) for value in (0, 5, 10)] == [100, 150, 200]
    assert [Scale(1, 100, 0, 2, log=True)(value) for value in (1, 10, 100)] == pytest.approx([0, 1, 2])
    assert Scale(7, 7, 0, 10)(7) == 5, "a single value stands in the middle"


@some
@given(names, st.floats(20, 300))
def test_texts_are_cut_in_the_middle_and_only_if_they_must_be(text, room):
    short = shorten(text, 12, room)
    assert text_width(short, 12) <= max(room, text_width("…", 12))
    assert (short == text) == (text_width(text, 12) <= room)
    assert " ".join(wrap(text, 12, room)) == text


def test_letters_are_as_wide_as_those_of_helvetica():
    assert text_width("Will it fit?", 1000) == 944 + 222 * 3 + 278 + 222 + 278 + 278 + 278 + 222 + 278 + 556
    assert text_width("é", 10) == text_width("e", 10) and text_width("中文", 12) == 24
    assert text_width("x", 12, bold=True) > text_width("x", 12) and text_width("e\u0301", 10) == text_width("e", 10)


WIDTHS = """texts => texts.map(text => {
  const element = document.createElementNS('http://www.w3.org/2000/svg', 'text');
  element.setAttribute('font-family', 'Arial, "Liberation Sans", Helvetica');
  element.setAttribute('font-size', '100');
  element.textContent = text;
  const svg = document.createElementNS('http://www.w3.org/2000/svg', 'svg');
  svg.append(element);
  document.body.append(svg);
  return element.getComputedTextLength();
})"""
OUTSIDE = """() => [...document.querySelectorAll('svg text')].filter(text => {
  const box = text.getBoundingClientRect();
  const view = text.ownerSVGElement.getBoundingClientRect();
  return box.left < view.left - 1 || box.right > view.right + 1
    || box.top < view.top - 2 || box.bottom > view.bottom + 2;
}).map(text => text.textContent)"""


@pytest.mark.browser
def test_the_table_of_widths_is_that_of_the_fonts(page):
    letters = [letter for letter in map(chr, range(33, 127)) if letter not in "<&"]
    seen = page.evaluate(WIDTHS, letters)
    for letter, width in zip(letters, seen, strict=True):
        assert text_width(letter, 100) == pytest.approx(width, abs=0.6), letter


@pytest.mark.browser
def test_a_browser_cuts_off_no_text(page, tmp_path):
    rows = [
        {"x": x, "line": one, "bar": one, "part": x, "value": 0.5, "count": 3} for one in POOL[:8] for x in POOL[:8]
    ]
    figures = [{"kind": kind, "caption": "c", "rows": rows} for kind in ("lines", "bars", "stack")]
    data = make_run(models=POOL[:8], relations=POOL[:8], analyses=[{"name": "own", "figures": figures}])
    paths = save_charts(report_charts(data), tmp_path, ["html"])
    assert len(paths) > 8
    for path in paths:
        page.goto(path.as_uri())
        assert page.evaluate(OUTSIDE) == [], path.name


def test_sizes_of_panels_do_not_depend_on_names():
    for count in (1, 3, 24):
        for name in POOL[:-1]:
            rows = [score(f"{name}{place}", "t", "r@1", 0.5) for place in range(count)]
            charts = report_charts(make_run(scores=make_table(SCORES, rows), suite={}, findings={}))
            (panel,) = [chart for chart in charts if chart.name == "scores-t-r1"]
            assert panel.drawing.width == PANEL and math.isclose(panel.drawing.height, 26 * count + 47, abs_tol=1)


def test_an_axis_of_subnormal_numbers_is_drawn() -> None:
    axis = value_axis(0.0, 5e-324, number_labels)
    assert (axis.low, axis.high) == (0.0, 1.0)
