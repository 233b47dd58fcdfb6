"""Part-of-speech tagged sentences from raw Chinese text (tagged by jieba), CoNLL-U files and ``word/tag`` text."""

from __future__ import annotations

import logging
import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from merkhet.core.compressed_files import format_suffix
from merkhet.core.errors import InputError
from merkhet.core.files import scratch_folder
from merkhet.suites.chneval.questions.chinese_words import function_word_class
from merkhet.suites.chneval.questions.sentences import (
    Sentence,
    find_text_files,
    has_no_slot,
    read_blocks,
    read_lines,
    read_sentences,
    sentence_spans,
)
from merkhet.suites.chneval.questions.text_anomalies import RemarkCounter

CHINESE_TAGS: Mapping[str, tuple[str, ...]] = {
    "C": ("c",),
    "D": ("d", "df"),
    "P": ("p",),
    "U": ("u", "ud", "ug", "uj", "ul", "uv", "uz", "y"),
    "ND": ("f",),
}
"""Tags of each class of function words in the Peking University tagset, which the People's Daily corpus and jieba use.

Besides 的 and 了, the published class U contains sentence-final particles (吗 吧 呢 呀), whose tag is y. jieba has
separate tags for 的 (uj), 了 (ul), 着 (uz), 得 (ud), 过 (ug) and 地 (uv); the tagset itself has u for all of them.
"""

UNIVERSAL_TAGS: Mapping[str, tuple[str, ...]] = {
    "C": ("CCONJ", "SCONJ"),
    "D": ("ADV",),
    "P": ("ADP",),
    "U": ("AUX", "PART"),
}
"""Universal part-of-speech tags of each class of function words; direction nouns have no universal tag."""

_TREEBANK = re.compile(r"([a-z]{2,3})_")
_PAIR = re.compile(r"(?:\[(?![^/]*\]))?(?P<word>.+)/(?P<tag>[^/\]]+)(?:\]\w+)?")
_TEXT = re.compile(r"#\s*text\s*=")
_ID = re.compile(r"(\d+)(?:([-.])(\d+))?")
_COLUMNS = 10


@dataclass(frozen=True)
class Word:
    """Word of a sentence, with its position and tag."""

    text: str
    start: int
    """Position of the word's first character in the sentence."""
    tag: str
    kind: str | None = None
    """Class of a function word; None for other words."""


@dataclass(frozen=True)
class TaggedSentence:
    """Sentence with its tagged words."""

    sentence: Sentence
    words: tuple[Word, ...]
    language: str


def tagged_sentences(
    sources: Path | Sequence[Path],
    counter: RemarkCounter,
    *,
    tags: Mapping[str, Sequence[str]] | None = None,
    language: str | None = None,
) -> Iterator[TaggedSentence]:
    """Yield the tagged sentences of files and folders, with the class of each function word.

    Raw text (.txt) must be Chinese and is segmented by jieba. Its function words come from a closed list, since jieba's
    dictionary gives each word a single tag, which is often wrong (首都 is tagged as an adverb, 很 is not). A .conllu
    file has treebank tags. A .tagged file has lines of ``word/tag`` items, separated by spaces.

    Args:
        counter: Counter of the lines that are left out.
        tags: Tags of each class of function words; they replace the default tags of all formats.
        language: Language of all files. By default, the file name of a treebank gives its language
            (en_ewt-ud-train.conllu), and other files are Chinese.
    """
    for path, name in find_text_files(sources, tuple(_FORMATS)):
        suffix = format_suffix(path)
        if suffix == ".txt" and language not in (None, "zh"):
            raise InputError(f"{path}: raw text is tagged in Chinese only; give a .conllu file for {language!r}")
        treebank = _TREEBANK.match(path.name) if suffix == ".conllu" else None
        file_language = language or (treebank[1] if treebank else "zh")
        read, format_tags = _FORMATS[suffix]
        classes = _by_tag(tags or format_tags) if tags or format_tags else None
        for sentence, words in read(path, name, counter):
            kinds = (
                function_word_class(words, index) if classes is None else classes.get(word.tag)
                for index, word in enumerate(words)
            )
            classed = (Word(word.text, word.start, word.tag, kind) for word, kind in zip(words, kinds, strict=True))
            yield TaggedSentence(sentence, tuple(classed), file_language)


def _by_tag(tags: Mapping[str, Sequence[str]]) -> dict[str, str]:
    classes: dict[str, str] = {}
    for name, members in tags.items():
        for tag in members:
            if classes.setdefault(tag, name) != name:
                raise InputError(f"the tag {tag!r} has two classes, {classes[tag]!r} and {name!r}; keep one of them")
    return classes


def _read_raw(path: Path, name: str, counter: RemarkCounter) -> Iterator[tuple[Sentence, list[Word]]]:
    for sentence in read_sentences(path, name, counter):
        yield sentence, _segment(sentence.text)


def _segment(text: str) -> list[Word]:
    words = []
    start = 0
    for pair in _jieba().cut(text, HMM=True):
        words.append(Word(pair.word, start, pair.flag))
        start += len(pair.word)
    return words


@cache
def _jieba() -> Any:
    """Load jieba's tagger in a way that avoids a dictionary cache in a folder shared by all users."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import jieba
            import jieba.posseg
    except ImportError as error:
        raise InputError("segmenting Chinese needs jieba: pip install 'merkhet[chinese]'") from error
    jieba.setLogLevel(logging.CRITICAL)
    tokenizer = jieba.Tokenizer()
    with scratch_folder("jieba") as folder:
        tokenizer.tmp_dir = str(folder)
        tokenizer.initialize()
    return jieba.posseg.POSTokenizer(tokenizer)


def _read_tagged(path: Path, name: str, counter: RemarkCounter) -> Iterator[tuple[Sentence, list[Word]]]:
    """Yield the sentences of a ``word/tag`` file; lines with an untagged word are left out and counted."""
    for number, line in read_lines(path):
        where = f"{name}, line {number}"
        words: list[Word] = []
        text = ""
        for item in line.split():
            # A name of several words is written [中央/n 电视台/n]nt.
            match = _PAIR.fullmatch(item)
            if not match:
                counter.skip("a word has no tag", f"{where}: {item}")
                break
            words.append(Word(match["word"], len(text), match["tag"]))
            text += match["word"]
        else:
            for start, stop in sentence_spans(text):
                sentence = Sentence(text[start:stop], where)
                if has_no_slot(sentence, counter):
                    within = (word for word in words if start <= word.start < stop)
                    yield sentence, [replace(word, start=word.start - start) for word in within]


def _read_conllu(path: Path, name: str, counter: RemarkCounter) -> Iterator[tuple[Sentence, list[Word]]]:
    """Yield the sentences of a treebank.

    Sentences with a bad row, or with words that do not match the sentence text, are left out and counted.
    """
    for block in read_blocks(path):
        text = next((line.partition("=")[2].strip() for _, line in block if _TEXT.match(line)), None)
        rows = [(number, line.split("\t")) for number, line in block if not line.startswith("#")]
        if not rows:
            continue
        try:
            sentence, words = _align_words(rows, text, name)
        except _BadRowError as error:
            counter.skip(str(error), f"{name}, line {error.line}")
        else:
            if has_no_slot(sentence, counter):
                yield sentence, words


class _BadRowError(Exception):
    def __init__(self, kind: str, line: int) -> None:
        super().__init__(kind)
        self.line = line


def _align_words(
    rows: Sequence[tuple[int, Sequence[str]]], stated_text: str | None, name: str
) -> tuple[Sentence, list[Word]]:
    """Return a sentence and its words with their positions, without multiword tokens and empty nodes."""
    words = []
    text, end, covered = "", 0, 0
    for line, cells in rows:
        if len(cells) != _COLUMNS or not _ID.fullmatch(cells[0]):
            raise _BadRowError(f"a row of a .conllu file must have a number and {_COLUMNS} columns", line)
        first, separator, last = _ID.fullmatch(cells[0]).groups()  # type: ignore[union-attr]
        if separator == "." or int(first) <= covered:
            continue
        if separator == "-":
            covered = int(last)
        form = cells[1]
        if stated_text is None:
            start = len(text)
            text += form + ("" if "SpaceAfter=No" in cells[9].split("|") else " ")
        else:
            start = stated_text.find(form, end)
            if start < 0 or stated_text[end:start].strip():
                raise _BadRowError("the words do not match the text of the sentence", line)
        end = start + len(form)
        if separator is None:
            words.append(Word(form, start, cells[3]))
    return Sentence(text.rstrip() if stated_text is None else stated_text, f"{name}, line {rows[0][0]}"), words


_FORMATS: Mapping[str, tuple[Callable[..., Iterator[tuple[Sentence, list[Word]]]], Mapping[str, Sequence[str]]]] = {
    ".txt": (_read_raw, {}),
    ".conllu": (_read_conllu, UNIVERSAL_TAGS),
    ".tagged": (_read_tagged, CHINESE_TAGS),
}
"""Reader and default tags of each file format; raw text has no default tags, since jieba's tags are unreliable."""
