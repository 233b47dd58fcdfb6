"""A text corpus as a model reads it: documents, their sentences, and the tokens of all in one array.

A ``.txt`` file has one or more sentences a line, and blank lines between documents (without any, each line is a
document of its own); a ``.jsonl`` file has one document a line, under "text". Either may be packed (``.gz``), and a
folder may hold many. Everything is read once, and 4 bytes a token are kept of it.
"""

from __future__ import annotations

import gzip
import json
import re
import zlib
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from merkhet.core.errors import InputError
from merkhet.core.files import file_digest
from merkhet.core.ids import digest
from merkhet.models.protocol import IntArray

TokenArray = NDArray[np.int32]

KINDS = (".txt", ".jsonl")
_AT_ONCE = 4096
_NAMED = 3
# Chinese marks end a sentence wherever they stand, others only before a blank: 3.14 and "e.g." within a word do not.
_CLOSING = "”’」』）】》〉〕)\\]"
_HALF = re.compile("[\ud800-\udfff]")
"""Half of a character, as an escape of JSON may give it: no tokenizer takes it."""
_END = re.compile(rf"[。！？；…][。！？；….!?]*[{_CLOSING}]*|[.!?]+[{_CLOSING}]*(?=[\s\"]|$)")


@dataclass(frozen=True)
class Corpus:
    """The tokens of all sentences, where each sentence begins among them, and each document among the sentences.

    The last entry of ``sentences`` and of ``documents`` is the end. ``remarks`` tell of rows that were left out.
    """

    tokens: TokenArray
    sentences: IntArray
    documents: IntArray
    remarks: tuple[str, ...] = ()

    def describe(self) -> dict[str, int]:
        """How much there is of everything."""
        counts = {"documents": len(self.documents) - 1, "sentences": len(self.sentences) - 1}
        return {**counts, "tokens": len(self.tokens)}


@dataclass
class _Skipped:
    """Rows that were left out: how many for each reason, and where the first ones are."""

    counts: Counter[str] = field(default_factory=Counter)
    places: dict[str, list[str]] = field(default_factory=dict)

    def add(self, reason: str, where: str) -> None:
        self.counts[reason] += 1
        places = self.places.setdefault(reason, [])
        if len(places) < _NAMED:
            places.append(where)

    def remarks(self) -> tuple[str, ...]:
        return tuple(
            f"{count} {'row' if count == 1 else 'rows'} of the corpus left out: {reason} ({', '.join(named)}"
            f"{', …' if count > len(named) else ''})"
            for reason, count in sorted(self.counts.items())
            for named in [self.places[reason]]
        )


def corpus_files(place: Path) -> list[Path]:
    """The files of a corpus, in the order in which they are read; refuses a place without any."""
    if place.is_dir():
        inside = sorted((file.relative_to(place).parts, file) for file in place.rglob("*") if file.is_file())
        found = [file for parts, file in inside if _kind(file) and not any(part.startswith(".") for part in parts)]
        if not found:
            raise InputError(f"{place} holds no text: a corpus has .txt or .jsonl files, packed (.gz) or not")
        return found
    if not place.is_file():
        raise InputError(f"there is no corpus {place}; it should be a .txt or .jsonl file, or a folder of such files")
    if not _kind(place):
        raise InputError(f"{place} is no corpus: it should be called .txt or .jsonl, packed (.gz) or not")
    return [place]


def corpus_digest(place: Path) -> str:
    """A hash of all that is read of a corpus: the same wherever it lies."""
    if place.is_dir():
        return digest([[file.relative_to(place).as_posix(), file_digest(file)] for file in corpus_files(place)])
    return digest([[_kind(file), file_digest(file)] for file in corpus_files(place)])


def split_sentences(line: str) -> list[str]:
    """The sentences of a line; joined they are the line. Marks and closing quotes stay with their sentence.

    A straight quote closes where one is open. A blank belongs to the sentence after it, as it does to the word after
    it for many tokenizers. Abbreviations are taken for ends: for learning a cut too many does no harm.
    """
    found, start = [], 0
    for end in _END.finditer(line):
        stop = end.end()
        if stop < len(line) and line[stop] == '"' and line.count('"', start, stop) % 2:
            stop += 1
        elif end[0][0] in ".!?" and stop < len(line) and line[stop] == '"':
            continue  # A quote is opened within a word.
        if line[start:stop].strip():
            found.append(line[start:stop])
            start = stop
    return [*found, line[start:]] if line[start:].strip() else found


def read_corpus(place: Path, backend: Any) -> Corpus:
    """A corpus in the tokens of a tokenizer's fast backend, without special tokens of its own.

    Refuses text that is not UTF-8, and a corpus without a single token. Rows of .jsonl that hold no text are left
    out and counted.
    """
    skipped = _Skipped()
    tokens: list[TokenArray] = []
    lengths: list[IntArray] = []
    owners: list[IntArray] = []
    for batch, numbers in _batches(_documents(corpus_files(place), skipped)):
        encoded = [encoding.ids for encoding in backend.encode_batch_fast(batch, add_special_tokens=False)]
        sizes = np.fromiter(map(len, encoded), dtype=np.int64, count=len(encoded))
        tokens.append(np.fromiter(chain.from_iterable(encoded), dtype=np.int32, count=int(sizes.sum())))
        kept = sizes > 0
        lengths.append(sizes[kept])
        owners.append(np.array(numbers, dtype=np.int64)[kept])
    if not sum(map(len, tokens)):
        raise InputError(f"{place} holds no text that the model has tokens for; name a corpus with sentences in it")
    owner = np.concatenate(owners)
    return Corpus(
        np.concatenate(tokens),
        np.concatenate([[0], np.cumsum(np.concatenate(lengths))]),
        np.concatenate([[0], np.flatnonzero(np.diff(owner)) + 1, [len(owner)]]),
        skipped.remarks(),
    )


def _batches(documents: Iterable[Iterable[str]]) -> Iterator[tuple[list[str], array[int]]]:
    """Sentences, many at a time, with the number of the document of each."""
    batch: list[str] = []
    numbers = array("q")
    for number, lines in enumerate(documents):
        for place, line in enumerate(lines):
            some = split_sentences(f" {line}" if place else line)  # A new line within a document is a blank.
            batch += some
            numbers.extend([number] * len(some))
            if len(batch) >= _AT_ONCE:
                yield batch, numbers
                batch, numbers = [], array("q")
    if batch:
        yield batch, numbers


def _documents(files: Iterable[Path], skipped: _Skipped) -> Iterator[Iterable[str]]:
    """The lines of each document, one document after another."""
    for file in files:
        if _kind(file) == ".jsonl":
            yield from _rows(file, skipped)
            continue
        apart = not _has_blank_lines(file)
        document: list[str] = []
        for _, line in _lines(file):
            if document and (apart or not line):
                yield document
                document = []
            if line:
                document.append(line)
        if document:
            yield document


def _has_blank_lines(file: Path) -> bool:
    """Whether a blank line stands between two others."""
    text = blank = False
    for _, line in _lines(file):
        if line and blank:
            return True
        text = text or bool(line)
        blank = text and not line
    return False


def _rows(file: Path, skipped: _Skipped) -> Iterator[list[str]]:
    for number, line in _lines(file):
        if not line:
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            skipped.add("not valid JSON", f"{file.name}:{number}")
            continue
        text = row.get("text") if isinstance(row, dict) else None
        if not isinstance(text, str):
            skipped.add('no "text"', f"{file.name}:{number}")
            continue
        if _HALF.search(text):
            skipped.add("half of a character", f"{file.name}:{number}")
            continue
        yield [part for part in map(str.strip, text.splitlines()) if part]


def _lines(file: Path) -> Iterator[tuple[int, str]]:
    """The lines of a file with their numbers, without blanks around them."""
    number = 0
    try:
        with gzip.open(file, "rb") if file.suffix == ".gz" else open(file, "rb") as handle:
            for number, line in enumerate(handle, start=1):
                yield number, line.decode("utf-8-sig" if number == 1 else "utf-8").strip()
    except UnicodeDecodeError as error:
        raise InputError(f"{file}:{number}: the text is not UTF-8. Save the corpus as UTF-8.") from error
    except (gzip.BadGzipFile, zlib.error, EOFError) as error:
        raise InputError(f"{file}:{number + 1}: the packed file is damaged. Fetch it anew.") from error


def _kind(file: Path) -> str | None:
    name = file.name.lower().removesuffix(".gz")
    return next((kind for kind in KINDS if name.endswith(kind)), None)
