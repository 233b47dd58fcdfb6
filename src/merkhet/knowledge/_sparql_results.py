"""Incremental reading of SPARQL results in JSON, with bounded memory."""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from merkhet.core.spooled_file import SpooledFile
from merkhet.core.text_formats import check_depth, parsed_size

Row = Mapping[str, Mapping[str, str]]
"""A result row in SPARQL's JSON format: variables and their values."""

MAX_PAGE_MEMORY = 150_000_000
"""The maximum bytes of memory for the rows of a page, estimated from above."""
_MAX_ROW_LENGTH = 1 << 23
"""The maximum number of characters of a row."""
_MAX_ROW_MEMORY = 100_000_000
_MAX_OTHER_LENGTH = 1 << 20
"""The maximum number of characters of any other value, such as the head, and of blanks between two values."""
_REST_LENGTH = 1 << 16
"""The number of characters to keep of what follows a fault."""
_STEP = 1 << 20
"""The maximum number of bytes to add at once while a row is incomplete."""
_STORED_IN_MEMORY = 1 << 24
"""The maximum bytes of stored rows in memory; more are on disk."""
_MANY_OBJECTS = 100
"""The number of objects in a row from which on their depth is checked."""
_BLANK = re.compile(r"[ \t\n\r]*")
_DECODER = json.JSONDecoder()


class BrokenResultsError(Exception):
    """The JSON is invalid or cut off; ``rest`` is the beginning and the end of the text from there on."""

    def __init__(self, rest: str = "") -> None:
        super().__init__("the JSON is not whole")
        self.rest = rest


class MarkupError(Exception):
    """The content is HTML or XML instead of JSON."""


class NoTableError(Exception):
    """The JSON is no table of rows."""


class LargeResultsError(Exception):
    """The rows, or one of them, take too much memory."""


class PageRows(list[Row]):
    """Rows in memory, as many as a page may have."""

    def __init__(self) -> None:
        super().__init__()
        self._memory = 0

    def add(self, row: Row, memory: int) -> None:
        """Append a row that takes at most ``memory`` bytes; raise LargeResultsError if the rows take too many."""
        self._memory += memory
        if self._memory > MAX_PAGE_MEMORY:
            raise LargeResultsError(f"the rows take more than {MAX_PAGE_MEMORY:,} bytes of memory")
        self.append(row)


class StoredRows:
    """Any number of rows in a temporary file. They can be iterated several times."""

    def __init__(self) -> None:
        self._file = SpooledFile(_STORED_IN_MEMORY)
        self._count = 0

    def add(self, row: Row, memory: int) -> None:
        """Append a row."""
        self._file.write(json.dumps(row, ensure_ascii=False).encode("utf-8", "surrogatepass") + b"\n")
        self._count += 1

    def close(self) -> None:
        """Remove the rows."""
        self._file.close()

    def __len__(self) -> int:
        """Return the number of rows."""
        return self._count

    def __iter__(self) -> Iterator[Row]:
        """Yield the rows in order."""
        return map(json.loads, self._file.lines())

    def batches(self, size: int) -> Iterator[list[Row]]:
        """Yield lists of at most ``size`` rows, and shorter ones where rows are large."""
        batch, memory = list[Row](), 0
        for line in self._file.lines():
            memory += parsed_size(line)
            if batch and (len(batch) == size or memory > MAX_PAGE_MEMORY):
                yield batch
                batch, memory = [], parsed_size(line)
            batch.append(json.loads(line))
        if batch:
            yield batch


def read_results(blocks: Iterator[bytes], add: Callable[[Row, int], None]) -> None:
    """Read SPARQL results and pass each row to ``add``, with the bytes of memory that it takes at most.

    Errors of ``blocks`` and ``add`` pass through.

    Raises:
        BrokenResultsError: The JSON is invalid, cut off, or followed by other content.
        MarkupError: The content is HTML or XML.
        NoTableError: The JSON has no rows, or too much of it is no row.
        LargeResultsError: A row is too large.
    """
    text = _JsonText(blocks)
    if text.peek() == "<":
        raise MarkupError
    is_table = False
    for key in text.members():
        if key != "results":
            text.value()
            continue
        for inner_key in text.members():
            if inner_key != "bindings":
                text.value()
                continue
            if is_table:
                raise NoTableError
            is_table = True
            text.rows(add)
    text.end()
    if not is_table:
        raise NoTableError


def read_stored(blocks: Iterator[bytes], add: Callable[[Row, int], None]) -> dict[str, Any]:
    """Read a JSON object with rows, such as a cached response; pass each row to ``add``, and return other content.

    Returns:
        The other members of the object, and the member ``rows`` with an empty list if there are rows.

    Raises:
        BrokenResultsError, NoTableError, LargeResultsError: The content is damaged.
    """
    text = _JsonText(blocks)
    content: dict[str, Any] = {}
    for key in text.members():
        if key == "rows":
            text.rows(add)
            content[key] = []
        else:
            content[key] = text.value()
    text.end()
    return content


class _JsonText:
    """JSON that is read value by value, while the rest is still arriving."""

    def __init__(self, blocks: Iterator[bytes]) -> None:
        self._blocks = blocks
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self._text, self._position, self._at_end = "", 0, False

    def peek(self) -> str:
        """Skip blanks and return the next character without reading it; empty at the end."""
        blank = 0
        while True:
            start = self._position
            self._position = _BLANK.match(self._text, start).end()  # type: ignore[union-attr]
            if self._position < len(self._text):
                return self._text[self._position]
            blank += self._position - start
            if blank > _MAX_OTHER_LENGTH:
                raise NoTableError
            if not self._extend():
                return ""

    def take(self, *characters: str) -> str:
        """Skip blanks and read one of the characters."""
        found = self.peek()
        if found not in characters:
            raise self._broken()
        self._position += 1
        return found

    def members(self) -> Iterator[str]:
        """Read an object; yield each key when its value is next, which the caller must read."""
        if self.peek() not in ("{", ""):
            self.value()
            raise NoTableError
        self.take("{")
        if self.peek() == "}":
            self.take("}")
            return
        while True:
            if self.peek() != '"':
                raise self._broken()
            key = self.value()
            self.take(":")
            yield key
            if self.take(",", "}") == "}":
                return

    def rows(self, add: Callable[[Row, int], None]) -> None:
        """Read an array of objects and pass each to ``add``."""
        if self.peek() not in ("[", ""):
            self.value()
            raise NoTableError
        self.take("[")
        if self.peek() == "]":
            self.take("]")
            return
        while True:
            add(*self._row())
            if self.take(",", "]") == "]":
                return

    def value(self) -> Any:
        """Read a value other than a row."""
        self.peek()
        return self._decode(_MAX_OTHER_LENGTH)[0]

    def end(self) -> None:
        """Check that nothing follows."""
        if self.peek():
            raise self._broken()

    def _row(self) -> tuple[Row, int]:
        if self.peek() not in ("{", ""):
            self.value()
            raise NoTableError
        row, start = self._decode(_MAX_ROW_LENGTH)
        if self._text.count("{", start, self._position) > _MANY_OBJECTS:
            try:
                check_depth(row)
            except ValueError:
                raise self._broken() from None
        return row, parsed_size(self._text, start, self._position)

    def _decode(self, max_length: int) -> tuple[Any, int]:
        """Read a value of at most some ``max_length`` characters; return it and its place in the text."""
        while True:
            start = self._position
            try:
                value, end = _DECODER.raw_decode(self._text, start)
            except RecursionError:
                raise self._broken() from None
            except ValueError as error:
                offset = getattr(error, "pos", start) - start
                length = len(self._text) - start
            else:
                # The rest of a number may be missing: 1.|5, 1e+|5.
                is_whole = self._text[end - 1] in '"]}' or self._text[end : end + 1] not in ("", *".eE")
                if is_whole or end + 2 < len(self._text) or not self._extend():
                    self._position += end - start
                    return value, self._position - (end - start)
                continue
            if length > max_length:
                if max_length < _MAX_ROW_LENGTH:
                    raise NoTableError
                raise LargeResultsError(f"a row has more than {max_length:,} characters")
            # The value may be incomplete; whether it is broken shows only at the end.
            if not self._extend():
                raise self._broken(offset)

    def _extend(self) -> bool:
        """Append the next blocks to the unread text; return False at the end."""
        if self._at_end:
            return False
        self._text, self._position = self._text[self._position :], 0
        unread = len(self._text)
        blocks, size = list[bytes](), 0
        while size <= min(unread, _STEP) and not self._at_end:
            block = next(self._blocks, b"")
            self._at_end = not block
            blocks.append(block)
            size += len(block)
        try:
            self._text += self._decoder.decode(b"".join(blocks), final=self._at_end)
        except UnicodeDecodeError:
            raise BrokenResultsError from None
        if unread > _STEP and parsed_size(self._text) > _MAX_ROW_MEMORY:
            raise LargeResultsError(f"a row takes more than {_MAX_ROW_MEMORY:,} bytes of memory")
        return size > 0

    def _broken(self, offset: int = 0) -> BrokenResultsError:
        """Return the error for a fault that many characters after the current place."""
        while len(self._text) - self._position - offset < _REST_LENGTH and self._extend():
            pass
        place = self._position + offset
        return BrokenResultsError(self._text[place : place + _REST_LENGTH] + self._text[place:][-_REST_LENGTH:])
