"""Paged reading of all rows of a SPARQL query."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing

from merkhet.core.errors import MerkhetError, first_line
from merkhet.core.text import counted
from merkhet.knowledge._sparql_client import (
    Endpoint,
    EndpointError,
    OverloadError,
    SortLimitError,
    UnreachableError,
)
from merkhet.knowledge._sparql_results import Row
from merkhet.knowledge.sparql_queries import COUNT, Query

_TAIL_ROWS = 20
_UNPAGED_BATCH = 10_000
"""The number of rows to pass on at once of a query that is asked without pages."""


class PagedQuery:
    """A query that is read page by page.

    Each page overlaps the previous page by one row, which reveals added or removed rows. A page with fewer rows than
    requested is not taken for the last page: reading ends when no row follows the last row.
    """

    def __init__(self, endpoint: Endpoint, query: Query) -> None:
        self.endpoint, self.query = endpoint, query
        self._where = f"{endpoint.display_name}, {query.name}"
        self.size = endpoint.settings.page
        self.received = 0
        self._next = 0
        self._tail: list[Row] = []
        self._nested = False

    def count(self) -> int | None:
        """Return the number of rows of the query; None if counting is off or fails."""
        if not self.endpoint.settings.count:
            return None
        try:
            rows = self.endpoint.ask(self.query.parts.count(), min(1, self.endpoint.settings.retries))
            total = int(rows[0][COUNT]["value"])
        except UnreachableError:
            return None  # The request for the first page reports this error after all retries.
        except (OverloadError, MerkhetError, LookupError, ValueError) as error:
            self.endpoint.say(
                f"{self._where}: the rows could not be counted ({first_line(error)}); continuing without a count"
            )
            return None
        return total if self.query.limit is None else min(total, self.query.limit)

    def read(self, expected: int | None = None) -> Iterator[list[Row]]:
        """Yield the rows of the query page by page.

        Raises:
            EndpointError: The endpoint failed, or returned fewer rows than ``expected``.
        """
        yield from self._read_unpaged() if self.query.parts.sliced else self._pages()
        if expected is not None and self.received < expected:
            raise EndpointError(
                f"{self._where}: {counted(expected, 'row was', 'rows were')} counted, but {self.received} came: the "
                "endpoint truncates its answers, or its data changed. Nothing was imported. Import again with "
                "cache=refresh, or narrow the query."
            )

    def _read_unpaged(self) -> Iterator[list[Row]]:
        try:
            rows = self.endpoint.ask_unpaged(self.query.text)
        except OverloadError as error:
            raise EndpointError(
                f"{self._where}: {error}. Nothing was imported. Lower the LIMIT of the query, or leave it out: "
                "then merkhet asks page by page."
            ) from error
        self.received = len(rows)
        with closing(rows):
            yield from rows.batches(_UNPAGED_BATCH)

    def _pages(self) -> Iterator[list[Row]]:
        total_limit, short_length, misalignments = self.query.limit, 0, 0
        while total_limit is None or self.received < total_limit:
            # No overlap after a single row: the overlapping request would start at the same offset again.
            overlap = 1 if self._next > 1 else 0
            page_size = self.size if total_limit is None else min(self.size, total_limit - self.received + overlap)
            rows, page_size = self._request_page(page_size, self._next - overlap)
            length, full = len(rows), len(rows) >= page_size
            if overlap and (not rows or _key(rows[0]) != _key(self._tail[-1])):
                misalignments += 1
                rows, full = self._realign(page_size, misalignments)
            new = rows[overlap:]
            if new:
                if short_length == 1:
                    raise EndpointError(
                        f"{self._where}: the endpoint returns one row per page. Nothing was imported. "
                        "Import a dump instead."
                    )
                if short_length:
                    self.size = short_length
                    self.endpoint.say(
                        f"{self._where}: it returns at most {short_length} rows per page; using pages of that size"
                    )
                short_length, misalignments = 0 if full else length, 0
                self.received, self._next = self.received + len(new), self._next + len(new)
                self._tail = [*self._tail, *new][-_TAIL_ROWS:]
                yield new
            elif not full or not misalignments:
                break

    def _realign(self, page_size: int, attempts: int) -> tuple[list[Row], bool]:
        """Find the last known row in a page that starts earlier, after rows were added or removed before it.

        Returns:
            The rows from the last known row on, and whether the page was full.
        """
        start = max(0, self._next - page_size // 2 - 1)
        rows, page_size = self._request_page(page_size, start)
        keys = [_key(row) for row in rows]
        for known in map(_key, reversed(self._tail)):
            if known in keys and attempts <= 3:
                index = keys.index(known)
                self._next = start + index + 1
                return rows[index:], len(keys) >= page_size
        raise EndpointError(
            f"{self._where}: after {self.received} rows the next page does not continue where the last one ended: the "
            "order is not stable or the data changed. Nothing was imported. Import again with cache=refresh."
        )

    def _request_page(self, page_size: int, offset: int) -> tuple[list[Row], int]:
        """Request a page; if the endpoint is overloaded, halve the page size and try again.

        Returns:
            The rows, and the page size of the last request.
        """
        smallest = max(2, self.endpoint.settings.page // 64)
        overloaded = []
        while True:
            text = self.query.parts.page(page_size, offset, self._nested)
            cached = self.endpoint.read_cache(text)
            try:
                if cached.get("sort"):
                    raise SortLimitError
                if "lower" in cached:
                    self.size = page_size = min(page_size, cached["lower"])
                    continue
                rows = self.endpoint.ask(text)
            except SortLimitError as error:
                if self._nested:
                    raise EndpointError(
                        f"{self._where}: the endpoint cannot sort this many rows. Narrow the query."
                    ) from error
                self._nested = True
                self.endpoint.write_cache(text, {"sort": True})
            except OverloadError as error:
                if page_size <= smallest:
                    raise EndpointError(
                        f"{self._where}: {error}, even for pages of {page_size} rows. Nothing was imported. "
                        "Narrow the query (fewer predicates, a class), raise timeout=, or import a dump instead."
                    ) from error
                overloaded.append(text)
                self.size = page_size = max(smallest, page_size // 2)
                self.endpoint.say(f"{self._where}: {error}; requesting pages of {page_size} rows")
            else:
                if len(rows) > page_size:
                    raise EndpointError(
                        f"{self._where}: it returned {counted(len(rows), 'row')} instead of {page_size}. Import a dump "
                        "instead."
                    )
                # Lets a repeated import skip the page sizes that timed out.
                for text in overloaded:
                    self.endpoint.write_cache(text, {"lower": page_size})
                return rows, page_size


def _key(row: Row) -> str:
    # A blank node has a different name in each response.
    return json.dumps({name: cell if cell["type"] != "bnode" else {} for name, cell in row.items()}, sort_keys=True)
