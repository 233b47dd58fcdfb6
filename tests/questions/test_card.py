"""The card says what is in a question set, and what is not."""

from __future__ import annotations

import json

from merkhet.core.schemas import FACTS, QUESTIONS, make_table
from merkhet.questions.data_card import card_markdown, make_card, write_card
from merkhet.questions.question_files import QuestionSet, read_questions, write_questions

ABOUT = {
    "filters": [
        {"filter": "sensitive", "task": "completion", "before": 1200, "after": 1100},
        {"filter": "sensitive", "task": "checking", "before": 20, "after": 20},
        {"filter": "review", "task": "completion", "before": 1100, "after": 1099},
    ],
    "ambiguity": [
        {
            "template": "capital/1",
            "relation": "capital",
            "facts": 1500,
            "asked": 1400,
            "ambiguous": 100,
            "scoped": None,
            "dropped": 60,
            "mean_answers": 1.125,
        },
        {
            "template": "a|b/2",
            "relation": "a",
            "facts": 1,
            "asked": 1,
            "ambiguous": 0,
            "dropped": 0,
            "mean_answers": 1.0,
        },
    ],
    "domains": ["physics", "law"],
    "empty_domains": ["music"],
    "remarks": ["One\nremark."],
    "sources": ["pack elements"],
    "review": {"judged_good": 3, "poor_templates": [], "agreement": ["one and two: kappa 0.50 on 1 question"]},
}


def made():
    rows = [
        {"prompt": f"{number} [MASK]", "answers": ["a"], "target": "a", "choices": ["a", "b"], **others}
        for number, others in enumerate(
            [
                {"domain": "law", "split": "test"},
                {"domain": "physics", "split": "train", "task": "checking"},
                {"domain": "law", "split": "train"},
                {},
            ]
        )
    ]
    facts = make_table(FACTS, [{"subject": "s", "predicate": "p", "object": "o"}])
    return QuestionSet(make_table(QUESTIONS, rows), facts=facts, about=ABOUT)


def test_what_is_said_about_questions_is_written_and_read_again(tmp_path):
    write_questions(made(), tmp_path)
    assert read_questions(tmp_path).about == ABOUT
    (tmp_path / "about.json").unlink()
    assert read_questions(tmp_path).about == {}


def test_the_card_counts_and_repeats_what_is_said(tmp_path):
    card = make_card(made(), suite="kmir", seed=3, knowledge=["elements"], names={"capital": "capitals"})
    assert {key: card[key] for key in ABOUT} == ABOUT
    assert card["questions"] == 4 and card["facts"] == 1
    assert card["by_task"] == {"checking": 1, "completion": 3}
    assert card["by_domain"] == {"None": 1, "law": 2, "physics": 1}
    assert card["by_split"] == {"None": 1, "test": 1, "train": 2}
    write_card(card, tmp_path)
    assert json.loads((tmp_path / "card.json").read_text()) == card
    assert (tmp_path / "CARD.md").read_text() == card_markdown(card)


def test_the_card_is_for_people_too():
    text = card_markdown(make_card(made(), suite="kmir", seed=3, knowledge=["elements"], names={}))
    for line in (
        "# kmir: data card",
        "4 questions from 1 fact.",
        "| completion | 3 | 75.0% |",
        "| filter | completion | checking | left out |",
        "| sensitive | 1,200 → 1,100 | 20 → 20 | 100 |",
        "| review | 1,100 → 1,099 |  | 1 |",
        "| template | relation | facts | asked | ambiguous | dropped | mean answers |",
        "| capital/1 | capital | 1,500 | 1,400 | 100 | 60 | 1.12 |",
        "| a\\|b/2 | a | 1 | 1 | 0 | 0 | 1.00 |",
        "- music",
        "- One remark.",
        "- pack elements",
        "- poor templates: none",
    ):
        assert line in text.splitlines(), line
    domains = text.partition("## Domains\n")[2].partition("##")[0]
    assert domains.index("physics") < domains.index("law") < domains.index("None")


def test_a_bare_card_has_no_empty_sections():
    rows = [{"prompt": "[MASK]", "answers": ["a"], "target": "a", "choices": ["a", "b"]}]
    card = make_card(QuestionSet(make_table(QUESTIONS, rows)), suite="own", seed=0, knowledge=[], names={})
    assert "by_split" not in card
    text = card_markdown(card)
    assert [line for line in text.splitlines() if line.startswith("##")] == ["## Tasks"]
    assert text.endswith("|\n")
