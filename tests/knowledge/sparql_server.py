"""A real SPARQL server on a free port, and a proxy before it that behaves as badly as public endpoints do."""

from __future__ import annotations

import gzip
import json
import shutil
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs

import pytest
from listening import listening_port

from merkhet.core.errors import MerkhetError
from merkhet.knowledge._iris import short_name
from merkhet.knowledge.source_reader import ReadContext
from merkhet.knowledge.sources.sparql import read_endpoint

pyoxigraph = pytest.importorskip("pyoxigraph")

PATIENCE = 120.0
"""Seconds to wait for the real server, on a machine that has much else to do."""
TRACE = (
    "SPARQL-QUERY: queryStr=SELECT ?s\njava.util.concurrent.TimeoutException\n"
    "\tat java.util.concurrent.FutureTask.get(FutureTask.java:205)\n"
)


def oxigraph() -> str:
    beside = Path(sys.executable).with_name("oxigraph")
    found = str(beside) if beside.exists() else shutil.which("oxigraph")
    if not found:
        pytest.skip("the oxigraph server is not installed")
    return found


@contextmanager
def serving(*turtle: bytes) -> Iterator[str]:
    """The address of a server that holds these triples."""
    process = subprocess.Popen(
        [oxigraph(), "serve", "--bind", "127.0.0.1:0"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        base = f"http://127.0.0.1:{listening_port(process)}"
        for content in turtle:
            load(base, content)
        yield f"{base}/query"
    finally:
        process.terminate()
        process.wait()


def load(base: str, turtle: bytes) -> None:
    request = urllib.request.Request(f"{base}/store?default", turtle, {"Content-Type": "text/turtle"}, method="POST")
    urllib.request.urlopen(request, timeout=PATIENCE).close()


class Proxy(ThreadingHTTPServer):
    """Gives the server's answers, spoiled in the way ``behave`` says for the query and the number of the request.

    A way is None, or a word, or a tuple of a word and what belongs to it; see ``Handler.do_POST``.
    """

    daemon_threads = True

    def __init__(self, server: str) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.server = server
        self.address = f"http://127.0.0.1:{self.server_port}/sparql"
        self.reset()

    def reset(self) -> None:
        self.asked: list[str] = []
        self.headers: list[dict[str, str]] = []
        self.behave: Callable[[str, int], object] = lambda query, number: None
        self.software = "oxigraph"

    @property
    def pages(self) -> list[str]:
        return [query for query in self.asked if "merkhetCount" not in query]

    def answer(self, query: str) -> bytes:
        headers = {"Content-Type": "application/sparql-query", "Accept": "application/sparql-results+json"}
        request = urllib.request.Request(self.server, query.encode(), headers)
        with urllib.request.urlopen(request, timeout=PATIENCE) as given:
            return given.read()


class Handler(BaseHTTPRequestHandler):
    server: Proxy

    def log_message(self, *arguments: object) -> None:
        pass

    def version_string(self) -> str:
        return self.server.software

    def do_POST(self) -> None:
        proxy = self.server
        query = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())["query"][0]
        proxy.asked.append(query)
        proxy.headers.append(dict(self.headers))
        way = proxy.behave(query, len(proxy.asked))
        way, *more = way if isinstance(way, tuple) else (way,)
        if way == "status":
            code, text, headers = more
            return self._send(text.encode(), code, headers)
        if way == "rewrite":
            query = more[0](query)
        if way == "page":
            return self._send(b"<html>sign in", 200, {})
        if way == "drip":
            self._send(b'{"head": {', 200, {"Content-Length": "99999"})
            with suppress(OSError):
                while True:  # Until the client has hung up.
                    self.wfile.write(b" ")
                    time.sleep(0.02)
        if way == "silent":
            self.connection.recv(1)  # Until the client has hung up.
            return None
        try:
            body = proxy.answer(query)
        except urllib.error.HTTPError as error:
            with error:
                return self._send(error.read(), error.code, {"Content-Type": "text/plain"})
        half = body[: len(body) // 2]
        if way == "cap":
            answer = json.loads(body)
            rows = answer["results"]["bindings"]
            answer["results"]["bindings"] = rows[: more[0]]
            says = len(more) > 1 and len(rows) >= more[0]
            self._send(json.dumps(answer).encode(), 200, {"X-SPARQL-MaxRows": str(more[0])} if says else {})
        elif way == "part":
            self._send(body, 200, {"X-SQL-State": "S1TAT"})
        elif way == "gzip":
            self._send(gzip.compress(body), 200, {"Content-Encoding": "gzip"})
        elif way == "gzip-cut":
            self._send(gzip.compress(body)[:-9], 200, {"Content-Encoding": "gzip"})
        elif way == "cut-length":
            self._send(half, 200, {"Content-Length": str(len(body))})
        elif way == "cut-silently":
            self._send(half)
        elif way == "cut-bare":
            self._send(half, 200, {"Content-Length": ""})
        elif way == "cut-chunked":
            self.protocol_version = "HTTP/1.1"
            chunk = f"{len(half):x}\r\n".encode() + half + b"\r\n"
            self._send(chunk, 200, {"Transfer-Encoding": "chunked", "Content-Length": ""})
        elif way == "closed":
            self.connection.shutdown(socket.SHUT_RDWR)
        elif way == "trace":
            self._send(half + TRACE.encode())
        elif way == "trace-after":
            self._send(body + b"\n" + TRACE.encode())
        else:
            self._send(body)

    def _send(self, body: bytes, code: int = 200, headers: dict[str, str] | None = None) -> None:
        self.close_connection = True
        self.send_response(code)
        for name, value in {"Content-Length": str(len(body)), **(headers or {})}.items():
            if value:
                self.send_header(name, value)
        self.end_headers()
        with suppress(OSError):
            self.wfile.write(body)


@contextmanager
def proxying(server: str) -> Iterator[Proxy]:
    with Proxy(server) as proxy:
        thread = threading.Thread(target=proxy.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        try:
            yield proxy
        finally:
            proxy.shutdown()
            thread.join()


ALL = "SELECT ?subject ?predicate ?object WHERE { ?subject ?predicate ?object }"
QUICK = {"wait": "0.001", "retries": "2"}
PEOPLE = 30
ROWS = 7 * PEOPLE


def small_world() -> bytes:
    """People with ages, homes, scores and names that tie in every way an order can tie."""
    lines = ["@prefix : <http://example.org/> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> ."]
    for number in range(PEOPLE):
        person = f":p{number:03d}"
        lines.append(f'{person} :age {number % 7} ; :home :city{number % 5} ; rdfs:label "Nö {number % 9}"@en .')
        lines.append(f'{person} :score {number % 3}.0, {number % 3} ; :code "{number % 4}", "a # LIMIT 1 }} \\"x"@fr .')
    return "\n".join(lines).encode()


@pytest.fixture(scope="session")
def store():
    store = pyoxigraph.Store()
    store.load(small_world(), format=pyoxigraph.RdfFormat.TURTLE)
    return store


@pytest.fixture(scope="session")
def server():
    with serving(small_world()) as address:
        yield address


@pytest.fixture(scope="session")
def running(server):
    with proxying(server) as proxy:
        yield proxy


@pytest.fixture
def proxy(running, monkeypatch, tmp_path):
    monkeypatch.setenv("MERKHET_CACHE", str(tmp_path / "cache"))
    running.reset()
    return running


class Listener:
    """Progress that remembers."""

    def __init__(self):
        self.said, self.started, self.done = [], {}, Counter()

    def start(self, label, total, unit):
        self.started[label] = total

    def advance(self, label, done):
        self.done[label] += done

    def finish(self, label):
        pass

    def say(self, line):
        self.said.append(line)


@pytest.fixture
def ask(proxy, tmp_path):
    """Import from an endpoint: facts and names as sets, and the reading."""

    def call(query=ALL, address=None, *, languages=(), predicates=(), skip_bad=False, **options):
        if query and " " in query:
            file = tmp_path / "query.rq"
            file.write_text(query, encoding="utf-8")
            query = str(file)
        given = {
            **QUICK,
            **({"query": query} if query else {}),
            **{k.replace("_", "-"): str(v) for k, v in options.items()},
        }
        reading = ReadContext(
            languages=tuple(languages),
            predicates=tuple(predicates),
            options=given,
            skip_bad=skip_bad,
            progress=Listener(),
        )
        facts, names = [], []
        for chunk in read_endpoint(address or proxy.address, reading):
            facts += chunk.facts.to_pylist()
            names += chunk.names.to_pylist()
        return facts, names, reading

    return call


def triples(facts):
    return {
        (one["subject"], one["predicate"], one["object"] if one["value"] is None else one["value"]) for one in facts
    }


def expected(store, query=ALL):
    """What the rows of a query are in plain words: the slow and obvious way. Labels are names, and no facts."""

    def word(term):
        if isinstance(term, pyoxigraph.NamedNode):
            return short_name(term.value)
        if term.datatype.value.rpartition("#")[2] in ("integer", "decimal", "double"):
            return float(term.value)
        return f'"{term.value}"' + (f"@{term.language}" if term.language else "")

    rows = {tuple(word(row[name]) for name in ("subject", "predicate", "object")) for row in store.query(query)}
    return {row for row in rows if row[1] != "rdfs:label"}


def refusal(call, *arguments, kind=MerkhetError, **options):
    with pytest.raises(kind) as refused:
        call(*arguments, **options)
    assert "\n" not in str(refused.value)
    return str(refused.value)
