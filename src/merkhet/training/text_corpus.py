"""Tokenized text corpora, with the bounds of documents and sentences.

In a ``.txt`` file each line has one or more sentences, and blank lines separate documents; without blank lines, each
line is a document. In a ``.jsonl`` file each line is a JSON object with a document under "text". Files may be
compressed (``.gz``, ``.bz2``, ``.xz``, ``.zst``). A corpus is a file or a folder of files. It is read into memory, with
4 bytes for each token.
"""

from __future__ import annotations

import re
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from merkhet.core.compressed_files import format_suffix, open_file
from merkhet.core.errors import InputError
from merkhet.core.files import file_digest
from merkhet.core.ids import digest
from merkhet.core.strict_json import decode_json
from merkhet.models.protocol import IntArray

TokenArray = NDArray[np.int32]

SUFFIXES = (".txt", ".jsonl")
_BATCH_SIZE = 4096
_NAMED_ROWS = 3
# Chinese marks end a sentence anywhere. Other marks end it only before a space, so 3.14 is not split.
_CLOSING = "”’」』）】》〉〕)\\]"
_SURROGATE = re.compile("[\ud800-\udfff]")
"""Pattern of an unpaired surrogate, which JSON escapes can contain and no tokenizer accepts."""
_SENTENCE_END = re.compile(rf"[。！？；…][。！？；….!?]*[{_CLOSING}]*|[.!?]+[{_CLOSING}]*(?=[\s\"]|$)")


@dataclass(frozen=True)
class Corpus:
    """A tokenized corpus."""

    tokens: TokenArray
    """Tokens of all sentences, concatenated."""
    sentences: IntArray
    """Index of each sentence's first token in ``tokens``, and the total number of tokens."""
    documents: IntArray
    """Index of each document's first sentence in ``sentences``, and the total number of sentences."""
    remarks: tuple[str, ...] = ()
    """Messages about lines of .jsonl files that were left out."""

    def describe(self) -> dict[str, int]:
        """Return the numbers of documents, sentences and tokens."""
        counts = {"documents": len(self.documents) - 1, "sentences": len(self.sentences) - 1}
        return {**counts, "tokens": len(self.tokens)}


@dataclass
class _SkippedRows:
    """Lines of .jsonl files that were left out, by reason."""

    counts: Counter[str] = field(default_factory=Counter)
    locations: dict[str, list[str]] = field(default_factory=dict)
    """File name and line number of the first skipped lines of each reason."""

    def add(self, reason: str, location: str) -> None:
        self.counts[reason] += 1
        locations = self.locations.setdefault(reason, [])
        if len(locations) < _NAMED_ROWS:
            locations.append(location)

    def remarks(self) -> tuple[str, ...]:
        return tuple(
            f"{count} {'row' if count == 1 else 'rows'} of the corpus left out: {reason} ({', '.join(named)}"
            f"{', …' if count > len(named) else ''})"
            for reason, count in sorted(self.counts.items())
            for named in [self.locations[reason]]
        )


def corpus_files(path: Path) -> list[Path]:
    """Return the files of a corpus in reading order; raise an ``InputError`` if there are none."""
    if path.is_dir():
        inside = sorted((file.relative_to(path).parts, file) for file in path.rglob("*") if file.is_file())
        files = [file for parts, file in inside if _suffix(file) and not any(part.startswith(".") for part in parts)]
        if not files:
            raise InputError(f"{path} holds no text; a corpus has .txt or .jsonl files, compressed or not")
        return files
    if not path.is_file():
        raise InputError(f"there is no corpus {path}; name a .txt or .jsonl file, or a folder of such files")
    if not _suffix(path):
        raise InputError(f"{path} is no corpus; its name must end in .txt or .jsonl, compressed or not")
    return [path]


def corpus_digest(path: Path) -> str:
    """Return a hash of all files of a corpus, which does not depend on where the corpus is stored."""
    if path.is_dir():
        return digest([[file.relative_to(path).as_posix(), file_digest(file)] for file in corpus_files(path)])
    return digest([[_suffix(file), file_digest(file)] for file in corpus_files(path)])


def split_sentences(line: str) -> list[str]:
    """Split a line into sentences whose concatenation is the line.

    Punctuation and closing quotes stay with their sentence. A straight quote counts as closing if another straight
    quote is open. A space belongs to the sentence after it, as many tokenizers attach it to the next word.
    Abbreviations also end sentences; for training, an additional split does no harm.
    """
    sentences, start = [], 0
    for mark in _SENTENCE_END.finditer(line):
        stop = mark.end()
        if stop < len(line) and line[stop] == '"' and line.count('"', start, stop) % 2:
            stop += 1
        elif mark[0][0] in ".!?" and stop < len(line) and line[stop] == '"':
            continue  # An opening quote follows directly, so this mark does not end a sentence.
        if line[start:stop].strip():
            sentences.append(line[start:stop])
            start = stop
    return [*sentences, line[start:]] if line[start:].strip() else sentences


def read_corpus(path: Path, backend: Any) -> Corpus:
    """Tokenize a text file or a folder of text files without special tokens.

    ``backend`` is the Rust tokenizer of a fast Hugging Face tokenizer. Lines of .jsonl files without a usable text are
    left out and reported in ``remarks``.

    Raises:
        InputError: a text is not UTF-8, or the corpus has no token.
    """
    skipped = _SkippedRows()
    tokens: list[TokenArray] = []
    lengths: list[IntArray] = []
    document_numbers: list[IntArray] = []
    for batch, batch_documents in _batches(_documents(corpus_files(path), skipped)):
        encoded = [encoding.ids for encoding in backend.encode_batch_fast(batch, add_special_tokens=False)]
        sizes = np.fromiter(map(len, encoded), dtype=np.int64, count=len(encoded))
        tokens.append(np.fromiter(chain.from_iterable(encoded), dtype=np.int32, count=int(sizes.sum())))
        nonempty = sizes > 0
        lengths.append(sizes[nonempty])
        document_numbers.append(np.array(batch_documents, dtype=np.int64)[nonempty])
    if not sum(map(len, tokens)):
        raise InputError(f"{path} holds no text that the model can tokenize; name a corpus with sentences")
    document_of_sentence = np.concatenate(document_numbers)
    return Corpus(
        np.concatenate(tokens),
        np.concatenate([[0], np.cumsum(np.concatenate(lengths))]),
        np.concatenate([[0], np.flatnonzero(np.diff(document_of_sentence)) + 1, [len(document_of_sentence)]]),
        skipped.remarks(),
    )


def _batches(documents: Iterable[Iterable[str]]) -> Iterator[tuple[list[str], array[int]]]:
    """Yield batches of sentences, each with the document indices of its sentences."""
    batch: list[str] = []
    numbers = array("q")
    for number, lines in enumerate(documents):
        for line_number, line in enumerate(lines):
            # A line break within a document is replaced by a space.
            sentences = split_sentences(f" {line}" if line_number else line)
            batch += sentences
            numbers.extend([number] * len(sentences))
            if len(batch) >= _BATCH_SIZE:
                yield batch, numbers
                batch, numbers = [], array("q")
    if batch:
        yield batch, numbers


def _documents(files: Iterable[Path], skipped: _SkippedRows) -> Iterator[Iterable[str]]:
    """Yield the lines of each document."""
    for file in files:
        if _suffix(file) == ".jsonl":
            yield from _rows(file, skipped)
            continue
        line_is_document = not _has_blank_lines(file)
        document: list[str] = []
        for _, line in _lines(file):
            if document and (line_is_document or not line):
                yield document
                document = []
            if line:
                document.append(line)
        if document:
            yield document


def _has_blank_lines(file: Path) -> bool:
    """Return whether a file has a blank line between two lines with text."""
    text = blank = False
    for _, line in _lines(file):
        if line and blank:
            return True
        text = text or bool(line)
        blank = text and not line
    return False


def _rows(file: Path, skipped: _SkippedRows) -> Iterator[list[str]]:
    for number, line in _lines(file):
        if not line:
            continue
        try:
            row = decode_json(line)
        except (ValueError, RecursionError):
            skipped.add("not valid JSON", f"{file.name}:{number}")
            continue
        text = row.get("text") if isinstance(row, dict) else None
        if not isinstance(text, str):
            skipped.add('no "text"', f"{file.name}:{number}")
        elif _SURROGATE.search(text):
            skipped.add("a lone surrogate", f"{file.name}:{number}")
        else:
            yield [part for part in map(str.strip, text.splitlines()) if part]


def _lines(file: Path) -> Iterator[tuple[int, str]]:
    """Yield the line number and the stripped text of each line of a file."""
    number = 0
    try:
        with open_file(file) as handle:
            for number, line in enumerate(handle, start=1):
                yield number, line.decode("utf-8-sig" if number == 1 else "utf-8").strip()
    except UnicodeDecodeError as error:
        raise InputError(f"{file}:{number}: the text is not UTF-8. Save the corpus as UTF-8.") from error


def _suffix(file: Path) -> str | None:
    suffix = format_suffix(file)
    return suffix if suffix in SUFFIXES else None
