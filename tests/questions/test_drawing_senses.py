"""A limit on questions that compare senses takes many words, not all questions of a few."""

from __future__ import annotations

from merkhet.core.schemas import QUESTIONS, make_table
from merkhet.questions.sampling import draw_questions


def test_senses_are_drawn_one_by_one_and_other_sets_whole() -> None:
    senses = [
        {
            "suite": "chneval",
            "task": "semantic",
            "prompt": f"{word}{number}[MASK]",
            "choices": [f"{word}[MASK]", f"[MASK]{number}"],
            "answers": [f"{word}[MASK]"],
            "target": f"{word}[MASK]",
            "words": [word],
            "qset": word,
        }
        for word in "甲乙丙丁戊己庚辛壬癸"
        for number in range(10)
    ]
    clozes = [
        {
            "suite": "s",
            "task": "t",
            "prompt": f"{fact} {n} [MASK]",
            "answers": ["a"],
            "target": "a",
            "choices": ["a", "b"],
        }
        | {"qset": f"fact {fact}"}
        for fact in range(10)
        for n in range(5)
    ]
    drawn = draw_questions(make_table(QUESTIONS, [*senses, *clozes]), 20, seed=0).to_pylist()
    words = {row["qset"] for row in drawn if row["task"] == "semantic"}
    facts = {row["qset"] for row in drawn if row["task"] == "t"}
    assert sum(row["task"] == "semantic" for row in drawn) == 20
    assert len(words) > 6
    assert len(facts) == 10 and len(drawn) == 20 + 10 * 5
