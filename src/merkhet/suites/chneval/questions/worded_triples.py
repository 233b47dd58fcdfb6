"""Triples of labels and texts that may contain them, from tables, text files or a knowledge base."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

import pyarrow as pa

from merkhet.core import SLOT
from merkhet.knowledge.source_reader import format_suffix, read_lines
from merkhet.questions.english import format_number
from merkhet.suites.chneval.questions.sentences import find_text_files
from merkhet.suites.chneval.questions.table_rows import LenientReadContext, read_rows
from merkhet.suites.chneval.questions.text_anomalies import RemarkCounter
from merkhet.suites.chneval.questions.word_pairs import labels_in_language

_COLUMNS = {
    "subject": ("subject", "entity"),
    "relation": ("relation", "predicate"),
    "object": ("object", "attribute"),
    "text": ("text",),
}
_TEXT_COLUMNS = {"title": ("title",), "text": ("text",)}
_TEXT_SUFFIXES = (".csv", ".jsonl", ".tsv", ".txt")
_FIRST_HAN = 0x2E80


@dataclass(frozen=True)
class Triple:
    """A fact by the labels of its three items."""

    subject: str
    relation: str
    object: str
    text: str = ""
    """Text that the fact was taken from, if known."""
    where: str = ""
    """File and line, or source of the fact."""

    @property
    def fact(self) -> tuple[str, str, str]:
        """Subject, relation and object."""
        return self.subject, self.relation, self.object


@dataclass(frozen=True)
class Triples:
    """Distinct combinations of triple and text."""

    triples: tuple[Triple, ...]
    rows: int
    """Number of rows that were read."""
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True)
class Text:
    """A text with its title, if it has one."""

    text: str
    title: str = ""
    where: str = ""
    """File and first line."""


@dataclass(frozen=True)
class Texts:
    """Texts and remarks on them."""

    texts: tuple[Text, ...] = ()
    remarks: tuple[str, ...] = ()


def read_triples(path: Path) -> Triples:
    """Read the triples of a .tsv, .csv or .jsonl file with the columns subject, relation, object and optionally text.

    Rows without all three items, and rows with two equal items, are left out and remarked.
    """
    counter = RemarkCounter()
    triples = [Triple(where=where, **cells) for where, cells in read_rows(path, _COLUMNS, counter, optional=("text",))]
    return _distinct(triples, len(triples) + len(counter), counter)


def triples_from_facts(
    facts: pa.Table, names: pa.Table, language: str = "zh", relations: Mapping[str, str] | None = None
) -> Triples:
    """Make triples of labels from facts; a number is written with its unit.

    Facts with an item without a label in the language are left out and remarked.

    Args:
        relations: Labels of predicates, which replace those of ``names``; a predicate without a label keeps its id.
    """
    labels = labels_in_language(names, language)
    predicate_labels = labels | dict(relations or {})
    triples, unlabelled = [], 0
    for fact in facts.select(["subject", "predicate", "object", "value", "unit", "source"]).to_pylist():
        subject = labels.get(fact["subject"])
        if fact["object"] is not None:
            object_ = labels.get(fact["object"])
        else:
            object_ = f"{format_number(fact['value'])}{labels.get(fact['unit'], fact['unit'] or '')}"
        if subject and object_:
            relation = predicate_labels.get(fact["predicate"], fact["predicate"])
            triples.append(Triple(subject, relation, object_, where=fact["source"] or ""))
        else:
            unlabelled += 1
    distinct = _distinct(sorted(triples, key=lambda triple: triple.fact), facts.num_rows, RemarkCounter())
    if not unlabelled:
        return distinct
    remark = f"{unlabelled:,} facts are about what has no name in {language!r}, and were left out."
    return Triples(distinct.triples, distinct.rows, (remark, *distinct.remarks))


def _distinct(triples: Iterable[Triple], rows: int, counter: RemarkCounter) -> Triples:
    distinct: dict[tuple[str, ...], Triple] = {}
    for triple in triples:
        if len(set(triple.fact)) == 3:
            distinct.setdefault((*triple.fact, triple.text), triple)
        else:
            counter.add("two of the three items are the same, and they were left out", triple.where or triple.subject)
    return Triples(tuple(distinct.values()), rows, tuple(counter.remarks()))


def read_texts(sources: Path | Sequence[Path]) -> Texts:
    """Read the texts of files and folders: .tsv, .csv and .jsonl with the columns title (optional) and text, and .txt.

    A .txt file has a text in each line, or in each paragraph if there are blank lines between.
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
    lines = [
        (line_number, " ".join(line.split("\t")).strip())
        for line_number, line in read_lines(path, LenientReadContext(counter=counter))
    ]
    blocks = [list(block) for has_text, block in groupby(lines, key=lambda line: bool(line[1])) if has_text]
    if len(blocks) == 1:
        blocks = [[line] for line in blocks[0]]
    for block in blocks:
        text, where = _join_lines([line for _, line in block]), f"{path.name}, line {block[0][0]}"
        if SLOT in text:
            counter.add(f"{SLOT} stands in the text, and they were left out", where)
        else:
            yield Text(text, where=where)


def _join_lines(lines: Sequence[str]) -> str:
    """Join the lines of a paragraph with blanks, but without one between Chinese characters."""
    text = ""
    for line in lines:
        broken = text and ord(text[-1]) >= _FIRST_HAN and ord(line[0]) >= _FIRST_HAN
        text += line if broken or not text else f" {line}"
    return text
