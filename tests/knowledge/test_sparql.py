"""SPARQL endpoints: every row comes or none, from a real server behind a proxy that spoils its answers."""

# ruff: noqa: F401, F811
from __future__ import annotations

import re
import sys
import time
from datetime import datetime, timedelta, timezone
from email.utils import format_datetime
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from sparql_server import ALL, ROWS, ask, expected, proxy, pyoxigraph, refusal, running, server, store, triples

from merkhet.core.errors import InputError
from merkhet.knowledge._sparql_client import EndpointError
from merkhet.knowledge.sparql_queries import parse_select


@pytest.mark.parametrize("page", [2, 7, 64, 5000])
def test_all_rows_come_whatever_the_page(ask, proxy, store, page):
    facts, _, reading = ask(page=page)
    assert triples(facts) == expected(store)
    [(label, total)] = reading.progress.started.items()
    assert total == reading.progress.done[label] == len(list(store.query(ALL)))
    assert all("ORDER BY ?subject ?predicate ?object\nLIMIT" in query for query in proxy.pages)


@pytest.mark.parametrize("cap", [2, 7, 100])
def test_a_silent_cap_is_noticed(ask, proxy, store, cap):
    proxy.behave = lambda query, number: ("cap", cap)
    facts, _, reading = ask(page=200, count="no")
    assert triples(facts) == expected(store)
    assert [line for line in reading.progress.said if f"at most {cap} rows per page" in line]
    proxy.reset()
    assert triples(ask(page=200, count="no")[0]) == expected(store)
    assert proxy.asked == []


def test_a_server_that_gives_one_row_at_once_is_refused(ask, proxy):
    proxy.behave = lambda query, number: ("cap", 1)
    assert "one row per page" in refusal(ask, count="no")


def test_no_row_and_one_row(ask, proxy):
    for limit in (0, 1):
        query = ALL.replace("{", "{ { SELECT * {") + f" ORDER BY ?subject ?predicate ?object LIMIT {limit} }} }}"
        facts, _, reading = ask(query)
        assert len(facts) == limit
        assert reading.progress.said == []
        assert len(set(proxy.asked)) == len(proxy.asked)


def test_an_iri_without_a_value_is_a_bad_row(ask, proxy):
    cells = '{"subject": {"type": "uri"}, "predicate": {"type": "uri"}, "object": {"type": "uri"}}'
    proxy.behave = lambda query, number: ("status", 200, f'{{"results": {{"bindings": [{cells}]}}}}', {})
    assert "row 1: ?subject is not a cell with a type and a value" in refusal(ask, count="no", kind=InputError)


def test_fewer_rows_than_counted_are_refused(ask, proxy):
    # A cap on all rows together: beyond it every page is empty, as after the last row.
    def cap(query):
        limit, offset = map(int, re.search(r"LIMIT (\d+) OFFSET (\d+)", query).groups())
        return query.replace(f"LIMIT {limit} OFFSET", f"LIMIT {max(0, min(limit, 100 - offset))} OFFSET")

    proxy.behave = lambda query, number: ("rewrite", cap) if "OFFSET" in query else None
    line = refusal(ask, page=40, kind=EndpointError)
    assert f"{ROWS} rows were counted, but 100 came" in line
    assert "cache=refresh" in line


def test_a_count_that_fails_is_left_out_with_a_word(ask, proxy, store):
    fails = ("status", 500, "Query timeout limit reached", {})
    proxy.behave = lambda query, number: fails if "merkhetCount" in query else None
    facts, _, reading = ask()
    assert triples(facts) == expected(store)
    assert "could not be counted (HTTP 500: Query timeout limit reached)" in reading.progress.said[0]
    proxy.reset()
    ask(count="no", cache="no")
    assert proxy.asked == proxy.pages


@pytest.mark.parametrize(
    "way", ["cut-length", "cut-silently", "cut-bare", "cut-chunked", "closed", "gzip-cut"], ids=lambda way: way
)
def test_a_cut_answer_is_asked_for_again_and_never_taken(ask, proxy, store, way):
    proxy.behave = lambda query, number: way if number in (1, 3, 4) else None
    assert triples(ask(page=100, count="no")[0]) == expected(store)
    proxy.reset()
    proxy.behave = lambda query, number: way if "OFFSET" in query else None
    line = refusal(ask, page=128, cache="refresh", retries=1, kind=EndpointError)
    assert "broke off its answer" in line
    assert "even for pages of 2 rows. Nothing was imported." in line


@pytest.mark.parametrize(
    "way",
    [
        "silent",
        ("status", 504, "<html><h1>Gateway Time-out</h1></html>", {}),
        ("status", 500, "java.util.concurrent.TimeoutException: Query deadline is expired", {}),
        "trace",
        "trace-after",
        "part",
    ],
    ids=lambda way: str(way)[:12],
)
def test_a_timeout_makes_the_pages_smaller(ask, proxy, store, way):
    def late(query, number):
        found = re.search(r"LIMIT (\d+)", query)
        return way if found and int(found[1]) > 120 else None

    # Only where nothing comes has the client to give up; whatever comes may take its time on a busy machine.
    timeout = {"timeout": 1.5} if way == "silent" else {}
    proxy.behave = late
    facts, _, reading = ask(page=400, **timeout)
    assert triples(facts) == expected(store)
    # A timeout of the client divides the page size by 8, every other one by 2.
    size = 50 if way == "silent" else 100
    assert sum(f"requesting pages of {size} rows" in line for line in reading.progress.said) == 1
    assert sum("LIMIT 400 " in query for query in proxy.pages) == 1
    # Begun again it takes the kept pages, and need not wait for the same timeouts.
    proxy.reset()
    proxy.behave = late
    assert triples(ask(page=400, **timeout)[0]) == expected(store)
    assert proxy.asked == []


def test_an_answer_that_drips_has_no_more_time_than_a_silent_one(ask, proxy, monkeypatch):
    monkeypatch.setenv("SPARQL_LOGIN", "me:hunter2-of-mine")
    # With a login, the answer passes through the search for secrets.
    for login in ({}, {"key": "SPARQL_LOGIN"}):
        proxy.reset()
        proxy.behave = lambda query, number: "drip"
        line = refusal(ask, page=3, timeout=0.3, cache="no", kind=EndpointError, **login)
        assert "no complete answer within 0.3 s, even for pages of 2 rows" in line, login
        # The count, and two sizes of a page.
        assert len(proxy.asked) == 3, login


def test_an_error_names_where_a_redirect_leads(ask, proxy):
    there = ("status", 302, "", {"Location": "http://me:hunter2@h/login?token=abc"})
    proxy.behave = lambda query, number: there
    line = refusal(ask, count="no", kind=EndpointError)
    assert "refused the query (HTTP 302 Found (redirected to http://h/login?...))" in line
    here = ("status", 302, "", {"Location": "/login?token=abc"})
    proxy.behave = lambda query, number: here if number == 2 else "page"
    line = refusal(ask, count="no", kind=EndpointError)
    assert f"HTML or XML instead of JSON results (redirected to {proxy.address[:-7]}/login?...)" in line
    assert "abc" not in line


def test_many_rows_of_a_query_with_its_own_limit_are_passed_on_in_batches(ask, proxy, store, monkeypatch):
    monkeypatch.setattr("merkhet.knowledge._sparql_paging._UNPAGED_BATCH", 50)
    monkeypatch.setattr("merkhet.knowledge._sparql_results._STORED_IN_MEMORY", 1000)
    query = f"{ALL} ORDER BY ?subject ?predicate ?object LIMIT 200"
    for requests in (2, 0):
        proxy.reset()
        facts, _, reading = ask(query)
        assert triples(facts) == expected(store, query)
        assert list(reading.progress.done.values()) == [200]
        assert len(proxy.asked) == requests


def test_a_page_that_takes_too_much_memory_is_asked_for_in_parts(ask, proxy, store, monkeypatch):
    monkeypatch.setattr("merkhet.knowledge._sparql_results.MAX_PAGE_MEMORY", 150_000)
    facts, _, reading = ask(page=400)
    assert triples(facts) == expected(store)
    assert any(
        "the rows take more than 150,000 bytes of memory; requesting pages" in line for line in reading.progress.said
    )


@pytest.mark.parametrize("size", ["5", "-1MB", "all"])
def test_what_is_no_size_of_an_answer_is_refused(ask, proxy, size):
    assert "the option 'max-bytes' must be a size such as 64MB" in refusal(ask, max_bytes=size, kind=InputError)


def test_a_query_that_always_times_out_says_what_to_do(ask, proxy):
    proxy.behave = lambda query, number: ("status", 500, "Query timed out", {})
    line = refusal(ask, page=640, count="no", kind=EndpointError)
    assert "HTTP 500: Query timed out, even for pages of 10 rows. Nothing was imported. Narrow the query" in line
    assert [int(re.search(r"LIMIT (\d+)", query)[1]) for query in proxy.asked] == [640, 320, 160, 80, 40, 20, 10]
    line = refusal(ask, f"{ALL} LIMIT 9", count="no")
    assert "Lower the LIMIT of the query" in line


def test_busy_answers_are_waited_out(ask, proxy, store, monkeypatch):
    paused = []
    monkeypatch.setattr(time, "sleep", paused.append)
    soon = format_datetime(datetime.now(timezone.utc) + timedelta(seconds=40), usegmt=True)
    busy = {
        1: ("status", 429, "Too Many Requests", {"Retry-After": "7"}),
        3: ("status", 503, "", {"Retry-After": soon}),
        4: ("status", 500, "hiccup", {}),
        6: ("status", 502, "<html>bad gateway</html>", {}),
    }
    proxy.behave = lambda query, number: busy.get(number)
    facts, _, reading = ask(wait=1)
    assert triples(facts) == expected(store)
    assert paused[0] == 7
    assert 35 <= paused[1] <= 40
    assert 1 <= paused[2] <= 3
    assert 0.5 <= paused[3] <= 1.5
    assert len(paused) == 4
    assert any("Too Many Requests, wait 7 s; trying again in 7 s" in line for line in reading.progress.said)
    proxy.reset()
    proxy.behave = lambda query, number: ("status", 429, "slow down", {"Retry-After": "86400"})
    assert "answered HTTP 429: slow down, wait 86400 s (tried once)" in refusal(ask, cache="no")


def test_endpoints_that_are_down_are_named(ask, proxy):
    line = refusal(ask, address="http://127.0.0.1:9/sparql?key=hidden", kind=EndpointError)
    assert line.startswith("http://127.0.0.1:9/sparql?... cannot be reached: Connection refused (tried 3 times). ")
    assert "Check the address and the network" in line
    line = refusal(ask, address="http://no-such-host.invalid/sparql", retries=0)
    assert line.startswith("http://no-such-host.invalid/sparql cannot be reached: ")
    proxy.behave = lambda query, number: ("status", 500, "broken\nin two lines", {})
    line = refusal(ask, kind=EndpointError)
    assert f"{proxy.address} answered HTTP 500: broken (tried 3 times)" in line


@pytest.mark.parametrize(
    ("way", "said", "kind"),
    [
        (
            ("status", 400, "error at 1:8: expected WHERE\nmore", {}),
            "(HTTP 400: error at 1:8: expected WHERE)",
            InputError,
        ),
        (
            ("status", 400, "SPARQL-QUERY: queryStr=x\njava.lang.Exception: Encountered 'x'\n\tat a", {}),
            "(HTTP 400: java.lang.Exception: Encountered 'x')",
            InputError,
        ),
        (("status", 403, "", {}), "refused the query (HTTP 403 Forbidden)", EndpointError),
        (("status", 404, "<html><title>Not here</title></html>", {}), "(HTTP 404: Not here)", EndpointError),
        (
            ("status", 200, "<!DOCTYPE html><html></html>", {}),
            "answered with HTML or XML instead of JSON",
            EndpointError,
        ),
        (("status", 200, '{"head": {}, "boolean": true}', {}), "JSON that is not a table of rows", EndpointError),
        (("status", 200, "[]", {}), "JSON that is not a table of rows", EndpointError),
        (("status", 302, "", {"Location": "ftp://example.org/x"}), "refused the query (HTTP 302", EndpointError),
        (("status", 307, "", {"Location": "file:///etc/passwd"}), "refused the query (HTTP 307", EndpointError),
    ],
)
def test_what_trying_again_cannot_mend_is_said_at_once(ask, proxy, way, said, kind):
    proxy.behave = lambda query, number: way
    assert said in refusal(ask, kind=kind)
    assert len(proxy.pages) == 1


def test_a_bad_query_is_told_by_the_server_itself(ask, proxy):
    line = refusal(ask, "SELECT ?subject ?predicate ?object WHERE { ?subject ?predicate } ", kind=InputError)
    assert line.startswith(f"{proxy.address} does not understand the query (HTTP 400: ")


def test_nothing_is_asked_twice(ask, proxy, store, tmp_path):
    first = ask(page=50)[0]
    assert all(headers["User-Agent"] == "merkhet/0.1.0; knowledge import" for headers in proxy.headers)
    requests = len(proxy.asked)
    again, _, reading = ask(page=50)
    assert again == first
    assert len(proxy.asked) == requests
    assert (
        f"{requests} responses came from the cache; set cache=refresh to request them again"
        in reading.progress.said[-1]
    )
    ask(page=50, cache="refresh", user_agent="me/1")
    assert len(proxy.asked) == 2 * requests
    assert proxy.headers[-1]["User-Agent"] == "me/1"
    ask(page=50, cache="no")
    assert len(proxy.asked) == 3 * requests
    # A file that is not whole is as good as none.
    files = sorted((tmp_path / "cache" / "sparql").rglob("*.json.gz"))
    assert len(files) == requests
    files[0].write_bytes(files[0].read_bytes()[:-9])
    files[1].write_bytes(b"")
    assert ask(page=50)[0] == first
    assert len(proxy.asked) == 3 * requests + 2


def test_an_interrupted_import_goes_on_from_the_kept_pages(ask, proxy, store):
    proxy.behave = lambda query, number: ("status", 500, "down", {}) if number > 4 else None
    refusal(ask, page=50)
    proxy.reset()
    assert triples(ask(page=50)[0]) == expected(store)
    assert "OFFSET 0" not in "".join(proxy.asked)
    # Neither are broken answers kept.
    proxy.reset()
    proxy.behave = lambda query, number: "cut-silently"
    refusal(ask, page=48, retries=0, count="no")
    proxy.reset()
    assert triples(ask(page=48)[0]) == expected(store)
    assert "OFFSET 0" in "".join(proxy.asked)


@pytest.mark.parametrize("shift", [-3, 3, -20])
def test_rows_that_move_between_pages_are_found_again(ask, proxy, store, shift):
    # As if rows before the page had been added (-) or removed (+) after the third request.
    def moved(query):
        return re.sub(r"OFFSET (\d+)", lambda found: f"OFFSET {max(0, int(found[1]) + shift)}", query)

    proxy.behave = lambda query, number: ("rewrite", moved) if number > 3 else None
    assert triples(ask(page=50, count="no")[0]) == expected(store)


def test_a_server_without_offset_or_limit_is_refused(ask, proxy):
    proxy.behave = lambda query, number: ("rewrite", lambda text: re.sub(r"OFFSET \d+", "", text))
    assert "does not continue where the last one ended" in refusal(ask, page=50)
    proxy.behave = lambda query, number: ("rewrite", lambda text: re.sub(r"LIMIT \d+", "", text))
    assert f"it returned {ROWS} rows instead of 50" in refusal(ask, page=50, cache="no")


def test_virtuoso_sorts_inside_where_it_will_not_sort_and_cut(ask, proxy, store):
    error = ("status", 500, "Virtuoso 22023 Error SR353: Sorted TOP clause specifies more then 100 rows to sort.", {})

    def virtuoso(query, number):
        found = re.search(r"LIMIT (\d+) OFFSET (\d+)", query)
        return error if found and int(found[1]) + int(found[2]) > 100 and "WHERE { {" not in query else None

    proxy.behave = virtuoso
    assert triples(ask(page=50)[0]) == expected(store)
    requests = len(proxy.asked)
    assert triples(ask(page=50)[0]) == expected(store)
    assert len(proxy.asked) == requests


def test_packed_answers_and_moved_endpoints(ask, proxy, store, monkeypatch):
    monkeypatch.setenv("SPARQL_LOGIN", "me:secret")
    proxy.behave = lambda query, number: "gzip"
    assert triples(ask()[0]) == expected(store)
    assert "gzip" in proxy.headers[0]["Accept-Encoding"]
    assert proxy.headers[0]["Accept"] == "application/sparql-results+json"
    for code in (301, 302, 307, 308):
        proxy.reset()
        there = ("status", code, "", {"Location": "/elsewhere"})
        proxy.behave = lambda query, number, there=there: there if number % 2 else None
        assert triples(ask(cache="no", key="SPARQL_LOGIN")[0]) == expected(store)
        assert {headers["Authorization"] for headers in proxy.headers} == {"Basic bWU6c2VjcmV0"}


def test_an_answer_beyond_the_byte_limit_makes_the_pages_smaller(ask, proxy, store):
    facts, _, reading = ask(page=400, max_bytes="20kB")
    assert triples(facts) == expected(store)
    assert any(
        "the reply is larger than 20,000 bytes; requesting pages of 200 rows" in line for line in reading.progress.said
    )


def test_a_password_that_the_endpoint_repeats_is_not_shown(ask, proxy, monkeypatch):
    monkeypatch.setenv("SPARQL_LOGIN", "me:hunter2")
    address = proxy.address + "?token=0123456789"
    for code in (400, 403, 500):
        proxy.behave = lambda query, number, code=code: ("status", code, "no me:hunter2, 0123456789", {})
        line = refusal(ask, address=address, cache="no", retries=0, key="SPARQL_LOGIN")
        assert f"HTTP {code}: no (the key), (the key)" in line


def test_a_token_is_sent_and_a_login_in_the_address_is_refused(ask, proxy, store, monkeypatch):
    monkeypatch.setenv("SPARQL_LOGIN", "token-for-this-endpoint")
    assert triples(ask(cache="no", key="SPARQL_LOGIN")[0]) == expected(store)
    assert {headers["Authorization"] for headers in proxy.headers} == {"Bearer token-for-this-endpoint"}
    line = refusal(ask, key="token-in-place-of-a-variable", kind=InputError)
    assert "the option 'key' must be the name of an environment variable" in line
    assert "token-in-place" not in line
    line = refusal(ask, address=proxy.address.replace("//", "//me:hunter2@"), kind=InputError)
    assert "contains a user or password" in line
    assert "hunter2" not in line


@pytest.mark.parametrize("address", ["http://me:hunter2/x@h/", "http://[hunter2/", "http://h:hunter2/"])
def test_a_malformed_address_is_refused_and_not_repeated(ask, address):
    line = refusal(ask, address=address, kind=InputError)
    assert "the address of the endpoint is not valid; write it as https://HOST/sparql" in line
    assert "hunter2" not in line


PREFIX = "PREFIX limit: <http://example.org/>\n# SELECT LIMIT 1 { \n"
QUERIES = [
    PREFIX
    + "SELECT ?subject ?predicate ?object { ?subject ?predicate ?object . FILTER(?object != '} LIMIT 3 #') } # LIMIT 2",
    PREFIX + "select distinct * where { ?subject ?predicate ?object . ?subject limit:home limit:city1 }",
    PREFIX + "SELECT ?subject ?predicate (?age AS ?object) { BIND(limit:age AS ?predicate) ?subject limit:age ?age }",
    PREFIX
    + "SELECT ?subject ?predicate ?object { { SELECT ?subject { ?subject limit:age 3 } ORDER BY ?subject LIMIT 5 }"
    " ?subject ?predicate ?object }",
    PREFIX + "SELECT ?subject ?predicate ?object { ?subject ?predicate ?object } ORDER BY DESC(?object) # the end",
    PREFIX
    + "SELECT ?subject ?predicate ?object { ?subject ?predicate ?object } VALUES ?predicate { limit:age limit:code }",
    PREFIX + "SELECT ?subject ?predicate ?object { ?subject ?predicate ?object } ORDER BY ?object\n"
    "VALUES (?predicate) { (limit:code) }",
    PREFIX
    + 'SELECT ?subject ?predicate ?object { ?subject ?predicate ?object FILTER(STR(?object) != """a " } LIMIT""") }',
    PREFIX
    + "SELECT ?subject ?predicate (COUNT(?x) AS ?object) { ?x limit:home ?subject . BIND(limit:of AS ?predicate) }"
    " GROUP BY ?subject ?predicate HAVING (COUNT(?x) > 1)",
]
ONCE = [
    f"{ALL} ORDER BY ?subject ?object LIMIT 9",
    f"{ALL} ORDER BY ?subject ?predicate ?object OFFSET 180",
    f"{ALL} ORDER BY ?subject ?object LIMIT 9 OFFSET 4",
]


@pytest.mark.parametrize("query", QUERIES)
def test_queries_are_cut_into_pages_wherever_their_end_is(ask, proxy, store, query):
    facts, _, reading = ask(query, page=11)
    assert triples(facts) == expected(store, query)
    assert triples(facts)
    assert list(reading.progress.started.values()) == [len(list(store.query(query)))]
    assert len(proxy.pages) > 1


@pytest.mark.parametrize("query", ONCE)
def test_a_query_with_its_own_limit_is_asked_once(ask, proxy, store, query):
    assert triples(ask(query, page=3)[0]) == expected(store, query)
    assert proxy.pages == [query]
    proxy.behave = lambda query, number: None if "merkhetCount" in query else ("cap", 5)
    assert "rows were counted, but 5 came" in refusal(ask, query, cache="no")


def test_a_query_is_taken_apart():
    text = "BASE <http://a#b>\nSELECT ?a (1 AS ?b)\nFROM <http://g> # x\nFROM NAMED <http://h>\nWHERE { ?a ?c ?d } "
    text += "VALUES ?a { 1 }"
    parts = parse_select(text, "q")
    assert parts.variables == ("a", "b")
    assert parts.dataset == "FROM <http://g> # x\nFROM NAMED <http://h>"
    assert parts.page(5, 10).endswith("WHERE { { ?a ?c ?d }\nVALUES ?a { 1 }\n}\nORDER BY ?a ?b\nLIMIT 5 OFFSET 10")
    for made in (parts.page(5, 10), parts.page(5, 10, nested=True), parts.count()):
        pyoxigraph.Store().query(made)
        assert made.count("FROM <http://g>") == 1
