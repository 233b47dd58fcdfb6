"""Proofs down to stated facts, splits by premise and open-book questions, against slow oracles over random worlds."""

from __future__ import annotations

import hashlib
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from test_relational import RULES, SCHEMA, World, made_from, schema_of, write

from merkhet.core.errors import InputError
from merkhet.knowledge.engines._duckdb_engine import DuckTables
from merkhet.knowledge.store import KnowledgeBase
from merkhet.questions.makers.make_questions import TASKS, make_benchmark
from merkhet.questions.makers.open_book import OPEN_BOOK
from merkhet.questions.makers.question_builder import MakerOptions
from merkhet.questions.question_files import QuestionSet
from merkhet.questions.splits import check_splits

SHARES = {"train": 0.4, "dev": 0.2, "test": 0.4}
ALIASES = {"symmetric": "SymmetricOP", "transitive": "TransitiveOP", "chain": "SubOP(OPChain)"}
Triple = tuple[str, str, str]


def make(
    store: Path, folder: Path, seed: int, tasks: tuple[str, ...] = (*TASKS, OPEN_BOOK), **more: Any
) -> QuestionSet:
    options = MakerOptions("kmir", seed=seed, checks=60, rounds=2, **{"shares": SHARES, **more})
    with KnowledgeBase.open(store) as knowledge:
        return make_benchmark(DuckTables(knowledge.connection), schema_of(folder), options, tasks)


@pytest.fixture(scope="module", params=[0, 1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(2, 6))])
def world(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[World, QuestionSet, Path]:
    folder = tmp_path_factory.mktemp("premises")
    store = write(folder / "kb", *World(request.param).rows(), RULES)
    return World(request.param), make(store, folder, request.param), folder


def stored_facts(folder: Path) -> dict[str, dict[str, Any]]:
    with KnowledgeBase.open(folder / "kb" / "kb.duckdb") as knowledge:
        return {row["fact_id"]: row for row in knowledge.query("select * from facts").to_pylist()}


def steps_of(fact_id: str, facts: dict[str, dict[str, Any]], step: int = 0) -> dict[str, int]:
    """All facts of a proof with the step at which they are first needed, by plain recursion."""
    found: dict[str, int] = {}
    for premise in facts[fact_id]["premises"] or () if facts[fact_id]["rule"] else ():
        if not (facts[premise]["source"] or "").startswith("rules/"):
            for name, depth in {premise: step + 1, **steps_of(premise, facts, step + 1)}.items():
                found[name] = min(depth, found.get(name, depth))
    return found


def closure(stated: Iterable[Triple]) -> set[Triple]:
    """What follows from stated facts by the rules of the world."""
    true = set(stated)
    while True:
        more = {(o, p, s) for s, p, o in true if p == "near"}
        for s, p, o in true:
            for t, q, u in true:
                if o == t and (p, q) == ("kind", "kind"):
                    more.add((s, "kind", u))
                if o == t and (p, q) == ("lives", "near"):
                    more.add((s, "home", u))
        if more <= true:
            return true
        true |= more


def triple(row: dict[str, Any]) -> Triple:
    return row["subject"], row["predicate"], row["object"]


def reasoning_rows(made: QuestionSet, task: str = "reasoning") -> list[dict[str, Any]]:
    return [row for row in made.questions.to_pylist() if row["task"] == task and row["rule"] != "comparison"]


def premises_of(made: QuestionSet) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in made.premises.to_pylist():
        found[row["question_id"]].append(row)
    return found


def test_premises_are_the_stated_facts_at_the_bottom_of_each_proof(world: tuple[World, QuestionSet, Path]) -> None:
    _, made, folder = world
    facts, premises = stored_facts(folder), premises_of(made)
    rows = reasoning_rows(made) + reasoning_rows(made, OPEN_BOOK)
    depths = set()
    for row in rows:
        below = premises[row["question_id"]]
        proof = steps_of(row["facts"][0], facts)
        bottom = {name: step for name, step in proof.items() if facts[name]["rule"] is None}
        assert {one["fact_id"]: one["step"] for one in below} == bottom and bottom
        assert triple(facts[row["facts"][0]]) in closure(triple(facts[name]) for name in bottom)
        for one in below:
            # The axiom is that of a fact of the proof, one step up, that has the premise.
            above = {row["facts"][0]: 0, **proof}
            axioms = {
                ALIASES[facts[name]["rule"]]
                for name, step in above.items()
                if step == one["step"] - 1 and one["fact_id"] in (facts[name]["premises"] or ())
            }
            assert one["axiom"] in axioms
            subject, _, object_ = triple(facts[one["fact_id"]])
            assert subject.lower() in one["sentence"].lower() and object_.lower() in one["sentence"].lower()
        depths.add(max(proof.values()))
    assert len(depths) > 1, "some proofs need more than one step"
    comparisons = [row for row in made.questions.to_pylist() if row["rule"] == "comparison"]
    assert comparisons
    for row in comparisons:
        assert [one["fact_id"] for one in premises[row["question_id"]]] == sorted(row["facts"])
        assert {(one["step"], one["axiom"]) for one in premises[row["question_id"]]} == {(1, "comparison")}
    assert {row["question_id"] for row in made.premises.to_pylist()} == {
        row["question_id"] for row in made.questions.to_pylist() if row["rule"]
    }


def pair_of(fact: dict[str, Any]) -> tuple[str, ...]:
    return tuple(sorted((fact["subject"].lower(), (fact["object"] or "").lower())))


def own_split(pair: tuple[str, ...], seed: int) -> str:
    drawn = int(hashlib.md5("\x1f".join([str(seed), *pair]).encode()).hexdigest()[:13], 16) / 2**52
    return "train" if drawn < 0.4 else "dev" if drawn < 0.6 else "test"


def expected_splits(facts: dict[str, dict[str, Any]], seed: int) -> tuple[dict[str, str], set[str]]:
    """The split of each conclusion that stays, and the conclusions that are dropped, by union and find."""
    stated = {triple(fact) for fact in facts.values() if fact["rule"] is None}
    by_triple: dict[Triple, str] = {}
    for name, fact in sorted(facts.items()):
        if fact["rule"] and triple(fact) not in stated and fact["predicate"] in ("near", "kind", "home"):
            by_triple.setdefault(triple(fact), name)
    proofs = {
        name: {pair_of(facts[one]) for one in (name, *steps_of(name, facts))}
        for name in by_triple.values()
        if facts[name]["subject"] != facts[name]["object"]
    }
    uses = Counter(one for name in proofs for one in steps_of(name, facts) if one != name)
    hubs = {pair_of(facts[name]) for name, count in uses.items() if count > 20}
    linked = {name: pairs for name, pairs in proofs.items() if not pairs & hubs}
    component = {pair: {pair} for pairs in linked.values() for pair in pairs}
    for pairs in linked.values():
        merged = set().union(*(component[pair] for pair in pairs))
        for pair in merged:
            component[pair] = merged
    largest = max(20, int(0.02 * len(component)))
    own = {pair_of(fact) for fact in facts.values() if fact["rule"] is None}

    def split(pair: tuple[str, ...]) -> str:
        if pair in hubs or (pair not in component and pair not in own):
            return "train"
        together = component.get(pair, {pair})
        first = min(together, key="\x1f".join) if len(together) <= largest else pair
        return own_split(first, seed)

    splits = {name: {split(pair) for pair in pairs} for name, pairs in proofs.items()}
    kept = {name: next(iter(found)) for name, found in splits.items() if len(found) == 1}
    return kept, {name for name, found in splits.items() if len(found) > 1}


def test_conclusions_are_in_the_split_of_their_premises_or_dropped(world: tuple[World, QuestionSet, Path]) -> None:
    one, made, folder = world
    kept, dropped = expected_splits(stored_facts(folder), one.seed)
    rows = reasoning_rows(made)
    assert {row["facts"][0]: row["split"] for row in rows}.items() <= kept.items()
    assert len(set(kept.values())) > 1 and dropped
    [remark] = [text for text in made.about["remarks"] if "in several splits" in text]
    assert remark.startswith(f"left out {len(dropped):,} of {len(kept) + len(dropped):,} conclusions")
    for split, count in Counter(kept.values()).items():
        assert f"{count:,} in {split}" in remark
    losses = [loss for loss in made.about["losses"] if loss["task"] == "reasoning"]
    assert sum(loss["count"] for loss in losses if loss["reason"] == "the premises are in several splits") == len(
        dropped
    )
    assert made.about["split_by"] == "premise"


def test_no_premise_is_asked_in_another_split(world: tuple[World, QuestionSet, Path]) -> None:
    _, made, folder = world
    facts = stored_facts(folder)
    split_of_pair: dict[tuple[str, ...], set[str]] = defaultdict(set)
    for row in made.questions.to_pylist():
        asked = row["facts"] if row["rule"] in (None, "comparison") else row["facts"][:1]
        proof = () if row["rule"] in (None, "comparison") else steps_of(row["facts"][0], facts)
        for name in (*asked, *proof):
            if facts[name]["object"] is not None:
                split_of_pair[pair_of(facts[name])].add(row["split"])
    assert {len(splits) for splits in split_of_pair.values()} == {1}
    check_splits(made.questions, made.facts, premises=True)


def test_splits_by_fact_let_premises_straddle_and_keep_all_conclusions(tmp_path: Path) -> None:
    store = write(tmp_path / "kb", *World(0).rows(), RULES)
    by_premise, by_fact = (make(store, tmp_path, 0, split_by=way) for way in ("premise", "fact"))
    check_splits(by_fact.questions, by_fact.facts)
    with pytest.raises(InputError, match="so do those of its conclusions"):
        check_splits(by_fact.questions, by_fact.facts, premises=True)
    facts = stored_facts(tmp_path)
    for row in by_fact.questions.to_pylist():
        if (
            row["task"] != "distinction"
            and facts[row["facts"][0]]["object"] is not None
            and row["rule"] != "comparison"
        ):
            assert row["split"] == own_split(pair_of(facts[row["facts"][0]]), 0)
    kept, every = ({row["facts"][0] for row in reasoning_rows(made)} for made in (by_premise, by_fact))
    assert kept < every and len(every - kept) <= len(expected_splits(facts, 0)[1])
    assert by_fact.about["split_by"] == "fact"


def test_splits_do_not_depend_on_the_tasks_that_are_made(tmp_path: Path) -> None:
    store = write(tmp_path / "kb", *World(1).rows(), RULES)
    every, alone = make(store, tmp_path, 1), make(store, tmp_path, 1, ("completion",))
    split = {row["question_id"]: row["split"] for row in every.questions.to_pylist()}
    assert all(row["split"] == split[row["question_id"]] for row in alone.questions.to_pylist())
    assert alone.questions.num_rows and not alone.premises.num_rows


def sentences_of(book: str) -> list[str]:
    return re.findall(r"[^.]+\.", book)


def test_open_books_hold_the_premises_and_unrelated_ones(world: tuple[World, QuestionSet, Path]) -> None:
    _, made, folder = world
    facts, premises = stored_facts(folder), premises_of(made)
    closed: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in reasoning_rows(made):
        closed[row["qset"], row["template"], row["target"]] = row
    rows = reasoning_rows(made, OPEN_BOOK)
    assert len(rows) > 0.5 * len(closed)
    sentence_facts: dict[str, set[Triple]] = defaultdict(set)
    for below in premises.values():
        for premise in below:
            sentence_facts[premise["sentence"].strip()].add(triple(facts[premise["fact_id"]]))
    places = Counter()
    for row in rows:
        twin = closed[row["qset"], row["template"], row["target"]]
        assert row["prompt"].endswith(" " + twin["prompt"])
        same = ("answers", "target", "choices", "candidate_set", "facts", "rule", "split", "domain")
        assert all(row[name] == twin[name] for name in same)
        shown = [text.strip() for text in sentences_of(row["prompt"][: -len(twin["prompt"])])]
        own = {premise["sentence"] for premise in premises[row["question_id"]]}
        assert own < set(shown) and len(shown) == len(set(shown))
        places[next(place for place, text in enumerate(shown) if text in own)] += 1
        names = {name for text in own for fact in sentence_facts[text] for name in (fact[0], fact[2])}
        subject, predicate, object_ = triple(facts[row["facts"][0]])
        read: set[Triple] = set()
        for text in shown:
            read |= sentence_facts[text]
            if text not in own:
                assert all(not {fact[0], fact[2]} & names for fact in sentence_facts[text])
        # Of the choices, only the answer follows from all that is shown.
        follows = {fact for fact in closure(read) if fact[1] == predicate}
        for choice in row["choices"] or ():
            if choice != row["target"]:
                wrong = choice.split()[-1]
                assert (subject, predicate, wrong) not in follows and (wrong, predicate, object_) not in follows
        assert (subject, predicate, object_) in follows
    assert len(places) > 1, "the order is drawn"


def test_open_book_alone_has_no_closed_book_questions(tmp_path: Path) -> None:
    store = write(tmp_path / "kb", *World(0).rows(), RULES)
    alone, every = make(store, tmp_path, 0, (OPEN_BOOK,)), make(store, tmp_path, 0)
    assert set(alone.questions["task"].to_pylist()) == {OPEN_BOOK}
    assert alone.questions["question_id"].to_pylist() == [
        row["question_id"] for row in every.questions.to_pylist() if row["task"] == OPEN_BOOK
    ]
    assert not any(
        row["task"] == OPEN_BOOK for row in made_from(store, schema_of(tmp_path, SCHEMA)).questions.to_pylist()
    )
