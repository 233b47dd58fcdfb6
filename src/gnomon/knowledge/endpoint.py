"""A client for SPARQL endpoints that takes no answer but a whole one: retries, cache, pages, truncation noticed."""

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
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from email.message import Message
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlencode, urlsplit, urlunsplit

from gnomon.foundation import GnomonError, InputError, atomic_path, cache_folder, digest
from gnomon.foundation.errors import first_line
from gnomon.foundation.version import __version__
from gnomon.knowledge.ready_queries import COUNT, Query

ACCEPT = "application/sparql-results+json"
USER_AGENT = f"gnomon/{__version__}; knowledge import"
_LONGEST_PAUSE = 60.0
_LONGEST_REQUEST = 600.0
_TIMED_OUT = re.compile(r"time[d ]*[ -]?out|TimeoutException|execution time|QueryInterrupted|time limit", re.IGNORECASE)
_STACK_TRACE = re.compile(r"java\.[\w.]+(Exception|Error)|\n\s+at [\w.$]+\(")
_VIRTUOSO_SORT = re.compile(r"SR353|Sorted TOP clause")
_TAIL = 20

Row = Mapping[str, Mapping[str, str]]
"""A row of an answer, as SPARQL's JSON has it."""


class EndpointError(GnomonError):
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


class _SortLimitError(TooMuchError):
    """Virtuoso will not sort and cut so many rows at once."""


@dataclass(frozen=True)
class Manners:
    """How an endpoint is asked; ``cache`` is yes, no or refresh, the times are seconds."""

    page: int = 5000
    retries: int = 5
    timeout: float = 65.0
    wait: float = 1.0
    cache: str = "yes"
    count: bool = True
    user_agent: str = USER_AGENT


def shown_address(address: str) -> str:
    """An address as messages may show it: without a password, and without parameters, which may hold a key."""
    parts = urlsplit(address)
    bare = (parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", "")
    return urlunsplit(bare) + ("?..." if parts.query else "")


class Endpoint:
    """One endpoint: gives whole answers, from the cache if they were given before, or says in one line why not."""

    def __init__(self, address: str, manners: Manners, say: Callable[[str], None] = lambda line: None) -> None:
        self.manners = manners
        self.say = say
        self.kept = 0
        parts = urlsplit(address)
        host = parts.netloc.rpartition("@")[2]
        if parts.scheme not in ("http", "https") or not host:
            raise InputError("the endpoint's address should begin with http:// or https:// and name a host")
        self.shown = shown_address(address)
        self._address = urlunsplit((parts.scheme, host, parts.path, parts.query, ""))
        self._headers = {"Accept": ACCEPT, "Accept-Encoding": "gzip", "User-Agent": manners.user_agent}
        if parts.username is not None:
            pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}".encode()
            self._headers["Authorization"] = f"Basic {base64.b64encode(pair).decode()}"
        self._key = [self._address, parts.username, ACCEPT]
        self._opener = urllib.request.build_opener(_Redirects)

    def ask(self, text: str, retries: int | None = None) -> list[Row]:
        """The rows of the whole answer; raises TooMuchError where less may do, else GnomonError in one line."""
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
        except (OSError, EOFError, zlib.error, ValueError):
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
            return _SortLimitError(said)
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
        except ValueError as error:
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


class Paging:
    """A query read page by page, so that every row comes: each page begins with the last row of the one before.

    A short page is not the end: the end is where nothing follows the last row.
    """

    def __init__(self, endpoint: Endpoint, query: Query) -> None:
        self.endpoint, self.query = endpoint, query
        self._where = f"{endpoint.shown}, {query.name}"
        self.size = endpoint.manners.page
        self.got = 0
        self._next = 0
        self._tail: list[Row] = []
        self._nested = False

    def count(self) -> int | None:
        """How many rows there are to come; None if that is not to be asked, or the endpoint cannot say."""
        if not self.endpoint.manners.count:
            return None
        try:
            rows = self.endpoint.ask(self.query.parts.count(), min(1, self.endpoint.manners.retries))
            total = int(rows[0][COUNT]["value"])
        except UnreachableError:
            return None  # The first page says so, after all its retries.
        except (TooMuchError, GnomonError, LookupError, ValueError) as error:
            self.endpoint.say(f"{self._where}: the rows could not be counted ({first_line(error)}); going on without")
            return None
        return total if self.query.limit is None else min(total, self.query.limit)

    def read(self, expected: int | None = None) -> Iterator[list[Row]]:
        """The pages; refuses to end with fewer rows than expected."""
        yield from [self._as_it_is()] if self.query.parts.sliced else self._pages()
        if expected is not None and self.got < expected:
            raise EndpointError(
                f"{self._where}: {expected} rows were counted and {self.got} came, so the endpoint cuts its answers "
                "or its data changed. Nothing was imported. Import again with cache=refresh, or narrow the query."
            )

    def _as_it_is(self) -> list[Row]:
        try:
            rows = self.endpoint.ask(self.query.text)
        except TooMuchError as error:
            raise EndpointError(
                f"{self._where}: {error}. Nothing was imported. Lower the LIMIT of the query, or leave it out: "
                "then gnomon asks page by page."
            ) from error
        self.got = len(rows)
        return rows

    def _pages(self) -> Iterator[list[Row]]:
        limit, short, stuck = self.query.limit, 0, 0
        while limit is None or self.got < limit:
            # After a single row the same question would be asked again: what follows it is asked for instead.
            overlap = 1 if self._next > 1 else 0
            wanted = self.size if limit is None else min(self.size, limit - self.got + overlap)
            rows, wanted = self._ask(wanted, self._next - overlap)
            length, full = len(rows), len(rows) >= wanted
            if overlap and (not rows or _key(rows[0]) != _key(self._tail[-1])):
                stuck += 1
                rows, full = self._find_again(wanted, stuck)
            new = rows[overlap:]
            if new:
                if short == 1:
                    raise EndpointError(f"{self._where}: the endpoint gives one row at once. Nothing was imported.")
                if short:
                    self.size = short
                    self.endpoint.say(f"{self._where}: it gives no more than {short} rows at once; asking for so many")
                short, stuck = 0 if full else length, 0
                self.got, self._next = self.got + len(new), self._next + len(new)
                self._tail = [*self._tail, *new][-_TAIL:]
                yield new
            elif not full or not stuck:
                break

    def _find_again(self, wanted: int, tries: int) -> tuple[list[Row], bool]:
        """The rows from the last known one on, after others were added or removed before it."""
        start = max(0, self._next - wanted // 2 - 1)
        rows, wanted = self._ask(wanted, start)
        keys = [_key(row) for row in rows]
        for known in map(_key, reversed(self._tail)):
            if known in keys and tries <= 3:
                index = keys.index(known)
                self._next = start + index + 1
                return rows[index:], len(keys) >= wanted
        raise EndpointError(
            f"{self._where}: after {self.got} rows the next page does not go on where the last one ended, so the order "
            "is not stable or the data changed. Nothing was imported. Import again with cache=refresh."
        )

    def _ask(self, wanted: int, offset: int) -> tuple[list[Row], int]:
        """A page, and how many rows it was asked for in the end; smaller pages where so many are too many."""
        smallest = max(2, self.endpoint.manners.page // 64)
        too_much = []
        while True:
            text = self.query.parts.page(wanted, offset, self._nested)
            known = self.endpoint.recall(text)
            try:
                if known.get("sort"):
                    raise _SortLimitError
                if "lower" in known:
                    self.size = wanted = min(wanted, known["lower"])
                    continue
                rows = self.endpoint.ask(text)
            except _SortLimitError as error:
                if self._nested:
                    raise EndpointError(f"{self._where}: the endpoint cannot sort so many rows. Narrow it.") from error
                self._nested = True
                self.endpoint.remember(text, {"sort": True})
            except TooMuchError as error:
                if wanted <= smallest:
                    raise EndpointError(
                        f"{self._where}: {error}, even for {wanted} rows at once. Nothing was imported. "
                        "Narrow the query (fewer predicates, a class), raise timeout=, or import a dump instead."
                    ) from error
                too_much.append(text)
                self.size = wanted = max(smallest, wanted // 2)
                self.endpoint.say(f"{self._where}: {error}; asking for {wanted} rows at once")
            else:
                if len(rows) > wanted:
                    raise EndpointError(f"{self._where}: it gave {len(rows)} rows, and was asked for {wanted}.")
                # An import that is begun again need not wait for the same timeouts.
                for text in too_much:
                    self.endpoint.remember(text, {"lower": wanted})
                return rows, wanted


def _key(row: Row) -> str:
    # The same blank node has another name in each answer.
    return json.dumps({name: cell if cell["type"] != "bnode" else {} for name, cell in row.items()}, sort_keys=True)


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
    try:
        until = parsedate_to_datetime(given)
    except (TypeError, ValueError):
        return None
    return max(0.0, (until.replace(tzinfo=until.tzinfo or timezone.utc) - datetime.now(timezone.utc)).total_seconds())
