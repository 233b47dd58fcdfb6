"""Readers of what endpoints reply: a real server on loopback sends each input, whole or as the body of a response."""

from __future__ import annotations

import functools
import itertools
import json
import socket
import threading
from typing import Any

from fuzz import mutations
from fuzz.targets import Place, Target
from merkhet.knowledge.source_reader import ReadContext
from merkhet.knowledge.sources.sparql import read_endpoint
from merkhet.models.chat._chat_settings import read_settings
from merkhet.models.chat._endpoint import EndpointModel
from merkhet.models.chat._reply_cache import ReplyCache
from merkhet.models.chat.chat_messages import ChatRequest

_TABLE = {
    "head": {"vars": ["subject", "predicate", "object"]},
    "results": {
        "bindings": [
            {
                "subject": {"type": "uri", "value": "http://www.wikidata.org/entity/Q90"},
                "predicate": {"type": "uri", "value": "http://www.wikidata.org/prop/direct/P17"},
                "object": {"type": "uri", "value": "http://www.wikidata.org/entity/Q142"},
                "subjectLabel": {"type": "literal", "value": "Paris", "xml:lang": "en"},
                "start": {
                    "type": "literal",
                    "value": "1957-03-15T00:00:00Z",
                    "datatype": "http://www.w3.org/2001/XMLSchema#dateTime",
                },
                "startPrecision": {"type": "literal", "value": "11"},
            },
            {
                "subject": {"type": "uri", "value": "http://a/b"},
                "predicate": {"type": "uri", "value": "http://a/p"},
                "value": {
                    "type": "typed-literal",
                    "value": "2.5",
                    "datatype": "http://www.w3.org/2001/XMLSchema#decimal",
                },
                "unit": {"type": "uri", "value": "http://www.wikidata.org/entity/Q11573"},
                "domain": {"type": "literal", "value": "x"},
            },
        ]
    },
}
_COMPLETION = {
    "id": "x",
    "object": "chat.completion",
    "choices": [
        {
            "index": 0,
            "message": {"role": "assistant", "content": "A"},
            "finish_reason": "stop",
            "logprobs": {
                "content": [
                    {
                        "token": "A",
                        "logprob": -0.1,
                        "top_logprobs": [{"token": "A", "logprob": -0.1}, {"token": "B", "logprob": -2.5}],
                    }
                ]
            },
        }
    ],
    "usage": {"prompt_tokens": 3, "completion_tokens": 1, "total_tokens": 4},
}
_QUERY = b"SELECT ?subject ?predicate ?object WHERE { ?subject ?predicate ?object } LIMIT 5\n"
_STATUSES = (
    "200 OK",
    "400 Bad",
    "401 No",
    "404 None",
    "408 Late",
    "413 Large",
    "422 No",
    "429 Slow",
    "500 Broken",
    "503 Busy",
    "302 Moved",
    "100 Continue",
    "999 What",
    "0",
    "-1",
    "204 None",
    "304 Same",
)
_HEADERS = (
    "Content-Length: 5",
    "Content-Length: -1",
    "Content-Length: x",
    "Transfer-Encoding: chunked",
    "Content-Encoding: gzip",
    "Retry-After: 1e400",
    "Retry-After: -5",
    "Retry-After: Wed, 21 Oct 2015 07:28:00 GMT",
    "Retry-After: 99999999999999999999",
    "Retry-After: Wed, 99 Oct 99999 07:28:00 GMT",
    "retry-after-ms: nan",
    "retry-after-ms: 0",
    "Location: http://127.0.0.1:1/x",
    "Location: ftp://x",
    "Location: //[",
    "X-SQL-State: S1TAT",
    "Connection: close",
    ": x",
    "Content-Type: text/event-stream",
    "Set-Cookie: \x00",
)


class _Sender:
    """A server that sends the same bytes to whoever asks, and then hangs up."""

    def __init__(self) -> None:
        self.reply = b""
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = self._listening.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            connection, _ = self._listening.accept()
            with connection:
                connection.settimeout(3.0)
                try:
                    if self._heard(connection):
                        connection.sendall(self.reply)
                        connection.shutdown(socket.SHUT_WR)
                except OSError:
                    pass

    @staticmethod
    def _heard(connection: socket.socket) -> bool:
        heard = b""
        while b"\r\n\r\n" not in heard:
            more = connection.recv(65536)
            if not more:
                return False
            heard += more
        head, _, body = heard.partition(b"\r\n\r\n")
        length = next(
            (int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length")), 0
        )
        while len(body) < length:
            body += connection.recv(65536)
        return True


@functools.cache
def _sender() -> _Sender:
    return _Sender()


def _http(body: bytes, status: str = "200 OK", *headers: str) -> bytes:
    head = "".join(
        f"{line}\r\n"
        for line in (f"HTTP/1.1 {status}", "Content-Type: application/json", f"Content-Length: {len(body)}", *headers)
    )
    return head.encode() + b"\r\n" + body


_TURN = itertools.count()


def _ask_sparql(reply: bytes, place: Place) -> None:
    sender = _sender()
    sender.reply = reply
    options = {
        "endpoint": f"http://127.0.0.1:{sender.port}/sparql",
        "retries": "0",
        "wait": "0",
        "cache": "no",
        "timeout": "3",
        "count": "no",
    }
    reading = ReadContext(options=options, skip_bad=next(_TURN) % 2 == 0)
    for chunk in read_endpoint(place.file("own.rq", _QUERY), reading):
        chunk.facts.validate(full=True)
        chunk.names.validate(full=True)


def _ask_chat(reply: bytes, place: Place) -> None:
    sender = _sender()
    sender.reply = reply
    given = {"tries": 1, "timeout": 3, "concurrency": 1}
    settings = read_settings("m", f"http://127.0.0.1:{sender.port}/v1", given)
    kept = ReplyCache(place.out / "replies.sqlite")
    try:
        model = EndpointModel("m", settings, kept)
        for letters in (("A", "B"), ()):
            list(model.reply([ChatRequest((("user", "Which?"),), 3, letters)]))
            list(model.reply([ChatRequest((("user", "Which?"),), 3, letters)]))
    finally:
        kept.close()
        for file in place.out.iterdir():  # It is kept on purpose, and not half: the store is whole at any time.
            file.unlink()


def _as_body(ask: Any) -> Any:
    return lambda data, place: ask(_http(data), place)


def _deep() -> list[bytes]:
    return [
        b'{"results":{"bindings":' + b"[" * 60_000,
        b'{"choices":' + b"[" * 60_000 + b"]" * 60_000 + b"}",
        b"9" * 6000,
        b'{"usage":{"total_tokens":' + b"9" * 6000 + b"}}",
        b'{"choices":[{"message":{"content":"\\ud800"}}]}',
    ]


def targets() -> list[Target]:
    """The readers of what endpoints reply."""
    table, completion = json.dumps(_TABLE).encode(), json.dumps(_COMPLETION).encode()
    wholes = {"SPARQL": table, "chat": completion}
    heads = mutations.lines_of([*(f"HTTP/1.1 {status}" for status in _STATUSES), *_HEADERS], "\r\n")
    error = b'{"error": {"message": "maximum context length is 10, logprobs is not supported", "code": 4}}'
    raw = {
        name: (
            _http(body),
            _http(error, "400 Bad Request"),
            _http(b"busy", "429 Too Many", "Retry-After: 3"),
            _http(b"<html><script>x</script>Timed out</html>", "500 Broken"),
            b'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{"a":\r\n2\r\n1}\r\n0\r\n\r\n',
            b'HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: {"choices": []}\n\ndata: [DONE]\n\n',
        )
        for name, body in wholes.items()
    }
    words = tuple(f"HTTP/1.1 {one}".encode() for one in _STATUSES) + tuple(one.encode() for one in _HEADERS)
    return [
        Target("SPARQL rows", _as_body(_ask_sparql), (table,), mutations.json_documents, _deep, share=1.2),
        Target("SPARQL responses", _ask_sparql, raw["SPARQL"], heads, words=words, guided=False, share=0.8),
        Target("chat completions", _as_body(_ask_chat), (completion,), mutations.json_documents, _deep, share=1.2),
        Target("chat responses", _ask_chat, raw["chat"], heads, words=words, guided=False, share=0.8),
    ]
