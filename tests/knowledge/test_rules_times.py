"""When conclusions hold, what contradicts what, which hierarchies run in circles, and rules read from a file."""

from __future__ import annotations

import sys
import tempfile
from itertools import product
from pathlib import Path

import pytest
from all_cases import check_all
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parent))
from rule_oracles import (
    CHAIN,
    INVERSE,
    SUBCLASS,
    SUBPROPERTY,
    SYMMETRIC,
    TRANSITIVE,
    TYPE,
    check_proofs,
    closure,
    import_facts,
    inferred_from,
    random_axiom,
    random_fact,
    table,
    thing,
    triples,
    when,
)

from merkhet.core.errors import InputError
from merkhet.knowledge.rules.fixpoint import infer
from merkhet.knowledge.rules.rule_files import DeclaredRules, read_rules

FUNCTIONAL, INVERSE_FUNCTIONAL = "owl:FunctionalProperty", "owl:InverseFunctionalProperty"
PART_OF = ("part of", TYPE, TRANSITIVE)


def timed(rows, *, rule=True):
    """Subject, predicate, object, start and end of what was inferred."""
    names = ("subject", "predicate", "object", "start", "end")
    return {tuple(row[name] for name in names) for row in rows.values() if bool(row["rule"]) == rule}


@st.composite
def timed_worlds(draw):
    def choose(things):
        return draw(st.sampled_from(things))

    def time():
        start, end = choose([None, *range(1950, 1955)]), choose([None, None, *range(1952, 1957)])
        return (start, None if start and end and end < start else end)

    years = st.sampled_from([0, 1])
    axioms = [(*random_axiom(choose), *(time() if draw(years) else (None, None))) for _ in range(choose(range(8)))]
    return {*axioms, *[(*random_fact(choose), *time()) for _ in range(choose(range(1, 9)))]}


def check_times(world):
    """Compare the times of what is inferred with those of plain loops, and check every proof."""
    with tempfile.TemporaryDirectory() as folder:
        rows, _ = inferred_from(Path(folder), world)
    check_proofs(rows)
    found = {(row["subject"], row["predicate"], thing(row), when(row)) for row in rows.values()}
    stated = {
        (s, p, o, when({"start": start and str(start), "end": end and str(end)})) for s, p, o, start, end in world
    }
    expected = closure(stated)
    assert found <= expected
    # What holds within a longer time that is known need not be said.
    for s, p, o, (start, end) in expected:
        assert any(one[:3] == (s, p, o) and one[3][0] <= start and end <= one[3][1] for one in found)
    # And what is inferred was not known for as long when it was.
    for s, p, o, (start, end) in found - stated:
        assert not any(one[:3] == (s, p, o) and one[3][0] <= start and end <= one[3][1] for one in stated)


@settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(timed_worlds())
def test_conclusions_hold_while_all_of_their_premises_hold(world):
    check_times(world)


@pytest.mark.slow
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(timed_worlds())
def test_conclusions_of_many_worlds_hold_while_all_of_their_premises_hold(world):
    check_times(world)


def test_times_of_conclusions(tmp_path):
    world = [
        ("married", TYPE, SYMMETRIC),
        ("a", "married", "b", "1950-03", "1957-01-31"),
        ("b", "married", "c", "1960", None),
        PART_OF,
        ("x", "part of", "y", "1900", "1950"),
        ("y", "part of", "z", "1940-05", "1960"),
        ("z", "part of", "far", "1955", "1970"),
        ("lives", CHAIN, '["lives", "part of"]'),
        ("p", "lives", "x", None, "1945-06-01"),
    ]
    rows, _ = inferred_from(tmp_path, world)
    assert timed(rows) == {
        ("b", "married", "a", "1950-03", "1957-01-31"),
        ("c", "married", "b", "1960", None),
        ("x", "part of", "z", "1940-05", "1950"),
        ("y", "part of", "far", "1955", "1960"),
        ("p", "lives", "y", "1900", "1945-06-01"),
        ("p", "lives", "z", "1940-05", "1945-06-01"),
    }
    check_proofs(rows)


def test_times_before_christ(tmp_path):
    world = [
        PART_OF,
        ("x", "part of", "y", "-50", "-44-03"),
        ("y", "part of", "z", "-44-03-15", "-30"),
        ("z", "part of", "far", "-29", None),
    ]
    rows, _ = inferred_from(tmp_path, world)
    assert timed(rows) == {("x", "part of", "z", "-44-03-15", "-44-03")}


# When "b likes a" is stated to hold, and whether it is inferred from "a likes b" from 1950 to 1960 nevertheless.
STATED_TIMES = [
    (("1940", "1970"), False),
    ((None, None), False),
    (("1950-06", "1960-02"), False),  # As far as a year alone can tell.
    (("1951", "1970"), True),
    (("1940", "1959"), True),
]


def test_what_is_stated_for_as_long_is_not_inferred(tmp_path):
    def moved(time, shift):
        return time and f"{int(time[:4]) + shift}{time[4:]}"

    world, expected = [], {}
    for shift, (number, (times, inferred)) in product([0, -3000], enumerate(STATED_TIMES)):
        likes, lasting = f"likes {number} {shift}", [moved(time, shift) for time in ("1950", "1960")]
        world += [(likes, TYPE, SYMMETRIC), ("a", likes, "b", *lasting)]
        world += [("b", likes, "a", *[moved(time, shift) for time in times])]
        expected[("b", likes, "a", *lasting)] = inferred
    rows, _ = inferred_from(tmp_path, world, rules=["symmetric"])
    found = timed(rows)
    assert {fact: fact in found for fact in expected} == expected


# Contradictions -------------------------------------------------------------------------------------------------------


def clashes(folder, world):
    """The kind of each contradiction, what it is about, and the subjects of its facts."""
    rows, result = inferred_from(folder, world)
    found = {
        (one.kind, one.about, frozenset((rows[key]["subject"], rows[key]["object"]) for key in one.facts))
        for one in result.contradictions
    }
    assert result.contradicted == len(result.contradictions)
    return found


def test_functional_properties_have_one_object(tmp_path):
    world = [("capital", TYPE, FUNCTIONAL), ("F", "capital", "Paris"), ("F", "capital", "Lyon"), ("G", "capital", "B")]
    assert clashes(tmp_path, world) == {("functional", "capital", frozenset({("F", "Paris"), ("F", "Lyon")}))}


# The times of two chairs of one club, and whether they cannot both be right.
CHAIR_TIMES = [
    (("1950", "1957"), ("1957", "1960"), False),
    (("1957", "1957"), ("1957", "1957"), False),
    (("1950", "1957-03"), ("1957-03", "1960"), False),
    (("1950", "1957-03-01"), ("1957-03-01", "1960"), False),
    (("1950", "1957"), ("1956", "1960"), True),
    (("1950", "1957-04"), ("1957-03", "1960"), True),
    (("1950", None), ("1957", None), True),
    ((None, None), ("1957", "1960"), True),
    (("1950", "1955"), ("1957", "1960"), False),
    (("-50", "-44"), ("-44", "-30"), False),
    (("-50", "-44-03"), ("-44-03", "-30"), False),
    (("-50", "-43"), ("-44", "-30"), True),
]


def test_functional_properties_have_one_object_at_a_time(tmp_path):
    world, expected = [("chair", TYPE, FUNCTIONAL)], set()
    for first, second, clash in CHAIR_TIMES:
        club = f"club {first} {second}"
        world += [(club, "chair", "ann", *first), (club, "chair", "bob", *second)]
        expected |= {("functional", "chair", frozenset({(club, "ann"), (club, "bob")}))} if clash else set()
    assert clashes(tmp_path, world) == expected


def test_contradictions_of_every_other_kind(tmp_path):
    world = [
        ("id", TYPE, INVERSE_FUNCTIONAL),
        ("a", "id", "one"),
        ("b", "id", "one"),
        ("above", TYPE, "owl:AsymmetricProperty"),
        ("a", "above", "b"),
        ("below", INVERSE, "above"),
        ("a", "below", "b"),
        ("next to", TYPE, "owl:IrreflexiveProperty"),
        ("a", "next to", "a"),
        ("son of", "owl:propertyDisjointWith", "father of"),
        ("father of", "owl:propertyDisjointWith", "son of"),
        ("a", "son of", "b"),
        ("a", "father of", "b"),
        ("plant", "owl:disjointWith", "animal"),
        ("rose", SUBCLASS, "plant"),
        ("dog", SUBCLASS, "animal"),
        ("it", TYPE, "rose"),
        ("it", TYPE, "dog"),
    ]
    assert clashes(tmp_path, world) == {
        ("inverse functional", "id", frozenset({("a", "one"), ("b", "one")})),
        ("asymmetric", "above", frozenset({("a", "b"), ("b", "a")})),
        ("irreflexive", "next to", frozenset({("a", "a")})),
        ("disjoint properties", "father of", frozenset({("a", "b")})),
        ("disjoint classes", "animal", frozenset({("it", "plant"), ("it", "animal")})),
    }


def test_what_fits_together_is_no_contradiction(tmp_path):
    world = [
        ("capital", TYPE, FUNCTIONAL),
        ("F", "capital", "Paris", "1950", None),
        ("F", "capital", "Paris", "1940", None),
        ("plant", "owl:disjointWith", "animal"),
        ("rose", TYPE, "plant"),
        ("dog", TYPE, "animal"),
    ]
    assert clashes(tmp_path, world) == set()


# Circles --------------------------------------------------------------------------------------------------------------


def test_circles_are_named_and_do_no_harm(tmp_path):
    world = [
        ("a", SUBCLASS, "b"),
        ("b", SUBCLASS, "c"),
        ("c", SUBCLASS, "a"),
        ("c", SUBCLASS, "top"),
        ("low", SUBCLASS, "a"),
        ("self", SUBCLASS, "self"),
        ("p", SUBPROPERTY, "q"),
        ("q", SUBPROPERTY, "p"),
        ("top", SUBCLASS, "d"),
        ("d", SUBCLASS, "e"),
        ("e", SUBCLASS, "d"),
        ("x", TYPE, "b"),
        ("x", "q", "y"),
        PART_OF,
        *[(f"n{number}", "part of", f"n{(number + 1) % 5}") for number in range(5)],
    ]
    rows, result = inferred_from(tmp_path, world)
    assert result.cycles == [["a", "b", "c"], ["d", "e"], ["p", "q"]]
    assert {o for s, p, o in triples(rows) if (s, p) == ("x", TYPE)} == {"a", "b", "c", "top", "d", "e"}
    assert len([fact for fact in triples(rows) if fact[1] == "part of"]) == 25
    assert triples(rows) == {fact[:3] for fact in closure(world)}
    check_proofs(rows)


@settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.sets(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=16))
def test_circles_are_the_classes_below_each_other(edges):
    with tempfile.TemporaryDirectory() as folder:
        _, result = inferred_from(Path(folder), [(f"c{a}", SUBCLASS, f"c{b}") for a, b in edges], rules=["rdfs11"])
    above = {(f"c{a}", f"c{b}") for a, b in edges}
    while more := {(a, d) for a, b in above for c, d in above if b == c} - above:
        above |= more
    expected = {frozenset(b for a, b in above if a == one and (b, a) in above) for one in {a for a, _ in above}}
    assert {frozenset(circle) for circle in result.cycles} == {circle for circle in expected if len(circle) > 1}


# Rules from a file ----------------------------------------------------------------------------------------------------

GOOD = """
symmetric: [opposite of]
transitive: part of
functional: [capital]
inverse: [[capital, capital of]]
equivalent: [[citizen of, nationality]]
subproperty: [[father of, parent of]]
subclass: [[dog, animal]]
domain: [[capital, country]]
chain:
  - {if: [country, continent], then: continent}
disjoint classes: [[plant, animal]]
vocabulary: {subclass: [is a], type: instance of}
"""


def test_rules_are_read_from_a_file_and_work(tmp_path):
    file = tmp_path / "my.yaml"
    file.write_text(GOOD, encoding="utf-8")
    declared = read_rules(file)
    assert declared.source == "rules/my.yaml"
    assert ("part of", TYPE, TRANSITIVE) in declared.axioms
    assert ("continent", CHAIN, '["country", "continent"]') in declared.axioms
    assert declared.roles()["subclass"] == (SUBCLASS, "P279", "is a")
    world = [
        ("pup", "is a", "dog"),
        ("rex", "instance of", "pup"),
        ("tom", "instance of", "plant"),
        ("tom", "instance of", "animal"),
        ("F", "capital", "Paris"),
        ("ann", "father of", "bob"),
        ("lyon", "country", "F"),
        ("F", "continent", "Europe"),
    ]
    store = import_facts(tmp_path, world)
    result = infer(store, declared=declared)
    assert triples(table(store), rule=True) == {
        ("pup", "is a", "animal"),
        ("rex", "instance of", "dog"),
        ("rex", "instance of", "animal"),
        ("Paris", "capital of", "F"),
        ("F", "instance of", "country"),
        ("ann", "parent of", "bob"),
        ("lyon", "continent", "Europe"),
    }
    assert [(one.kind, one.about) for one in result.contradictions] == [("disjoint classes", "animal")]
    infer(store)
    assert triples(table(store)) == set(world)


def test_a_file_of_rules_that_is_wrong_is_refused_by_name(tmp_path):
    def check(text, message):
        file = tmp_path / "wrong.yaml"
        file.write_bytes(text if isinstance(text, bytes) else text.encode())
        with pytest.raises(InputError) as refused:
            read_rules(file)
        assert message in str(refused.value)
        assert str(file) in str(refused.value)
        assert "\n" not in str(refused.value)

    check_all(
        check,
        [
            ("simmetric: [p]", "a rules file has no key 'simmetric'; did you mean 'symmetric'"),
            ("symmetric: {p: q}", "'symmetric' must be a list"),
            ("symmetric: [3]", "'symmetric' must name predicates, got 3"),
            ("symmetric: ['']", "'symmetric' must name predicates, got ''"),
            ("inverse: [p, q]", "'inverse' must hold pairs such as [a, b], got 'p'"),
            ("inverse: [[p, q, r]]", "'inverse' must hold pairs"),
            ("inverse: capital", "'inverse' must be a list"),
            ("chain: [[p, q]]", "a chain must be like {if: [country, continent], then: continent}"),
            ("chain: [{if: [p], then: r}]", "a chain must have at least two steps"),
            ("chain: [{if: [p, q], then: ''}]", "a chain must be like {if: "),
            ("chain: [{if: [p, 4], then: r}]", "'chain' must name predicates, got 4"),
            ("vocabulary: [p]", "the vocabulary must be a mapping"),
            ("vocabulary: {subclas: [p]}", "the vocabulary has no role 'subclas'; did you mean 'subclass'"),
            ("vocabulary: {subclass: 3}", "'subclass' must be a list, got 3"),
            ("- symmetric", "rules must be a mapping, such as"),
            ("", "rules must be a mapping, such as"),
            ("symmetric: [p", "is not valid YAML"),
            (b"symmetric: [\xff]", "is not UTF-8 text"),
        ],
    )


def test_a_file_of_rules_that_is_not_there(tmp_path):
    with pytest.raises(InputError, match=r"there is no file .*none.yaml; it should hold rules"):
        read_rules(tmp_path / "none.yaml")


def test_predicates_that_a_source_declares_are_symmetric_and_functional(tmp_path):
    from merkhet.knowledge.store_import import import_knowledge

    import_knowledge(["countries"], tmp_path / "kb.duckdb")
    result = infer(tmp_path / "kb.duckdb")
    rows = table(tmp_path / "kb.duckdb")
    borders = {(s, o) for s, p, o in triples(rows) if p == "borders"}
    assert borders == {(o, s) for s, o in borders}
    assert result.by_rule.get("symmetric", 0) == len(triples(rows, rule="symmetric"))
    assert DeclaredRules().roles()["type"] == (TYPE, "P31")
