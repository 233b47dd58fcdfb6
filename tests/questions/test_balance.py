"""Balanced sets: relations and domains within the limits of their shares, items whole."""

from __future__ import annotations

import random
from collections import Counter, defaultdict

import pyarrow as pa
import pytest

from merkhet.core.schemas import QUESTIONS, make_table
from merkhet.questions.balance import balance_filter, common_answer_filter, share_limit


def question(number, task, domain, relation, item, choices=None, target="a"):
    return {
        "question_id": f"q{number}",
        "task": task,
        "domain": domain,
        "template": f"{relation}/1",
        "qset": item,
        "facts": [item],
        "prompt": f"{number} [MASK]",
        "target": target,
        "answers": [target],
        "choices": choices,
        "candidate_set": None if choices else "all",
    }


def draw_set(seed):
    """Questions of eight domains with relations of very different sizes, some of them with choices."""
    draw, rows = random.Random(seed), []
    for domain in "ABCDEFGH":
        for relation in range(draw.randint(5, 9)):
            for item in range(int(10 ** draw.uniform(0.7, 2.3))):
                name = f"{domain}{relation}:{item}"
                for task in ("completion", "checking"):
                    choices = ["a", "b"] if task == "checking" else None
                    for _ in range(draw.randint(1, 3)):
                        rows.append(question(len(rows), task, domain, f"r{relation}", name, choices))
    draw.shuffle(rows)
    return make_table(QUESTIONS, rows)


def shares(rows, key):
    counts = Counter(map(key, rows))
    return {name: count / len(rows) for name, count in counts.items()}


@pytest.mark.parametrize("seed", range(4))
def test_shares_are_within_their_limits_and_items_stay_whole(seed):
    table = draw_set(seed)
    limits = {"completion": 0.10, "checking": 0.05}
    mask = balance_filter(limits, 0.15, 0.05, seed).keep(table)
    before, after = table.to_pylist(), table.filter(mask).to_pylist()
    assert 0.1 * len(before) < len(after) < len(before)
    for task, limit in limits.items():
        rows = [row for row in after if row["task"] == task]
        largest = max(shares(rows, lambda row: (row["domain"], row["template"])).values())
        assert largest <= limit + 0.002
    domains = shares(after, lambda row: row["domain"])
    assert len(domains) == 8
    assert max(domains.values()) <= 0.16
    assert min(domains.values()) >= 0.045
    kept = Counter((row["task"], row["qset"]) for row in after)
    whole = Counter((row["task"], row["qset"]) for row in before)
    assert all(whole[item] == count for item, count in kept.items())


def test_the_same_items_stay_in_any_order_of_the_rows():
    table = draw_set(1)
    balance = balance_filter({"completion": 0.1, "checking": 0.05}, 0.15, 0.05, 3)
    kept = set(table.filter(balance.keep(table))["question_id"].to_pylist())
    turned = table.take(pa.array(range(len(table) - 1, -1, -1)))
    assert set(turned.filter(balance.keep(turned))["question_id"].to_pylist()) == kept
    other = balance_filter({"completion": 0.1, "checking": 0.05}, 0.15, 0.05, 4)
    assert set(table.filter(other.keep(table))["question_id"].to_pylist()) != kept


def test_open_questions_and_those_with_choices_are_thinned_apart():
    rows = [question(n, "reasoning", "A", f"open{n % 10}", f"o{n}") for n in range(1000)]
    rows += [question(1000 + n, "reasoning", "A", f"few{n % 10}", f"c{n}", ["a", "b"]) for n in range(50)]
    rows += [question(2000 + n, "reasoning", "A", "many", f"m{n}", ["a", "b"]) for n in range(50)]
    table = make_table(QUESTIONS, rows)
    kept = table.filter(
        balance_filter({"reasoning/open": 0.1, "reasoning/choices": 0.1}, 1.0, 0.0, 0).keep(table)
    ).to_pylist()
    counts = Counter(row["template"].split("/")[0] for row in kept)
    assert counts["many"] == 5
    assert all(counts[f"open{n}"] == 100 and counts[f"few{n}"] == 5 for n in range(10))


def test_common_answers_are_removed_by_the_facts_that_they_are_right_for():
    rows = [question(n, "completion", "A", "r", f"i{n}", target="a" if n < 6 else f"b{n}") for n in range(10)]
    rows += [question(100 + n, "completion", "A", "s", f"j{n}", target="a" if n < 5 else f"b{n}") for n in range(10)]
    rows += [question(200 + n, "checking", "A", "r", f"i{n}", ["a", "b"]) for n in range(10)]
    table = make_table(QUESTIONS, rows)
    kept = defaultdict(set)
    for row in table.filter(common_answer_filter().keep(table)).to_pylist():
        kept[row["task"], row["template"]].add(row["target"])
    assert "a" not in kept["completion", "r/1"]
    assert "a" in kept["completion", "s/1"]
    assert kept["checking", "r/1"] == {"a"}


def test_limits_that_few_parts_cannot_meet_are_not_applied():
    assert share_limit(pa.array([50, 50]).to_numpy(), 0.15, 0.0) is None
    assert share_limit(pa.array([50, 50, 50]).to_numpy(), 0.5, 0.0) is None
    assert share_limit(pa.array([90, 50, 50]).to_numpy(), 0.4, 0.0) == 66
