"""What chat models replied stands beside what it came to, as text."""

from __future__ import annotations

import pytest
from explored_runs import HOSTILE, write_run
from playwright.sync_api import expect

pytestmark = pytest.mark.browser


def said(**more):
    common = {"question_id": "q_1", "model": "talker", "probe": "answer", "method": "answer"}
    return {**common, **more}


def asked(number):
    return {
        "question_id": f"q_{number}",
        "suite": "made up",
        "task": "completion",
        "language": "en",
        "prompt": f"Place {number} lies in [MASK].",
        "answers": ["here"],
        "target": "here",
        "candidate_set": "places",
    }


def test_replies_and_what_they_came_to(explorer, page, tmp_path):
    questions = [asked(number) for number in range(3)]
    answers = [
        said(question_id="q_0", prediction="here", ranked=[{"candidate": "here", "score": 0.0}], outcome="answered"),
        said(question_id="q_1", prediction="", outcome="no answer", replies=[HOSTILE, ""]),
        said(question_id="q_2", prediction="", outcome="refused", replies=["I'm sorry."]),
    ]
    client = explorer(write_run(tmp_path / "talked", questions, answers))
    found = {row["id"]: row["verdicts"][0] for row in client.get("questions")["questions"]}
    assert found == {"q_0": "right", "q_1": "wrong", "q_2": "wrong"}
    page.goto(f"{client.url}#/question?id=q_1")
    card = page.locator(".cards .answer-card")
    expect(card).to_contain_text("Its reply is no answer.")
    expect(card.locator("p.note").last.locator("bdi").first).to_have_text(HOSTILE)
    assert page.evaluate("window.hacked") is None
    page.goto(f"{client.url}#/question?id=q_2")
    expect(card).to_contain_text("It declined to answer.")
    expect(card).to_contain_text("Reply: “I'm sorry.”")
