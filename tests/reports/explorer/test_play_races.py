"""The page to play on when typing, leaving and coming back are faster than the server; see test_races.py."""

from __future__ import annotations

import json
import threading
from datetime import datetime

import pytest
from held_requests import DEADLINE, HeldRequests, chosen, settle, stop_clock
from playwright.sync_api import expect

from merkhet.core.errors import MerkhetError
from merkhet.models.loading import load_model
from merkhet.reports.explorer.playground import Playable

pytestmark = pytest.mark.browser


@pytest.fixture
def loading():
    """A model whose files are gone, which is found out when the test says so."""
    free = threading.Event()

    def load():
        assert free.wait(DEADLINE)
        raise MerkhetError("its files are gone")

    load.free = free
    yield load
    free.set()


@pytest.fixture
def playing(page, explorer, made_up, loading):
    """The page to play on, with one model that can be asked and says why it does not answer."""
    loading.free.set()
    client = explorer(made_up, [Playable("gone", "masked", loading)])
    page.goto(f"{client.url}#/play")
    expect(page.locator(".answer-card .failure")).to_have_text("its files are gone")
    return client


def last_prompt(client) -> str:
    return client.server.player._latest.request.prompt


def test_play_that_is_left_while_typing_stays_left(page, explorer, made_up, loading):
    page.clock.install(time=datetime(2030, 1, 1))
    client = explorer(made_up, [Playable("gone", "masked", loading)])
    page.goto(f"{client.url}#/play")
    settle(page)
    stop_clock(page)
    page.locator("#play-text").press_sequentially("Oh ")
    page.evaluate("location.hash = '#/questions'")
    expect(page.locator(".total")).to_have_text("180 questions")
    page.clock.run_for(5000)
    assert page.url.endswith("#/questions")
    expect(page.locator(".total")).to_have_text("180 questions")


def test_what_was_typed_is_there_again_when_one_comes_back(page, playing):
    page.locator("#play-text").fill("Rome is [MASK].")
    page.get_by_role("link", name="Compare").click()
    expect(page.locator(".two-by-two")).to_be_visible()
    page.go_back()
    expect(page.locator("#play-text")).to_have_value("Rome is [MASK].")


def test_sentences_reach_the_server_in_the_order_they_were_typed(page, playing):
    held = HeldRequests(page, "play", method="POST")
    for text in ("First [MASK].", "Second [MASK]."):
        page.locator("#play-text").fill(text)
        page.locator("#play-candidates").focus()
    (first,) = held.wait(1, "First")
    held.release(first)
    (second,) = held.wait(1, "Second")
    held.release(second)
    expect(page.locator(".answer-card .failure")).to_have_text("its files are gone")
    expect(page.get_by_role("status").first).to_have_text("")
    assert last_prompt(playing) == "Second [MASK]."


def test_news_of_a_sentence_from_before_play_was_left_is_dropped(page, playing):
    held = HeldRequests(page, "play")
    page.locator("#play-text").fill("First [MASK].")
    page.locator("#play-candidates").focus()
    (old,) = held.wait(1)
    held.is_holding = False
    page.get_by_role("link", name="Questions", exact=True).click()
    expect(page.locator(".total")).to_have_text("180 questions")
    page.get_by_role("link", name="Play").click()
    expect(page.locator(".answer-card .failure")).to_have_text("its files are gone")
    page.locator("#play-text").fill("No slot here.")
    page.locator("#play-candidates").focus()
    expect(page.get_by_role("status").first).to_contain_text("The sentence has no slot")
    held.release(old)
    assert "The sentence has no slot" in page.get_by_role("status").first.inner_text()


def test_a_question_that_comes_late_leaves_what_was_typed(page, playing):
    held = HeldRequests(page, "question")
    page.goto(f"{playing.url}#/play?question=q_0004")
    (one,) = held.wait(1)
    page.locator("#play-text").fill("Rome is [MASK].")
    page.locator("#play-text").blur()
    held.release(one)
    candidates = "\n".join(playing.get("question", id="q_0004")["candidates"]) + "\n"
    expect(page.locator("#play-candidates")).to_have_value(candidates)
    expect(page.locator("#play-text")).to_have_value("Rome is [MASK].")
    page.wait_for_url("**text=Rome+is*")
    assert chosen(page)["text"] == ["Rome is [MASK]."] and chosen(page)["candidates"] == [candidates]


def test_of_two_questions_to_play_with_the_one_asked_for_last_is_there(page, playing):
    held = HeldRequests(page, "question")
    for name in ("q_0004", "q_0005"):
        page.evaluate("(name) => { location.hash = `#/play?question=${name}`; }", name)
        held.wait(1, name)
    first, second = held.routes
    held.release(second, first)
    expect(page.locator("#play-text")).to_have_value(playing.get("question", id="q_0005")["prompt"])


@pytest.fixture
def two_models(page, explorer, made_up, model_folders, loading):
    """The page to play on with a model that answers, and one that does so when the test says so."""
    loading.free.clear()
    bert = load_model(str(model_folders["bert-cased"]))
    client = explorer(made_up, [Playable("bert", "masked", lambda: bert), Playable("gone", "masked", loading)])
    page.clock.install(time=datetime(2030, 1, 1))
    page.goto(f"{client.url}#/play?text=Paris+is+[MASK].&candidates=Berlin,+Rome&model=bert&model=gone")
    expect(page.locator(".answer-card h3")).to_have_text(["bert"])
    return client


def test_a_result_that_comes_leaves_those_before_it_as_they_are(page, two_models, loading):
    method = page.get_by_label("method of bert")
    method.focus()
    method.evaluate("one => { one.isTheSame = true; }")
    loading.free.set()
    expect(page.locator(".answer-card h3")).to_have_text(["bert", "gone"])
    expect(method).to_be_focused()
    assert method.evaluate("one => one.isTheSame")


def test_a_method_that_is_chosen_while_a_sentence_is_typed_is_asked_for_once(page, two_models, loading):
    loading.free.set()
    expect(page.locator(".answer-card h3")).to_have_text(["bert", "gone"])
    stop_clock(page)
    asked = []
    page.on("request", lambda request: asked.append(request.post_data) if request.method == "POST" else None)
    page.evaluate(
        """() => {
          const text = document.querySelector("#play-text");
          text.value = "Lima is [MASK].";
          text.dispatchEvent(new Event("input", { bubbles: true }));
          const method = document.querySelector('[aria-label="method of bert"]');
          method.value = "pll-l2r-sum";
          method.dispatchEvent(new Event("change", { bubbles: true }));
        }"""
    )
    page.clock.run_for(5000)
    expect(page.locator(".answer-card h3")).to_have_text(["bert", "gone"])
    expect(page.get_by_label("method of bert")).to_have_value("pll-l2r-sum")
    (content,) = map(json.loads, asked)
    assert content["text"] == "Lima is [MASK]." and content["models"][0]["method"] == "pll-l2r-sum"
