"""The explorer's server: this machine only, one run only, nothing from a request reaches the file system.

It listens on 127.0.0.1 and answers only to that name or localhost, so that a foreign page cannot reach it by a name of
its own (DNS rebinding). What it serves is a fixed list of the package's files and the views; what changes anything
needs the page's secret and its origin.
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
from merkhet.reports.explorer._filters import Params, RequestError, one
from merkhet.reports.explorer.explorer_views import Views
from merkhet.reports.explorer.playground import Player, read_wish

logger = logging.getLogger("merkhet.explorer")

ADDRESS = "127.0.0.1"
PORT = 8765
"""Where the explorer is unless a port is asked for; the next ones are tried if it is taken."""
_TRIED = 20
_LARGEST_BODY = 2**20
_MOST_FIELDS = 200
_LONGEST_WAIT = 20.0
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
    """Serves one run on the loopback address, every request in a thread of its own."""

    daemon_threads = True
    request_queue_size = 64
    # Elsewhere this option lets a second program take the same port.
    allow_reuse_address = sys.platform != "win32"

    def __init__(self, views: Views, player: Player, port: int) -> None:
        super().__init__((ADDRESS, port), _Handler)
        self.views, self.player = views, player
        self.token = secrets.token_urlsafe(24)
        self.port = int(self.server_address[1])
        names = [f"{name}:{self.port}" for name in (ADDRESS, "localhost")]
        self.hosts = frozenset(names + [ADDRESS, "localhost"] * (self.port == 80))
        self.origins = frozenset(f"http://{name}" for name in self.hosts)
        self.files = {place: (_read(folder + place), kind) for place, (folder, kind) in _FILES.items()}
        page = Template(_read("explorer/page/explorer.html").decode())
        filled = page.substitute(title=html.escape(views.title), token=self.token)
        self.files["/"] = (filled.encode("utf-8", "replace"), "text/html")
        self.views_by_path: Mapping[str, Callable[[Params], dict[str, Any]]] = {
            "/api/run": lambda _: {**views.run(), "models": player.models()},
            "/api/questions": views.questions,
            "/api/facets": views.facets,
            "/api/question": views.question,
            "/api/compare": views.compare,
            "/api/play": self._played,
        }

    @property
    def url(self) -> str:
        """Where the page is."""
        return f"http://{ADDRESS}:{self.port}/"

    def _played(self, params: Params) -> dict[str, Any]:
        """Where a wish stands; waits for news of it."""
        given = [one(params, name) or "" for name in ("job", "seen")]
        if not all(text.lstrip("-").isascii() and text.lstrip("-").isdigit() and len(text) < 12 for text in given):
            raise RequestError("Name the job and what was seen of it.")
        return self.player.state(int(given[0]), int(given[1]), _LONGEST_WAIT)

    def server_bind(self) -> None:
        """Bind without asking the network for a name of this machine."""
        TCPServer.server_bind(self)
        self.server_name, self.server_port = ADDRESS, int(self.server_address[1])

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A reader who has gone is no error."""
        error = sys.exc_info()[1]
        if not isinstance(error, ConnectionError | TimeoutError):
            logger.error("a request failed: %r", error)


class _RefusedError(Exception):
    """A request that is refused, with its status and a word for whoever sent it."""

    def __init__(self, status: HTTPStatus, said: str) -> None:
        super().__init__(said)
        self.status = status


class _Handler(BaseHTTPRequestHandler):
    server: ExplorerServer
    protocol_version = "HTTP/1.1"
    server_version, sys_version = "merkhet", ""
    timeout = 60
    # An answer leaves in one piece: its end does not wait for a word that its beginning has come.
    wbufsize = -1
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        """The page, its files and the views."""
        self._answer(self._get)

    def do_POST(self) -> None:
        """A wish to play."""
        self._answer(self._post)

    def _answer(self, work: Callable[[], tuple[bytes, str]]) -> None:
        try:
            self._refuse_foreign()
            body, kind = work()
            self._send(HTTPStatus.OK, body, kind)
        except _RefusedError as refused:
            self._say(refused.status, str(refused))
        except RequestError as error:
            self._say(HTTPStatus.BAD_REQUEST, str(error))
        except MerkhetError as error:
            self._say(HTTPStatus.INTERNAL_SERVER_ERROR, str(error))
        except ConnectionError:
            self.close_connection = True
        except Exception as error:
            logger.exception("a view failed")
            self._say(HTTPStatus.INTERNAL_SERVER_ERROR, f"This view failed: {type(error).__name__}: {error}")

    def _get(self) -> tuple[bytes, str]:
        if self.headers.get("Content-Length") or self.headers.get("Transfer-Encoding"):
            self.close_connection = True  # What follows is no request.
        place, params = self._target()
        if place in self.server.files:
            return self.server.files[place]
        if place not in self.server.views_by_path:
            raise _RefusedError(HTTPStatus.NOT_FOUND, "There is nothing here.")
        if self.headers.get("Sec-Fetch-Site", "same-origin") not in ("same-origin", "none"):
            raise _RefusedError(HTTPStatus.FORBIDDEN, "Only the explorer's own page may ask for this.")
        return _json(self.server.views_by_path[place](params))

    def _post(self) -> tuple[bytes, str]:
        place, _ = self._target()
        content = self._own_content()
        if place != "/api/play":
            raise _RefusedError(HTTPStatus.NOT_FOUND, "There is nothing here.")
        try:
            wish = read_wish(content, list(self.server.player.playables))
        except RequestError as error:  # Somebody is still typing: that is no failure of the page.
            return _json({"refused": str(error)})
        return _json({"job": self.server.player.ask(wish)})

    def _target(self) -> tuple[str, Params]:
        """The place that is asked for, taken as it was sent: it is only ever looked up in a list."""
        try:
            parts = urlsplit(self.path)
            params = parse_qs(parts.query, keep_blank_values=True, max_num_fields=_MOST_FIELDS, errors="strict")
        except ValueError as error:
            raise _RefusedError(HTTPStatus.BAD_REQUEST, "This address cannot be read.") from error
        return "" if parts.netloc else parts.path, params

    def _refuse_foreign(self) -> None:
        if self.headers.get_all("Host", []) not in [[host] for host in self.server.hosts]:
            raise _RefusedError(
                HTTPStatus.FORBIDDEN,
                f"This explorer answers only to {self.server.url}; it was asked for by another name.",
            )

    def _own_content(self) -> Any:
        """The content of a request of the page itself; refuses any other, and what is too large or no JSON."""
        self.close_connection = True  # Until all of the body has been read.
        if self.headers.get_all("Origin", []) not in [[origin] for origin in self.server.origins]:
            raise _RefusedError(HTTPStatus.FORBIDDEN, "Only the explorer's own page may ask for this (Origin).")
        if not hmac.compare_digest(self.headers.get("X-Merkhet-Token", "").encode(), self.server.token.encode()):
            raise _RefusedError(HTTPStatus.FORBIDDEN, "This page is of an explorer that has ended. Load it again.")
        if self.headers.get_content_type() != "application/json":
            raise _RefusedError(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "Send JSON (Content-Type: application/json).")
        length = self.headers.get("Content-Length", "")
        if not (length.isascii() and length.isdigit()) or self.headers.get("Transfer-Encoding"):
            raise _RefusedError(HTTPStatus.LENGTH_REQUIRED, "Say how long the content is (Content-Length).")
        if len(length) > 9 or int(length) > _LARGEST_BODY:
            raise _RefusedError(
                HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"The content is larger than {_LARGEST_BODY:,} bytes."
            )
        body = self.rfile.read(int(length))
        try:
            content = json.loads(body)
        except (ValueError, RecursionError) as error:
            raise _RefusedError(HTTPStatus.BAD_REQUEST, "The content is not valid JSON.") from error
        self.close_connection = False
        return content

    def _say(self, status: HTTPStatus, said: str) -> None:
        self._send(status, *_json({"error": said}))

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
        """Refusals of the library's own, in the same form; a method that is not served is one that is not allowed."""
        self.close_connection = True
        status = HTTPStatus.METHOD_NOT_ALLOWED if code == HTTPStatus.NOT_IMPLEMENTED else HTTPStatus(code)
        said = "Only GET and POST are served." if status == HTTPStatus.METHOD_NOT_ALLOWED else status.phrase + "."
        self._say(status, said)

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: a terminal full of requests helps nobody."""


def open_server(views: Views, player: Player, port: int | None = None) -> ExplorerServer:
    """A server on this port, or on the first that is free; refuses a port that is taken."""
    if port is not None:
        try:
            return ExplorerServer(views, player, port)
        except OSError as error:
            raise InputError(
                f"the port {port} cannot be had ({error.strerror}). Choose another with --port, or leave it out."
            ) from error
    for number in (*range(PORT, PORT + _TRIED), 0):
        try:
            return ExplorerServer(views, player, number)
        except OSError:
            continue
    raise InputError(f"no port of {ADDRESS} can be had. Close some programs, or choose a port with --port.")


def _json(content: Any) -> tuple[bytes, str]:
    text = json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.encode("utf-8", "replace"), "application/json"


def _read(name: str) -> bytes:
    """A file of the package; the names are those above."""
    return files("merkhet.reports").joinpath(name).read_bytes()
