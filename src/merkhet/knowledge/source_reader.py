"""How a source reads: what was asked of it, bad rows counted or refused, compressed files, progress."""

from __future__ import annotations

import bz2
import gzip
import io
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import IO

from merkhet.core.errors import InputError, did_you_mean
from merkhet.core.progress import Progress, SilentProgress

COMPRESSED = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd"}
ROWS_IN_CHUNK = 50_000
_BYTES_IN_BLOCK = 4 << 20
_EXAMPLES = 5
_SHOWN_FROM = 1_000_000


@dataclass
class ReadContext:
    """One source being read: what was asked for, and what was found bad or left out.

    ``languages`` and ``predicates`` are filters; empty means all. ``options`` are the source's own.
    """

    languages: tuple[str, ...] = ()
    predicates: tuple[str, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict)
    skip_bad: bool = False
    remedy: str = "Mend the row."
    progress: Progress = field(default_factory=SilentProgress)
    bad: int = 0
    examples: list[str] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)
    _lock: Lock = field(default_factory=Lock, repr=False, compare=False)

    def check_options(self, *names: str) -> None:
        """Say which options the source has; any other that was given is refused."""
        for given in self.options:
            if given not in names:
                raise InputError(f"this source has no option {given!r}; {did_you_mean(given, names)}")

    def option(self, name: str, default: str = "") -> str:
        """What was given for an option of the source."""
        return self.options.get(name, default)

    def reject(self, where: str, reason: str) -> None:
        """A bad row: it ends the import, or is counted and left out if that was asked for."""
        if not self.skip_bad:
            raise InputError(f"{where}: {reason}. {self.remedy}")
        with self._lock:  # Rows are read and taken in at the same time.
            self.bad += 1
            if len(self.examples) < _EXAMPLES:
                self.examples.append(f"{where}: {reason}")

    def count_skipped(self, what: str, count: int = 1) -> None:
        """Rows that are well-formed but of no use here: counted by what they are, and told at the end."""
        if count:
            self.left_out[what] += count

    def wants_language(self, language: str) -> bool:
        """Whether texts in a language were asked for."""
        return not self.languages or language.lower() in (one.lower() for one in self.languages)

    def wants_predicate(self, predicate: str) -> bool:
        """Whether facts of a predicate were asked for."""
        return not self.predicates or predicate in self.predicates


def format_suffix(path: Path) -> str:
    """The suffix that tells the format: ``.nt`` for ``facts.nt.gz``."""
    return Path(path.stem).suffix.lower() if path.suffix.lower() in COMPRESSED else path.suffix.lower()


def is_compressed(path: Path) -> bool:
    """Whether the file's name says that it is compressed."""
    return path.suffix.lower() in COMPRESSED


class DecompressedFile(io.RawIOBase):
    """The unpacked bytes of a file; progress moves with the bytes taken from the disk."""

    def __init__(self, path: Path, progress: Progress) -> None:
        self.path = path
        if not path.is_file():
            raise InputError(f"there is no file {path}")
        self._disk = open(path, "rb")  # noqa: SIM115
        self._stream = _unpacked(self._disk, path)
        size = path.stat().st_size
        # What is read in an instant needs no bar.
        self._progress = progress if size >= _SHOWN_FROM else SilentProgress()
        self._label = path.name
        self._shown = 0
        self._progress.start(self._label, size // 1000, "kB")

    def readable(self) -> bool:
        """It is there to be read."""
        return True

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        """Fill the buffer; refuses a file that ends early or is not what its name says."""
        try:
            data = self._stream.read(len(buffer))
        except (EOFError, zlib.error, OSError) as error:
            raise InputError(
                f"{self.path}: the compressed file is broken or ends early ({error}). Fetch it anew."
            ) from error
        buffer[: len(data)] = data
        done = self._disk.tell() // 1000
        if done > self._shown:
            self._progress.advance(self._label, done - self._shown)
            self._shown = done
        return len(data)

    def close(self) -> None:
        """End the progress too."""
        if not self.closed:
            self._stream.close()
            self._disk.close()
            self._progress.finish(self._label)
        super().close()


def open_file(path: Path, context: ReadContext) -> io.BufferedReader:
    """A file's bytes, unpacked if its name ends in .gz, .bz2 or .zst, with progress shown."""
    return io.BufferedReader(DecompressedFile(path, context.progress), 1 << 20)


def read_blocks(path: Path, context: ReadContext) -> Iterator[tuple[int, list[bytes]]]:
    """Blocks of whole lines (without their ends), each with the number of its first line."""
    number, rest = 1, b""
    with open_file(path, context) as handle:
        while data := handle.read(_BYTES_IN_BLOCK):
            lines = (rest + data).split(b"\n")
            rest = lines.pop()
            if lines:
                yield number, lines
                number += len(lines)
        if rest:
            yield number, [rest]


def read_lines(path: Path, context: ReadContext, *, whole: bool = False) -> Iterator[tuple[int, str]]:
    """Lines as text with their numbers, counted from 1; a line that is not UTF-8 is a bad row.

    Without their ends, or ``whole``, for tables whose cells may hold line ends.
    """
    for first, lines in read_blocks(path, context):
        for number, line in enumerate(lines, first):
            try:
                text = line.decode("utf-8-sig" if number == 1 else "utf-8")
            except UnicodeDecodeError as error:
                context.reject(f"{path}:{number}", f"the text is not UTF-8 (byte {error.start + 1} of the line)")
                continue
            yield number, text + "\n" if whole else text.rstrip("\r")


def _unpacked(disk: IO[bytes], path: Path) -> IO[bytes]:
    kind = COMPRESSED.get(path.suffix.lower())
    if kind == "gzip":
        return gzip.GzipFile(fileobj=disk, mode="rb")  # type: ignore[return-value]
    if kind == "bz2":
        return bz2.BZ2File(disk)
    if kind == "zstd":
        import pyarrow as pa

        stream: IO[bytes] = pa.CompressedInputStream(pa.PythonFile(disk, mode="r"), "zstd")
        return stream
    return disk
