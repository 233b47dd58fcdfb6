"""A limit draws whole items, of every domain and relation as far as it goes."""

from __future__ import annotations

import random
from collections import defaultdict
from typing import Any

from all_cases import check_all

from merkhet.core.schemas import PREMISES, QUESTIONS, make_table
from merkhet.questions.question_files import QuestionSet
from merkhet.questions.sampling import add_premise_facts, draw_questions

Item = tuple[str, str]


def make_questions(generator: random.Random) -> list[dict[str, Any]]:
    """Questions about items of random size in uneven strata; some items are question sets, facts or lone questions."""
    rows = []
    for task in ("completion", "rdfs9"):
        strata = [(f"d{generator.randrange(3)}", f"r{number}") for number in range(generator.randint(1, 6))]
        for number in range(generator.randint(1, 40)):
            domain, relation = strata[min(int(generator.expovariate(1.0)), len(strata) - 1)]
            kind = generator.choice(("qset", "fact", "alone"))
            for variant in range(1 if kind == "alone" else generator.randint(1, 4)):
                row = {"suite": "s", "task": task, "prompt": f"{task} {number} {variant} [MASK]", "answers": ["a"]}
                row |= {"target": "a", "choices": ["a", "b"], "domain": domain, "template": f"{relation}/{variant}"}
                row |= {"qset": f"set {number}"} if kind == "qset" else {}
                rows.append(row | ({"facts": [f"fact {number}", f"premise {variant}"]} if kind == "fact" else {}))
    return rows


def by_item(table: Any) -> dict[Item, list[dict[str, Any]]]:
    clusters = QuestionSet(table).clusters()
    items: dict[Item, list[dict[str, Any]]] = defaultdict(list)
    for row in table.to_pylist():
        items[row["task"], clusters[row["question_id"]]].append(row)
    return items


def stratum(rows: list[dict[str, Any]]) -> tuple[str, str]:
    return min(row["domain"] for row in rows), min(row["template"].split("/")[0] for row in rows)


def test_a_limit_draws_whole_items_of_every_stratum() -> None:
    def check(seed: int) -> None:
        generator = random.Random(seed)
        rows = make_questions(generator)
        pool = make_table(QUESTIONS, rows)
        every, smaller = by_item(pool), set()
        for limit in sorted(generator.sample(range(1, 60), 5)):
            drawn_table = draw_questions(pool, limit, seed)
            drawn = by_item(drawn_table)
            assert smaller <= set(drawn) <= set(every)
            smaller = set(drawn)
            for item, own in drawn.items():
                assert {row["question_id"] for row in own} == {row["question_id"] for row in every[item]}
            for task in {task for task, _ in every}:
                known = {item: stratum(own) for item, own in every.items() if item[0] == task}
                chosen = [known[item] for item in drawn if item[0] == task]
                assert len(chosen) == min(limit, len(known))
                assert len(set(chosen)) == min(limit, len(set(known.values())))
                domains = {domain for domain, _ in known.values()}
                assert len({domain for domain, _ in chosen}) == min(limit, len(domains))
            shuffled = pool.take(generator.sample(range(pool.num_rows), pool.num_rows))
            assert draw_questions(shuffled, limit, seed).equals(drawn_table)

    check_all(check, [(seed,) for seed in range(12)])


def test_another_seed_draws_other_items() -> None:
    rows = [
        {
            "suite": "s",
            "task": "t",
            "prompt": f"{number} [MASK]",
            "answers": ["a"],
            "target": "a",
            "choices": ["a", "b"],
        }
        for number in range(50)
    ]
    pool = make_table(QUESTIONS, rows)
    assert len({tuple(draw_questions(pool, 5, seed)["question_id"].to_pylist()) for seed in range(4)}) == 4


def test_the_completion_questions_of_the_premises_of_drawn_conclusions_are_added() -> None:
    rows = [
        {"question_id": f"{task[:2]} {fact} {kind}", "task": task, "prompt": f"{task} {fact} {kind} [MASK]"}
        | {"answers": ["a"], "target": "a", "choices": ["a", "b"], "facts": facts, "qset": fact}
        for task, fact, facts in (
            *(("completion", f"f{number}", [f"f{number}"]) for number in range(4)),
            *(("checking", f"f{number}", [f"f{number}"]) for number in range(4)),
            ("reasoning", "c0", ["c0", "f0", "c1"]),
            ("reasoning", "c1", ["c1", "f1", "f2"]),
            ("completion", "none", []),
        )
        for kind in range(2)
    ]
    pool = make_table(QUESTIONS, rows)
    below = {"c0": ["f0", "f1", "f2"], "c1": ["f1", "f2"]}
    premises = make_table(
        PREMISES,
        [
            {"question_id": f"re {name} {kind}", "fact_id": fact, "step": 1, "axiom": "chain"}
            for name, facts in below.items()
            for fact in facts
            for kind in range(2)
        ],
    )
    drawn = pool.filter([row["question_id"] in ("re c0 0", "co f0 1", "ch f3 0") for row in pool.to_pylist()])
    added = add_premise_facts(drawn, pool, premises)["question_id"].to_pylist()
    assert sorted(added) == sorted(
        ["re c0 0", "ch f3 0", *(f"co f{number} {kind}" for number in range(3) for kind in range(2))]
    )
    assert add_premise_facts(pool, pool, premises).equals(pool)
