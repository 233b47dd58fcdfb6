"""Reading of source files: filters, handling of bad rows, decompression and progress."""

from __future__ import annotations

import io
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from merkhet.core.compressed_files import DecompressedStream
from merkhet.core.errors import MAX_FAULTS, FaultList, InputError, did_you_mean
from merkhet.core.files import UTF_16_MARKS
from merkhet.core.progress import Progress, SilentProgress
from merkhet.knowledge._iris import predicate_spellings

ROWS_IN_CHUNK = 50_000
_BYTES_IN_BLOCK = 4 << 20
_MAX_LINE_BYTES = 1 << 26  # The longest lines of Wikidata's dump have some 5 MB.
_MAX_EXAMPLES = 5
_MIN_BYTES_FOR_PROGRESS = 1_000_000


@dataclass
class ReadContext:
    """Filters and options for reading a source, and counts of rejected and skipped rows."""

    languages: tuple[str, ...] = ()
    """Languages of texts to read; empty for all."""
    predicates: tuple[str, ...] = ()
    """Predicates to read, by id, IRI or label; empty for all."""
    options: Mapping[str, str] = field(default_factory=dict)
    """Options that the source defines."""
    skip_bad: bool = False
    """Whether bad rows are skipped and counted; otherwise they raise InputError."""
    remedy: str = "Correct the row."
    """Advice at the end of the error message for a bad row."""
    progress: Progress = field(default_factory=SilentProgress)
    bad: int = 0
    """The number of rejected rows."""
    examples: list[str] = field(default_factory=list)
    """Locations of the first rejected rows, with reasons."""
    left_out: Counter[str] = field(default_factory=Counter)
    """The number of well-formed rows that were skipped, by kind."""
    faults: FaultList = field(default_factory=FaultList)
    """Bad rows that are not skipped."""
    predicate_ids: frozenset[str] = frozenset()
    """Ids of the predicates that are selected by label; a source sets them before it reads facts."""
    _spellings: tuple[tuple[str, ...], frozenset[str]] | None = field(default=None, repr=False)
    collects_faults: bool = False
    """Whether several bad rows are collected for one InputError; the caller of the source raises it."""

    def check_options(self, *names: str) -> None:
        """Raise InputError if an option is not in ``names``."""
        for option in self.options:
            if option not in names:
                raise InputError(f"this source has no option {option!r}; {did_you_mean(option, names)}")

    def option(self, name: str, default: str = "") -> str:
        """Return the text of an option, or ``default`` if the option is not set."""
        return self.options.get(name, default)

    def choice(self, name: str, *choices: str) -> str:
        """Return an option that must be one of ``choices``; the first choice is the default."""
        choice = self.options.get(name, choices[0])
        if choice not in choices:
            raise InputError(f"the option {name!r} must be {', '.join(choices[:-1])} or {choices[-1]}, got {choice!r}")
        return choice

    def number(self, name: str, default: float, minimum: float = -math.inf, *, integer: bool = False) -> float:
        """Return an option as a number; raise InputError if it is not a number or is below ``minimum``."""
        text = self.options.get(name, str(default))
        if not re.fullmatch(r"\d{1,9}" if integer else r"[+-]?(\d{1,9}\.?\d*|\.\d+)", text) or float(text) < minimum:
            kind = "an integer" if integer else "a number"
            limit = f" ≥ {minimum:g}" if math.isfinite(minimum) else ""
            raise InputError(f"the option {name!r} must be {kind}{limit}, got {text!r}")
        return float(text)

    def reject(self, where: str, reason: str) -> None:
        """Reject a bad row: raise InputError, add it to the faults, or count it if ``skip_bad`` is set."""
        if self.skip_bad:
            self.bad += 1
            if len(self.examples) < _MAX_EXAMPLES:
                self.examples.append(f"{where}: {reason}")
            return
        origin, _, number = where.replace(", row ", ":").rpartition(":")
        self.faults.add(f"{where}: {reason}.", origin=origin, row=int(number) if number.isdecimal() else 0)
        if not self.collects_faults or len(self.faults) >= MAX_FAULTS:
            self.refuse_faults()

    def refuse_faults(self) -> None:
        """Raise InputError if rows were rejected and not skipped."""
        full = len(self.faults) >= MAX_FAULTS
        self.faults.refuse(f"Reading stopped here. {self.remedy}" if full else self.remedy)

    def count_skipped(self, kind: str, count: int = 1) -> None:
        """Count well-formed rows of a kind that is not imported."""
        if count:
            self.left_out[kind] += count

    def wants_language(self, language: str) -> bool:
        """Check whether the filter accepts a language."""
        return not self.languages or language.lower() in (wanted.lower() for wanted in self.languages)

    def wants_predicate(self, predicate: str) -> bool:
        """Check whether the filter accepts a predicate."""
        return not self.predicates or predicate in self.predicate_spellings

    @property
    def selected_predicates(self) -> tuple[str, ...]:
        """The predicates to read, with the ids of those that are selected by label."""
        return (*self.predicates, *sorted(self.predicate_ids))

    @property
    def predicate_spellings(self) -> frozenset[str]:
        """The predicates to read, each in all of its spellings: ``rdfs:label`` and its IRI."""
        selected = self.selected_predicates
        if self._spellings is None or self._spellings[0] != selected:
            found = frozenset(spelling for text in selected for spelling in predicate_spellings(text))
            self._spellings = selected, found
        return self._spellings[1]


class _FileWithProgress(DecompressedStream):
    """A stream of the decompressed bytes of a file; progress counts the bytes read from disk."""

    def __init__(self, path: Path, progress: Progress) -> None:
        if not path.is_file():
            raise InputError(f"there is no file {path}; check the path")
        super().__init__(path)
        size = path.stat().st_size
        # A small file is read in an instant and needs no progress bar.
        self._progress = progress if size >= _MIN_BYTES_FOR_PROGRESS else SilentProgress()
        self._label = path.name
        self._reported_kb = 0
        self._progress.start(self._label, size // 1000, "kB")

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        """Read decompressed bytes into ``buffer``."""
        count = super().readinto(buffer)
        done = self.bytes_read // 1000
        if done > self._reported_kb:
            self._progress.advance(self._label, done - self._reported_kb)
            self._reported_kb = done
        return count

    def close(self) -> None:
        """Close the file and end its progress bar."""
        if not self.closed:
            self._progress.finish(self._label)
        super().close()


def open_file(path: Path, context: ReadContext) -> io.BufferedReader:
    """Open a file for reading with progress; decompress it if its name ends in .gz, .bz2, .xz or .zst."""
    return io.BufferedReader(_FileWithProgress(path, context.progress), 1 << 20)


def read_blocks(path: Path, context: ReadContext) -> Iterator[tuple[int, list[bytes]]]:
    """Yield blocks of whole lines without ``\\n``, each with the number of its first line."""
    number, rest = 1, b""
    with open_file(path, context) as handle:
        while data := handle.read(_BYTES_IN_BLOCK):
            lines = (rest + data).split(b"\n")
            rest = lines.pop()
            if len(rest) > _MAX_LINE_BYTES:
                raise InputError(
                    f"{path}:{number + len(lines)}: the line is longer than {_MAX_LINE_BYTES >> 20} MiB. "
                    "Check whether this is the right file."
                )
            if lines:
                yield number, lines
                number += len(lines)
        if rest:
            yield number, [rest]


def read_lines(path: Path, context: ReadContext, *, keep_ends: bool = False) -> Iterator[tuple[int, str]]:
    """Yield the lines of a file with their numbers, counted from 1; a line that is not UTF-8 is a bad row.

    A file that begins with the byte order mark of UTF-16 raises InputError.

    ``keep_ends`` keeps the line ends, because a quoted table cell may contain line ends.
    """
    for first, lines in read_blocks(path, context):
        for number, line in enumerate(lines, first):
            if number == 1 and line.startswith(UTF_16_MARKS):
                raise InputError(f"{path}:1: the text is UTF-16. Save the file as UTF-8.")
            try:
                text = line.decode("utf-8-sig" if number == 1 else "utf-8")
            except UnicodeDecodeError as error:
                context.reject(f"{path}:{number}", f"the text is not UTF-8 (byte {error.start + 1} of the line)")
                continue
            yield number, text + "\n" if keep_ends else text.rstrip("\r")
