"""Connections to HTTP servers, with one deadline for connecting, sending and receiving."""

from __future__ import annotations

import http.client
import io
import queue
import socket
import ssl
import threading
import time
from typing import Any

from merkhet.core._http_address import Origin, Proxy, Request


class MalformedResponseError(ValueError):
    """A response contradicts the rules of HTTP, or uses what was not offered."""


class TimedSocket:
    """A connected socket with a deadline for the whole request.

    A timeout of each operation is not enough: it never expires if a server keeps sending single bytes.
    """

    def __init__(self, sock: socket.socket, deadline: float) -> None:
        self.socket = sock
        self.deadline = deadline
        self._unsent: list[bytes] = []

    def limit_wait(self) -> None:
        """Set the timeout of the next operation; raise TimeoutError after the deadline."""
        self.socket.settimeout(_remaining(self.deadline))

    def sendall(self, data: bytes) -> None:
        """Buffer ``data`` until ``flush`` sends headers and body together."""
        self._unsent.append(data)

    def flush(self) -> None:
        self.limit_wait()
        self.socket.sendall(b"".join(self._unsent))
        self._unsent.clear()

    def makefile(self, mode: str) -> io.BufferedReader:
        """Return a file object to read a response from; http.client calls this method for every response."""
        return io.BufferedReader(_TimedReader(self, self.socket.makefile("rb", buffering=0)))

    def is_dropped(self) -> bool:
        """Return whether an idle connection was closed or has received unexpected bytes."""
        try:
            self.socket.settimeout(0)
            # The method of ssl.SSLSocket takes no flags.
            socket.socket.recv(self.socket, 1, socket.MSG_PEEK)
        except BlockingIOError:
            return False
        except OSError:
            return True
        return True

    def close(self) -> None:
        """Close the socket; the connection stays open until its last file object is closed."""
        self.socket.close()


class _TimedReader(io.RawIOBase):
    def __init__(self, timed_socket: TimedSocket, raw: socket.SocketIO) -> None:
        self._timed_socket, self._raw = timed_socket, raw

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        self._timed_socket.limit_wait()
        return self._raw.readinto(buffer)

    def readall(self) -> bytes:
        # http.client reads without a limit for a chunk of size -1.
        raise MalformedResponseError("the reply has a chunk of negative size")

    def close(self) -> None:
        self._raw.close()
        super().close()


class Connection:
    """A connection to a server, directly or through a proxy.

    Args:
        origin: The server.
        proxy: The proxy, if any.
        context: The TLS context for an https server.
        deadline: The time on the monotonic clock by which the connection must be open.

    Raises:
        OSError, http.client.HTTPException, ValueError: The connection failed.
    """

    def __init__(self, origin: Origin, proxy: Proxy | None, context: ssl.SSLContext | None, deadline: float) -> None:
        self._proxy = proxy
        host, port = (proxy.host, proxy.port) if proxy else (origin.host, origin.port)
        self.timed_socket = TimedSocket(_connect(host, port, deadline), deadline)
        try:
            if context is not None:
                if proxy:
                    _open_tunnel(self.timed_socket, origin, proxy)
                # The timeout of a handshake holds for the whole of it.
                self.timed_socket.limit_wait()
                sock = context.wrap_socket(self.timed_socket.socket, server_hostname=origin.host)
                self.timed_socket = TimedSocket(sock, deadline)
        except BaseException:
            self.timed_socket.close()
            raise
        kind = http.client.HTTPConnection if context is None else http.client.HTTPSConnection
        self._http = kind(origin.host, origin.port)
        # http.client sends and reads through this socket, and must not open another one.
        self._http.sock = self.timed_socket
        self._http.auto_open = 0

    def send(self, request: Request, deadline: float) -> http.client.HTTPResponse:
        """Send a request and return the response as soon as its headers are read."""
        self.timed_socket.deadline = deadline
        headers = {**request.headers, **request.credentials}
        path = request.target.path
        if self._proxy and request.target.origin.scheme == "http":
            path = request.target.url
            headers |= self._proxy.headers
        self._http.request(request.method, path, request.body, headers)
        self.timed_socket.flush()
        return self._http.getresponse()

    def close(self) -> None:
        self._http.close()


def _remaining(deadline: float) -> float:
    remaining = deadline - time.monotonic()
    if remaining <= 0:
        raise TimeoutError("timed out")
    return remaining


def _connect(host: str, port: int, deadline: float) -> socket.socket:
    """Connect to the first reachable address of a host; split the remaining time equally among its addresses."""
    addresses = _resolve(host, port, deadline)
    for index, (family, kind, protocol, _, address) in enumerate(addresses):
        sock = socket.socket(family, kind, protocol)
        try:
            sock.settimeout(_remaining(deadline) / (len(addresses) - index))
            sock.connect(address)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return sock
        except OSError:
            sock.close()
            if index == len(addresses) - 1:
                raise
    raise OSError("the host has no address")


def _resolve(host: str, port: int, deadline: float) -> list[Any]:
    """Look up the addresses of a host in another thread, because the look-up itself has no timeout."""
    results: queue.SimpleQueue[list[Any] | Exception] = queue.SimpleQueue()

    def look_up() -> None:
        try:
            results.put(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))
        except (OSError, UnicodeError) as error:
            results.put(error)

    threading.Thread(target=look_up, name="merkhet-resolve", daemon=True).start()
    try:
        result = results.get(timeout=_remaining(deadline))
    except queue.Empty:
        raise TimeoutError("timed out") from None
    if isinstance(result, Exception):
        raise result
    return result


def _open_tunnel(timed_socket: TimedSocket, origin: Origin, proxy: Proxy) -> None:
    """Ask a proxy to forward the bytes of a TLS connection."""
    fields = {"Host": origin.netloc, **proxy.headers}
    lines = [f"CONNECT {origin.netloc} HTTP/1.1", *(f"{name}: {value}" for name, value in fields.items()), "", ""]
    timed_socket.sendall("\r\n".join(lines).encode("ascii"))
    timed_socket.flush()
    response = http.client.HTTPResponse(timed_socket, method="CONNECT")  # type: ignore[arg-type]
    try:
        response.begin()
        if response.status != 200:
            raise OSError(f"Tunnel connection failed: {response.status} {response.reason}")
    finally:
        response.close()
