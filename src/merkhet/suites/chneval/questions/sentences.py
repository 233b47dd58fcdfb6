"""Raw text as sentences that know the file and the line they came from."""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from merkhet.core import SLOT
from merkhet.core.errors import InputError
from merkhet.suites.chneval.questions.text_anomalies import Counted

_OWN = Path(__file__).parent / "zh"
# Scripts that put no blanks between words: Han, kana, Thai, Lao, Tibetan, Myanmar and Khmer.
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
    """A sentence and where it stands: the name of its file, and the line."""

    text: str
    where: str


def own_material(name: str) -> Path:
    """A file of merkhet's own small Chinese material: sentences.txt, senses.tsv, pairs.tsv or triples.tsv."""
    path = _OWN / name
    if not path.is_file():
        raise InputError(f"merkhet has no material {name!r}; there are {', '.join(_material())}")
    return path


def _material() -> list[str]:
    return sorted(path.name for path in _OWN.iterdir() if path.suffix == ".tsv" or path.name == "sentences.txt")


def text_files(sources: Path | Sequence[Path], endings: Collection[str]) -> list[tuple[Path, str]]:
    """The files of some sources with their names for people: a file by itself, a folder by all it holds.

    ``endings`` are those that are read (".txt"); each may be followed by ".gz". In a folder other files are passed
    over. Refuses what is not there, a file with another ending, and a folder without any such file.
    """
    found = []
    for source in [sources] if isinstance(sources, Path) else sources:
        if source.is_dir():
            within = sorted(path for path in source.rglob("*") if path.is_file() and ending(path) in endings)
            if not within:
                raise InputError(f"{source}: no file in this folder ends in {_either(endings)}")
            found += [(path, path.relative_to(source).as_posix()) for path in within]
        elif not source.is_file():
            raise InputError(f"there is no file or folder {source}; it should hold text")
        elif ending(source) not in endings:
            raise InputError(f"{source}: a file of text ends in {_either(endings)} (or that with .gz)")
        else:
            found.append((source, source.name))
    return found


def ending(path: Path) -> str:
    """How a file's name ends, whether it is compressed or not."""
    return (path.with_suffix("") if path.suffix == ".gz" else path).suffix.lower()


def _either(endings: Collection[str]) -> str:
    return " or ".join(sorted(endings))


def read_lines(path: Path) -> Iterator[tuple[int, str]]:
    """The lines of a UTF-8 file, compressed or not, with their numbers from 1; refuses another encoding."""
    number = 0
    try:
        with gzip.open(path, "rb") if path.suffix == ".gz" else open(path, "rb") as handle:
            for number, line in enumerate(handle, 1):
                text = line.decode("utf-8-sig" if number == 1 else "utf-8")
                yield number, text.rstrip("\r\n")
    except UnicodeDecodeError as error:
        raise InputError(f"{path}, line {number}: the text is not UTF-8. Save the file as UTF-8.") from error
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise InputError(f"{path} is not a whole gzip file ({error}). Fetch it anew.") from error


def read_sentences(path: Path, name: str, remarked: Counted) -> Iterator[Sentence]:
    """The sentences of a text file; one that holds the text of a slot could not be asked, and is left out."""
    for number, line in read_lines(path):
        for text in split_sentences(line):
            sentence = Sentence(text, f"{name}, line {number}")
            if is_askable(sentence, remarked):
                yield sentence


def is_askable(sentence: Sentence, remarked: Counted) -> bool:
    """Whether a slot can be put into a sentence; one that has the text of a slot already is remarked."""
    if SLOT in sentence.text:
        remarked.add(f"left out, for it holds the text {SLOT}", sentence.where)
        return False
    return True


def split_sentences(line: str) -> list[str]:
    """The sentences of a line: up to 。！？…, or up to . ! ? and a blank; closing quotes stay with their sentence."""
    return [line[start:stop] for start, stop in sentence_spans(line)]


def sentence_spans(line: str) -> list[tuple[int, int]]:
    """From where to where the sentences of a line go, without the blanks around them."""
    ends = []
    start = 0
    for found in _END.finditer(line):
        if not _ABBREVIATED.search(line[start : found.end()]):
            ends.append(found.end())
            start = found.end()
    spans = []
    for start, stop in zip([0, *ends], [*ends, len(line)], strict=True):
        text = line[start:stop]
        if text.strip():
            begin = start + len(text) - len(text.lstrip())
            spans.append((begin, begin + len(text.strip())))
    return spans
