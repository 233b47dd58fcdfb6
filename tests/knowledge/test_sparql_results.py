"""SPARQL results that are read while they arrive: the rows of the json module, or an error, with bounded memory."""

from __future__ import annotations

import gzip
import json
import random
import re
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from merkhet.core.text_formats import parsed_size
from merkhet.knowledge import _sparql_results
from merkhet.knowledge._sparql_client import Endpoint, EndpointError, RequestSettings, _without_scripts
from merkhet.knowledge._sparql_results import (
    BrokenResultsError,
    LargeResultsError,
    MarkupError,
    NoTableError,
    PageRows,
    StoredRows,
    read_results,
)

TEXTS = ["", "x", "Paris", "naïve", "東京", "\U0001f600", '"\\\n\t', "]}", "{[", "\u2028", "a" * 300]


def blocks_of(data: bytes, draw: random.Random) -> Iterator[bytes]:
    cuts = sorted(draw.choices(range(len(data) + 1), k=draw.randint(0, 20)))
    return iter([data[a:b] for a, b in zip([0, *cuts], [*cuts, len(data)], strict=True) if a < b])


def read(data: bytes, draw: random.Random | None = None) -> list[Any]:
    rows: list[Any] = []
    read_results(blocks_of(data, draw or random.Random(0)), lambda row, memory: rows.append(row))
    return rows


def random_table(draw: random.Random) -> bytes:
    def cell() -> dict[str, Any]:
        if draw.random() < 0.05:
            return {"type": "triple", "value": {"subject": cell(), "predicate": cell(), "object": cell()}}
        return {"type": draw.choice(["uri", "literal", "bnode"]), "value": draw.choice(TEXTS)}

    rows = [{name: cell() for name in "abc" if draw.random() < 0.8} for _ in range(draw.randint(0, 30))]
    others = {"link": [1, -2.5e3, True, None], "boolean": False, "meta": {"x": [{}], "bindings": []}}
    inner = [("distinct", False), ("bindings", rows), ("ordered", 1)]
    outer = [("head", {"vars": ["a"]}), ("results", dict(draw.sample(inner, 3))), *others.items()]
    return json.dumps(
        dict(draw.sample(outer, len(outer))), ensure_ascii=draw.random() < 0.5, indent=draw.choice([None, 0, 3])
    ).encode()


def expected(data: bytes) -> list[Any] | None:
    """The rows by the json module; None if the content is not a table."""
    repeated = []

    def pairs(members: list[tuple[str, Any]]) -> dict[str, Any]:
        names = [name for name, _ in members]
        repeated.extend(name for name in ("results", "bindings") if names.count(name) > 1)
        return dict(members)

    try:
        content = json.loads(data.decode(), object_pairs_hook=pairs)
        rows = content["results"]["bindings"]
    except (ValueError, LookupError, TypeError):
        return None
    is_table = isinstance(rows, list) and all(isinstance(row, dict) for row in rows) and not repeated
    return rows if is_table else None


def test_rows_are_those_of_the_json_module_however_the_bytes_are_cut() -> None:
    draw = random.Random(1)
    for _ in range(100):
        data = random_table(draw)
        assert read(data, draw) == expected(data), data


def test_no_beginning_of_a_result_and_nothing_after_it_is_a_result() -> None:
    draw = random.Random(2)
    data = b'{"head": {}, "results": {"bindings": [{"a": {"value": "\\u00e9\xc3\xa9"}}, {}], "n": [-1.5e+7, 1E5]}}'
    assert len(read(data)) == 2
    for length in range(len(data)):
        with pytest.raises(BrokenResultsError):
            read(data[:length], draw)
    for junk in (b"x", b"}", b"{}", b"\0", b'"', b"\xff"):
        with pytest.raises(BrokenResultsError):
            read(data + junk, draw)
    assert len(read(data + b" \n\t\r ")) == 2


def test_changed_bytes_are_an_error_or_what_the_json_module_reads() -> None:
    draw = random.Random(3)
    refused = 0
    for _ in range(1500):
        data = bytearray(random_table(draw))
        for _ in range(draw.randint(1, 2)):
            place = draw.randrange(len(data))
            data[place : place + draw.randint(0, 2)] = draw.choice([b"", b'"', b"{", b"]", b",", b"1", b"\\", b"\xe9"])
        rows = expected(bytes(data))
        try:
            assert read(bytes(data), draw) == rows, data
        except (BrokenResultsError, NoTableError):
            assert rows is None, data
            refused += 1
    assert 300 < refused < 1500


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (b" \n<html>", MarkupError),
        (b"", BrokenResultsError),
        (b"[]", NoTableError),
        (b"17", NoTableError),
        (b"{}", NoTableError),
        (b'{"boolean": true}', NoTableError),
        (b'{"results": []}', NoTableError),
        (b'{"results": {"bindings": {}}}', NoTableError),
        (b'{"results": {"bindings": [[]]}}', NoTableError),
        (b'{"results": {"bindings": [{}, null]}}', NoTableError),
        (b'{"results": {"bindings": []}, "results": {"bindings": []}}', NoTableError),
        (b'{"results": {"bindings": [], "bindings": []}}', NoTableError),
        (b'{"results": {"bindings": [' + b'{"a":' * 200 + b"1" + b"}" * 200 + b"]}}", BrokenResultsError),
        (b'{"results": {"bindings": [' + b'{"a":' * 100_000, BrokenResultsError),
        (b'{"head": ' + b"[" * 100_000, BrokenResultsError),
        (b'{"head": "' + b"x" * 2_000_000, NoTableError),
        (b" " * 2_000_000, NoTableError),
        (b'{"results": {"bindings": [{"a": "' + b"x" * 10_000_000, LargeResultsError),
        (b'{"results": {"bindings": [{"a": [' + b"[]," * 1_000_000, LargeResultsError),
        (b'{"n": ' + b"9" * 5000 + b"}", BrokenResultsError),
    ],
    ids=lambda value: str(value)[:40],
)
def test_what_is_no_table_is_refused(data: bytes, error: type[Exception]) -> None:
    with pytest.raises(error):
        read_results(iter([data[start : start + 65_536] for start in range(0, len(data), 65_536)]), lambda *_: None)


def test_the_text_after_a_fault_is_kept_for_the_search_for_error_messages() -> None:
    start = b'{"results": {"bindings": [{"a": {"value": "x'
    for data in (start + b"\njava.x.TimeoutException", start + b'"}}]}}\njava.x.TimeoutException', start + b'"\njava'):
        with pytest.raises(BrokenResultsError) as caught:
            read(data)
        assert "java" in caught.value.rest
    with pytest.raises(BrokenResultsError) as caught:
        read(start + b"y" * 300_000 + b"\njava.x.TimeoutException")
    assert caught.value.rest.endswith("java.x.TimeoutException") and len(caught.value.rest) <= 1 << 17


def test_a_page_has_no_more_rows_than_fit_into_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_sparql_results, "MAX_PAGE_MEMORY", 100_000)
    rows = PageRows()
    with pytest.raises(LargeResultsError, match="the rows take more than 100,000 bytes of memory"):
        read_results(iter([b'{"results": {"bindings": [' + b'{"a": {"value": "x"}},' * 1000]), rows.add)
    assert 10 < len(rows) < 500


def test_stored_rows_come_back_in_batches() -> None:
    rows = StoredRows()
    content = [{"a": {"type": "literal", "value": f"\ud83d\n{number} é"}} for number in range(25)]
    for row in content:
        rows.add(row, 1)
    assert len(rows) == 25
    assert list(rows) == content
    assert [len(batch) for batch in rows.batches(10)] == [10, 10, 5]
    assert [row for batch in rows.batches(7) for row in batch] == content
    rows.close()


@pytest.mark.parametrize(
    "unit",
    [
        "[]",
        "{}",
        '{"a":1}',
        "[1]",
        '"ab"',
        '"é"',
        "1.5",
        "99999",
        "[[[[[[[[]]]]]]]]",
        '{"a":{"a":{"a":{}}}}',
        '"\\u00e9"',
    ],
)
def test_parsed_json_takes_no_more_memory_than_estimated(unit: str) -> None:
    text = "[" + ",".join([unit] * 3000) + "]"
    tracemalloc.start()
    try:
        content = json.loads(text)
        used = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert len(content) == 3000
    assert used <= parsed_size(text)
    assert used <= parsed_size(text.encode())
    assert parsed_size(text + text, len(text)) == parsed_size(text)


def test_scripts_are_removed_from_error_pages_as_by_a_plain_pattern() -> None:
    draw = random.Random(4)
    plain = re.compile(r"<(script|style).*?</\1>", re.DOTALL | re.IGNORECASE)
    parts = ["<script>", "</script>", "<STYLE a>", "</style>", "x", "\n", "<p>"]
    for _ in range(500):
        text = "".join(draw.choices(parts, k=draw.randint(0, 9)))
        # The plain pattern goes on after an element that is not closed.
        if re.search(r"<(script|style)", plain.sub(" ", text), re.IGNORECASE) is None:
            assert _without_scripts(text) == plain.sub(" ", text), text
    assert _without_scripts("<script>" * 20_000) == "<script>" * 20_000


def test_a_cached_response_that_is_a_bomb_is_as_good_as_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MERKHET_CACHE", str(tmp_path))
    endpoint = Endpoint("http://127.0.0.1:1/", RequestSettings(retries=0))
    content = [{"a": {"type": "uri", "value": "x"}}, {}]
    endpoint.write_cache("q", {"rows": content, "more": 5})
    assert endpoint.read_cache("q") == {"rows": content, "more": 5}
    assert endpoint.ask("q") == list(endpoint.ask_unpaged("q")) == content
    (file,) = tmp_path.rglob("*.json.gz")
    assert json.loads(gzip.decompress(file.read_bytes())) == {"rows": content, "more": 5}
    endpoint.write_cache("q", {"rows": []})
    assert endpoint.read_cache("q") == {"rows": []}
    monkeypatch.setattr(_sparql_results, "MAX_PAGE_MEMORY", 1_000_000)
    rows = b'{"rows": [' + b",".join([b"{}"] * 10_000) + b"]}"
    for bomb in (
        bytes(20_000_000),
        rows,
        b'{"rows": [{"a": [' + b"[]," * 99_999,
        b"[" * 99_999,
        b'{"rows": [[]]}',
        b"",
    ):
        file.write_bytes(gzip.compress(bomb, 1))
        assert endpoint.read_cache("q") == {}
        with pytest.raises(EndpointError, match="Connection refused"):
            endpoint.ask("q")
