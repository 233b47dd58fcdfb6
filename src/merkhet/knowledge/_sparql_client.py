"""SPARQL client with retries, a cache, and detection of incomplete responses."""

from __future__ import annotations

import base64
import gzip
import http.client
import json
import random
import re
import ssl
import time
import urllib.error
import urllib.request
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from email.message import Message
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlencode, urlsplit, urlunsplit

from merkhet.core.errors import InputError, MerkhetError, first_line
from merkhet.core.files import atomic_path, cache_folder
from merkhet.core.ids import digest
from merkhet.core.version import __version__

ACCEPT = "application/sparql-results+json"
USER_AGENT = f"merkhet/{__version__}; knowledge import"
_MAX_PAUSE = 60.0
_MAX_REQUEST_SECONDS = 600.0
_TIMEOUT_MESSAGE = re.compile(
    r"time[d ]*[ -]?out|TimeoutException|execution time|QueryInterrupted|time limit", re.IGNORECASE
)
_STACK_TRACE = re.compile(r"java\.[\w.]+(Exception|Error)|\n\s+at [\w.$]+\(")
_VIRTUOSO_SORT_LIMIT = re.compile(r"SR353|Sorted TOP clause")

Row = Mapping[str, Mapping[str, str]]
"""A row of a response, in SPARQL's JSON form."""


class EndpointError(MerkhetError):
    """An endpoint failed to answer (exit code 1)."""


class UnreachableError(EndpointError, InputError):
    """No endpoint answers at the address (exit code 2)."""

    exit_code = 2


class OverloadError(Exception):
    """The endpoint cannot return this much at once; a smaller request may succeed."""


class _RetryableError(Exception):
    """A failure that may be temporary."""

    def __init__(self, reason: str, pause: float | None = None, truncated: bool = False, reached: bool = True) -> None:
        """Describe the failure.

        Args:
            reason: The reason, for the end of a sentence that begins with the address.
            pause: Seconds to wait, if the server asks for them.
            truncated: Whether the response was incomplete.
            reached: Whether the server was reached.
        """
        super().__init__(reason)
        self.reached = reached
        self.pause = pause
        self.truncated = truncated


class SortLimitError(OverloadError):
    """Virtuoso refuses to sort and slice this many rows."""


@dataclass(frozen=True)
class RequestSettings:
    """How an endpoint is asked."""

    page: int = 5000
    """Rows in a page."""
    retries: int = 5
    timeout: float = 65.0
    """Seconds without a response."""
    wait: float = 1.0
    """Seconds before the first retry, doubled for each further one."""
    cache: str = "yes"
    """yes, no or refresh."""
    count: bool = True
    """Whether to count the rows first and compare."""
    user_agent: str = USER_AGENT


def display_address(address: str) -> str:
    """Return an address for messages: without password and without parameters, which may hold a key."""
    parts = urlsplit(address)
    public_parts = (parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", "")
    return urlunsplit(public_parts) + ("?..." if parts.query else "")


class Endpoint:
    """A SPARQL endpoint that returns complete responses, from the cache if possible."""

    def __init__(self, address: str, settings: RequestSettings, say: Callable[[str], None] = lambda line: None) -> None:
        self.settings = settings
        self.say = say
        self.cache_hits = 0
        parts = urlsplit(address)
        host = parts.netloc.rpartition("@")[2]
        if parts.scheme not in ("http", "https") or not host:
            raise InputError("the address of the endpoint must begin with http:// or https:// and name a host")
        self.display_name = display_address(address)
        self._address = urlunsplit((parts.scheme, host, parts.path, parts.query, ""))
        self._headers = {"Accept": ACCEPT, "Accept-Encoding": "gzip", "User-Agent": settings.user_agent}
        if parts.username is not None:
            pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}".encode()
            self._headers["Authorization"] = f"Basic {base64.b64encode(pair).decode()}"
        self._key = [self._address, parts.username, ACCEPT]
        self._opener = urllib.request.build_opener(_Redirects)

    def ask(self, text: str, retries: int | None = None) -> list[Row]:
        """Return the rows of the complete response.

        Raises:
            OverloadError: A smaller request may succeed.
            MerkhetError: The endpoint failed.
        """
        cached = self.read_cache(text)
        if "rows" in cached:
            self.cache_hits += 1
            return list(cached["rows"])
        rows = self._request_with_retries(text, self.settings.retries if retries is None else retries)
        self.write_cache(text, {"rows": rows})
        return rows

    def read_cache(self, text: str) -> dict[str, Any]:
        """Return what is cached for a query; empty if nothing is, or the file is damaged."""
        if self.settings.cache != "yes":
            return {}
        try:
            content = json.loads(gzip.decompress(self._cache_path(text).read_bytes()))
        except (OSError, EOFError, zlib.error, ValueError, RecursionError):
            return {}
        return content if isinstance(content, dict) else {}

    def write_cache(self, text: str, content: Mapping[str, Any]) -> None:
        """Cache content for a query."""
        if self.settings.cache != "no":
            with atomic_path(self._cache_path(text)) as path:
                path.write_bytes(gzip.compress(json.dumps(content, ensure_ascii=False).encode(), 3, mtime=0))

    def _cache_path(self, text: str) -> Path:
        name = digest([*self._key, text])
        return cache_folder() / "sparql" / name[:2] / f"{name}.json.gz"

    def _request_with_retries(self, text: str, retries: int) -> list[Row]:
        attempt = 0
        while True:
            try:
                return self._parse(self._request(text))
            except _RetryableError as failure:
                pause = failure.pause
                if pause is None:
                    pause = min(_MAX_PAUSE, self.settings.wait * 2**attempt) * random.uniform(0.5, 1.5)
                if attempt == retries or pause > _MAX_REQUEST_SECONDS:
                    raise self._final_error(failure, attempt + 1) from failure
                if pause >= 5:
                    self.say(f"{self.display_name}: {failure}; trying again in {pause:.0f} s")
                time.sleep(pause)
            attempt += 1

    def _final_error(self, failure: _RetryableError, attempts: int) -> Exception:
        if failure.truncated:
            return OverloadError(str(failure))
        times = "once" if attempts == 1 else f"{attempts} times"
        return (EndpointError if failure.reached else UnreachableError)(
            f"{self.display_name} {failure} (tried {times}). Nothing was imported. Check the address and the network, "
            "or import again later: complete pages are cached and not asked for again."
        )

    def _request(self, text: str) -> bytes:
        request = urllib.request.Request(self._address, urlencode({"query": text}).encode(), self._headers)
        try:
            with self._opener.open(request, timeout=self.settings.timeout) as response:
                body = _read_body(response, time.monotonic() + max(_MAX_REQUEST_SECONDS, self.settings.timeout))
                if response.headers.get("X-SQL-State", "").startswith("S1TAT"):
                    raise OverloadError("Virtuoso ran out of time and returned only some of the rows")
                return body
        except urllib.error.HTTPError as error:
            with error:
                raise self._http_failure(error) from error
        except urllib.error.URLError as error:
            if isinstance(error.reason, ssl.SSLCertVerificationError):
                raise EndpointError(
                    f"{self.display_name}: its certificate is not trusted ({error.reason.reason})"
                ) from error
            reason = getattr(error.reason, "strerror", None) or error.reason
            raise _RetryableError(f"cannot be reached: {reason}", reached=False) from error
        except TimeoutError as error:
            raise OverloadError(f"no answer within {self.settings.timeout:g} s") from error
        except (http.client.HTTPException, OSError, EOFError, zlib.error) as error:
            raise _RetryableError(f"broke off its answer ({first_line(error)})", truncated=True) from error

    def _http_failure(self, error: urllib.error.HTTPError) -> Exception:
        code, text = error.code, _body_text(error)
        message = _error_message(text)
        summary = f"HTTP {code}" + (f": {message}" if message else f" {error.reason}".split("\n")[0].rstrip())
        pause = _requested_pause(error.headers)
        if _VIRTUOSO_SORT_LIMIT.search(text):
            return SortLimitError(message)
        if code in (408, 504) or (code >= 500 and pause is None and _TIMEOUT_MESSAGE.search(text)):
            return OverloadError(summary)
        if code == 429 or code >= 500:
            return _RetryableError(f"answered {summary}" + (f", wait {pause:.0f} s" if pause else ""), pause)
        if code == 400:
            return InputError(f"{self.display_name} does not understand the query ({summary}). Mend the query.")
        return EndpointError(
            f"{self.display_name} refused the query ({summary}). Check the address, and whether you may ask it."
        )

    def _parse(self, body: bytes) -> list[Row]:
        try:
            answer = json.loads(body.decode("utf-8"))
        except (ValueError, RecursionError) as error:
            start = body[:200].lstrip().lower()
            if start.startswith(b"<"):
                raise EndpointError(
                    f"{self.display_name} answered with HTML or XML instead of JSON results. Check the address: "
                    "it must be that of the query service, such as https://query.wikidata.org/sparql"
                ) from error
            rest = body[getattr(error, "pos", 0) :].decode("utf-8", "replace")
            if _STACK_TRACE.search(rest):
                raise OverloadError("the answer ends in an error message of the server") from error
            raise _RetryableError("broke off its answer (the JSON is not whole)", truncated=True) from error
        results = answer.get("results") if isinstance(answer, dict) else None
        rows = results.get("bindings") if isinstance(results, dict) else None
        if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
            raise EndpointError(f"{self.display_name} answered with JSON that is no table of rows. Check the address.")
        return rows


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Repeats a query at the new address, by http or https only; a password stays with its host."""

    def redirect_request(
        self, req: urllib.request.Request, fp: Any, code: int, msg: str, headers: Any, newurl: str
    ) -> urllib.request.Request | None:
        old, new = urlsplit(req.full_url), urlsplit(newurl)
        if new.scheme not in ("http", "https") or new.username is not None:
            raise urllib.error.HTTPError(req.full_url, code, "redirect", headers, fp)
        kept_headers = {
            name: value for name, value in req.header_items() if name.lower() not in ("host", "content-length")
        }
        if old.netloc != new.netloc or new.scheme != old.scheme != "http":
            kept_headers = {name: value for name, value in kept_headers.items() if name.lower() != "authorization"}
        return urllib.request.Request(newurl, req.data if code != 303 else None, kept_headers)

    http_error_307 = http_error_308 = urllib.request.HTTPRedirectHandler.http_error_302


def _read_body(response: Any, deadline: float) -> bytes:
    blocks = []
    while block := response.read1(1 << 20):
        blocks.append(block)
        if time.monotonic() > deadline:
            raise TimeoutError
    # Reading in blocks does not notice a connection that closed before the announced length.
    if response.length:
        raise http.client.IncompleteRead(b"", response.length)
    body = b"".join(blocks)
    return gzip.decompress(body) if response.headers.get("Content-Encoding", "").lower() == "gzip" else body


def _body_text(error: urllib.error.HTTPError) -> str:
    try:
        return _read_body(error.fp, time.monotonic() + _MAX_PAUSE)[:100_000].decode("utf-8", "replace")
    except (http.client.HTTPException, OSError, EOFError, zlib.error):
        return ""


def _error_message(text: str) -> str:
    """Return the most telling line of an error page: the first, or in a stack trace the first that names an error."""
    plain = re.sub(r"<(script|style).*?</\1>|<[^>]{1,200}>", " ", text, flags=re.DOTALL | re.IGNORECASE)
    lines = [" ".join(line.split()) for line in plain.splitlines() if line.strip()]
    if lines and lines[0].startswith("SPARQL-QUERY"):
        lines = [line for line in lines if "Exception" in line] or lines
    return lines[0][:200].rstrip(".") if lines else ""


def _requested_pause(headers: Message) -> float | None:
    retry_after = (headers.get("Retry-After") or "").strip()
    if retry_after.isdigit():
        return float(retry_after)
    until = _parse_time(retry_after)
    if until is None:
        return None
    # Prefer the clock of the endpoint: ours may be wrong.
    now = _parse_time(headers.get("Date") or "") or datetime.now(timezone.utc)
    return max(0.0, (until - now).total_seconds())


def _parse_time(text: str) -> datetime | None:
    try:
        parsed = parsedate_to_datetime(text)
    except (TypeError, ValueError):
        return None
    return parsed.replace(tzinfo=parsed.tzinfo or timezone.utc)
