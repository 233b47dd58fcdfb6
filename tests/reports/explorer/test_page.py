"""The explorer in a real browser, used as a reader uses it."""

from __future__ import annotations

import pytest
from explored_runs import ARABIC, CHINESE, HOSTILE, LONG, TURNED, answer, question, write_run
from held_requests import settle
from plain_views import PlainRun
from playwright.sync_api import expect

from merkhet.core.records import Question
from merkhet.core.schemas import PREMISES, make_table, write_table
from merkhet.models.loading import load_model
from merkhet.probes import PROBES
from merkhet.reports.explorer.playground import Playable

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def plain(made_up) -> PlainRun:
    return PlainRun(made_up)


@pytest.fixture
def opened(page, served):
    """The list of questions, drawn."""
    page.goto(served.url)
    expect(page.locator(".total")).to_have_text("180 questions")
    return page


def shown_ids(page) -> list[str]:
    """The ids of the questions in the list, in their order."""
    return page.locator("table.questions a.asked").evaluate_all("all => all.map((one) => one.hash.split('id=')[1])")


def choose(page, key: str, value: str) -> None:
    page.locator(f'label.choice[data-key="{key}"][data-value="{value}"] input').click()


def test_filters_narrow_the_list_and_can_be_taken_away(opened, plain):
    choose(opened, "task", "order")
    choose(opened, "model", "large")
    choose(opened, "result", "wrong")
    wanted = plain.listed({"task": ["order"], "model": ["large"], "result": ["wrong"]})
    expect(opened.locator(".total")).to_have_text(f"{len(wanted)} of 180 questions")
    assert shown_ids(opened) == wanted[:25]
    expect(opened.locator(".chip")).to_have_text(["Task: order ×", "Model: large ×", "Result: wrong ×"])
    expect(opened.locator("table.questions th.outcome")).to_have_text(["large"])
    opened.locator(".chip", has_text="Task").click()
    fewer = plain.listed({"model": ["large"], "result": ["wrong"]})
    expect(opened.locator(".total")).to_have_text(f"{len(fewer)} of 180 questions")
    opened.get_by_role("button", name="Clear all").click()
    expect(opened.locator(".total")).to_have_text("180 questions")


def test_each_result_and_a_range_of_ranks(opened, plain):
    for result in ("right", "unusable", "tied"):
        choose(opened, "result", result)
        wanted = plain.listed({"result": [result]})
        expect(opened.locator(".total")).to_have_text(f"{len(wanted)} of 180 questions")
        choose(opened, "result", result)
        expect(opened.locator(".total")).to_have_text("180 questions")
    opened.get_by_label("least rank").fill("3")
    opened.get_by_label("greatest rank").fill("5")
    opened.keyboard.press("Enter")
    wanted = plain.listed({"low": ["3"], "high": ["5"]})
    expect(opened.locator(".total")).to_have_text(f"{len(wanted)} of 180 questions")


def test_a_search_follows_what_is_typed(opened, plain):
    opened.keyboard.press("/")
    opened.keyboard.type("CAFÉ 7")
    wanted = plain.listed({"search": ["café 7"]})
    assert 0 < len(wanted) < 100
    expect(opened.locator(".total")).to_have_text(f"{len(wanted)} of 180 questions")
    assert shown_ids(opened) == wanted[:25]
    opened.keyboard.type(" nowhere")
    expect(opened.locator(".results")).to_contain_text("No question passes these filters.")
    opened.go_back()
    expect(opened.locator(".total")).to_have_text("180 questions")
    expect(opened.get_by_role("searchbox")).to_have_value("")


def test_pages_and_orders(opened, plain):
    opened.get_by_role("combobox", name="Order").select_option("hardest")
    wanted = plain.listed({"sort": ["hardest"]})
    expect(opened.locator("table.questions a.asked").first).to_have_attribute("href", f"#/question?id={wanted[0]}")
    opened.get_by_role("link", name="Next").click()
    expect(opened.get_by_label("page", exact=True)).to_have_value("2")
    assert shown_ids(opened) == wanted[25:50]
    opened.get_by_label("page", exact=True).fill("8")
    opened.keyboard.press("Enter")
    expect(opened.locator("table.questions a.asked")).to_have_count(5)
    assert shown_ids(opened) == wanted[175:]
    expect(opened.get_by_role("link", name="Next")).to_have_count(0)
    opened.go_back()
    expect(opened.get_by_label("page", exact=True)).to_have_value("2")
    assert shown_ids(opened) == wanted[25:50]


def test_an_address_holds_all_that_is_chosen(opened, browser, served, plain):
    choose(opened, "domain", "maps")
    expect(opened.locator(".chip")).to_have_count(1)
    opened.get_by_role("combobox", name="Order").select_option("easiest")
    opened.get_by_role("searchbox").fill("river")
    wanted = plain.listed({"domain": ["maps"], "search": ["river"], "sort": ["easiest"]})
    expect(opened.locator(".total")).to_have_text(f"{len(wanted)} of 180 questions")
    address = opened.url
    opened.goto("about:blank")
    opened.goto(address)
    expect(opened.locator(".total")).to_have_text(f"{len(wanted)} of 180 questions")
    assert shown_ids(opened) == wanted[:25]
    expect(opened.get_by_role("searchbox")).to_have_value("river")
    expect(opened.get_by_role("combobox", name="Order")).to_have_value("easiest")


def test_one_question_by_keyboard_and_back(opened, plain):
    links = opened.locator("table.questions a.asked")
    links.first.focus()
    opened.keyboard.press("ArrowDown")
    opened.keyboard.press("j")
    expect(links.nth(2)).to_be_focused()
    opened.keyboard.press("k")
    opened.keyboard.press("Enter")
    asked = plain.questions[1]
    heading = opened.locator("h1.asked-one")
    expect(heading).to_have_text(asked["prompt"].replace("[MASK]", "?"))
    expect(opened.locator(".answers .right")).to_have_text(asked["answers"])
    cards = opened.locator(".cards .answer-card")
    own = [way for way in range(len(plain.ways)) if plain.cell(way, asked)["verdict"]]
    expect(cards.locator("h3 bdi")).to_have_text([plain.labels[way] for way in own])
    best = next(
        row["ranked"] for row in plain.answers if row["question_id"] == asked["question_id"] and row["model"] == "large"
    )
    large = cards.filter(has=opened.locator("h3", has_text="large"))
    expect(large.locator("li .candidate bdi")).to_have_text([item["candidate"] for item in best])
    expect(large.locator("li.gold .candidate bdi")).to_have_text(
        [item["candidate"] for item in best if item["candidate"] in asked["answers"]]
    )
    expect(opened.get_by_role("region", name="The fact behind it")).to_contain_text("thing:0 lies-in place:0")
    siblings = opened.get_by_role("region", name="Q-set").locator("a.asked")
    same = [row for row in plain.questions if row["qset"] == asked["qset"] and row is not asked]
    expect(siblings).to_have_text([row["prompt"].replace("[MASK]", "?") for row in same])
    opened.get_by_role("link", name="Next ›").click()
    expect(heading).to_have_text(plain.questions[2]["prompt"].replace("[MASK]", "?"))
    opened.get_by_role("link", name="← Questions").click()
    expect(opened.locator(".total")).to_have_text("180 questions")


def test_a_proof_is_a_tree_that_names_what_is_missing(page, served):
    page.goto(f"{served.url}#/question?id=q_0004")
    proof = page.get_by_role("region", name="The fact behind it")
    expect(proof.locator("> ul > li > .fact")).to_contain_text("by the rule chain")
    expect(proof.locator("ul ul > li")).to_have_count(2)
    expect(proof).to_contain_text("f_gone is not among the run’s facts")


def test_premises_are_sentences_with_the_axioms_that_are_not_the_question_s(page, explorer, tmp_path):
    folder = write_run(tmp_path / "run", [question(rule="chain")], [answer()])
    rows = [
        {"question_id": "q_1", "fact_id": f"f_{step}", "step": step, "axiom": axiom, "sentence": sentence}
        for step, axiom, sentence in ((1, "chain", HOSTILE), (2, "InverseOP", "Lille is in France."))
    ]
    write_table(PREMISES, make_table(PREMISES, rows), folder / "premises.parquet")
    page.goto(f"{explorer(folder).url}#/question?id=q_1")
    region = page.get_by_role("region", name="The premises")
    expect(region.locator("li")).to_have_text([HOSTILE, "Lille is in France. — by InverseOP"])
    expect(region).to_contain_text("What the answer follows from, by chain:")
    assert page.evaluate("window.hacked") is None


def test_two_models_are_compared_question_by_question(opened, plain):
    opened.get_by_role("link", name="Compare").click()
    first, second = opened.get_by_label("the first model"), opened.get_by_label("the second model")
    first.select_option("large")
    second.select_option("writer")
    pair = {"first": ["large"], "second": ["writer"]}
    counts = plain.compared(pair)["counts"]
    cells = opened.locator(".two-by-two td.cell b")
    order = [str(counts[name]) for name in ("both", "first", "second", "neither")]
    expect(cells).to_have_text(order)
    names = {"first": "only large right", "second": "only writer right", "both": "both right"}
    for place, cell in ((1, "first"), (2, "second"), (0, "both")):
        cells.nth(place).click()
        wanted = plain.listed(pair | {"cell": [cell], "sort": ["difference"]})
        expect(opened.locator(".results .total")).to_contain_text(f"{len(wanted)} questions: {names[cell]}")
        assert shown_ids(opened) == wanted[:25]
    opened.get_by_role("button", name="swap").click()
    expect(first).to_have_value("writer")
    expect(cells).to_have_text([order[0], order[2], order[1], order[3]])
    opened.get_by_role("searchbox").fill("river")
    searched = plain.compared({"first": ["writer"], "second": ["large"], "search": ["river"]})["counts"]
    expect(cells).to_have_text([str(searched[name]) for name in ("both", "first", "second", "neither")])
    opened.locator("table.questions a.asked").first.click()
    opened.get_by_role("link", name="← Compare").click()
    expect(first).to_have_value("writer")


def values(model, prompt: str) -> list[str]:
    """The scores of three candidates as a run's probe gives them, best first, as the page writes them."""
    asked = Question("q", "t", prompt, ("Paris",), "Paris", candidates=("Berlin", "Paris", "Rome"))
    (said,) = PROBES.get("rank")(model, [asked], [])
    assert all(1 <= -score < 100 for _, score in said.ranked)
    return [f"{score:.3f}" for _, score in said.ranked]


@pytest.mark.slow
def test_playing_ranks_what_is_typed(page, explorer, made_up, model_folders):
    client = explorer(
        made_up,
        [
            Playable("bert", "masked", lambda: load_model(str(model_folders["bert-cased"]))),
            Playable("gpt", "causal", lambda: load_model(str(model_folders["gpt2"]))),
            Playable("frequency", "baseline", None, "a baseline counts or guesses"),
        ],
    )
    page.goto(f"{client.url}#/play")
    expect(page.locator("#play-text")).to_have_value("The capital of France is [MASK].")
    page.locator("#play-candidates").fill("Berlin, Paris, Rome")
    expect(page.locator(".answer-card h3")).to_have_text(["bert"])
    bert = load_model(str(model_folders["bert-cased"]))
    expect(page.locator(".answer-card li .value")).to_have_text(values(bert, "The capital of France is [MASK]."))
    expect(page.locator('input[value="frequency"]')).to_be_disabled()
    page.locator("#play-text").fill("The capital of Italy is ___.")
    expect(page.locator(".answer-card li .value")).to_have_text(values(bert, "The capital of Italy is [MASK]."))
    page.get_by_role("checkbox", name="gpt").check()
    expect(page.locator(".answer-card h3")).to_have_text(["bert", "gpt"])
    page.get_by_label("method of bert").select_option("pll-l2r-sum")
    expect(page.get_by_label("method of bert")).to_have_value("pll-l2r-sum")
    page.locator("#play-candidates").fill("")
    expect(page.get_by_role("status").first).to_contain_text("Write two candidates or more")
    page.get_by_role("radio", name="fill the slot freely").check()
    expect(page.locator(".answer-card li").nth(4)).to_be_visible(timeout=60_000)
    expect(page.locator(".answer-card .failure")).to_contain_text("this model has no mask to fill")
    page.locator("#play-text").fill("No slot here.")
    expect(page.get_by_role("status").first).to_contain_text("The sentence has no slot")


def test_a_question_of_the_run_can_be_played_with(page, explorer, made_up, model_folders):
    client = explorer(made_up, [Playable("gpt", "causal", lambda: load_model(str(model_folders["gpt2"])))])
    page.goto(f"{client.url}#/question?id=q_0004")
    page.get_by_role("link", name="Play with this question").click()
    expect(page.locator("#play-text")).to_have_value(client.get("question", id="q_0004")["prompt"])
    expect(page.locator(".answer-card")).to_contain_text("Right answer")


def test_a_run_whose_models_cannot_be_played_with_says_so(page, explorer, made_up):
    client = explorer(made_up, [Playable("frequency", "baseline", None, "a baseline counts or guesses")])
    page.goto(f"{client.url}#/play")
    expect(page.get_by_role("status").first).to_contain_text("There is no model to play with here.")


@pytest.fixture
def hostile(explorer, tmp_path):
    """A run whose every name and text is meant to do harm."""
    names = [HOSTILE, ARABIC, TURNED, CHINESE, LONG]
    facts = [
        {"fact_id": name, "subject": name, "predicate": name, "object": name, "source": name, "premises": [HOSTILE]}
        | {"rule": name}
        for name in names
    ]
    common = {"answers": [HOSTILE], "target": HOSTILE, "qset": HOSTILE, "domain": HOSTILE, "split": HOSTILE}
    asked = [
        question(f"q {number} {name}", prompt=f"{name} [MASK] {name}", task=name, template=f"{name}/1", **common)
        | {"facts": [name], "rule": name}
        for number, name in enumerate(names)
    ]
    said = [
        answer(row["question_id"], model, prediction=HOSTILE, golds=[HOSTILE], method=HOSTILE, probe=HOSTILE)
        | {"ranked": [{"candidate": text, "score": -1.0} for text in names]}
        for row in asked
        for model in names
    ]
    said += [answer(row["question_id"], "unusable", unusable=HOSTILE) for row in asked]
    folder = write_run(
        tmp_path / "run", asked, said, facts=facts, candidates=[*names, *map(str, range(20))], title=HOSTILE
    )
    return explorer(folder, [Playable(HOSTILE, HOSTILE, None, HOSTILE), Playable(LONG, "masked", lambda: 1 / 0)])


def test_hostile_names_are_shown_as_text_in_every_view(page, hostile):
    page.goto(hostile.url)
    expect(page.locator("p.title")).to_have_text(HOSTILE)
    expect(page.locator("table.questions a.asked").first).to_contain_text(HOSTILE)
    expect(page.locator('label.choice[data-key="task"]').nth(1)).to_be_visible()
    visited = ["#/questions", "#/compare", "#/play"]
    visited += [link.get_attribute("href") for link in page.locator("table.questions a.asked").all()]
    for place in visited:
        page.goto(f"{hostile.url}{place}")
        settle(page)
        expect(page.locator("main .failure[role=alert]")).to_have_count(0)
        assert page.evaluate("window.hacked") is None
        assert page.locator("main script, main img, header img, header script").count() == 0
        assert "\u202e" not in page.locator("main").inner_text(), "text that turns what follows is shown by its code"
        wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert wide <= 0, f"{place} is wider than the window"
    page.goto(f"{hostile.url}{visited[3]}")
    expect(page.locator("h1.asked-one")).to_have_text(f"{HOSTILE} ? {HOSTILE}")
    expect(page.locator(".answer-card li .candidate bdi").first).to_have_text(HOSTILE)
    page.locator("a.tag", has_text="onerror").first.click()
    expect(page.locator(".chip")).to_contain_text(HOSTILE)
    assert page.evaluate("window.hacked") is None


def test_an_address_made_by_somebody_else_does_no_harm(page, hostile):
    bad = "%3Cimg%20src%3Dx%20onerror%3D%22window.hacked%3D1%22%3E"
    for place in (
        f"#/questions?search={bad}&task={bad}&sort={bad}",
        f"#/question?id={bad}",
        f"#/compare?first={bad}&second={bad}",
        f"#/play?text={bad}&candidates={bad}&model={bad}&probe={bad}&right={bad}",
        f"#/play?question={bad}",
        f"#/{bad}?{bad}={bad}",
        "#/constructor",
        "#/__proto__?x=1",
    ):
        page.goto("about:blank")
        page.goto(f"{hostile.url}{place}")
        settle(page)
        assert page.evaluate("window.hacked") is None
        assert page.locator("main img").count() == 0
        assert page.locator("main").inner_text().strip()
    # The browser itself notes each request that was refused in words.
    page.problems[:] = [one for one in page.problems if "status of 400" not in one]


@pytest.mark.parametrize(
    ("questions", "answers", "place", "said"),
    [
        ([question()], [], "#/questions", "This run has no answers."),
        ([question()], [], "#/compare", "This run has no answers to compare."),
        ([question()], [], "#/question?id=q_1", "This question has no answers."),
        ([question()], [answer()], "#/compare", "This run has one model asked in one way"),
        ([question()], [answer()], "#/question?id=q_1", "This question is in no Q-set."),
        ([], [], "#/questions", "This run has no questions."),
        ([question()], [answer()], "#/questions?page=7", "There is no such page."),
        (
            [question()],
            [answer(unusable="x"), answer(model="b")],
            "#/compare",
            "No question has usable answers from both models",
        ),
        ([question()], [answer(ranked=[{"candidate": "a", "score": None}])], "#/question?id=q_1", "not a number"),
    ],
)
def test_what_a_run_lacks_is_said(page, explorer, tmp_path, questions, answers, place, said):
    client = explorer(write_run(tmp_path / "run", questions, answers))
    page.goto(f"{client.url}{place}")
    expect(page.locator("body")).to_contain_text(said)


def test_an_explorer_that_has_ended_is_said_to_have_ended(page, explorer, tmp_path):
    client = explorer(write_run(tmp_path / "run"))
    page.goto(client.url)
    expect(page.locator(".total")).to_have_text("180 questions")
    page.route("**/api/**", lambda route: route.abort())
    page.get_by_role("searchbox").fill("x")
    expect(page.locator(".failure").first).to_contain_text("It may have been stopped: start “merkhet explore” again.")
    page.problems.clear()


def test_a_narrow_window_shows_the_same(page, served):
    page.set_viewport_size({"width": 390, "height": 800})
    for place in ("#/questions", "#/compare", "#/play", "#/question?id=q_0004"):
        page.goto(f"{served.url}{place}")
        settle(page)
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.goto(f"{served.url}#/questions")
    page.get_by_text("Filters", exact=True).click()
    choose(page, "task", "order")
    expect(page.locator(".chip")).to_have_text(["Task: order ×"])


def test_a_page_shows_aliases_after_right_candidates(page, explorer, tmp_path):
    client = explorer(
        write_run(tmp_path / "run", [question(answers=["place 1", "place 2", "Old Place", "P1"])], [answer()])
    )
    page.goto(f"{client.url}#/question?id=q_1")
    text = "Right answers: place 1, place 2; also right as text: Old Place, P1"
    expect(page.locator("p.answers")).to_have_text(text)
