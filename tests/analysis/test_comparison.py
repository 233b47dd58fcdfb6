"""Models compared on the same questions: who is ahead, by how much, and how sure that is."""

from __future__ import annotations

import json
import random
from dataclasses import asdict, replace

import numpy as np
import pytest
from statsmodels.stats.contingency_tables import mcnemar
from statsmodels.stats.multitest import multipletests

from merkhet.analysis.comparison import Comparison, compare_models, correct_comparisons
from merkhet.metrics.metrics import get_metric


def compare(bench, headline=None):
    return compare_models(bench.answers, bench.questions, bench.clusters, headline or bench.headline, seed=0)


def number(name):
    return int(name[-2:])


def holm(p_values):
    """Each p-value times the number of hypotheses not yet rejected, made monotone: by hand, over all pairs."""
    ordered = sorted(p_values)
    return [
        min(1.0, max((len(ordered) - i) * q for i, q in enumerate(ordered) if q <= p and i <= ordered.index(p)))
        for p in p_values
    ]


def test_the_better_model_stands_first_whatever_the_order_of_models(bench):
    bench.answer("weak", lambda name: number(name) < 5).answer("strong", lambda name: number(name) < 18)
    for _ in range(2):
        completion, checking = compare(bench)
        assert (completion.task, checking.task) == ("completion", "checking")
        assert (completion.model, completion.other) == ("strong", "weak")
        assert completion.difference == pytest.approx(13 / 40)
        assert checking.difference == pytest.approx(13 / 20)
        assert (completion.n, checking.n) == (40, 20)
        assert 0 < completion.low < completion.difference < completion.high
        assert completion.p < 0.01
        bench.answers.reverse()


def test_the_order_of_answers_does_not_matter(bench):
    bench.answer("one", lambda name: number(name) % 3 == 0).answer("two", lambda name: number(name) % 2 == 0)
    expected = compare(bench)
    half = len(bench.answers) // 2
    first, second = bench.answers[:half], bench.answers[half:]
    random.Random(1).shuffle(first)
    random.Random(2).shuffle(second)
    bench.answers = first + second
    assert compare(bench) == expected


def test_p_values_are_corrected_for_the_number_of_comparisons(bench):
    plain = {}
    known = {"a": 20, "b": 14, "c": 12, "d": 3}
    for model, count in known.items():
        bench.answer(model, lambda name, count=count: number(name) < count)
    for one in known:
        for other in known:
            if one < other:
                for task, metric in bench.headline:
                    pair = [answer for answer in bench.answers if answer["model"] in (one, other)]
                    (found,) = compare_models(pair, bench.questions, bench.clusters, [(task, metric)], seed=0)
                    plain[task, one, other] = found.p
    corrected = dict(zip(plain, holm(list(plain.values())), strict=True))
    together = compare(bench)
    assert len(together) == 12
    for one in together:
        assert one.p == pytest.approx(corrected[one.task, one.model, one.other])
        assert one.p >= plain[one.task, one.model, one.other]


def test_holm_by_hand():
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.5, 0.9]) == pytest.approx([1.0, 1.0])


def test_only_questions_that_both_could_be_asked_count(bench):
    bench.answer("one", lambda name: True, unusable=lambda name: "too long" if number(name) < 10 else None)
    bench.answer("two", lambda name: number(name) < 10)
    completion = compare(bench)[0]
    assert (completion.n, completion.difference) == (30, 1.0)


def test_a_model_is_taken_by_its_first_method(bench):
    bench.answer("one", lambda name: True).answer("one", lambda name: False, method="sum")
    bench.answer("two", lambda name: False)
    assert [one.difference for one in compare(bench)] == [1.0, 1.0]


def test_copies_do_not_differ(bench):
    bench.answer("one", lambda name: number(name) < 5).answer("two", lambda name: number(name) < 5)
    for found in compare(bench):
        assert (found.difference, found.p, found.p_raw, found.q, found.mcnemar) == (0.0, 1.0, 1.0, 1.0, 1.0)
        # Another fact may still tell them apart: fewer than 1 - 0.025 ** (1 / n) of all facts do.
        most = 1 - 0.025 ** (1 / found.n)
        assert (found.low, found.high) == pytest.approx((-most, most))
        assert (found.effect, found.odds) == (0.0, None)


def test_one_fact_or_one_model_is_not_enough(make_bench):
    single = make_bench({"completion": 1}).answer("one", lambda name: True).answer("two", lambda name: False)
    assert compare(single) == []
    lonely = make_bench({"completion": 10}).answer("one", lambda name: True)
    assert compare(lonely) == []
    assert compare(make_bench({"completion": 3})) == []


def test_all_numbers_of_a_comparison_are_filled(bench):
    bench.answer("one", lambda name: number(name) % 3 > 0).answer("two", lambda name: number(name) % 4 == 0)
    for found in compare(bench):
        names = [name for name in bench.questions if name.startswith(found.task)]
        first, second = (
            np.array([number(name) % 3 > 0 for name in names]),
            np.array([number(name) % 4 == 0 for name in names]),
        )
        both = [[np.sum(first & second), np.sum(first & ~second)], [np.sum(~first & second), np.sum(~first & ~second)]]
        differences = first.astype(float) - second
        assert found.mcnemar == pytest.approx(mcnemar(both, exact=True).pvalue)
        assert found.odds == pytest.approx(both[0][1] / both[1][0])
        assert found.effect == pytest.approx(differences.mean() / differences.std(ddof=1))
        assert found.facts == found.n == len(names)
        assert 0 < found.detectable < 1
        assert found.p_raw <= found.q <= found.p
        assert (found.group_column, found.group) == (None, None)


def test_groups_are_compared_apart_and_corrected_together(bench):
    known = {"a": lambda name: number(name) % 2 == 0, "b": lambda name: number(name) % 3 == 0, "c": lambda name: True}
    for model, right in known.items():
        bench.answer(model, right)
    groups = {name: question.relation for name, question in bench.questions.items()}
    found = compare_models(
        bench.answers, bench.questions, bench.clusters, bench.headline, seed=0, groups=groups, column="relation"
    )
    assert len(found) == 2 * 2 * 3
    assert {(one.group_column, one.group) for one in found} == {("relation", "easy"), ("relation", "hard")}
    for one in found:
        names = [name for name in bench.questions if name.startswith(one.task) and groups[name] == one.group]
        ahead, behind = (np.mean([known[model](name) for name in names]) for model in (one.model, one.other))
        assert one.difference == pytest.approx(ahead - behind)
        assert one.difference >= 0 and one.n == len(names)
    plain = [one.p_raw for one in found]
    assert [one.p for one in found] == pytest.approx(multipletests(plain, method="holm")[1])
    assert [one.q for one in found] == pytest.approx(multipletests(plain, method="fdr_bh")[1])
    few = {name: group for name, group in groups.items() if number(name) in (0, 1, 2)}
    alone = compare_models(
        bench.answers, bench.questions, bench.clusters, bench.headline, seed=0, groups=few, column="relation"
    )
    assert {one.group for one in alone} == {"easy"}, "one fact is not enough"


def test_what_was_corrected_is_corrected_anew():
    plain = [Comparison("t", "m", "a", "b", 0.1, 0.0, 0.2, p, 10) for p in (0.01, 0.04, 0.03)]
    once = correct_comparisons(plain)
    assert [one.p for one in once] == pytest.approx([0.03, 0.06, 0.06])
    assert [one.q for one in once] == pytest.approx([0.03, 0.04, 0.04])
    assert correct_comparisons(once) == once
    assert correct_comparisons(once[:1]) == [replace(plain[0], p_raw=0.01, q=0.01)]
    assert correct_comparisons([]) == []


def test_lower_is_better_for_ranks_and_what_is_unusable_is_no_first_place(bench):
    bench.answer("one", lambda name: True, unusable=lambda name: "too long" if number(name) < 10 else None)
    bench.answer("two", lambda name: number(name) < 20)
    given = (bench.answers, bench.questions, bench.clusters, [("completion", get_metric("mean-rank"))])
    for wrong in (False, True):
        (found,) = compare_models(*given, seed=0, unusable_is_wrong=wrong)
        assert (found.model, found.difference, found.n) == ("one", pytest.approx(20 / 30), 30)
        assert found.mcnemar is None and found.odds is None and found.effect > 0
    (share,) = compare_models(*given[:3], [("completion", get_metric("r@1"))], seed=0, unusable_is_wrong=True)
    assert (share.n, share.difference) == (40, pytest.approx((30 - 20) / 40))


def test_a_mean_over_classes_weighs_all_numbers(bench):
    bench.answer("one", lambda name: number(name) < 8).answer("two", lambda name: number(name) in (0, 30))
    classes = {name: "few" if number(name) < 8 else "many" for name in bench.questions}
    headline = bench.headline[:1]
    (found,) = compare_models(bench.answers, bench.questions, bench.clusters, headline, seed=0, classes=classes)
    assert found.difference == pytest.approx((7 / 8 - 1 / 32) / 2)
    assert found.odds == pytest.approx(7 / 8 * 32)
    (plain,) = compare_models(bench.answers, bench.questions, bench.clusters, headline, seed=0)
    assert plain.odds == 7 and found.low < found.difference < found.high


def test_a_question_that_was_answered_several_times_counts_by_the_mean(bench):
    bench.answer("one", lambda name: True).answer("one", lambda name: number(name) < 20)
    bench.answer("two", lambda name: False)
    completion, checking = compare(bench)
    assert (completion.difference, checking.difference) == (0.75, 1.0)
    assert completion.n == 40 and completion.mcnemar is None and checking.mcnemar < 0.001


def test_what_has_no_number_is_left_out_and_nothing_is_no_number(bench):
    bench.answer("one", lambda name: True).answer("two", lambda name: number(name) < 5)
    metric = get_metric("accuracy")
    hole = replace(
        metric, values=lambda given: np.where(np.arange(len(given.answers)) < 4, np.nan, metric.values(given))
    )
    found = compare(bench, [("completion", hole)])
    assert [(one.n, one.difference) for one in found] == [(36, pytest.approx(35 / 36))]
    nothing = replace(metric, values=lambda given: np.full(len(given.answers), np.nan))
    assert compare(bench, [("completion", nothing)]) == []
    both_right = [replace(metric, values=lambda given: np.ones(len(given.answers)))]
    everything = [*found, *compare(bench, [("completion", one) for one in both_right]), *compare(bench)]
    json.dumps([asdict(one) for one in everything], allow_nan=False)
