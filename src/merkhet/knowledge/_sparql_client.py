"""Client for SPARQL endpoints, with a response cache and detection of incomplete responses."""

from __future__ import annotations

import gzip
import json
import re
import time
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urldefrag, urlencode

from merkhet.core.credentials import basic_authorization, read_credential, refuse_user_info
from merkhet.core.errors import InputError, MerkhetError
from merkhet.core.files import atomic_path, cache_folder
from merkhet.core.http_client import (
    CertificateError,
    ConnectError,
    HttpClient,
    HttpError,
    Limits,
    ResponseTimeoutError,
    ResponseTooLargeError,
)
from merkhet.core.http_response import Response
from merkhet.core.http_retry import RetriesExhaustedError, RetryableError, RetryPolicy, retry
from merkhet.core.ids import digest
from merkhet.core.redaction import display_address, redact_message, register_secret
from merkhet.core.text import printable
from merkhet.core.version import __version__
from merkhet.knowledge._sparql_results import (
    BrokenResultsError,
    LargeResultsError,
    MarkupError,
    NoTableError,
    PageRows,
    Row,
    StoredRows,
    read_results,
    read_stored,
)

ACCEPT = "application/sparql-results+json"
USER_AGENT = f"merkhet/{__version__}; knowledge import"
_MAX_REDIRECTS = 10
_CACHE_BLOCK = 1 << 16
Rows = TypeVar("Rows", PageRows, StoredRows)
_TIMEOUT_MESSAGE = re.compile(
    r"time[d ]*[ -]?out|TimeoutException|execution time|QueryInterrupted|time limit", re.IGNORECASE
)
_STACK_TRACE = re.compile(r"java\.[\w.]{1,200}(Exception|Error)|\n[ \t]+at [\w.$]{1,200}\(")
_SCRIPT_START = re.compile(r"<(script|style)", re.IGNORECASE)
_VIRTUOSO_SORT_LIMIT = re.compile(r"SR353|Sorted TOP clause")


class EndpointError(MerkhetError):
    """Failure of an endpoint to answer a query (exit code 1)."""


class UnreachableError(EndpointError, InputError):
    """Failure to reach an endpoint at the address (exit code 2)."""

    exit_code = 2


class OverloadError(Exception):
    """A response that is too large or too slow; a request for fewer rows may succeed."""


class _TemporaryError(RetryableError):
    """A failure that a retry may resolve.

    Args:
        reason: The predicate of a sentence whose subject is the address, such as "cannot be reached".
        final: The class of the error to raise after the last attempt.
        retry_after: Seconds to wait before the next attempt, if the server states them.
    """

    def __init__(self, reason: str, final: type[Exception], retry_after: float | None = None) -> None:
        super().__init__(reason, retry_after)
        self.final = final


class DeadlineError(OverloadError):
    """A response that was not complete within the timeout."""


class SortLimitError(OverloadError):
    """Refusal of a Virtuoso endpoint to sort this many rows in a query with LIMIT."""


@dataclass(frozen=True)
class RequestSettings:
    """Settings for requests to an endpoint."""

    page: int = 5000
    """The number of rows per page."""
    retries: int = 5
    timeout: float = 120.0
    """Maximum seconds for a complete response."""
    max_bytes: int = 2_000_000_000
    """Maximum bytes of a response."""
    wait: float = 1.0
    """Seconds before the first retry; the pause doubles with each further retry."""
    cache: str = "yes"
    """``yes`` reads and writes the cache, ``refresh`` only writes it, ``no`` does neither."""
    count: bool = True
    """Whether to count the rows first and compare the number of received rows with the count."""
    user_agent: str = USER_AGENT
    key: str = ""
    """The environment variable with ``user:password`` or a bearer token; empty if the endpoint needs no login."""


class Endpoint:
    """A SPARQL endpoint with a response cache; an incomplete response raises an error."""

    def __init__(self, address: str, settings: RequestSettings, say: Callable[[str], None] = lambda line: None) -> None:
        self.settings = settings
        self._say = say
        self.cache_hits = 0
        self.max_rows: int | None = None
        """The number of rows that the endpoint returns at most, once it has said so (``X-SPARQL-MaxRows``)."""
        self.is_virtuoso = False
        """Whether a response named Virtuoso as its server."""
        limits = Limits(settings.timeout, settings.max_bytes)
        headers = {"Accept": ACCEPT, "User-Agent": settings.user_agent}
        refuse_user_info(address)
        user, credentials = _read_login(settings.key)
        try:
            self._client = HttpClient(
                address, limits, headers=headers, credentials=credentials, max_redirects=_MAX_REDIRECTS
            )
        except ValueError:
            # The message omits the address and the error, since either may contain a password.
            raise InputError(
                "the address of the endpoint is not valid; write it as https://HOST/sparql or http://HOST:PORT/sparql"
            ) from None
        self.display_name = display_address(address)
        self._key = [urldefrag(address).url, user, ACCEPT]

    def ask(self, text: str, retries: int | None = None) -> list[Row]:
        """Run the query ``text`` and return all result rows, from the cache if possible.

        Raises:
            OverloadError: The response is too large or too slow; a request for fewer rows may succeed.
            MerkhetError: The endpoint failed, or it rejects the query.
        """
        return self._ask(text, retries, PageRows)

    def ask_unpaged(self, text: str) -> StoredRows:
        """Run the query ``text`` like ``ask``, and return any number of rows, which are on disk if they are many."""
        return self._ask(text, None, StoredRows)

    def _ask(self, text: str, retries: int | None, make_rows: Callable[[], Rows]) -> Rows:
        rows = make_rows()
        cached = self._read_cache(text, rows.add)
        if "rows" in cached:
            self.cache_hits += 1
            self.max_rows = cached.get("max_rows", self.max_rows)
            self.is_virtuoso = cached.get("virtuoso", self.is_virtuoso)
            return rows
        rows = self._request_with_retries(text, self.settings.retries if retries is None else retries, make_rows)
        facts_of_server = {"max_rows": self.max_rows, "virtuoso": self.is_virtuoso}
        self.write_cache(text, {"rows": rows, **{key: value for key, value in facts_of_server.items() if value}})
        return rows

    def say(self, line: str) -> None:
        """Print a line, which may quote the endpoint, without control characters."""
        self._say(printable(line))

    def close(self) -> None:
        """Close the connection to the endpoint."""
        self._client.close()

    def read_cache(self, text: str) -> dict[str, Any]:
        """Return the cache entry of the query ``text``; empty if the entry is missing or damaged."""
        rows = PageRows()
        content = self._read_cache(text, rows.add)
        return {**content, "rows": rows} if "rows" in content else content

    def _read_cache(self, text: str, add: Callable[[Row, int], None]) -> dict[str, Any]:
        if self.settings.cache != "yes":
            return {}
        try:
            with gzip.open(self._cache_path(text)) as file:
                return read_stored(iter(lambda: file.read(_CACHE_BLOCK), b""), add)
        except (OSError, EOFError, zlib.error, BrokenResultsError, NoTableError, LargeResultsError):
            return {}

    def write_cache(self, text: str, content: Mapping[str, Any]) -> None:
        """Write the cache entry of the query ``text``."""
        if self.settings.cache != "no":
            with (
                atomic_path(self._cache_path(text)) as path,
                open(path, "wb") as file,
                gzip.GzipFile("", "wb", 3, file, mtime=0) as packed,
            ):
                for part in _json_parts(content):
                    packed.write(part.encode("utf-8", "surrogatepass"))

    def _cache_path(self, text: str) -> Path:
        name = digest([*self._key, text])
        return cache_folder() / "sparql" / name[:2] / f"{name}.json.gz"

    def _request_with_retries(self, text: str, retries: int, make_rows: Callable[[], Rows]) -> Rows:
        policy = RetryPolicy(retries + 1, self.settings.wait)
        try:
            return retry(lambda: self._request(text, make_rows()), policy, self._wait)
        except RetriesExhaustedError as error:
            raise self._final_error(error) from error

    def _wait(self, failure: RetryableError, attempt: int, pause: float) -> None:
        if pause >= 5:
            self.say(f"{self.display_name}: {failure}; trying again in {pause:.0f} s")
        time.sleep(pause)

    def _final_error(self, error: RetriesExhaustedError) -> Exception:
        failure = error.failure
        final = failure.final if isinstance(failure, _TemporaryError) else EndpointError
        if issubclass(final, OverloadError):
            return final(str(failure))
        times = "once" if error.attempts == 1 else f"{error.attempts} times"
        return final(
            f"{self.display_name} {failure} (tried {times}). Nothing was imported. Check the address and the network, "
            "or import again later: complete pages are cached and not requested again."
        )

    def _request(self, text: str, rows: Rows) -> Rows:
        """Run a query once, and add its result to ``rows`` while it arrives."""
        body = urlencode({"query": text}).encode()
        try:
            with self._client.stream(body, "application/x-www-form-urlencoded") as (response, blocks):
                if response.headers.get("server", "").startswith("Virtuoso"):
                    self.is_virtuoso = True
                if not response.is_success:
                    raise self._http_failure(response)
                if response.headers.get("x-sql-state", "").startswith("S1TAT"):
                    raise OverloadError("Virtuoso ran out of time and returned only some of the rows")
                max_rows = response.headers.get("x-sparql-maxrows", "")
                if max_rows.isdecimal():
                    self.max_rows = int(max_rows)
                self._read_rows(response, blocks, rows)
        except CertificateError as error:
            raise EndpointError(f"{self.display_name}: {error}") from error
        except ConnectError as error:
            raise _TemporaryError(f"cannot be reached: {error.detail}", UnreachableError) from error
        except ResponseTimeoutError as error:
            raise DeadlineError(f"no complete answer within {self.settings.timeout:g} s") from error
        except ResponseTooLargeError as error:
            raise OverloadError(str(error)) from error
        except HttpError as error:
            raise _TemporaryError(f"broke off its answer ({error})", OverloadError) from error
        return rows

    def _http_failure(self, response: Response) -> Exception:
        code, text, pause = response.status, response.text, response.retry_after
        message = _error_message(text)
        summary = (
            f"HTTP {code}: {message}" if message else f"HTTP {code} {redact_message(response.reason)[:200]}".rstrip()
        ) + response.redirect_note
        if _VIRTUOSO_SORT_LIMIT.search(text):
            return SortLimitError(message)
        if code in (408, 504) or (code >= 500 and pause is None and _TIMEOUT_MESSAGE.search(text)):
            return OverloadError(summary)
        if code == 429 or code >= 500:
            wait = f", wait {pause:.0f} s" if pause else ""
            return _TemporaryError(f"answered {summary}{wait}", EndpointError, pause)
        if code == 400:
            return InputError(f"{self.display_name} does not understand the query ({summary}). Correct the query.")
        return EndpointError(
            f"{self.display_name} refused the query ({summary}). Check the address, and whether you may ask it."
        )

    def _read_rows(self, response: Response, blocks: Iterator[bytes], rows: Rows) -> None:
        note = response.redirect_note
        try:
            read_results(blocks, rows.add)
        except MarkupError as error:
            raise EndpointError(
                f"{self.display_name} answered with HTML or XML instead of JSON results{note}. Check the address: "
                "it must be that of the query service, such as https://query.wikidata.org/sparql"
            ) from error
        except BrokenResultsError as error:
            if _STACK_TRACE.search(error.rest):
                raise OverloadError("the answer ends in an error message of the server") from error
            raise _TemporaryError(f"broke off its answer (the JSON is not whole){note}", OverloadError) from error
        except NoTableError as error:
            raise EndpointError(
                f"{self.display_name} answered with JSON that is not a table of rows{note}. Check the address."
            ) from error
        except LargeResultsError as error:
            raise OverloadError(str(error)) from error


def _json_parts(content: Mapping[str, Any]) -> Iterator[str]:
    """Yield the JSON of a cache entry, row by row."""
    separator = "{"
    for key, value in content.items():
        yield f"{separator}{json.dumps(key)}: "
        if key == "rows":
            row_separator = "["
            for row in value:
                yield row_separator + json.dumps(row, ensure_ascii=False)
                row_separator = ", "
            yield "[]" if row_separator == "[" else "]"
        else:
            yield json.dumps(value)
        separator = ", "
    yield "}"


def _error_message(text: str) -> str:
    """Return the first line of an error page; for a stack trace, the first line that names an exception."""
    plain = re.sub(r"<[^>]{1,200}>", " ", _without_scripts(text))
    lines = [" ".join(line.split()) for line in plain.splitlines() if line.strip()]
    if lines and lines[0].startswith("SPARQL-QUERY"):
        lines = [line for line in lines if "Exception" in line] or lines
    return redact_message(lines[0])[:200].rstrip(".") if lines else ""


def _without_scripts(text: str) -> str:
    """Remove scripts and styles from a page, in time proportional to its length."""
    parts, position = [], 0
    while start := _SCRIPT_START.search(text, position):
        end = re.compile(f"</{start[1]}>", re.IGNORECASE).search(text, start.end())
        if end is None:
            break
        parts.append(text[position : start.start()])
        position = end.end()
    return " ".join([*parts, text[position:]])


def _read_login(variable: str) -> tuple[str | None, dict[str, str]]:
    """Read the login that an environment variable holds.

    Returns:
        The user, or the variable for a bearer token, which identifies cached responses; and the headers to send.
    """
    if not variable:
        return None, {}
    login = read_credential(variable, "the option 'key'", "the endpoint")
    user, separator, password = login.partition(":")
    if not separator:
        return variable, {"Authorization": f"Bearer {login}"}
    register_secret(password)
    return user, {"Authorization": basic_authorization(user, password)}
