"""What a run says in words."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from merkhet.analysis.comparison import Comparison
from merkhet.analysis.comparison_text import describe_comparisons
from merkhet.analysis.findings import summarize_findings

ABOUT = {"easy": "easy things", "hard": "hard things"}


def find(bench, baselines=(), scores=None):
    return summarize_findings(
        scores=bench.scores() if scores is None else scores,
        answers=bench.answers,
        questions=bench.questions,
        clusters=bench.clusters,
        headline=bench.headline,
        about=ABOUT,
        baselines=set(baselines),
        seed=0,
    )


def number(name):
    return int(name[-2:])


def easy(name):
    return number(name) % 2 == 0


ALL_ASKED = "Every question could be asked of every model."


def test_a_model_that_knows_one_thing_and_not_another(bench):
    found = find(bench.answer("scholar", lambda name: easy(name) or number(name) % 8 == 1))
    assert found["sentences"] == [
        "scholar scores highest on easy things (100%); it is not significantly above chance on hard things (25%, "
        "chance 25%).",
        ALL_ASKED,
    ]
    assert found["comparisons"] == []
    assert found["unusable"] == []


def test_a_model_that_knows_everything(bench):
    (first, *rest) = find(bench.answer("sage", lambda name: True))["sentences"]
    assert first == "sage scores highest on easy things (100%) and hard things (100%)."
    assert rest == [ALL_ASKED]


def test_a_model_at_chance_is_said_to_guess(bench):
    found = find(bench.answer("coin", lambda name: number(name) // 2 % 4 == 0))
    assert found["sentences"] == [
        "coin is not significantly above chance on completion in any relation.",
        "coin does not differ significantly from chance on completion and checking.",
        ALL_ASKED,
    ]


def test_a_model_is_spoken_of_by_its_first_method_alone(bench):
    bench.answer("two-ways", lambda name: True).answer("two-ways", lambda name: number(name) < 3, method="sum")
    assert find(bench)["sentences"][0] == "two-ways scores highest on easy things (100%) and hard things (100%)."


def test_a_group_column_of_any_name_is_not_taken_for_the_whole(bench):
    bench.answer("sage", lambda name: True)
    scores = bench.scores()
    row = {**next(row for row in scores if row["relation"] is None), "value": 0.2, "low": 0.1, "high": 0.4, "rule": "x"}
    assert not [line for line in find(bench, scores=[*scores, row])["sentences"] if "chance" in line]


def test_who_is_ahead_and_who_is_not_clearly(bench):
    bench.answer("strong", lambda name: True).answer("weak", lambda name: number(name) < 4 and easy(name))
    found = find(bench)
    assert "strong is ahead of weak on completion by 95.0 points (paired, p < 0.001)." in found["sentences"]
    assert [one["model"] for one in found["comparisons"]] == ["strong", "strong"]
    asked = {"task", "metric", "model", "other", "n", "facts", "group_column", "group"}
    sizes = {"difference", "low", "high", "effect", "odds", "detectable", "trainings"}
    assert set(found["comparisons"][0]) == {*asked, *sizes, "p", "p_raw", "q", "mcnemar"}
    json.dumps(found, allow_nan=False)


def test_many_models_are_told_of_in_few_sentences(bench):
    for place in range(5):
        bench.answer(f"alike {place}", lambda name: number(name) < 10)
    bench.answer("strong", lambda name: True)
    found = find(bench)
    said = [line for line in found["sentences"] if "ahead" in line or "do not differ" in line]
    pairs = len(found["comparisons"])
    clear = sum(one["p"] < 0.05 for one in found["comparisons"])
    assert pairs == 30 and 0 < clear < pairs
    assert said[-1].startswith(
        f"In {pairs - clear} of {pairs} comparisons two models do not differ significantly; without correction"
    )
    sizes = [round(100 * one["detectable"]) for one in found["comparisons"] if one["p"] >= 0.05]
    least, most = min(sizes), max(sizes)
    assert f"the tests have 80% power to detect differences of {least} to {most} points" in said[-1]
    assert all(line.startswith("strong is ahead of alike") for line in said[: min(clear, 8)])
    assert len(said) <= 10


def test_models_that_do_not_differ_clearly(bench):
    bench.answer("one", lambda name: number(name) < 10).answer("two", lambda name: number(name) < 11)
    found = find(bench)
    (line,) = [line for line in found["sentences"] if line.startswith("On completion")]
    points = round(100 * found["comparisons"][0]["detectable"])
    assert line == (
        "On completion, two and one do not differ significantly (2.5 points, paired, p = 1.000); without correction "
        f"the test has 80% power to detect a difference of {points} points."
    )


ALIKE = Comparison("t", "accuracy", "a", "b", 0.02, -0.01, 0.05, 0.3, 400, p_raw=0.3, detectable=0.0412, facts=200)


def test_what_could_have_been_found_is_told_once_for_a_pair_and_task():
    (alone,) = describe_comparisons([ALIKE])
    assert alone == (
        "On t, a and b do not differ significantly (2.0 points, paired, p = 0.300); the test has 80% power to "
        "detect a difference of 4.1 points."
    )
    first, second, other = describe_comparisons(
        [ALIKE, replace(ALIKE, metric="mrr"), replace(ALIKE, other="c", detectable=0.005)]
    )
    assert "; without correction the test has 80% power to detect a difference of 4.1 points" in first
    assert second == "On t, a and b do not differ significantly (2.0 points, paired, p = 0.300)."
    assert "80% power to detect a difference of 0.5 points" in other


def test_what_is_not_known_is_not_told():
    (old,) = describe_comparisons([replace(ALIKE, detectable=None, facts=None)])
    assert old == "On t, a and b do not differ significantly (2.0 points, paired, p = 0.300)."
    (few,) = describe_comparisons([replace(ALIKE, detectable=None, facts=5)])
    assert few.endswith("p = 0.300); 5 facts are too few to detect a difference.")
    (clear,) = describe_comparisons([replace(ALIKE, p=0.01)])
    assert clear == "a is ahead of b on t by 2.0 points (paired, p = 0.010)."


def test_a_difference_of_ranks_is_not_told_in_points():
    ranks = replace(ALIKE, metric="mean-rank", difference=1.25, detectable=3.0)
    assert describe_comparisons([ranks]) == [
        "On t, a and b do not differ significantly (1.25 in mean-rank, paired, p = 0.300)."
    ]


@pytest.mark.parametrize(
    ("reason", "kind"),
    [
        ("too long: 600 tokens where the model has 512", "too long for the model"),
        ("the candidate 'x' holds a token that this model does not know", "a candidate holds an unknown token"),
        ("the candidate 'x' has no token", "a candidate has no token"),
        ("something else", "something else"),
    ],
)
def test_what_could_not_be_asked_is_counted_by_reason(bench, reason, kind):
    bench.answer("one", lambda name: True, unusable=lambda name: reason if number(name) < 3 else None)
    found = find(bench)
    assert found["unusable"] == [{"model": "one", "reason": kind, "count": 6}]
    assert found["sentences"][-1] == f"6 answers were unusable and left out of the scores: 6 of one ({kind})."


def test_one_unusable_answer_and_many_kinds(make_bench):
    single = make_bench({"completion": 4}).answer(
        "one", easy, unusable=lambda n: "too long" if number(n) == 1 else None
    )
    assert find(single)["sentences"][-1].startswith("1 answer was unusable")
    many = make_bench({"completion": 8}).answer("one", easy, unusable=lambda name: f"reason {name}")
    assert find(many)["sentences"][-1].startswith("8 answers were unusable")
    assert find(many)["sentences"][-1].endswith("and 5 more kinds.")


def test_baselines_are_neither_compared_nor_spoken_of(bench):
    bench.answer("frequency", lambda name: True).answer("random", lambda name: False)
    found = find(bench, baselines=["frequency", "random"])
    assert found == {"sentences": [ALL_ASKED], "comparisons": [], "unusable": []}


def test_one_question_says_nothing_of_knowledge(make_bench):
    found = find(make_bench({"completion": 1}).answer("one", lambda name: True).answer("two", lambda name: False))
    assert found["sentences"] == ["Completion asks about a single fact, so its score has no interval.", ALL_ASKED]
    both = find(make_bench({"completion": 1, "checking": 1, "order": 9}).answer("one", lambda name: True))
    assert "Completion and checking ask about a single fact, so their scores have no interval." in both["sentences"]


def test_nothing_asked_nothing_said(make_bench):
    assert find(make_bench({"completion": 2}), scores=[])["sentences"] == [ALL_ASKED]
