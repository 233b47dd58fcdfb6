"""The report as a reader has it: in a real browser, without any network."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import pytest
from report_runs import ARABIC, CHINESE, make_card, make_run, score

from merkhet.core.schemas import ANSWERS, QUESTIONS, SCORES, make_table
from merkhet.reports.html_report import render_html
from merkhet.reports.report_data import ReportData

HACKS = (
    "<script>window.hacked=1</script>",
    '"><img src=x onerror="window.hacked=1">',
    "</style></script><svg onload='window.hacked=1'>",
    "{{ 7 * 6 }} ' \" ` & &lt;b&gt;",
)
LONG = "unbroken" * 38
pytestmark = pytest.mark.browser
NARROW = {"width": 360, "height": 780}


pytestmark = pytest.mark.browser


@lru_cache(1)
def usual_report() -> str:
    """The report of a run as most tests need it, rendered once."""
    return render_html(make_run())


def opened(page, folder: Path, data: ReportData | None = None):
    """The page with a report in it, or with the usual one; every request that it makes is kept."""
    path = folder / "report.html"
    path.write_text(usual_report() if data is None else render_html(data), encoding="utf-8")
    page.asked_for = []
    page.on("request", lambda request: page.asked_for.append(request.url))
    page.goto(path.as_uri())
    return page


def column(table, place: int) -> list[str]:
    """What a reader sees in a column, from the top down."""
    return table.locator("tbody tr").evaluate_all(
        "(rows, place) => rows.map((row) => row.querySelectorAll('th, td')[place].innerText)", place
    )


def is_too_wide(page) -> bool:
    return page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth")


def test_the_page_asks_for_nothing_but_itself(page, tmp_path):
    opened(page, tmp_path)
    page.wait_for_load_state("networkidle")
    assert page.asked_for == [page.url]
    assert page.title() == "What SmolLM2 knows"


def test_no_script_but_the_page_s_own_may_run(page, tmp_path):
    path = tmp_path / "report.html"
    html = usual_report().replace("</body>", "<script>document.title = 'taken over'</script></body>")
    path.write_text(html, encoding="utf-8")
    page.goto(path.as_uri())
    assert page.title() == "What SmolLM2 knows" and page.locator("th button").count()
    assert len(page.problems) == 1 and "Content Security Policy" in page.problems[0]
    page.problems.clear()


def test_figures_are_drawn_and_have_a_size(page, tmp_path):
    opened(page, tmp_path)
    figures = page.locator("figure svg").all()
    assert len(figures) >= 5
    for figure in figures:
        box = figure.bounding_box()
        assert box["width"] > 100 and box["height"] > 50
        marks = figure.locator("path, rect").evaluate_all(
            "all => all.filter(one => { const box = one.getBBox(); return box.width * box.height > 20; }).length"
        )
        assert marks > 1
        assert figure.locator("text").count() > 2


def test_a_click_sorts_by_numbers_and_another_turns_the_order(page, tmp_path):
    values = {"a": 0.095, "b": 1.0, "c": 0.5, "d": None, "e": 0.101, "f": 0.00005}
    rows = [score("m", "completion", "r@1", 0.5)]
    rows += [score("m", "completion", "r@1", value, relation=name, n=7) for name, value in values.items()]
    opened(page, tmp_path, make_run(scores=make_table(SCORES, rows)))
    table = page.locator("#by-0 table").first
    head = table.locator("thead th").nth(3)
    head.locator("button").click()
    assert head.get_attribute("aria-sort") == "descending"
    assert column(table, 0) == ["b", "c", "e", "a", "f", "d"], "as text 5e-05 would be above 1"
    head.locator("button").click()
    assert head.get_attribute("aria-sort") == "ascending"
    assert column(table, 0) == ["f", "a", "e", "c", "b", "d"], "what has no value stays last"
    table.locator("thead th button").first.click()
    assert column(table, 0) == ["a", "b", "c", "d", "e", "f"]
    assert table.locator("[aria-sort]").count() == 1


def test_numbers_of_four_digits_sort_as_numbers(page, tmp_path):
    rows = [
        score("m", "completion", "r@1", 0.5, relation=name, n=n) for name, n in (("a", 900), ("b", 12000), ("c", 1500))
    ]
    opened(page, tmp_path, make_run(scores=make_table(SCORES, [score("m", "completion", "r@1", 0.5), *rows])))
    table = page.locator("#by-0 table").first
    table.locator("thead th button").nth(1).click()
    assert column(table, 1) == ["12,000", "1,500", "900"]


def test_the_main_table_is_sorted_by_the_keyboard_with_chance_below(page, tmp_path):
    opened(page, tmp_path)
    table = page.locator("#scores table").first
    head = table.locator("thead th button").nth(1)
    head.focus()
    page.keyboard.press("Enter")
    assert column(table, 0) == ["SmolLM2-135M", "minilm-mlm", "frequency"]
    page.keyboard.press("Space")
    assert column(table, 0) == ["frequency", "minilm-mlm", "SmolLM2-135M"]
    assert head.evaluate("one => document.activeElement === one")
    assert table.locator("tfoot tr").first.inner_text().startswith("chance")


def test_what_is_to_be_pasted_is_copied(page, tmp_path):
    opened(page, tmp_path)
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    for name, start, part in (
        ("Copy text", "We asked 60 questions", "\n\n"),
        ("Copy BibTeX", "@software{merkhet,\n", "\n}\n\n@article{efron1987,\n"),
        ("Copy command", "merkhet run quickstart", "--out runs/quickstart"),
    ):
        button = page.locator(f"[data-copy='{name}'] .copy")
        assert button.inner_text() == name
        button.click()
        button.filter(has_text="Copied").wait_for()
        text = page.evaluate("navigator.clipboard.readText()")
        assert text.startswith(start) and part in text and "Copy" not in text and "Copied" not in text


def test_where_the_clipboard_is_out_of_reach_the_text_is_selected(page, tmp_path):
    page.add_init_script("navigator.clipboard.writeText = () => Promise.reject(new Error('refused'));")
    opened(page, tmp_path)
    page.get_by_role("button", name="Copy command").click()
    assert page.evaluate("getSelection().toString()").strip().startswith("merkhet run quickstart")


def test_the_contents_lead_to_every_section(page, tmp_path):
    page.emulate_media(reduced_motion="reduce")
    opened(page, tmp_path)
    links = page.locator("nav.contents a").all()
    assert len(links) == page.locator("main > section").count() >= 9
    for link in links:
        link.click()
        page.wait_for_function(
            "() => { const top = document.querySelector(location.hash).getBoundingClientRect().top;"
            " return top > -5 && top < innerHeight; }"
        )


def hostile_run(texts: tuple[str, ...]) -> ReportData:
    run = make_run(models=texts, relations=texts)
    everywhere = " ".join(texts)
    rows = [
        row | {"prompt": f"{text} [MASK] {text}", "domain": text, "template": text}
        for place, row in enumerate(run.questions.to_pylist())
        for text in [texts[place % len(texts)]]
    ]
    answers = [
        row | {"prediction": texts[0], "ranked": [{"candidate": text, "score": 0.5} for text in texts]}
        for row in run.answers.to_pylist()
    ]
    one = {"task": everywhere, "metric": "r@1", "model": texts[0], "other": texts[-1], "difference": 0.1}
    return replace(
        run,
        title=everywhere,
        suite={**run.suite, "title": everywhere, "about": everywhere, "methods": everywhere, "citations": list(texts)},
        study={text: text for text in texts},
        record={**run.record, "command": everywhere, "machine": {text: text for text in texts}},
        questions=make_table(QUESTIONS, rows),
        answers=make_table(ANSWERS, answers),
        findings={
            "sentences": list(texts),
            "comparisons": [{**one, "low": 0.05, "high": 0.2, "p": 0.01}],
            "unusable": [{"model": text, "reason": text, "count": 3} for text in texts],
        },
        analyses=[
            {
                "title": everywhere,
                "explanation": everywhere,
                "sentences": list(texts),
                "tables": [{"caption": everywhere, "columns": [{"name": text} for text in texts], "rows": [texts]}],
            }
        ],
        calibration=[make_card(probe="rank", kind="causal", sentences=list(texts), about=everywhere)],
    )


@pytest.mark.parametrize("viewport", [{"width": 1280, "height": 900}, NARROW], ids=["screen", "phone"])
def test_hostile_labels_are_text_and_leave_the_page_its_width(page, tmp_path, viewport):
    texts = (*HACKS, ARABIC, CHINESE, LONG)
    page.set_viewport_size(viewport)
    opened(page, tmp_path, hostile_run(texts))
    page.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true; })")
    page.locator("th button").evaluate_all("all => all.slice(0, 40).forEach((one) => one.click())")
    assert page.evaluate("window.hacked") is None
    assert page.locator("main img, main script").count() == 0
    seen = page.locator("body").inner_text()
    for text in texts:
        assert text in seen
    assert not is_too_wide(page)
    assert page.locator("h1").bounding_box()["width"] <= viewport["width"]
    assert page.asked_for == [page.url]


def test_right_to_left_names_are_written_from_the_right(page, tmp_path):
    opened(page, tmp_path, make_run(models=(ARABIC, "b")))
    cell = page.locator("#scores tbody th .clamp").first
    assert cell.inner_text() == ARABIC
    assert cell.evaluate("one => getComputedStyle(one).direction") == "rtl"


@pytest.mark.parametrize("viewport", [{"width": 1280, "height": 900}, NARROW], ids=["screen", "phone"])
def test_words_are_not_broken_where_a_table_can_be_scrolled(page, tmp_path, viewport):
    page.set_viewport_size(viewport)
    opened(page, tmp_path)
    assert not is_too_wide(page)
    for cell in page.locator("#compared tbody td.name .clamp").all():
        words = len(cell.inner_text().replace("-", " ").split())
        lines = cell.evaluate(
            "one => Math.round(one.getBoundingClientRect().height / parseFloat(getComputedStyle(one).lineHeight))"
        )
        assert lines <= words


@pytest.mark.parametrize("width", [1400, 800])
def test_heads_of_control_columns_are_shown_whole(page, tmp_path, width):
    page.set_viewport_size({"width": width, "height": 1800})
    run = make_run()
    scores = [row for row in run.scores.to_pylist() if row["relation"] is None and row["domain"] is None]
    controls = [row | {"control": name} for row in scores for name in ("association", "subject-blind")]
    opened(page, tmp_path, replace(run, controls=controls))
    heads = page.locator("#scores thead th .clamp").all()
    assert any(head.inner_text().endswith("subject-blind") for head in heads)
    for head in heads:
        assert head.evaluate("one => one.scrollHeight <= one.clientHeight + 1"), head.inner_text()


def test_what_is_wider_than_a_phone_scrolls_with_a_visible_edge(page, tmp_path):
    page.set_viewport_size({"width": 390, "height": 844})
    figure = {"kind": "bars", "caption": "c.", "rows": [{"x": "x", "bar": "m", "value": 0.5}]}
    table = {
        "caption": "A caption that is longer than the screen is wide. " * 3,
        "columns": [{"name": "column " * 9}] * 9,
    }
    opened(page, tmp_path, make_run(analyses=[{"name": "own", "figures": [figure], "tables": [table]}]))
    page.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true; })")
    assert not is_too_wide(page)
    wide = page.evaluate_handle(
        "() => [...document.querySelectorAll('main *')].filter((one) => one.scrollWidth > one.clientWidth + 1"
        " && ['auto', 'scroll'].includes(getComputedStyle(one).overflowX))"
    )
    count = wide.evaluate("all => all.length")
    assert count > 5
    for one in (wide.evaluate_handle(f"all => all[{index}]").as_element() for index in range(count)):
        assert one.get_attribute("tabindex") == "0" and one.evaluate(
            "one => one.tagName === 'FIGURE' || one.role === 'region'"
        )
        assert one.evaluate("one => one.getAttribute('aria-label') || one.querySelector('figcaption').textContent")
        assert one.evaluate("one => getComputedStyle(one).backgroundImage").count("linear-gradient") == 2
        one.focus()
        page.keyboard.press("ArrowRight")
        page.wait_for_function("one => one.scrollLeft > 0", arg=one)
    for caption in page.locator("caption > span").all():
        box = caption.bounding_box()
        assert box["x"] >= 0 and box["x"] + box["width"] <= 390, caption.inner_text()


def test_a_failed_probe_is_told_before_any_score(page, tmp_path):
    card = make_card(probe="rank", kind="causal", passed=False)
    opened(page, tmp_path, make_run(calibration=[card]))
    warning = page.get_by_role("alert")
    assert "Calibration failed" in warning.inner_text() and "never shown" in warning.inner_text()
    assert warning.bounding_box()["y"] < page.locator("#scores").bounding_box()["y"]
    assert page.locator("article.card .badge").first.inner_text() == "✗ failed"


def test_a_card_shows_what_was_found_in_bars(page, tmp_path):
    opened(page, tmp_path, make_run(calibration=[make_card(probe="rank", kind="causal")]))
    card = page.locator("article.card")
    assert "passed its calibration" in card.inner_text() and "merkhet calibrate rank" in card.inner_text()
    levels = [bar.bounding_box()["width"] for bar in card.locator(".track .level").all()]
    assert len(levels) == 5 and levels[0] > 5 * levels[1] > 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out_from_the_paper(page, tmp_path, scheme):
    page.emulate_media(color_scheme=scheme)
    opened(page, tmp_path, make_run(calibration=[make_card(probe="rank", kind="causal", passed=False)]))
    for place in (
        "h1",
        ".summary p",
        ".note",
        "td.number",
        "td .interval",
        ".warning",
        ".paste p",
        ".copy",
        "th button",
    ):
        ratio = page.locator(place).first.evaluate(CONTRAST)
        assert ratio >= 4.5, f"{place}: {ratio:.2f}"


CONTRAST = """one => {
  const numbers = (text) => text.match(/[\\d.]+/g).map(Number);
  const light = (text) => {
    const [r, g, b] = numbers(text).slice(0, 3).map((v) => v / 255).map(
      (v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  let under = one;
  const paper = (node) => getComputedStyle(node).backgroundColor;
  while (under.parentElement && numbers(paper(under))[3] === 0) under = under.parentElement;
  const [a, b] = [light(getComputedStyle(one).color), light(paper(under))].sort((x, y) => y - x);
  return (a + 0.05) / (b + 0.05);
}"""


def test_in_print_everything_is_open_and_buttons_are_gone(page, tmp_path):
    opened(page, tmp_path)
    page.emulate_media(media="print")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.locator("details:not([open])").count() == 0
    assert not page.locator("nav.contents").is_visible() and not page.locator(".copy").first.is_visible()
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.locator("details:not([open])").count() > 5


def empty_run(**changes) -> ReportData:
    tables = (make_table(SCORES, []), make_table(QUESTIONS, []))
    return replace(ReportData("Nothing", {}, {}, {}, *tables, {}, make_table(ANSWERS, []), {}), **changes)


def test_a_run_without_answers_says_so(page, tmp_path):
    run = make_run(size=9)
    opened(page, tmp_path, replace(empty_run(), questions=run.questions, record=run.record))
    assert "9 questions were generated and not asked yet." in page.locator("#summary").inner_text()
    assert "This run has no overall scores." in page.locator("#scores").inner_text()
    assert "no probe asked a model" in page.locator("#calibration").inner_text().lower()
    assert "There are no answers to show." in page.locator("#questions").inner_text()
    assert "None: no question was put to a model." in page.locator("#unusable").inner_text()


def test_one_model_is_compared_with_nobody(page, tmp_path):
    run = make_run(models=("alone",))
    opened(page, tmp_path, replace(run, findings={"sentences": ["alone knows capitals."]}))
    assert "needs two models" in page.locator("#compared").inner_text()
    assert "1 model was asked" in page.locator("#summary").inner_text()


def test_one_question_is_in_the_singular(page, tmp_path):
    rows = [score("alone", "completion", "r@1", 1.0, n=1, low=None, high=None)]
    run = make_run(models=("alone",), size=1, scores=make_table(SCORES, rows), findings={})
    opened(page, tmp_path, run)
    assert "1 model was asked 1 question" in page.locator("#summary").inner_text()
    assert "questions (n)\t1" in page.locator("#scores tfoot").inner_text()
    assert page.locator("#questions details").count() == 1


def test_a_score_that_is_no_number_is_a_dash_and_sorts_last(page, tmp_path):
    nothing = float("nan")
    rows = [
        score("lost", "completion", "r@1", nothing, low=nothing, high=nothing),
        score("found", "completion", "r@1", 0.4),
    ]
    opened(page, tmp_path, make_run(models=("lost", "found"), scores=make_table(SCORES, rows), findings={}))
    table = page.locator("#scores table").first
    assert column(table, 1)[0].strip() == "–"
    for _ in range(2):
        table.locator("thead th button").nth(1).click()
        assert column(table, 0) == ["found", "lost"]
    text = page.locator("body").inner_text()
    assert "nan" not in text.lower().split() and "A dash marks a missing score" in text


def test_a_probe_without_a_card_says_how_to_make_one(page, tmp_path):
    opened(page, tmp_path)
    text = page.locator("#calibration").inner_text()
    assert "The probe rank has no calibration card for causal models." in text and "merkhet calibrate rank" in text
    assert "Not calibrated: rank for causal models." in page.locator("#summary").inner_text()
