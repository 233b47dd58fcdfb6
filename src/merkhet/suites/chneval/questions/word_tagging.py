"""Function words in their sentences: raw Chinese by jieba, CoNLL-U of any language, and text written word/tag."""

from __future__ import annotations

import logging
import re
import tempfile
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any

from merkhet.core.errors import InputError
from merkhet.suites.chneval.questions.chinese_words import class_in_place
from merkhet.suites.chneval.questions.sentences import (
    Sentence,
    ending,
    is_askable,
    read_lines,
    read_sentences,
    sentence_spans,
    text_files,
)
from merkhet.suites.chneval.questions.text_anomalies import Counted

CLASSES = ("C", "D", "P", "U", "ND")
"""Conjunctions, adverbs, prepositions, auxiliary words, direction nouns."""

CHINESE_TAGS: Mapping[str, tuple[str, ...]] = {
    "C": ("c",),
    "D": ("d", "df"),
    "P": ("p",),
    "U": ("u", "ud", "ug", "uj", "ul", "uv", "uz", "y"),
    "ND": ("f",),
}
"""The tags of Peking University's scheme, which the People's Daily and jieba use.

The published class U has sentence-final particles (吗 吧 呢 呀) beside 的 and 了; the scheme calls them y. jieba
tells apart 的 (uj), 了 (ul), 着 (uz), 得 (ud), 过 (ug) and 地 (uv), which the scheme calls u.
"""

UNIVERSAL_TAGS: Mapping[str, tuple[str, ...]] = {
    "C": ("CCONJ", "SCONJ"),
    "D": ("ADV",),
    "P": ("ADP",),
    "U": ("AUX", "PART"),
}
"""Universal parts of speech. They have none for direction nouns."""

_ENDINGS = (".txt", ".conllu", ".tagged")
_TREEBANK = re.compile(r"([a-z]{2,3})_")
_PAIR = re.compile(r"(?:\[(?![^/]*\]))?(?P<word>.+)/(?P<tag>[^/\]]+)(?:\]\w+)?")
_TEXT = re.compile(r"#\s*text\s*=")
_ID = re.compile(r"(\d+)(?:([-.])(\d+))?")
_COLUMNS = 10


@dataclass(frozen=True)
class Word:
    """A word of a sentence: from which character on it stands there, its tag, its class if it is a function word."""

    text: str
    start: int
    tag: str
    kind: str | None = None


@dataclass(frozen=True)
class TaggedSentence:
    """A sentence with its words; what a file says no tag of is not among them."""

    sentence: Sentence
    words: tuple[Word, ...]
    language: str


def tagged_sentences(
    sources: Path | Sequence[Path],
    remarked: Counted,
    *,
    tags: Mapping[str, Sequence[str]] | None = None,
    language: str | None = None,
) -> Iterator[TaggedSentence]:
    """The sentences of files and folders with their function words.

    Raw text (.txt) is Chinese, segmented by jieba; its function words are those of a closed list, since jieba's
    dictionary gives every word one tag, often a wrong one (首都 is an adverb, 很 is none). A .conllu file has the tags
    of a treebank, a .tagged file ``word/tag`` with blanks between, one sentence or more a line. ``tags`` are
    other tags by class, for all of them. ``language`` is that of all the files; without it a .conllu file's is taken
    from its name, as treebanks are named (en_ewt-ud-train.conllu), and all else is Chinese.
    """
    for path, name in text_files(sources, _ENDINGS):
        kind = ending(path)
        if kind == ".conllu":
            named = _TREEBANK.match(path.name)
            of = language or (named[1] if named else "zh")
            classes = _by_tag(tags or UNIVERSAL_TAGS)
            for sentence, words in _read_conllu(path, name, remarked):
                yield TaggedSentence(sentence, _classed(words, classes), of)
        elif kind == ".tagged":
            classes = _by_tag(tags or CHINESE_TAGS)
            for sentence, words in _read_tagged(path, name, remarked):
                yield TaggedSentence(sentence, _classed(words, classes), language or "zh")
        else:
            if language not in (None, "zh"):
                raise InputError(f"{path}: raw text is tagged in Chinese only; give a .conllu file for {language!r}")
            for sentence in read_sentences(path, name, remarked):
                words = _segment(sentence.text)
                if tags:
                    found = _classed(words, _by_tag(tags))
                else:
                    kinds = (class_in_place(words, place) for place in range(len(words)))
                    found = tuple(Word(w.text, w.start, w.tag, one) for w, one in zip(words, kinds, strict=True))
                yield TaggedSentence(sentence, found, "zh")


def _by_tag(tags: Mapping[str, Sequence[str]]) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, members in tags.items():
        for tag in members:
            if found.setdefault(tag, name) != name:
                raise InputError(
                    f"the tag {tag!r} is given for two classes, {found[tag]!r} and {name!r}; give it for one"
                )
    return found


def _classed(words: Sequence[Word], classes: Mapping[str, str]) -> tuple[Word, ...]:
    return tuple(Word(word.text, word.start, word.tag, classes.get(word.tag)) for word in words)


def _segment(text: str) -> list[Word]:
    found = []
    start = 0
    for pair in _jieba().cut(text, HMM=True):
        found.append(Word(pair.word, start, pair.flag))
        start += len(pair.word)
    return found


@cache
def _jieba() -> Any:
    """jieba's tagger. Its dictionary is read anew, not from a file of a folder that all users may write to."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import jieba
            import jieba.posseg
    except ImportError as error:
        raise InputError("segmenting Chinese needs jieba: pip install 'merkhet[chinese]'") from error
    jieba.setLogLevel(logging.CRITICAL)
    tokenizer = jieba.Tokenizer()
    with tempfile.TemporaryDirectory() as folder:
        tokenizer.tmp_dir = folder
        tokenizer.initialize()
    return jieba.posseg.POSTokenizer(tokenizer)


def _read_tagged(path: Path, name: str, remarked: Counted) -> Iterator[tuple[Sentence, list[Word]]]:
    """Sentences of ``word/tag``; a line with a word without a tag is remarked and left out."""
    for number, line in read_lines(path):
        where = f"{name}, line {number}"
        words: list[Word] = []
        text = ""
        for item in line.split():
            # A name of several words is written [中央/n 电视台/n]nt.
            found = _PAIR.fullmatch(item)
            if not found:
                remarked.add("left out, for a word has no tag", f"{where}: {item}")
                break
            words.append(Word(found["word"], len(text), found["tag"]))
            text += found["word"]
        else:
            for start, stop in sentence_spans(text):
                sentence = Sentence(text[start:stop], where)
                if is_askable(sentence, remarked):
                    within = (word for word in words if start <= word.start < stop)
                    yield sentence, [replace(word, start=word.start - start) for word in within]


def _read_conllu(path: Path, name: str, remarked: Counted) -> Iterator[tuple[Sentence, list[Word]]]:
    """Sentences of a treebank; one that has a bad row or does not fit its text is remarked and left out."""
    block: list[tuple[int, str]] = []
    for number, line in chain(read_lines(path), [(0, "")]):
        if line.strip():
            block.append((number, line))
        elif block:
            text = next((line.partition("=")[2].strip() for _, line in block if _TEXT.match(line)), None)
            rows = [(number, line.split("\t")) for number, line in block if not line.startswith("#")]
            if rows:
                try:
                    sentence, words = _laid_out(rows, text, name)
                except _BadRowError as error:
                    remarked.add(error.kind, f"{name}, line {error.line}")
                else:
                    if is_askable(sentence, remarked):
                        yield sentence, words
            block = []


class _BadRowError(Exception):
    def __init__(self, kind: str, line: int) -> None:
        super().__init__(kind)
        self.kind, self.line = f"left out, for {kind}", line


def _laid_out(rows: Sequence[tuple[int, Sequence[str]]], given: str | None, name: str) -> tuple[Sentence, list[Word]]:
    """The text of a sentence and the words in it: tokens that are one word; empty nodes stand nowhere."""
    words = []
    text, at, covered = "", 0, 0
    for line, cells in rows:
        if len(cells) != _COLUMNS or not _ID.fullmatch(cells[0]):
            raise _BadRowError(f"a row of a .conllu file has a number and {_COLUMNS} columns", line)
        first, kind, last = _ID.fullmatch(cells[0]).groups()  # type: ignore[union-attr]
        if kind == "." or int(first) <= covered:
            continue
        if kind == "-":
            covered = int(last)
        form = cells[1]
        if given is None:
            start = len(text)
            text += form + ("" if "SpaceAfter=No" in cells[9].split("|") else " ")
        else:
            start = given.find(form, at)
            if start < 0 or given[at:start].strip():
                raise _BadRowError("its words do not make up its text", line)
        at = start + len(form)
        if kind is None:
            words.append(Word(form, start, cells[3]))
    return Sentence(given if given is not None else text.rstrip(), f"{name}, line {rows[0][0]}"), words
