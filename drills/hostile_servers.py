"""Malformed, dripping and endless responses, and decompression and JSON bombs, from servers that commands ask."""

from __future__ import annotations

import gzip
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from itertools import chain, repeat
from pathlib import Path
from random import Random

from drills.integrity import leftovers
from drills.jobs import References
from drills.stage import CommandResult, Stage, exit_problems

MARGIN = 20.0
"""Seconds for the start of a command and its work besides waiting."""
MEMORY = 300
"""MB of memory that a command may take in addition to what it takes if the connection is refused."""
_MB = 1 << 20
_ROWS = b'{"head":{"vars":["subject"]},"results":{"bindings":['
_ROW = b'{"subject":{"type":"uri","value":"http://a/b"},"predicate":{"type":"uri","value":"http://a/p"}},'
_CHAT = b'{"choices":[{"message":{"role":"assistant","content":"'

Response = Iterator[bytes]
"""What a server sends, piece by piece."""


@dataclass(frozen=True)
class Victim:
    """A command that asks a server."""

    name: str
    arguments: tuple[str, ...]
    path: str
    """The path of the server's address."""
    timeout: float
    attempts: int
    """The most requests that may wait for the timeout, one after another."""
    start: bytes
    """The beginning of a valid reply."""
    unit: bytes
    """What may be repeated after the beginning."""
    keeps: tuple[str, ...] = ()
    """What it leaves on purpose in its working directory, such as a run that can be resumed."""


VICTIMS = (
    Victim(
        "chat",
        (
            *("run", "quickstart", "--limit", "4", "--quiet", "--out", "run", "--set", "report=none"),
            *("--set", "chat.tries=2", "--set", "chat.timeout=2", "--set", "chat.concurrency=8"),
            *("--model", "chat:m@{address}"),
        ),
        "/v1",
        2.0,
        2,
        _CHAT,
        b"x" * 1000,
        ("run", "cache"),
    ),
    # Two page sizes, and two attempts at each if the connection breaks.
    Victim(
        "import",
        (
            *("knowledge", "import", "own.rq", "--quiet", "--into", "kb.duckdb", "--set", "endpoint={address}"),
            *("--set", "timeout=2", "--set", "retries=1", "--set", "wait=0.1", "--set", "count=no", "--set", "page=4"),
        ),
        "/sparql",
        2.0,
        4,
        _ROWS,
        _ROW,
        ("own.rq", "cache"),
    ),
)
_QUERY = "SELECT ?subject ?predicate ?object WHERE { ?subject ?predicate ?object }\n"


def drill(stage: Stage, references: References) -> None:
    """Let every server answer every command, in a variant drawn from the seed."""
    idle_memory = {victim.name: _measure_idle_memory(stage, victim) for victim in VICTIMS}
    with ThreadPoolExecutor(stage.jobs) as pool:
        for done in [
            pool.submit(_attack, stage, victim, name, idle_memory[victim.name])
            for name in ATTACKS
            for victim in VICTIMS
        ]:
            done.result()


def _measure_idle_memory(stage: Stage, victim: Victim) -> float:
    """Return the MB that a command takes if the connection is refused."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
    result, memory, problems = _run(stage, victim, port, stage.new_folder("refused"))
    if problems or "refused" not in result.last_line:
        raise SystemExit(f"{victim.name} does not say that the connection is refused: {result.output} {problems}")
    return memory


def _attack(stage: Stage, victim: Victim, name: str, idle_memory: float) -> None:
    if stage.late:
        return
    workdir = stage.new_folder("attacked")
    with _serving(lambda: ATTACKS[name](stage.draw("hostile_servers", victim.name, name), victim)) as port:
        result, memory, problems = _run(stage, victim, port, workdir)
    longest = victim.timeout * victim.attempts + MARGIN
    if result.seconds > longest:
        problems.append(f"it took {result.seconds:.1f} s, more than {longest:.0f} s")
    if memory - idle_memory > MEMORY:
        problems.append(f"it took {memory - idle_memory:.0f} MB more than with a refused connection")
    description = f"{name}: {result.last_line[:160]} ({result.seconds:.1f} s, {memory - idle_memory:+.0f} MB)"
    stage.record("hostile_servers", victim.name, description, problems, workdir)


def _run(stage: Stage, victim: Victim, port: int, workdir: Path) -> tuple[CommandResult, float, list[str]]:
    """Run a command that asks a port; return the result, the MB that it took at most, and what is wrong."""
    temporary = workdir / "temporary"
    temporary.mkdir()
    (workdir / "own.rq").write_text(_QUERY)
    address = f"http://127.0.0.1:{port}{victim.path}"
    arguments = [argument.replace("{address}", address) for argument in victim.arguments]
    environment = {"TMPDIR": str(temporary), "MERKHET_CACHE": str(workdir / "cache"), "no_proxy": "127.0.0.1"}
    running = stage.start(arguments, workdir, environment)
    memory, deadline = 0.0, time.monotonic() + victim.timeout * victim.attempts + 3 * MARGIN
    while (result := running.wait(0.01)) is None:
        memory = max(memory, _peak_memory(running.process.pid))
        if time.monotonic() > deadline:
            result = running.kill()
            break
    problems = exit_problems(result, 1, 2)
    lines = [line for line in result.output.splitlines() if line.startswith("merkhet: ")]
    if len(lines) != 1 or lines[0] != result.last_line:
        problems.append(f"the output does not end in one line that says what is wrong: {result.output[-300:]!r}")
    problems += leftovers(workdir)
    left = [path.name for path in (*temporary.iterdir(), *workdir.iterdir())]
    problems += [f"{name} is left over" for name in left if name not in (*victim.keeps, "own.rq", "temporary")]
    return result, memory, problems


def _peak_memory(pid: int) -> float:
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1000
    return 0.0


@contextmanager
def _serving(make_response: Callable[[], Response]) -> Iterator[int]:
    """Serve the pieces of a response to each connection, and yield the port."""
    listening = socket.create_server(("127.0.0.1", 0))
    ended = threading.Event()

    def respond(connection: socket.socket) -> None:
        with suppress(OSError), connection:
            _receive_request(connection)
            for piece in make_response():
                if ended.is_set():
                    return
                connection.sendall(piece)
            connection.shutdown(socket.SHUT_WR)
            # Closing at once could discard what the client has not read yet.
            connection.settimeout(MARGIN)
            connection.recv(1)

    def accept() -> None:
        with suppress(OSError):
            while True:
                connection, _ = listening.accept()
                threading.Thread(target=respond, args=(connection,), daemon=True).start()

    accepting = threading.Thread(target=accept, daemon=True)
    accepting.start()
    try:
        yield listening.getsockname()[1]
    finally:
        ended.set()
        with suppress(OSError):
            listening.shutdown(socket.SHUT_RDWR)
        listening.close()
        accepting.join()


def _receive_request(connection: socket.socket) -> None:
    with connection.makefile("rb") as file:
        length = 0
        while (line := file.readline().strip()) != b"":
            if line.lower().startswith(b"content-length:"):
                length = int(line.partition(b":")[2])
        file.read(length)


def _head(*fields: str, status: str = "HTTP/1.1 200 OK") -> bytes:
    return "\r\n".join([status, *fields, "", ""]).encode()


def _chunked(blocks: Response) -> Response:
    for block in blocks:
        yield b"%x\r\n" % len(block) + block + b"\r\n"
    yield b"0\r\n\r\n"


def _body(draw: Random, blocks: Response, *fields: str, status: str = "HTTP/1.1 200 OK") -> Response:
    """A response whose body ends with the connection, or is in chunks."""
    if draw.random() < 0.5:
        return chain([_head(*fields, status=status)], blocks)
    return chain([_head("Transfer-Encoding: chunked", *fields, status=status)], _chunked(blocks))


def _drip(start: bytes, drops: bytes, pause: float) -> Response:
    yield start
    for drop in repeat(drops):
        time.sleep(pause)
        yield drop


def _malformed(draw: Random, victim: Victim) -> Response:
    body = victim.start + victim.unit
    length = f"Content-Length: {len(body)}"
    chunked = _head("Transfer-Encoding: chunked")
    return iter(
        [
            draw.choice(
                [
                    b"",
                    b"\r\n" * draw.randint(1, 9),
                    draw.randbytes(draw.randint(1, 5000)),
                    body,
                    b"HTTP/0.9 200 OK\r\n\r\n" + body,
                    _head(length, status=f"HTTP/{draw.choice(['9.9', '-1', 'x', '1.1.1'])} 200 OK") + body,
                    _head(length, status=f"HTTP/1.1 {draw.choice(['-200', '2e2', '99', '20000', 'OK'])}") + body,
                    _head(length, status="HTTP/1.1 " + "2" * 100_000) + body,
                    _head(*[f"X-{number}: y" for number in range(5000)]),
                    _head("X: " + "y" * 200_000),
                    _head(f"Content-Length: {draw.choice(['-1', '5, 6', '1e3', '٣', '0x10', '9' * 5000])}") + body,
                    _head(length, "Content-Length: 3") + body,
                    _head(f"Content-Length: {len(body) + draw.randint(1, 10**18)}") + body,
                    _head(f"Content-Length: {draw.randint(0, 9)}") + body,
                    *(
                        chunked + size + b"\r\n" + body
                        for size in (b"-1", b"-5", b"ffffffffffffffff", b"5;" + b"x" * 70_000, b"", b"zz", b"1_0")
                    ),
                    _head("Content-Encoding: br") + body,
                    _head("Content-Encoding: gzip") + body,
                    _head("Content-Encoding: gzip") + gzip.compress(body)[: draw.randint(1, 20)],
                    _head("Content-Encoding: gzip") + gzip.compress(body) + draw.randbytes(20),
                    _head("Content-Encoding: gzip, gzip") + gzip.compress(gzip.compress(body)),
                ]
            )
        ]
    )


def _redirects(draw: Random, victim: Victim) -> Response:
    status = draw.choice(["301 Moved", "302 Found", "307 Moved", "308 Moved"])
    location = draw.choice(
        ["/again", "ftp://h/x", "//[", "http://127.0.0.1:1/x", "?", "\x7f\xff" * 500, "javascript:x"]
    )
    return iter([_head(f"Location: {location}", "Content-Length: 0", status=f"HTTP/1.1 {status}")])


def _dripping_head(draw: Random, victim: Victim) -> Response:
    start, drop = draw.choice(
        [
            (b"", b"H"),
            (b"HTTP/1.1 200 OK\r\nX: ", b"x"),
            (b"", b"HTTP/1.1 100 Continue\r\nX: y\r\n\r\n"),
            (b"HTTP/1.1 200 OK\r\n", b"X: y\r\n"),
        ]
    )
    # So slow that a hundred header lines take longer than the timeout.
    return _drip(start, drop, draw.uniform(0.1, 0.9))


def _dripping_body(draw: Random, victim: Victim) -> Response:
    chunked = _head("Transfer-Encoding: chunked")
    start, drop = draw.choice(
        [
            (_head("Content-Length: 99999") + victim.start, b" "),
            (_head() + victim.start, b"x"),
            (chunked, b"1\r\n \r\n"),
            (chunked, b"0"),
            (chunked + b"0\r\n", b"X: y\r\n"),
            (_head("Content-Encoding: gzip"), gzip.compress(b"")),
            (_head(status="HTTP/1.1 500 Broken"), b"x"),
        ]
    )
    return _drip(start, drop, draw.uniform(0.05, 0.9))


def _endless(draw: Random, victim: Victim) -> Response:
    unit = draw.choice([victim.unit, b" ", b"\n", b"x", b"[],", b'{"a":[', b'"', b"\\"])
    size = draw.choice([1000, 70_000, _MB])
    return _body(draw, chain([victim.start], repeat(unit * (size // len(unit)))))


def _endless_error(draw: Random, victim: Victim) -> Response:
    unit = draw.choice([b"x", b"<script>", b"\n at x(", b"time ", b"[" * 99, b"java."])
    status = draw.choice(["400 Bad", "403 No", "500 Broken", "503 Busy", "302 Found"])
    return _body(draw, repeat(unit * 10_000), status=f"HTTP/1.1 {status}")


def _endless_framing(draw: Random, victim: Victim) -> Response:
    chunked = _head("Transfer-Encoding: chunked")
    start, unit = draw.choice(
        [
            (b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
            (chunked + b"0\r\n", b"X: y\r\n"),
            (chunked, b"1;" + b"x" * 60_000 + b"\r\n \r\n"),
            (chunked + b"-1\r\n", b"x"),
            (_head("Content-Encoding: gzip"), gzip.compress(b"")),
        ]
    )
    return chain([start], repeat(unit * (_MB // len(unit) + 1)))


@cache
def _pack(start: bytes, unit: bytes, size: int, members: int) -> bytes:
    block = unit * (_MB // len(unit))
    member = gzip.compress(start + block * (size // members), 9)
    return member + gzip.compress(block * (size // members), 9) * (members - 1)


def _gzip_bomb(draw: Random, victim: Victim) -> Response:
    unit = draw.choice([victim.unit, b"\0", b" ", b"[],"])
    packed = _pack(victim.start, unit, draw.choice([100, 400]), draw.choice([1, 4]))
    return _body(draw, repeat(packed, draw.choice([1, 8])), "Content-Encoding: gzip")


def _json_bomb(draw: Random, victim: Victim) -> Response:
    emoji = "\U0001f600".encode()
    size = draw.choice([20 * _MB, 60 * _MB])
    start, unit, end = draw.choice(
        [
            (b"[", b"[],", b"0]"),
            (b"[", b'{"a":1},', b"0]"),
            (b"[", b'"ab",', b"0]"),
            (b"", b"[", b""),
            (b"", b'{"a":', b""),
            (victim.start, b"[[[[[", b""),
            (victim.start + b'{"subject":{"value":"', b"x", emoji + b'"}}]}}]}}'),
            (victim.start + b'{"subject":{"value":"', b"\\ud83d\\ude00", b'"}}]}}]}}'),
            (victim.start + b'{"subject":[', b"{},", b"0]}]}}"),
        ]
    )
    return _body(draw, iter([start, *[unit * (_MB // len(unit))] * (size // _MB), end]))


ATTACKS: dict[str, Callable[[Random, Victim], Response]] = {
    **{f"malformed {number}": _malformed for number in range(1, 13)},
    **{f"redirect {number}": _redirects for number in range(1, 3)},
    **{f"dripping head {number}": _dripping_head for number in range(1, 3)},
    **{f"dripping body {number}": _dripping_body for number in range(1, 4)},
    **{f"endless {number}": _endless for number in range(1, 5)},
    **{f"endless error {number}": _endless_error for number in range(1, 3)},
    **{f"endless framing {number}": _endless_framing for number in range(1, 3)},
    **{f"gzip bomb {number}": _gzip_bomb for number in range(1, 4)},
    **{f"JSON bomb {number}": _json_bomb for number in range(1, 5)},
}
