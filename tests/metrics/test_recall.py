"""Scores of recalled symbols against enumerations of all orders, and a baseline against counting."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise, permutations

import numpy as np
import pyarrow as pa
import pytest
from all_cases import check_all
from hypothesis import given, settings
from hypothesis import strategies as st
from recall_worlds import (
    answers_of,
    make_recalls,
    make_statements,
    make_symbols,
    question_set,
    recall_row,
    recall_values,
    recalls_at,
    scored,
)

from merkhet.analysis.comparison import PairedModels
from merkhet.core.errors import InputError, MerkhetError
from merkhet.core.recall_schemas import RECALLS, STATEMENTS, SYMBOLS
from merkhet.core.schemas import ANSWERS, SCORES, make_table, validate
from merkhet.engine.score_step import question_groups
from merkhet.metrics.bootstrap import clustered_interval, paired_difference
from merkhet.metrics.clusters import question_clusters
from merkhet.metrics.metrics import get_metric
from merkhet.metrics.recalls import RECALL_METRICS, TOP_SYMBOLS, align_recalls, frequency_recalls
from merkhet.metrics.score_table import score_answers
from merkhet.questions.statements import label_symbols

GROUPS = ("mask", "relation", "conflict", "cardinality", "template")


def one_recall(scores, golds, target):
    """A statement with its recall and all symbols."""
    names = {f"s{place:03}": score for place, score in enumerate(scores)}
    base = make_statements(1).to_pylist()[0]
    own = {"target": f"s{target:03}", "answers": [f"s{gold:03}" for gold in golds], "conflict": len(golds) > 1}
    statements = make_table(STATEMENTS, [base | own])
    return statements, make_table(RECALLS, [recall_row(statements.to_pylist()[0], names)]), make_symbols(len(scores))


def value_of(made, metric):
    statements, recalls, symbols = made
    (value,) = scored(statements, recalls, metric, symbols)
    return value


def clusters_of(statements):
    questions = question_set(statements, make_symbols())
    return question_clusters(list(questions.by_id()), questions.clusters(), questions.by_id())


def scores_of_recalls(statements, recalls):
    """The rows of scores of one model."""
    if not statements.num_rows:
        return []
    questions = question_set(statements, make_symbols())
    return score_answers(
        "lama-tk",
        questions.by_id(),
        question_groups(questions, GROUPS, statements=True),
        questions.clusters(),
        answers_of(statements, recalls, make_symbols()),
        [get_metric(name) for name in RECALL_METRICS],
        seed=1,
        group_sets=[*((name,) for name in GROUPS), ("mask", "conflict")],
        cluster_prompts=True,
    ).to_pylist()


@settings(deadline=None, max_examples=150)
@given(st.lists(st.sampled_from([0.0, 1.0, 2.0]), min_size=1, max_size=6), st.integers(1, 7), st.data())
def test_hits_are_shares_of_all_ways_to_break_ties(scores, k, data):
    places = st.integers(0, len(scores) - 1)
    golds = sorted(data.draw(st.sets(places, min_size=1)))
    target = data.draw(st.sampled_from(golds))
    orders = [
        order for order in permutations(range(len(scores))) if all(scores[a] >= scores[b] for a, b in pairwise(order))
    ]
    table = one_recall(scores, golds, target)
    hit, right = value_of(table, f"hit@{k}"), value_of(table, f"acc@{k}")
    assert hit == pytest.approx(np.mean([target in order[:k] for order in orders]))
    assert right == pytest.approx(np.mean([bool(set(golds) & set(order[:k])) for order in orders]))


@settings(deadline=None, max_examples=150)
@given(
    st.lists(st.sampled_from([0.0, 0.5, 1.0, 2.0, 3.0]), min_size=1, max_size=60),
    st.integers(1, 20),
    st.integers(0, 20),
    st.data(),
)
def test_more_places_never_cost_and_any_right_answer_is_no_harder_than_one(scores, k, more, data):
    golds = sorted(data.draw(st.sets(st.integers(0, len(scores) - 1), min_size=1)))
    table = one_recall(scores, golds, data.draw(st.sampled_from(golds)))
    value = {(kind, at): float(value_of(table, f"{kind}@{at}")) for kind in ("acc", "hit") for at in (k, k + more)}
    for kind in ("acc", "hit"):
        assert 0 <= value[kind, k] <= value[kind, k + more] <= 1
    for at in (k, k + more):
        assert value["acc", at] >= value["hit", at] - 1e-12


def test_chance_is_the_mean_over_random_orders():
    statements, symbols = make_statements(40, symbols=12), make_symbols(12)
    names = symbols["symbol"].to_pylist()
    generator = np.random.default_rng(0)
    drawn = [
        make_recalls(statements, lambda _: dict(zip(names, generator.random(12), strict=True))) for _ in range(300)
    ]
    tied = make_recalls(statements, lambda _: dict.fromkeys(names, 0.0))

    def check(metric):
        chance = scored(statements, tied, metric, symbols, chance=True)
        assert np.mean([recall_values(recalls, metric) for recalls in drawn]) == pytest.approx(chance.mean(), abs=0.012)
        assert scored(statements, tied, metric, symbols) == pytest.approx(chance), "all symbols tied is guessing"

    check_all(check, RECALL_METRICS)


def test_answers_hold_what_recalls_say():
    statements, symbols = make_statements(300, symbols=25, several=0.6), make_symbols(30)
    generator = np.random.default_rng(4)
    names = symbols["symbol"].to_pylist()
    recalls = make_recalls(
        statements, lambda _: dict(zip(names, generator.choice([-1.0, -2.0, -3.0, -4.0], 30).tolist(), strict=True))
    )
    for metric in ("acc@1", "acc@5", "hit@1", "hit@10"):
        assert scored(statements, recalls, metric, symbols) == pytest.approx(recall_values(recalls, metric))
    answers = validate(ANSWERS, answers_of(statements, recalls, symbols)).to_pylist()
    for statement, recall, answer in zip(statements.to_pylist(), recalls.to_pylist(), answers, strict=True):
        right = {f"name {int(symbol[1:])}" for symbol in statement["answers"]}
        assert answer["golds"][0] == f"name {int(statement['target'][1:])}" and set(answer["golds"]) <= right
        assert len(set(answer["golds"])) == len(answer["golds"]) and answer["right"] == len(right)
        assert answer["gold_ranks"][0] == recall["target_above"] + (recall["target_ties"] + 1) / 2
        assert min(answer["gold_ranks"]) == recall["best_above"] + (recall["best_ties"] + 1) / 2
        assert answer["prediction"] == answer["ranked"][0]["candidate"] and answer["among"] == 30


def test_symbols_of_one_name_are_told_apart():
    symbols = make_symbols(3).to_pylist()
    symbols[2]["name"] = symbols[0]["name"]
    labels = label_symbols(make_table(SYMBOLS, symbols))["label"].to_pylist()
    assert labels == ["name 0 (s000)", "name 1", "name 0 (s002)"]


def test_rows_are_scores_over_all_and_by_group():
    statements = make_statements(400)
    places = np.random.default_rng(1).choice([0, 0, 3, 7, 50], size=400)
    recalls = recalls_at(statements, places)
    rows = scores_of_recalls(statements, recalls)
    make_table(SCORES, rows)
    plain = statements.to_pylist()
    for row in rows:
        chosen = [
            place
            for place, statement in enumerate(plain)
            if all(row[name] in (None, statement[name]) for name in GROUPS if name != "conflict")
            and row["conflict"] in (None, "yes" if statement["conflict"] else "no")
        ]
        k = int(row["metric"].split("@")[1])
        assert row["n"] == len(chosen) and row["value"] == pytest.approx(np.mean(places[chosen] < k))
        assert row["low"] <= row["value"] <= row["high"] and row["unusable"] == 0
        assert 0 < row["chance"] < 0.05 and (row["probe"], row["method"]) == ("recall", "symbols")
    splits = Counter(tuple(name for name in GROUPS if row[name] is not None) for row in rows)
    assert splits == {
        (): 4,
        ("mask",): 16,
        ("relation",): 8,
        ("conflict",): 8,
        ("cardinality",): 8,
        ("template",): 4,
        ("mask", "conflict"): 32,
    }


def test_every_task_is_scored_by_itself_and_the_order_of_recalls_does_not_matter():
    statements = pa.concat_tables([make_statements(40), make_statements(60, task="unseen", seed=2)])
    recalls = recalls_at(statements, np.arange(100) % 12)
    rows = scores_of_recalls(statements, recalls)
    assert {(row["task"], row["n"]) for row in rows if not any(row[name] for name in GROUPS)} == {
        ("statement", 40),
        ("unseen", 60),
    }
    mixed = recalls.take(pa.array(np.random.default_rng(0).permutation(100)))
    assert scores_of_recalls(statements, mixed) == rows
    with pytest.raises(MerkhetError, match="1 statement has no recall; the first is statement000000"):
        align_recalls(statements, recalls.slice(1))
    assert scores_of_recalls(statements.slice(0, 0), recalls.slice(0, 0)) == []


def test_few_facts_are_resampled_and_many_are_not():
    statements = make_statements(800)
    values = (np.random.default_rng(0).random(800) < 0.8).astype(float)
    own = clusters_of(statements)
    assert own.few
    drawn = own.interval(values, 5)
    assert drawn == clustered_interval(values, own.facts, seed=5)
    assert own.difference(values, 1 - values, 5) == paired_difference(values, 1 - values, own.facts, seed=5)
    many = clusters_of(make_statements(8004))
    assert not many.few


def test_a_prompt_that_is_asked_for_each_of_its_answers_is_one_observation():
    rows = make_statements(400, facts=400, several=0.0).to_pylist()
    for place, row in enumerate(rows):
        row["prompt"] = f"prompt {place // 20} [MASK]"
    statements = make_table(STATEMENTS, rows)
    values = np.repeat(np.random.default_rng(3).random(20) < 0.5, 20).astype(float)
    own = clusters_of(statements)
    found, naive = own.interval(values, 1), clustered_interval(values, own.facts, seed=1)
    by_prompt = clustered_interval(values, own.prompts, seed=1)
    assert not own.few
    assert found.high - found.low == pytest.approx(by_prompt.high - by_prompt.low, rel=0.15)
    assert found.high - found.low > 3 * (naive.high - naive.low)


def test_conditions_are_compared_on_the_statements_both_have():
    statements = make_statements(400)
    first = recalls_at(statements, np.zeros(400))
    second = recalls_at(statements.slice(100), (np.arange(300) % 4 == 0).astype(int)).take(
        pa.array(np.arange(300)[::-1])
    )
    questions, symbols = question_set(statements, make_symbols()), make_symbols()
    shared = statements.slice(100).take(pa.array(np.arange(300)[::-1]))
    for other, expected in ((second, 300), (second.slice(0, 0), None)):
        answers = [answers_of(statements, first, symbols, "a")]
        answers.append(answers_of(shared.slice(0, other.num_rows), other, symbols, "b"))
        paired = PairedModels(
            pa.concat_tables(answers), questions.by_id(), questions.clusters(), seed=3, statements=True
        )
        found = paired.compare(("a", "b"), "statement", get_metric("acc@1"))
        assert [one.n for one in found] == ([] if expected is None else [expected])
        for ahead in found:
            assert ahead.difference == pytest.approx(0.25) and ahead.p < 0.001 and ahead.low <= 0.25 <= ahead.high


def test_the_baseline_counts_targets():
    check_all(check_baseline, range(4))


def check_baseline(seed):
    symbols = make_symbols(25)
    stored = make_statements(60, symbols=25, seed=seed)
    asked = make_statements(50, symbols=25, relations=("held", "other"), task="unseen", seed=seed + 10)
    found = frequency_recalls(stored, asked, symbols)
    plain = stored.to_pylist()

    def scores_of(statement):
        mask = [one["target"] for one in plain if one["mask"] == statement["mask"]]
        pair = [
            one["target"]
            for one in plain
            if (one["mask"], one["relation"]) == (statement["mask"], statement["relation"])
        ]
        spread = {name: (mask.count(name) + 1 / 25) / (len(mask) + 1) for name in symbols["symbol"].to_pylist()}
        return {name: float(np.log((pair.count(name) + own) / (len(pair) + 1))) for name, own in spread.items()}

    expected = make_recalls(asked, scores_of)
    assert found.schema == RECALLS.schema and found.drop_columns("top") == expected.drop_columns("top")
    for mine, other in zip(found["top"].to_pylist(), expected["top"].to_pylist(), strict=True):
        assert [one["score"] for one in mine] == pytest.approx([one["score"] for one in other], abs=1e-6)
    assert sum(np.exp(score) for score in scores_of(asked.slice(0, 1).to_pylist()[0]).values()) == pytest.approx(1)


def test_the_baseline_refuses_what_it_has_no_symbol_for():
    with pytest.raises(InputError, match="not in the table of 5 symbols"):
        frequency_recalls(make_statements(40), make_statements(4), make_symbols(5))
    empty = frequency_recalls(make_statements(4), make_statements(4).slice(0, 0), make_symbols())
    assert empty.num_rows == 0 and empty.schema == RECALLS.schema
    nothing = frequency_recalls(make_statements(4).slice(0, 0), make_statements(4), make_symbols())
    assert set(nothing["target_ties"].to_pylist()) == {30}
    assert len(nothing["top"][0]) == TOP_SYMBOLS


def test_what_could_not_be_read_has_no_prediction():
    statements = make_statements(3, several=0.0)
    rows = recalls_at(statements, [0, 29, 0], among=30).to_pylist()
    rows[0]["top"], rows[1]["top"], rows[2]["top"] = (
        [{"symbol": "s001", "score": -0.1}],
        [],
        [{"symbol": "s002", "score": -0.2}],
    )
    answers = answers_of(statements, make_table(RECALLS, rows), make_symbols())
    assert answers["prediction"].to_pylist() == ["name 1", None, "name 2"]
