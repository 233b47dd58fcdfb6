"""Readers of text files, with splitting into lines, blocks and sentences."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from merkhet.core import SLOT
from merkhet.core.compressed_files import format_suffix, open_file
from merkhet.core.errors import InputError
from merkhet.suites.chneval.questions.text_anomalies import RemarkCounter

# Scripts without spaces between words: Han, kana, Thai, Lao, Tibetan, Myanmar and Khmer.
_UNSPACED = re.compile(
    "[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
    "\u0e00-\u0eff\u0f00-\u0fff\u1000-\u109f\u1780-\u17ff]"
)
_CLOSING = "”’』」）】》〉)\\]\"'»"
_END = re.compile(
    rf"(?:[。！？｡…]+|(?<={_UNSPACED.pattern})[!?]+(?!\s))[{_CLOSING}]*"
    rf"|[.!?]+[{_CLOSING}]*(?=\s)"
)
_ABBREVIATED = re.compile(
    r"(?:^|[\s(\"'“‘])(?:[A-Za-z]|Mr|Mrs|Ms|Dr|Prof|St|Jr|Sr|vs|etc|cf|No|Fig|Inc|Ltd|Co|approx|[a-z]\.[a-z])\.$"
)


@dataclass(frozen=True)
class Sentence:
    """Sentence with the file and line that contain it."""

    text: str
    where: str


def embedded_file(name: str) -> Path:
    """Return the path of an embedded Chinese file: sentences.txt, senses.tsv, pairs.tsv or triples.tsv."""
    return Path(__file__).parent / "zh" / name


def find_text_files(sources: Path | Sequence[Path], suffixes: Collection[str]) -> list[tuple[Path, str]]:
    """Find text files: files named in ``sources``, and all files with a matching suffix in folders named there.

    Args:
        suffixes: Suffixes to read, such as ".txt"; each may be followed by the suffix of a compressed format.

    Returns:
        Pairs of a path and the name to show to users.

    Raises:
        InputError: If a source does not exist, a file has another suffix, or a folder has no matching file.
    """
    files, endings = [], " or ".join(sorted(suffixes))
    for source in [sources] if isinstance(sources, Path) else sources:
        if source.is_dir():
            matches = sorted(path for path in source.rglob("*") if path.is_file() and format_suffix(path) in suffixes)
            if not matches:
                raise InputError(f"{source}: no file in this folder ends in {endings}")
            files += [(path, path.relative_to(source).as_posix()) for path in matches]
        elif not source.is_file():
            raise InputError(f"there is no file or folder {source}; name one with text")
        elif format_suffix(source) not in suffixes:
            raise InputError(f"{source}: the name of a text file ends in {endings}, and may be compressed")
        else:
            files.append((source, source.name))
    return files


def read_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield line numbers (from 1) and lines of a UTF-8 file, which may be compressed."""
    number = 0
    try:
        with open_file(path) as handle:
            for number, line in enumerate(handle, 1):
                text = line.decode("utf-8-sig" if number == 1 else "utf-8")
                yield number, text.rstrip("\r\n")
    except UnicodeDecodeError as error:
        raise InputError(f"{path}, line {number}: the text is not UTF-8. Save the file as UTF-8.") from error


def read_blocks(path: Path) -> Iterator[list[tuple[int, str]]]:
    """Yield the blocks of consecutive non-empty lines of a file, with line numbers."""
    for has_text, lines in groupby(read_lines(path), key=lambda line: bool(line[1].strip())):
        if has_text:
            yield list(lines)


def read_sentences(path: Path, name: str, counter: RemarkCounter) -> Iterator[Sentence]:
    """Yield the sentences of a text file; sentences that contain the slot ``[MASK]`` are left out and counted."""
    for number, line in read_lines(path):
        for text in split_sentences(line):
            sentence = Sentence(text, f"{name}, line {number}")
            if has_no_slot(sentence, counter):
                yield sentence


def has_no_slot(sentence: Sentence, counter: RemarkCounter) -> bool:
    """Check that a sentence does not contain the slot ``[MASK]``; count a sentence that does."""
    if SLOT in sentence.text:
        counter.skip(f"it contains the text {SLOT}", sentence.where)
        return False
    return True


def split_sentences(line: str) -> list[str]:
    """Split a line into sentences.

    A sentence ends after 。！？…, or after . ! ? before a space. Closing quotes belong to the sentence before them.
    """
    return [line[start:stop] for start, stop in sentence_spans(line)]


def sentence_spans(line: str) -> list[tuple[int, int]]:
    """Return the start and end positions of each sentence in a line, without surrounding spaces."""
    ends = []
    start = 0
    for match in _END.finditer(line):
        if not _ABBREVIATED.search(line[start : match.end()]):
            ends.append(match.end())
            start = match.end()
    spans = []
    for start, stop in zip([0, *ends], [*ends, len(line)], strict=True):
        text = line[start:stop]
        if text.strip():
            begin = start + len(text) - len(text.lstrip())
            spans.append((begin, begin + len(text.strip())))
    return spans
