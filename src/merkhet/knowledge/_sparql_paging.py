"""Complete reading of the rows of a SPARQL query, page by page."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from itertools import compress

from merkhet.core.errors import InputError, MerkhetError, first_line
from merkhet.core.text import counted
from merkhet.knowledge._row_digests import RowDigests
from merkhet.knowledge._select_query import COUNT
from merkhet.knowledge._sparql_client import (
    DeadlineError,
    Endpoint,
    EndpointError,
    OverloadError,
    SortLimitError,
    UnreachableError,
)
from merkhet.knowledge._sparql_results import Row, StoredRows
from merkhet.knowledge.sparql_queries import Query

_TAIL_ROWS = 20
_UNPAGED_BATCH = 10_000
"""The number of rows to pass on at once of a query that is asked without pages."""
_MIN_SUSPICIOUS_ROWS = 1000
_DUMP = "Nothing was imported. Narrow the query (fewer predicates, a class), or import a dump instead."


class _UnstableOrderError(Exception):
    """Pages that do not fit together, because their order is not total or the data changed."""


class PagedQuery:
    """A query that is read page by page.

    Each page overlaps the previous page by one row, which reveals added or removed rows. A page with fewer rows than
    requested is not taken for the last page: reading ends when no row follows the last row.

    The pages ask for distinct rows. A row that comes twice therefore proves that the order is not total, and that
    another row may have been lost: then all pages are read again, sorted by hashes instead of columns, and the rows
    that have not come before are added.

    At the end, the number of distinct rows must equal the count. Without a count, a result is refused whose size equals
    the row limit of the endpoint, or looks like one.
    """

    def __init__(self, endpoint: Endpoint, query: Query) -> None:
        self.endpoint, self.query = endpoint, query
        self._where = f"{endpoint.display_name}, {query.name}"
        self.size = endpoint.settings.page
        self.received = 0
        """The number of distinct rows that have come."""
        self._blank_rows = 0
        self._repeated_rows = 0
        self._digests = self._pass_digests = RowDigests()
        self._nested = self._by_hash = False
        self._start_pass()

    def _start_pass(self) -> None:
        self._next = 0
        """The offset of the row after the last one of this pass."""
        self._tail: list[Row] = []
        self._repeated_rows = 0

    def count(self) -> int | None:
        """Return the number of distinct rows of the query; None if counting is off or fails."""
        if not self.endpoint.settings.count:
            return None
        total = self._count(self.query.parts.count())
        return total if total is None or self.query.limit is None else min(total, self.query.limit)

    def _count(self, text: str) -> int | None:
        try:
            rows = self.endpoint.ask(text, min(1, self.endpoint.settings.retries))
            return int(rows[0][COUNT]["value"])
        except UnreachableError:
            return None  # The request for the first page reports this error after all retries.
        except (OverloadError, MerkhetError, LookupError, TypeError, ValueError) as error:
            self.endpoint.say(
                f"{self._where}: the rows could not be counted ({first_line(error)}); continuing without a count"
            )
            return None

    def read(self, expected: int | None = None) -> Iterator[list[Row]]:
        """Yield the distinct rows of the query page by page.

        Raises:
            EndpointError: The endpoint failed, the number of distinct rows differs from ``expected``, or Virtuoso is
                asked a query with LIMIT or OFFSET in a subquery.
        """
        self._refuse_sliced_subquery()
        if self.query.parts.sliced:
            with closing(self._ask_unpaged(expected)) as rows:
                yield from rows.batches(_UNPAGED_BATCH)
            return
        while True:
            try:
                for page in self._pages():
                    if new := self._new_rows(page, expected):
                        yield new
                    if self._repeated_rows and not self._by_hash:
                        raise _UnstableOrderError(f"{counted(self._repeated_rows, 'row')} came twice")
                break
            except _UnstableOrderError as error:
                if self._by_hash or self.query.limit is not None:
                    raise EndpointError(
                        f"{self._where}: {error}: the order is not stable or the data changed. Nothing was imported. "
                        "Import again with cache=refresh."
                    ) from error
                self.endpoint.say(f"{self._where}: {error}; reading all pages again, sorted by hashes")
                self._by_hash = True
            except SortLimitError:
                # Virtuoso sorts literals differently in a subquery, so these pages do not continue the earlier ones.
                self._nested = self._by_hash = True
            self._start_pass()
            self._pass_digests = RowDigests()
        self._check_total(expected)

    def _refuse_sliced_subquery(self) -> None:
        # Virtuoso 7 often applies the LIMIT of a subquery to the rows of the outer query: facts of 1 subject come
        # instead of those of 20, and the count is wrong alike.
        if self.endpoint.is_virtuoso and self.query.parts.sliced_subquery:
            raise EndpointError(
                f"{self._where}: Virtuoso loses rows of a query with LIMIT or OFFSET in a subquery. Nothing was "
                "imported. Run the subquery first and list its rows with VALUES. In a schema, leave out 'limit' or "
                "'languages'."
            )

    def _new_rows(self, page: list[Row], expected: int | None) -> list[Row]:
        """Return the rows of a page that have not come before.

        Raises:
            EndpointError: More rows came than ``expected``.
        """
        texts = [json.dumps(row, sort_keys=True) for row in page]
        blank = [any(map(_is_blank, row.values())) for row in page]
        new = self._digests.add(texts)
        new_in_pass = new if self._pass_digests is self._digests else self._pass_digests.add(texts)
        self.received += sum(new)
        self._blank_rows += sum(compress(new, blank))
        # A blank node may have another name in each response.
        self._repeated_rows += sum(not first for first in compress(new_in_pass, (not each for each in blank)))
        if expected is not None and self.received - self._blank_rows > expected:
            self._refuse_total(expected)
        return list(compress(page, new))

    def _check_total(self, expected: int | None) -> None:
        """Raise EndpointError if the rows are incomplete, or may be."""
        if self._blank_rows and expected is not None and self.query.limit is None:
            # Rows with blank nodes cannot be told apart from repeated rows.
            self.received -= self._blank_rows
            expected = self._count(self.query.parts.count(blank_nodes=False))
        if expected is not None:
            if self.received != expected:
                self._refuse_total(expected)
            return
        if self._repeated_rows:
            raise EndpointError(f"{self._where}: {self._describe_repeated_rows()}. {_DUMP}")
        if len(self._pass_digests) < len(self._digests) and not self._blank_rows:
            raise EndpointError(
                f"{self._where}: {counted(len(self._digests), 'row')} came at first, and {len(self._pass_digests):,} "
                f"when they were read again in another order, and they could not be compared with a count. {_DUMP}"
            )
        if self.query.limit is None or self.received < self.query.limit:
            self._check_size(_DUMP)

    def _check_size(self, remedy: str) -> None:
        """Raise EndpointError if the number of rows, which were not counted, looks like a row limit."""
        if self.received == self.endpoint.max_rows:
            reason = "the endpoint returns at most that many (X-SPARQL-MaxRows)"
        elif self.received >= _MIN_SUSPICIOUS_ROWS and str(self.received).rstrip("0") in ("1", "2", "5"):
            reason = "that looks like the row limit of the endpoint"
        else:
            return
        cause = "could not be counted" if self.endpoint.settings.count else "were not counted (count=no)"
        remedy = remedy if self.endpoint.settings.count else "Nothing was imported. Import without count=no."
        raise EndpointError(
            f"{self._where}: exactly {counted(self.received, 'row')} came; {reason}, and the rows {cause}. {remedy}"
        )

    def _refuse_total(self, expected: int) -> None:
        start = f"{self._where}: {counted(expected, 'row was', 'rows were')} counted, but {self.received:,} came: "
        if self.received > expected:
            raise EndpointError(
                f"{start}the data changed, or the endpoint counts wrongly. Nothing was imported. Import again with "
                "cache=refresh, or set count=no if the count is always wrong."
            )
        if self._repeated_rows:
            raise EndpointError(f"{start}{self._describe_repeated_rows()}. {_DUMP}")
        if self.endpoint.max_rows and self.received % self.endpoint.max_rows == 0:
            raise EndpointError(
                f"{start}the endpoint returns at most {self.endpoint.max_rows:,} rows (X-SPARQL-MaxRows). {_DUMP}"
            )
        raise EndpointError(
            f"{start}the endpoint truncates its answers, or its data changed. Nothing was imported. Import again with "
            "cache=refresh, or narrow the query."
        )

    def _describe_repeated_rows(self) -> str:
        rows = counted(self._repeated_rows, "row")
        return f"{rows} came twice, because the endpoint cannot sort all rows apart, so others may be missing"

    def _ask_unpaged(self, expected: int | None) -> StoredRows:
        """Return the rows of a query with its own LIMIT or OFFSET, which is asked as it is, in one request."""
        try:
            rows = self.endpoint.ask_unpaged(self.query.text)
        except OverloadError as error:
            raise EndpointError(
                f"{self._where}: {error}. Nothing was imported. Lower the LIMIT of the query, or leave it out: "
                "then merkhet asks page by page."
            ) from error
        self._refuse_sliced_subquery()
        self.received = len(rows)
        limit = self.query.parts.limit
        if limit is not None and self.received > limit:
            raise EndpointError(
                f"{self._where}: it returned {counted(len(rows), 'row')} instead of {limit}. Import a dump instead."
            )
        if expected is not None:
            truncated = self.received < expected
            if self.received > expected:
                self._refuse_total(expected)
        else:
            truncated = self.received != limit and self._has_next_row()
        if truncated:
            raise self._truncation(expected)
        if expected is None and self.received != limit:
            self._check_size("Nothing was imported. Leave LIMIT and OFFSET out: then merkhet asks page by page.")
        return rows

    def _truncation(self, expected: int | None) -> EndpointError:
        start = "" if expected is None else f"{counted(expected, 'row was', 'rows were')} counted, but "
        cap = self.endpoint.max_rows or self.received
        advice = f"Set a LIMIT of at most {cap:,}" if cap else "Import again with cache=refresh"
        return EndpointError(
            f"{self._where}: {start}{self.received:,} came: the endpoint returns at most {counted(cap, 'row')} at "
            f"once. Nothing was imported. {advice}, or leave LIMIT and OFFSET out: then merkhet asks page by page."
        )

    def _has_next_row(self) -> bool:
        """Ask whether a row follows those of a query with LIMIT or OFFSET; if that fails, assume that one follows."""
        try:
            return bool(self.endpoint.ask(self.query.parts.next_row(self.received)))
        except (OverloadError, InputError):
            return True

    def _pages(self) -> Iterator[list[Row]]:
        total_limit, delivered, short_length, misalignments = self.query.limit, 0, 0, 0
        while total_limit is None or delivered < total_limit:
            # No overlap after a single row: the overlapping request would start at the same offset again.
            overlap = 1 if self._next > 1 else 0
            page_size = self.size if total_limit is None else min(self.size, total_limit - delivered + overlap)
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
                delivered, self._next = delivered + len(new), self._next + len(new)
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
        raise _UnstableOrderError(f"after {self._next} rows the next page does not continue where the last one ended")

    def _request_page(self, page_size: int, offset: int) -> tuple[list[Row], int]:
        """Request a page; if the endpoint is overloaded, request a smaller page.

        Returns:
            The rows, and the page size of the last request.

        Raises:
            SortLimitError: The endpoint cannot sort this many rows; they can be read again, sorted in a subquery.
        """
        smallest = max(2, self.endpoint.settings.page // 64)
        overloaded = []
        while True:
            text = self.query.parts.page(page_size, offset, self._nested, self._by_hash)
            cached = self.endpoint.read_cache(text)
            try:
                if cached.get("sort"):
                    raise SortLimitError
                if "lower" in cached:
                    self.size = page_size = min(page_size, cached["lower"])
                    continue
                rows = self.endpoint.ask(text)
                self._refuse_sliced_subquery()
            except SortLimitError as error:
                if self._nested:
                    raise EndpointError(
                        f"{self._where}: the endpoint cannot sort this many rows. Nothing was imported. "
                        "Narrow the query."
                    ) from error
                self.endpoint.write_cache(text, {"sort": True})
                if self.query.limit is None:
                    raise
                self._nested = True
            except OverloadError as error:
                if page_size <= smallest:
                    raise EndpointError(
                        f"{self._where}: {error}, even for pages of {page_size} rows. Nothing was imported. "
                        "Narrow the query (fewer predicates, a class), raise timeout=, or import a dump instead."
                    ) from error
                overloaded.append(text)
                self.size = page_size = max(smallest, page_size // _divisor(error))
                self.endpoint.say(f"{self._where}: {error}; requesting pages of {page_size} rows")
            except InputError as error:
                self._refuse_sliced_subquery()
                if not self._by_hash or isinstance(error, EndpointError):
                    raise
                raise EndpointError(
                    f"{self._where}: its order is not stable, and it does not sort by hashes ({error}). {_DUMP}"
                ) from error
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


def _divisor(error: OverloadError) -> int:
    # Few attempts, because each waits for the whole timeout.
    return 8 if isinstance(error, DeadlineError) else 2


def _key(row: Row) -> str:
    # A blank node has a different name in each response.
    return json.dumps({name: {} if _is_blank(cell) else cell for name, cell in row.items()}, sort_keys=True)


def _is_blank(cell: object) -> bool:
    return isinstance(cell, dict) and cell.get("type") == "bnode"
