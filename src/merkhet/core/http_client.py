"""HTTP client with reused connections, deadlines, byte limits, redirects and redacted keys."""

from __future__ import annotations

import http.client
import socket
import ssl
import threading
import time
import zlib
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace

from merkhet.core._http_address import (
    Origin,
    Request,
    describe_location,
    find_proxy,
    parse_target,
    redirect,
)
from merkhet.core._http_connection import Connection, MalformedResponseError
from merkhet.core._http_reading import TooManyBytesError, read_blocks
from merkhet.core.errors import first_line
from merkhet.core.http_response import Response, redirect_note
from merkhet.core.http_retry import RetryableError
from merkhet.core.redaction import (
    public_cause,
    redact,
    redact_blocks,
    redact_message,
    register_address,
    register_headers,
)
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
    """The response was not complete in time."""


class BrokenResponseError(HttpError):
    """The connection was dropped, or the response was cut off or malformed."""


class ResponseTooLargeError(HttpError):
    """The response has more bytes than allowed, before or after decompression."""


@dataclass(frozen=True)
class Limits:
    """Limits on the time and size of a response."""

    timeout: float
    """Maximum seconds for the complete response, including connection and redirects."""
    max_bytes: int
    """Maximum bytes of the body, before and after decompression."""


class HttpClient:
    """A thread-safe client of one address.

    Connections that the server keeps open are reused. Credentials are sent only to the host of the address.

    Args:
        address: The http or https address, without user and password.
        limits: The limits of a response.
        headers: Headers of every request.
        credentials: Headers that hold a key. They are registered as secrets.
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
        register_address(address)
        self._target = parse_target(address)
        self._headers = {"User-Agent": f"merkhet/{__version__}", "Accept-Encoding": "gzip", **(headers or {})}
        self._credentials = dict(credentials or {})
        register_headers(self._credentials)
        self._idle: dict[Origin, list[Connection]] = defaultdict(list)
        self._tls_context: ssl.SSLContext | None = None
        self._lock = threading.Lock()

    def post(self, body: bytes, content_type: str) -> Response:
        """Send a body and return the complete response without secrets, whatever its status.

        Raises:
            HttpError: No complete response arrived; the subclass gives the reason.
            CertificateError: The certificate of the server is not trusted.
        """
        with self.stream(body, content_type) as (response, blocks):
            return replace(response, body=response.body or b"".join(blocks))

    @contextmanager
    def stream(self, body: bytes, content_type: str) -> Iterator[tuple[Response, Iterator[bytes]]]:
        """Send a body; yield the response, and the blocks of its body if its status is from 200 to 299.

        The body of any other response is part of the response, and may be incomplete. A redirect response is yielded if
        it exceeds the maximum number of redirects or cannot be followed.

        Raises:
            HttpError: No complete response arrived; the subclass gives the reason. Reading a block may raise it, too.
            CertificateError: The certificate of the server is not trusted.
        """
        deadline = time.monotonic() + self._limits.timeout
        headers = {**self._headers, "Content-Type": content_type}
        request, location = Request("POST", self._target, body, headers, self._credentials), ""
        with ExitStack() as exchange:
            response, blocks = exchange.enter_context(self._exchange(request, deadline, location))
            for _ in range(self._max_redirects):
                redirected = redirect(request, response)
                if redirected is None:
                    break
                exchange.close()
                request, location = redirected, response.location
                response, blocks = exchange.enter_context(self._exchange(request, deadline, location))
            # Not earlier: the headers of a redirect lead to the next request.
            headers = {name: redact(value) for name, value in response.headers.items()}
            yield replace(response, headers=headers, reason=redact(response.reason)), blocks

    def close(self) -> None:
        """Close all idle connections; call after the last request of all threads."""
        with self._lock:
            for connections in self._idle.values():
                for connection in connections:
                    connection.close()
            self._idle.clear()

    @contextmanager
    def _exchange(self, request: Request, deadline: float, location: str) -> Iterator[tuple[Response, Iterator[bytes]]]:
        """Send a request and yield its response, whose headers may hold secrets.

        ``location`` is the address that redirects have led to, if any.
        """
        with self._explain_errors(location):
            connection = self._reuse(request.target.origin) or self._open(request.target.origin, deadline, location)
        received = None
        try:
            with self._explain_errors(location):
                received = connection.send(request, deadline)
                blocks = self._read_blocks(received, location)
                response_headers = {name.lower(): value for name, value in received.getheaders()}
                response = Response(received.status, b"", response_headers, received.reason, location)
                if not response.is_success:
                    response = replace(response, body=_read_error(received))
                    if next_location := describe_location(request, response):
                        response = replace(response, location=redact_message(next_location)[:_DETAIL_LENGTH])
            yield response, blocks if response.is_success else iter(())
        finally:
            reusable = received is not None and received.isclosed() and not received.will_close
            if received is not None:
                received.close()
            if reusable:
                with self._lock:
                    self._idle[request.target.origin].append(connection)
            else:
                connection.close()

    def _read_blocks(self, received: http.client.HTTPResponse, location: str) -> Iterator[bytes]:
        with self._explain_errors(location):
            if received.length is not None and received.length > self._limits.max_bytes:
                raise TooManyBytesError
            yield from redact_blocks(read_blocks(received, self._limits.max_bytes))

    @contextmanager
    def _explain_errors(self, location: str) -> Iterator[None]:
        """Raise the errors of a connection or a malformed response as HttpError."""
        note = redirect_note(location)
        try:
            yield
        except TimeoutError as error:
            raise ResponseTimeoutError(f"no reply in time{note}") from public_cause(error)
        except TooManyBytesError as error:
            raise ResponseTooLargeError(
                f"the reply is larger than {self._limits.max_bytes:,} bytes{note}"
            ) from public_cause(error)
        except _BREAKS as error:
            raise BrokenResponseError(self._describe(error) + note) from public_cause(error)

    def _reuse(self, origin: Origin) -> Connection | None:
        """Return an idle connection that is still open; servers routinely close idle connections."""
        while True:
            with self._lock:
                connections = self._idle.get(origin)
                connection = connections.pop() if connections else None
            if connection is None or not connection.timed_socket.is_dropped():
                return connection
            connection.close()

    def _open(self, origin: Origin, deadline: float, location: str) -> Connection:
        try:
            context = self._get_tls_context() if origin.scheme == "https" else None
            return Connection(origin, find_proxy(origin), context, deadline)
        except ssl.SSLCertVerificationError as error:
            note = redirect_note(location)
            raise CertificateError(f"its certificate is not trusted ({error.verify_message}){note}") from error
        except _BREAKS as error:
            detail = redact_message(getattr(error, "strerror", None) or first_line(error))[:_DETAIL_LENGTH]
            note = redirect_note(location)
            raise ConnectError(self._describe(error) + note, detail + note) from public_cause(error)

    def _get_tls_context(self) -> ssl.SSLContext:
        with self._lock:
            if self._tls_context is None:
                self._tls_context = ssl.create_default_context()
            return self._tls_context

    @staticmethod
    def _describe(error: Exception) -> str:
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
        if isinstance(error, MalformedResponseError):
            return redact_message(str(error))[:_DETAIL_LENGTH]
        return redact_message(f"{type(error).__name__}: {first_line(error)}")[:_DETAIL_LENGTH]


def _read_error(received: http.client.HTTPResponse) -> bytes:
    """Return the beginning of the body of an error, as much of it as arrives."""
    blocks: list[bytes] = []
    try:
        # Not a comprehension: the blocks before a break are kept.
        for block in redact_blocks(read_blocks(received, _ERROR_BYTES)):
            blocks.append(block)
    except (*_BREAKS, TooManyBytesError):
        pass
    return b"".join(blocks)
