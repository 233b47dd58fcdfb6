"""The makers in small worlds made by hand, where everything can be seen."""

from __future__ import annotations

import random

from all_cases import check_all

from merkhet.questions.templates import Hierarchy, Relation
from merkhet.suites.quickstart.questions.checking import make_checks
from merkhet.suites.quickstart.questions.completion import answer_frequencies, make_completions
from merkhet.suites.quickstart.questions.distinction import make_distinctions
from merkhet.suites.quickstart.questions.named_facts import MakerOptions

IS_A = Relation("is-a", "is-a", ("{subject} is {a object}.",), transitive=True)
NEAR = Relation("near", "near", ("{subject} is near {object}.",))
KINDS = Hierarchy("kinds", "is-a", ("Of {members}, no {category} is [MASK].",))


def options(**changed):
    return MakerOptions(**{"suite": "s", "limit": 100, "choices": 20, "seed": 0, **changed})


def completions(knowledge, *relations, **changed):
    return make_completions(knowledge, {one.name: one for one in relations}, options(**changed))


ANIMALS = [("poodle", "is-a", "dog"), ("dog", "is-a", "animal"), ("owl", "is-a", "bird"), ("bird", "is-a", "animal")]


def test_what_a_chain_of_facts_says_is_right_too(world):
    rows = {row["prompt"]: row for row in completions(world(*ANIMALS), IS_A)}
    assert set(rows) == {"Poodle is [MASK].", "Dog is [MASK].", "Owl is [MASK].", "Bird is [MASK]."}
    poodle = rows["Poodle is [MASK]."]
    assert (poodle["target"], poodle["answers"]) == ("a dog", ["a dog", "an animal"])
    assert set(poodle["choices"]) == {"a dog", "a bird"}
    assert set(rows["Bird is [MASK]."]["choices"]) == {"an animal", "a dog"}


def test_a_circle_of_facts_does_no_harm(world):
    circle = world(("a", "is-a", "b"), ("b", "is-a", "c"), ("c", "is-a", "a"), ("x", "is-a", "y"))
    rows = {row["prompt"]: set(row["choices"]) for row in completions(circle, IS_A)}
    assert rows["A is [MASK]."] == {"a b", "a y"}
    assert rows["X is [MASK]."] == {"a y", "an a", "a b", "a c"}


def test_several_right_answers_are_never_offered_against_one_another(world):
    knowledge = world(("a", "near", "b"), ("a", "near", "c"), ("d", "near", "e"))
    for row in completions(knowledge, NEAR):
        if row["prompt"] == "A is near [MASK].":
            assert set(row["answers"]) == {"b", "c"}
            assert set(row["choices"]) == {row["target"], "e"}


def test_namesakes_share_their_right_answers(world):
    knowledge = world(("Paris#fr", "near", "Lyon"), ("Paris#us", "near", "Dallas"), ("Oslo", "near", "Bergen"))
    for row in completions(knowledge, NEAR):
        if row["prompt"] == "Paris is near [MASK].":
            assert set(row["choices"]) == {row["target"], "Bergen"}
            assert set(row["answers"]) == {"Lyon", "Dallas"}


def test_what_the_sentence_says_already_is_no_choice(world):
    knowledge = world(("a", "near", "b"), ("b", "near", "a"), ("c", "near", "d"))
    assert all(row["prompt"][0].lower() not in row["choices"] for row in completions(knowledge, NEAR))
    statements = make_checks(knowledge, {"near": NEAR}, options())
    assert statements
    assert not [row for row in statements if "A is near a" in row["prompt"] or "B is near b" in row["prompt"]]


def test_a_relation_with_one_answer_asks_nothing(world):
    assert completions(world(("a", "near", "x"), ("b", "near", "x")), NEAR) == []
    assert make_checks(world(("a", "near", "x")), {"near": NEAR}, options()) == []


def test_as_many_choices_as_asked_for(world):
    knowledge = world(*[(f"s{i}", "near", f"o{i}") for i in range(30)])
    assert {len(row["choices"]) for row in completions(knowledge, NEAR, choices=4)} == {4}
    places = [row["choices"].index(row["target"]) for row in completions(knowledge, NEAR, choices=4)]
    assert set(places) == {0, 1, 2, 3}


def test_numbers_are_asked_for_as_numbers(world):
    knowledge = world(values=[("iron", "melts", 1811.0), ("neon", "melts", 24.6)])
    rows = completions(knowledge, Relation("melts", "melts", ("{subject} melts at {object} K.",)))
    assert {row["prompt"]: row["target"] for row in rows} == {
        "Iron melts at [MASK] K.": "1811",
        "Neon melts at [MASK] K.": "24.6",
    }


def test_kinds_of_questions_can_be_switched_off(world):
    knowledge = world(*[(f"s{i}", "near", f"o{i}") for i in range(5)])
    silent = Relation("near", "near", NEAR.templates, checking=False, completion=False)
    assert completions(knowledge, silent) == []
    assert make_checks(knowledge, {"near": silent}, options()) == []


def test_only_the_last_word_is_kept_where_a_relation_is_shortened(world):
    knowledge = world(("Samoa", "money", "Samoan tala"), ("Japan", "money", "Japanese yen"), ("Chile", "money", "peso"))
    relation = Relation("money", "money", ("{subject} pays in {object}.",), shorten="object")
    assert {row["target"] for row in completions(knowledge, relation)} == {"tala", "yen", "peso"}


def test_frequencies_count_the_facts_of_each_answer(world):
    knowledge = world(("a", "is-a", "owl"), ("b", "is-a", "owl"), ("c", "is-a", "cat"))
    rows = answer_frequencies(knowledge, {"is-a": IS_A}, "en")
    assert [(row["relation"], row["answer"], row["count"]) for row in rows] == [
        ("is-a", "a cat", 1),
        ("is-a", "an owl", 2),
    ]


def test_statements_are_balanced_also_where_relations_run_out(world):
    def check(*counts):
        triples = [(f"s{k}{i}", f"r{k}", f"o{k}{i}") for k, n in enumerate(counts) for i in range(max(n, 2))]
        relations = {f"r{k}": Relation(f"r{k}", f"r{k}", ("{subject} {object}",)) for k in range(len(counts))}
        knowledge = world(*triples)
        for limit in (1, 4, 6, 100):
            rows = make_checks(knowledge, relations, options(limit=limit))
            for group in (rows, *[[r for r in rows if r["template"].startswith(name)] for name in relations]):
                assert abs(sum(1 if row["target"] == "true" else -1 for row in group)) <= 1, limit

    check_all(check, [(3, 3, 3), (1, 1, 1, 1, 1), (5, 4, 3, 2), (7,)])


BIRDS = [(name, "is-a", "bird") for name in ("owl", "crane#bird", "robin", "hen", "tern", "duck")]


def test_a_namesake_of_a_member_is_not_the_odd_one(world):
    knowledge = world(
        *BIRDS, ("bird", "is-a", "animal"), ("crane#lift", "is-a", "machine"), ("winch", "is-a", "machine")
    )
    rows = [row for seed in range(20) for row in make_distinctions(knowledge, {"k": KINDS}, options(seed=seed))]
    assert {row["target"] for row in rows} == {"winch"}
    assert all(len(set(row["choices"])) == 4 for row in rows)


def test_no_odd_one_no_question(world):
    assert make_distinctions(world(*BIRDS), {"k": KINDS}, options()) == []
    assert make_distinctions(world(*BIRDS, ("bird", "is-a", "animal")), {"k": KINDS}, options()) == []
    assert make_distinctions(world(*BIRDS[:2], ("cat", "is-a", "pet")), {"k": KINDS}, options()) == []


def test_small_worlds_are_asked_about_alike_in_any_order(world, shuffled):
    knowledge = world(*ANIMALS, *BIRDS[1:], ("cat", "is-a", "animal"))
    makers = [(make_completions, {"is-a": IS_A}), (make_checks, {"is-a": IS_A}), (make_distinctions, {"k": KINDS})]
    for maker, material in makers:
        expected = maker(knowledge, material, options())
        for seed in range(3):
            assert maker(shuffled(knowledge, random.Random(seed)), material, options()) == expected
