"""The page of a comparison in a real browser: what it shows, that it sorts, and that names in it do no harm."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from compared_runs import changed, half, make_run
from report_pages import Page
from report_runs import ARABIC, CHINESE

from merkhet import open_run
from merkhet.engine.run_comparison import ComparisonChoice, compare_runs
from merkhet.reports.comparison_page import render_comparison

HACKS = (
    "<script>window.hacked=1</script>",
    '"><img src=x onerror="window.hacked=1">',
    "{{ 7 * 6 }} ' \" ` & &lt;b&gt;",
)
LONG = "unbroken" * 38
pytestmark = pytest.mark.browser
NARROW = {"width": 360, "height": 780}


@pytest.fixture(scope="session")
def run(made_once) -> Path:
    """A run without a report of a model that knows 80% and one that knows 30% of the answers. Do not change it."""

    def make(folder: Path) -> None:
        make_run(folder / "one", {"able": 0.8, "weak": 0.3}, settings=["report=none"])

    return made_once("able-and-weak", make) / "one"


def opened(page, folder: Path, *runs: Path, **choice):
    """The page with the comparison in it; every request that it makes is kept."""
    path = folder / "comparison.html"
    found = compare_runs([open_run(run) for run in runs], ComparisonChoice(**choice))
    path.write_text(render_comparison(found), encoding="utf-8")
    page.asked_for = []
    page.on("request", lambda request: page.asked_for.append(request.url))
    page.goto(path.as_uri())
    return found


def column(table, place: int) -> list[str]:
    """What a reader sees in a column, from the top down."""
    return [row.locator("th, td").nth(place).inner_text() for row in table.locator("tbody tr").all()]


def is_too_wide(page) -> bool:
    return page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth")


def test_the_page_is_well_formed_and_names_in_it_are_text(tmp_path, run):
    """Without a browser: what it says, and that nothing of a name becomes a tag."""
    name = "".join(HACKS)
    odd = changed(run, tmp_path / "odd", names={"able": name})
    pages = {}
    for key, folder in (("plain", run), ("odd", odd)):
        found = compare_runs([open_run(folder)], ComparisonChoice(by="domain"))
        pages[key] = page = Page(render_comparison(found))
        assert page.mistakes == [] and not page.all("img")
        assert found.verdict[0] in page.text and all(one["group"] in page.text for one in found.groups)
        assert {"verdict", "paired", "groups", "changed", "runs"} <= {one["id"] for one in page.all("section")}
        assert [one.get("src") for one in page.all("script")] == [None]
    assert re.search(r"\bable\b", pages["plain"].text) and name in pages["odd"].text
    assert not re.search(r"\bable\b", pages["odd"].text)
    assert [tag for tag, _ in pages["odd"].elements] == [tag for tag, _ in pages["plain"].elements]


@pytest.mark.browser
def test_the_page_shows_verdict_pairs_figures_groups_and_questions_and_asks_for_nothing(page, tmp_path, run):
    found = opened(page, tmp_path, run, by="domain")
    page.wait_for_load_state("networkidle")
    assert page.asked_for == [page.url] and page.title() == "able and weak compared"
    assert page.locator("#verdict p").first.inner_text() == found.verdict[0]
    paired, tests = page.locator("#paired table").all()
    assert column(paired, 0) == ["completion R@1", "checking accuracy", "distinction accuracy"] == column(tests, 0)
    assert column(paired, 1) == [f"{100 * one['value']:.1f}" for one in found.oriented]
    assert page.locator("#paired dl dt").all_inner_texts()[2:] == (
        ["p (Holm)", "q", "McNemar", "effect", "odds", "detectable"]
    )
    assert page.locator("#figures svg").count() == 2 and page.locator("#figures svg path").count() > 6
    assert len(column(page.locator("#groups table"), 0)) == len(found.groups)
    assert page.locator("#runs table").first.locator("tbody th").all_inner_texts() == ["one"]


@pytest.mark.browser
def test_tables_sort_by_number(page, tmp_path, run):
    found = opened(page, tmp_path, run, by="relation")
    table = page.locator("#groups table")
    place = table.locator("thead th").all_inner_texts().index("difference")
    table.locator("thead th button").nth(place).click()
    up = column(table, 0)
    table.locator("thead th button").nth(place).click()
    down = column(table, 0)
    by_size = {one["difference"]: None for one in found.groups}
    assert up != down and len(by_size) > 2
    ends = {one["group"] for one in found.groups if one["difference"] in (min(by_size), max(by_size))}
    assert {up[0], down[0]} <= ends


@pytest.mark.browser
def test_questions_that_differ_are_those_that_one_model_alone_got_right(page, tmp_path, run):
    found = opened(page, tmp_path, run)
    said = page.locator("#changed p").nth(1).inner_text()
    counts = [int(part.rpartition(" ")[2]) for part in said.removesuffix(".").split(".")]
    both, _, able, weak = counts
    assert sum(counts) == 120
    assert both + able == round(sum(one["value"] * one["n"] for one in found.oriented))
    assert both + weak == round(sum(one["other_value"] * one["n"] for one in found.oriented))
    assert [part.split()[1] for part in page.locator("#changed h4").all_inner_texts()] == ["able", "weak"]
    first = page.locator("#changed details").first
    assert first.locator("tbody tr").first.locator(".verdict .right").count() == 1
    assert first.locator("tbody tr").nth(1).locator(".verdict .wrong").count() == 1
    closed = page.locator("#changed details").nth(1)
    assert not closed.locator("table").is_visible()
    closed.locator("summary").click()
    assert closed.locator("table").is_visible()


@pytest.mark.parametrize("name", [*HACKS, ARABIC, CHINESE, LONG])
@pytest.mark.browser
def test_names_are_shown_as_text_and_do_nothing(page, tmp_path, run, name):
    def asked(rows):
        return [{**row, "prompt": f"{name} [MASK]", "domain": name, "template": name} for row in rows]

    def answered(rows):
        return [{**row, "ranked": [{**one, "candidate": name} for one in row["ranked"]]} for row in rows]

    odd = changed(run, tmp_path / "odd", questions=asked, answers=answered, names={"able": name})
    opened(page, tmp_path, odd, run, by="domain")
    assert page.evaluate("window.hacked") is None and page.locator("img").count() == 0
    for place in ("#verdict", "#changed summary", "#changed td.candidate", "#runs"):
        assert name[:80] in page.locator(place).first.inner_text()
    group = page.locator("#groups tbody th").first
    assert name[:60] in group.inner_text()
    assert group.locator("[title]").get_attribute("title") == name, "a short label keeps the whole name"
    assert name[:20] in page.title()
    page.set_viewport_size(NARROW)
    assert not is_too_wide(page)


@pytest.mark.browser
def test_many_pairs_are_shown_on_a_narrow_screen_and_the_rest_counted(page, tmp_path, run):
    copy = changed(run, tmp_path / "copy", questions=lambda rows: half(rows, first=True))
    found = opened(page, tmp_path, run, copy, baselines=True)
    pairs = {(one["model"], one["other"]) for one in found.oriented}
    assert len(pairs) == 15
    assert page.locator("#paired table").first.locator("tbody tr").count() == 45
    assert page.locator("#changed h3").count() == 6 and "9 more pairs are not shown" in page.content()
    assert "Bars are scores on all questions of a model’s run" in page.content()
    page.set_viewport_size(NARROW)
    assert not is_too_wide(page)


@pytest.mark.browser
def test_a_page_without_a_comparison_says_why(page, tmp_path, run):
    parts = [
        changed(run, tmp_path / name, questions=lambda rows, first=first: half(rows, first=first))
        for name, first in (("left", True), ("right", False))
    ]
    for place, name in enumerate(("able", "weak")):
        parts[place] = changed(
            parts[place],
            tmp_path / f"only-{name}",
            answers=lambda rows, name=name: [row for row in rows if row["model"] == name],
        )
    opened(page, tmp_path, *parts, metrics=["mrr"])
    assert "share no question" in page.locator("#verdict").inner_text()
    assert "No questions could be paired." in page.locator("#paired").inner_text()
    assert page.locator("#changed").count() == 0 and "nan" not in page.locator("main").inner_text().lower()


@pytest.mark.browser
def test_a_run_without_answers_still_gives_a_page(page, tmp_path, run):
    empty = changed(run, tmp_path / "empty", answers=lambda rows: [], questions=lambda rows: rows[:1])
    opened(page, tmp_path, empty)
    assert "There is nothing to compare: no question" in page.locator("#verdict").inner_text()
