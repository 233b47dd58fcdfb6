"""HTTP to an endpoint: connections that are kept open, one for each thread."""

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
    """No whole response came: the connection was refused, dropped, cut off, or took too long.

    ``stale``: it was one that had been kept open, and is closed by the other side after a while as a matter of course.
    """

    def __init__(self, said: str, stale: bool = False) -> None:
        super().__init__(said)
        self.stale = stale


@dataclass(frozen=True)
class Response:
    """What an endpoint sent; ``content`` is the JSON, or None if it is none."""

    status: int
    text: str
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def content(self) -> Any:
        """The JSON of the response; None where it is not valid."""
        return parse_reply(self.text)


class Connections:
    """Connections to one address. Each thread has its own, which is opened when it is needed and anew after a fault."""

    def __init__(self, url: str, timeout: float) -> None:
        parts = urlsplit(url)
        self.secure = parts.scheme == "https"
        self.host = parts.hostname or ""
        self.port = parts.port or (443 if self.secure else 80)
        self.path = parts.path
        self.timeout = timeout
        self.proxy = _proxy(parts.scheme, self.host)
        self.own = threading.local()
        self.opened: list[http.client.HTTPConnection] = []
        self.lock = threading.Lock()

    def post(self, body: bytes, headers: Mapping[str, str]) -> Response:
        """Send a body and wait for the whole response; raises BrokenConnectionError where none comes."""
        sent = {"Content-Type": "application/json", "User-Agent": f"merkhet/{__version__}", **headers}
        kept = getattr(self.own, "connection", None)
        try:
            return self._post(kept or self._open(), body, sent)
        except (OSError, http.client.HTTPException, ValueError, OverflowError, MemoryError) as error:
            # The last two where a response says that it has more bytes than any machine.
            self._forget()
            dropped = isinstance(error, http.client.RemoteDisconnected | ConnectionResetError | BrokenPipeError)
            raise BrokenConnectionError(_said(error), stale=dropped and kept is not None) from error

    def close(self) -> None:
        """Close every connection, of whatever thread."""
        with self.lock:
            for connection in self.opened:
                connection.close()
            self.opened.clear()
        self.own = threading.local()

    def _post(self, connection: http.client.HTTPConnection, body: bytes, headers: Mapping[str, str]) -> Response:
        path = f"http://{self.host}:{self.port}{self.path}" if self.proxy and not self.secure else self.path
        connection.request("POST", path, body=body, headers=dict(headers))
        response = connection.getresponse()
        text = response.read().decode("utf-8", errors="replace")
        found = {name.lower(): value for name, value in response.getheaders()}
        if response.will_close:
            self._forget()
        return Response(response.status, text, found)

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
        # Requests are small and go out at once.
        connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.own.connection = connection
        with self.lock:
            self.opened.append(connection)
        return connection

    def _forget(self) -> None:
        connection = getattr(self.own, "connection", None)
        self.own.connection = None
        if connection is not None:
            connection.close()
            with self.lock:
                if connection in self.opened:
                    self.opened.remove(connection)


def _proxy(scheme: str, host: str) -> tuple[str, int] | None:
    """The proxy that the environment names for an address, if any."""
    found = urllib.request.getproxies().get(scheme)
    if not found or urllib.request.proxy_bypass(host) or host in ("localhost", "127.0.0.1", "::1"):
        return None
    parts = urlsplit(found if "://" in found else f"http://{found}")
    return (parts.hostname, parts.port or 8080) if parts.hostname else None


def _said(error: Exception) -> str:
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
