"""HTTP server of the explorer, for one run on the loopback address.

The server listens on 127.0.0.1 and accepts only the host names 127.0.0.1 and localhost, which prevents DNS rebinding.
It serves the views and a fixed list of package files; request paths never reach the file system. POST requests need
the token and the origin of the explorer's page.
"""

from __future__ import annotations

import hmac
import html
import json
import logging
import secrets
import sys
from collections.abc import Callable, Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from socketserver import TCPServer
from string import Template
from typing import Any
from urllib.parse import parse_qs, urlsplit

from merkhet.core.errors import InputError, MerkhetError
from merkhet.reports.explorer._filters import Params, RequestError, last_value
from merkhet.reports.explorer.explorer_views import Views
from merkhet.reports.explorer.playground import Player, read_play_request

logger = logging.getLogger("merkhet.explorer")

ADDRESS = "127.0.0.1"
PORT = 8765
"""Default port; if it is in use, the next ports are tried."""
_PORTS_TRIED = 20
_MAX_BODY_BYTES = 2**20
_MAX_FIELDS = 200
_MAX_WAIT_SECONDS = 20.0
_FILES = {
    "/explorer.css": ("explorer/page", "text/css"),
    "/report.css": ("templates", "text/css"),
    "/icon.svg": ("explorer/page", "image/svg+xml"),
    **{
        f"/{name}.js": ("explorer/page", "text/javascript")
        for name in ("explorer", "parts", "choices", "filters", "listing", "questions", "question", "compare", "play")
    },
}
_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; "
        "trusted-types 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Embedder-Policy": "require-corp",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Cache-Control": "no-store",
}


class ExplorerServer(ThreadingHTTPServer):
    """HTTP server for one run on the loopback address, with a thread for each connection."""

    daemon_threads = True
    request_queue_size = 64
    # On Windows, this option would let a second program bind the same port.
    allow_reuse_address = sys.platform != "win32"

    def __init__(self, views: Views, player: Player, port: int) -> None:
        super().__init__((ADDRESS, port), _Handler)
        self.views, self.player = views, player
        self.token = secrets.token_urlsafe(24)
        self.port = int(self.server_address[1])
        names = [f"{name}:{self.port}" for name in (ADDRESS, "localhost")]
        self.hosts = frozenset(names + [ADDRESS, "localhost"] * (self.port == 80))
        self.origins = frozenset(f"http://{name}" for name in self.hosts)
        self.files = {path: (_read_resource(folder + path), kind) for path, (folder, kind) in _FILES.items()}
        page = Template(_read_resource("explorer/page/explorer.html").decode())
        filled = page.substitute(title=html.escape(views.title), token=self.token)
        self.files["/"] = (filled.encode("utf-8", "replace"), "text/html")
        self.views_by_path: Mapping[str, Callable[[Params], dict[str, Any]]] = {
            "/api/run": lambda _: {**views.run(), "models": player.models()},
            "/api/questions": views.questions,
            "/api/facets": views.facets,
            "/api/question": views.question,
            "/api/compare": views.compare,
            "/api/play": self._play_state,
        }

    @property
    def url(self) -> str:
        """The URL of the explorer's page."""
        return f"http://{ADDRESS}:{self.port}/"

    def _play_state(self, params: Params) -> dict[str, Any]:
        """Return the state of a playground job; wait some seconds for a state that the page has not seen."""
        values = [last_value(params, name) or "" for name in ("job", "seen")]
        if not all(text.lstrip("-").isascii() and text.lstrip("-").isdigit() and len(text) < 12 for text in values):
            raise RequestError("job and seen must be integers: the job, and the last version of it that was seen.")
        return self.player.state(int(values[0]), int(values[1]), _MAX_WAIT_SECONDS)

    def server_bind(self) -> None:
        """Bind the socket without a DNS lookup of the machine's host name."""
        TCPServer.server_bind(self)
        self.server_name, self.server_port = ADDRESS, int(self.server_address[1])

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Log errors of requests, except disconnects and timeouts of clients."""
        error = sys.exc_info()[1]
        if not isinstance(error, ConnectionError | TimeoutError):
            logger.error("a request failed: %r", error)


class _RefusedError(Exception):
    """Refusal of a request, with an HTTP status."""

    def __init__(self, status: HTTPStatus, message: str) -> None:
        super().__init__(message)
        self.status = status


class _Handler(BaseHTTPRequestHandler):
    server: ExplorerServer
    protocol_version = "HTTP/1.1"
    server_version, sys_version = "merkhet", ""
    timeout = 60
    # Each response is buffered and sent at once; with Nagle's algorithm, its end would wait for an acknowledgement.
    wbufsize = -1
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        """Serve the explorer's page, its files and the views."""
        self._answer(self._get)

    def do_POST(self) -> None:
        """Accept a request of the playground."""
        self._answer(self._post)

    def _answer(self, work: Callable[[], tuple[bytes, str]]) -> None:
        try:
            self._refuse_foreign()
            body, kind = work()
            self._send(HTTPStatus.OK, body, kind)
        except _RefusedError as refused:
            self._send_message(refused.status, str(refused))
        except RequestError as error:
            self._send_message(HTTPStatus.BAD_REQUEST, str(error))
        except MerkhetError as error:
            self._send_message(HTTPStatus.INTERNAL_SERVER_ERROR, str(error))
        except ConnectionError:
            self.close_connection = True
        except Exception as error:
            logger.exception("a view failed")
            self._send_message(HTTPStatus.INTERNAL_SERVER_ERROR, f"This view failed: {type(error).__name__}: {error}")

    def _get(self) -> tuple[bytes, str]:
        if self.headers.get("Content-Length") or self.headers.get("Transfer-Encoding"):
            self.close_connection = True  # The body that follows must not be read as a request.
        path, params = self._target()
        if path in self.server.files:
            return self.server.files[path]
        if path not in self.server.views_by_path:
            raise _RefusedError(HTTPStatus.NOT_FOUND, "The explorer has no such address.")
        if self.headers.get("Sec-Fetch-Site", "same-origin") not in ("same-origin", "none"):
            raise _RefusedError(HTTPStatus.FORBIDDEN, "Only the explorer's page may send this request.")
        return _json(self.server.views_by_path[path](params))

    def _post(self) -> tuple[bytes, str]:
        path, _ = self._target()
        content = self._read_content()
        if path != "/api/play":
            raise _RefusedError(HTTPStatus.NOT_FOUND, "The explorer has no such address.")
        try:
            request = read_play_request(content, list(self.server.player.playables))
        except RequestError as error:  # The user is still typing, so this is a normal response.
            return _json({"refused": str(error)})
        return _json({"job": self.server.player.ask(request)})

    def _target(self) -> tuple[str, Params]:
        """Return the path and the query parameters of the request.

        The path is not normalized, because it is only looked up in fixed lists.
        """
        try:
            parts = urlsplit(self.path)
            params = parse_qs(parts.query, keep_blank_values=True, max_num_fields=_MAX_FIELDS, errors="strict")
        except ValueError as error:
            raise _RefusedError(HTTPStatus.BAD_REQUEST, "This address cannot be read.") from error
        return "" if parts.netloc else parts.path, params

    def _refuse_foreign(self) -> None:
        if self.headers.get_all("Host", []) not in [[host] for host in self.server.hosts]:
            raise _RefusedError(
                HTTPStatus.FORBIDDEN,
                f"This explorer answers only to {self.server.url}; the request named another host.",
            )

    def _read_content(self) -> Any:
        """Read the JSON body of a POST request; refuse requests that the explorer's page did not send."""
        self.close_connection = True  # Reset when the whole body has been read.
        if self.headers.get_all("Origin", []) not in [[origin] for origin in self.server.origins]:
            raise _RefusedError(HTTPStatus.FORBIDDEN, "Only the explorer's page may send this request (Origin).")
        if not hmac.compare_digest(self.headers.get("X-Merkhet-Token", "").encode(), self.server.token.encode()):
            raise _RefusedError(HTTPStatus.FORBIDDEN, "This page belongs to an explorer that has ended; reload it.")
        if self.headers.get_content_type() != "application/json":
            raise _RefusedError(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "Send JSON (Content-Type: application/json).")
        length = self.headers.get("Content-Length", "")
        if not (length.isascii() and length.isdigit()) or self.headers.get("Transfer-Encoding"):
            raise _RefusedError(HTTPStatus.LENGTH_REQUIRED, "Send the length of the content (Content-Length).")
        if len(length) > 9 or int(length) > _MAX_BODY_BYTES:
            raise _RefusedError(
                HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"The content is larger than {_MAX_BODY_BYTES:,} bytes."
            )
        body = self.rfile.read(int(length))
        try:
            content = json.loads(body)
        except (ValueError, RecursionError) as error:
            raise _RefusedError(HTTPStatus.BAD_REQUEST, "The content is not valid JSON.") from error
        self.close_connection = False
        return content

    def _send_message(self, status: HTTPStatus, message: str) -> None:
        self._send(status, *_json({"error": message}))

    def _send(self, status: HTTPStatus, body: bytes, kind: str) -> None:
        self.send_response(status)
        for name, value in _HEADERS.items():
            self.send_header(name, value)
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        if status == HTTPStatus.METHOD_NOT_ALLOWED:
            self.send_header("Allow", "GET, POST")
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Send an error of the HTTP library as JSON; an unsupported method becomes 405 Method Not Allowed."""
        self.close_connection = True
        status = HTTPStatus.METHOD_NOT_ALLOWED if code == HTTPStatus.NOT_IMPLEMENTED else HTTPStatus(code)
        text = "Only GET and POST are served." if status == HTTPStatus.METHOD_NOT_ALLOWED else status.phrase + "."
        self._send_message(status, text)

    def log_message(self, format: str, *args: Any) -> None:
        """Disable the log of requests."""


def open_server(views: Views, player: Player, port: int | None = None) -> ExplorerServer:
    """Open a server on ``port`` or, if ``port`` is None, on the first free port.

    Raises:
        InputError: If ``port`` is not available, or no port is.
    """
    if port is not None:
        try:
            return ExplorerServer(views, player, port)
        except OSError as error:
            raise InputError(
                f"port {port} is not available ({error.strerror}); choose another with --port, or leave --port out"
            ) from error
    for number in (*range(PORT, PORT + _PORTS_TRIED), 0):
        try:
            return ExplorerServer(views, player, number)
        except OSError:
            continue
    raise InputError(f"no port of {ADDRESS} is available; close some programs, or choose a port with --port")


def _json(content: Any) -> tuple[bytes, str]:
    text = json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.encode("utf-8", "replace"), "application/json"


def _read_resource(name: str) -> bytes:
    return files("merkhet.reports").joinpath(name).read_bytes()
