"""Bodies of HTTP responses, received and decompressed block by block."""

from __future__ import annotations

import http.client
import zlib
from collections.abc import Iterator
from typing import Any

from merkhet.core._http_connection import MalformedResponseError

_BLOCK = 1 << 16
_GZIP_FORMAT = 31
"""Value of zlib's ``wbits`` for data in gzip format."""


class TooManyBytesError(Exception):
    """The body of a response has more bytes than allowed."""


def read_blocks(response: http.client.HTTPResponse, max_bytes: int) -> Iterator[bytes]:
    """Yield the decompressed body of a response in blocks of bounded size.

    Raises:
        TooManyBytesError: The body has more than ``max_bytes`` bytes, before or after decompression.
        http.client.HTTPException, EOFError, zlib.error, ValueError: The body is cut off or damaged.
        OSError: The connection failed.
    """
    encoding = response.headers.get("Content-Encoding", "").strip().lower()
    if encoding not in ("", "identity", "gzip", "x-gzip"):
        raise MalformedResponseError(f"the reply is compressed by {encoding[:20]!r}, which was not asked for")
    lengths = set(response.headers.get_all("Content-Length", []))
    if not response.chunked and (len(lengths) > 1 or not all(map(_is_length, lengths))):
        raise MalformedResponseError("the Content-Length of the reply is not one number")
    received = _receive(response, max_bytes)
    produced = 0
    for block in _decompress(received) if "gzip" in encoding else received:
        produced += len(block)
        if produced > max_bytes:
            raise TooManyBytesError
        yield block


def _is_length(text: str) -> bool:
    return text.strip().isascii() and text.strip().isdecimal()


def _receive(response: http.client.HTTPResponse, max_bytes: int) -> Iterator[bytes]:
    received = 0
    while block := response.read(_BLOCK):
        received += len(block)
        yield block
        if received > max_bytes:
            raise TooManyBytesError
    # Reading in blocks does not notice a connection that closed before the announced length.
    if response.length:
        raise http.client.IncompleteRead(b"", response.length)


def _decompress(blocks: Iterator[bytes]) -> Iterator[bytes]:
    """Decompress gzip data that may have several members; yield blocks of limited size."""
    stream: Any = None
    for data in blocks:
        part = b""
        # A full part may leave output within the stream even if all input is consumed.
        while data or len(part) == _BLOCK:
            if stream is None or stream.eof:
                data = data if stream is None else data.lstrip(b"\0")  # Padding between members.
                if not data:
                    break
                stream = zlib.decompressobj(_GZIP_FORMAT)
            part = stream.decompress(data, _BLOCK)
            if part:
                yield part
            data = stream.unused_data if stream.eof else stream.unconsumed_tail
    if stream is not None and not stream.eof:
        raise EOFError("the compressed reply was cut off")
