"""Ontologies in RDF: what OWL says with blank nodes, schema.org, DBpedia's ontology against SPARQL."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from rdf_files import facts_of, names_of, read, written

from merkhet.core.errors import InputError
from merkhet.knowledge._iris import PREFIXES, short_name
from merkhet.knowledge.source_reader import ReadContext

ox = pytest.importorskip("pyoxigraph", reason="reading RDF needs pyoxigraph")

HEAD = "".join(f"@prefix {prefix}: <{iri}> .\n" for prefix, iri in PREFIXES.items()) + "@prefix : <http://e.org/> .\n"
E_ORG = "http://e.org/"


def turtle_facts(tmp_path: Path, text: str, **asked: Any) -> tuple[ReadContext, set[tuple[str, str, Any]]]:
    reading, chunks = read(written(tmp_path / "o.ttl", HEAD + text), **asked)
    return reading, {tuple(str(part).replace(E_ORG, "") for part in fact) for fact in facts_of(chunks)}  # type: ignore[misc]


def test_chains(tmp_path: Path) -> None:
    reading, facts = turtle_facts(
        tmp_path,
        """:r owl:propertyChainAxiom ( :p :q ) , ( dbo:a <http://e.org/ü> :c ) , ( :one ) .
        :r owl:propertyChainAxiom ( :p [ owl:inverseOf :q ] ) .""",
    )
    assert facts == {
        ("r", "owl:propertyChainAxiom", '["p", "q"]'),
        ("r", "owl:propertyChainAxiom", '["dbo:a", "ü", "c"]'),
        ("one", "rdfs:subPropertyOf", "r"),
    }
    assert dict(reading.left_out) == {"class expressions": 1}


def test_disjoint_sets(tmp_path: Path) -> None:
    reading, facts = turtle_facts(
        tmp_path,
        """[] a owl:AllDisjointClasses ; owl:members ( :B :A :C ) .
        [] a owl:AllDisjointProperties ; owl:members ( :q :p ) .
        [] a owl:AllDifferent ; owl:distinctMembers ( :x :y ) .
        :U owl:disjointUnionOf ( :V :W ) .""",
    )
    assert facts == {
        *(("A", "owl:disjointWith", "B"), ("A", "owl:disjointWith", "C"), ("B", "owl:disjointWith", "C")),
        ("p", "owl:propertyDisjointWith", "q"),
        *(("V", "rdfs:subClassOf", "U"), ("W", "rdfs:subClassOf", "U"), ("V", "owl:disjointWith", "W")),
    }
    assert not reading.left_out


def test_unions_and_intersections(tmp_path: Path) -> None:
    reading, facts = turtle_facts(
        tmp_path,
        """:p rdfs:domain [ a owl:Class ; owl:unionOf ( :A :B ) ] ; rdfs:range [ a owl:Class ; owl:unionOf ( :C ) ] .
        :q rdfs:domain [ a owl:Class ; owl:intersectionOf ( :A :B ) ] .
        :D rdfs:subClassOf [ a owl:Class ; owl:intersectionOf ( :E :F ) ] , [ owl:unionOf ( :X :Y ) ] .
        :G owl:equivalentClass [ owl:intersectionOf ( :H _:r ) ] .
        _:r a owl:Restriction ; owl:onProperty :p ; owl:hasValue 3 .
        :I owl:equivalentClass [ a owl:Class ; owl:unionOf ( :J :K ) ] .
        :L rdfs:subClassOf [ a owl:Restriction ; owl:onProperty :p ; owl:someValuesFrom :A ] .
        :M a [ a owl:Restriction ; owl:onProperty :p ; owl:maxCardinality 1 ] .
        [] a owl:Axiom ; owl:annotatedSource :L ; rdfs:comment "why" .""",
    )
    assert facts == {
        *(("p", "schema:domainIncludes", "A"), ("p", "schema:domainIncludes", "B"), ("p", "rdfs:range", "C")),
        *(("q", "rdfs:domain", "A"), ("q", "rdfs:domain", "B")),
        *(("D", "rdfs:subClassOf", "E"), ("D", "rdfs:subClassOf", "F"), ("G", "rdfs:subClassOf", "H")),
        *(("J", "rdfs:subClassOf", "I"), ("K", "rdfs:subClassOf", "I")),
    }
    assert dict(reading.left_out) == {"class expressions": 4, "blank nodes": 1}


def test_lists_that_do_not_end_are_refused(tmp_path: Path) -> None:
    for tail in ("", "_:l rdf:rest _:l ."):
        text = ":r owl:propertyChainAxiom _:l . _:l rdf:first :p . " + tail
        with pytest.raises(
            InputError, match=r"o\.ttl: the list in owl:propertyChainAxiom of http://e\.org/r is incomplete"
        ):
            turtle_facts(tmp_path, text)
        reading, facts = turtle_facts(tmp_path, text, skip_bad=True)
        assert (reading.bad, facts) == (1, set())


def test_structures_are_filtered_too(tmp_path: Path) -> None:
    text = ":r owl:propertyChainAxiom ( :p :q ) . :C owl:disjointUnionOf ( :A :B ) ."
    reading, facts = turtle_facts(tmp_path, text, predicates=("owl:propertyChainAxiom",))
    assert facts == {("r", "owl:propertyChainAxiom", '["p", "q"]')}
    assert reading.left_out["other predicates"] == 3


def test_a_header_whose_type_comes_late(tmp_path: Path) -> None:
    text = ':o dcterms:creator :me ; rdfs:label "The ontology" ; dcterms:issued "soon" . :o a owl:Ontology . :a :p :b .'
    reading, facts = turtle_facts(tmp_path, text)
    assert facts == {("a", "p", "b")}
    assert dict(reading.left_out) == {"annotations": 4}


def test_dbpedia_ontology_against_sparql(shared: Path) -> None:
    path = shared / "data" / "dbpedia" / "ontology.ttl"
    reading, chunks = read(path)
    facts, names = facts_of(chunks), names_of(chunks)
    kinds = {
        kind: {s for s, p, o in facts if p == "rdf:type" and o == kind} for kind in ("owl:Class", "owl:ObjectProperty")
    }
    assert len(kinds["owl:Class"]) == 790
    data_properties = {s for s, p, o in facts if p == "rdf:type" and o == "owl:DatatypeProperty"}
    assert len(kinds["owl:ObjectProperty"] | data_properties) == 3029
    store = ox.Store()
    store.load(path=str(path), format=ox.RdfFormat.TURTLE)
    for predicate in ("rdfs:subClassOf", "rdfs:subPropertyOf", "rdfs:domain", "rdfs:range", "owl:disjointWith"):
        prefix, local = predicate.split(":")
        rows = store.query(f"SELECT ?s ?o {{ ?s <{PREFIXES[prefix]}{local}> ?o }}")
        said = {(short_name(row["s"].value), short_name(row["o"].value)) for row in rows}
        assert {(s, o) for s, p, o in facts if p == predicate} == said
    header = "http://dbpedia.org/ontology/"
    rows = store.query(f"SELECT ?s ?o {{ ?s <{PREFIXES['rdfs']}label> ?o FILTER(?s != <{header}>) }}")
    labels = {(short_name(row["s"].value), row["o"].language, row["o"].value.strip()) for row in rows}
    assert names == labels
    every = sum(facts.values()) + sum(chunk.names.num_rows for chunk in chunks) + sum(reading.left_out.values())
    assert every == sum(1 for _ in ox.parse(path=str(path)))
    assert dict(reading.left_out) == {"descriptions": 1895, "annotations": 3694}


def test_schema_org_has_one_name_under_both_addresses(tmp_path: Path) -> None:
    found = []
    for scheme in ("http", "https"):
        text = f"""{HEAD} @prefix s: <{scheme}://schema.org/> .
        s:Person a rdfs:Class ; rdfs:label "Person" ; rdfs:comment "A person." ; rdfs:subClassOf s:Thing .
        s:parent a rdf:Property ; s:domainIncludes s:Person ; s:rangeIncludes s:Person ; s:inverseOf s:children .
        s:parents s:supersededBy s:parent . s:parent s:source <https://github.com/schemaorg> ."""
        reading, chunks = read(written(tmp_path / f"{scheme}.ttl", text))
        found.append((facts_of(chunks), names_of(chunks), dict(reading.left_out)))
    assert found[0] == found[1]
    facts, names, left_out = found[0]
    assert set(facts) == {
        *(("schema:Person", "rdf:type", "rdfs:Class"), ("schema:Person", "rdfs:subClassOf", "schema:Thing")),
        *(("schema:parent", "rdf:type", "rdf:Property"), ("schema:parent", "owl:inverseOf", "schema:children")),
        *(("schema:parent", f"schema:{end}Includes", "schema:Person") for end in ("domain", "range")),
        ("schema:parents", "schema:supersededBy", "schema:parent"),
    }
    assert names == {("schema:Person", "en", "Person")}
    assert left_out == {"descriptions": 1, "annotations": 1}
