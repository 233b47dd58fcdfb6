"""A real server on loopback that sends whatever bytes a test wants, and clients of it."""

from __future__ import annotations

import contextlib
import http.client
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from merkhet.core.http_client import (
    HttpClient,
    Limits,
)
from merkhet.core.http_response import Response

KEY = 'sk-Zq8/not+to be"seen'
MEBIBYTE = 1 << 20
PATIENT = Limits(timeout=60.0, max_bytes=MEBIBYTE)
SHORT = Limits(timeout=0.4, max_bytes=MEBIBYTE)


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
