"""The spread over paraphrases, against plain standard deviations and against drawing wordings."""

from __future__ import annotations

import itertools
import random
from statistics import mean, pstdev, stdev

import numpy as np
import pytest

from merkhet.core.records import Question
from merkhet.metrics.metrics import get_metric
from merkhet.metrics.paraphrases import MIN_ITEMS, PairedWordings, Wording
from merkhet.metrics.score_table import score_answers

CANDIDATES = ("New York", "Paris")


def answer(question: str, *, right: bool) -> dict[str, object]:
    rank = 1.0 if right else 2.0
    how = {"question_id": question, "model": "m", "probe": "rank", "method": "mean"}
    return {**how, "ranked": [], "golds": ["New York"], "gold_ranks": [rank], "gold_ties": [1]}


def spread_of(asked: dict[tuple[str, str], float], classes: dict[str, int] | None = None):
    """The spread of values by item and template."""
    wordings = {f"{item} {template}": Wording(item, template) for item, template in asked}
    paired = PairedWordings(list(wordings), wordings)
    codes = None if classes is None else np.array([classes[item] for item, _ in asked], dtype=np.int64)
    return paired.spread(np.arange(len(asked)), np.array(list(asked.values()), dtype=np.float64), codes)


def drawn(items: int, templates: str, *, seed: int = 0, relation: str = "r") -> dict[tuple[str, str], float]:
    draw = random.Random(seed)
    return {
        (f"{relation} {item}", f"{relation}/{template}"): float(draw.random() < 0.3 + 0.2 * place)
        for item in range(items)
        for place, template in enumerate(templates)
    }


def by_template(asked: dict[tuple[str, str], float]) -> dict[str, float]:
    names = dict.fromkeys(template for _, template in asked)
    return {name: mean(value for (_, template), value in asked.items() if template == name) for name in names}


def test_with_one_set_of_templates_it_is_the_deviation_of_their_scores():
    asked = drawn(40, "abc")
    found = spread_of(asked)
    assert found.items == 40 and found.sd == pytest.approx(stdev(by_template(asked).values()))


def test_a_model_that_does_not_mind_the_wording_has_none():
    for value in (0.0, 0.25, 1.0):
        assert spread_of(dict.fromkeys(drawn(20, "abc"), value)) == (0.0, 20)


def test_with_several_relations_it_is_the_deviation_over_draws_of_one_wording_for_each():
    parts = [
        drawn(30, "ab", seed=1, relation="r"),
        drawn(15, "ab", seed=2, relation="s"),
        drawn(5, "ab", seed=3, relation="t"),
    ]
    found = spread_of({key: value for part in parts for key, value in part.items()})
    scores = [by_template(part) for part in parts]
    drawn_scores = [
        sum(len(part) / 2 * value for part, value in zip(parts, choice, strict=True)) / 50
        for choice in itertools.product(*(score.values() for score in scores))
    ]
    assert found.items == 50
    assert found.sd == pytest.approx(pstdev(drawn_scores) * 2**0.5), "two wordings are a sample of all wordings"


def test_only_items_asked_in_all_compared_templates_count():
    asked = drawn(30, "abc")
    alone = {("r 100", "r/a"): 1.0, ("r 101", "r/d"): 0.0, ("r 102", "r/a"): 1.0, ("r 102", "r/b"): 1.0}
    assert spread_of(asked | alone) == pytest.approx(spread_of(asked)), "the fourth template has no common item"
    gone = {key: value for key, value in asked.items() if key != ("r 0", "r/b")}
    kept = {key: value for key, value in asked.items() if key[0] != "r 0"}
    assert spread_of(gone) == pytest.approx(spread_of(kept))
    assert spread_of(asked | {("r 0", "r/b"): float("nan")}) == pytest.approx(spread_of(kept))


def test_it_does_not_depend_on_the_order_of_questions():
    asked = drawn(25, "abcd") | drawn(25, "ab", relation="s")
    shuffled = random.Random(1).sample(list(asked.items()), len(asked))
    assert spread_of(dict(shuffled)) == pytest.approx(spread_of(asked), rel=1e-12)


def test_few_items_or_one_wording_have_no_spread():
    assert spread_of(drawn(MIN_ITEMS - 1, "abc")) is None and spread_of(drawn(MIN_ITEMS, "abc")) is not None
    assert spread_of(drawn(40, "a")) is None and spread_of({}) is None


def test_classes_weigh_equally():
    large, small = drawn(40, "ab", seed=4, relation="r"), drawn(10, "ab", seed=5, relation="s")
    found = spread_of({**large, **small}, {item: int(item.startswith("s")) for item, _ in (*large, *small)})
    half = [stdev(by_template(part).values()) / 2 for part in (large, small)]
    assert found.sd == pytest.approx((half[0] ** 2 + half[1] ** 2) ** 0.5)


def test_the_table_of_scores_has_it_for_whole_tasks():
    questions, wordings, answers = {}, {}, []
    for item, template in itertools.product(range(12), "abc"):
        name = f"{item}-{template}"
        questions[name] = Question(name, "t", f"{name} [MASK]", ("New York",), "New York", CANDIDATES)
        wordings[name] = Wording(str(item), template)
        answers.append(answer(name, right=template == "a" or (template == "b" and item < 6)))
    groups = {name: {"template": name[-1]} for name in questions}
    clusters = {name: name.partition("-")[0] for name in questions}
    rows = score_answers(
        "s", questions, groups, clusters, answers, [get_metric("r@1")], seed=0, wordings=wordings
    ).to_pylist()
    overall, *by_group = rows
    assert overall["wording_n"] == 12 and overall["wording_sd"] == pytest.approx(
        stdev(row["value"] for row in by_group)
    )
    assert [row["wording_sd"] for row in by_group] == [None] * 3
