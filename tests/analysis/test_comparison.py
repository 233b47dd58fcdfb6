"""Models compared on the same questions: who is ahead, by how much, and how sure that is."""

from __future__ import annotations

import random

import pytest

from gnomon.analysis import compare_models


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
        assert (found.difference, found.low, found.high, found.p) == (0.0, 0.0, 0.0, 1.0)


def test_one_fact_or_one_model_is_not_enough(make_bench):
    single = make_bench({"completion": 1}).answer("one", lambda name: True).answer("two", lambda name: False)
    assert compare(single) == []
    lonely = make_bench({"completion": 10}).answer("one", lambda name: True)
    assert compare(lonely) == []
    assert compare(make_bench({"completion": 3})) == []
