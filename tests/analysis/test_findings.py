"""What a run says in words."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from statistics import NormalDist

import numpy as np
import pytest

from merkhet.analysis.chance_findings import judge
from merkhet.analysis.finding_text import render
from merkhet.analysis.finding_types import FEW, Finding, Kind, Verdict
from merkhet.analysis.findings import summarize_findings
from merkhet.metrics.bootstrap import clustered_interval
from merkhet.metrics.metrics import get_metric

ABOUT = {"easy": "easy things", "hard": "hard things"}


def find(bench, baselines=(), scores=None, **changes):
    found = summarize_findings(
        scores=bench.scores() if scores is None else scores,
        answers=bench.answers,
        questions=bench.questions,
        clusters=bench.clusters,
        headline=bench.headline,
        about=ABOUT,
        baselines=set(baselines),
        seed=0,
        **changes,
    )
    stored = json.loads(json.dumps(found["findings"], allow_nan=False))
    assert render([Finding.from_json(row) for row in stored]) == found["sentences"]
    return found


def of_kind(found, kind):
    return [row for row in map(Finding.from_json, found["findings"]) if row.kind is kind]


def number(name):
    return int(name[-2:])


def easy(name):
    return number(name) % 2 == 0


ALL_ASKED = "Every question could be asked of every model."


def test_a_model_that_knows_one_thing_and_not_another(bench):
    found = find(bench.answer("scholar", lambda name: easy(name) or number(name) % 8 == 1))
    whole, asked, groups, _ = found["sentences"]
    assert (
        whole.startswith("scholar is significantly above chance on completion (62.5% [") and "checking (65.0%" in whole
    )
    assert groups == (
        "On completion, scholar is significantly above chance in 1 of 2 relations: easy things (100.0%, chance 25.0%); "
        "it does not differ significantly from chance in 1: hard things (25.0%, chance 25.0%)."
    )
    assert asked == ALL_ASKED
    assert found["comparisons"] == []
    assert found["unusable"] == []


def test_a_model_that_knows_everything(bench):
    found = find(bench.answer("sage", lambda name: True))
    whole, asked, groups, _ = found["sentences"]
    assert whole == (
        "sage is significantly above chance on completion (100.0% [91.2, 100.0], chance 25.0%) and checking (100.0% "
        "[83.2, 100.0], chance 25.0%)."
    )
    assert groups == (
        "On completion, sage is significantly above chance in 2 of 2 relations: easy things (100.0%, chance 25.0%) and "
        "hard things (100.0%, chance 25.0%)."
    )
    assert asked == ALL_ASKED


def test_a_perfect_model_is_never_said_not_to_know(make_bench):
    """Few questions, or a chance level near 1, make its intervals touch chance: then there is no verdict."""
    for size in (1, 2, 5, 9, 10, 19, 20, 40):
        for candidates in (("a", "b"), ("a", "b", "c", "d"), ("a",)):
            bench = make_bench({"completion": size}, candidates).answer("sage", lambda name: True)
            found = find(bench)
            told = " ".join(found["sentences"])
            assert " not " not in told and "below" not in told, (size, candidates)
            verdicts = {row.verdict for row in of_kind(found, Kind.SCORE) + of_kind(found, Kind.GROUP)}
            assert verdicts <= {Verdict.ABOVE_CHANCE, Verdict.NONE}, (size, candidates)
            assert (Verdict.NONE in verdicts) == (size < 20 or candidates == ("a",)), (size, candidates)


def test_a_model_at_chance_is_said_to_guess(bench):
    found = find(bench.answer("coin", lambda name: number(name) // 2 % 4 == 0))
    whole, asked, groups, _ = found["sentences"]
    assert whole.startswith("coin does not differ significantly from chance on completion (25.0% [")
    assert groups == (
        "On completion, coin does not differ significantly from chance in 2 of 2 relations, lowest on easy things "
        "(25.0%, chance 25.0%)."
    )
    assert asked == ALL_ASKED


def test_a_model_that_is_always_wrong_is_below_chance_and_no_more(bench):
    whole, _, groups, _ = find(bench.answer("fool", lambda name: False))["sentences"]
    assert whole.startswith("fool is significantly below chance on completion (0.0% [0.0, 8.8], chance 25.0%)")
    assert "below chance in 2 of 2 relations, lowest on easy things (0.0%, chance 25.0%)" in groups
    assert "prefer" not in whole + groups


def test_verdicts_name_the_method_that_they_are_about(bench):
    """By one method the model knows everything, by the other nothing: no sentence joins the two."""
    bench.answer("two-ways", lambda name: True).answer("two-ways", lambda name: False, method="sum")
    found = find(bench)
    whole, _, groups, *_ = found["sentences"]
    above, below = whole.removesuffix(".").split("; it ")
    assert "completion by rank, mean (100.0% [" in above and "sum" not in above and "0.0% [0.0" not in above
    assert "completion by rank, sum (0.0% [0.0, 8.8], chance 25.0%)" in below and "mean" not in below
    assert groups.startswith("On completion, two-ways (rank, mean) is significantly above chance in 2 of 2 relations")
    rows = of_kind(found, Kind.SCORE)
    assert {(row.task, row.method, row.verdict) for row in rows} == {
        (task, method, verdict)
        for task in ("completion", "checking")
        for method, verdict in (("mean", Verdict.ABOVE_CHANCE), ("sum", Verdict.BELOW_CHANCE))
    }


def test_methods_with_the_same_verdict_are_counted(bench):
    for method in ("mean", "sum", "max"):
        bench.answer("sage", lambda name: True, method=method)
    bench.answer("sage", lambda name: False, method="first").answer("half", lambda name: number(name) < 20)
    whole = find(bench)["sentences"][0]
    three = "completion by 3 of 4 methods, rank, mean, rank, sum and rank, max (100.0%, chance 25.0%)"
    assert three.replace("rank, ", "") in whole.replace("rank, ", "")
    compared = [text for text in find(bench)["sentences"] if "sage is ahead of half" in text]
    assert len(compared) == 1 and "(rank, mean; paired, p" in compared[0]


def test_compared_methods_that_differ_are_both_named(bench):
    bench.answer("one", lambda name: True).answer("one", lambda name: False, method="sum")
    bench.answer("two", lambda name: False, method="sum")
    (line,) = [text for text in find(bench)["sentences"] if text.startswith("one is ahead of two on completion")]
    assert "(rank, mean against sum; paired, p < 0.001)" in line


def test_metrics_of_one_task_are_named(bench):
    bench.answer("one", lambda name: True).answer("two", lambda name: False)
    bench.headline = [("completion", get_metric("r@1")), ("completion", get_metric("mrr"))]
    sentences = find(bench)["sentences"]
    assert sentences[0].startswith("one is significantly above chance on completion R@1 (100.0% [")
    assert "completion MRR (100.0%" in sentences[0]
    assert any("ahead of two on completion R@1 by" in text for text in sentences)
    assert any("ahead of two on completion MRR by" in text for text in sentences)


def test_a_model_that_ties_everything_is_not_ahead_of_one_that_guesses(make_bench):
    """The expectation over ties is always a quarter; a guesser that is always wrong may just have bad luck."""
    for size, verdict in ((6, Verdict.NO_DIFFERENCE), (40, Verdict.AHEAD)):
        bench = make_bench({"checking": size}).answer("fool", lambda name: False).answer("constant", lambda name: True)
        for row in bench.answers:
            if row["model"] == "constant":
                row.update(gold_ranks=[2.5], gold_ties=[4])
        found = find(bench)
        (one,) = of_kind(found, Kind.COMPARISON)
        assert (one.model, one.value, one.verdict) == ("constant", 0.25, verdict)
        # The constant scorer has a binomial number of right answers, and the fool has none.
        luck = 2.0 * NormalDist().cdf(-0.25 / math.sqrt(0.25 * 0.75 / size))
        assert one.p == pytest.approx(max(luck, found["comparisons"][0]["p_raw"]))
        assert (one.p >= 0.05) == (verdict is Verdict.NO_DIFFERENCE)


def test_what_holds_for_all_models_is_said_once():
    few = {"task": None, "group_column": "rule+premises", "count": 48, "total": 60, "reason": FEW}
    rows = [Finding(Kind.DESIGN, Verdict.NONE, model=name, **few) for name in ("a", "b", "c")]
    (all_alike,) = render(rows)
    assert all_alike.endswith("48 of 60 premise settings of rules for each of 3 models.")
    (one_other,) = render([*rows[:2], replace(rows[2], count=3)])
    assert "for each of 2 models" in one_other and "3 of 60 premise settings of rules for c" in one_other


def test_a_random_chooser_is_rarely_called_below_chance_by_a_skewed_metric():
    """Of 800 candidates, one guess in hundreds makes the mean reciprocal rank; without it the interval is short."""
    generator, chance, facts = np.random.default_rng(0), float((1 / np.arange(1, 801)).mean()), 40
    naive = called = 0
    for seed in range(100):
        ranks = 1.0 / generator.integers(1, 801, size=facts)
        interval = clustered_interval(ranks, np.arange(facts), seed=seed, resamples=500)
        naive += interval.high < chance
        numbers = (interval.value, interval.low, interval.high, chance, facts, facts)
        called += judge(*numbers, get_metric("mrr"))[0] is Verdict.BELOW_CHANCE
    assert naive > 10 and called <= 5


def test_models_are_compared_by_a_probe_that_has_answers(bench):
    """Neither can be asked by the first probe: what counts as wrong there says nothing of the two."""
    for model, right in (("one", True), ("two", False)):
        bench.answer(model, lambda name, right=right: right, unusable=lambda name: "it has no mask", method="mask")
        for row in bench.answers:
            if row["method"] == "mask":
                row["probe"] = "fill"
        bench.answer(model, lambda name, right=right: right)
    found = find(bench, unusable_is_wrong=True)
    assert {(one.probe, one.value) for one in of_kind(found, Kind.COMPARISON)} == {("rank", 1.0)}


def test_a_metric_that_is_better_if_lower_is_described_by_better_and_worse(bench):
    bench.answer("one", lambda name: number(name) != 1).answer("two", lambda name: number(name) < 1)
    bench.headline = [("completion", get_metric("mean-rank"))]
    first, second, compared, _, groups, _ = find(bench, scores=bench.scores("mean-rank"))["sentences"]
    assert first.startswith("one is significantly better than chance on completion (1.02 [1")
    assert groups.startswith(
        "On completion, one is significantly better than chance in 2 of 2 relations: easy things (1"
    )
    assert second.startswith("two is significantly better than chance on completion (1.98 [")
    assert compared.startswith("one is ahead of two on completion by 0.95 in mean-rank (paired, p < 0.001)")


def test_a_group_column_of_any_name_is_not_taken_for_the_whole(bench):
    bench.answer("sage", lambda name: True)
    scores = bench.scores()
    row = {**next(row for row in scores if row["relation"] is None), "value": 0.2, "low": 0.1, "high": 0.4, "rule": "x"}
    told = find(bench, scores=[*scores, row])["sentences"]
    assert not [line for line in told if "not differ" in line or "below" in line]


def test_who_is_ahead_and_who_is_not_clearly(bench):
    bench.answer("strong", lambda name: True).answer("weak", lambda name: number(name) < 4 and easy(name))
    found = find(bench)
    assert "strong is ahead of weak on completion by 95.0 points (paired, p < 0.001)." in found["sentences"]
    assert [one["model"] for one in found["comparisons"]] == ["strong", "strong"]
    asked = {"task", "metric", "model", "other", "n", "facts", "group_column", "group"}
    sizes = {"difference", "low", "high", "effect", "odds", "detectable", "trainings"}
    assert of_kind(found, Kind.COMPARISON)[0].verdict is Verdict.AHEAD
    assert set(found["comparisons"][0]) == {*asked, *sizes, "p", "p_raw", "q", "mcnemar"}
    json.dumps(found, allow_nan=False)


def test_many_models_are_told_of_in_few_sentences(bench):
    for place in range(5):
        bench.answer(f"alike {place}", lambda name, place=place: number(name) < 10 + place)
    bench.answer("strong", lambda name: True)
    found = find(bench)
    said = [line for line in found["sentences"] if "ahead" in line or " do not differ" in line]
    pairs = len(found["comparisons"])
    clear = sum(one["p"] < 0.05 for one in found["comparisons"])
    assert pairs == 30 and 0 < clear < pairs
    assert said[-1].startswith(
        f"In {pairs - clear} of {pairs} comparisons two models do not differ significantly; without correction"
    )
    sizes = [round(100 * one["detectable"]) for one in found["comparisons"] if one["p"] >= 0.05 and one["detectable"]]
    least, most = min(sizes), max(sizes)
    assert f"the tests have 80% power to detect differences of {least} to {most} points" in said[-1] or (
        f"to {most} points" in said[-1]
    )
    assert all(line.startswith("strong is ahead of alike") for line in said[: min(clear, 8)])
    assert len(said) <= 10


def test_equal_models_are_said_to_be_equal(bench):
    bench.answer("one", lambda name: number(name) < 10).answer("two", lambda name: number(name) < 10)
    found = find(bench)
    assert "On completion, one and two score the same on every question (paired)." in found["sentences"]
    assert {row.verdict for row in of_kind(found, Kind.COMPARISON)} == {Verdict.EQUAL}
    for place in range(3):
        bench.answer(f"more {place}", lambda name: number(name) < 10)
    assert "In 20 of 20 comparisons two models score the same on every question." in find(bench)["sentences"]


def test_models_that_do_not_differ_clearly(bench):
    bench.answer("one", lambda name: number(name) < 10).answer("two", lambda name: number(name) < 11)
    found = find(bench)
    (line,) = [line for line in found["sentences"] if "do not differ" in line and "On completion" in line]
    points = round(100 * found["comparisons"][0]["detectable"])
    assert line == (
        "On completion, two and one do not differ significantly (2.5 points, paired, p = 1.000); without correction "
        f"the test has 80% power to detect a difference of {points} points."
    )


ALIKE = Finding(
    *(Kind.COMPARISON, Verdict.NO_DIFFERENCE),
    **{"task": "t", "metric": "accuracy", "model": "a", "other": "b", "probe": "rank", "method": "mean"},
    **{"value": 0.02, "low": -0.01, "high": 0.05, "p": 0.3, "n": 400, "detectable": 0.0412, "facts": 200},
)


def test_what_could_have_been_found_is_told_once_for_a_pair_and_task():
    (alone,) = render([ALIKE])
    assert alone == (
        "On t, a and b do not differ significantly (2.0 points, paired, p = 0.300); the test has 80% power to "
        "detect a difference of 4.1 points."
    )
    first, second, other = render([ALIKE, replace(ALIKE, metric="mrr"), replace(ALIKE, other="c", detectable=0.005)])
    assert "; without correction the test has 80% power to detect a difference of 4.1 points" in first
    assert second == "On t MRR, a and b do not differ significantly (2.0 points, paired, p = 0.300)."
    assert "80% power to detect a difference of 0.5 points" in other


def test_what_is_not_known_is_not_told():
    (old,) = render([replace(ALIKE, detectable=None, facts=None)])
    assert old == "On t, a and b do not differ significantly (2.0 points, paired, p = 0.300)."
    (few,) = render([replace(ALIKE, detectable=None, facts=5)])
    assert few.endswith("p = 0.300); 5 facts are too few to detect a difference.")
    (clear,) = render([replace(ALIKE, p=0.01, verdict=Verdict.AHEAD)])
    assert clear == "a is ahead of b on t by 2.0 points (paired, p = 0.010)."


def test_a_difference_of_ranks_is_not_told_in_points():
    ranks = replace(ALIKE, metric="mean-rank", value=1.25, detectable=3.0, share=False)
    assert render([ranks]) == ["On t, a and b do not differ significantly (1.25 in mean-rank, paired, p = 0.300)."]


def test_grammar_of_one():
    """Every count in a sentence is 1; no noun or verb that goes with it is in the plural."""
    one = {"task": "t", "group_column": "relation", "count": 1, "total": 1, "reason": FEW}
    findings = [
        Finding(Kind.DESIGN, Verdict.NONE, **one),
        Finding(Kind.DESIGN, Verdict.NONE, task="u", n=1, reason=FEW),
        replace(ALIKE, facts=1, detectable=None, verdict=Verdict.NO_DIFFERENCE),
        Finding(Kind.TRAININGS, Verdict.NO_DIFFERENCE, model="a", other="b", task="t", value=0.1, trainings=1),
        Finding(Kind.UNUSABLE, Verdict.NONE, model="a", n=1, reason="too long"),
    ]
    told = " ".join([*render(findings), *render([Finding(Kind.UNUSABLE, Verdict.NONE, model="a", count=0, total=1)])])
    for noun in ("relations", "facts", "trainings", "answers", "were", "1 questions", "facts are"):
        assert noun not in told, noun
    for text in ("1 of 1 relation of t", "1 fact is too few", "over 1 training", "1 answer was", "0 of 1 question"):
        assert text in told, text


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
    assert f"6 answers were unusable and left out of the scores: 6 of one ({kind})." in found["sentences"]


def test_one_unusable_answer_and_many_kinds(make_bench):
    single = make_bench({"completion": 4}).answer(
        "one", easy, unusable=lambda n: "too long" if number(n) == 1 else None
    )
    assert find(single)["sentences"][1].startswith("1 answer was unusable")
    many = make_bench({"completion": 8}).answer("one", easy, unusable=lambda name: f"reason {name}")
    assert find(many)["sentences"][-1].startswith("8 answers were unusable")
    assert find(many)["sentences"][-1].endswith("and 5 more kinds.")


def test_baselines_are_neither_compared_nor_judged(bench):
    bench.answer("frequency", easy).answer("random", lambda name: False)
    found = find(bench, baselines=["frequency", "random"])
    assert {row.kind for row in map(Finding.from_json, found["findings"])} == {Kind.DESIGN}
    assert (found["comparisons"], found["unusable"]) == ([], [])


def test_a_baseline_near_the_ceiling_is_announced(bench):
    bench.answer("frequency", lambda name: number(name) != 1).answer("random", lambda name: False)
    assert find(bench, baselines=["frequency", "random"])["sentences"] == [
        "The baseline frequency scores 97.5% on completion and 95.0% on checking: a high score there is no evidence of "
        "knowledge."
    ]
    some = type(bench)({"completion": 40, "checking": 20})
    some.answer("frequency", easy).answer("sage", lambda name: True)
    assert find(some, baselines=["frequency"])["sentences"][0] == (
        "The baseline frequency scores at least 95% on 1 of 2 relations of completion (easy things 100.0%) and at "
        "least 95% on 1 of 2 relations of checking (easy things 100.0%): a high score there is no evidence of "
        "knowledge."
    )


def test_a_chance_level_near_the_ceiling_is_announced(make_bench):
    bench = make_bench({"completion": 30}, ("a",)).answer("sage", lambda name: True)
    told = find(bench)["sentences"]
    assert told[0] == "Guessing scores 100.0% on completion: a high score there is no evidence of knowledge."
    assert told[1].startswith("Even a perfect score would be within chance on completion (30 questions, chance 100.0%)")
    bench.headline = [("completion", get_metric("rank-index"))]
    assert find(bench, scores=[])["sentences"] == [
        "All options are right in 30 of 30 questions of completion: a high score there is no evidence of knowledge."
    ]


def test_groups_too_small_to_read_are_counted_and_get_no_verdict(make_bench):
    found = find(make_bench({"completion": 19, "checking": 3}).answer("one", lambda name: True))
    assert found["sentences"][0] == (
        "Fewer than 10 questions, too few for a verdict: checking (3) and 1 of 2 relations of completion."
    )
    verdicts = {(row.task, row.group): row.verdict for row in of_kind(found, Kind.GROUP)}
    assert verdicts["completion", "easy"] is Verdict.ABOVE_CHANCE
    assert {verdict for key, verdict in verdicts.items() if key != ("completion", "easy")} == {Verdict.NONE}


def test_one_question_says_nothing_of_knowledge(make_bench):
    found = find(make_bench({"completion": 1}).answer("one", lambda name: True).answer("two", lambda name: False))
    assert found["sentences"] == ["Completion asks about a single fact, so its score has no interval.", ALL_ASKED]
    both = find(make_bench({"completion": 1, "checking": 1, "order": 12}).answer("one", lambda name: True))
    assert "Completion and checking ask about a single fact, so their scores have no interval." in both["sentences"]


def test_questions_that_were_not_asked_are_counted(bench):
    bench.answer("one", lambda name: True)
    bench.answers = [row for row in bench.answers if not row["question_id"].startswith("checking")]
    assert find(bench)["sentences"][1] == "Every answer is usable; one was asked 40 of 60 questions."


def test_nothing_asked_nothing_said(make_bench):
    assert find(make_bench({"completion": 2}), scores=[])["sentences"] == []
