"""HTTP connections to an endpoint, kept open, one per thread."""

from __future__ import annotations

import http.client
import socket
import ssl
import threading
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from merkhet.core.text_formats import parse_reply
from merkhet.core.version import __version__


class BrokenConnectionError(Exception):
    """No complete response came: the connection was refused, dropped, cut off, or timed out.

    ``stale`` is True if the connection had been kept open: servers close idle connections as a matter of course.
    """

    def __init__(self, message: str, stale: bool = False) -> None:
        super().__init__(message)
        self.stale = stale


@dataclass(frozen=True)
class Response:
    """The response of an endpoint."""

    status: int
    text: str
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def content(self) -> Any:
        """The JSON of the response; None if it is invalid."""
        return parse_reply(self.text)


class ConnectionPool:
    """Connections to one address: each thread opens its own on first use and reopens it after an error."""

    def __init__(self, url: str, timeout: float) -> None:
        parts = urlsplit(url)
        self.secure = parts.scheme == "https"
        self.host = parts.hostname or ""
        self.port = parts.port or (443 if self.secure else 80)
        self.path = parts.path
        self.timeout = timeout
        self.proxy = _find_proxy(parts.scheme, self.host)
        self.thread_local = threading.local()
        self.opened: list[http.client.HTTPConnection] = []
        self.lock = threading.Lock()

    def post(self, body: bytes, headers: Mapping[str, str]) -> Response:
        """Send a body and wait for the complete response; raises BrokenConnectionError if none comes."""
        all_headers = {"Content-Type": "application/json", "User-Agent": f"merkhet/{__version__}", **headers}
        connection = getattr(self.thread_local, "connection", None)
        try:
            return self._post(connection or self._open(), body, all_headers)
        except (OSError, http.client.HTTPException, ValueError, OverflowError, MemoryError) as error:
            # The last two are for a response that declares more bytes than any machine has.
            self._discard()
            dropped = isinstance(error, http.client.RemoteDisconnected | ConnectionResetError | BrokenPipeError)
            raise BrokenConnectionError(_describe(error), stale=dropped and connection is not None) from error

    def close(self) -> None:
        """Close the connections of all threads."""
        with self.lock:
            for connection in self.opened:
                connection.close()
            self.opened.clear()
        self.thread_local = threading.local()

    def _post(self, connection: http.client.HTTPConnection, body: bytes, headers: Mapping[str, str]) -> Response:
        path = f"http://{self.host}:{self.port}{self.path}" if self.proxy and not self.secure else self.path
        connection.request("POST", path, body=body, headers=dict(headers))
        response = connection.getresponse()
        text = response.read().decode("utf-8", errors="replace")
        response_headers = {name.lower(): value for name, value in response.getheaders()}
        if response.will_close:
            self._discard()
        return Response(response.status, text, response_headers)

    def _open(self) -> http.client.HTTPConnection:
        host, port = self.proxy or (self.host, self.port)
        connection: http.client.HTTPConnection
        if self.secure:
            connection = http.client.HTTPSConnection(
                host, port, timeout=self.timeout, context=ssl.create_default_context()
            )
            if self.proxy:
                connection.set_tunnel(self.host, self.port)
        else:
            connection = http.client.HTTPConnection(host, port, timeout=self.timeout)
        connection.connect()
        # Requests are small: they must not wait to be sent together.
        connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.thread_local.connection = connection
        with self.lock:
            self.opened.append(connection)
        return connection

    def _discard(self) -> None:
        connection = getattr(self.thread_local, "connection", None)
        self.thread_local.connection = None
        if connection is not None:
            connection.close()
            with self.lock:
                if connection in self.opened:
                    self.opened.remove(connection)


def _find_proxy(scheme: str, host: str) -> tuple[str, int] | None:
    """Return the proxy that the environment sets for an address, if any."""
    proxy = urllib.request.getproxies().get(scheme)
    if not proxy or urllib.request.proxy_bypass(host) or host in ("localhost", "127.0.0.1", "::1"):
        return None
    parts = urlsplit(proxy if "://" in proxy else f"http://{proxy}")
    return (parts.hostname, parts.port or 8080) if parts.hostname else None


def _describe(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return "no reply in time"
    if isinstance(error, ConnectionRefusedError):
        return "the connection was refused"
    if isinstance(error, socket.gaierror):
        return "there is no such host"
    if isinstance(error, http.client.IncompleteRead):
        return "the reply was cut off"
    if isinstance(error, ConnectionError | http.client.RemoteDisconnected):
        return "the connection was dropped"
    return f"{type(error).__name__}: {error}"
