"""SPARQL imports that could lose or repeat rows unnoticed: complete, or refused with advice that fits the cause."""

# ruff: noqa: F401, F811
from __future__ import annotations

import random
import re
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from sparql_server import (
    ALL,
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

from merkhet.knowledge import _row_digests as row_digests
from merkhet.knowledge._sparql_client import EndpointError
from merkhet.knowledge.sparql_queries import parse_select


def is_count(query):
    return "merkhetCount" in query


def counting(change):
    """Change the number that the count query returns."""

    def rewrite(query):
        return query.replace("(COUNT(*) AS", f"((COUNT(*) {change}) AS")

    return lambda query, number: ("rewrite", rewrite) if is_count(query) else None


def test_more_and_fewer_rows_than_counted_are_refused(ask, proxy):
    proxy.behave = counting("- 1")
    for page in (50, 5000):
        line = refusal(ask, page=page, cache="no", kind=EndpointError)
        assert re.search(
            rf"{ROWS - 1} rows were counted, but {ROWS} came: the data changed, or the endpoint counts", line
        )
        assert "Import again with cache=refresh, or set count=no if the count is always wrong" in line
    proxy.behave = counting("+ 1")
    assert f"{ROWS + 1} rows were counted, but {ROWS} came" in refusal(ask, cache="no", kind=EndpointError)


def unstable(columns, hashes):
    """Spoil orders: each page is sorted in another way."""

    def behave(query, number):
        def rewrite(text):
            key = f'MD5(CONCAT(STR(?object), STR(?subject), "{number}"))'
            if hashes:
                text = re.sub(r"ORDER BY MD5.*", f"ORDER BY {key}", text)
            return re.sub(r"ORDER BY \?.*", f"ORDER BY ?predicate {key}", text) if columns else text

        return ("rewrite", rewrite)

    return behave


@pytest.mark.parametrize("count", ["yes", "no"])
def test_rows_that_are_not_sorted_apart_are_read_again_by_hashes(ask, proxy, store, count):
    proxy.behave = unstable(columns=True, hashes=False)
    for page in (2, 20, 100):
        facts, _, reading = ask(page=page, count=count, cache="no")
        assert triples(facts) == expected(store)
        assert any("reading all pages again, sorted by hashes" in line for line in reading.progress.said)
    proxy.behave = unstable(columns=True, hashes=True)
    for page in (2, 20, 100):
        line = refusal(ask, page=page, count=count, cache="no", kind=EndpointError)
        assert re.search(
            r"does not continue where the last one ended|cannot sort all rows apart|rows were counted", line
        )


def test_an_endpoint_without_hashes_says_so(ask, proxy):
    spoil = unstable(columns=True, hashes=False)

    def behave(query, number):
        return ("status", 400, "unknown function", {}) if "MD5(STR" in query else spoil(query, number)

    proxy.behave = behave
    line = refusal(ask, page=20, kind=EndpointError)
    assert "its order is not stable, and it does not sort by hashes" in line
    assert "import a dump instead" in line


@pytest.mark.parametrize("end", ["", "ORDER BY ?subject", "LIMIT 500"])
@pytest.mark.parametrize("cut", ["LIMIT 2", "OFFSET 1"])
def test_virtuoso_is_not_believed_where_a_subquery_has_a_limit(ask, proxy, store, cut, end):
    query = f"SELECT * {{ {{ SELECT DISTINCT ?subject {{ ?subject ?p ?o }} ORDER BY ?subject {cut} }} "
    query += f"?subject ?predicate ?object }} {end}"
    assert triples(ask(query)[0]) == expected(store, query)
    proxy.software = "Virtuoso/07.20.3229 (Linux)"
    # The second answers come from the cache.
    for options in ({"cache": "refresh"}, {}, {"count": "no", "cache": "refresh"}, {"count": "no"}):
        line = refusal(ask, query, kind=EndpointError, **options)
        assert "Virtuoso loses rows of a query with LIMIT or OFFSET in a subquery" in line
        assert "VALUES" in line
    proxy.behave = lambda query, number: ("status", 400, "SP031: Internal error", {})
    assert "Virtuoso loses rows" in refusal(ask, query, cache="no", kind=EndpointError)


@pytest.mark.parametrize("way", ["count=no", "failed count"])
def test_a_result_of_the_size_of_a_cap_needs_a_count(ask, proxy, store, way):
    total, options = 100, {"count": "no"} if way == "count=no" else {}

    def behave(query, number):
        if is_count(query):
            return ("status", 500, "Query timeout limit reached", {})
        return ("cap", total, "says") if "OFFSET 0" in query else ("cap", 1)

    proxy.behave = behave
    for _ in range(2):  # The second time from the cache.
        line = refusal(ask, page=5000, kind=EndpointError, **options)
        assert "exactly 100 rows came; the endpoint returns at most that many (X-SPARQL-MaxRows)" in line
        assert ("Import without count=no" in line) == bool(options)
        assert ("Narrow the query" in line) != bool(options)
    # The endpoint says its cap and pages: nothing is lost.
    proxy.behave = lambda query, number: None if is_count(query) else ("cap", 64, "says")
    assert triples(ask(cache="no", **options)[0]) == expected(store)
    # The cap equals the number of rows that there are: a count shows that they are all.
    proxy.behave = lambda query, number: None if is_count(query) else ("cap", ROWS, "says")
    assert triples(ask(cache="no")[0]) == expected(store)
    assert f"exactly {ROWS} rows came" in refusal(ask, cache="no", count="no", kind=EndpointError)


def test_a_silent_cap_on_all_rows_is_suspected_at_round_numbers(ask, proxy):
    facts = "".join(f"<urn:s{number}> <urn:p> {number} .\n" for number in range(1100))
    with serving(facts.encode()) as address:
        thousand = ALL.replace("}", "FILTER(?object < 1000) }")
        assert len(ask(thousand, address)[0]) == 1000
        line = refusal(ask, thousand, address, count="no", kind=EndpointError)
        assert "exactly 1,000 rows came; that looks like the row limit of the endpoint" in line
        assert len(ask(ALL, address, count="no")[0]) == 1100


@pytest.mark.parametrize("count", ["yes", "no"])
def test_a_query_with_its_own_limit_is_complete_or_refused(ask, proxy, store, count):
    ordered = f"{ALL} ORDER BY ?subject ?predicate DESC(?object)"
    for cut in ("LIMIT 9", "LIMIT 500", "OFFSET 200", "LIMIT 50 OFFSET 200"):
        assert triples(ask(f"{ordered} {cut}", count=count)[0]) == expected(store, f"{ordered} {cut}"), cut
    for header in ((), ("says",)):
        proxy.behave = lambda query, number, header=header: None if is_count(query) else ("cap", 50, *header)
        for cut in ("LIMIT 51", "LIMIT 500", "OFFSET 3", "LIMIT 60 OFFSET 3"):
            line = refusal(ask, f"{ordered} {cut}", count=count, cache="no", kind=EndpointError)
            assert "50 came: the endpoint returns at most 50 rows at once" in line
            assert "Set a LIMIT of at most 50, or leave LIMIT and OFFSET out" in line
        cut = f"{ordered} LIMIT 50"
        assert triples(ask(cut, count=count, cache="no")[0]) == expected(store, cut)


def test_rows_that_the_query_repeats_count_once(ask, proxy, store):
    query = (
        "SELECT ?subject ?predicate ?object { ?subject ?predicate ?object . ?x ?y ?z . ?x <http://example.org/age> 3 }"
    )
    for page in (13, 5000):
        facts, _, reading = ask(query, page=page)
        assert triples(facts) == expected(store)
        assert list(reading.progress.started.values()) == [ROWS]


def test_rows_with_blank_nodes_do_not_disturb_the_count(ask):
    lines = [f"<urn:s{number}> <urn:p> {number}, [ <urn:q> {number % 3} ], [] ." for number in range(40)]
    with serving("\n".join(lines).encode()) as address:
        for page in (7, 5000):
            facts, _, reading = ask(ALL, address, page=page)
            assert triples(facts) == {(f"urn:s{number}", "urn:p", float(number)) for number in range(40)}
            assert reading.left_out["rows with blank nodes"] == 120


@pytest.mark.parametrize(
    ("query", "order"),
    [
        (ALL + " ORDER BY ?subject", "?subject ?predicate ?object"),
        (ALL + " ORDER BY DESC(?subject) STRLEN(?object) # last\n", "?subject ?predicate ?object"),
        ("SELECT (?s AS ?a) ?b (?s AS ?c) { ?s ?p ?b }", "?a ?b STR(?c)"),
        ("SELECT ?a ?b ?c { ?a ?b ?x BIND(?a AS ?c) }", "?a ?b STR(?c)"),
        ("SELECT ?a ?b ?c { ?a ?b ?x . ?c ?d ?e FILTER(?c = ?a && ?a != ?b) }", "?a ?b STR(?c)"),
        ("SELECT ?a ?b ?c { ?a ?b ?x . ?c ?d ?e FILTER(sameTerm(?a, ?d)) FILTER(?c IN (?d)) }", "?a ?b STR(?c)"),
    ],
)
def test_no_column_is_sorted_by_twice(query, order):
    # Virtuoso pairs the columns of different rows if one column is sorted by twice.
    assert f"\nORDER BY {order}\nLIMIT 5 OFFSET 10" in parse_select(query, "q").page(5, 10)


@pytest.mark.parametrize(
    "query",
    [
        "select distinct * where { ?s ?p ?o }",
        "SELECT REDUCED ?s (COUNT(?o) AS ?n) { ?s ?p ?o } GROUP BY ?s HAVING (COUNT(?o) > 2) ORDER BY ?n",
        "SELECT # all\n DISTINCT ?s ?o { ?s ?p ?o } ORDER BY ?p VALUES ?p { <http://example.org/age> }",
        "SELECT ?s (MAX(?o) AS ?n) WHERE { ?s <http://example.org/age> ?o } GROUP BY ?s"
        " VALUES ?s { <http://example.org/p003> }",
    ],
)
def test_every_form_of_page_and_count_has_the_rows_of_the_query(store, query):
    parts = parse_select(query, "q")
    rows = {tuple(map(str, row)) for row in store.query(query)}
    assert rows
    for nested in (False, True):
        for by_hash in (False, True):
            pages = [parts.page(50, offset, nested, by_hash) for offset in range(0, 250, 50)]
            assert {
                tuple(str(row[name]) for name in parts.variables) for page in pages for row in store.query(page)
            } == {tuple(str(row[name]) for name in parts.variables) for row in store.query(query)}
    assert [row[0].value for row in store.query(parts.count())] == [str(len(rows))]
    assert [row[0].value for row in store.query(parts.count(blank_nodes=False))] == [str(len(rows))]


def test_row_digests_are_a_set(monkeypatch):
    monkeypatch.setattr(row_digests, "_MIN_PENDING", 20)
    digests, seen, random_ = row_digests.RowDigests(), set(), random.Random(1)
    for _ in range(200):
        rows = [str(random_.randrange(3000)) for _ in range(random_.randrange(30))]
        new = []
        for row in rows:
            new.append(row not in seen)
            seen.add(row)
        assert digests.add(rows) == new
        assert len(digests) == len(seen)
