"""Text corpora, indexed once: how many paragraphs hold some phrases together."""

from __future__ import annotations

import gzip
import json
import os
import re
import shutil
import unicodedata
import zlib
from collections.abc import Iterable, Iterator, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import IO, Any

from merkhet.core.errors import InputError
from merkhet.core.files import cache_folder, file_digest, temporary_path, write_json
from merkhet.core.ids import digest
from merkhet.core.text_formats import parse_json

WORDS_A_DOCUMENT = 400
_ENDINGS = (".txt", ".jsonl", ".txt.gz", ".jsonl.gz")
_VERSION = 1
_SEAL = "whole.json"
_BREAK = "|"
"""Stands between a title and its paragraph: no phrase runs over it, as no word holds it."""
_IDEOGRAPHS = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
# The index takes no word of more than 65,530 bytes, so that very long ones are parted.
_WORD = re.compile(rf"[{_IDEOGRAPHS}]|[^\W_{_IDEOGRAPHS}]{{1,200}}")


def split_words(text: str) -> list[str]:
    """A text's words without case, punctuation and compatibility forms; hyphens part words, ideographs stand alone."""
    if text.isascii():
        return _WORD.findall(text.lower())
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    # The small letter of a Turkish İ is an i with a further dot, which is no letter.
    return _WORD.findall(folded.replace("i\u0307", "i"))


def corpus_files(place: Path) -> list[Path]:
    """The text files of a corpus, in order; refuses a place without any."""
    if place.is_file() and place.name.endswith(_ENDINGS):
        return [place]
    files = sorted(file for file in place.rglob("*") if file.is_file() and file.name.endswith(_ENDINGS))
    if not files:
        what = "is no folder or file of" if not place.is_dir() else "holds no"
        raise InputError(f"the corpus {place} {what} texts ({', '.join(_ENDINGS)}); name a folder that has some")
    return files


def corpus_identity(value: Any, home: Path, _models: Sequence[str] = ()) -> str:
    """What a cache key holds of a corpus: the content of its files. Refuses what could not be searched later."""
    _tantivy()
    place = home / str(value)
    return digest([[str(file.relative_to(place)), file_digest(file)] for file in corpus_files(place)])


def read_paragraphs(files: Iterable[Path]) -> Iterator[list[str]]:
    """The words of each paragraph: parted by blank lines, cut where they are long, an article's title before each."""
    for file in files:
        try:
            for title, lines in _articles(file):
                head = [*split_words(title), _BREAK] if title else []
                for paragraph in _paragraphs(lines):
                    found = split_words(paragraph)
                    for start in range(0, len(found), WORDS_A_DOCUMENT):
                        yield head + found[start : start + WORDS_A_DOCUMENT]
        except UnicodeDecodeError as error:
            raise InputError(f"{file} is not UTF-8; save it as UTF-8") from error
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise InputError(f"{file} is not a whole gzip file; fetch it anew") from error


class CorpusIndex:
    """An index of a corpus that counts paragraphs. It is built once for the same files and kept in merkhet's cache."""

    def __init__(self, place: Path) -> None:
        tantivy = _tantivy()
        key = digest([corpus_identity(place, Path()), _VERSION, WORDS_A_DOCUMENT, version("tantivy")])
        folder = cache_folder() / "corpora" / key[:32]
        if folder.is_dir() and not _is_whole(folder):
            shutil.rmtree(folder)
        if not folder.is_dir():
            _build(corpus_files(place), folder)
        self._parts = tantivy
        self._index = tantivy.Index.open(str(folder))
        self._searcher = self._index.searcher()
        self._known: dict[tuple[tuple[str, ...], ...], int] = {}

    def __len__(self) -> int:
        return int(self._searcher.num_docs)

    def count(self, phrases: Iterable[str], any_of: Iterable[str] = ()) -> int:
        """How many paragraphs hold all the phrases, and at least one of ``any_of`` where there are any.

        A phrase is found where its words follow each other, whatever their case and the punctuation between them; one
        without words is found everywhere, and so is nothing at all.
        """
        needed = sorted({tuple(found) for text in phrases if (found := split_words(text))})
        either = sorted({tuple(split_words(text)) for text in any_of})
        if () in either:
            either = []
        key = (*needed, (), *either)
        if key not in self._known:
            self._known[key] = self._search(needed, either)
        return self._known[key]

    def _search(self, needed: Sequence[tuple[str, ...]], either: Sequence[tuple[str, ...]]) -> int:
        queries, occur = self._parts.Query, self._parts.Occur
        parts = [(occur.Must, self._phrase(phrase)) for phrase in needed]
        if either:
            parts.append((occur.Must, queries.boolean_query([(occur.Should, self._phrase(one)) for one in either])))
        if not parts:
            return len(self)
        return int(self._searcher.search(queries.boolean_query(parts), limit=1, count=True).count)

    def _phrase(self, phrase: tuple[str, ...]) -> Any:
        queries, schema = self._parts.Query, self._index.schema
        if len(phrase) == 1:
            return queries.term_query(schema, "text", phrase[0])
        return queries.phrase_query(schema, "text", list(phrase))


def _build(files: Sequence[Path], folder: Path) -> None:
    tantivy = _tantivy()
    schema = tantivy.SchemaBuilder().add_text_field("text", tokenizer_name="whitespace").build()
    unfinished = temporary_path(folder)
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir(parents=True)
    try:
        writer = tantivy.Index(schema, path=str(unfinished)).writer(heap_size=256_000_000)
        try:
            for found in read_paragraphs(files):
                writer.add_document(tantivy.Document(text=" ".join(found)))
            writer.commit()
        finally:
            # Its threads write files for as long as they live, also into a folder that is being removed.
            writer.wait_merging_threads()
        write_json(unfinished / _SEAL, _digests(unfinished))
        try:
            os.replace(unfinished, folder)
        except OSError:
            if not folder.is_dir():  # Else another process has just built the same index.
                raise
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def _digests(folder: Path) -> dict[str, str]:
    return {file.name: file_digest(file) for file in sorted(folder.iterdir()) if file.name != _SEAL}


def _is_whole(folder: Path) -> bool:
    """Whether an index is what was built once; searching looks at no checksum."""
    try:
        sealed = json.loads((folder / _SEAL).read_bytes())
        return bool(sealed) and all(file_digest(folder / name) == digest for name, digest in sealed.items())
    except (OSError, ValueError, AttributeError):
        return False


def _articles(file: Path) -> Iterator[tuple[str, Iterable[str]]]:
    """Titles (or '') with the lines of their texts; a text file is one article."""
    with _opened(file) as handle:
        if not file.name.endswith((".jsonl", ".jsonl.gz")):
            yield "", handle
            return
        for number, line in enumerate(handle, 1):
            if line.strip():
                yield _parsed(line, f"{file}, row {number}")


def _parsed(line: str, where: str) -> tuple[str, list[str]]:
    article = parse_json(line, where, "Mend the row.")
    if not isinstance(article, dict) or not isinstance(article.get("text"), str):
        raise InputError(f"{where}: an article is a JSON object with a 'text', and this has none")
    return str(article.get("title") or ""), article["text"].splitlines()


def _opened(file: Path) -> IO[str]:
    if file.suffix == ".gz":
        return gzip.open(file, "rt", encoding="utf-8")
    return open(file, encoding="utf-8")


def _paragraphs(lines: Iterable[str]) -> Iterator[str]:
    """Lines up to the next blank one, joined; very long runs of lines are handed on in parts."""
    held: list[str] = []
    size = 0
    for line in lines:
        if held and (not line.strip() or size > 1_000_000):
            yield " ".join(held)
            held, size = [], 0
        if line.strip():
            held.append(line)
            size += len(line)
    if held:
        yield " ".join(held)


def _tantivy() -> Any:
    try:
        import tantivy
    except ImportError as error:
        raise InputError('searching a corpus needs tantivy: pip install "merkhet[corpus]"') from error
    return tantivy
