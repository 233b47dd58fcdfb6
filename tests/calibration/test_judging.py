"""What is wanted of a probe: where the line is drawn, and the words that say on which side it fell."""

from __future__ import annotations

import numpy as np

from merkhet.calibration._calibration_verdict import (
    BAG,
    MAX_LEAK,
    MODELS,
    REQUIRE_CHANCE,
    REQUIRE_SENSITIVE,
    TRAINED,
    describe_findings,
    describe_verdict,
    detectable_leak,
    judge_score,
    meets_requirement,
)
from merkhet.calibration._world import IN_OTHER_WORDS, MEMORIZED, SETS, WorldTexts

TEXTS = WorldTexts("", "facts in other words", "order is lost.")
GOOD = {
    (MEMORIZED, TRAINED): (0.97, 0.95, 0.99),
    (MEMORIZED, BAG): (0.5, 0.45, 0.55),
    (IN_OTHER_WORDS, TRAINED): (0.6, 0.52, 0.68),
    (IN_OTHER_WORDS, BAG): (0.5, 0.45, 0.55),
}
AT_CHANCE = (0.1, 0.07, 0.13)


def rows_with(**changes):
    """The rows of an honest probe, but for what is changed: ``memorized_trained=(value, low, high)``."""
    rows = []
    for content in SETS:
        for model in MODELS:
            name = f"{content}_{model}".replace(" ", "_")
            numbers = changes.get(name, GOOD.get((content, model), AT_CHANCE))
            score = None if numbers is None else dict(zip(("value", "low", "high"), numbers, strict=True), n=400)
            rows.append(judge_score(content, model, score, 0.1, 400))
    return rows


def test_what_was_memorized_must_be_found_by_the_lower_end() -> None:
    for numbers, well in (
        ((0.95, 0.9, 0.98), True),
        ((0.95, 0.899, 0.98), False),
        ((1.0, 1.0, 1.0), True),
        ((0.0, 0.0, 0.0), False),
    ):
        assert meets_requirement(REQUIRE_SENSITIVE, *numbers, chance=0.1) is well, numbers


NEVER_SHOWN_CASES = (
    (0.1, 0.07, 0.13, True, "at chance"),
    (0.02, 0.01, 0.04, True, "below chance: a model says what it learned of others"),
    (0.0, 0.0, 0.0, True, "never right"),
    (0.13, 0.101, 0.16, True, "just above chance, as one honest probe in 40 is"),
    (0.15, 0.13, 0.17, False, "above chance beyond doubt, though by little"),
    (0.12, 0.05, 0.2, False, "may be chance, but a leak of ten points is not ruled out"),
    (0.35, 0.3, 0.4, False, "a leak"),
    (1.0, 1.0, 1.0, False, "all of it"),
)


def test_what_was_never_shown_must_be_found_no_more_than_by_chance() -> None:
    judged_so = [(*case, meets_requirement(REQUIRE_CHANCE, *case[:3], chance=0.1)) for case in NEVER_SHOWN_CASES]
    assert [case for case in judged_so if case[-1] is not case[3]] == []


def test_a_leak_that_is_said_to_be_seen_is_seen_four_times_in_five() -> None:
    """By simulation, with the interval of a share of so many questions."""
    chance, n, generator = 0.1, 360, np.random.default_rng(0)

    def scored(share):
        value = generator.binomial(n, share) / n
        error = np.sqrt(value * (1 - value) / n)
        return value, value - 1.96 * error, value + 1.96 * error

    error = np.sqrt(chance * (1 - chance) / n)
    row = {"chance": chance, "n": n, "low": chance - 1.96 * error, "high": chance + 1.96 * error}
    leak = detectable_leak(row)
    assert 0 < leak < MAX_LEAK
    seen = np.mean([not meets_requirement(REQUIRE_CHANCE, *scored(chance + leak), chance=chance) for _ in range(4000)])
    missed = np.mean([not meets_requirement(REQUIRE_CHANCE, *scored(chance), chance=chance) for _ in range(4000)])
    assert 0.75 < seen < 0.9 and missed < 0.01


def test_an_honest_probe_passes_and_the_words_say_what_it_found() -> None:
    rows = rows_with()
    assert all(row["passed"] is not False for row in rows)
    assert sum(row["passed"] is True for row in rows) == 5
    said = describe_verdict("rank", "masked", rows)
    assert said.startswith("rank passed on small masked models") and "97.0% [95.0, 99.0]" in said and "10.0%" in said
    told = " ".join(describe_findings(rows, TEXTS, 1.0, 0))
    assert "more than word co-occurrence explains (a bag of words finds 50.0%)" in told
    assert "could not be asked" not in told


WRONG = (
    ("memorized_trained", (0.5, 0.45, 0.55), "Sensitivity: it finds 50.0% [45.0, 55.0] of the memorized content"),
    ("memorized_trained", (0.97, 0.88, 1.0), "at the lower end of the interval too (these are too few facts to show"),
    ("never_shown_trained", (0.4, 0.35, 0.45), "Specificity: it finds 40.0% [35.0, 45.0] of the content never shown"),
    ("never_shown_bag_of_words", (0.4, 0.35, 0.45), "in a bag of words, which was not shown it either"),
    ("memorized_random_weights", (0.4, 0.35, 0.45), "in random weights, which have learned nothing"),
    ("never_shown_random_weights", (0.4, 0.35, 0.45), "in random weights, which have learned nothing"),
    ("never_shown_trained", (0.12, 0.05, 0.21), "too few facts to rule out a leak of 10 points"),
)


def test_each_thing_that_is_wrong_fails_and_is_named() -> None:
    for changed, numbers, named in WRONG:
        rows = rows_with(**{changed: numbers})
        assert sum(row["passed"] is False for row in rows) == 1, changed
        said = describe_verdict("mine", "causal", rows)
        assert said.startswith("FAILED: mine cannot be trusted on causal models. ") and named in said, said


def test_transfer_and_the_bag_of_the_memorized_are_told_and_never_judged() -> None:
    rows = rows_with(in_other_words_trained=(0.0, 0.0, 0.0), memorized_bag_of_words=(1.0, 1.0, 1.0))
    assert all(row["passed"] is not False for row in rows)
    assert "Word co-occurrence explains as much" in " ".join(describe_findings(rows, TEXTS, 1.0, 0))


def test_a_control_that_cannot_be_asked_is_told_and_fails_nothing() -> None:
    rows = rows_with(**{f"{content}_bag_of_words".replace(" ", "_"): None for content in SETS})
    assert all(row["passed"] is not False for row in rows)
    assert "This probe cannot ask a bag of words" in " ".join(describe_findings(rows, TEXTS, 1.0, 0))


def test_less_than_guessing_is_explained() -> None:
    told = " ".join(describe_findings(rows_with(never_shown_trained=(0.02, 0.01, 0.04)), TEXTS, 1.0, 1200))
    assert "is below chance (" in told and "1,200 questions could not be asked" in told
