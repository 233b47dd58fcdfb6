"""A client for SPARQL endpoints that takes no answer but a whole one: retries, cache, cut-off answers noticed."""

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
_LONGEST_PAUSE = 60.0
_LONGEST_REQUEST = 600.0
_TIMED_OUT = re.compile(r"time[d ]*[ -]?out|TimeoutException|execution time|QueryInterrupted|time limit", re.IGNORECASE)
_STACK_TRACE = re.compile(r"java\.[\w.]+(Exception|Error)|\n\s+at [\w.$]+\(")
_VIRTUOSO_SORT = re.compile(r"SR353|Sorted TOP clause")

Row = Mapping[str, Mapping[str, str]]
"""A row of an answer, as SPARQL's JSON has it."""


class EndpointError(MerkhetError):
    """An endpoint did not give what was asked of it (exit code 1)."""


class UnreachableError(EndpointError, InputError):
    """There is no endpoint at the address, or no way to it (exit code 2)."""

    exit_code = 2


class TooMuchError(Exception):
    """The endpoint cannot give so much at once; less may do."""


class _AgainError(Exception):
    """Something that may pass: the same request may be answered later, after the pause that was asked for."""

    def __init__(self, reason: str, pause: float | None = None, cut: bool = False, reached: bool = True) -> None:
        super().__init__(reason)
        self.reached = reached
        self.pause = pause
        self.cut = cut


class SortLimitError(TooMuchError):
    """Virtuoso will not sort and cut so many rows at once."""


@dataclass(frozen=True)
class RequestSettings:
    """How an endpoint is asked; ``cache`` is yes, no or refresh, the times are seconds."""

    page: int = 5000
    retries: int = 5
    timeout: float = 65.0
    wait: float = 1.0
    cache: str = "yes"
    count: bool = True
    user_agent: str = USER_AGENT


def display_address(address: str) -> str:
    """An address as messages may show it: without a password, and without parameters, which may hold a key."""
    parts = urlsplit(address)
    bare = (parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", "")
    return urlunsplit(bare) + ("?..." if parts.query else "")


class Endpoint:
    """One endpoint: gives whole answers, from the cache if they were given before, or says in one line why not."""

    def __init__(self, address: str, manners: RequestSettings, say: Callable[[str], None] = lambda line: None) -> None:
        self.manners = manners
        self.say = say
        self.kept = 0
        parts = urlsplit(address)
        host = parts.netloc.rpartition("@")[2]
        if parts.scheme not in ("http", "https") or not host:
            raise InputError("the endpoint's address should begin with http:// or https:// and name a host")
        self.shown = display_address(address)
        self._address = urlunsplit((parts.scheme, host, parts.path, parts.query, ""))
        self._headers = {"Accept": ACCEPT, "Accept-Encoding": "gzip", "User-Agent": manners.user_agent}
        if parts.username is not None:
            pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}".encode()
            self._headers["Authorization"] = f"Basic {base64.b64encode(pair).decode()}"
        self._key = [self._address, parts.username, ACCEPT]
        self._opener = urllib.request.build_opener(_Redirects)

    def ask(self, text: str, retries: int | None = None) -> list[Row]:
        """The rows of the whole answer; raises TooMuchError where less may do, else MerkhetError in one line."""
        kept = self.recall(text)
        if "rows" in kept:
            self.kept += 1
            return list(kept["rows"])
        rows = self._fetch(text, self.manners.retries if retries is None else retries)
        self.remember(text, {"rows": rows})
        return rows

    def recall(self, text: str) -> dict[str, Any]:
        """What is kept for a query; empty if nothing is, or nothing whole."""
        if self.manners.cache != "yes":
            return {}
        try:
            kept = json.loads(gzip.decompress(self._file(text).read_bytes()))
        except (OSError, EOFError, zlib.error, ValueError, RecursionError):
            return {}
        return kept if isinstance(kept, dict) else {}

    def remember(self, text: str, content: Mapping[str, Any]) -> None:
        """Keep something for a query."""
        if self.manners.cache != "no":
            with atomic_path(self._file(text)) as path:
                path.write_bytes(gzip.compress(json.dumps(content, ensure_ascii=False).encode(), 3, mtime=0))

    def _file(self, text: str) -> Path:
        name = digest([*self._key, text])
        return cache_folder() / "sparql" / name[:2] / f"{name}.json.gz"

    def _fetch(self, text: str, retries: int) -> list[Row]:
        attempt = 0
        while True:
            try:
                return self._parse(self._once(text))
            except _AgainError as trouble:
                pause = trouble.pause
                if pause is None:
                    pause = min(_LONGEST_PAUSE, self.manners.wait * 2**attempt) * random.uniform(0.5, 1.5)
                if attempt == retries or pause > _LONGEST_REQUEST:
                    raise self._given_up(trouble, attempt + 1) from trouble
                if pause >= 5:
                    self.say(f"{self.shown}: {trouble}; trying again in {pause:.0f} s")
                time.sleep(pause)
            attempt += 1

    def _given_up(self, trouble: _AgainError, tries: int) -> Exception:
        if trouble.cut:
            return TooMuchError(str(trouble))
        times = "once" if tries == 1 else f"{tries} times"
        return (EndpointError if trouble.reached else UnreachableError)(
            f"{self.shown} {trouble} (tried {times}). Nothing was imported. Check the address and the network, "
            "or import again later: pages that came whole are kept and not asked for again."
        )

    def _once(self, text: str) -> bytes:
        request = urllib.request.Request(self._address, urlencode({"query": text}).encode(), self._headers)
        try:
            with self._opener.open(request, timeout=self.manners.timeout) as response:
                body = _whole_body(response, time.monotonic() + max(_LONGEST_REQUEST, self.manners.timeout))
                if response.headers.get("X-SQL-State", "").startswith("S1TAT"):
                    raise TooMuchError("Virtuoso ran out of time and gave a part of the rows")
                return body
        except urllib.error.HTTPError as error:
            with error:
                raise self._http_trouble(error) from error
        except urllib.error.URLError as error:
            if isinstance(error.reason, ssl.SSLCertVerificationError):
                raise EndpointError(f"{self.shown}: its certificate is not trusted ({error.reason.reason})") from error
            reason = getattr(error.reason, "strerror", None) or error.reason
            raise _AgainError(f"cannot be reached: {reason}", reached=False) from error
        except TimeoutError as error:
            raise TooMuchError(f"there was no answer in {self.manners.timeout:g} s") from error
        except (http.client.HTTPException, OSError, EOFError, zlib.error) as error:
            raise _AgainError(f"broke off its answer ({first_line(error)})", cut=True) from error

    def _http_trouble(self, error: urllib.error.HTTPError) -> Exception:
        code, text = error.code, _body_text(error)
        said = _message(text)
        line = f"HTTP {code}" + (f": {said}" if said else f" {error.reason}".split("\n")[0].rstrip())
        pause = _pause_asked(error.headers)
        if _VIRTUOSO_SORT.search(text):
            return SortLimitError(said)
        if code in (408, 504) or (code >= 500 and pause is None and _TIMED_OUT.search(text)):
            return TooMuchError(line)
        if code == 429 or code >= 500:
            return _AgainError(f"answered {line}" + (f", wait {pause:.0f} s" if pause else ""), pause)
        if code == 400:
            return InputError(f"{self.shown} does not understand the query ({line}). Mend the query.")
        return EndpointError(f"{self.shown} refused the query ({line}). Check the address, and whether you may ask it.")

    def _parse(self, body: bytes) -> list[Row]:
        try:
            answer = json.loads(body.decode("utf-8"))
        except (ValueError, RecursionError) as error:
            start = body[:200].lstrip().lower()
            if start.startswith(b"<"):
                raise EndpointError(
                    f"{self.shown} answered with HTML or XML instead of JSON results. Check the address: "
                    "it should be that of the query service, such as https://query.wikidata.org/sparql"
                ) from error
            rest = body[getattr(error, "pos", 0) :].decode("utf-8", "replace")
            if _STACK_TRACE.search(rest):
                raise TooMuchError("the answer ends in an error message of the server") from error
            raise _AgainError("broke off its answer (the JSON is not whole)", cut=True) from error
        results = answer.get("results") if isinstance(answer, dict) else None
        rows = results.get("bindings") if isinstance(results, dict) else None
        if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
            raise EndpointError(f"{self.shown} answered with JSON that is no table of rows. Check the address.")
        return rows


class _Redirects(urllib.request.HTTPRedirectHandler):
    """The question goes along to where the endpoint has moved, by http or https; a password stays with its host."""

    def redirect_request(
        self, req: urllib.request.Request, fp: Any, code: int, msg: str, headers: Any, newurl: str
    ) -> urllib.request.Request | None:
        old, new = urlsplit(req.full_url), urlsplit(newurl)
        if new.scheme not in ("http", "https") or new.username is not None:
            raise urllib.error.HTTPError(req.full_url, code, "redirect", headers, fp)
        kept = {name: value for name, value in req.header_items() if name.lower() not in ("host", "content-length")}
        if old.netloc != new.netloc or new.scheme != old.scheme != "http":
            kept = {name: value for name, value in kept.items() if name.lower() != "authorization"}
        return urllib.request.Request(newurl, req.data if code != 303 else None, kept)

    http_error_307 = http_error_308 = urllib.request.HTTPRedirectHandler.http_error_302


def _whole_body(response: Any, deadline: float) -> bytes:
    blocks = []
    while block := response.read1(1 << 20):
        blocks.append(block)
        if time.monotonic() > deadline:
            raise TimeoutError
    # A read in blocks does not itself notice that the connection was closed before the announced length.
    if response.length:
        raise http.client.IncompleteRead(b"", response.length)
    body = b"".join(blocks)
    return gzip.decompress(body) if response.headers.get("Content-Encoding", "").lower() == "gzip" else body


def _body_text(error: urllib.error.HTTPError) -> str:
    try:
        return _whole_body(error.fp, time.monotonic() + _LONGEST_PAUSE)[:100_000].decode("utf-8", "replace")
    except (http.client.HTTPException, OSError, EOFError, zlib.error):
        return ""


def _message(text: str) -> str:
    """The line of an error page that says most: the first, or in a stack trace the first that names an error."""
    plain = re.sub(r"<(script|style).*?</\1>|<[^>]{1,200}>", " ", text, flags=re.DOTALL | re.IGNORECASE)
    lines = [" ".join(line.split()) for line in plain.splitlines() if line.strip()]
    if lines and lines[0].startswith("SPARQL-QUERY"):
        lines = [line for line in lines if "Exception" in line] or lines
    return lines[0][:200].rstrip(".") if lines else ""


def _pause_asked(headers: Message) -> float | None:
    given = (headers.get("Retry-After") or "").strip()
    if given.isdigit():
        return float(given)
    until = _time(given)
    if until is None:
        return None
    # By the endpoint's clock, if it says what time it is: ours may be wrong, and may jump.
    now = _time(headers.get("Date") or "") or datetime.now(timezone.utc)
    return max(0.0, (until - now).total_seconds())


def _time(text: str) -> datetime | None:
    try:
        found = parsedate_to_datetime(text)
    except (TypeError, ValueError):
        return None
    return found.replace(tzinfo=found.tzinfo or timezone.utc)
