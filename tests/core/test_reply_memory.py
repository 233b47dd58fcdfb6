"""Memory of commands that hostile servers answer: whatever they send, it stays below 300 MB above an idle process."""

from __future__ import annotations

import gzip
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from itertools import chain, repeat
from pathlib import Path

import pytest

MOST = 300
_MB = 1 << 20
ROWS = b'{"head":{"vars":["subject"]},"results":{"bindings":['
ROW = b'{"subject":{"type":"uri","value":"http://a/b"},"predicate":{"type":"uri","value":"http://a/p"}},'
CHAT = b'{"choices":[{"message":{"role":"assistant","content":"'
EMOJI = "\U0001f600".encode()
HEAD = b"HTTP/1.1 200 OK\r\n\r\n"

START = """
import sys
from pathlib import Path
def peak():
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM"))
address = sys.argv[1]
"""
END = """
idle = peak()
try:
    print(ask())
except MerkhetError as error:
    print(error)
print((peak() - idle) // 1000)
"""
SPARQL = """
from merkhet.core.errors import MerkhetError
from merkhet.knowledge.source_reader import ReadContext
from merkhet.knowledge.sources.sparql import read_endpoint
Path("own.rq").write_text("SELECT ?subject ?predicate ?object { ?subject ?predicate ?object }" + sys.argv[2])
options = {"endpoint": address, "retries": "0", "cache": "no", "count": "no", "page": "100", "timeout": "60"}
options["max-bytes"] = "50MB"
def ask():
    return len(list(read_endpoint(Path("own.rq"), ReadContext(options=options))))
"""
CONCURRENT = """
from merkhet.core.errors import MerkhetError
from merkhet.models.chat._chat_settings import read_settings
from merkhet.models.chat._endpoint import EndpointModel
from merkhet.models.chat._reply_cache import ReplyCache
from merkhet.models.chat.chat_messages import ChatRequest
model = EndpointModel("m", read_settings("m", address, {"tries": 2, "timeout": 60}), ReplyCache(Path("replies.sqlite")))
def ask():
    return len(list(model.reply([ChatRequest((("user", str(number)),), 3) for number in range(8)])))
"""


@contextmanager
def serving(pieces: Iterable[bytes]) -> Iterator[str]:
    """A server that sends the pieces to whoever asks; gives its address."""
    listening = socket.create_server(("127.0.0.1", 0))

    def respond(connection: socket.socket) -> None:
        with suppress(OSError), connection:
            connection.recv(65_536)
            for piece in chain([HEAD], pieces):
                connection.sendall(piece)

    def accept() -> None:
        with suppress(OSError):
            while True:
                threading.Thread(target=respond, args=(listening.accept()[0],), daemon=True).start()

    thread = threading.Thread(target=accept, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/"
    finally:
        listening.shutdown(socket.SHUT_RDWR)
        listening.close()
        thread.join()


def ask(client: str, address: str, folder: Path, *arguments: str) -> tuple[str, int]:
    """Ask in a new process; gives the outcome in words and the MB above those of the idle process."""
    result = subprocess.run(
        [sys.executable, "-c", START + client + END, address, *arguments],
        cwd=folder,
        env={**os.environ, "TMPDIR": str(folder), "OMP_NUM_THREADS": "1", "MALLOC_ARENA_MAX": "2"},
        capture_output=True,
        text=True,
        check=True,
    )
    outcome, memory = result.stdout.splitlines()
    return outcome, int(memory)


def many(unit: bytes, size: int) -> list[bytes]:
    return [unit * (_MB // len(unit))] * (size // _MB)


class Endless:
    """Pieces without end, from the first one for each connection."""

    def __init__(self, start: bytes, unit: bytes) -> None:
        self.start, self.unit = start, unit

    def __iter__(self) -> Iterator[bytes]:
        return chain([self.start], repeat(self.unit * (_MB // len(self.unit))))


CHAT_BOMBS = {
    "endless": (Endless(CHAT, b"x" * 1000), "larger than 64,000,000 bytes"),
    "blanks": (Endless(b"", b" "), "larger than 64,000,000 bytes"),
    "lists": ([b"[", *many(b"[],", 58 * _MB), b"0]"], "more than 160,000,000 bytes of memory"),
    "objects": ([CHAT, b'x"}}],"z":[', *many(b'{"a":[]},', 30 * _MB), b"0]}"], "more than 160,000,000 bytes of memory"),
    "emoji": ([CHAT, *many(b"x", 58 * _MB), EMOJI, b'"}}]}'], "more than 160,000,000 bytes of memory"),
    "surrogate": ([CHAT, *many(b"x", 40 * _MB), b'\\ud83d"}}]}'], "more than 160,000,000 bytes of memory"),
    "no completion": ([b'{"text":"', *many(b"x", 58 * _MB), b'"}'], "not a chat completion"),
    "cut off": ([CHAT, *many(b"x", 58 * _MB)], "not a chat completion"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", CHAT_BOMBS)
def test_eight_replies_at_once_that_are_refused_take_little_memory(name: str, tmp_path: Path) -> None:
    pieces, told = CHAT_BOMBS[name]
    with serving(pieces) as address:
        outcome, memory = ask(CONCURRENT, address, tmp_path)
    assert told in outcome
    assert memory < MOST
    assert {path.name.partition("-")[0] for path in tmp_path.iterdir()} == {"replies.sqlite"}


SPARQL_BOMBS = {
    "endless rows": (Endless(ROWS, ROW), "the rows take more than 150,000,000 bytes"),
    "endless row": (Endless(ROWS + b'{"a":{"value":"', EMOJI), "a row has more than 8,388,608 characters"),
    "lists": (Endless(ROWS + b'{"a":[', b"[],"), "a row takes more than 100,000,000 bytes"),
    "head": (Endless(b'{"head":"', b"x"), "not a table of rows"),
    "blanks": (Endless(ROWS, b"\n"), "not a table of rows"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", SPARQL_BOMBS)
def test_results_that_are_refused_take_little_memory(name: str, tmp_path: Path) -> None:
    pieces, told = SPARQL_BOMBS[name]
    with serving(pieces) as address:
        outcome, memory = ask(SPARQL, address, tmp_path, "")
    assert told in outcome
    assert memory < MOST
    assert [path.name for path in tmp_path.iterdir()] == ["own.rq"]


@pytest.mark.slow
@pytest.mark.parametrize("limit", ["", " LIMIT 9"])
def test_three_megabytes_of_gzip_take_little_memory(
    limit: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    packed = gzip.compress(ROWS) + gzip.compress(ROW * (8 * _MB // len(ROW))) * 100
    assert len(packed) < 3 * _MB
    monkeypatch.setattr(sys.modules[__name__], "HEAD", b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n")
    with serving([packed]) as address:
        outcome, memory = ask(SPARQL, address, tmp_path, limit)
        assert ("larger than 50,000,000 bytes" if limit else "the rows take more than 150,000,000 bytes") in outcome
        assert memory < MOST
        outcome, memory = ask(CONCURRENT, address, tmp_path)
    assert "larger than 64,000,000 bytes" in outcome
    assert memory < MOST


@pytest.mark.slow
def test_many_rows_that_are_accepted_are_not_in_memory_at_once(tmp_path: Path) -> None:
    row = ROW.replace(b"}},", b'},"object":{"type":"uri","value":"http://a/%d"}},')
    rows = [b"".join(row % number for number in range(start, start + 1000)) for start in range(0, 200_000, 1000)]
    with serving([ROWS, *rows, b'{}],"x":0}}']) as address:
        outcome, memory = ask(SPARQL, address, tmp_path, " LIMIT 200001")
    assert "row 200001: ?subject is empty" in outcome
    assert memory < 220
