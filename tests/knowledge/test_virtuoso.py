"""Imports from a real Virtuoso, which caps answers at 10,000 rows: complete and true, or refused."""

# ruff: noqa: F401, F811
from __future__ import annotations

import random
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from sparql_server import ALL, ask, proxy, pyoxigraph, refusal, running, server, store, triples
from virtuoso_server import CAP, GRAPH, serving_virtuoso

from merkhet.knowledge._sparql_client import EndpointError

pytestmark = pytest.mark.external
BASE = "http://example.org/"
FROM = f"FROM <{GRAPH}> "
BODY = "{ ?subject ?predicate ?object }"
PREFIX = f"PREFIX : <{BASE}>\n"
ENTITIES, LONG_GROUPS = 5000, (20, 60, 300, 1100, 2500, 5000, 12_000)


@pytest.fixture(scope="session")
def virtuoso(tmp_path_factory):
    with serving_virtuoso(tmp_path_factory.mktemp("virtuoso")) as virtuoso:
        yield virtuoso


def as_turtle(facts):
    """Facts of a subject, a predicate and an object or text, as written in Turtle."""
    lines = [f":{subject} :{predicate} {object} ." for subject, predicate, object in facts]
    random.Random(1).shuffle(lines)
    return "\n".join([f"@prefix : <{BASE}> .", *lines])


def imported(facts):
    """Facts as they are in the knowledge base."""

    def read(object):
        if object.startswith(":"):
            return BASE + object[1:]
        return object if object.startswith('"') else float(object)

    return {(BASE + subject, BASE + predicate, read(object)) for subject, predicate, object in facts}


def facts_of_many_entities():
    for number in range(ENTITIES):
        entity = f"s{number:05d}"
        yield entity, f"p{number % 7}", f":o{number % 13}"
        yield entity, "age", str(number % 90)
        yield entity, "name", f'"n{number % 40}"@en'
        yield entity, "self", f":{entity}"


def facts_with_long_texts():
    """Texts that begin alike, of subjects near the places where pages end."""
    for subject in (0, 1249, 2450, 2499, 3000):
        for length in LONG_GROUPS:
            for number in range(12):
                yield f"s{subject:05d}", "text", f'"{"x" * length}{number:03d}"'


def facts_that_collate_alike():
    for text in ("a", "A", "ä", "Ä", "a ", "1", "01", "", "ß", "日本", "🎉"):
        yield "t", "tie", f'"{text}"'
        yield "t", "tie", f'"{text}"@en'
        yield "t", "tie", f'"{text}"@de'


@pytest.fixture(scope="session")
def world(virtuoso):
    """A server with some 20,500 facts, and these facts."""
    facts = [*facts_of_many_entities(), *facts_with_long_texts(), *facts_that_collate_alike()]
    virtuoso.load(as_turtle(facts))
    return virtuoso.address, imported(facts)


OWN_ORDERS = [
    "",
    "ORDER BY ?subject",
    "ORDER BY DESC(?subject)",
    "ORDER BY ?object ?predicate ?subject",
    "ORDER BY STRLEN(STR(?object)) ?subject",
    "ORDER BY LCASE(STR(?subject)) DESC(?predicate)",
]
SHAPES = [
    f"SELECT * {FROM} {BODY}",
    f"SELECT DISTINCT ?object ?predicate ?subject {FROM} {BODY} ORDER BY ?subject",
    f"SELECT REDUCED ?subject ?predicate ?object {FROM} {BODY} ORDER BY ?subject",
    f"SELECT (?s AS ?subject) ?predicate (?o AS ?object) {FROM} {{ ?s ?predicate ?o }} ORDER BY ?s",
    f"SELECT ?subject ?predicate ?object (?subject AS ?again) {FROM} {BODY}",
    f"SELECT ?subject ?predicate ?object ?again {FROM} {{ ?subject ?predicate ?object BIND(?subject AS ?again) }}",
    f"SELECT ?subject ?predicate ?object ?again {FROM} {{ ?subject ?predicate ?object OPTIONAL {{ ?subject :self ?x }}"
    " OPTIONAL { ?again :age 3 FILTER(?again = ?subject) } }",
    f"SELECT ?subject ?predicate ?object ?age {FROM} {{ ?subject ?predicate ?object"
    " OPTIONAL { ?subject :age ?age FILTER(?age < 9) } } ORDER BY ?age",
    f"SELECT ?subject ?predicate ?object {FROM} {{ {{ ?subject ?predicate ?object FILTER(isIRI(?object)) }} UNION"
    " { ?subject ?predicate ?object FILTER(isLiteral(?object)) } } ORDER BY ?object",
    f"SELECT ?subject ?predicate ?object {FROM} {BODY} GROUP BY ?subject ?predicate ?object ORDER BY ?subject",
]


@pytest.mark.parametrize("page", [700, 5000, 20_000])
def test_all_facts_come_whatever_the_order_of_the_query(ask, world, page):
    address, facts = world
    for order in OWN_ORDERS:
        found = triples(ask(f"SELECT ?subject ?predicate ?object {FROM} {BODY} {order}", address, page=page)[0])
        assert len(found - facts) == 0, order
        assert len(facts - found) == 0, order


@pytest.mark.parametrize("count", ["yes", "no"])
def test_all_facts_come_whatever_the_query_selects(ask, world, count):
    address, facts = world
    for query in SHAPES:
        found = triples(ask(PREFIX + query, address, count=count, page=20_000)[0])
        assert len(found - facts) == 0, query
        assert len(facts - found) == 0, query


def test_aggregates_subqueries_and_values(ask, world):
    address, facts = world
    subquery = (
        "{ SELECT ?subject (MAX(?age) AS ?oldest) { ?subject :age ?age } GROUP BY ?subject HAVING (MAX(?age) < 3) }"
    )
    query = f"SELECT ?subject ?predicate ?object {FROM} {{ {subquery} ?subject ?predicate ?object }} ORDER BY ?subject"
    young = {one[0] for one in facts if one[1] == f"{BASE}age" and one[2] < 3}
    for count in ("yes", "no"):
        assert triples(ask(PREFIX + query, address, count=count)[0]) == {one for one in facts if one[0] in young}
    query = f"SELECT ?subject ?predicate (COUNT(?o) AS ?object) {FROM} {{ ?subject ?predicate ?o }} "
    query += "GROUP BY ?subject ?predicate ORDER BY ?subject"
    counts = {}
    for subject, predicate, _ in facts:
        counts[subject, predicate] = counts.get((subject, predicate), 0) + 1
    assert triples(ask(query, address)[0]) == {(*key, float(count)) for key, count in counts.items()}
    query = (
        f"SELECT ?subject ?predicate ?object {FROM} {BODY} ORDER BY ?subject VALUES ?predicate {{ :age :name :text }}"
    )
    some = {one for one in facts if one[1][len(BASE) :] in ("age", "name", "text")}
    for count in ("yes", "no"):
        assert triples(ask(PREFIX + query, address, count=count)[0]) == some


def test_a_subquery_with_limit_is_refused(ask, world):
    """Virtuoso gives facts of 1 subject for the first of these queries, those of 20 for the second, or hangs."""
    address, _ = world
    subquery = "{ SELECT ?subject { ?subject :self ?x } ORDER BY ?subject LIMIT 20 }"
    query = f"{PREFIX} SELECT ?subject ?predicate ?object {FROM} {{ {subquery} ?subject ?predicate ?object }}"
    for text in (query, f"{query} ORDER BY ?subject"):
        for count in ("yes", "no", "no"):  # The last answer comes from the cache.
            line = refusal(ask, text, address, count=count, timeout=5, retries=0, kind=EndpointError)
            assert "LIMIT or OFFSET in a subquery" in line or "no complete answer within 5 s" in line
            assert "Nothing was imported" in line


def test_the_endpoint_may_name_the_graph_in_its_address(ask, world):
    address, facts = world
    assert triples(ask(ALL, f"{address}?default-graph-uri={GRAPH}")[0]) == facts


@pytest.mark.parametrize("count", ["yes", "no"])
def test_a_query_with_its_own_limit_is_complete_or_refused(ask, world, count):
    address, facts = world
    query = f"SELECT ?subject ?predicate ?object {FROM} {BODY}"
    for cut, rows in (
        ("ORDER BY ?subject LIMIT 10", 10),
        ("LIMIT 9999", 9999),
        ("LIMIT 10000", CAP),
        (f"LIMIT 10000 OFFSET {len(facts) - 7}", 7),
        (f"LIMIT 10 OFFSET {len(facts)}", 0),
        ("OFFSET 0 LIMIT 5", 5),
    ):
        found = triples(ask(f"{query} {cut}", address, count=count)[0])
        assert len(found) == rows, cut
        assert found <= facts, cut
    assert "SR350" in refusal(ask, f"{query} OFFSET {CAP + 1}", address, count=count, kind=EndpointError)
    for cut in ("LIMIT 10001", "LIMIT 20000", "LIMIT 90000", "LIMIT 20000 OFFSET 10"):
        line = refusal(ask, f"{query} {cut}", address, count=count, kind=EndpointError)
        assert "returns at most 10,000 rows at once" in line
        assert "Set a LIMIT of at most 10,000, or leave LIMIT and OFFSET out" in line


def test_a_result_of_exactly_the_cap_needs_a_count(ask, virtuoso, world):
    address, _ = world
    body = "{ VALUES ?predicate { :age :name } ?subject ?predicate ?object }"
    query = f"{PREFIX} SELECT ?subject ?predicate ?object {FROM} {body}"
    facts = triples(ask(query, address, page=20_000)[0])
    assert len(facts) == CAP
    line = refusal(ask, query, address, count="no", page=20_000, kind=EndpointError)
    assert "exactly 10,000 rows came; the endpoint returns at most that many (X-SPARQL-MaxRows)" in line
    assert "Import without count=no" in line
    # Kept answers say as much.
    assert "exactly 10,000 rows came" in refusal(ask, query, address, count="no", page=20_000)


def test_rows_with_blank_nodes(ask, virtuoso, world, tmp_path_factory):
    facts = [(f"b{number:04d}", "p", f'"{number}"') for number in range(3000)]
    blank = "\n".join(f":c{number % 50:04d} :q [ :r {number} ] ." for number in range(1500))
    with serving_virtuoso(tmp_path_factory.mktemp("virtuoso"), cap=1000) as other:
        other.load(f"{as_turtle(facts)}\n{blank}")
        found, _, reading = ask(f"SELECT ?subject ?predicate ?object {FROM} {BODY}", other.address, page=300)
    assert triples(found) == imported(facts)
    assert reading.left_out["rows with blank nodes"] >= 3000


def test_a_refused_import_leaves_nothing(merkhet_process, world, tmp_path, monkeypatch):
    address, _ = world
    monkeypatch.setenv("MERKHET_CACHE", str(tmp_path / "cache"))
    query, kb = tmp_path / "cut.rq", tmp_path / "kb.duckdb"
    query.write_text(f"SELECT ?subject ?predicate ?object {FROM} {BODY} LIMIT 20000")
    done = merkhet_process("knowledge", "import", address, "--query", str(query), "--into", str(kb))
    assert done.returncode == 1
    assert "returns at most 10,000 rows at once" in done.stderr
    assert not kb.exists()
