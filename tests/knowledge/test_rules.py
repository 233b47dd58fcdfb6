"""Inference gives what the rules say and nothing else, against Python, SPARQL and owlrl, with proofs that hold."""

from __future__ import annotations

import json
import random
import shutil
import sys
import tempfile
from pathlib import Path

import pytest
from all_cases import check_all
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parent))
from rule_oracles import (
    CHAIN,
    CLASSES,
    DOMAIN,
    EQUIVALENT,
    INVERSE,
    PROPERTIES,
    RANGE,
    SUBCLASS,
    SUBPROPERTY,
    SYMMETRIC,
    TRANSITIVE,
    TYPE,
    check_proofs,
    closure,
    import_facts,
    inferred_from,
    long,
    owlrl_closure,
    random_axiom,
    random_fact,
    random_world,
    sparql_closure,
    table,
    triples,
)

from merkhet.core.errors import InputError
from merkhet.core.schemas import fact_id
from merkhet.knowledge.rules.fixpoint import infer
from merkhet.knowledge.rules.rule_files import DeclaredRules
from merkhet.knowledge.rules.rulebook import RULES, select_rules

FEW = settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.too_slow])
MANY = settings(FEW, max_examples=40)


def plain(facts):
    """Without times, and without chains, which RDF writes otherwise."""
    return {fact[:3] for fact in facts if fact[1] != CHAIN}


@st.composite
def worlds(draw):
    def choose(things):
        return draw(st.sampled_from(things))

    axioms = [random_axiom(choose) for _ in range(draw(st.integers(0, 10)))]
    return {*axioms, *[random_fact(choose) for _ in range(draw(st.integers(1, 10)))]}


def check_against_oracles(world):
    """Compare what is inferred with plain loops, SPARQL updates and owlrl, and check every proof."""
    with tempfile.TemporaryDirectory() as folder:
        rows, result = inferred_from(Path(folder), world)
    found = plain(triples(rows))
    assert found == plain(closure(world))
    pytest.importorskip("pyoxigraph")
    assert found == sparql_closure(world)
    assert result.inferred == len(rows) - len(world)
    check_proofs(rows)
    pytest.importorskip("owlrl")

    def of_the_world(facts):
        data, classes = {long(name) for name in PROPERTIES}, {long(name) for name in CLASSES}
        return {(s, p, o) for s, p, o in facts if p in data or (p == long(TYPE) and o in classes)}

    assert of_the_world({tuple(map(long, fact)) for fact in found}) == of_the_world(owlrl_closure(world))


@FEW
@given(worlds())
def test_what_follows_is_what_owlrl_sparql_and_python_find(world):
    check_against_oracles(world)


@pytest.mark.slow
@MANY
@given(worlds())
def test_what_follows_in_many_worlds_is_what_owlrl_sparql_and_python_find(world):
    check_against_oracles(world)


META = (
    ("p0", SUBPROPERTY, SUBCLASS),
    ("p1", SUBPROPERTY, TYPE),
    ("p2", SUBPROPERTY, SUBPROPERTY),
    ("p3", SUBPROPERTY, INVERSE),
    (SUBCLASS, SUBPROPERTY, "p4"),
    ("c0", SUBCLASS, SYMMETRIC),
    ("c1", SUBCLASS, TRANSITIVE),
    (TYPE, INVERSE, "p4"),
    ("p4", RANGE, "c0"),
)


@st.composite
def worlds_with_axioms_that_follow(draw):
    things = st.sampled_from([*CLASSES, *PROPERTIES])
    among = draw(st.sets(st.tuples(things, st.sampled_from(PROPERTIES), things), max_size=5))
    return draw(worlds()) | draw(st.sets(st.sampled_from(META))) | among


def check_against_sparql(world):
    """Compare what is inferred with SPARQL updates and check every proof."""
    with tempfile.TemporaryDirectory() as folder:
        rows, _ = inferred_from(Path(folder), world)
    pytest.importorskip("pyoxigraph")
    assert plain(triples(rows)) == sparql_closure(world)
    check_proofs(rows)


@FEW
@given(worlds_with_axioms_that_follow())
def test_axioms_that_follow_take_effect(world):
    check_against_sparql(world)


@pytest.mark.slow
@MANY
@given(worlds_with_axioms_that_follow())
def test_axioms_that_follow_take_effect_in_many_worlds(world):
    check_against_sparql(world)


def test_two_axioms_that_follow(tmp_path):
    world = [
        ("is-a", SUBPROPERTY, SUBCLASS),
        ("dog", "is-a", "animal"),
        ("rex", TYPE, "dog"),
        ("mutual", SUBCLASS, SYMMETRIC),
        ("likes", TYPE, "mutual"),
        ("ann", "likes", "bob"),
    ]
    rows, _ = inferred_from(tmp_path, world)
    assert {("rex", TYPE, "animal"), ("bob", "likes", "ann")} <= triples(rows, rule=True)
    check_proofs(rows)


def test_each_rule_alone(tmp_path):
    world = set().union(*(random_world(seed, 8, 12) for seed in range(9)))
    store = import_facts(tmp_path, world)

    def check(rule):
        result = infer(store, rules=[rule])
        rows = table(store)
        assert triples(rows) == {fact[:3] for fact in closure(world, [rule])}
        assert triples(rows, rule=rule) == triples(rows) - world
        assert set(result.by_rule) <= {rule}
        assert result.inferred, "a world in which the rule says nothing tests nothing"
        check_proofs(rows)

    check_all(check, RULES)


def test_types_go_all_the_way_up_without_closing_the_hierarchy(tmp_path):
    steps = [(f"c{number}", SUBCLASS, f"c{number + 1}") for number in range(6)]
    rows, result = inferred_from(tmp_path, [*steps, ("x", TYPE, "c0")], rules=["rdfs9"])
    assert triples(rows, rule=True) == {("x", TYPE, f"c{number}") for number in range(1, 7)}
    assert result.rounds == 6


def test_long_chains(tmp_path):
    steps = [f"s{number}" for number in range(9)]
    world = [(f"n{number}", step, f"n{number + 1}") for number, step in enumerate(steps)]
    world.append(("far", CHAIN, json.dumps(steps)))
    rows, _ = inferred_from(tmp_path, world)
    assert triples(rows, rule="chain") == {("n0", "far", "n9")}
    assert [len(row["premises"]) for row in rows.values() if row["rule"]] == [10]
    check_proofs(rows)


def test_proofs_too_long_for_one_number_are_the_same(tmp_path, monkeypatch):
    rows, _ = inferred_from(tmp_path, random_world(11, 16, 20))
    monkeypatch.setattr("merkhet.knowledge.rules.fixpoint._PACKED_BITS", 0)
    infer(tmp_path / "kb.duckdb")
    assert table(tmp_path / "kb.duckdb") == rows


def test_proofs_do_not_depend_on_the_order_of_facts_or_imports(tmp_path):
    world = sorted(random_world(7, 16, 20))
    expected = inferred_from(tmp_path, world)[0]
    for seed in range(2):
        folder = tmp_path / str(seed)
        folder.mkdir()
        shuffled = random.Random(seed).sample(world, len(world))
        import_facts(folder, shuffled[:9], name="facts.csv")
        store = import_facts(folder, shuffled[9:], name="facts.csv")
        infer(store)
        assert table(store) == expected
    assert len(expected) > 2 * len(world)


def test_ids_are_those_of_the_facts(tmp_path):
    odd = ['a "b"', "back\\slash", "é→中", "tab\tand\x1f", "plain"]
    world = [("likes", TYPE, SYMMETRIC), ("likes", SUBPROPERTY, "knows"), *[("x", "likes", name) for name in odd]]
    world += [
        {"subject": "x", "predicate": "likes", "value": 5.5, "unit": 'k"g'},
        {"subject": "x", "predicate": "likes", "object": '"text"@en'},
        {"subject": "y", "predicate": "likes", "object": "x", "start": "1957-03", "end": "1960"},
    ]
    rows, _ = inferred_from(tmp_path, world)
    assert len(rows) > 2 * len(world)
    assert {key: fact_id(row) for key, row in rows.items()} == {key: key for key in rows}


def test_what_is_stated_is_not_inferred_and_twice_is_as_good_as_once(tmp_path):
    world = random_world(3, 16, 20)
    once, result = inferred_from(tmp_path, world)
    assert triples(once, rule=None) == world
    assert len(triples(once)) == len(once)
    again = infer(tmp_path / "kb.duckdb")
    assert table(tmp_path / "kb.duckdb") == once
    assert again == result


def test_an_inferred_fact_that_is_imported_is_a_stated_one(tmp_path):
    world = [("likes", TYPE, SYMMETRIC), ("likes", SUBPROPERTY, "knows"), ("a", "likes", "b")]
    inferred_from(tmp_path, world)
    store = import_facts(tmp_path, [("b", "likes", "a")], name="more.csv")
    key = fact_id({"subject": "b", "predicate": "likes", "object": "a"})
    assert (table(store)[key]["rule"], table(store)[key]["premises"]) == (None, None)
    infer(store)
    assert table(store)[key]["rule"] is None
    assert triples(table(store), rule=True) == {("a", "knows", "b"), ("b", "knows", "a")}
    check_proofs(table(store))


def test_other_rules_forget_what_followed_and_what_a_file_declared(tmp_path):
    store = import_facts(tmp_path, [("a", "likes", "b"), ("likes", DOMAIN, "person")])
    infer(store, declared=DeclaredRules((("likes", TYPE, SYMMETRIC),), source="rules/first.yaml"))
    assert ("b", "likes", "a") in triples(table(store), rule=True)
    infer(store, declared=DeclaredRules((("likes", INVERSE, "liked by"),), source="rules/second.yaml"))
    assert triples(table(store), rule=True) == {("b", "liked by", "a"), ("a", TYPE, "person")}
    assert ("likes", TYPE, SYMMETRIC) not in triples(table(store))
    infer(store, rules=["rdfs2"])
    assert triples(table(store), rule=True) == {("a", TYPE, "person")}
    infer(store, rules=["chain"])
    assert triples(table(store)) == {("a", "likes", "b"), ("likes", DOMAIN, "person")}


def test_facts_of_a_source_that_is_called_like_a_rules_file_stay(tmp_path):
    fact = {"subject": "a", "predicate": "p", "object": "b", "source": "rules/mine"}
    rows, _ = inferred_from(
        tmp_path, [fact], declared=DeclaredRules((("p", TYPE, SYMMETRIC),), source="rules/one.yaml")
    )
    assert triples(rows) == {("a", "p", "b"), ("p", TYPE, SYMMETRIC), ("b", "p", "a")}
    infer(tmp_path / "kb.duckdb")
    assert triples(table(tmp_path / "kb.duckdb")) == {("a", "p", "b")}


def test_declared_facts_that_are_stated_too_stay_when_the_declaration_goes(tmp_path):
    store = import_facts(tmp_path, [("likes", TYPE, SYMMETRIC), ("a", "likes", "b")])
    infer(store, declared=DeclaredRules((("likes", TYPE, SYMMETRIC),), source="rules/one.yaml"))
    infer(store)
    assert ("b", "likes", "a") in triples(table(store), rule=True)


def test_a_declared_fact_that_is_imported_later_stays_too(tmp_path):
    store = import_facts(tmp_path, [("a", "likes", "b")])
    infer(store, declared=DeclaredRules((("likes", TYPE, SYMMETRIC),), source="rules/one.yaml"))
    import_facts(tmp_path, [("likes", TYPE, SYMMETRIC)], name="axioms.csv")
    infer(store)
    assert triples(table(store), rule=True) == {("b", "likes", "a")}


def test_a_chain_that_cannot_be_read_is_refused_and_nothing_changes(tmp_path):
    good = import_facts(tmp_path, [("likes", TYPE, SYMMETRIC), ("a", "likes", "b")], store="good.duckdb")
    infer(good)

    def check(text):
        store = Path(shutil.copy(good, tmp_path / "kb.duckdb"))
        import_facts(tmp_path, [("r", CHAIN, text)], name="broken.csv")
        before, content = table(store), store.read_bytes()
        with pytest.raises(InputError, match=r"the property chain of 'r' must be a list"):
            infer(store)
        assert table(store) == before
        assert store.read_bytes() == content

    check_all(check, ["p then q", "{}", '["p"]', '["p", 3]', '"p"'])


def test_literals_and_values_go_up_and_are_never_turned(tmp_path):
    value = {"subject": "x", "predicate": "mass", "value": 5.0, "unit": "kg"}
    text = {"subject": "x", "predicate": "mass", "object": '"five"@en'}
    axioms = [
        ("mass", TYPE, SYMMETRIC),
        ("mass", TYPE, TRANSITIVE),
        ("mass", INVERSE, "mass of"),
        ("mass", RANGE, "quantity"),
        ("mass", DOMAIN, "body"),
        ("mass", SUBPROPERTY, "property"),
        ("weight", EQUIVALENT, "mass"),
        ("owner", CHAIN, json.dumps(["part", "mass"])),
        ("y", "part", "x"),
    ]
    rows, _ = inferred_from(tmp_path, [*axioms, value, text])
    objects = [(5.0, "kg"), '"five"@en']
    expected = {(s, p, o) for s, p in (("x", "property"), ("x", "weight"), ("y", "owner")) for o in objects}
    assert triples(rows, rule=True) == expected | {("x", TYPE, "body")}
    check_proofs(rows)


def test_axioms_about_literals_say_nothing(tmp_path):
    world = [
        ("p", DOMAIN, '"Person"'),
        ("p", SUBPROPERTY, '"q"'),
        ("c", SUBCLASS, '"d"'),
        ("x", "p", "y"),
        ("y", TYPE, "c"),
    ]
    rows, result = inferred_from(tmp_path, world)
    assert result.inferred == 0
    assert triples(rows) == set(world)


def test_wikidata_needs_no_declarations(tmp_path):
    world = [
        ("Q1", "P31", "Q5"),
        ("Q5", "P279", "Q6"),
        ("Q6", "P279", "Q7"),
        ("P1", "P1647", "P2"),
        ("Q1", "P1", "Q2"),
        ("P1", "P1696", "P3"),
        ("P2", DOMAIN, "Q8"),
        ("P2", TYPE, SYMMETRIC),
        ("P3", TYPE, TRANSITIVE),
    ]
    rows, _ = inferred_from(tmp_path, world)
    assert triples(rows, rule=True) == {
        ("Q1", "P31", "Q6"),
        ("Q1", "P31", "Q7"),
        ("Q5", "P279", "Q7"),
        ("Q1", "P2", "Q2"),
        ("Q2", "P2", "Q1"),
        ("Q2", "P3", "Q1"),
        ("Q1", "P31", "Q8"),
        ("Q2", "P31", "Q8"),
    }


def test_conclusions_keep_the_domain_of_the_fact_they_follow_from(tmp_path):
    world = [
        {"subject": "a", "predicate": "likes", "object": "b", "domain": "people"},
        {"subject": "likes", "predicate": TYPE, "object": SYMMETRIC, "domain": "grammar"},
        {"subject": "x", "predicate": SUBCLASS, "object": "y", "domain": "classes"},
        {"subject": "y", "predicate": SUBCLASS, "object": "z"},
    ]
    rows, _ = inferred_from(tmp_path, world)
    assert {(row["subject"], row["domain"]) for row in rows.values() if row["rule"]} == {
        ("b", "people"),
        ("x", "classes"),
    }


def test_nothing_follows_from_nothing(tmp_path):
    rows, result = inferred_from(tmp_path, [("a", "p", "b")])
    assert (result.inferred, result.by_rule, result.rounds, result.stated) == (0, {}, 0, 1)
    assert len(rows) == 1


def test_rules_are_chosen_by_kmirs_names_too():
    assert [rule.name for rule in select_rules(["symmetricop", "Sub-relation"])] == ["symmetric", "rdfs7"]
    assert len(select_rules([])) == len(RULES)
    with pytest.raises(InputError, match="there is no rule called 'transitve'; did you mean 'transitive'"):
        select_rules(["transitve"])
