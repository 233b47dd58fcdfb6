"""What the packs claim to be complete is so as far as one can see, and what they say of animals, words and things."""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from pathlib import Path

import pytest
from all_cases import check_all

sys.path.insert(0, str(Path(__file__).parent))
from pack_tables import facts, meta, names, objects

from merkhet.knowledge.store import KnowledgeBase

PACKS = ("countries", "elements", "everyday", "history", "offices", "physics", "taxonomy")
CLASSES = ("mammal", "bird", "fish", "reptile", "insect", "arachnid", "crustacean")
VERTEBRATES, ARTHROPODS = set(CLASSES[:4]), set(CLASSES[4:])
ORGANS = {
    "a backbone": VERTEBRATES,
    "a skull": VERTEBRATES,
    "a spinal cord": VERTEBRATES,
    "an outer skeleton of chitin": ARTHROPODS,
    "feathers": {"bird"},
    "milk glands": {"mammal"},
    "three tiny bones in each middle ear": {"mammal"},
    "a windpipe and at least one lung": {"mammal", "bird", "reptile"},
    "gills and fins": {"fish"},
    "a heart with two ventricles": {"mammal", "bird", "crocodile", "alligator"},
    "one pair of antennae": {"insect"},
    "two pairs of antennae": {"crustacean"},
    "six legs in three pairs": {"insect"},
    "eight legs but no antennae": {"arachnid"},
}
# Animals of which a statement about their class does not hold, or is not known to hold.
UNLIKE_THEIR_CLASS = (
    "lungfish",
    "hagfish",
    "barnacle",
    "dinosaur",
    "pterodactyl",
    "tyrannosaurus",
    "caterpillar",
    "moa",
)


def closure(pack: str, predicate: str) -> dict[str, set[str]]:
    """Everything above each subject, by plain search."""
    parents = defaultdict(set)
    for row in facts(pack):
        if row["predicate"] == predicate:
            parents[row["subject"]].add(row["object"])

    def above(entity: str, path: tuple[str, ...] = ()) -> set[str]:
        assert entity not in path, f"a circle: {path}"
        found = set()
        for parent in parents.get(entity, ()):
            found |= {parent} | above(parent, (*path, entity))
        return found

    return {entity: above(entity) for entity in list(parents)}


@pytest.fixture(scope="module")
def labels():
    return {row["entity"]: row["label"] for pack in PACKS for row in names(pack)}


def test_completeness_is_declared_and_follows_from_functional():
    declared = {}
    for pack in PACKS:
        for name, about in meta(pack)["predicates"].items():
            assert about.get("complete", "both") in ("object", "subject", "both")
            declared[name] = about.get("complete") or ("object" if about["functional"] else None)
    with KnowledgeBase.load(list(PACKS)) as knowledge:
        assert {name: about.complete for name, about in knowledge.predicates.items()} == declared
    assert [declared[name] for name in ("borders", "is-a", "si-unit", "has-body-part")] == [
        *("both", "object", "object", "both")
    ]
    open_ones = {"used-for", "at-location", "made-of", "comes-from", "lives-in", "empire-capital"}
    open_ones |= {"adjective-of", "does-job", "part-of"}
    assert {name for name, complete in declared.items() if complete is None} == open_ones


def test_no_predicate_is_complete_that_misses_what_another_one_says():
    """Capitals lie in their country; a battle of a war within a war is one of both."""
    for row in facts("countries"):
        if row["predicate"] == "capital":
            country = objects("countries", row["object"], "city-in")
            assert country in (set(), {row["subject"]}), row
    series = {row["subject"]: row["object"] for row in facts("history") if row["predicate"] == "war-of-series"}
    battles = {(row["subject"], row["object"]) for row in facts("history") if row["predicate"] == "battle-of-war"}
    wars = {war for _, war in battles}
    for battle, war in battles:
        larger = series.get(war)
        assert larger not in wars or (battle, larger) in battles, (battle, war, larger)


def test_animals_are_of_one_class_and_the_table_of_organs_is_full(labels):
    stated = {
        (labels[row["subject"]], labels[row["object"]])
        for row in facts("taxonomy")
        if row["predicate"] == "has-body-part"
    }
    assert stated == {(owner, organ) for organ, owners in ORGANS.items() for owner in owners}
    members = defaultdict(set)
    for animal, above in closure("taxonomy", "is-a").items():
        found = {labels[entity] for entity in above} & set(CLASSES)
        assert len(found) <= 1, (animal, found)
        for name in found:
            members[name].add(labels[animal])
    assert min(len(members[name]) for name in CLASSES) >= 5
    assert {animal for animals in members.values() for animal in animals}.isdisjoint(UNLIKE_THEIR_CLASS)


def test_things_are_of_closed_classes_and_parts_of_named_wholes(labels):
    def check(thing, expected):
        assert {labels[entity] for entity in closure("taxonomy", "is-a")[f"synset:{thing}-n-1"]} == expected

    check_all(
        check,
        [
            ("sparrow", {"bird"}),
            ("salmon", {"fish"}),
            ("bat", {"mammal"}),
            ("eagle", {"bird of prey", "bird"}),
            ("lemon", {"fruit", "tree"}),
            ("pistol", {"gun", "weapon"}),
            ("guitar", {"musical instrument"}),
            ("measles", {"disease"}),
        ],
    )
    assert closure("taxonomy", "part-of")["synset:toenail-n-1"] == {
        *("synset:toe-n-1", "synset:foot-n-1", "synset:leg-n-1")
    }
    realms = {row["subject"] for row in facts("taxonomy") if row["predicate"] == "class-realm"}
    tops = set().union(*closure("taxonomy", "is-a").values()) - set(closure("taxonomy", "is-a"))
    assert realms == tops
    told = {labels[row[place]] for row in facts("taxonomy") for place in ("subject", "object")}
    assert told.isdisjoint({"instep", "phaeton", "device", "artifact", "instrumentality"})
    assert len(closure("taxonomy", "is-a")) >= 900


def test_every_fact_of_taxonomy_and_everyday_cites_a_work():
    cited = {(pack, row["source"]) for pack in ("taxonomy", "everyday") for row in facts(pack)}
    assert cited == {("taxonomy", "wordnet"), ("taxonomy", "openstax"), ("everyday", "wordnet")}


def test_opposites_are_not_made_by_a_prefix(labels):
    pairs = [
        (labels[row["subject"]], labels[row["object"]])
        for row in facts("everyday")
        if row["predicate"] == "opposite-of"
    ]
    prefix = "(un|in|im|il|ir|dis|non|mis)"
    assert [pair for pair in pairs for a, b in (pair, pair[::-1]) if re.fullmatch(prefix + re.escape(a), b)] == []


def test_one_to_one_predicates_of_animals_and_jobs():
    for predicate in ("young-of", "female-of", "male-of", "cry-of", "does-job", "opposite-of"):
        rows = [row for row in facts("everyday") if row["predicate"] == predicate]
        assert len({row["subject"] for row in rows}) == len(rows) > 5, predicate
    works = [row["object"] for row in facts("everyday") if row["predicate"] == "does-job"]
    assert len(set(works)) == len(works)
