"""The makers in small worlds made by hand, where everything can be seen."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace

import pytest
from all_cases import check_all

from merkhet.questions.schema import Hierarchy, Relation, Schema

IS_A = Relation("is-a", ("is-a",), ("{subject} is {a object}.",), transitive=True)
NEAR = Relation("near", ("near",), ("{subject} is near {object}.",))
KINDS = Schema({}, {}, {"k": Hierarchy("kinds", ("is-a",), templates=("Of {members}, no {category} is [MASK].",))})
FRAMES = {"checking": ("{statement} This is [MASK].",)}


def of(*relations):
    return Schema({}, {one.name: one for one in relations}, frames=FRAMES, verdicts=("true", "false"))


@pytest.fixture
def ask(make):
    def rows(knowledge, schema, task, **options):
        return make(knowledge, schema, task, distinct_names=False, **options).questions.to_pylist()

    return rows


@pytest.fixture
def completions(ask):
    return lambda knowledge, *relations, **options: ask(knowledge, of(*relations), "completion", **options)


ANIMALS = [("poodle", "is-a", "dog"), ("dog", "is-a", "animal"), ("owl", "is-a", "bird"), ("bird", "is-a", "animal")]


def test_what_a_chain_of_facts_says_is_right_too(world, completions):
    rows = {row["prompt"]: row for row in completions(world(*ANIMALS), IS_A)}
    assert set(rows) == {"Poodle is [MASK].", "Dog is [MASK].", "Owl is [MASK].", "Bird is [MASK]."}
    poodle = rows["Poodle is [MASK]."]
    assert (poodle["target"], poodle["answers"]) == ("a dog", ["a dog", "an animal"])
    assert set(poodle["choices"]) == {"a dog", "a bird"}
    assert set(rows["Bird is [MASK]."]["choices"]) == {"an animal", "a dog"}


def test_a_circle_of_facts_does_no_harm(world, completions):
    circle = world(("a", "is-a", "b"), ("b", "is-a", "c"), ("c", "is-a", "a"), ("x", "is-a", "y"))
    rows = {row["prompt"]: set(row["choices"]) for row in completions(circle, IS_A)}
    assert rows["A is [MASK]."] == {"a b", "a y"}
    assert rows["X is [MASK]."] == {"a y", "an a", "a b", "a c"}


def test_several_right_answers_are_never_offered_against_one_another(world, completions):
    knowledge = world(("a", "near", "b"), ("a", "near", "c"), ("d", "near", "e"))
    for row in completions(knowledge, NEAR):
        if row["prompt"] == "A is near [MASK].":
            assert set(row["answers"]) == {"b", "c"}
            assert set(row["choices"]) == {row["target"], "e"}


def test_namesakes_share_their_right_answers(world, completions):
    knowledge = world(("Paris#fr", "near", "Lyon"), ("Paris#us", "near", "Dallas"), ("Oslo", "near", "Bergen"))
    for row in completions(knowledge, NEAR):
        if row["prompt"] == "Paris is near [MASK].":
            assert set(row["choices"]) == {row["target"], "Bergen"}
            assert set(row["answers"]) == {"Lyon", "Dallas"}


def test_what_the_sentence_says_already_is_no_choice(world, completions, ask):
    knowledge = world(("a", "near", "b"), ("b", "near", "a"), ("c", "near", "d"))
    assert all(row["prompt"][0].lower() not in row["choices"] for row in completions(knowledge, NEAR))
    statements = ask(knowledge, of(NEAR), "checking")
    assert statements
    assert not [row for row in statements if "A is near a" in row["prompt"] or "B is near b" in row["prompt"]]


def test_a_relation_with_one_answer_asks_nothing(world, completions, ask):
    assert completions(world(("a", "near", "x"), ("b", "near", "x")), NEAR) == []
    assert ask(world(("a", "near", "x")), of(NEAR), "checking") == []


def test_as_many_choices_as_asked_for(world, completions):
    knowledge = world(*[(f"s{i}", "near", f"o{i}") for i in range(30)])
    assert {len(row["choices"]) for row in completions(knowledge, NEAR, choices=4)} == {4}
    places = [row["choices"].index(row["target"]) for row in completions(knowledge, NEAR, choices=4)]
    assert set(places) == {0, 1, 2, 3}


def test_numbers_are_asked_for_as_numbers(world, completions):
    knowledge = world(values=[("iron", "melts", 1811.0), ("neon", "melts", 24.6)])
    rows = completions(knowledge, Relation("melts", ("melts",), ("{subject} melts at {object} K.",)))
    assert {row["prompt"]: row["target"] for row in rows} == {
        "Iron melts at [MASK] K.": "1811",
        "Neon melts at [MASK] K.": "24.6",
    }


def test_kinds_of_questions_can_be_switched_off(world, completions, ask):
    knowledge = world(*[(f"s{i}", "near", f"o{i}") for i in range(5)])
    silent = Relation("near", ("near",), NEAR.templates, checking=False, completion=False)
    assert completions(knowledge, silent) == []
    assert ask(knowledge, of(silent), "checking") == []


def test_only_the_last_word_is_kept_where_a_relation_is_shortened(world, completions):
    knowledge = world(("Samoa", "money", "Samoan tala"), ("Japan", "money", "Japanese yen"), ("Chile", "money", "peso"))
    relation = Relation("money", ("money",), ("{subject} pays in {object}.",), shorten="object")
    assert {row["target"] for row in completions(knowledge, relation)} == {"tala", "yen", "peso"}


def test_frequencies_count_the_facts_that_no_question_is_about(world, make):
    kinds = {f"s{i}": ("owl", "cat", "emu")[i % 3] for i in range(30)}
    knowledge = world(*((name, "is-a", kind) for name, kind in kinds.items()))
    made = make(knowledge, of(IS_A), "completion", limit=10)
    subjects = {row["fact_id"]: row["subject"] for row in made.facts.to_pylist()}
    asked = {subjects[fact] for row in made.questions.to_pylist() for fact in row["facts"]}
    shown = {"owl": "an owl", "cat": "a cat", "emu": "an emu"}
    expected = Counter(shown[kind] for name, kind in kinds.items() if name not in asked)
    assert len(asked) == 10 and expected.total() == 20
    rows = made.frequencies.to_pylist()
    assert {row["answer"]: row["count"] for row in rows if row["relation"] == "is-a"} == expected
    assert make(knowledge, of(IS_A), "completion").frequencies.num_rows == 0


def test_a_symmetric_fact_and_another_relation_of_the_pair_are_not_counted(world, make):
    near = [(f"s{i}", "near", f"o{i}") for i in range(12)]
    knowledge = world(*near, *((o, "near", s) for s, _, o in near), ("p", "near", "q"), ("r", "near", "q"))
    made = make(knowledge, of(replace(NEAR, asks=("object", "subject"))), "completion", limit=4)
    by_id = {row["fact_id"]: row for row in made.facts.to_pylist()}
    asked = {
        frozenset((by_id[f]["subject"], by_id[f]["object"])) for q in made.questions.to_pylist() for f in q["facts"]
    }
    hidden = {name for pair in asked for name in pair} - {"q"}
    assert hidden and made.frequencies.num_rows
    assert not hidden & {row["answer"].lower() for row in made.frequencies.to_pylist()}


def test_statements_are_balanced_also_where_relations_run_out(world, ask):
    def check(*counts):
        triples = [(f"s{k}{i}", f"r{k}", f"o{k}{i}") for k, n in enumerate(counts) for i in range(max(n, 2))]
        relations = [Relation(f"r{k}", (f"r{k}",), ("{subject} {object}",)) for k in range(len(counts))]
        knowledge = world(*triples)
        for limit in (1, 4, 6, 100):
            rows = ask(knowledge, of(*relations), "checking", limit=limit)
            assert rows
            for group in (rows, *[[r for r in rows if r["template"].startswith(one.name)] for one in relations]):
                assert abs(sum(1 if row["target"] == "true" else -1 for row in group)) <= 1, limit

    check_all(check, [(3, 3, 3), (1, 1, 1, 1, 1), (5, 4, 3, 2), (7,)])


BIRDS = [(name, "is-a", "bird") for name in ("owl", "crane#bird", "robin", "hen", "tern", "duck")]


def test_a_namesake_of_a_member_is_not_the_odd_one(world, ask):
    knowledge = world(
        *BIRDS,
        *(("bird", "is-a", "animal"), ("machine", "is-a", "tool")),
        *(("crane#lift", "is-a", "machine"), ("winch", "is-a", "machine")),
    )
    rows = [row for seed in range(20) for row in ask(knowledge, KINDS, "distinction", seed=seed)]
    assert {row["target"] for row in rows} == {"winch"}
    assert all(len(set(row["choices"])) == 4 for row in rows)


def test_no_odd_one_no_question(world, ask):
    assert ask(world(*BIRDS), KINDS, "distinction") == []
    assert ask(world(*BIRDS, ("bird", "is-a", "animal")), KINDS, "distinction") == []
    assert ask(world(*BIRDS[:2], ("cat", "is-a", "pet")), KINDS, "distinction") == []


def test_small_worlds_are_asked_about_alike_in_any_order(world, ask, shuffled):
    knowledge = world(*ANIMALS, *BIRDS[1:], ("cat", "is-a", "animal"))
    for schema, task in ((of(IS_A), "completion"), (of(IS_A), "checking"), (KINDS, "distinction")):
        expected = ask(knowledge, schema, task)
        assert expected or task == "distinction"
        for seed in range(3):
            assert ask(shuffled(knowledge, random.Random(seed)), schema, task) == expected


def test_a_year_is_asked_for_among_years(world, completions):
    knowledge = world(("Ada", "moved", "Rome"), ("Ben", "moved", "Oslo"), ("Cid", "moved", "Bern"))
    knowledge.connection.execute(
        "update facts set start = case subject when 'Ada' then '1990' when 'Ben' then '2001-05-01' else '2012' end"
    )
    moved = Relation("moved", ("moved",), ("{subject} moved to {object} in {start}.",), asks=("start",))
    rows = {row["prompt"]: row for row in completions(knowledge, moved)}
    assert rows["Ben moved to Oslo in [MASK]."]["target"] == "2001"
    assert all(set(row["choices"]) == {"1990", "2001", "2012"} for row in rows.values())


def test_a_fact_whose_names_contain_one_another_is_not_asked(world, make):
    knowledge = world(("rocking chair", "is-a", "chair"), ("dog", "is-a", "animal"), ("owl", "is-a", "bird"))
    for task in ("completion", "checking"):
        prompts = make(knowledge, of(IS_A), task).questions["prompt"].to_pylist()
        assert prompts and not any(
            "ocking chair is a chair" in text or "Rocking chair is [MASK]" in text for text in prompts
        )


def test_names_that_tell_one_another_are_not_asked(world, make):
    """What is asked is what a plain comparison of words leaves over."""
    facts = [
        *(("rocking chair", "near", "chair"), ("inner ear", "near", "ear drum"), ("Albania", "near", "Albanian")),
        *(("baker", "near", "bake bread"), ("Punic War", "near", "the First Punic Wars"), ("newton", "near", "Newton")),
        *(("fisherman", "near", "catch fish"), ("electrician", "near", "install electric wiring")),
        *(("Mali", "near", "Malta"), ("owl", "near", "fowl play"), ("the cat", "near", "the dog")),
        *(
            ("He", "near", "helium"),
            ("用", "near", "用人"),
            ("colour of iron", "near", "smell of tin"),
            ("guitar", "near", "piano"),
        ),
    ]
    rows = make(world(*facts), of(NEAR), "completion", distinct_names=True, choices=None).questions.to_pylist()
    asked = {fact for row in rows for fact in row["facts"]}
    told = {"Mali", "the cat", "He", "用", "colour of iron", "guitar"}
    subjects = {row["prompt"].removesuffix(" is near [MASK].").lower() for row in rows}
    assert subjects == {name.lower() for name in told}
    assert len(asked) == len(told)
