"""Models against their controls, and liked positions, on answers whose truth is known."""

from __future__ import annotations

import random
from collections import Counter

import numpy as np
import pytest
from all_cases import check_all

from merkhet.analysis.control_scores import compare_with_controls
from merkhet.analysis.finding_text import render
from merkhet.analysis.finding_types import Finding, Kind, Verdict
from merkhet.analysis.position_preference import ShownChoice, find_preferences, preferred_position, shown_positions
from merkhet.core.records import Question
from merkhet.core.schemas import ANSWERS, make_table
from merkhet.metrics.metrics import get_metric

ACCURACY = get_metric("accuracy")


def questions_of(count: int, task: str = "t") -> dict[str, Question]:
    options = ("a", "b", "c", "d")
    return {
        f"q{number}": Question(f"q{number}", task, f"{number} [MASK]", (right := options[number % 4],), right, options)
        for number in range(count)
    }


def answers_of(questions: dict[str, Question], right: set[str], model: str = "m", probe: str = "rank"):
    rows = []
    for name, question in questions.items():
        rank = 1.0 if name in right else 2.0
        ranked = [{"candidate": "x", "score": 1.0}, {"candidate": "y", "score": 0.0}]
        row = {"question_id": name, "model": model, "probe": probe, "method": "sum", "prediction": "x"}
        golds = {"golds": [question.target], "gold_ranks": [rank], "gold_ties": [1]}
        rows.append({**row, **golds, "ranked": ranked})
    return make_table(ANSWERS, rows)


def share(names: list[str], part: float) -> set[str]:
    return set(names[: round(part * len(names))])


def compared(model: float, **controls: float) -> dict[str, Finding]:
    questions = questions_of(200)
    names = sorted(questions)
    random.Random(0).shuffle(names)
    # A control is right on other questions than the model, as far as there are any.
    tables = {
        control.replace("_", "-"): answers_of(questions, share(names[::-1], part)) for control, part in controls.items()
    }
    clusters = {name: name for name in questions}
    answers = answers_of(questions, share(names, model))
    found = compare_with_controls(answers, tables, questions, clusters, [("t", ACCURACY)], seed=0)
    return {str(finding.control): finding for finding in found}


def test_a_model_is_compared_with_each_of_its_controls() -> None:
    found = compared(0.6, association=0.3, subject_blind=0.9)
    assert found["association"].verdict is Verdict.AHEAD and found["subject-blind"].verdict is Verdict.BEHIND
    assert found["association"].value == pytest.approx(0.3) and found["association"].reference == pytest.approx(0.3)
    assert found["subject-blind"].value == pytest.approx(-0.3)
    assert compared(0.5, association=0.52)["association"].verdict is Verdict.NO_DIFFERENCE
    assert render(list(found.values())) == [
        "m does better than its own word association on t (60.0% against 30.0%, paired, p < 0.001).",
        "m does worse with the subject than with the subject hidden on t (60.0% against 90.0%, paired, p < 0.001).",
    ]


def test_p_values_are_corrected_over_all_controls() -> None:
    alone = compared(0.6, association=0.48)["association"]
    both = compared(0.6, association=0.48, subject_blind=0.6)["association"]
    assert alone.p is not None and both.p == pytest.approx(2 * alone.p)


def test_association_is_compared_by_every_probe_of_a_model() -> None:
    """Association is asked by one probe, whatever the model is asked by."""
    questions = questions_of(40)
    clusters = {name: name for name in questions}
    written = answers_of(questions, set(questions), probe="write")
    association = {"association": answers_of(questions, set())}
    (finding,) = compare_with_controls(written, association, questions, clusters, [("t", ACCURACY)], seed=0)
    assert (finding.probe, finding.verdict, finding.value) == ("write", Verdict.AHEAD, 1.0)
    blind = {"subject-blind": answers_of(questions, set())}
    assert compare_with_controls(written, blind, questions, clusters, [("t", ACCURACY)], seed=0) == []


def test_few_questions_support_no_verdict() -> None:
    questions = questions_of(9)
    clusters = {name: name for name in questions}
    tables = {"association": answers_of(questions, set())}
    answers = answers_of(questions, set(questions))
    (finding,) = compare_with_controls(answers, tables, questions, clusters, [("t", ACCURACY)], seed=0)
    assert finding.verdict is Verdict.NONE and finding.reason and render([finding]) == []


LISTS = {
    ("Among iron, gold, tin, and lead, it is [MASK].", ("tin", "gold", "lead", "iron")): [
        "iron",
        "gold",
        "tin",
        "lead",
    ],
    ("Choose one of a cat, cat food, or dog: [MASK].", ("cat food", "dog", "a cat")): ["a cat", "cat food", "dog"],
    ("It is [MASK].", ("tin", "gold", "lead")): None,
    ("Yes or no: [MASK].", ("Yes", "no")): None,
}


def test_positions_are_those_of_the_listed_options() -> None:
    def check(prompt: str, options: tuple[str, ...]) -> None:
        positions = shown_positions(Question("q", "t", prompt, options[:1], options[0], options))
        expected = LISTS[prompt, options]
        assert (positions if positions is None else sorted(positions, key=positions.__getitem__)) == expected

    check_all(check, list(LISTS))


def draw_choices(seed: int, count: int, liking: float, accuracy: float, repeats: int = 1) -> list[ShownChoice]:
    """Choices of a model that chooses the first option with probability ``liking``, else is right or errs at random."""
    draw = random.Random(seed)
    choices = []
    for number in range(count):
        right = draw.randrange(4)
        chosen = right if draw.random() < accuracy else draw.choice([place for place in range(4) if place != right])
        chosen = 0 if draw.random() < liking else chosen
        choices += [ShownChoice(f"{number}", chosen, right, 4)] * repeats
    return choices


def test_a_liking_is_found_and_its_position_named() -> None:
    position, expected, p = preferred_position(draw_choices(0, 200, 0.3, 0.4), 0)
    assert position == 0 and p < 0.001 and 0.2 < expected < 0.45
    choices = draw_choices(0, 200, 0.0, 0.4)
    counts = Counter(choice.chosen for choice in choices)
    wrong = [choice for choice in choices if choice.chosen != choice.right]
    position, expected, _ = preferred_position(choices, 0)
    right = sum(choice.chosen == choice.right == position for choice in choices)
    assert expected == pytest.approx((right + sum(choice.right != position for choice in wrong) / 3) / 200)
    assert counts[position] / 200 > expected


def test_without_a_liking_one_test_in_twenty_is_significant() -> None:
    """Also if each choice is repeated: choices among options in one order are permuted together."""

    def check(repeats: int) -> None:
        p_values = [preferred_position(draw_choices(seed, 40, 0.0, 0.4, repeats), seed)[2] for seed in range(100)]
        assert np.mean(np.array(p_values) < 0.05) <= 0.1
        assert np.mean(p_values) == pytest.approx(0.5, abs=0.08)

    check_all(check, [1, 5])


def test_liked_positions_become_findings_and_sentences() -> None:
    options, questions, rows = ("iron", "gold", "tin", "lead"), {}, []
    draw = random.Random(3)
    for number in range(100):
        order = draw.sample(options, 4)
        prompt = f"{number}: of {', '.join(order)} it is [MASK]."
        name, right = f"q{number}", draw.choice(order)
        questions[name] = Question(name, "odd", prompt, (right,), right, options)
        for model, chosen in (("first", order[0]), ("random", draw.choice(order)), ("knows", right)):
            rows.append({"question_id": name, "model": model, "probe": "rank", "method": "sum", "prediction": chosen})
    found = find_preferences(rows, questions, {name: name for name in questions}, seed=0)
    verdicts = {finding.model: finding.verdict for finding in found}
    assert verdicts == {"first": Verdict.LIKED, "random": Verdict.NO_DIFFERENCE}
    (liked,) = [finding for finding in found if finding.verdict is Verdict.LIKED]
    assert (liked.kind, liked.group, liked.value, liked.n) == (Kind.POSITION, "first", 1.0, 100)
    (sentence,) = render(found)
    assert sentence.startswith("first likes the first of the options that odd shows: 100.0% of its choices, where ")
    assert Finding.from_json(liked.as_json()) == liked
