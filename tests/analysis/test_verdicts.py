"""What comparisons say in words, on cases made by hand."""

from __future__ import annotations

import itertools
import math
import random
from typing import Any

import pytest

from merkhet.analysis.comparison_text import AHEAD, ALIKE, MIXED, give_verdict, summarize_groups
from merkhet.analysis.differences import (
    detectable_difference,
    facts_needed,
    format_points,
    is_significant,
    orient_to,
    swap_models,
)


def one(task: str, model: str, other: str, difference: float, p: float, **more: Any) -> dict[str, Any]:
    """A comparison with an interval of five points to either side, on many facts."""
    found = {
        "task": task,
        "metric": "accuracy",
        "model": model,
        "other": other,
        "difference": difference,
        "low": difference - 0.05,
        "high": difference + 0.05,
        "p": p,
        "n": 900,
        "facts": 800,
        "detectable": 0.06,
    }
    return {**found, **more}


def test_ahead_on_one_task_and_behind_nowhere() -> None:
    verdict = give_verdict(
        [
            one("completion", "a", "b", 0.142, 0.0001, low=0.091, high=0.194),
            one("checking", "b", "a", 0.01, 0.8),
            one("distinction", "a", "b", 0.02, 0.6),
        ]
    )
    assert verdict.sentences == (
        "a knows more than b: it is ahead on completion (+14.2 points [9.1, 19.4], p < 0.001) and not behind on any "
        "task; on checking and distinction they do not differ significantly (80% power to detect a difference of 6.0 "
        "points).",
    )
    assert verdict.order is None and verdict.pairs[0].relation == AHEAD and not verdict.pairs[0].weak


def test_the_model_that_is_behind_may_stand_first() -> None:
    verdict = give_verdict([one("completion", "b", "a", -0.2, 0.001), one("checking", "a", "b", 0.3, 0.002)])
    assert verdict.sentences == (
        "a knows more than b: it is ahead on checking (+30.0 points [25.0, 35.0], p = 0.002) and completion "
        "(+20.0 points [15.0, 25.0], p = 0.001).",
    )


def test_mixed_is_said_to_be_mixed() -> None:
    verdict = give_verdict(
        [
            one("completion", "a", "b", 0.2, 0.001),
            one("checking", "b", "a", 0.1, 0.01),
            one("order", "a", "b", 0.0, 1.0),
        ]
    )
    assert verdict.pairs[0].relation == MIXED
    (said,) = verdict.sentences
    assert said.startswith(
        "Mixed: a is ahead on completion (+20.0 points [15.0, 25.0], p = 0.001), b on checking (+10.0"
    )
    assert said.endswith("Which of them knows more depends on the task.")
    assert "knows more than" not in said


def test_only_the_corrected_p_tells_models_apart() -> None:
    """The interval excludes zero and p alone is small: after correction it is not clear, and this is said."""
    verdict = give_verdict([one("completion", "a", "b", 0.1, 0.08, p_raw=0.02)])
    assert verdict.pairs[0].relation == ALIKE
    assert verdict.sentences[0].startswith(
        "a and b do not differ significantly on completion (+10.0 points [5.0, 15.0], p = 0.080)"
    )
    assert verdict.sentences[1].startswith("1 of 1 difference (completion) is significant only before correction")
    assert not is_significant(one("completion", "a", "b", 0.1, 0.05)) and is_significant(
        one("completion", "a", "b", 0.1, 0.0499)
    )


def test_equal_models_are_said_to_be_equal() -> None:
    same = {"equal": True, "low": -0.09, "high": 0.09, "detectable": None}
    verdict = give_verdict([one("checking", "a", "b", 0.0, 1.0, **same), one("order", "a", "b", 0.0, 1.0, **same)])
    assert verdict.sentences == ("a and b do not differ: they score the same on every question of checking and order.",)


def test_a_weak_comparison_says_how_many_facts_are_needed() -> None:
    """40 facts find 22 points; half of that needs four times as many: 160."""
    weak = one("checking", "a", "b", 0.11, 0.4, facts=40, n=40, detectable=0.22)
    verdict = give_verdict([weak])
    assert facts_needed(weak) == 160 and verdict.pairs[0].weak
    assert verdict.sentences[1] == (
        "Comparisons without a significant difference have little power: with 40 facts, true differences below 22 "
        "points are often missed. Detecting a difference as large as the one observed on checking (11 points) takes "
        "about 160 facts."
    )
    strong = give_verdict([one("checking", "a", "b", 0.01, 0.4)])
    assert not strong.pairs[0].weak and len(strong.sentences) == 1


def test_what_is_clear_on_few_facts_is_said_to_rest_on_few() -> None:
    verdict = give_verdict([one("checking", "a", "b", 0.6, 0.01, facts=12)])
    assert verdict.sentences[1].startswith("The significant difference on checking rests on 12 facts")


def test_runs_that_do_not_tell_what_was_detectable_are_judged_by_their_interval() -> None:
    """An interval of ±9.8 points has a standard error of 5, and 2.8 of these are found in 80% of cases."""
    old = {
        key: value for key, value in one("checking", "a", "b", 0.02, 0.5).items() if key not in ("detectable", "facts")
    }
    old |= {"low": 0.02 - 0.098, "high": 0.02 + 0.098}
    assert detectable_difference(old) == pytest.approx(0.05 * 2.8, rel=1e-3)
    assert give_verdict([old]).pairs[0].weak
    assert detectable_difference({**old, "low": None, "high": None}) is None
    assert facts_needed({**old, "difference": 0.0}) is None


def test_an_order_with_ties() -> None:
    verdict = give_verdict(
        [one("t", "b", "c", 0.01, 0.9), one("t", "a", "b", 0.2, 0.001), one("t", "c", "a", -0.21, 0.001)]
    )
    assert verdict.order == "a > b ≈ c"
    assert (
        verdict.sentences[0]
        == "Which model knows more: a > b ≈ c (> significantly ahead, ≈ no significant difference)."
    )


def test_no_order_where_being_alike_does_not_carry_over() -> None:
    """a is ahead of c, and b cannot be told from either."""
    verdict = give_verdict(
        [one("t", "a", "b", 0.05, 0.2), one("t", "b", "c", 0.05, 0.2), one("t", "a", "c", 0.1, 0.001)]
    )
    assert verdict.order == "no consistent order; a > c; a ≈ b; b ≈ c"


def test_no_order_in_a_circle_or_where_it_is_mixed_or_a_pair_is_missing() -> None:
    circle = [one("t", "a", "b", 0.1, 0.001), one("t", "b", "c", 0.1, 0.001), one("t", "c", "a", 0.1, 0.001)]
    assert give_verdict(circle).order == "no consistent order; a > b; c > a; b > c"
    mixed = [*circle[:2], one("t", "a", "c", 0.1, 0.001), one("u", "c", "a", 0.1, 0.001)]
    assert "mixed: a and c" in (give_verdict(mixed).order or "")
    assert "not compared: a and c" in (give_verdict(circle[:2]).order or "")


def test_where_there_is_no_order_among_many_models_they_are_counted() -> None:
    """Six models: a is ahead of all but b, b of f alone; no other two can be told apart."""
    rows = [
        one("t", x, y, 0.1, 0.001 if (x == "a" and y != "b") or x + y == "bf" else 0.9)
        for x, y in itertools.combinations("abcdef", 2)
    ]
    said = (
        "no consistent order; numbers of models that each is ahead of and behind: "
        "a 4 and 0, b 1 and 0, c 0 and 1, d 0 and 1, e 0 and 1, f 0 and 2"
    )
    verdict = give_verdict(rows)
    assert verdict.order == said and verdict.sentences[0] == f"Which model knows more: {said}."


def test_every_order_of_pairs_gives_the_same_verdict() -> None:
    """Random relations among five models: a single order is told exactly if the relation is one, by brute force."""
    draw = random.Random(3)
    told = 0
    for _ in range(300):
        models = "abcde"[: draw.randint(3, 5)]
        skill = {name: draw.randint(0, 2) for name in models}
        relation = {}
        for first, second in itertools.combinations(models, 2):
            relation[first, second] = (skill[first] > skill[second]) - (skill[first] < skill[second])
            if draw.random() < 0.1:
                relation[first, second] = draw.choice((-1, 0, 1))
        rows = [one("t", *pair, 0.1 * sign, 0.9 if not sign else 0.001) for pair, sign in relation.items()]
        draw.shuffle(rows)
        order = give_verdict(rows).order or ""
        both = {**relation, **{pair[::-1]: -sign for pair, sign in relation.items()}}
        ordered = all(
            not (both[x, y] >= 0 and both[y, z] >= 0) or both[x, z] == max(both[x, y], both[y, z])
            for x, y, z in itertools.permutations(models, 3)
        )
        assert ordered == (not order.startswith("no consistent order"))
        if ordered:
            told += 1
            levels = [level.split(" ≈ ") for level in order.split(" > ")]
            place = {name: number for number, level in enumerate(levels) for name in level}
            assert all(both[x, y] == (place[x] < place[y]) - (place[x] > place[y]) for x, y in both)
    assert 30 < told < 270


def test_the_order_of_each_task_is_told_where_there_are_several() -> None:
    rows = [one(task, x, y, 0.1, 0.001) for task in ("t", "u") for x, y in ("ab", "bc", "ac")]
    rows += [one("v", x, y, 0.01, 0.9) for x, y in ("ab", "bc", "ac")]
    said = give_verdict(rows).sentences
    assert "On t and u: a > b > c." in said and "On v: a ≈ b ≈ c." in said


def test_against_a_reference() -> None:
    rows = [
        one("t", "a", "r", 0.1, 0.001),
        one("t", "b", "r", -0.1, 0.001),
        one("t", "c", "r", 0.0, 0.9),
        one("t", "d, tuned", "r", 0.2, 0.001),
    ]
    said = give_verdict(rows, "r").sentences
    assert said[0] == "Compared with r, ahead: a and “d, tuned”; behind: b; no significant difference: c."
    assert "r knows more than b: it is ahead on t (+10.0 points [5.0, 15.0], p = 0.001)." in said


def test_metrics_are_named_where_a_task_has_several_and_points_only_where_they_are_shares() -> None:
    ranks = one("t", "a", "b", 1.25, 0.01, metric="mean-rank", share=False, low=0.5, high=2.0)
    said = give_verdict([ranks, one("t", "a", "b", 0.1, 0.01, metric="r@1")]).sentences[0]
    assert "t mean-rank (+1.25 in mean-rank [0.5, 2], p = 0.010) and t R@1 (+10.0 points" in said
    assert format_points({**ranks, "higher_is_better": False}) == "+1.25 in mean-rank, where less is better, [0.5, 2]"


def test_nothing_compared_says_nothing() -> None:
    verdict = give_verdict([])
    assert verdict.sentences == () and verdict.order is None and verdict.pairs == ()


def test_turning_a_comparison_round_twice_gives_it_back() -> None:
    first = one("t", "a", "b", 0.125, 0.01, effect=0.5, odds=2.0, value=0.75, other_value=0.625)
    back = swap_models(first)
    assert (back["model"], back["other"], back["difference"], back["effect"]) == ("b", "a", -0.125, -0.5)
    assert (back["low"], back["high"], back["odds"]) == (-first["high"], -first["low"], 0.5)
    assert (back["value"], back["other_value"]) == (0.625, 0.75)
    assert swap_models(back) == first == orient_to(back, "a")
    assert swap_models({**first, "odds": 0.0})["odds"] == math.inf
    assert format_points({**first, "difference": -0.0001}).startswith("0.0 points")


def grouped(group: str, difference: float, q: float, task: str = "t", pair: str = "ab") -> dict[str, Any]:
    return one(task, *pair, difference, 1.0, q=q, group_column="domain", group=group)


def test_groups_are_told_by_q_the_largest_first() -> None:
    rows = [grouped("rivers", 0.1, 0.04), grouped("towns", -0.4, 0.001), grouped("birds", 0.5, 0.06)]
    assert summarize_groups(rows, "domain") == [
        "By domain, 2 of 3 differences are significant (q < 0.05).",
        "b is ahead on towns (+40.0 points [35.0, 45.0], q = 0.001).",
        "a is ahead on rivers (+10.0 points [5.0, 15.0], q = 0.040).",
    ]
    alike = [grouped("birds", 0.5, 0.06), grouped("towns", 0.1, 0.3)]
    assert summarize_groups(alike, "domain") == ["By domain, none of 2 differences is significant after correction."]
    assert summarize_groups(rows[2:], "domain") == [
        "By domain, the only difference that could be tested is not significant."
    ]
    assert "nothing can be compared" in summarize_groups([], "domain")[0]


def test_groups_of_few_facts_get_no_verdict() -> None:
    few = {**grouped("towns", -0.4, 0.001), "facts": 9}
    assert not is_significant(few) and is_significant({**few, "facts": 10})
    assert summarize_groups([grouped("rivers", 0.1, 0.04), few], "domain") == [
        "By domain, 1 of 1 difference is significant (q < 0.05).",
        "1 more difference is about fewer than 10 facts: there is no verdict.",
        "a is ahead on rivers (+10.0 points [5.0, 15.0], q = 0.040).",
    ]
    assert summarize_groups([few], "domain") == [
        "By domain, no group has 10 facts that two models share, so there is no verdict."
    ]


def test_groups_of_several_tasks_and_pairs_name_them() -> None:
    rows = [grouped("rivers", 0.1, 0.01), grouped("rivers", 0.2, 0.01, "u", "ac")]
    assert summarize_groups(rows, "domain")[1:] == [
        "a is ahead of c on rivers in u (+20.0 points [15.0, 25.0], q = 0.010).",
        "a is ahead of b on rivers in t (+10.0 points [5.0, 15.0], q = 0.010).",
    ]
