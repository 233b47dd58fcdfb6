"""Triples in words, and the texts that may hold them: from tables and text files, or from a knowledge base."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

import pyarrow as pa

from merkhet.core import SLOT
from merkhet.knowledge.source_reader import format_suffix, read_lines
from merkhet.questions.english import format_number
from merkhet.suites.chneval.questions.sentences import text_files
from merkhet.suites.chneval.questions.table_rows import Noting, read_rows
from merkhet.suites.chneval.questions.text_anomalies import Counted
from merkhet.suites.chneval.questions.word_pairs import named

_COLUMNS = {
    "subject": ("subject", "entity"),
    "relation": ("relation", "predicate"),
    "object": ("object", "attribute"),
    "text": ("text",),
}
_TEXT_COLUMNS = {"title": ("title",), "text": ("text",)}
_TEXT_ENDINGS = (".csv", ".jsonl", ".tsv", ".txt")
_HAN_FROM = 0x2E80


@dataclass(frozen=True)
class Triple:
    """A fact by the names of its three items, with the text it was taken from where that is known."""

    subject: str
    relation: str
    object: str
    text: str = ""
    where: str = ""

    @property
    def fact(self) -> tuple[str, str, str]:
        """The three items."""
        return self.subject, self.relation, self.object


@dataclass(frozen=True)
class Triples:
    """Triples, each once with each text; ``rows`` is how many rows there were."""

    triples: tuple[Triple, ...]
    rows: int
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True)
class Text:
    """A text and what it is about; ``where`` names the file and the line it begins at."""

    text: str
    title: str = ""
    where: str = ""


@dataclass(frozen=True)
class Texts:
    """Texts that were read, with what there is to say about them."""

    texts: tuple[Text, ...] = ()
    remarks: tuple[str, ...] = ()


def read_triples(path: Path) -> Triples:
    """The triples of a .tsv, .csv or .jsonl file with the columns subject, relation and object, and perhaps text.

    Rows without all three items are left out, counted and named; so are those in which two items are the same.
    """
    counted = Counted()
    found = [Triple(where=where, **cells) for where, cells in read_rows(path, _COLUMNS, counted, optional=("text",))]
    return _once(found, len(found) + len(counted), counted)


def triples_of(
    facts: pa.Table, names: pa.Table, language: str = "zh", relations: Mapping[str, str] | None = None
) -> Triples:
    """Facts of a knowledge base as triples of names in a language; a number stands with its unit.

    A predicate is called by what ``relations`` says, else by its name, else by itself. Facts about what has no name are
    left out and counted.
    """
    labels = named(names, language)
    called = labels | dict(relations or {})
    found, unnamed = [], 0
    for fact in facts.select(["subject", "predicate", "object", "value", "unit", "source"]).to_pylist():
        subject = labels.get(fact["subject"])
        if fact["object"] is not None:
            object_ = labels.get(fact["object"])
        else:
            object_ = f"{format_number(fact['value'])}{labels.get(fact['unit'], fact['unit'] or '')}"
        if subject and object_:
            relation = called.get(fact["predicate"], fact["predicate"])
            found.append(Triple(subject, relation, object_, where=fact["source"] or ""))
        else:
            unnamed += 1
    counted = Counted()
    once = _once(sorted(found, key=lambda triple: triple.fact), facts.num_rows, counted)
    if not unnamed:
        return once
    said = f"{unnamed:,} facts are about what has no name in {language!r}, and were left out."
    return Triples(once.triples, once.rows, (said, *once.remarks))


def _once(found: Iterable[Triple], rows: int, counted: Counted) -> Triples:
    first: dict[tuple[str, ...], Triple] = {}
    for triple in found:
        if len(set(triple.fact)) == 3:
            first.setdefault((*triple.fact, triple.text), triple)
        else:
            counted.add("two of the three items are the same, and they were left out", triple.where or triple.subject)
    return Triples(tuple(first.values()), rows, tuple(counted.remarks()))


def read_texts(sources: Path | Sequence[Path]) -> Texts:
    """The texts of files, or of folders of them: .tsv and .csv with the columns title and text, .jsonl likewise, .txt.

    The title may be missing. A .txt file has a text a line, or, where it has blank lines between, a text a paragraph.
    """
    counted = Counted()
    found: list[Text] = []
    for path, _ in text_files(sources, _TEXT_ENDINGS):
        if format_suffix(path) == ".txt":
            found += _plain_texts(path, counted)
        else:
            rows = read_rows(path, _TEXT_COLUMNS, counted, optional=("title",))
            found += [Text(where=where, **cells) for where, cells in rows]
    return Texts(tuple(found), tuple(counted.remarks()))


def _plain_texts(path: Path, counted: Counted) -> Iterator[Text]:
    lines = [(at, " ".join(line.split("\t")).strip()) for at, line in read_lines(path, Noting(counted=counted))]
    blocks = [list(block) for filled, block in groupby(lines, key=lambda line: bool(line[1])) if filled]
    if len(blocks) == 1:
        blocks = [[line] for line in blocks[0]]
    for block in blocks:
        text, where = _joined([line for _, line in block]), f"{path.name}, line {block[0][0]}"
        if SLOT in text:
            counted.add(f"{SLOT} stands in the text, and they were left out", where)
        else:
            yield Text(text, where=where)


def _joined(lines: Sequence[str]) -> str:
    """Lines of a paragraph as one: with a blank, but not where Chinese was broken."""
    text = ""
    for line in lines:
        broken = text and ord(text[-1]) >= _HAN_FROM and ord(line[0]) >= _HAN_FROM
        text += line if broken or not text else f" {line}"
    return text
