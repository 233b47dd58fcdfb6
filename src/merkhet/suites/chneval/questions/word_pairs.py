"""Related pairs of words, such as ConceptNet's, from a table or a knowledge base."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from merkhet.suites.chneval.questions.table_rows import read_rows
from merkhet.suites.chneval.questions.text_anomalies import RemarkCounter

_COLUMNS = {"start": ("start", "subject"), "relation": ("rel", "relation", "predicate"), "end": ("end", "object")}
_PREFIX = "/r/"
_PART_OF_SPEECH = re.compile(r"/[a-z](?:/.*)?$")


@dataclass(frozen=True)
class Pair:
    """Two words and their relation."""

    start: str
    relation: str
    """Name of the relation, without ConceptNet's /r/."""
    end: str
    where: str = ""
    """File and line."""


@dataclass(frozen=True)
class Pairs:
    """Distinct pairs in order of first occurrence."""

    pairs: tuple[Pair, ...]
    rows: int
    """Number of rows that were read."""
    remarks: tuple[str, ...] = ()


def read_pairs(path: Path) -> Pairs:
    """Read the pairs of a .csv, .tsv or .jsonl file with the columns start, rel (or relation) and end.

    A part of speech after a word ("首都/n") is dropped, and an underscore is read as a blank. Rows without all three
    cells, and rows that relate a word to itself, are left out and remarked.

    Raises:
        InputError: If a column is missing.
    """
    counter = RemarkCounter()
    pairs = []
    for where, cells in read_rows(path, _COLUMNS, counter):
        pair = _pair(cells["start"], cells["relation"], cells["end"], where)
        if not (pair.start and pair.relation and pair.end):
            counter.add("a cell holds no word, and they were left out", where)
        elif pair.start == pair.end:
            counter.add("a word is related to itself, and they were left out", f"{where} {pair.start}")
        else:
            pairs.append(pair)
    return _distinct(pairs, len(pairs) + len(counter), counter.remarks())


def pairs_from_facts(facts: pa.Table, names: pa.Table, language: str = "zh") -> Pairs:
    """Make pairs from facts, with the labels of a language.

    Facts with a number, or with an item without a label in the language, are left out and remarked.

    Args:
        facts: Facts of a :class:`merkhet.knowledge.store.KnowledgeBase`.
        names: Names of the same knowledge base.
    """
    labels = labels_in_language(names, language)
    pairs, unlabelled, reflexive = [], 0, 0
    for fact in facts.select(["subject", "predicate", "object", "source"]).to_pylist():
        start, end = labels.get(fact["subject"]), labels.get(fact["object"])
        if start is None or end is None:
            unlabelled += 1
        elif start == end:
            reflexive += 1
        else:
            pairs.append(_pair(start, fact["predicate"], end, str(fact["source"] or "")))
    remarks = []
    if unlabelled:
        remarks.append(f"{unlabelled:,} facts have an end without a name in {language!r}, and were left out.")
    if reflexive:
        remarks.append(f"{reflexive:,} facts relate two things of one name, and were left out.")
    return _distinct(sorted(pairs, key=lambda pair: (pair.start, pair.relation, pair.end)), facts.num_rows, remarks)


def labels_in_language(names: pa.Table, language: str) -> dict[str, str]:
    """Return the labels of entities in a language."""
    columns = (names[column].to_pylist() for column in ("entity", "language", "label"))
    return {
        entity: label
        for entity, row_language, label in zip(*columns, strict=True)
        if row_language == language and label
    }


def _pair(start: str, relation: str, end: str, where: str) -> Pair:
    return Pair(_word(start), relation.strip().removeprefix(_PREFIX), _word(end), where)


def _word(text: str) -> str:
    return _PART_OF_SPEECH.sub("", text.strip()).replace("_", " ").strip()


def _distinct(pairs: Iterable[Pair], rows: int, remarks: Iterable[str]) -> Pairs:
    distinct: dict[tuple[str, str, str], Pair] = {}
    for pair in pairs:
        distinct.setdefault((pair.start, pair.relation, pair.end), pair)
    return Pairs(tuple(distinct.values()), rows, tuple(remarks))
