"""The HTTP client against a real server on loopback that sends whatever bytes a test wants."""

from __future__ import annotations

import contextlib
import gzip
import random
import socket
import ssl
import subprocess
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from raw_http_server import (
    MEBIBYTE,
    PATIENT,
    SHORT,
    Received,
    Respond,
    chunked,
    client_of,
    http_bytes,
    post_to,
    sending,
    serving,
    wait_until_gone,
)

from merkhet.core.http_client import (
    BrokenResponseError,
    CertificateError,
    ConnectError,
    HttpClient,
    Limits,
    ResponseTimeoutError,
    ResponseTooLargeError,
)


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
