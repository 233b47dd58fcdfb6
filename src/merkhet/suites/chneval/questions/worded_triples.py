"""Triples of labels, such as ConceptNet's pairs, and texts that may contain the labels of triples."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

import pyarrow as pa

from merkhet.core import SLOT
from merkhet.core.compressed_files import format_suffix
from merkhet.core.text import counted
from merkhet.knowledge.source_reader import read_lines
from merkhet.questions.english import format_number
from merkhet.suites.chneval.questions.sentences import find_text_files
from merkhet.suites.chneval.questions.table_rows import SLOT_IN_TEXT, LenientReadContext, read_rows
from merkhet.suites.chneval.questions.text_anomalies import RemarkCounter

_TRIPLE_COLUMNS = {
    "subject": ("subject", "entity"),
    "relation": ("relation", "predicate"),
    "object": ("object", "attribute"),
    "text": ("text",),
}
_PAIR_COLUMNS = {
    "start": ("start", "subject"),
    "relation": ("rel", "relation", "predicate"),
    "end": ("end", "object"),
}
_TEXT_COLUMNS = {"title": ("title",), "text": ("text",)}
_TEXT_SUFFIXES = (".csv", ".jsonl", ".tsv", ".txt")
_PART_OF_SPEECH = re.compile(r"/[a-z](?:/.*)?$")
_FIRST_HAN = 0x2E80


@dataclass(frozen=True)
class Triple:
    """Fact that consists of the labels of its three items."""

    subject: str
    relation: str
    object: str
    text: str = ""
    """Text that the fact was taken from, or an empty string."""
    where: str = ""
    """File and line of the fact, or the name of its source."""

    @property
    def fact(self) -> tuple[str, str, str]:
        """Subject, relation and object."""
        return self.subject, self.relation, self.object

    @property
    def example(self) -> str:
        """Subject and object, as they are quoted in accounts of losses."""
        return f"{self.subject} – {self.object}"


@dataclass(frozen=True)
class Triples:
    """Distinct combinations of triple and text, in order of first occurrence."""

    triples: tuple[Triple, ...]
    rows: int
    """Number of rows that were read, including rows that were left out."""
    repeated: int = 0
    """Number of rows that repeat another one."""
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True)
class Text:
    """Text with an optional title."""

    text: str
    title: str = ""
    where: str = ""
    """File and number of the first line."""


@dataclass(frozen=True)
class Texts:
    """Texts, with remarks on rows that were left out."""

    texts: tuple[Text, ...] = ()
    remarks: tuple[str, ...] = ()


def read_triples(path: Path) -> Triples:
    """Read triples from a .tsv, .csv or .jsonl file with the columns subject, relation, object and, optionally, text.

    Rows with an empty item or with two equal items are left out and reported in remarks.

    Raises:
        InputError: If a column is missing.
    """
    counter = RemarkCounter()
    rows = read_rows(path, _TRIPLE_COLUMNS, counter, optional=("text",))
    triples = [Triple(where=where, **cells) for where, cells in rows]
    count = len(triples) + len(counter)
    kept = list(_with_three_items(triples, counter))
    return _distinct(kept, count, counter.remarks())


def read_pairs(path: Path) -> Triples:
    """Read word pairs, as triples, from a .csv, .tsv or .jsonl file with the columns start, rel and end.

    A part of speech after a word ("首都/n") and ConceptNet's /r/ before a relation are dropped. Underscores become
    spaces. Rows with an empty cell and rows that relate a word to itself are left out and reported in remarks.

    Raises:
        InputError: If a column is missing.
    """
    counter = RemarkCounter()
    pairs = []
    for where, cells in read_rows(path, _PAIR_COLUMNS, counter):
        pair = _pair(cells["start"], cells["relation"], cells["end"], where)
        if not all(pair.fact):
            counter.skip("a cell contains no word", where)
        elif pair.subject == pair.object:
            counter.skip("a word is related to itself", f"{where} {pair.subject}")
        else:
            pairs.append(pair)
    return _distinct(pairs, len(pairs) + len(counter), counter.remarks())


def triples_from_facts(facts: pa.Table, names: pa.Table, language: str = "zh") -> Triples:
    """Make triples of labels from facts; numbers are followed by their unit.

    Facts whose subject or object has no label in ``language`` are left out and reported in remarks. A predicate without
    a label keeps its id.
    """
    labels = _labels_in_language(names, language)
    triples = []
    for fact in facts.select(["subject", "predicate", "object", "value", "unit", "source"]).to_pylist():
        subject = labels.get(fact["subject"])
        if fact["object"] is not None:
            object_ = labels.get(fact["object"])
        else:
            object_ = f"{format_number(fact['value'])}{labels.get(fact['unit'], fact['unit'] or '')}"
        if subject and object_:
            relation = labels.get(fact["predicate"], fact["predicate"])
            triples.append(Triple(subject, relation, object_, where=fact["source"] or ""))
    remarks, counter = _unlabelled_remarks(facts.num_rows - len(triples), language), RemarkCounter()
    kept = list(_with_three_items(sorted(triples, key=lambda triple: triple.fact), counter))
    return _distinct(kept, facts.num_rows, [*remarks, *counter.remarks()])


def pairs_from_facts(facts: pa.Table, names: pa.Table, language: str = "zh") -> Triples:
    """Make word pairs, as triples, from facts with labels in ``language``.

    Facts with a number, with an unlabelled subject or object, or with two equal labels are left out and reported in
    remarks.
    """
    labels = _labels_in_language(names, language)
    pairs, unlabelled, reflexive = [], 0, 0
    for fact in facts.select(["subject", "predicate", "object", "source"]).to_pylist():
        start, end = labels.get(fact["subject"]), labels.get(fact["object"])
        if start is None or end is None:
            unlabelled += 1
        elif start == end:
            reflexive += 1
        else:
            pairs.append(_pair(start, fact["predicate"], end, str(fact["source"] or "")))
    remarks = _unlabelled_remarks(unlabelled, language)
    if reflexive:
        remarks.append(f"{counted(reflexive, 'fact')} left out: both items have the same label.")
    return _distinct(sorted(pairs, key=lambda pair: pair.fact), facts.num_rows, remarks)


def _labels_in_language(names: pa.Table, language: str) -> dict[str, str]:
    rows = names.select(["entity", "language", "label"]).to_pylist()
    return {row["entity"]: row["label"] for row in rows if row["language"] == language and row["label"]}


def _unlabelled_remarks(count: int, language: str) -> list[str]:
    return [f"{counted(count, 'fact')} left out: an item has no label in {language!r}."] if count else []


def _pair(start: str, relation: str, end: str, where: str) -> Triple:
    first, last = (_PART_OF_SPEECH.sub("", text.strip()).replace("_", " ").strip() for text in (start, end))
    return Triple(first, relation.strip().removeprefix("/r/"), last, where=where)


def _with_three_items(triples: Iterable[Triple], counter: RemarkCounter) -> Iterator[Triple]:
    for triple in triples:
        if len(set(triple.fact)) == 3:
            yield triple
        else:
            counter.skip("two of the three items are the same", triple.where or triple.subject)


def _distinct(triples: Iterable[Triple], rows: int, remarks: Iterable[str]) -> Triples:
    distinct: dict[tuple[str, ...], Triple] = {}
    repeated = 0
    for triple in triples:
        repeated += distinct.setdefault((*triple.fact, triple.text), triple) is not triple
    return Triples(tuple(distinct.values()), rows, repeated, tuple(remarks))


def read_texts(sources: Path | Sequence[Path]) -> Texts:
    """Read texts from tables (.tsv, .csv, .jsonl) and plain text files (.txt), given as files or folders.

    Tables have the column text and, optionally, title. A .txt file has one text in each line. If blank lines
    separate paragraphs, each paragraph is one text.
    """
    counter = RemarkCounter()
    texts: list[Text] = []
    for path, _ in find_text_files(sources, _TEXT_SUFFIXES):
        if format_suffix(path) == ".txt":
            texts += _plain_texts(path, counter)
        else:
            rows = read_rows(path, _TEXT_COLUMNS, counter, optional=("title",))
            texts += [Text(where=where, **cells) for where, cells in rows]
    return Texts(tuple(texts), tuple(counter.remarks()))


def _plain_texts(path: Path, counter: RemarkCounter) -> Iterator[Text]:
    numbered_lines = read_lines(path, LenientReadContext(counter=counter))
    lines = [(number, line.replace("\t", " ").strip()) for number, line in numbered_lines]
    blocks = [list(block) for has_text, block in groupby(lines, key=lambda line: bool(line[1])) if has_text]
    if len(blocks) == 1:
        blocks = [[line] for line in blocks[0]]
    for block in blocks:
        text, where = _join_lines([line for _, line in block]), f"{path.name}, line {block[0][0]}"
        if SLOT in text:
            counter.skip(SLOT_IN_TEXT, where)
        else:
            yield Text(text, where=where)


def _join_lines(lines: Sequence[str]) -> str:
    """Join the lines of a paragraph with spaces, except between Chinese characters."""
    text = ""
    for line in lines:
        broken = text and ord(text[-1]) >= _FIRST_HAN and ord(line[0]) >= _FIRST_HAN
        text += line if broken or not text else f" {line}"
    return text
