"""HTTP client with reused connections, deadlines, byte limits, redirects and redacted keys."""

from __future__ import annotations

import http.client
import socket
import ssl
import threading
import time
import zlib
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from merkhet.core._http_address import Origin, Proxy, Request, basic_authorization, find_proxy, parse_target, redirect
from merkhet.core._http_reading import TimedSocket, TooManyBytesError, read_blocks
from merkhet.core.errors import first_line
from merkhet.core.http_response import Response
from merkhet.core.http_retry import RetryableError
from merkhet.core.redaction import Redactor, address_secrets, header_secrets
from merkhet.core.version import __version__

_ERROR_BYTES = 1 << 17
"""Maximum number of bytes to read from the body of an error response."""
_DETAIL_LENGTH = 200
_BREAKS = (OSError, http.client.HTTPException, EOFError, zlib.error, ValueError)
"""Exceptions raised for a broken connection or a malformed response."""


class CertificateError(Exception):
    """The certificate of the server is not trusted; a retry does not help."""


class HttpError(RetryableError):
    """No complete response arrived. The message contains no key."""


class ConnectError(HttpError):
    """No connection: the host is unknown, refused the connection, or did not accept it in time.

    ``detail`` is the message of the operating system.
    """

    def __init__(self, message: str, detail: str) -> None:
        super().__init__(message)
        self.detail = detail


class ResponseTimeoutError(HttpError):
    """The server was silent for too long, or the response was not complete by its deadline."""


class BrokenResponseError(HttpError):
    """The connection was dropped, or the response was cut off or malformed."""


class ResponseTooLargeError(HttpError):
    """The response has more bytes than allowed, before or after decompression."""


@dataclass(frozen=True)
class Limits:
    """Limits on the time and size of a response."""

    timeout: float
    """Maximum seconds without receiving a byte."""
    deadline: float
    """Maximum seconds for the complete response, including connection and redirects."""
    max_bytes: int
    """Maximum bytes of the body, before and after decompression."""


class HttpClient:
    """A thread-safe client of one address.

    Connections that the server keeps open are reused. Credentials are sent only to the host of the address.

    Args:
        address: The http or https address. Its user and password, if any, become credentials.
        limits: The limits of a response.
        headers: Headers of every request.
        credentials: Headers that hold a key.
        max_redirects: The number of redirects that a request follows.

    Raises:
        ValueError: The address is malformed.
    """

    def __init__(
        self,
        address: str,
        limits: Limits,
        *,
        headers: Mapping[str, str] | None = None,
        credentials: Mapping[str, str] | None = None,
        max_redirects: int = 0,
    ) -> None:
        self._limits, self._max_redirects = limits, max_redirects
        self._target = parse_target(address)
        self._headers = {"User-Agent": f"merkhet/{__version__}", "Accept-Encoding": "gzip", **(headers or {})}
        self._credentials = {**basic_authorization(address), **(credentials or {})}
        self._redact = Redactor((*address_secrets(address), *header_secrets(self._credentials)))
        self._idle: dict[Origin, list[_Connection]] = defaultdict(list)
        self._tls_context: ssl.SSLContext | None = None
        self._lock = threading.Lock()

    def post(self, body: bytes, content_type: str) -> Response:
        """Send a body and return the complete response, whatever its status.

        The body of an error (a status outside 200–299) may be incomplete. A redirect response is returned if it exceeds
        the maximum number of redirects or cannot be followed.

        Raises:
            HttpError: No complete response arrived; the subclass gives the reason.
            CertificateError: The certificate of the server is not trusted.
        """
        deadline = time.monotonic() + self._limits.deadline
        headers = {**self._headers, "Content-Type": content_type}
        request = Request("POST", self._target, body, headers, self._credentials)
        response = self._send(request, deadline)
        for _ in range(self._max_redirects):
            redirected = redirect(request, response)
            if redirected is None:
                break
            request = redirected
            response = self._send(request, deadline)
        return response

    def close(self) -> None:
        """Close all idle connections; call after the last request of all threads."""
        with self._lock:
            for connections in self._idle.values():
                for connection in connections:
                    connection.close()
            self._idle.clear()

    def _send(self, request: Request, deadline: float) -> Response:
        connection = self._reuse(request.target.origin) or self._open(request.target.origin, deadline)
        reusable = False
        try:
            with connection.send(request, deadline) as response:
                body = self._read_body(response)
                reusable = response.isclosed() and not response.will_close
        except TimeoutError as error:
            raise ResponseTimeoutError("no reply in time") from error
        except TooManyBytesError as error:
            raise ResponseTooLargeError(f"the reply is larger than {self._limits.max_bytes:,} bytes") from error
        except _BREAKS as error:
            raise BrokenResponseError(self._describe(error)) from error
        finally:
            if reusable:
                with self._lock:
                    self._idle[request.target.origin].append(connection)
            else:
                connection.close()
        response_headers = {name.lower(): value for name, value in response.getheaders()}
        return Response(response.status, body, response_headers, response.reason, self._redact)

    def _read_body(self, response: http.client.HTTPResponse) -> bytes:
        is_error = not 200 <= response.status < 300
        if not is_error and response.length is not None and response.length > self._limits.max_bytes:
            raise TooManyBytesError
        blocks: list[bytes] = []
        try:
            # Not a comprehension: the blocks before a break are kept.
            for block in read_blocks(response, _ERROR_BYTES if is_error else self._limits.max_bytes):
                blocks.append(block)
        except (*_BREAKS, TooManyBytesError):
            if not is_error:
                raise
        return b"".join(blocks)

    def _reuse(self, origin: Origin) -> _Connection | None:
        """Return an idle connection that is still open; servers routinely close idle connections."""
        while True:
            with self._lock:
                connections = self._idle.get(origin)
                connection = connections.pop() if connections else None
            if connection is None or not connection.timed_socket.is_dropped():
                return connection
            connection.close()

    def _open(self, origin: Origin, deadline: float) -> _Connection:
        timeout = min(self._limits.timeout, max(0.001, deadline - time.monotonic()))
        try:
            proxy = find_proxy(origin)
            context = self._get_tls_context() if origin.scheme == "https" else None
            return _Connection(_connect(origin, proxy, timeout, context), proxy, self._limits.timeout)
        except ssl.SSLCertVerificationError as error:
            raise CertificateError(f"its certificate is not trusted ({error.verify_message})") from error
        except _BREAKS as error:
            detail = self._redact(getattr(error, "strerror", None) or first_line(error))
            raise ConnectError(self._describe(error), detail[:_DETAIL_LENGTH]) from error

    def _get_tls_context(self) -> ssl.SSLContext:
        with self._lock:
            if self._tls_context is None:
                self._tls_context = ssl.create_default_context()
            return self._tls_context

    def _describe(self, error: Exception) -> str:
        if isinstance(error, TimeoutError):
            return "no reply in time"
        if isinstance(error, ConnectionRefusedError):
            return "the connection was refused"
        if isinstance(error, socket.gaierror | UnicodeError):
            return "there is no such host"
        if isinstance(error, http.client.IncompleteRead | EOFError):
            return "the reply was cut off"
        if isinstance(error, ConnectionError):
            return "the connection was dropped"
        return self._redact(f"{type(error).__name__}: {first_line(error)}")[:_DETAIL_LENGTH]


class _Connection:
    def __init__(self, connection: http.client.HTTPConnection, proxy: Proxy | None, timeout: float) -> None:
        self._http, self._proxy = connection, proxy
        self.timed_socket = TimedSocket(connection.sock, timeout)
        # http.client sends and reads through this socket, and must not open another one.
        connection.sock = self.timed_socket
        connection.auto_open = 0

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


def _connect(
    origin: Origin, proxy: Proxy | None, timeout: float, context: ssl.SSLContext | None
) -> http.client.HTTPConnection:
    host, port = (proxy.host, proxy.port) if proxy else (origin.host, origin.port)
    connection: http.client.HTTPConnection
    if context is None:
        connection = http.client.HTTPConnection(host, port, timeout=timeout)
    else:
        connection = http.client.HTTPSConnection(host, port, timeout=timeout, context=context)
        if proxy:
            connection.set_tunnel(origin.host, origin.port, dict(proxy.headers))
    connection.connect()
    return connection
