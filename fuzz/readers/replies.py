"""Readers of what endpoints reply: a real server on loopback sends each input, whole or as the body of a response."""

from __future__ import annotations

import functools
import gzip
import itertools
import json
import os
import socket
import threading
import zlib
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

from hypothesis import strategies as st

from fuzz import mutations
from fuzz.targets import Place, Target
from merkhet.core.errors import MerkhetError
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
_QUERY = b"SELECT ?subject ?predicate ?object WHERE { ?subject ?predicate ?object } LIMIT 2\n"
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


_KEY = 'sk-q/7+Z"x\\9=Zm9vYmFy'
"""A key with characters that JSON and addresses escape."""
_KEY_VARIABLE = "MERKHET_FUZZ_KEY"
_ECHOES = {
    b"@KEY@": _KEY.encode(),
    b"@KEY-JSON@": json.dumps(_KEY)[1:-1].encode(),
    b"@KEY-URL@": quote(_KEY, safe="").encode(),
    b"@KEY-BEARER@": f"Bearer {_KEY}".encode(),
}
"""What the server replaces in its reply by the key that it was sent: a server may repeat it in any form."""


def _refuse_key(where: str, *texts: object) -> None:
    """The oracle of echoes: no form of the key is in what came of a reply."""
    for text in map(str, texts):
        for form in (_KEY, json.dumps(_KEY)[1:-1], quote(_KEY, safe="")):
            assert form not in text, f"the key is in {where}: {text[:500]}"


class _Sender:
    """A server that sends the same bytes to whoever asks, with the key that it was sent, and then hangs up."""

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
                        connection.sendall(_echoing(self.reply))
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


def _echoing(reply: bytes) -> bytes:
    """Put the key in, and correct the length of the body, unless it was wrong before."""
    head, gap, body = reply.partition(b"\r\n\r\n")
    length = f"Content-Length: {len(body)}".encode()
    for mark, form in _ECHOES.items():
        head, body = head.replace(mark, form), body.replace(mark, form)
    return head.replace(length, f"Content-Length: {len(body)}".encode()) + gap + body


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
    os.environ[_KEY_VARIABLE] = f"user:{_KEY}"
    options = {
        "key": _KEY_VARIABLE,
        "endpoint": f"http://127.0.0.1:{sender.port}/sparql",
        "retries": "0",
        "wait": "0",
        "cache": "no",
        "timeout": "3",
        "count": "no",
    }
    reading = ReadContext(options=options, skip_bad=next(_TURN) % 2 == 0)
    try:
        for chunk in read_endpoint(place.file("own.rq", _QUERY), reading):
            chunk.facts.validate(full=True)
            chunk.names.validate(full=True)
    except MerkhetError as error:
        _refuse_key("an error", error)
        raise
    finally:
        _refuse_key("the examples of bad rows", *reading.examples, *reading.left_out)


def _ask_chat(reply: bytes, place: Place) -> None:
    sender = _sender()
    sender.reply = reply
    os.environ[_KEY_VARIABLE] = _KEY
    given = {"tries": 1, "timeout": 3, "concurrency": 1, "key": _KEY_VARIABLE}
    settings = read_settings("m", f"http://127.0.0.1:{sender.port}/v1", given)
    kept = ReplyCache(place.out / "replies.sqlite")
    try:
        model = EndpointModel("m", settings, kept)
        for letters in (("A", "B"), ()):
            for _ in range(2):
                for answer in model.reply([ChatRequest((("user", "Which?"),), 3, letters)]):
                    _refuse_key("a reply", answer.text, answer.unusable, answer.letters)
        _refuse_key("the description of the model", model.describe())
    except MerkhetError as error:
        _refuse_key("an error", error)
        raise
    finally:
        kept.close()
        for file in place.out.iterdir():  # It is kept on purpose, and not half: the store is whole at any time.
            file.unlink()


def _as_body(ask: Any) -> Any:
    return lambda data, place: ask(_http(data), place)


def _echoes() -> list[bytes]:
    """Replies that repeat the key, in every place of a reply and in every form."""
    found = []
    for mark in (mark.decode() for mark in _ECHOES):
        error = json.dumps({"error": {"message": f"Incorrect API key provided: {mark}", "code": mark}}).encode()
        found += [_http(error, status) for status in _STATUSES]
        found += [_http(f"<html>{mark}</html>".encode(), f"{code} {mark}") for code in (200, 401, 429, 500)]
        found.append(_http(b"{}", "302 Moved", f"Location: http://127.0.0.1:1/{mark}"))
        found.append(_http(b"{}", "429 Slow", f"Retry-After: {mark}", f"X-{mark}: {mark}"))
        found.append(f"HTTP/1.1 {mark}\r\n\r\n".encode())
        found.append(f"{mark}\r\n".encode())
        message = {"role": "assistant", "content": f"Your key is {mark}.", "refusal": None}
        found.append(_http(json.dumps({"choices": [{"index": 0, "message": message}]}).encode()))
        found.append(_http(json.dumps({"choices": [{"message": {"content": "A", "refusal": mark}}]}).encode()))
        table = json.dumps(_TABLE)
        found.append(_http(table.replace("Paris", mark).encode()))
        found.append(_http(table.replace('"uri"', f'"{mark}"').encode()))
        found.append(_http(table.replace("1957-03-15T00:00:00Z", mark).encode()))
        found.append(_http(f"{table}\n{mark}".encode()))
    return found


def _odd_heads(body: bytes) -> list[bytes]:
    """Whole responses whose status, headers, lengths or compression are wrong or enormous."""
    good, line = b"HTTP/1.1 200 OK\r\n", b"Content-Type: application/json\r\n"
    chunk = b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body)
    chunked, packed = good + b"Transfer-Encoding: chunked\r\n", gzip.compress(body, 1, mtime=0)

    def sized(data: bytes, encoding: bytes = b"gzip") -> bytes:
        return good + b"Content-Encoding: %b\r\nContent-Length: %d\r\n\r\n%b" % (encoding, len(data), data)

    bomb = gzip.compress(b" " * 60_000_000, 9, mtime=0)
    return [
        b"",
        b"\r\n" * 1000,
        b"HTTP/1.1\r\n\r\n",
        b"HTTP/9.9 200 OK\r\n\r\n" + body,
        b"ICY 200 OK\r\n\r\n" + body,
        b"HTTP/1.1 200\r\n\r\n" + body,
        b"HTTP/1.1 2000 OK\r\n\r\n" + body,
        b"HTTP/1.1 \xc2\xb2\xc2\xb0\xc2\xb0 OK\r\n\r\n" + body,
        b"HTTP/1.1 200 " + b"x" * 200_000 + b"\r\n\r\n" + body,
        b"HTTP/1.1 100 Continue\r\n\r\n" * 5000 + good + b"\r\n" + body,
        b"HTTP/1.1 101 Switching\r\nUpgrade: x\r\n\r\n" + body,
        good + b"X: y\r\n" * 5000 + b"\r\n" + body,
        good + b"X: " + b"y" * 500_000 + b"\r\n\r\n" + body,
        good + b"no colon\r\n folded: x\r\n\tmore\r\nX\x00: \x00\r\n: y\r\n\r\n" + body,
        good + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\n" + body,
        good + b"Content-Length: 99999999999999999999\r\n\r\n" + body,
        good + b"Content-Length: %d\r\n\r\n%b" % (len(body) + 10, body),
        good + b"Content-Length: %d\r\n\r\n%b" % (len(body) - 10, body),
        good + b"Content-Length: +%d\r\n\r\n%b" % (len(body), body),
        good + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n" + chunk,
        good + b"Transfer-Encoding: gzip, chunked\r\n\r\n" + chunk,
        good + b"Transfer-Encoding: identity\r\n\r\n" + body,
        chunked + b"\r\n" + chunk,
        chunked + b"\r\n" + chunk[: len(chunk) // 2],
        chunked + b"\r\n" + chunk.replace(b"\r\n", b";a=" + b"x" * 90_000 + b"\r\n", 1),
        chunked + b"\r\n" + chunk[:-2] + b"X-Trailer: y\r\n" * 2000 + b"\r\n",
        *(chunked + b"\r\n%b\r\n%b\r\n0\r\n\r\n" % (size, body) for size in (b"-1", b"0x5", b"", b"zz", b"f" * 40)),
        chunked + b"\r\n" + b"1\r\n \r\n" * 20_000 + chunk,
        sized(packed),
        sized(packed[:-8]),
        sized(packed[:12]),
        sized(packed + packed),
        sized(packed + b"x" * 100),
        sized(gzip.compress(packed, 1, mtime=0), b"gzip, gzip"),
        sized(body),
        sized(body, b"br"),
        sized(zlib.compress(body), b"deflate"),
        sized(bomb),
        sized(gzip.compress(bomb, 1, mtime=0)),
        good + line + b"\r\n" + b" " * 20_000_000 + body,
        *(_http(body, f"{code} X", f"Location: {to}") for code in (301, 302, 307, 308) for to in _PLACES),
        *(_http(body, "503 X", f"Retry-After: {wait}") for wait in ("-1", "1e9", "nan", "9" * 500, "x", "")),
    ]


_PLACES = (
    "",
    "/",
    "?",
    "http://127.0.0.1:1/",
    "file:///etc/passwd",
    "//[",
    "javascript:1",
    "\x00",
    "http://a b/",
    "x" * 9000,
)


def _heads(seeds: Sequence[bytes]) -> Any:
    """Responses whose parts are drawn: status, headers, what is said of the body, and the body, maybe compressed."""
    bodies = [seed.partition(b"\r\n\r\n")[2] for seed in seeds]
    status = st.one_of(st.sampled_from(_STATUSES), st.sampled_from(("200 OK", "200 @KEY@", "401 @KEY-JSON@")))
    headers = st.lists(
        st.sampled_from([*_HEADERS, "X: @KEY@", "Location: /@KEY-URL@", "Retry-After: @KEY@"]), max_size=4
    )
    echoes = st.sampled_from([b"", b"", *_ECHOES])
    framing = st.sampled_from(["length", "length", "none", "short", "long", "chunks", "few chunks", "bad chunks"])
    packing = st.sampled_from(
        [bytes, bytes, bytes, _gzip, lambda data: _gzip(data)[:-9], lambda data: _gzip(_gzip(data))]
    )

    def made(status: str, headers: list[str], body: bytes, echo: bytes, framing: str, pack: Any) -> bytes:
        body = pack(echo + body if framing == "none" else body.replace(b"A", echo or b"A", 1))
        lines = [f"HTTP/1.1 {status}", *headers, *(["Content-Encoding: gzip"] if pack is not bytes else [])]
        sizes = {"length": len(body), "short": len(body) // 2, "long": len(body) + 5}
        if framing in sizes:
            lines.append(f"Content-Length: {sizes[framing]}")
        elif framing != "none":
            lines.append("Transfer-Encoding: chunked")
            step = 1 if framing == "few chunks" else 50
            size = {"bad chunks": b"%x\n"}.get(framing, b"%x\r\n")
            pieces = [body[at : at + step] for at in range(0, min(len(body), 3000), step)]
            body = b"".join(size % len(piece) + piece + b"\r\n" for piece in pieces) + b"0\r\n\r\n"
        return "\r\n".join(lines).encode() + b"\r\n\r\n" + body

    drawn = st.builds(made, status, headers, st.sampled_from(bodies), echoes, framing, packing)
    lines = mutations.lines_of([*(f"HTTP/1.1 {one}" for one in _STATUSES), *_HEADERS], "\r\n")
    return st.one_of(drawn, lines(seeds))


def _gzip(data: bytes) -> bytes:
    return gzip.compress(data, 1, mtime=0)


def _deep() -> list[bytes]:
    return [
        b'{"results":{"bindings":' + b"[" * 60_000,
        b'{"choices":' + b"[" * 60_000 + b"]" * 60_000 + b"}",
        b"9" * 6000,
        b'{"usage":{"total_tokens":' + b"9" * 6000 + b"}}",
        b'{"choices":[{"message":{"content":"\\ud800"}}]}',
    ]


def _head_bombs(body: bytes) -> list[bytes]:
    return [*_odd_heads(body), *_echoes()]


def targets() -> list[Target]:
    """The readers of what endpoints reply."""
    table, completion = json.dumps(_TABLE).encode(), json.dumps(_COMPLETION).encode()
    wholes = {"SPARQL": table, "chat": completion}
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
    words += tuple(_ECHOES)
    bombs = {name: functools.partial(_head_bombs, body) for name, body in wholes.items()}
    return [
        Target("SPARQL rows", _as_body(_ask_sparql), (table,), mutations.json_documents, _deep, share=1.2),
        Target("SPARQL responses", _ask_sparql, raw["SPARQL"], _heads, bombs["SPARQL"], words, guided=False),
        Target("chat completions", _as_body(_ask_chat), (completion,), mutations.json_documents, _deep, share=1.2),
        Target("chat responses", _ask_chat, raw["chat"], _heads, bombs["chat"], words, guided=False),
    ]
