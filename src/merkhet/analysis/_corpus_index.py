"""Full-text index of a corpus that counts the paragraphs with given phrases."""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import IO, Any

from merkhet.core.compressed_files import format_suffix, open_file
from merkhet.core.errors import InputError
from merkhet.core.files import cache_folder, file_digest, temporary_path, write_json
from merkhet.core.ids import digest
from merkhet.core.text_formats import parse_json

WORDS_A_DOCUMENT = 400
_SUFFIXES = (".txt", ".jsonl")
_VERSION = 1
_CHECKSUMS = "whole.json"
_SEPARATOR = "|"
"""Separator of title and paragraph; no word contains it, so no phrase matches across it."""
_IDEOGRAPHS = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
# Long words are split because the index accepts at most 65,530 bytes per word.
_WORD = re.compile(rf"[{_IDEOGRAPHS}]|[^\W_{_IDEOGRAPHS}]{{1,200}}")


def split_words(text: str) -> list[str]:
    """Split a text into words without case and punctuation; hyphens separate words, and each ideograph is a word."""
    if text.isascii():
        return _WORD.findall(text.lower())
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    # The lower case of the Turkish İ is an i with a combining dot, which is not a letter.
    return _WORD.findall(folded.replace("i\u0307", "i"))


def corpus_files(path: Path) -> list[Path]:
    """List the text files of a corpus, sorted.

    Raises:
        InputError: The corpus has no text files.
    """
    if path.is_file() and format_suffix(path) in _SUFFIXES:
        return [path]
    files = sorted(file for file in path.rglob("*") if file.is_file() and format_suffix(file) in _SUFFIXES)
    if not files:
        problem = "is not a folder or file of" if not path.is_dir() else "holds no"
        raise InputError(f"the corpus {path} {problem} texts ({', '.join(_SUFFIXES)}); name a folder that holds some")
    return files


def corpus_identity(value: Any, home: Path, _models: Sequence[str] = ()) -> str:
    """Hash the files of a corpus for cache keys.

    Raises:
        InputError: tantivy is not installed, or the corpus has no text files.
    """
    _import_tantivy()
    path = home / str(value)
    return digest([[str(file.relative_to(path)), file_digest(file)] for file in corpus_files(path)])


def read_paragraphs(files: Iterable[Path]) -> Iterator[list[str]]:
    """Yield the words of each paragraph, preceded by the title of its article; split long paragraphs.

    Raises:
        InputError: A file is not UTF-8, or a compressed file is damaged.
    """
    for file in files:
        try:
            for title, lines in _articles(file):
                head = [*split_words(title), _SEPARATOR] if title else []
                for paragraph in _paragraphs(lines):
                    paragraph_words = split_words(paragraph)
                    for start in range(0, len(paragraph_words), WORDS_A_DOCUMENT):
                        yield head + paragraph_words[start : start + WORDS_A_DOCUMENT]
        except UnicodeDecodeError as error:
            raise InputError(f"{file} is not UTF-8; save it as UTF-8") from error


class CorpusIndex:
    """An index that counts paragraphs of a corpus; it is built once per set of files and stored in the cache."""

    def __init__(self, path: Path) -> None:
        tantivy = _import_tantivy()
        key = digest([corpus_identity(path, Path()), _VERSION, WORDS_A_DOCUMENT, version("tantivy")])
        folder = cache_folder() / "corpora" / key[:32]
        if folder.is_dir() and not _is_intact(folder):
            shutil.rmtree(folder)
        if not folder.is_dir():
            _build(corpus_files(path), folder)
        self._tantivy = tantivy
        self._index = tantivy.Index.open(str(folder))
        self._searcher = self._index.searcher()
        self._counts: dict[tuple[tuple[str, ...], ...], int] = {}

    def __len__(self) -> int:
        return int(self._searcher.num_docs)

    def count(self, phrases: Iterable[str], any_of: Iterable[str] = ()) -> int:
        """Count the paragraphs with all ``phrases`` and, if given, at least one of ``any_of``.

        A phrase matches if its words are adjacent in the paragraph, regardless of case and punctuation. A phrase
        without words matches every paragraph.
        """
        needed = sorted({tuple(phrase_words) for text in phrases if (phrase_words := split_words(text))})
        alternatives = sorted({tuple(split_words(text)) for text in any_of})
        if () in alternatives:
            alternatives = []
        key = (*needed, (), *alternatives)
        if key not in self._counts:
            self._counts[key] = self._search(needed, alternatives)
        return self._counts[key]

    def _search(self, needed: Sequence[tuple[str, ...]], alternatives: Sequence[tuple[str, ...]]) -> int:
        queries, occur = self._tantivy.Query, self._tantivy.Occur
        clauses = [(occur.Must, self._phrase_query(phrase)) for phrase in needed]
        if alternatives:
            clauses.append(
                (
                    occur.Must,
                    queries.boolean_query([(occur.Should, self._phrase_query(phrase)) for phrase in alternatives]),
                )
            )
        if not clauses:
            return len(self)
        return int(self._searcher.search(queries.boolean_query(clauses), limit=1, count=True).count)

    def _phrase_query(self, phrase: tuple[str, ...]) -> Any:
        queries, schema = self._tantivy.Query, self._index.schema
        if len(phrase) == 1:
            return queries.term_query(schema, "text", phrase[0])
        return queries.phrase_query(schema, "text", list(phrase))


def _build(files: Sequence[Path], folder: Path) -> None:
    tantivy = _import_tantivy()
    schema = tantivy.SchemaBuilder().add_text_field("text", tokenizer_name="whitespace").build()
    unfinished = temporary_path(folder)
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir(parents=True)
    try:
        writer = tantivy.Index(schema, path=str(unfinished)).writer(heap_size=256_000_000)
        try:
            for paragraph_words in read_paragraphs(files):
                writer.add_document(tantivy.Document(text=" ".join(paragraph_words)))
            writer.commit()
        finally:
            # Running threads would write into the folder while it is being removed.
            writer.wait_merging_threads()
        write_json(unfinished / _CHECKSUMS, _file_digests(unfinished))
        try:
            os.replace(unfinished, folder)
        except OSError:
            if not folder.is_dir():  # Otherwise another process has just built the same index.
                raise
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def _file_digests(folder: Path) -> dict[str, str]:
    return {file.name: file_digest(file) for file in sorted(folder.iterdir()) if file.name != _CHECKSUMS}


def _is_intact(folder: Path) -> bool:
    """Return whether the files of an index match their checksums, which searches do not verify."""
    try:
        checksums = json.loads((folder / _CHECKSUMS).read_bytes())
        return bool(checksums) and all(file_digest(folder / name) == checksum for name, checksum in checksums.items())
    except (OSError, ValueError, AttributeError):
        return False


def _articles(file: Path) -> Iterator[tuple[str, Iterable[str]]]:
    """Yield the title (or '') and the text lines of each article; a text file is one article."""
    with _open_text(file) as handle:
        if format_suffix(file) != ".jsonl":
            yield "", handle
            return
        for number, line in enumerate(handle, 1):
            if line.strip():
                yield _parse_article(line, f"{file}, row {number}")


def _parse_article(line: str, where: str) -> tuple[str, list[str]]:
    article = parse_json(line, where, "Correct the row.")
    if not isinstance(article, dict) or not isinstance(article.get("text"), str):
        raise InputError(f"{where}: an article must be a JSON object with a string 'text'")
    return str(article.get("title") or ""), article["text"].splitlines()


def _open_text(file: Path) -> IO[str]:
    return io.TextIOWrapper(open_file(file), encoding="utf-8")


def _paragraphs(lines: Iterable[str]) -> Iterator[str]:
    """Join the lines between blank lines into paragraphs; split very long paragraphs."""
    paragraph_lines: list[str] = []
    size = 0
    for line in lines:
        if paragraph_lines and (not line.strip() or size > 1_000_000):
            yield " ".join(paragraph_lines)
            paragraph_lines, size = [], 0
        if line.strip():
            paragraph_lines.append(line)
            size += len(line)
    if paragraph_lines:
        yield " ".join(paragraph_lines)


def _import_tantivy() -> Any:
    try:
        import tantivy
    except ImportError as error:
        raise InputError('searching a corpus needs tantivy: pip install "merkhet[corpus]"') from error
    return tantivy
