"""Sockets with a deadline, and response bodies read block by block."""

from __future__ import annotations

import http.client
import io
import socket
import time
import zlib
from collections.abc import Iterator
from typing import Any

_BLOCK = 1 << 16
_GZIP_FORMAT = 31
"""Value of zlib's ``wbits`` for data in gzip format."""


class TooManyBytesError(Exception):
    """The body of a response has more bytes than allowed."""


class TimedSocket:
    """A connected socket with a timeout per operation and a deadline for the whole request.

    A timeout alone is not enough: it never expires if a server keeps sending single bytes.
    """

    def __init__(self, sock: socket.socket, timeout: float) -> None:
        self._socket = sock
        self._timeout = timeout
        self._unsent: list[bytes] = []
        self.deadline = 0.0

    def limit_wait(self) -> None:
        """Set the timeout of the next operation; raise TimeoutError after the deadline."""
        remaining = self.deadline - time.monotonic()
        if remaining <= 0:
            raise TimeoutError("the deadline has passed")
        self._socket.settimeout(min(self._timeout, remaining))

    def sendall(self, data: bytes) -> None:
        """Buffer ``data`` until ``flush`` sends headers and body together."""
        self._unsent.append(data)

    def flush(self) -> None:
        self.limit_wait()
        self._socket.sendall(b"".join(self._unsent))
        self._unsent.clear()

    def makefile(self, mode: str) -> io.BufferedReader:
        """Return a file object to read a response from; http.client calls this method for every response."""
        return io.BufferedReader(_TimedReader(self, self._socket.makefile("rb", buffering=0)))

    def is_dropped(self) -> bool:
        """Return whether an idle connection was closed or has received unexpected bytes."""
        try:
            self._socket.settimeout(0)
            # The method of ssl.SSLSocket takes no flags.
            socket.socket.recv(self._socket, 1, socket.MSG_PEEK)
        except BlockingIOError:
            return False
        except OSError:
            return True
        return True

    def close(self) -> None:
        """Close the socket; the connection stays open until its last file object is closed."""
        self._socket.close()


class _TimedReader(io.RawIOBase):
    def __init__(self, timed_socket: TimedSocket, raw: socket.SocketIO) -> None:
        self._timed_socket, self._raw = timed_socket, raw

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        self._timed_socket.limit_wait()
        return self._raw.readinto(buffer)

    def close(self) -> None:
        self._raw.close()
        super().close()


def read_blocks(response: http.client.HTTPResponse, max_bytes: int) -> Iterator[bytes]:
    """Yield the decompressed body of a response in blocks of bounded size.

    Raises:
        TooManyBytesError: The body has more than ``max_bytes`` bytes, before or after decompression.
        http.client.HTTPException, EOFError, zlib.error, ValueError: The body is cut off or damaged.
        OSError: The connection failed.
    """
    encoding = response.headers.get("Content-Encoding", "").strip().lower()
    if encoding not in ("", "identity", "gzip", "x-gzip"):
        raise ValueError(f"the reply is compressed by {encoding[:20]!r}, which was not asked for")
    received = _receive(response, max_bytes)
    produced = 0
    for block in _decompress(received) if "gzip" in encoding else received:
        produced += len(block)
        if produced > max_bytes:
            raise TooManyBytesError
        yield block


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
