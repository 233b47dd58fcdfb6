"""Proofs: the tree from a conclusion to what was stated, and facts found by whatever a person calls them."""

from __future__ import annotations

import pytest
from all_cases import check_all
from hypothesis import given, settings
from hypothesis import strategies as st

from merkhet.core.errors import InputError
from merkhet.core.schemas import FACTS, NAMES, fact_id, make_table
from merkhet.knowledge.chunk import Chunk
from merkhet.knowledge.proofs import Proof, find_facts, format_fact, format_proof, proof_labels, prove
from merkhet.knowledge.store import KnowledgeBase


def row(subject, predicate, object=None, rule=None, premises=None, **more):
    found = {"subject": subject, "predicate": predicate, "object": object, "source": "book", **more}
    return found | ({"rule": rule, "premises": [fact_id(one) for one in premises], "source": None} if rule else {})


def knowledge_of(rows, names=()):
    labels = [
        {"entity": entity, "label": label, "aliases": list(aliases), "language": language}
        for entity, label, aliases, language in names
    ]
    return KnowledgeBase([Chunk(make_table(FACTS, rows), make_table(NAMES, labels))])


AB, BC = row("Q1", "part of", "Q2"), row("Q2", "part of", "Q3", start="1990", end="2000-03")
TRANSITIVE = row("part of", "rdf:type", "owl:TransitiveProperty")
AC = row("Q1", "part of", "Q3", "transitive", [AB, BC, TRANSITIVE], start="1990", end="2000-03")
CA = row("Q3", "has part", "Q1", "inverse", [AC])
POPULATION = row("Q1", "population", value=8336817.0)
AREA = row("Q1", "area", value=302.5, unit="Q712226")
MOTTO = row("Q1", "motto", '"Per aspera"')
NAMES_OF = [
    *(("Q1", "Harlem", ("Haarlem", "Nieuw Haarlem"), "en"), ("Q2", "Manhattan", (), "en")),
    *(("Q3", "New York", (), "en"), ("Q3", "纽约", (), "zh"), ("Q712226", "km²", (), "en")),
    *(("Q9", "Harlem", (), "en"), ("part of", "is part of", (), "en")),
]


@pytest.fixture(scope="module")
def world():
    return knowledge_of([AB, BC, TRANSITIVE, AC, CA, POPULATION, AREA, MOTTO], NAMES_OF)


def test_a_proof_as_text(world):
    proof = prove(world, find_facts(world, [fact_id(CA)])[0])
    assert list(format_proof(proof, proof_labels(world, proof, "en"))) == [
        "New York · has part · Harlem   [by inverse]",
        "└─ Harlem · is part of · New York  (1990 – 2000-03)   [by transitive]",
        "   ├─ Harlem · is part of · Manhattan   [stated: book]",
        "   ├─ Manhattan · is part of · New York  (1990 – 2000-03)   [stated: book]",
        "   └─ is part of · rdf:type · owl:TransitiveProperty   [stated: book]",
    ]
    assert next(format_proof(proof, proof_labels(world, proof, "zh"))) == "纽约 · has part · Q1   [by inverse]"


def test_a_proof_for_programs(world):
    told = prove(world, find_facts(world, [fact_id(CA)])[0]).as_dict()
    assert told["rule"] == "inverse"
    (below,) = told["premises"]
    assert [one["fact_id"] for one in below["premises"]] == [fact_id(one) for one in (AB, BC, TRANSITIVE)]
    assert "rule" not in below["premises"][0] and "premises" not in below["premises"][0]
    assert None not in below.values()


def test_facts_are_found_by_ids_beginnings_names_and_aliases(world):
    def check(words, found):
        assert [one["fact_id"] for one in find_facts(world, words)] == [fact_id(found)]

    check_all(
        check,
        [
            ([fact_id(AB)], AB),
            ([fact_id(AB)[:12]], AB),
            (["Q1", "part of", "Q2"], AB),
            (["Harlem", "part of", "Manhattan"], AB),
            (["Nieuw Haarlem", "is part of", "Manhattan"], AB),
            (["Q1|part of|Q2"], AB),
            ([" Haarlem | is part of | Manhattan "], AB),
            (["Harlem", "part of", "纽约"], AC),
            (["Harlem", "population", "8336817"], POPULATION),
            (["Harlem", "population", "8336817.0"], POPULATION),
            (["Harlem", "area", "302.5"], AREA),
            (["Harlem", "motto", "Per aspera"], MOTTO),
            (["Harlem", "motto", '"Per aspera"'], MOTTO),
        ],
    )


def test_what_is_not_found_is_said_with_what_there_is(world):
    def check(words, said):
        with pytest.raises(InputError) as refused:
            find_facts(world, words)
        assert said in str(refused.value) and "\n" not in str(refused.value)

    check_all(
        check,
        [
            (["f_"], "several facts have an id that begins with f_: f_"),
            (["f_nothing"], "there is no fact with the id f_nothing"),
            (["Harlem"], "a fact is named by its id, or by subject, predicate and object"),
            (["Harlem", "part of"], "a fact is named by its id"),
            (["a|b"], "a fact is named by its id"),
            (
                ["Bronx", "part of", "Q3"],
                "Bronx · part of · Q3 is neither stated nor inferred here; there is no fact about 'Bronx'",
            ),
            (["Harlem", "part off", "Q2"], "'Harlem' has no predicate 'part off'; did you mean 'part of'?"),
            (["Harlem", "part of", "Queens"], "objects of 'Harlem' by 'part of': Q2 (Manhattan), Q3 (New York)"),
            (["Harlem", "population", "5"], "objects of 'Harlem' by 'population': 8336817.0"),
        ],
    )


def test_a_long_list_is_cut(world):
    many = knowledge_of([row("a", "p", f"o{number:02}") for number in range(20)])
    with pytest.raises(InputError, match="o11 and 8 more"):
        find_facts(many, ["a", "p", "z"])


def test_numbers_are_told_in_full(world):
    (found,) = find_facts(world, ["Q1", "population", "8336817"])
    assert format_fact(found, {}) == "Q1 · population · 8336817"
    (found,) = find_facts(world, ["Q1", "area", "302.5"])
    assert format_fact(found, {"Q712226": "km²"}) == "Q1 · area · 302.5 km²"


def test_a_premise_that_is_gone_is_said():
    knowledge = knowledge_of([row("a", "p", "b", "symmetric", [row("b", "p", "a")])])
    with pytest.raises(InputError, match=r"premise f_\w+ is missing from the knowledge base; infer again"):
        prove(knowledge, knowledge.facts().to_pylist()[0])


def test_what_occurs_twice_is_proved_at_its_first_place():
    base = row("a", "p", "b")
    shared = row("a", "q", "b", "r1", [base])
    top = row("a", "z", "b", "r3", [shared, row("a", "x", "b", "r2", [shared, base])])
    knowledge = knowledge_of([base, shared, row("a", "x", "b", "r2", [shared, base]), top])
    lines = list(format_proof(prove(knowledge, find_facts(knowledge, ["a|z|b"])[0]), {}))
    assert [line.lstrip("│├└─ ") for line in lines] == [
        "a · z · b   [by r3]",
        "a · q · b   [by r1]",
        "a · p · b   [stated: book]",
        "a · x · b   [by r2]",
        "a · q · b   [as above]",
        "a · p · b   [stated: book]",
    ]


def test_premises_in_a_circle_end():
    one, other = row("a", "p", "b"), row("b", "p", "a")
    knowledge = knowledge_of([row("a", "p", "b", "r", [other]), row("b", "p", "a", "r", [one])])
    lines = list(format_proof(prove(knowledge, find_facts(knowledge, ["a|p|b"])[0]), {}))
    assert [line.endswith("[as above]") for line in lines] == [False, False, True]


def test_a_proof_may_be_deeper_than_python_calls():
    depth = 1050
    rows = [row("a", "p0", "b")]
    for number in range(1, depth):
        rows.append(row("a", f"p{number}", "b", "r", [rows[-1]]))
    knowledge = knowledge_of(rows)
    proof = prove(knowledge, find_facts(knowledge, ["a", f"p{depth - 1}", "b"])[0])
    lines = list(format_proof(proof, proof_labels(knowledge, proof, "en")))
    assert len(lines) == depth
    assert lines[-1].endswith("a · p0 · b   [stated: book]")
    told, deep = proof.as_dict(), 0
    while "premises" in told:
        (told,), deep = told["premises"], deep + 1
    assert deep == depth - 1


def plain_proof(rows, key, seen):
    """The same tree, by calling itself."""
    fact = rows[key]
    if fact["rule"] is None:
        return (key, ())
    if key in seen:
        return (key, "again")
    seen.add(key)
    return (key, tuple(plain_proof(rows, premise, seen) for premise in fact["premises"]))


def as_pair(proof: Proof):
    again = proof.repeated
    return (proof.fact["fact_id"], "again" if again else tuple(as_pair(one) for one in proof.premises))


@settings(deadline=None, max_examples=8)
@given(st.data())
def test_proofs_are_those_of_a_plain_walk(data):
    rows = [row("a", f"p{number}", "b") for number in range(3)]
    for number in range(3, data.draw(st.integers(4, 9))):
        premises = data.draw(st.lists(st.sampled_from(rows), min_size=1, max_size=3))
        rows.append(row("a", f"p{number}", "b", f"rule {number}", premises))
    knowledge = knowledge_of(rows)
    by_id = {one["fact_id"]: one for one in knowledge.facts().to_pylist()}
    proof = prove(knowledge, by_id[fact_id(rows[-1])])
    assert as_pair(proof) == plain_proof(by_id, fact_id(rows[-1]), set())
