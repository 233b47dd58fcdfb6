"""Categories against the plain closure: members truly in, others truly out, drawn by the seed alone."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from merkhet.core.errors import InputError
from merkhet.core.schemas import FACTS, make_table
from merkhet.knowledge.categories import Categories, lowest_common_categories
from merkhet.knowledge.chunk import Chunk
from merkhet.knowledge.store import KnowledgeBase

NODES = st.integers(0, 8).map(lambda number: f"n{number}")
GRAPHS = st.lists(st.tuples(NODES, st.sampled_from(["is-a", "type"]), NODES), min_size=1, max_size=16, unique=True)
TREE = [("rex", "type", "poodle"), ("tom", "type", "cat"), ("poodle", "is-a", "dog"), ("dog", "is-a", "mammal")]
TREE += [("cat", "is-a", "mammal"), ("mammal", "is-a", "animal"), ("eel", "is-a", "fish"), ("fish", "is-a", "animal")]


def categories(triples, *predicates: str) -> Categories:
    rows = [{"subject": low, "predicate": predicate, "object": high} for low, predicate, high in triples]
    # Every predicate has a fact, and numbers are no categories.
    rows += [{"subject": "number", "predicate": predicate, "value": 1.0} for predicate in ("is-a", "type")]
    return Categories(KnowledgeBase([Chunk(make_table(FACTS, rows))]), *predicates)


def plainly_above(triples, low: str) -> set[str]:
    """What is reached from below, step by step."""
    seen: set[str] = set()
    waiting = [low]
    while waiting:
        node = waiting.pop()
        for high in {high for one, _, high in triples if one == node} - seen:
            seen.add(high)
            waiting.append(high)
    return seen - {low}


@settings(deadline=None, max_examples=12)
@given(triples=GRAPHS, seed=st.integers(0, 3), count=st.integers(0, 9))
def test_drawn_members_are_in_and_others_are_out_also_in_circles(triples, seed, count):
    found = categories(triples, "is-a", "type")
    nodes = {node for low, _, high in triples for node in (low, high)}
    above = {node: plainly_above(triples, node) for node in nodes}
    assert {node: set(highs) for node, highs in found.ancestors.items()} == {n: a for n, a in above.items() if a}
    assert set(found.members) == {high for highs in above.values() for high in highs}
    assert set(found.leaves) == {n for n in nodes if above[n] and not any(n in highs for highs in above.values())}
    for category in found.members:
        inside = {node for node in nodes if category in above[node]}
        outside = {n for n in nodes if above[n]} - inside - {category} - above[category]
        same, different = found.sample_members(category, count, seed), found.sample_nonmembers(category, count, seed)
        assert (len(set(same)), len(set(different))) == (min(count, len(inside)), min(count, len(outside)))
        assert set(same) <= inside and set(different) <= outside
        assert set(found.sample_members(category, 99, seed)) == inside
        assert set(found.sample_nonmembers(category, 99, seed)) == outside
        some = sorted(nodes)[::2]
        assert set(found.sample_members(category, 99, seed, among=some)) == inside & set(some)
        assert set(found.sample_nonmembers(category, 99, seed, among=some)) == outside & set(some)


@settings(deadline=None, max_examples=6)
@given(triples=GRAPHS, shuffled=st.randoms(use_true_random=False))
def test_draws_hang_on_the_seed_and_not_on_the_order_of_rows(triples, shuffled):
    other = list(triples)
    shuffled.shuffle(other)
    one, two = categories(triples, "is-a", "type"), categories(other, "type", "is-a")
    for category in one.members:
        for seed in range(3):
            assert one.sample_members(category, 3, seed) == two.sample_members(category, 3, seed)
            assert one.sample_nonmembers(category, 3, seed) == two.sample_nonmembers(category, 3, seed)


def test_another_seed_draws_others():
    found = categories([(f"s{number}", "is-a", "c") for number in range(50)], "is-a")
    drawn = {tuple(found.sample_members("c", 5, seed)) for seed in range(10)}
    assert len(drawn) == 10
    assert found.sample_members("c", 10, 1)[:5] == found.sample_members("c", 5, 1)


@settings(deadline=None, max_examples=12)
@given(triples=GRAPHS, chosen=st.lists(NODES, min_size=1, max_size=3))
def test_least_common_categories_are_the_lowest_shared_ones(triples, chosen):
    found = categories(triples, "is-a", "type")
    shared = set.intersection(*[plainly_above(triples, node) for node in chosen])

    def strictly_below(one: str, other: str) -> bool:
        return other in plainly_above(triples, one) and one not in plainly_above(triples, other)

    expected = {one for one in shared if not any(strictly_below(other, one) for other in shared)}
    assert lowest_common_categories(found, chosen) == tuple(sorted(expected))
    assert bool(expected) == bool(shared)


def test_a_small_tree():
    found = categories(TREE, "type", "is-a")
    assert found.leaves == ("eel", "rex", "tom")
    assert found.belongs("rex", "animal") and not found.belongs("animal", "rex")
    assert found.members["mammal"] == ("cat", "dog", "poodle", "rex", "tom")
    assert sorted(found.sample_nonmembers("dog", 9, 0)) == ["cat", "eel", "fish", "tom"]
    assert found.siblings("dog") == ("cat",)
    assert found.siblings("mammal") == ("fish",)
    assert lowest_common_categories(found, ["rex", "tom"]) == ("mammal",)
    assert lowest_common_categories(found, ["rex", "eel"]) == ("animal",)
    assert lowest_common_categories(found, ["rex", "stone"]) == lowest_common_categories(found, []) == ()
    assert categories(TREE, "is-a").leaves == ("cat", "eel", "poodle")
    circle = categories([("a", "is-a", "b"), ("b", "is-a", "a"), ("x", "is-a", "a"), ("a", "is-a", "top")], "is-a")
    assert lowest_common_categories(circle, ["x"]) == ("a", "b")


def test_real_categories_by_two_ways():
    with KnowledgeBase.load(["taxonomy"]) as knowledge:
        found = Categories(knowledge, "is-a")
    dogs = set(found.members["synset:dog-n-1"])
    assert "synset:poodle-n-1" in dogs
    drawn = found.sample_nonmembers("synset:dog-n-1", 200, 7)
    assert not dogs & set(drawn) and "synset:animal-n-1" not in drawn
    random.Random(0).shuffle(drawn)
    assert found.sample_members("synset:dog-n-1", 5, 7, among=drawn) == []


def test_unknown_categories_and_predicates_are_refused():
    found = categories(TREE, "is-a", "type")
    with pytest.raises(InputError, match="nothing is in a category 'mamal'; did you mean 'mammal'"):
        found.sample_members("mamal", 1, 0)
    with pytest.raises(InputError, match="nothing is in a category 'rex'"):
        found.sample_nonmembers("rex", 1, 0)
    with pytest.raises(InputError, match="no fact has the predicate 'is_a'; did you mean 'is-a'"):
        categories(TREE, "is_a")
    with pytest.raises(InputError, match="at least one predicate"):
        categories(TREE)
