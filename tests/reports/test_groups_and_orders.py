"""Small groups are grey, orders are fixed, and what is absent is marked, in every table and figure."""

from __future__ import annotations

import io
import random

import pytest
from report_pages import Page
from report_runs import make_run, score
from rich.console import Console
from svg_readers import Drawn
from table_readers import HtmlTable, LatexTable, markdown_rows

from merkhet.analysis.finding_types import FEW_QUESTIONS
from merkhet.core.schemas import SCORES, make_table
from merkhet.reports._chart_specs import chart_from_spec
from merkhet.reports._chart_style import COLOURS, FEW_COLOUR
from merkhet.reports._forest_plot import difference_chart
from merkhet.reports._heat_maps import _FEW_FILL
from merkhet.reports.comparison_tables import all_groups_table, verdict_table
from merkhet.reports.figure_files import report_charts
from merkhet.reports.html_report import render_html
from merkhet.reports.table_model import FEW_NOTE, ReportTable
from merkhet.reports.table_writers import as_csv, as_html, as_latex, as_markdown, as_page_table, as_terminal
from merkhet.reports.tables import report_tables, score_report_table, score_table

FEW, ENOUGH = FEW_QUESTIONS - 1, FEW_QUESTIONS
COMPLETION = {"headline": [{"task": "completion", "metric": "r@1"}]}


def named(data, name: str) -> ReportTable:
    return next(table for table in report_tables(data) if table.name == name)


def charts_of(data) -> dict:
    return {chart.name: chart for chart in report_charts(data)}


def grouped_run(**changes):
    """Two models and three domains, one of them with few questions and one that only a model was asked about."""
    rows = [score(model, task, "r@1", 0.5) for model in ("b", "a") for task in ("completion", "checking")]
    for task in ("completion", "checking"):
        rows += [score(model, task, "r@1", 0.9, domain="law", n=FEW) for model in ("b", "a")]
        rows += [score(model, task, "r@1", 0.4, domain="art", n=ENOUGH) for model in ("b", "a")]
        rows += [score("a", task, "r@1", 0.6, domain="music", n=ENOUGH)]
    suite = {"headline": [{"task": "completion", "metric": "r@1"}, {"task": "checking", "metric": "r@1"}]}
    record = {"models": [{"name": "b", "kind": "causal"}, {"name": "a", "kind": "causal"}]}
    return make_run(scores=make_table(SCORES, rows), **{"suite": suite, "record": record, "findings": {}, **changes})


def test_cells_of_small_groups_are_grey_with_n_in_heat_maps():
    charts = charts_of(grouped_run())
    for name, small in (
        ("models-by-domain-completion-r1", "law, a: 90.0"),
        ("tasks-by-domain-a", "a, law, completion R@1: 90.0"),
    ):
        drawn = Drawn(charts[name])
        fills = {title: element.get("fill") for title, element in drawn.titled("rect")}
        (grey,) = [fill for title, fill in fills.items() if title.startswith(small)]
        assert grey == _FEW_FILL and f"90.0 (n={FEW})" in drawn.texts()
        shaded = [fill for title, fill in fills.items() if f"n = {ENOUGH}" in title]
        assert shaded and _FEW_FILL not in shaded
        assert FEW_NOTE in charts[name].caption and not drawn.outside() and not drawn.overlapping()
    assert FEW_NOTE not in charts["scores"].caption


def test_cells_of_small_groups_are_grey_with_n_in_tables():
    table = named(grouped_run(), "by-domain-completion-r1")
    assert FEW_NOTE in table.caption
    page = HtmlTable(str(as_page_table(table, bars=[3, 4])))
    for row in page.rows[1:]:
        for text, attributes in row[3:]:
            is_few = "few" in attributes.get("class", "").split()
            assert is_few == (row[0][0].strip() == "law"), text
            assert is_few == (f"n = {FEW}" in text) and not (is_few and "barred" in attributes["class"])
    for form in (as_markdown, as_latex, as_html):
        assert form(table).count(f"n = {FEW}") == 2, form
    assert [row[0] for row in markdown_rows(as_markdown(table))[1:]] == [
        row[0] for row in LatexTable(as_latex(table)).rows
    ]
    assert "a n" in as_csv(table).splitlines()[0].split(",")
    styles = [str(cell.style) for column in as_terminal(table, 200).columns[3:] for cell in column._cells]
    assert styles.count("dim") == 2


def test_bars_and_points_of_small_groups_are_grey():
    rows = [
        {"x": name, "bar": "m", "line": "m", "value": 0.5, "low": 0.2, "high": 0.8, "n": n}
        for name, n in (("s", FEW), ("l", ENOUGH))
    ]
    for kind, tag in (("bars", "rect"), ("lines", "path")):
        chart = chart_from_spec({"kind": kind, "caption": "c.", "rows": rows}, kind)
        fills = {
            title.split(",")[-1].strip() if kind == "x" else title: element.get("fill")
            for title, element in Drawn(chart).titled(tag)
        }
        greys = [title for title, fill in fills.items() if fill == FEW_COLOUR]
        assert len(fills) == 2 and len(greys) == 1 and greys[0].endswith(f"n = {FEW}") and FEW_NOTE in chart.caption
        trainings = chart_from_spec({"kind": kind, "caption": "c.", "rows": rows, "unit": "trainings"}, kind)
        assert FEW_COLOUR not in {element.get("fill") for _, element in Drawn(trainings).titled(tag)}
        assert f"n = {FEW}–{ENOUGH} trainings per" in trainings.caption and FEW_NOTE not in trainings.caption
    assert f"n={FEW}" in Drawn(chart_from_spec({"kind": "bars", "caption": "c.", "rows": rows}, "bars")).texts()


def test_numbers_of_few_questions_in_analyses_are_grey_but_not_those_of_few_trainings():
    columns, rows = [{"name": "mean", "kind": "share"}], [[{"value": 0.5, "n": 3}], [{"value": 0.5, "n": 30}]]
    for unit, greys in (("questions", 1), ("trainings", 0)):
        table = {"caption": "t", "columns": columns, "rows": rows, "unit": unit}
        run = make_run(analyses=[{"name": "own", "tables": [table]}])
        (made,) = [table for table in report_tables(run) if table.name == "own-1"]
        assert sum(cell.few for row in made.rows for cell in row) == greys and (FEW_NOTE in made.caption) == bool(greys)


PAIR = {"task": "t", "metric": "r@1", "model": "a", "other": "b", "difference": 0.2, "low": 0.1, "high": 0.3}


def test_comparisons_within_small_groups_are_grey_and_have_no_verdict():
    small = {**PAIR, "group_column": "domain", "group": "law", "p": 0.001, "q": 0.001, "n": FEW, "share": True}
    pairs = [small, {**small, "group": "art", "n": ENOUGH}, {**PAIR, "p": 0.001, "n": FEW, "share": True}]
    chart = difference_chart(pairs)
    assert [element.get("fill") for _, element in Drawn(chart).points()] == [FEW_COLOUR, COLOURS[0], COLOURS[0]]
    assert f"law: a − b (n = {FEW})" in Drawn(chart).texts() and FEW_NOTE in chart.caption
    verdicts = [
        next(cell.text for cell in row if "ahead" in cell.text or "few" in cell.text)
        for row in verdict_table(pairs).rows
    ]
    assert verdicts == [f"too few questions (n = {FEW})", "a is ahead", "a is ahead"]
    few, enough = all_groups_table(pairs[:2], "domain").rows
    assert any(cell.few for cell in few) and not any(cell.few for cell in enough)


def test_the_page_says_what_grey_means():
    page = Page(render_html(grouped_run()))
    assert page.text.count(FEW_NOTE) >= 3


def test_every_table_and_figure_has_the_same_order_whatever_the_order_of_the_scores():
    data = grouped_run(domains=["music", "law"])
    rows = data.scores.to_pylist()
    for seed in range(3):
        shuffled = make_table(SCORES, random.Random(seed).sample(rows, len(rows)))
        run = grouped_run(domains=["music", "law"]).__class__(**{**vars(data), "scores": shuffled})
        assert [row[0].text for row in score_report_table(run).rows] == ["b", "a"], "the order of the study"
        table = named(run, "by-domain-completion-r1")
        assert [row[0].text for row in table.rows] == ["music", "law", "art"], "declared ones first"
        assert [column.label for column in table.columns][3:] == ["b", "a"]
        charts = charts_of(run)
        for name, heads in (
            ("models-by-domain-completion-r1", ["b", "a", "chance"]),
            ("tasks-by-domain-a", ["completion R@1", "checking R@1"]),
            ("tasks-by-domain-b", ["completion R@1", "checking R@1"]),
        ):
            texts = [text for text in Drawn(charts[name]).texts() if text in {"music", "law", "art", *heads}]
            assert texts == ["music", "law", "art", *heads], name
        order = [text for text in Drawn(charts["scores-completion-r1"]).texts() if text in ("a", "b")]
        assert order == ["b", "a"]


def test_groups_without_a_declared_order_follow_by_name_with_numbers_by_size():
    rows = [score("m", "completion", "r@1", 0.5)]
    rows += [
        score("m", "completion", "r@1", 0.5, relation=name, n=n) for n, name in enumerate(("r10", "b", "r9", "A"), 20)
    ]
    table = named(make_run(scores=make_table(SCORES, rows)), "by-relation-completion-r1")
    assert [row[0].text for row in table.rows] == ["A", "b", "r9", "r10"]
    suite = {**COMPLETION, "names": {"r9": "", "b": ""}}
    declared = named(make_run(scores=make_table(SCORES, rows), suite=suite), "by-relation-completion-r1")
    assert [row[0].text for row in declared.rows] == ["r9", "b", "A", "r10"]


def test_tasks_have_the_order_of_the_headline_everywhere():
    run = make_run()
    suite = {
        **run.suite,
        "headline": [{"task": "checking", "metric": "accuracy"}, {"task": "completion", "metric": "r@1"}],
    }
    text = Page(render_html(make_run(suite=suite))).text
    assert (
        "in 2 tasks: checking, completion." in text
        and "in 2 tasks: completion, checking." in Page(render_html(run)).text
    )
    names = [name for name in charts_of(make_run(suite=suite)) if name.startswith("ranks-")]
    assert names == ["ranks-checking", "ranks-completion"]


def test_absent_models_and_scores_are_marked():
    rows = [score("b", "completion", "r@1", 0.5), score("c", "completion", "r@1", 0.4), score("a", "other", "r@1", 0.5)]
    suite = {"headline": [("completion", "r@1"), ("senses", "accuracy")]}
    record = {"models": [{"name": name, "kind": "causal"} for name in ("a", "b", "c")]}
    run = make_run(scores=make_table(SCORES, rows), suite=suite, record=record)
    table = score_report_table(run)
    name, cell = table.rows[0]
    assert (name.text, cell.text, cell.tip) == ("a", "–", "not asked")
    assert "Without scores: senses accuracy." in table.note
    assert "no model has a score for senses accuracy" in Page(render_html(run)).text
    for name in ("scores", "scores-completion-r1"):
        drawn = Drawn(charts_of(run)[name])
        assert "–" in drawn.texts() and {"a", "b", "c"} <= set(drawn.texts()) and not drawn.overlapping()
    grouped = charts_of(grouped_run())
    assert "music, b: no score" in Drawn(grouped["models-by-domain-completion-r1"]).bars()
    assert "b, music, checking R@1: no score" in Drawn(grouped["tasks-by-domain-b"]).bars()


def test_settings_that_a_panel_lacks_keep_their_place():
    rows = [
        {"panel": "one", "x": "NO", "bar": "m", "value": 0.5, "n": 20},
        {"panel": "one", "x": "EX", "bar": "m", "value": 0.5, "n": 20},
        *(
            {"panel": "two", "x": x, "bar": "m", "value": None if x == "NO" else 0.5, "n": 20}
            for x in ("NO", "IM", "EX")
        ),
    ]
    drawn = Drawn(chart_from_spec({"kind": "bars", "caption": "c.", "rows": rows}, "bars"))
    texts = [text for text in drawn.texts() if text in ("NO", "IM", "EX")]
    assert texts[:3] == ["NO", "IM", "EX"] and drawn.texts().count("–") == 2


def test_marks_of_heat_maps_tell_interval_chance_and_n():
    drawn = Drawn(charts_of(grouped_run())["models-by-domain-completion-r1"])
    assert f"art, b: 40.0 [36.0, 44.0], chance 5.0, n = {ENOUGH}" in drawn.bars()


def test_a_single_group_has_no_table_and_no_section():
    rows = [score("m", "completion", "r@1", 0.5), score("m", "completion", "r@1", 0.5, relation="capital")]
    run = make_run(scores=make_table(SCORES, rows), suite=COMPLETION)
    assert not [table.name for table in report_tables(run) if table.name.startswith("by-")]
    page = Page(render_html(run))
    assert "By relation" not in page.text and not [
        one for one in page.all("section") if one.get("id", "").startswith("by-")
    ]


def test_analyses_of_the_suite_come_right_after_the_summary_and_others_after_the_calibration():
    analyses = [{"name": name, "title": f"About {name}"} for name in ("premises", "classes", "forms")]
    suite = {"headline": [], "analyses": ["somewhere:premises", "classes"]}
    page = Page(render_html(make_run(analyses=analyses, suite=suite)))
    sections = [attributes["id"] for attributes in page.all("section")]
    assert sections[:4] == ["summary", "analysis-0", "analysis-1", "scores"]
    assert sections.index("analysis-2") == sections.index("calibration") + 1
    links = [attributes["href"].removeprefix("#") for attributes in page.all("a") if attributes["href"].startswith("#")]
    assert list(dict.fromkeys(link for link in links if link in sections)) == sections, (
        "the contents have the same order"
    )


def spread_run():
    rows = [
        score("m", "completion", "r@1", 0.5, wording_sd=0.031, wording_n=40),
        score("m", "checking", "accuracy", 0.5),
    ]
    return make_run(scores=make_table(SCORES, rows))


def test_the_spread_over_paraphrases_stands_beside_the_score():
    table = score_report_table(spread_run())
    assert "±" in table.note and "paraphrases" in table.note and "facts alone" in table.note
    assert as_markdown(table).count("[46.0, 54.0] ±3.1") == 1 and "±3.1" in as_html(table)
    assert "$\\pm$3.1" in as_latex(table)
    heads, values = (line.split(",") for line in as_csv(table).splitlines()[:2])
    assert float(values[heads.index("completion R@1 wording sd")]) == pytest.approx(0.031)
    page = Page(render_html(spread_run()))
    assert "wording ±3.1" in page.text and "standard deviation over paraphrases" in page.text
    assert any("over paraphrases 3.1 (40 facts)" in cell.get("title", "") for cell in page.all("td"))
    assert "wording" not in Page(render_html(make_run())).text.partition("By relation")[0].lower()


def test_the_terminal_shows_the_spread_where_it_fits():
    scores, headline = spread_run().scores, [("completion", "r@1"), ("checking", "accuracy")]
    shown = {}
    for width in (100, 48):
        out = io.StringIO()
        Console(file=out, width=width).print(score_table(scores, headline, width=width))
        shown[width] = out.getvalue()
        assert max(map(len, shown[width].splitlines())) <= width
    assert "±3.1" in shown[100] and "standard deviation over paraphrases" in shown[100]
    assert "±" not in shown[48] and "50.0  [46.0, 54.0]" in shown[48]
