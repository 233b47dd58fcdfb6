"""How premises were given is labelled by a model's own ranks."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from merkhet.core.schemas import ANSWERS, make_table
from merkhet.suites.ontoprobe.premise_labels import premise_labels, reciprocal_ranks


def premise(name, shown, first, second, memory="half"):
    return {"question_id": name, "shown": shown, "first": first, "second": second, "memory": memory}


def test_each_form_has_its_setting():
    rows = [
        premise(f"{shown}{item}", shown, [f"p{item}"], [f"s{item}"])
        for item in range(4)
        for shown in ("both", "first", "second", "neither", "other")
    ]
    ranks = {"p0": 1.0, "p1": 0.5, "p2": 0.1, "p3": 0.05, "s0": 0.1, "s1": 0.9, "s2": 0.8, "s3": 0.01}
    found = premise_labels(rows, ranks)
    assert [found[f"both{item}"] for item in range(4)] == ["EX/EX"] * 4
    assert [found[f"first{item}"] for item in range(4)] == ["EX/NO", "EX/IM", "EX/IM", "EX/NO"]
    assert [found[f"second{item}"] for item in range(4)] == ["IM/EX", "IM/EX", "NO/EX", "NO/EX"]
    assert [found[f"neither{item}"] for item in range(4)] == ["IM/NO", "IM/IM", "NO/IM", "NO/NO"]
    assert [found[f"other{item}"] for item in range(4)] == ["OT/EX"] * 4


@given(st.lists(st.floats(0.01, 1), min_size=1, max_size=9, unique=True))
def test_the_better_half_is_known_and_the_middle_one_belongs_to_it(values):
    rows = [premise(f"q{item}", "second", [f"p{item}"], []) for item in range(len(values))]
    found = premise_labels(rows, {f"p{item}": value for item, value in enumerate(values)})
    known = sorted((value for item, value in enumerate(values) if found[f"q{item}"] == "IM/EX"), reverse=True)
    assert known == sorted(values, reverse=True)[: -(-len(values) // 2)]


def test_templates_of_a_premise_are_averaged_and_what_could_not_be_asked_is_not_known():
    rows = [
        premise("a", "second", ["p1", "p2"], []),
        premise("b", "second", ["p3"], []),
        premise("c", "second", ["x"], []),
    ]
    found = premise_labels(rows, {"p1": 1.0, "p2": 0.1, "p3": 0.6})
    assert found == {"a": "IM/EX", "b": "IM/EX", "c": "NO/EX"}
    alone = premise_labels([premise("c", "second", ["x"], [])], {})
    assert alone == {"c": "NO/EX"}


def test_in_multiple_choice_a_premise_is_known_if_the_answer_was_right():
    rows = [premise(name, "second", [name.upper()], [], "right") for name in "abc"]
    assert premise_labels(rows, {"A": 1.0, "B": 1 / 1.5, "C": 1.0}) == {"a": "IM/EX", "b": "NO/EX", "c": "IM/EX"}


def test_ranks_are_means_over_repeats_by_the_models_own_method():
    def answer(question, method, ranks, repeat=None, model="m", unusable=None, prediction=None, ties=1):
        return {
            **{"question_id": question, "model": model, "probe": "rank", "method": method, "repeat": repeat},
            "prediction": prediction,
            **{"gold_ranks": ranks, "gold_ties": [ties] * len(ranks), "unusable": unusable},
        }

    table = make_table(
        ANSWERS,
        [
            answer("q", "multiple-mean", [2.0, 4.0], 0),
            answer("q", "multiple-mean", [1.0], 1),
            answer("q", "single-max", [50.0]),
            answer("r", "multiple-mean", [], unusable="too long"),
            answer("q", "count", [5.0], model="other"),
            answer("q", "count", [2.0], model="tied", ties=3),
            answer("q", "chat", [], model="writer", prediction="An Animal."),
            answer("r", "chat", [], model="writer", prediction="plant"),
        ],
    )
    found = reciprocal_ranks(table, {"m": "multiple-mean"}, {"q": ["animal"], "r": ["animal"]})
    assert found["writer"] == {"q": 1.0, "r": 0.0}
    assert found["m"] == {"q": pytest.approx(0.75)}
    assert found["other"] == {"q": pytest.approx(0.2)}
    assert found["tied"] == {"q": pytest.approx((1 + 1 / 2 + 1 / 3) / 3)}, "a tie is any of its ranks"
