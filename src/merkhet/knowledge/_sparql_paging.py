"""A SPARQL query read page by page, so that every row comes."""

from __future__ import annotations

import json
from collections.abc import Iterator

from merkhet.core.errors import MerkhetError, first_line
from merkhet.knowledge._sparql_client import (
    Endpoint,
    EndpointError,
    Row,
    SortLimitError,
    TooMuchError,
    UnreachableError,
)
from merkhet.knowledge.sparql_queries import COUNT, Query

_TAIL = 20


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
        except (TooMuchError, MerkhetError, LookupError, ValueError) as error:
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
                "then merkhet asks page by page."
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
                    raise SortLimitError
                if "lower" in known:
                    self.size = wanted = min(wanted, known["lower"])
                    continue
                rows = self.endpoint.ask(text)
            except SortLimitError as error:
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
