"""Files that are compressed with gzip, bzip2, xz or Zstandard, decompressed while they are read."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import zlib
from pathlib import Path
from typing import IO

from merkhet.core.errors import InputError

SUFFIXES = (".gz", ".bz2", ".xz", ".zst")
_DAMAGE_ERRORS = (EOFError, zlib.error, lzma.LZMAError, OSError)
_BYTES_IN_BLOCK = 1 << 16
_MAX_XZ_MEMORY = 1 << 28  # xz -9 needs 65 MiB; the format allows for 4 GiB.


def is_compressed(path: Path) -> bool:
    """Check whether a file name has the suffix of a compressed format (.gz, .bz2, .xz or .zst)."""
    return path.suffix.lower() in SUFFIXES


def format_suffix(path: Path) -> str:
    """Return the file suffix without the compression suffix: ``.nt`` for ``facts.nt.gz``."""
    return Path(path.stem).suffix.lower() if is_compressed(path) else path.suffix.lower()


def _decompress(disk: IO[bytes], path: Path) -> IO[bytes]:
    """Return a stream of the decompressed bytes of an open file; the suffix of ``path`` names its format."""
    suffix = path.suffix.lower()
    if suffix == ".gz":
        return gzip.GzipFile(fileobj=disk, mode="rb")  # type: ignore[return-value]
    if suffix == ".bz2":
        return bz2.BZ2File(disk)
    if suffix == ".xz":
        return io.BufferedReader(_XzStream(disk), _BYTES_IN_BLOCK)
    if suffix == ".zst":
        import pyarrow as pa

        stream: IO[bytes] = pa.CompressedInputStream(pa.PythonFile(disk, mode="r"), "zstd")
        return stream
    return disk


class DecompressedStream(io.RawIOBase):
    """A stream of the decompressed bytes of a file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._disk = open(path, "rb")  # noqa: SIM115
        self._stream = _decompress(self._disk, path)

    def readable(self) -> bool:
        """Return True: the stream is readable."""
        return True

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        """Read decompressed bytes into ``buffer``.

        Raises:
            InputError: The compressed file is damaged or ends early.
        """
        try:
            data = self._stream.read(len(buffer))
        except _DAMAGE_ERRORS as error:
            raise InputError(
                f"{self.path}: the compressed file is broken or ends early ({error}). Download it again."
            ) from error
        buffer[: len(data)] = data
        return len(data)

    @property
    def bytes_read(self) -> int:
        """The number of bytes read from disk."""
        return self._disk.tell()

    def close(self) -> None:
        """Close the file."""
        if not self.closed:
            self._stream.close()
            self._disk.close()
        super().close()


def open_file(path: Path) -> io.BufferedReader:
    """Open a file for reading; decompress it if its name ends in .gz, .bz2, .xz or .zst."""
    return io.BufferedReader(DecompressedStream(path), 1 << 20)


class _XzStream(io.RawIOBase):
    """A stream of the decompressed bytes of an xz file, with a limit on the memory that the file may demand."""

    def __init__(self, disk: IO[bytes]) -> None:
        self._disk = disk
        self._rest = b""
        self._decompressor: lzma.LZMADecompressor | None = self._start()

    @staticmethod
    def _start() -> lzma.LZMADecompressor:
        return lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=_MAX_XZ_MEMORY)

    def readable(self) -> bool:
        """Return True: the stream is readable."""
        return True

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        """Read decompressed bytes into ``buffer``."""
        while self._decompressor is not None:
            if self._decompressor.eof:
                self._decompressor = self._next_stream(self._decompressor.unused_data)
                continue
            if self._decompressor.needs_input and not self._rest:
                self._rest = self._disk.read(_BYTES_IN_BLOCK)
                if not self._rest:
                    raise EOFError("the file ends before the end of the compressed data")
            data = self._decompressor.decompress(self._rest, len(buffer))
            self._rest = b""
            if data:
                buffer[: len(data)] = data
                return len(data)
        return 0

    def _next_stream(self, rest: bytes) -> lzma.LZMADecompressor | None:
        """Start the stream that follows in the file, after padding with null bytes; None at the end of the file."""
        while not rest.lstrip(b"\0"):
            rest = self._disk.read(_BYTES_IN_BLOCK)
            if not rest:
                return None
        self._rest = rest.lstrip(b"\0")
        return self._start()
