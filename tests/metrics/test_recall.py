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
from recall_worlds import make_recalls, make_statements, make_symbols, recall_row, recalls_at

from merkhet.core.errors import InputError, MerkhetError
from merkhet.core.recall_schemas import RECALLS, STATEMENTS
from merkhet.core.schemas import SCORES, make_table
from merkhet.metrics import recall_scores as recall
from merkhet.metrics.bootstrap import clustered_interval, paired_difference
from merkhet.metrics.recall_scores import (
    RECALL_GROUPS,
    RECALL_METRICS,
    align_recalls,
    frequency_recalls,
    paired_recall_difference,
    recall_chance,
    recall_values,
    score_recalls,
    statement_clusters,
    top_symbols,
)


def one_recall(scores, golds, target):
    names = {f"s{place}": score for place, score in enumerate(scores)}
    statement = {"statement_id": "x", "target": f"s{target}", "answers": [f"s{gold}" for gold in golds]}
    return make_table(RECALLS, [recall_row(statement, names)])


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
    (hit,) = recall_values(table, f"hit@{k}")
    (right,) = recall_values(table, f"acc@{k}")
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
    value = {
        (kind, at): float(recall_values(table, f"{kind}@{at}")[0]) for kind in ("acc", "hit") for at in (k, k + more)
    }
    for kind in ("acc", "hit"):
        assert 0 <= value[kind, k] <= value[kind, k + more] <= 1
    for at in (k, k + more):
        assert value["acc", at] >= value["hit", at] - 1e-12


def test_chance_is_the_mean_over_random_orders():
    statements, names = make_statements(40, symbols=12), make_symbols(12)["symbol"].to_pylist()
    generator = np.random.default_rng(0)
    drawn = [
        make_recalls(statements, lambda _: dict(zip(names, generator.random(12), strict=True))) for _ in range(300)
    ]
    tied = make_recalls(statements, lambda _: dict.fromkeys(names, 0.0))

    def check(metric):
        chance = recall_chance(statements, tied, metric)
        assert np.mean([recall_values(recalls, metric) for recalls in drawn]) == pytest.approx(chance.mean(), abs=0.012)
        assert recall_values(tied, metric) == pytest.approx(chance), "all symbols tied is guessing"

    check_all(check, RECALL_METRICS)


def test_no_other_metrics_are_known():
    table = one_recall([1.0, 2.0], [0], 0)
    for metric in ("mrr", "acc", "acc@0", "hit@x"):
        with pytest.raises(InputError, match=metric):
            recall_values(table, metric)


def test_rows_are_scores_over_all_and_by_group():
    statements = make_statements(400)
    places = np.random.default_rng(1).choice([0, 0, 3, 7, 50], size=400)
    recalls = recalls_at(statements, places)
    rows = score_recalls(statements, recalls, suite="lama-tk", model="m", seed=1)
    make_table(SCORES, rows)
    plain = statements.to_pylist()
    for row in rows:
        chosen = [
            place
            for place, statement in enumerate(plain)
            if all(row[name] in (None, statement[name]) for name in RECALL_GROUPS if name != "conflict")
            and row["conflict"] in (None, "yes" if statement["conflict"] else "no")
        ]
        k = int(row["metric"].split("@")[1])
        assert row["n"] == len(chosen) and row["value"] == pytest.approx(np.mean(places[chosen] < k))
        assert row["low"] <= row["value"] <= row["high"] and row["unusable"] == 0
        assert 0 < row["chance"] < 0.05 and (row["probe"], row["method"]) == ("recall", "symbols")
    splits = Counter(tuple(name for name in RECALL_GROUPS if row[name] is not None) for row in rows)
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
    rows = score_recalls(statements, recalls, suite="s", model="m", seed=1)
    assert {(row["task"], row["n"]) for row in rows if not any(row[name] for name in RECALL_GROUPS)} == {
        ("statement", 40),
        ("unseen", 60),
    }
    mixed = recalls.take(pa.array(np.random.default_rng(0).permutation(100)))
    assert score_recalls(statements, mixed, suite="s", model="m", seed=1) == rows
    with pytest.raises(MerkhetError, match="1 statements have no recall, the first of them statement000000"):
        align_recalls(statements, recalls.slice(1))
    assert score_recalls(statements.slice(0, 0), recalls.slice(0, 0), suite="s", model="m", seed=1) == []


def test_few_facts_are_resampled_and_many_are_not():
    statements = make_statements(800)
    values = (np.random.default_rng(0).random(800) < 0.8).astype(float)
    own = statement_clusters(statements)
    assert own.few
    drawn = own.interval(values, 5)
    assert drawn == clustered_interval(values, own.facts, seed=5)
    assert own.difference(values, 1 - values, 5) == paired_difference(values, 1 - values, own.facts, seed=5)
    many = statement_clusters(make_statements(8004))
    assert not many.few


def test_a_prompt_that_is_asked_for_each_of_its_answers_is_one_observation():
    rows = make_statements(400, facts=400, several=0.0).to_pylist()
    for place, row in enumerate(rows):
        row["prompt"] = f"prompt {place // 20}"
    statements = make_table(STATEMENTS, rows)
    values = np.repeat(np.random.default_rng(3).random(20) < 0.5, 20).astype(float)
    own = statement_clusters(statements)
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
    ahead, n = paired_recall_difference(statements, first, second, "acc@1", 3)
    assert n == 300 and ahead.difference == pytest.approx(0.25) and ahead.p < 0.001
    assert ahead.low <= 0.25 <= ahead.high
    none, n = paired_recall_difference(statements, first, second.slice(0, 0), "acc@1", 3)
    assert n == 0 and np.isnan(none.difference)


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
    with pytest.raises(InputError, match="none of the 5 symbols"):
        frequency_recalls(make_statements(40), make_statements(4), make_symbols(5))
    empty = frequency_recalls(make_statements(4), make_statements(4).slice(0, 0), make_symbols())
    assert empty.num_rows == 0 and empty.schema == RECALLS.schema
    nothing = frequency_recalls(make_statements(4).slice(0, 0), make_statements(4), make_symbols())
    assert set(nothing["target_ties"].to_pylist()) == {30}
    assert len(nothing["top"][0]) == recall.TOP_SYMBOLS


def test_what_stands_first_is_nothing_where_nothing_could_be_read():
    tops = [[{"symbol": "a", "score": -0.1}, {"symbol": "b", "score": -3.0}], [], [{"symbol": "c", "score": -0.2}]]
    kind = pa.list_(pa.struct([("symbol", pa.string()), ("score", pa.float32())]))
    assert top_symbols(pa.table({"top": pa.array(tops, kind)})).to_pylist() == ["a", None, "c"]
    assert top_symbols(pa.table({"top": pa.array([[], []], kind)})).to_pylist() == [None, None]
