"""Queries for endpoints: cut into pages, read by their columns, built from a schema, ready for Wikidata and DBpedia."""

# ruff: noqa: F401, F811
from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from sparql_server import (
    ALL,
    PEOPLE,
    ROWS,
    ask,
    expected,
    proxy,
    pyoxigraph,
    refusal,
    running,
    server,
    serving,
    store,
    triples,
)

from merkhet.core.errors import InputError
from merkhet.knowledge._iris import short_name
from merkhet.knowledge.source_reader import ReadContext
from merkhet.knowledge.sources.sparql import read_endpoint
from merkhet.knowledge.sparql_queries import bundled_queries


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("SELECT ?subject ?object { ?subject ?p ?object }", "has no column ?predicate; facts need"),
        ("SELECT ?predicate ?object { ?s ?predicate ?object }", "has no column ?subject;"),
        ("SELECT ?label { ?s ?p ?label }", "has no column ?entity;"),
        ("SELECT ?entity { ?entity ?p ?label }", "has no column ?label;"),
        ("SELECT ?x ?y { ?x ?p ?y }", "has no column ?subject;"),
        ("CONSTRUCT { ?s ?p ?o } WHERE { ?s ?p ?o }", "is a CONSTRUCT query; merkhet reads SELECT queries only"),
        ("PREFIX ask: <http://a> ASK { ?s ?p ?o }", "is a ASK query"),
        ("SELECT ?subject ?predicate ?object { ?subject", "is not a complete SELECT query"),
        ("SELECT ?entity ?label { ?entity {{lable}} ?label }", "has an unknown placeholder {{lable}}"),
    ],
)
def test_queries_that_say_nothing_are_refused_unasked(ask, proxy, query, said):
    assert said in refusal(ask, query, kind=InputError)
    assert proxy.asked == []


def test_columns_become_values_times_and_names(ask, tmp_path):
    rows = """
      (:a :p 2.5 :kg "1957-03-15T00:00:00Z"^^xsd:dateTime 11 "1960-01-01T00:00:00Z"^^xsd:dateTime 9)
      (:b :p "chat"@fr UNDEF "-0043-03-15T00:00:00Z"^^xsd:dateTime UNDEF "1990-05-01"^^xsd:date 10)
      (:c :p "10115" UNDEF "1700-01-01T00:00:00Z"^^xsd:dateTime 7 "0476"^^xsd:gYear UNDEF)
      (:d :p "1900-02-03T00:00:00Z"^^xsd:dateTime UNDEF UNDEF UNDEF UNDEF UNDEF)
      (:e :p wd:Q5 UNDEF UNDEF UNDEF UNDEF UNDEF)
      (:f :p <http://www.wikidata.org/.well-known/genid/abc> UNDEF UNDEF UNDEF UNDEF UNDEF)"""
    query = (
        "PREFIX : <http://example.org/> PREFIX wd: <http://www.wikidata.org/entity/> "
        "PREFIX xsd: <http://www.w3.org/2001/XMLSchema#> "
        "SELECT ?subject ?predicate ?object ?unit ?start ?startPrecision ?end ?endPrecision ?objectLabel "
        "?subjectLabel WHERE { VALUES (?subject ?predicate ?object ?unit ?start ?startPrecision "
        "?end ?endPrecision) {"
        + rows
        + "} BIND('five'@en AS ?objectLabel) BIND(IF(?object = wd:Q5, 'ee', ?none) AS ?subjectLabel) }"
    )
    facts, names, reading = ask(query, page=3)
    found = {one["subject"][-1]: (one["object"], one["value"], one["unit"], one["start"], one["end"]) for one in facts}
    assert found == {
        "a": (None, 2.5, "http://example.org/kg", "1957-03-15", "1960"),
        "b": ('"chat"@fr', None, None, "-0043-03-15", "1990-05"),
        "c": ('"10115"', None, None, None, "0476"),
        "d": ('"1900-02-03"', None, None, None, None),
        "e": ("Q5", None, None, None, None),
    }
    assert {(one["entity"], one["language"], one["label"]) for one in names} == {
        ("Q5", "en", "five"),
        ("http://example.org/e", "en", "ee"),
    }
    assert reading.left_out == {"unknown or missing values": 1, "dates of qualifiers coarser than a year": 1}


def test_bad_rows_are_refused_by_number_or_counted(ask, proxy):
    query = (
        "SELECT ?subject ?predicate ?object ?value ?start { VALUES (?subject ?predicate ?object ?value ?start) {"
        ' ("text" <urn:p> 1 UNDEF UNDEF) (UNDEF <urn:p> 1 UNDEF UNDEF) (<urn:a> <urn:p> UNDEF UNDEF UNDEF)'
        ' (<urn:b> <urn:p> UNDEF "many" UNDEF) (<urn:c> <urn:p> 1 2 UNDEF) (<urn:d> <urn:p> 1 UNDEF "soon")'
        " (<urn:e> <urn:p> 1 UNDEF UNDEF) (<urn:f> <urn:p> UNDEF 7 UNDEF) (<urn:g> 5 1 UNDEF UNDEF) } }"
    )
    facts, _, reading = ask(query, skip_bad=True)
    assert triples(facts) == {("urn:e", "urn:p", 1.0), ("urn:f", "urn:p", 7.0)}
    assert reading.bad == 7
    assert all(re.match(re.escape(proxy.address) + r", \S+query\.rq, row \d: ", line) for line in reading.examples)
    line = refusal(ask, query, kind=InputError)
    assert re.search(r"query\.rq, row 1: \?subject is (empty|the literal 'text', and an IRI is expected)", line)


def test_languages_and_predicates_are_kept_to(ask, proxy):
    age, label = "http://example.org/age", "rdfs:label"
    facts, _, reading = ask(predicates=[age])
    assert {one["predicate"] for one in facts} == {age}
    assert reading.left_out == {"facts of other predicates": ROWS - 2 * PEOPLE}  # Labels are names.
    facts, _, reading = ask(predicates=[label, "http://example.org/code"], languages=["fr"])
    assert {one["object"] for one in facts if one["predicate"] == label} == set()
    assert reading.left_out["texts in other languages"] == PEOPLE
    query = "SELECT ?entity ?label { ?entity <http://www.w3.org/2000/01/rdf-schema#label> ?label }"
    names = ask(query, languages=["en"], page=7)[1]
    assert len(names) == PEOPLE
    assert ask(query, languages=["de"])[1] == []


def test_an_own_query_with_places(ask, proxy, store):
    query = (
        "SELECT ?subject ?predicate ?object {\n VALUES ?predicate { {{predicates}} }\n ?subject ?predicate ?object .\n}"
    )
    assert len(triples(ask(query, predicates=["http://example.org/age"])[0])) == PEOPLE
    assert "VALUES ?predicate { <http://example.org/age> }" in proxy.asked[0]
    assert triples(ask(query)[0]) == expected(store)
    assert "is not an IRI" in refusal(ask, query, predicates=["> } DROP ALL {"])


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"quary": "x"}, "this source has no option 'quary'; did you mean 'query'?"),
        ({"page": "1"}, "the option 'page' must be an integer ≥ 2, got '1'"),
        ({"page": "many"}, "'page' must be an integer ≥ 2, got 'many'"),
        ({"retries": "-1"}, "'retries' must be an integer ≥ 0, got '-1'"),
        ({"timeout": "0"}, "'timeout' must be a number ≥ 0.001, got '0'"),
        ({"cache": "refesh"}, "the option 'cache' must be yes, no or refresh, got 'refesh'"),
        ({"count": "maybe"}, "the option 'count' must be yes or no, got 'maybe'"),
        ({"user-agent": "a\nb"}, "'user-agent' must be one line"),
        ({"endpoint": "http://x"}, "the location is already an endpoint"),
        ({"class": "dbo:City"}, "has no placeholder for the option 'class'"),
        ({"class": "no such"}, "'no such' is not an IRI"),
        ({"single-value": "yes"}, "the option 'single-value' must be 'functional', got 'yes'"),
        (
            {"query": "wikidata-fact"},
            "there is neither a bundled query nor a query file 'wikidata-fact'; did you mean 'wikidata-facts'?",
        ),
        ({"query": "gone.rq"}, "there is no query file gone.rq"),
        ({"query": ""}, "the endpoint needs exactly one of query=FILE.rq"),
        ({"query": "wikidata-facts"}, "reads one property at a time; name the predicates"),
        ({"query": "dbpedia-instances"}, "dbpedia-instances needs the option 'class', such as class=dbo:City"),
        ({"schema": "x.yaml"}, "the endpoint needs exactly one of query="),
    ],
)
def test_options_are_checked_before_anything_is_asked(ask, proxy, tmp_path, options, said):
    file = tmp_path / "query.rq"
    file.write_text(ALL)
    with pytest.raises(InputError) as refused:
        list(read_endpoint(proxy.address, ReadContext(options={"query": str(file), **options})))
    assert said in str(refused.value)
    assert proxy.asked == []


def test_a_query_file_as_the_place(ask, proxy, store, tmp_path):
    file = tmp_path / "mine.rq"
    file.write_text("\ufeff" + ALL, encoding="utf-8")
    assert "name the endpoint with the option endpoint=https://" in refusal(ask, None, file)
    assert triples(ask(None, file, endpoint=proxy.address)[0]) == expected(store)
    assert "omit the option 'query'" in refusal(ask, "x", file, endpoint=proxy.address)
    assert "write it as https://HOST/sparql or http://HOST:PORT/sparql" in refusal(
        ask, None, file, endpoint="ftp://example.org/"
    )


def test_a_schema_builds_the_queries(ask, proxy, tmp_path):
    file = tmp_path / "mine.yaml"
    file.write_text("properties: ['http://example.org/age', 'http://example.org/home']\nlanguages: [en]\n")
    facts, names, _ = ask(None, schema=file, page=13)
    assert len(triples(facts)) == 2 * PEOPLE
    assert len({one["entity"] for one in names}) == PEOPLE
    facts, names, _ = ask(None, schema=file, predicates=["http://example.org/age"], languages=["fr"])
    assert {one["predicate"] for one in facts} == {"http://example.org/age"}
    assert names == []
    file.write_text("properties: ['http://example.org/age']\nlimit: 10\nlanguages: [en]\n")
    for page in (4, 50):
        facts, names, reading = ask(None, file, endpoint=proxy.address, page=page)
        assert {one["subject"] for one in facts} == {one["entity"] for one in names}
        assert {one["subject"] for one in facts} == {f"http://example.org/p{number:03d}" for number in range(10)}
        assert next(iter(reading.progress.started.values())) == 10


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("propertys: [P39]", "a schema has no key 'propertys'; did you mean 'properties'?"),
        ("properties: []", "'properties' is missing or empty"),
        ("properties: [P39]\nlanguages: [no]", "'languages' must be a list of texts (put quotes around no and on)"),
        ("properties: [capital]", "'capital' is not an IRI"),
        ("properties: [P39]\nlimit: 0", "'limit' must be an integer ≥ 1, got 0"),
        ("- P39", "a schema must be a mapping"),
        ("properties: [P39", "is not valid YAML"),
    ],
)
def test_a_bad_schema_is_refused(ask, tmp_path, text, said):
    file = tmp_path / "bad.yaml"
    file.write_text(text)
    line = refusal(ask, None, schema=file, kind=InputError)
    assert line.startswith(str(file))
    assert said in line


def test_the_ready_queries_are_listed():
    assert len(bundled_queries()) == 21
    assert (
        bundled_queries()["dbpedia-instances"]
        == "DBpedia: instances of the class given as class=dbo:..., with their labels"
    )
    assert all(about and "\n" not in about for about in bundled_queries().values())


WIKIDATA = """
@prefix wd: <http://www.wikidata.org/entity/> . @prefix wdt: <http://www.wikidata.org/prop/direct/> .
@prefix p: <http://www.wikidata.org/prop/> . @prefix ps: <http://www.wikidata.org/prop/statement/> .
@prefix psv: <http://www.wikidata.org/prop/statement/value/> . @prefix pq: <http://www.wikidata.org/prop/qualifier/> .
@prefix pqv: <http://www.wikidata.org/prop/qualifier/value/> . @prefix s: <http://www.wikidata.org/entity/statement/> .
@prefix v: <http://www.wikidata.org/value/> . @prefix wikibase: <http://wikiba.se/ontology#> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix skos: <http://www.w3.org/2004/02/skos/core#> . @prefix owl: <http://www.w3.org/2002/07/owl#> .

v:y1957 wikibase:timeValue "1957-01-01T00:00:00Z"^^xsd:dateTime ; wikibase:timePrecision 9 .
v:m1961 wikibase:timeValue "1961-03-01T00:00:00Z"^^xsd:dateTime ; wikibase:timePrecision 10 .
v:d1990 wikibase:timeValue "1990-10-03T00:00:00Z"^^xsd:dateTime ; wikibase:timePrecision 11 .
v:bc44 wikibase:timeValue "-0043-03-15T00:00:00Z"^^xsd:dateTime ; wikibase:timePrecision 11 .
v:c1800 wikibase:timeValue "1800-01-01T00:00:00Z"^^xsd:dateTime ; wikibase:timePrecision 7 .
v:metres wikibase:quantityAmount 8849 ; wikibase:quantityUnit wd:Q11573 .
v:plain wikibase:quantityAmount 12 ; wikibase:quantityUnit wd:Q199 .

wd:Q1 p:P39 s:1, s:2, s:3, s:4, s:5, s:6 ; wdt:P39 wd:Q11 ; rdfs:label "One"@en, "One"@de ; skos:altLabel "Uno"@en .
s:1 ps:P39 wd:Q11 ; wikibase:rank wikibase:PreferredRank ; pqv:P580 v:y1957 ; pqv:P582 v:m1961 ;
    pq:P580 "1957-01-01T00:00:00Z"^^xsd:dateTime ; pq:P582 "1961-03-01T00:00:00Z"^^xsd:dateTime .
s:2 ps:P39 wd:Q12 ; wikibase:rank wikibase:NormalRank ; pqv:P580 v:d1990 .
s:3 ps:P39 wd:Q13 ; wikibase:rank wikibase:DeprecatedRank .
s:4 ps:P39 wd:Q14 ; wikibase:rank wikibase:NormalRank ; pqv:P585 v:bc44 .
s:5 ps:P39 <http://www.wikidata.org/.well-known/genid/1> ; wikibase:rank wikibase:NormalRank .
s:6 ps:P39 wd:Q15 ; wikibase:rank wikibase:NormalRank ; pqv:P582 v:c1800 .
wd:Q11 rdfs:label "eleven"@en, "onze"@fr . wd:P39 rdfs:label "position held"@en .
wd:Q2 p:P2044 s:7 ; p:P1082 s:8 ; p:P569 s:9 ; p:P1476 s:10 .
s:7 ps:P2044 "+8849"^^xsd:decimal ; psv:P2044 v:metres ; wikibase:rank wikibase:NormalRank .
s:8 ps:P1082 "12"^^xsd:decimal ; psv:P1082 v:plain ; wikibase:rank wikibase:NormalRank .
s:9 ps:P569 "1957-01-01T00:00:00Z"^^xsd:dateTime ; psv:P569 v:y1957 ; wikibase:rank wikibase:NormalRank .
s:10 ps:P1476 "Le titre"@fr ; wikibase:rank wikibase:NormalRank .

wd:Q20 wdt:P279 wd:Q21 . wd:Q21 wdt:P279 wd:Q22 . wd:Q30 wdt:P279 wd:Q31 . wd:Q22 wdt:P279 wd:Q23 .
wd:P40 wdt:P1647 wd:P1038 ; wdt:P1628 <http://dbpedia.org/ontology/child>, <https://schema.org/children> .
wd:P25 wdt:P1647 wd:P8810 .

wd:P26 p:P2302 s:c1 . s:c1 ps:P2302 wd:Q21510862 ; wikibase:rank wikibase:NormalRank .
wd:P40 p:P2302 s:c2, s:c3, s:c4, s:c5, s:c6 ; wdt:P31 wd:Q18616576 .
s:c2 ps:P2302 wd:Q21510855 ; pq:P2306 wd:P22 ; wikibase:rank wikibase:NormalRank .
s:c3 ps:P2302 wd:Q21503250 ; pq:P2308 wd:Q5 ; pq:P2309 wd:Q21503252 ; wikibase:rank wikibase:NormalRank .
s:c4 ps:P2302 wd:Q21510865 ; pq:P2308 wd:Q5, wd:Q729 ; pq:P2309 wd:Q21503252 ; wikibase:rank wikibase:NormalRank .
s:c5 ps:P2302 wd:Q19474404 ; wikibase:rank wikibase:NormalRank .
s:c6 ps:P2302 wd:Q21510862 ; wikibase:rank wikibase:DeprecatedRank .
wd:P131 wdt:P31 wd:Q18647515 ; p:P2302 s:c7, s:c8 . wd:P47 wdt:P31 wd:Q18647518 .
s:c7 ps:P2302 wd:Q21503250 ; pq:P2308 wd:Q618123 ; pq:P2309 wd:Q21514624 ; wikibase:rank wikibase:NormalRank .
s:c8 ps:P2302 wd:Q21510865 ; pq:P2308 wd:Q56061 ; pq:P2309 wd:Q30208840 ; wikibase:rank wikibase:NormalRank .
"""
DBPEDIA = """
@prefix dbo: <http://dbpedia.org/ontology/> . @prefix dbr: <http://dbpedia.org/resource/> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> . @prefix owl: <http://www.w3.org/2002/07/owl#> .
dbr:Oslo a dbo:City, dbo:Place ; rdfs:label "Oslo"@en, "Oslo"@de, "オスロ"@ja .
dbr:Rome a dbo:City ; rdfs:label "Rome"@en .
dbr:Nowhere a dbo:City . dbr:Nile a dbo:River ; rdfs:label "Nile"@en .
dbo:City rdfs:subClassOf dbo:Settlement . dbo:Settlement rdfs:subClassOf dbo:Place ; rdfs:label "settlement"@en .
dbo:Place rdfs:subClassOf owl:Thing ; rdfs:label "place"@en, "Ort"@de . dbo:River rdfs:subClassOf dbo:Place .
"""


@pytest.fixture(scope="module")
def public():
    with serving(WIKIDATA.encode(), DBPEDIA.encode()) as address:
        yield address


@pytest.mark.parametrize("page", [2, 5000])
def test_wikidata_facts_have_times_at_their_precision(ask, public, page):
    facts, _, reading = ask("wikidata-facts", public, predicates=["P39"], page=page)
    assert {(one["subject"], one["predicate"], one["object"], one["start"], one["end"]) for one in facts} == {
        ("Q1", "P39", "Q11", "1957", "1961-03"),
        ("Q1", "P39", "Q12", "1990-10-03", None),
        ("Q1", "P39", "Q14", "-0043-03-15", "-0043-03-15"),
        ("Q1", "P39", "Q15", None, None),
    }
    assert reading.left_out == {"unknown or missing values": 1, "dates of qualifiers coarser than a year": 1}
    assert list(reading.progress.started.values()) == [5]


def test_wikidata_facts_that_are_no_entities(ask, public):
    facts, _, _ = ask("wikidata-facts", public, predicates=["P2044", "P1082", "P569", "P1476"])
    assert {one["predicate"]: (one["object"], one["value"], one["unit"]) for one in facts} == {
        "P2044": (None, 8849.0, "Q11573"),
        "P1082": (None, 12.0, None),
        "P569": ('"1957"', None, None),
        "P1476": ('"Le titre"@fr', None, None),
    }
    assert "'dbo:child' is not a Wikidata property" in refusal(ask, "wikidata-facts", public, predicates=["dbo:child"])


def test_wikidata_classes_and_properties(ask, public):
    below, everywhere, sub, one_sub, same = (
        triples(ask(name, public, **more)[0])
        for name, more in (
            ("wikidata-subclasses", {"class": "Q22"}),
            ("wikidata-subclasses", {}),
            ("wikidata-subproperties", {}),
            ("wikidata-subproperties", {"predicates": ["P40"]}),
            ("wikidata-equivalents", {"predicates": ["P40"]}),
        )
    )
    pairs = [("Q20", "Q21"), ("Q21", "Q22"), ("Q22", "Q23"), ("Q30", "Q31")]
    assert everywhere == {(lower, "rdfs:subClassOf", upper) for lower, upper in pairs}
    assert below == {(lower, "rdfs:subClassOf", upper) for lower, upper in pairs[:2]}
    assert one_sub == {("P40", "rdfs:subPropertyOf", "P1038")}
    assert sub == {*one_sub, ("P25", "rdfs:subPropertyOf", "P8810")}
    assert same == {("P40", "owl:equivalentProperty", name) for name in ("dbo:child", "schema:children")}


def test_wikidata_constraints_become_axioms(ask, public):
    found = triples(ask("wikidata-constraints", public, page=3)[0])
    assert found == {
        ("P26", "rdf:type", "owl:SymmetricProperty"),
        ("P47", "rdf:type", "owl:SymmetricProperty"),
        ("P131", "rdf:type", "owl:TransitiveProperty"),
        ("P40", "owl:inverseOf", "P22"),
        ("P40", "rdfs:domain", "Q5"),
        ("P40", "schema:rangeIncludes", "Q5"),
        ("P40", "schema:rangeIncludes", "Q729"),
        ("P131", "schema:domainIncludes", "Q618123"),
        ("P131", "rdfs:range", "Q56061"),
    }
    functional = {("P40", "rdf:type", "owl:FunctionalProperty")}
    assert triples(ask("wikidata-constraints", public, single_value="functional")[0]) == found | functional
    assert triples(ask("wikidata-constraints", public, predicates=["P26"])[0]) == {
        ("P26", "rdf:type", "owl:SymmetricProperty")
    }


def test_wikidata_names_in_the_chosen_languages(ask, public):
    for page in (2, 100):
        names = ask("wikidata-names", public, predicates=["P39"], languages=["en", "fr"], page=page)[1]
        assert {(one["entity"], one["language"], one["label"], *one["aliases"]) for one in names} == {
            ("Q1", "en", "One"),
            ("Q1", "en", None, "Uno"),
            ("Q11", "en", "eleven"),
            ("Q11", "fr", "onze"),
            ("P39", "en", "position held"),
        }
    assert len(ask("wikidata-names", public, predicates=["P39"])[1]) == 6


def test_a_schema_for_wikidata_uses_direct_claims(ask, public, tmp_path):
    file = tmp_path / "positions.yaml"
    file.write_text("properties: [P39]\nlanguages: [en]\n")
    facts, names, _ = ask(None, public, schema=file)
    assert triples(facts) == {("Q1", "P39", "Q11")}
    assert {one["entity"] for one in names} == {"Q1", "Q11", "P39"}


def test_dbpedia_instances_and_superclasses(ask, public):
    facts, names, _ = ask("dbpedia-instances", public, languages=["en", "de"], page=2, **{"class": "dbo:City"})
    assert triples(facts) == {(f"dbr:{name}", "rdf:type", "dbo:City") for name in ("Oslo", "Rome", "Nowhere")}
    labels = {(one["entity"], one["language"], one["label"]) for one in names}
    assert labels == {("dbr:Oslo", "en", "Oslo"), ("dbr:Oslo", "de", "Oslo"), ("dbr:Rome", "en", "Rome")}
    facts, names, _ = ask("dbpedia-superclasses", public, languages=["en"], **{"class": "dbo:City"})
    steps = [("dbo:City", "dbo:Settlement"), ("dbo:Settlement", "dbo:Place"), ("dbo:Place", "owl:Thing")]
    assert triples(facts) == {(lower, "rdfs:subClassOf", upper) for lower, upper in steps}
    assert {one["label"] for one in names} == {"settlement", "place"}


def test_the_real_ontology_of_dbpedia(ask, shared):
    file = shared / "data" / "dbpedia" / "ontology.ttl"
    if not file.exists():
        pytest.skip("DBpedia's ontology is not there")
    store = pyoxigraph.Store()
    store.load(path=str(file), format=pyoxigraph.RdfFormat.TURTLE)
    query = (
        "PREFIX rdfs: <http://www.w3.org/2000/01/rdf-schema#> SELECT ?subject ?predicate ?object "
        "{ VALUES ?predicate { rdfs:subClassOf rdfs:domain rdfs:range } ?subject ?predicate ?object }"
    )
    above = "SELECT ?x { <http://dbpedia.org/ontology/City> <http://www.w3.org/2000/01/rdf-schema#subClassOf>+ ?x }"
    with serving(file.read_bytes()) as address:
        assert triples(ask(query, address, page=2000)[0]) == expected(store, query)
        facts, names, _ = ask("dbpedia-superclasses", address, languages=["en"], **{"class": "dbo:City"})
    assert {one["object"] for one in facts} == {short_name(row["x"].value) for row in store.query(above)}
    assert "settlement" in {one["label"] for one in names}
