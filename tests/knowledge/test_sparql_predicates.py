"""Predicates that are used and selected alike in files, tables and endpoints."""

# ruff: noqa: F401, F811
from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from sparql_server import (
    ALL,
    QUICK,
    ask,
    expected,
    proxy,
    pyoxigraph,
    refusal,
    running,
    server,
    serving,
    store,
)

from merkhet.knowledge.source_lookup import read_source
from merkhet.knowledge.source_reader import ReadContext
from merkhet.knowledge.sources.sparql import read_endpoint

MIXED = """
@prefix : <http://example.org/> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix owl: <http://www.w3.org/2002/07/owl#> . @prefix skos: <http://www.w3.org/2004/02/skos/core#> .
@prefix foaf: <http://xmlns.com/foaf/0.1/> . @prefix dc: <http://purl.org/dc/elements/1.1/> .
@prefix prov: <http://www.w3.org/ns/prov#> . @prefix dbo: <http://dbpedia.org/ontology/> .
@prefix s: <http://schema.org/> . @prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
:a a :City, owl:NamedIndividual ; rdfs:label "A"@en, "Ah"@de, "A plain", " " ; skos:prefLabel "A1"@en .
:a skos:altLabel "A2"@en ; skos:hiddenLabel "A3" .
:a s:name "A4"@en ; s:alternateName "A5"@fr ; foaf:name "A6" ; foaf:nick "A7", :b .
:a rdfs:comment "about"@en ; dc:description "about" ; s:description "about" ; dbo:abstract "about"@en .
:a skos:note "about" .
:a rdfs:seeAlso :b ; foaf:depiction :picture ; dbo:wikiPageID 12 ; prov:wasDerivedFrom :page ; foaf:homepage :home .
:a owl:sameAs :b ; :size 3.5 ; :born "1957-03-15"^^xsd:date ; :motto "on"@en, "an"@de ; dbo:country :c ; s:location :d .
:City rdfs:subClassOf :Place ; owl:equivalentClass :Town ; owl:disjointWith :River .
:size rdfs:domain :Place ; rdfs:range xsd:decimal ; a owl:FunctionalProperty .
:in owl:inverseOf :has ; s:inverseOf :holds ; a owl:ObjectProperty ; rdfs:subPropertyOf :near .
<http://example.org/onto> a owl:Ontology ; rdfs:label "An ontology" ; :version 3 ; owl:imports :other .
"""


def read_all(chunks):
    facts, names = set(), set()
    for chunk in chunks:
        facts |= {
            (one["subject"], one["predicate"], one.get("object"), one.get("value")) for one in chunk.facts.to_pylist()
        }
        for one in chunk.names.to_pylist():
            names.add((one["entity"], one["language"], one["label"], *one["aliases"]))
    return facts, names


def test_a_predicate_is_used_alike_from_a_file_and_from_an_endpoint(ask, tmp_path):
    file, query = tmp_path / "data.ttl", tmp_path / "all.rq"
    file.write_text(MIXED)
    query.write_text(ALL)
    rdfs = "http://www.w3.org/2000/01/rdf-schema#"
    cases = [(), ("rdfs:comment",), (f"{rdfs}comment", "dbo:country"), ("http://example.org/size",), ("rdf:type",)]
    cases += [
        ("rdfs:label",),
        ("owl:inverseOf",),
        ("http://schema.org/location",),
        ("schema:location", "prov:wasDerivedFrom"),
    ]
    with serving(MIXED.encode()) as address:
        for predicates in cases:
            for languages in ((), ("en",)):
                filters = {"predicates": predicates, "languages": languages}
                from_file = read_all(read_source(str(file), ReadContext(**filters)))
                for page in (30, 5000):
                    options = {"query": str(query), "page": str(page), **QUICK}
                    from_endpoint = read_all(read_endpoint(address, ReadContext(**filters, options=options)))
                    assert from_endpoint == from_file, (filters, page)
        assert from_file[0]
        bad = b"@prefix owl: <http://www.w3.org/2002/07/owl#> . <urn:a> owl:inverseOf 5 ."
    with serving(bad) as address:
        assert "a literal where an entity is expected (owl:inverseOf)" in refusal(ask, ALL, address)


def test_a_predicate_is_selected_by_any_spelling(ask, tmp_path):
    country = "http://dbpedia.org/ontology/country"
    table, triples_file = tmp_path / "facts.csv", tmp_path / "facts.nt"
    table.write_text(f"subject,predicate,object\na,dbo:country,b\na,{country},c\na,dbo:city,d\n")
    triples_file.write_text(f"<urn:a> <{country}> <urn:b> .\n<urn:a> <http://dbpedia.org/ontology/city> <urn:d> .\n")
    with serving(triples_file.read_bytes()) as address:
        for spelling in ("dbo:country", country):
            context = ReadContext(predicates=(spelling,))
            assert {object for _, _, object, _ in read_all(read_source(str(table), context))[0]} == {"b", "c"}
            assert {object for _, _, object, _ in read_all(read_source(str(triples_file), context))[0]} == {"urn:b"}
            assert {one["object"] for one in ask(ALL, address, predicates=[spelling])[0]} == {"urn:b"}


def test_a_schema_takes_the_predicates_that_it_names(ask, tmp_path):
    file = tmp_path / "mine.yaml"
    file.write_text("properties: [rdfs:comment]\n")
    with serving(MIXED.encode()) as address:
        assert {one["object"] for one in ask(None, address, schema=file)[0]} == {'"about"@en'}
