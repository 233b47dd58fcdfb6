"""The explorer's page when changes follow each other faster than its server replies.

No test here depends on timing: changes are made in one task of the browser, responses are held back and let go in an
order of the test's own, and where a delay of the page matters the test sets its clock.
"""

from __future__ import annotations

from datetime import datetime

import pytest
from explored_runs import answer, question, write_run
from held_requests import HeldRequests, chosen, settle, stop_clock
from plain_views import PlainRun
from playwright.sync_api import expect

pytestmark = pytest.mark.browser

AT_ONCE = """(changes) => {
  for (const [place, value] of changes) {
    const control = document.querySelector(place);
    if (value === null) { control.click(); continue; }
    control.value = value;
    for (const name of ["input", "change"]) control.dispatchEvent(new Event(name, { bubbles: true }));
  }
}"""
LOW, HIGH = '[aria-label="least rank"]', '[aria-label="greatest rank"]'
ORDER, SEARCH = '[aria-label="Order"]', 'input[type="search"]'
FIRST, SECOND = '[aria-label="the first model"]', '[aria-label="the second model"]'


def box(key: str, value: str) -> str:
    return f'label.choice[data-key="{key}"][data-value="{value}"] input'


@pytest.fixture(scope="module")
def plain(made_up) -> PlainRun:
    return PlainRun(made_up)


@pytest.fixture
def opened(page, served):
    page.goto(served.url)
    settle(page)
    return page


def shown_ids(page) -> list[str]:
    return page.locator("table.questions a.asked").evaluate_all("all => all.map((one) => one.hash.split('id=')[1])")


def assert_agrees(page, plain: PlainRun, **wanted: str) -> None:
    """Address, controls and listing all say what is wanted."""
    filters = {key: [value] for key, value in wanted.items()}
    expected = plain.listed(filters)
    total = f"{len(expected)} of 180 questions" if len(expected) != 180 else "180 questions"
    expect(page.locator(".total")).to_have_text(total)
    settle(page)
    assert chosen(page) == filters
    assert shown_ids(page) == expected[:25]
    expect(page.get_by_label("least rank")).to_have_value(wanted.get("low", ""))
    expect(page.get_by_label("greatest rank")).to_have_value(wanted.get("high", ""))
    expect(page.get_by_role("searchbox")).to_have_value(wanted.get("search", ""))
    expect(page.get_by_role("combobox", name="Order")).to_have_value(wanted.get("sort", "run"))
    boxes = page.locator("label.choice:has(input:checked)").evaluate_all(
        "all => all.map(({ dataset }) => [dataset.key, dataset.value])"
    )
    shown = ("low", "high", "search", "sort")
    assert sorted(boxes) == sorted([key, value] for key, value in wanted.items() if key not in shown)


@pytest.mark.parametrize(
    ("changes", "wanted"),
    [
        ([(LOW, "3"), (HIGH, "5")], {"low": "3", "high": "5"}),
        ([(box("task", "order"), None), (box("result", "wrong"), None)], {"task": "order", "result": "wrong"}),
        ([(box("model", "large"), None), (ORDER, "hardest")], {"model": "large", "sort": "hardest"}),
        ([(ORDER, "easiest"), (HIGH, "4")], {"sort": "easiest", "high": "4"}),
        ([(SEARCH, "river"), (box("task", "order"), None)], {"search": "river", "task": "order"}),
        (
            [(box("task", "order"), None), (SEARCH, "river"), (LOW, "2")],
            {"task": "order", "search": "river", "low": "2"},
        ),
    ],
    ids=["ranks", "boxes", "box and order", "order and rank", "search and box", "three"],
)
def test_changes_within_one_round_trip_are_all_kept(opened, plain, changes, wanted):
    opened.evaluate(AT_ONCE, changes)
    assert_agrees(opened, plain, **wanted)


def test_a_filter_that_is_taken_away_within_the_same_round_trip_is_gone(opened, plain):
    opened.evaluate(AT_ONCE, [(box("task", "order"), None), (box("result", "wrong"), None), (".chip", None)])
    assert_agrees(opened, plain, result="wrong")


def test_both_models_that_are_chosen_within_one_round_trip_are_compared(page, served, plain):
    page.goto(f"{served.url}#/compare")
    settle(page)
    page.evaluate(AT_ONCE, [(FIRST, "large"), (SECOND, "writer"), (box("task", "order"), None)])
    pair = {"first": ["large"], "second": ["writer"], "task": ["order"]}
    counts = plain.compared(pair)["counts"]
    expect(page.locator(".two-by-two td.cell b")).to_have_text(
        [str(counts[name]) for name in ("both", "first", "second", "neither")]
    )
    assert chosen(page) == pair
    expect(page.locator(FIRST)).to_have_value("large")
    expect(page.locator(SECOND)).to_have_value("writer")


@pytest.mark.parametrize("view", ["questions", "facets"])
def test_a_response_that_comes_late_does_not_paint_over_a_newer_one(opened, plain, view):
    held = HeldRequests(opened, view)
    opened.locator(LOW).fill("3")
    opened.locator(HIGH).fill("5")
    (first,) = held.wait(1, "low=3")
    opened.keyboard.press("Enter")
    (second,) = held.wait(1, "low=3", "high=5")
    held.release(second, first)
    assert_agrees(opened, plain, low="3", high="5")
    counts = opened.locator('label.choice[data-key="task"] .count').all_inner_texts()
    assert sum(map(int, counts)) == len(plain.listed({"low": ["3"], "high": ["5"]}))


def test_a_failure_that_comes_late_does_not_paint_over_a_newer_list(opened, plain):
    held = HeldRequests(opened, "questions")
    opened.locator(box("task", "order")).click()
    (first,) = held.wait(1, "task=order")
    opened.locator(box("result", "wrong")).click()
    (second,) = held.wait(1, "result=wrong")
    held.release(second)
    first.fulfill(status=500, json={"error": "too late"})
    assert_agrees(opened, plain, task="order", result="wrong")
    expect(opened.locator(".failure")).to_have_count(0)


def test_what_fails_twice_is_told_once_and_nothing_paints_over_it(opened):
    held = HeldRequests(opened, "questions", "facets")
    opened.locator(box("task", "order")).click()
    for route in held.wait(2, "task=order"):
        route.fulfill(status=500, json={"error": "out of order"})
    expect(opened.locator(".failure")).to_have_text(["out of order"])
    settle(opened)
    # The browser itself notes each response that says failure; an error that nobody has caught would be another line.
    opened.problems[:] = [one for one in opened.problems if "status of 500" not in one]


def test_a_page_that_is_turned_while_a_filter_is_under_way_leaves_the_filter(opened, plain):
    held = HeldRequests(opened, "questions")
    opened.locator(box("task", "order")).click()
    (filtered,) = held.wait(1, "task=order")
    opened.get_by_role("link", name="Next").click()
    assert chosen(opened) == {"task": ["order"]}, "the new list has not come: it begins with its first page"
    held.release(filtered)
    assert_agrees(opened, plain, task="order")


def test_a_page_that_is_typed_while_a_list_comes_is_not_lost(opened, plain):
    held = HeldRequests(opened, "questions")
    opened.get_by_role("link", name="Next").click()
    (second,) = held.wait(1, "page=2")
    opened.get_by_label("page", exact=True).focus()
    opened.keyboard.press("Control+a")
    opened.keyboard.type("5")
    held.release(second)
    expect(opened.get_by_label("page", exact=True)).to_be_focused()
    expect(opened.get_by_label("page", exact=True)).to_have_value("5")
    opened.keyboard.press("Enter")
    (fifth,) = held.wait(1, "page=5")
    held.release(fifth)
    settle(opened)
    assert shown_ids(opened) == plain.listed({})[100:125]


def test_pages_are_turned_by_the_keyboard_one_after_the_other(opened, plain):
    opened.get_by_role("link", name="Next").focus()
    for number in (2, 3):
        opened.keyboard.press("Enter")
        expect(opened.get_by_label("page", exact=True)).to_have_value(str(number))
        expect(opened.get_by_role("link", name="Next")).to_be_focused()
    assert shown_ids(opened) == plain.listed({})[50:75]


def test_a_cell_that_is_chosen_while_a_filter_is_under_way_leaves_the_filter(page, served, plain):
    page.goto(f"{served.url}#/compare?first=large&second=writer")
    settle(page)
    held = HeldRequests(page, "compare")
    page.locator(box("task", "order")).click()
    page.locator(".two-by-two td.first a").click()
    first, second = held.wait(2, "task=order")
    held.release(second, first)
    wanted = {"first": ["large"], "second": ["writer"], "task": ["order"], "cell": ["first"]}
    listed = plain.listed(wanted | {"sort": ["difference"]})
    expect(page.locator(".results .total")).to_contain_text(f"{len(listed)} questions: only large right")
    assert chosen(page) == wanted and shown_ids(page) == listed[:25]


def test_a_cell_of_a_pair_that_has_been_swapped_is_the_one_that_was_seen(page, served, plain):
    page.goto(f"{served.url}#/compare?first=large&second=writer")
    settle(page)
    held = HeldRequests(page, "compare")
    page.get_by_role("button", name="swap").click()
    page.get_by_title("only large right").click()
    held.release(*held.wait(2, "first=writer"))
    expect(page.locator(".results .total")).to_contain_text("only large right")
    assert chosen(page) == {"first": ["writer"], "second": ["large"], "cell": ["second"]}


def test_a_list_that_comes_after_it_was_left_is_not_what_one_comes_back_to(opened, plain):
    held = HeldRequests(opened, "questions", "question")
    opened.locator(box("task", "order")).click()
    (filtered,) = held.wait(1, "task=order")
    opened.locator("table.questions a.asked").first.click()
    (one,) = held.wait(1, "id=")
    held.release(filtered, one)
    expect(opened.locator("h1.asked-one")).to_be_visible()
    opened.get_by_role("link", name="← Questions").click()
    held.release(*held.wait(2, "task=order")[1:])
    assert_agrees(opened, plain, task="order")


def test_a_question_that_comes_after_it_was_left_does_not_move_the_list(opened):
    held = HeldRequests(opened, "question")
    opened.locator("table.questions a.asked").first.click()
    (one,) = held.wait(1)
    opened.go_back()
    settle(opened)
    expect(opened.locator("table.questions a.asked")).to_have_count(25)
    opened.evaluate("() => { window.moved = 0; window.scrollTo = () => { window.moved += 1; }; }")
    held.release(one)
    assert opened.evaluate("window.moved") == 0


def test_steps_from_question_to_question_are_all_taken(opened, plain):
    opened.locator("table.questions a.asked").first.click()
    settle(opened)
    held = HeldRequests(opened, "question")
    opened.get_by_role("link", name="Next ›").focus()
    for number in (1, 2):
        opened.keyboard.press("Enter")
        held.wait(1, f"id=q_{number:04d}")
        expect(opened.get_by_role("link", name="Next ›")).to_be_focused()
    second, third = held.routes
    held.release(third, second)
    expect(opened.locator("h1.asked-one")).to_have_text(plain.questions[2]["prompt"].replace("[MASK]", "?"))


def test_going_back_and_forward_sets_the_controls(opened, plain):
    steps = [("task", "order"), ("low", "3"), ("sort", "hardest"), ("search", "river")]
    opened.locator(box("task", "order")).click()
    opened.locator(LOW).fill("3")
    opened.keyboard.press("Enter")
    opened.locator(ORDER).select_option("hardest")
    opened.locator(SEARCH).fill("river")
    opened.keyboard.press("Enter")
    assert_agrees(opened, plain, **dict(steps))
    for kept in (3, 2, 1, 0):
        opened.go_back()
        assert_agrees(opened, plain, **dict(steps[:kept]))
    for kept in (1, 2, 3, 4):
        opened.go_forward()
        assert_agrees(opened, plain, **dict(steps[:kept]))


def test_going_back_sets_the_box_that_has_the_focus(opened, plain):
    opened.locator(LOW).fill("3")
    opened.keyboard.press("Enter")
    assert_agrees(opened, plain, low="3")
    expect(opened.locator(LOW)).to_be_focused()
    opened.go_back()
    assert_agrees(opened, plain)


def test_a_search_that_is_typed_and_left_by_going_back_is_not_made(page, served, plain):
    page.clock.install(time=datetime(2030, 1, 1))
    page.goto(f"{served.url}#/questions?task=order")
    settle(page)
    stop_clock(page)
    page.locator(box("result", "wrong")).click()
    assert_agrees(page, plain, task="order", result="wrong")
    page.locator(SEARCH).press_sequentially("riv")
    page.go_back()
    assert_agrees(page, plain, task="order")
    page.clock.run_for(5000)
    assert_agrees(page, plain, task="order")


def test_typing_goes_on_while_responses_come(opened, plain):
    held = HeldRequests(opened, "questions", "facets")
    opened.locator(SEARCH).fill("caf")
    opened.keyboard.press("Enter")
    first = held.wait(2, "search=caf")
    opened.keyboard.type("é 7")
    held.release(*first)
    expect(opened.locator(SEARCH)).to_be_focused()
    expect(opened.locator(SEARCH)).to_have_value("café 7")
    opened.keyboard.press("Enter")
    held.release(*held.wait(2, "+7"))
    assert_agrees(opened, plain, search="café 7")


def test_a_box_that_is_pressed_while_counts_come_is_chosen(opened, plain):
    held = HeldRequests(opened, "facets")
    opened.locator(box("result", "wrong")).click()
    (counts,) = held.wait(1, "result=wrong")
    pressed = opened.locator(box("model", "large"))
    pressed.hover()
    opened.mouse.down()
    held.release(counts)
    opened.mouse.up()
    held.release(*held.wait(1, "model=large"))
    assert_agrees(opened, plain, result="wrong", model="large")


def test_counts_that_come_leave_the_focus(page, explorer, tmp_path):
    rows = [question(f"q_{number}", domain=f"domain {number:02d}", task=f"task {number % 2}") for number in range(24)]
    client = explorer(write_run(tmp_path / "run", rows, [answer(row["question_id"]) for row in rows]))
    page.goto(client.url)
    settle(page)
    for focused in (page.get_by_role("button", name="more"), page.locator(box("task", "task 1"))):
        held = HeldRequests(page, "facets")
        page.locator(LOW).fill("1" if page.locator(LOW).input_value() == "" else "")
        focused.focus()
        (counts,) = held.wait(1)
        held.release(counts)
        settle(page)
        expect(focused).to_be_focused()
        page.unroute_all()
