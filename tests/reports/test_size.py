"""A report stays a page that can be opened and sent, however much was asked."""

from __future__ import annotations

import time

import pytest
from large_runs import large_run
from report_pages import Page

from merkhet.reports.html_report import render_html

MOST = 5_000_000


@pytest.fixture(scope="module")
def large():
    run = large_run()
    start = time.perf_counter()
    html = render_html(run)
    seconds = time.perf_counter() - start
    print(f"{run.answers.num_rows:,} answers: {len(html.encode()):,} bytes in {seconds:.1f} s")
    return run, html


def test_two_hundred_thousand_answers_fit_into_a_page(large):
    run, html = large
    assert run.answers.num_rows == 200_000
    assert len(html.encode()) < MOST


def test_answers_are_a_sample_and_the_others_are_named(large):
    run, html = large
    page = Page(html.partition('<section id="questions">')[2].partition("</section>")[0])
    shown = len([attributes for attributes in page.all("details") if attributes.get("class") == "question"])
    assert 12 <= shown <= 500, "some of each of the twelve tasks"
    headings = [data for tag, data in page.texts if tag == "h3"]
    assert sorted(headings) == sorted(run.questions["task"].unique().to_pylist()) and len(headings) == 12
    text = Page(html).text
    assert "This page shows a sample of the 200,000 answers" in text
    assert "answers.parquet" in text and "merkhet explore RUN" in text


def test_what_finds_no_room_is_counted(large):
    _, html = large
    assert "more rows are in the run’s scores.parquet" in Page(html).text


@pytest.mark.browser
def test_a_page_of_two_hundred_thousand_answers_is_opened_and_sorted(large, page, tmp_path):
    _, html = large
    file = tmp_path / "report.html"
    file.write_text(html, encoding="utf-8")
    page.goto(file.as_uri())
    table = page.locator("#by-0 table").first
    table.locator("thead th button").nth(3).click()
    cells = table.locator("tbody td:nth-child(4)").evaluate_all("all => all.map(one => Number(one.dataset.sort))")
    assert len(cells) > 10 and cells == sorted(cells, reverse=True)


def test_long_names_and_those_that_must_be_escaped_fit_too():
    label = " <&\"'" * 40 + "w" * 100
    html = render_html(large_run(1_000, models=6, tasks=4, relations=300, label=label))
    assert len(html.encode()) < MOST
