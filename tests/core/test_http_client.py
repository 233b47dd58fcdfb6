"""The HTTP client against a real server on loopback that sends whatever bytes a test wants."""

from __future__ import annotations

import contextlib
import gzip
import http.client
import random
import socket
import ssl
import subprocess
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from email.utils import formatdate
from pathlib import Path
from typing import Any

import pytest

from merkhet.core._http_address import Request, parse_target, redirect
from merkhet.core.credentials import basic_authorization
from merkhet.core.http_client import (
    BrokenResponseError,
    CertificateError,
    ConnectError,
    HttpClient,
    HttpError,
    Limits,
    ResponseTimeoutError,
    ResponseTooLargeError,
)
from merkhet.core.http_response import Response
from merkhet.core.redaction import redact_message, register_secret

KEY = 'sk-Zq8/not+to be"seen'
MEBIBYTE = 1 << 20
PATIENT = Limits(timeout=60.0, max_bytes=MEBIBYTE)


@dataclass
class Received:
    """A request as the server has read it."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    connection: int
    """The number of its connection."""


Respond = Callable[[Received, socket.socket], bool | None]


class Server:
    """Reads requests; ``respond`` sends the bytes of the response and returns True to keep the connection open."""

    def __init__(self, respond: Respond, context: ssl.SSLContext | None = None) -> None:
        self.respond, self.context = respond, context
        self.requests: list[Received] = []
        self.connections = 0
        self.listening = socket.create_server(("127.0.0.1", 0))
        self.address = f"http://127.0.0.1:{self.listening.getsockname()[1]}/path"
        self.accepting = threading.Thread(target=self._accept, daemon=True)
        self.accepting.start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self.listening.accept()
                self.connections += 1
                threading.Thread(target=self._talk, args=(connection, self.connections), daemon=True).start()

    def _talk(self, connection: socket.socket, number: int) -> None:
        # The first bytes of a TLS connection are no request.
        with contextlib.suppress(OSError, ValueError), connection:
            if self.context:
                connection = self.context.wrap_socket(connection, server_side=True)
            with connection, connection.makefile("rb") as file:
                while request := self._read(file, number):
                    self.requests.append(request)
                    if not self.respond(request, connection):
                        return

    @staticmethod
    def _read(file: Any, number: int) -> Received | None:
        line = file.readline().decode()
        if not line:
            return None
        headers = {name.lower(): value for name, value in http.client.parse_headers(file).items()}
        method, path, _ = line.split()
        return Received(method, path, headers, file.read(int(headers.get("content-length", 0))), number)

    def close(self) -> None:
        # Closing alone does not end a thread that waits in accept.
        with contextlib.suppress(OSError):
            self.listening.shutdown(socket.SHUT_RDWR)
        self.listening.close()
        self.accepting.join()


def http_bytes(body: bytes, status: str = "200 OK", **headers: str) -> bytes:
    lines = [f"{name.replace('_', '-')}: {value}" for name, value in {"Content_Length": len(body), **headers}.items()]
    return "\r\n".join([f"HTTP/1.1 {status}", *lines, "", ""]).encode() + body


def chunked(*chunks: bytes) -> bytes:
    return b"".join(f"{len(chunk):x}\r\n".encode() + chunk + b"\r\n" for chunk in (*chunks, b""))


def sending(data: bytes, keep: bool = False) -> Respond:
    def respond(request: Received, connection: socket.socket) -> bool:
        connection.sendall(data)
        return keep

    return respond


def wait_until_gone(connection: socket.socket) -> None:
    with contextlib.suppress(OSError):
        connection.recv(1)


@contextlib.contextmanager
def serving(respond: Respond, **options: Any) -> Iterator[Server]:
    server = Server(respond, **options)
    try:
        yield server
    finally:
        server.close()


@contextlib.contextmanager
def client_of(server: Server | str, limits: Limits = PATIENT, **options: Any) -> Iterator[HttpClient]:
    client = HttpClient(server if isinstance(server, str) else server.address, limits, **options)
    try:
        yield client
    finally:
        client.close()


def post_to(respond: Respond, limits: Limits = PATIENT, **options: Any) -> Response:
    with serving(respond) as server, client_of(server, limits, **options) as client:
        return client.post(b"{}", "application/json")


def test_a_request_arrives_as_it_was_sent_and_its_response_comes_back() -> None:
    with (
        serving(sending(http_bytes("grün".encode(), "201 Made", X_Odd="1"))) as server,
        client_of(f"{server.address}/a b?q=ü&r=%20", headers={"Accept": "text/x"}) as client,
    ):
        response = client.post(b"\0body", "text/odd")
    assert (response.status, response.reason, response.text, response.is_success) == (201, "Made", "grün", True)
    assert response.headers["x-odd"] == "1"
    (request,) = server.requests
    assert (request.method, request.path, request.body) == ("POST", "/path/a%20b?q=%C3%BC&r=%20", b"\0body")
    assert (request.headers["content-type"], request.headers["accept"]) == ("text/odd", "text/x")
    assert request.headers["user-agent"].startswith("merkhet/")


def test_a_connection_is_used_again_for_bodies_of_every_kind() -> None:
    bodies = [
        http_bytes(b"x" * 200_000),
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + chunked(b"ab", b"c" * 100_000),
        http_bytes(gzip.compress(b"abc"), Content_Encoding="gzip"),
        http_bytes(b"", "204 None"),
        http_bytes(b"wrong", "500 Broken"),
    ]
    replies = iter(bodies * 3)
    with serving(lambda request, connection: not connection.sendall(next(replies))) as server:
        with client_of(server) as client:
            responses = [client.post(b"", "text/x") for _ in range(15)]
        assert [len(response.body) for response in responses] == [200_000, 100_002, 3, 0, 5] * 3
        assert {request.connection for request in server.requests} == {1}


def test_threads_have_no_more_connections_than_requests_in_flight() -> None:
    together = threading.Barrier(4)

    def respond(request: Received, connection: socket.socket) -> bool:
        together.wait(60)
        connection.sendall(http_bytes(request.body))
        return True

    with serving(respond) as server, client_of(server) as client, ThreadPoolExecutor(4) as pool:
        bodies = [str(number).encode() for number in range(40)]
        assert [response.body for response in pool.map(lambda body: client.post(body, "text/x"), bodies)] == bodies
        assert server.connections == 4


@pytest.mark.parametrize("announced", [True, False])
def test_a_connection_that_the_server_has_closed_is_opened_anew_and_nothing_is_sent_twice(announced: bool) -> None:
    closed = threading.Semaphore(0)

    def respond(request: Received, connection: socket.socket) -> bool:
        connection.sendall(http_bytes(b"x", **({"Connection": "close"} if announced else {})))
        connection.shutdown(socket.SHUT_RDWR)
        closed.release()
        return False

    with serving(respond) as server, client_of(server) as client:
        for _ in range(5):
            assert client.post(b"", "text/x").body == b"x"
            assert closed.acquire(timeout=60)
        assert len(server.requests) == server.connections == 5


SHORT = Limits(timeout=0.4, max_bytes=MEBIBYTE)


def dripping(start: bytes, drop: bytes) -> Respond:
    def respond(request: Received, connection: socket.socket) -> None:
        connection.sendall(start)
        while True:  # Until the client hangs up.
            connection.sendall(drop)
            time.sleep(0.02)

    return respond


@pytest.mark.parametrize(
    "respond",
    [
        dripping(b"", b"H"),
        dripping(b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 100 Continue\r\n\r\n"),
        dripping(b"HTTP/1.1 200 OK\r\nX: ", b"x"),
        dripping(b"HTTP/1.1 200 OK\r\nContent-Length: 99999\r\n\r\n", b"x"),
        dripping(b"HTTP/1.1 200 OK\r\n\r\n", b"x"),
        dripping(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"1\r\nx\r\n"),
        dripping(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n", b"X: y\r\n"),
    ],
    ids=["status", "continue", "header", "length", "end", "chunks", "trailer"],
)
def test_a_response_that_drips_ends_at_the_deadline(respond: Respond) -> None:
    with pytest.raises(ResponseTimeoutError, match="no reply in time"):
        post_to(respond, SHORT)


def test_a_silent_server_ends_at_the_timeout() -> None:
    with pytest.raises(ResponseTimeoutError):
        post_to(lambda request, connection: wait_until_gone(connection), Limits(0.2, MEBIBYTE))


@contextlib.contextmanager
def raw_server(talk: Callable[[socket.socket], None]) -> Iterator[int]:
    """A server that lets ``talk`` do with its first connection what it wants; gives its port."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def accept() -> None:
            connection, _ = listening.accept()
            with contextlib.suppress(OSError), connection:
                connection.recv(65_536)
                talk(connection)

        thread = threading.Thread(target=accept, daemon=True)
        thread.start()
        yield listening.getsockname()[1]
        thread.join()


def drip(start: bytes, drop: bytes) -> Callable[[socket.socket], None]:
    return lambda connection: dripping(start, drop)(Received("", "", {}, b"", 0), connection)


def test_a_tls_handshake_that_drips_ends_at_the_deadline() -> None:
    with (
        raw_server(drip(b"\x16\x03\x03\x40\x00\x02\x00\x3f\xfc", b"x")) as port,
        client_of(f"https://127.0.0.1:{port}/", SHORT) as client,
        pytest.raises(ConnectError, match="no reply in time"),
    ):
        client.post(b"", "text/x")


@pytest.mark.parametrize(("start", "drop"), [(b"HTTP/1.1 200", b" "), (b"", b"HTTP/1.1 100 Continue\r\n\r\n")])
def test_a_proxy_that_drips_ends_at_the_deadline(monkeypatch: pytest.MonkeyPatch, start: bytes, drop: bytes) -> None:
    monkeypatch.delenv("no_proxy", raising=False)
    with raw_server(drip(start, drop)) as port:
        monkeypatch.setenv("https_proxy", f"http://127.0.0.1:{port}")
        with client_of("https://far.invalid/", SHORT) as client, pytest.raises(ConnectError, match="no reply in time"):
            client.post(b"", "text/x")


def test_a_tunnel_through_a_proxy_carries_tls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    context = tls_context(tmp_path)
    requests = []

    def talk(connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 200 Connection established\r\nX: y\r\n\r\n")
        with context.wrap_socket(connection, server_side=True) as secure:
            requests.append(secure.recv(65_536))
            secure.sendall(http_bytes(b"by tunnel"))

    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "certificate.pem"))
    with raw_server(talk) as port:
        monkeypatch.setenv("https_proxy", f"http://127.0.0.1:{port}")
        # The certificate is for this address, which is not that of the proxy's own host name.
        monkeypatch.setattr("merkhet.core._http_address._LOCAL_HOSTS", ())
        with client_of("https://127.0.0.1:9/a") as client:
            assert client.post(b"", "text/x").text == "by tunnel"
    assert requests[0].startswith(b"POST /a HTTP/1.1\r\nHost: 127.0.0.1:9\r\n")


def test_the_addresses_of_a_host_share_the_time_to_connect(monkeypatch: pytest.MonkeyPatch) -> None:
    with contextlib.ExitStack() as stack:
        # Its queue is full, so it neither accepts nor refuses.
        silent = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
        for _ in range(3):
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(silent.getsockname())
        server = stack.enter_context(serving(sending(http_bytes(b"last"))))
        real = [
            (socket.AF_INET, socket.SOCK_STREAM, 0, "", sock.getsockname())
            for sock in (silent, silent, silent, server.listening)
        ]
        monkeypatch.setattr(socket, "getaddrinfo", lambda *arguments, **options: real)
        with client_of("http://many.invalid/", Limits(1.2, MEBIBYTE)) as client:
            assert client.post(b"", "text/x").text == "last"
        del real[-1]
        with client_of("http://many.invalid/", SHORT) as client, pytest.raises(ConnectError, match="no reply in time"):
            client.post(b"", "text/x")


def test_a_look_up_of_a_host_that_hangs_ends_at_the_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    ended = threading.Event()

    def hang(*arguments: Any, **options: Any) -> None:
        ended.wait(5)
        raise socket.gaierror(socket.EAI_AGAIN, "later")

    monkeypatch.setattr(socket, "getaddrinfo", hang)
    with client_of("http://slow.invalid/", SHORT) as client, pytest.raises(ConnectError, match="no reply in time"):
        client.post(b"", "text/x")
    ended.set()


def test_the_blocks_of_a_body_come_while_it_arrives() -> None:
    received = threading.Event()

    def respond(request: Received, connection: socket.socket) -> bool:
        connection.sendall(http_bytes(b"a" * 65_536, Content_Length="65537"))
        received.wait(60)
        connection.sendall(b"b")
        return True

    with serving(respond) as server, client_of(server) as client:
        for _ in range(2):
            received.clear()
            with client.stream(b"", "text/x") as (response, blocks):
                assert (response.status, response.body, next(blocks)) == (200, b"", b"a" * 65_536)
                received.set()
                assert list(blocks) == [b"b"]
        assert server.connections == 1


def test_an_error_of_the_reader_is_its_own_and_ends_the_connection() -> None:
    with serving(sending(http_bytes(b"x" * 200_000), keep=True)) as server, client_of(server) as client:
        for _ in range(2):
            with pytest.raises(ValueError, match="mine"), client.stream(b"", "text/x") as (_, blocks):
                next(blocks)
                raise ValueError("mine")
        assert server.connections == 2


def test_redirects_share_one_deadline() -> None:
    def respond(request: Received, connection: socket.socket) -> bool:
        time.sleep(0.05)
        connection.sendall(http_bytes(b"", "307 Moved", Location="/again"))
        return True

    with pytest.raises(ResponseTimeoutError):
        post_to(respond, SHORT, max_redirects=1000)


@pytest.mark.parametrize(
    "data",
    [
        http_bytes(b"", Content_Length=str(MEBIBYTE + 1)),
        http_bytes(b"", Content_Length="9" * 21),
        b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * (MEBIBYTE + 1),
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + chunked(*[b"x" * 50_000] * 22),
        http_bytes(gzip.compress(bytes(500 * MEBIBYTE), 1), Content_Encoding="gzip"),
        http_bytes(gzip.compress(bytes(MEBIBYTE)) + gzip.compress(b"x"), Content_Encoding="gzip"),
    ],
    ids=["length", "no machine", "end", "chunks", "bomb", "members"],
)
def test_a_response_beyond_the_byte_limit_is_refused(data: bytes) -> None:
    with pytest.raises(ResponseTooLargeError, match="larger than 1,048,576 bytes"):
        post_to(sending(data), PATIENT)


def test_a_response_at_the_byte_limit_is_read() -> None:
    body = random.Random(0).randbytes(MEBIBYTE - 1000)
    assert post_to(sending(http_bytes(body))).body == body
    assert post_to(sending(http_bytes(gzip.compress(body), Content_Encoding="gzip"))).body == body


def odd_bodies() -> list[bytes]:
    source = random.Random(1)
    sizes = [0, 1, 65_535, 65_536, 65_537, 131_072, 300_000]
    texts = [bytes(size) for size in sizes] + [source.randbytes(size) for size in sizes]
    return [*texts, (b"abc" * 50_000) + source.randbytes(70_000)]


def test_compressed_bodies_are_those_of_the_gzip_module_however_they_are_cut() -> None:
    source = random.Random(2)
    for body in odd_bodies():
        for data in (gzip.compress(body), gzip.compress(body[:9]) + b"\0\0" + gzip.compress(body[9:]) + b"\0" * 9):
            cuts = sorted(source.choices(range(len(data) + 1), k=5))
            chunks = [data[a:b] for a, b in zip([0, *cuts], [*cuts, len(data)], strict=True) if a < b]
            head = b"HTTP/1.1 200 OK\r\nContent-Encoding: GZIP\r\nTransfer-Encoding: chunked\r\n\r\n"
            assert post_to(sending(head + chunked(*chunks))).body == gzip.decompress(data) == body


PACKED = gzip.compress(b"a reply that is long enough to be cut" * 99)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "dropped"),
        (b"SMTP ready\r\n", "BadStatusLine"),
        (b"HTTP/1.1 " + b"x" * 70_000, "LineTooLong"),
        (b"HTTP/1.1 200 OK\r\n" + b"A: b\r\n" * 200 + b"\r\n", "got more than 100 headers"),
        (http_bytes(b"half", Content_Length="8"), "cut off"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab", "cut off"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffffff\r\nx\r\n", "cut off"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nx\r\n", "cut off"),
        *(
            (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + size + b"\r\nx", message)
            for size, message in ((b"-1", "a chunk of negative size"), (b"-5", "ValueError: read length must"))
        ),
        *(
            (http_bytes(b"x", Content_Length=length), "the Content-Length of the reply is not one number")
            for length in ("-1", "1, 1", "1e3", "x", "+1")
        ),
        (http_bytes(b"xy", Content_Length="2\r\nContent-Length: 1"), "not one number"),
        (http_bytes(PACKED[:-9], Content_Encoding="gzip"), "cut off"),
        (http_bytes(PACKED[:-1], Content_Encoding="gzip"), "cut off"),
        (http_bytes(PACKED[:-6] + b"abcdef", Content_Encoding="gzip"), "incorrect data check"),
        (http_bytes(b"not packed", Content_Encoding="gzip"), "incorrect header check"),
        (http_bytes(PACKED + b"junk", Content_Encoding="gzip"), "incorrect header check"),
        (http_bytes(zlib.compress(b"x"), Content_Encoding="br"), "compressed by 'br', which was not asked for"),
    ],
)
def test_a_broken_response_is_no_response(data: bytes, message: str) -> None:
    with pytest.raises(BrokenResponseError, match=message) as caught:
        post_to(sending(data))
    assert len(str(caught.value)) <= 200


@pytest.mark.parametrize(
    ("data", "body"),
    [
        (http_bytes(b"half", "500 Broken", Content_Length="8"), b"half"),
        (http_bytes(PACKED[:-8], "500 Broken", Content_Encoding="gzip"), gzip.decompress(PACKED)),
        (http_bytes(b"x", "500 Broken", Content_Encoding="br"), b""),
        (http_bytes(b"x" * 300_000, "500 Broken"), b"x" * (1 << 17)),
    ],
)
def test_the_status_of_an_error_counts_even_if_its_body_is_broken_or_long(data: bytes, body: bytes) -> None:
    response = post_to(sending(data))
    assert (response.status, response.reason, response.is_success) == (500, "Broken", False)
    assert response.body == body


def test_an_error_whose_body_never_ends_is_an_error() -> None:
    assert post_to(dripping(b"HTTP/1.1 503 Busy\r\n\r\n", b"x"), SHORT).status == 503


def test_nobody_is_there() -> None:
    with serving(sending(b"")) as server:
        pass
    with client_of(server) as client, pytest.raises(ConnectError, match="the connection was refused") as caught:
        client.post(b"", "text/x")
    assert caught.value.detail == "Connection refused"
    for host in ("no-such-host.invalid", "a" * 70 + ".invalid"):
        with client_of(f"http://{host}/") as client, pytest.raises(ConnectError, match="there is no such host"):
            client.post(b"", "text/x")


@pytest.mark.parametrize(
    "address", ["ftp://h/", "h:80", "http://", "http://[", "http://h:port/", "http://h:99999/", ""]
)
def test_what_is_no_address_is_refused(address: str) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        HttpClient(address, PATIENT)


def tls_context(folder: Path) -> ssl.SSLContext:
    """A server's context with a self-signed certificate, which is in the folder."""
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=localhost", "-days", "2"]
    names = ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", "key.pem", "-out", "certificate.pem"]
    try:
        subprocess.run([*command, *names], check=True, capture_output=True, cwd=folder)
    except FileNotFoundError:
        pytest.skip("openssl is not installed")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "certificate.pem", folder / "key.pem")
    return context


def test_a_certificate_that_nobody_trusts_is_told_apart(tmp_path: Path) -> None:
    with serving(sending(http_bytes(b"x")), context=tls_context(tmp_path)) as server:
        address = server.address.replace("http:", "https:")
        with (
            client_of(address) as client,
            pytest.raises(CertificateError, match=r"its certificate is not trusted .*self.signed"),
        ):
            client.post(b"", "text/x")
        # A server that speaks no TLS is not reached either.
        server.context = None
        with client_of(address) as client, pytest.raises(ConnectError):
            client.post(b"", "text/x")
        assert server.requests == []


def test_tls_connections_are_used_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(sending(http_bytes(b"x"), keep=True), context=tls_context(tmp_path)) as server:
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "certificate.pem"))
        with client_of(server.address.replace("http:", "https:")) as client:
            assert [client.post(b"", "text/x").body for _ in range(5)] == [b"x"] * 5
        assert server.connections == 1


def elsewhere(status: int, location: str) -> Respond:
    def respond(request: Received, connection: socket.socket) -> bool:
        moved = http_bytes(b"", f"{status} Moved", Location=location)
        connection.sendall(moved if request.path == "/path" else http_bytes(b"there"))
        return True

    return respond


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_repeats_the_request(status: int) -> None:
    with (
        serving(elsewhere(status, "there?a=b c")) as server,
        client_of(server, max_redirects=10, credentials={"Authorization": f"Bearer {KEY}"}) as client,
    ):
        assert client.post(b"body", "text/x").text == "there"
    first, second = server.requests
    assert second.path == "/there?a=b%20c"
    assert first.headers["authorization"] == second.headers["authorization"] == f"Bearer {KEY}"
    expected = ("GET", b"", None) if status == 303 else ("POST", b"body", "text/x")
    assert (second.method, second.body, second.headers.get("content-type")) == expected


@pytest.mark.parametrize(
    "location", ["ftp://h/x", "file:///etc/passwd", "http://me:pw@h/", "//[", "http://h:port/", "javascript:x", ""]
)
def test_a_redirect_elsewhere_than_to_http_is_not_followed(location: str) -> None:
    with serving(elsewhere(302, location)) as server, client_of(server, max_redirects=10) as client:
        assert client.post(b"", "text/x").status == 302
        assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("location", "shown"),
    [
        ("ftp://me:hunter2@h/x?token=abc", "ftp://h/x?..."),
        ("//[", "a malformed address"),
        (f"/{KEY}/a", "/(the key)/a"),
        ("http://h:port/", "http://h:port/"),
        ("https://h/" + "x" * 9999, "https://h/xxx"),
    ],
)
def test_a_redirect_that_is_not_followed_names_its_target_without_secrets(location: str, shown: str) -> None:
    with serving(elsewhere(302, location)) as server, client_of(server, credentials={"api-key": KEY}) as client:
        response = client.post(b"", "text/x")
    assert response.redirect_note.startswith(" (redirected to ") and shown in response.redirect_note
    assert len(response.redirect_note) < 250
    assert not [secret for secret in (*SECRETS, "abc") if secret in response.redirect_note]


def test_whatever_fails_after_a_redirect_names_where_it_led() -> None:
    def respond(request: Received, connection: socket.socket) -> bool:
        location = {"/path": "/silent?token=abc", "/other": gone}.get(request.path)
        if location:
            connection.sendall(http_bytes(b"", "307 Moved", Location=location))
            return True  # A connection that closes unannounced could be reset by the next request.
        wait_until_gone(connection)
        return False

    with socket.create_server(("127.0.0.1", 0)) as listening:
        gone = f"http://127.0.0.1:{listening.getsockname()[1]}/gone"
    with serving(respond) as server:
        silent = server.address.replace("/path", "/silent")
        with client_of(server, SHORT, max_redirects=1) as client, pytest.raises(ResponseTimeoutError) as late:
            client.post(b"", "text/x")
        assert str(late.value) == f"no reply in time (redirected to {silent}?...)"
        with (
            client_of(server.address.replace("path", "other"), max_redirects=1) as client,
            pytest.raises(ConnectError) as refused,
        ):
            client.post(b"", "text/x")
        assert str(refused.value) == f"the connection was refused (redirected to {gone})"
        assert refused.value.detail == f"Connection refused (redirected to {gone})"
    with serving(elsewhere(307, "/there")) as server, client_of(server, max_redirects=1) as client:
        assert client.post(b"", "text/x").redirect_note == f" (redirected to {server.address[:-5]}/there)"
    assert post_to(sending(http_bytes(b"x"))).redirect_note == ""


def test_redirects_are_followed_no_more_often_than_allowed() -> None:
    with serving(sending(http_bytes(b"", "307 Moved", Location="/path"), keep=True)) as server:
        for allowed in (0, 3):
            server.requests.clear()
            with client_of(server, max_redirects=allowed) as client:
                assert client.post(b"", "text/x").status == 307
            assert len(server.requests) == allowed + 1


def test_credentials_stay_with_their_host() -> None:
    with serving(sending(http_bytes(b"there"))) as other, serving(elsewhere(307, other.address)) as server:
        credentials = {"api-key": KEY, "Authorization": basic_authorization("me", "secret")}
        with client_of(server, max_redirects=10, credentials=credentials) as client:
            assert client.post(b"", "text/x").text == "there"
        assert server.requests[0].headers["api-key"] == KEY
        assert server.requests[0].headers["authorization"] == "Basic bWU6c2VjcmV0"
        assert not any({"api-key", "authorization"} & set(request.headers) for request in other.requests)


@pytest.mark.parametrize(
    ("old", "new", "kept"),
    [
        ("https://h/a", "https://h/b", True),
        ("http://h/a", "https://h/b", True),
        ("https://h/a", "http://h/b", False),
        ("https://h/a", "https://h:8443/b", False),
        ("https://h/a", "https://g.h/b", False),
    ],
)
def test_credentials_are_not_sent_in_the_clear_after_https(old: str, new: str, kept: bool) -> None:
    request = Request("POST", parse_target(old), b"", {}, {"Authorization": "x"})
    redirected = redirect(request, Response(307, headers={"location": new}))
    assert redirected is not None
    assert bool(redirected.credentials) == kept


def test_a_proxy_of_the_environment_is_used_but_for_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    with (
        serving(sending(http_bytes(b"by proxy"), keep=True)) as proxy,
        serving(sending(http_bytes(b"direct"))) as server,
    ):
        monkeypatch.setenv("http_proxy", proxy.address.replace("//", "//me:secret@").removesuffix("/path"))
        monkeypatch.setenv("no_proxy", "other.invalid")
        with client_of("http://far.invalid/a?b=c", credentials={"api-key": KEY}) as client:
            assert [client.post(b"", "text/x").text for _ in range(2)] == ["by proxy"] * 2
        assert [request.path for request in proxy.requests] == ["http://far.invalid/a?b=c"] * 2
        assert proxy.requests[0].headers["host"] == "far.invalid"
        assert proxy.requests[0].headers["proxy-authorization"] == "Basic bWU6c2VjcmV0"
        assert proxy.connections == 1
        with client_of(server) as client:
            assert client.post(b"", "text/x").text == "direct"
        with client_of("http://other.invalid/") as client, pytest.raises(ConnectError):
            client.post(b"", "text/x")
        monkeypatch.setenv("https_proxy", proxy.address)
        proxy.respond = sending(b"HTTP/1.1 403 Forbidden\r\n\r\n")
        with client_of("https://far.invalid/") as client, pytest.raises(ConnectError) as caught:
            client.post(b"", "text/x")
        assert proxy.requests[-1].method == "CONNECT"
        assert "Tunnel connection failed: 403 Forbidden" in caught.value.detail


SECRETS = ["sk-Zq8", "not+to", "hunter2", "c2VjcmV0"]


def test_keys_and_passwords_are_removed_from_responses() -> None:
    echoes = [
        KEY,
        'say "sk-Zq8/not+to be\\"seen" in JSON',
        "sk-Zq8%2Fnot%2Bto%20be%22seen or sk-Zq8%2Fnot%2Bto+be%22seen in an address",
        "hunter2@word and hunter2%40word",
        "Basic bWU6aHVudGVyMkB3b3Jk",
        "token-in-the-address",
    ]
    login = "hunter2@word"
    register_secret(login)
    for status in ("200 OK", f"401 No {KEY}"):
        with serving(sending(http_bytes("\n".join(echoes).encode(), status, Echo=KEY))) as server:
            address = f"{server.address}?token=token-in-the-address&format=json"
            credentials = {"api-key": KEY, "Authorization": basic_authorization("me", login)}
            with client_of(address, credentials=credentials) as client:
                response = client.post(b"", "text/x")
        shown = f"{response.text} {response.reason} {dict(response.headers)} {client!r} {response!r}"
        assert not [secret for secret in (*SECRETS, "bWU6", "token-in") if secret in shown]
        assert response.text.count("(the key)") >= len(echoes)
    assert redact_message("no json in English") == "no json in English"


@pytest.mark.parametrize("address", ["http://me:hunter2@h/", "http://me@h/"])
def test_a_login_in_an_address_is_refused(address: str) -> None:
    with pytest.raises(ValueError, match="must not contain a user or password"):
        HttpClient(address, PATIENT)


def test_errors_of_the_client_have_no_keys() -> None:
    for data in (f"{KEY}\r\n", f"HTTP/1.1 2000 {KEY}\r\n\r\n", f"HTTP/1.1 200 OK\r\nContent-Encoding: {KEY}\r\n\r\n"):
        with pytest.raises(HttpError) as caught:
            post_to(sending(data.encode()), credentials={"api-key": KEY})
        assert "sk-Zq8" not in str(caught.value)


DATE = "Wed, 21 Oct 2015 07:28:00 GMT"


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": " 0.5 "}, 0.5),
        ({"retry-after": "-5"}, 0.0),
        ({"retry-after": "1e400"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "99999999999999999999"}, 1e20),
        ({"retry-after": "Wed, 99 Oct 99999 07:28:00 GMT"}, None),
        ({"retry-after": DATE}, 0.0),
        ({"retry-after": DATE, "date": "Wed, 21 Oct 2015 07:27:18 GMT"}, 42.0),
        ({"retry-after": DATE.replace("GMT", "-0000"), "date": "Wed, 21 Oct 2015 07:27:18 GMT"}, 42.0),
        ({"retry-after": DATE, "date": "Wed, 21 Oct 2015 07:30:00 GMT"}, 0.0),
        ({"retry-after": DATE, "date": "odd"}, 0.0),
        ({"retry-after-ms": "5", "retry-after": "7"}, 0.005),
        ({"retry-after-ms": "nan", "retry-after": "7"}, 7.0),
    ],
)
def test_the_wait_that_a_server_asks_for(headers: dict[str, str], seconds: float | None) -> None:
    assert Response(429, headers=headers).retry_after == seconds


def test_when_to_ask_again_is_told_by_the_servers_clock() -> None:
    for off in (-94_608_000, 94_608_000):
        now, later = (formatdate(1_700_000_000 + off + more, usegmt=True) for more in (0, 7))
        assert Response(429, headers={"retry-after": later, "date": now}).retry_after == 7.0, off
