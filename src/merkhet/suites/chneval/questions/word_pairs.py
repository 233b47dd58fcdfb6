"""Pairs of words and how they are related, as ConceptNet has them: from a table, or from a knowledge base."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from merkhet.suites.chneval.questions.table_rows import read_rows
from merkhet.suites.chneval.questions.text_anomalies import Counted

_COLUMNS = {"start": ("start", "subject"), "relation": ("rel", "relation", "predicate"), "end": ("end", "object")}
_PREFIX = "/r/"
_PART_OF_SPEECH = re.compile(r"/[a-z](?:/.*)?$")


@dataclass(frozen=True)
class Pair:
    """Two words and their relation, without ConceptNet's /r/; ``where`` names the file and the line."""

    start: str
    relation: str
    end: str
    where: str = ""


@dataclass(frozen=True)
class Pairs:
    """Pairs, each once, in the order in which they were first found; ``rows`` is how many rows there were."""

    pairs: tuple[Pair, ...]
    rows: int
    remarks: tuple[str, ...] = ()


def read_pairs(path: Path) -> Pairs:
    """The pairs of a .csv, .tsv or .jsonl file with the columns start, rel (or relation) and end.

    A part of speech after a word ("首都/n") is dropped, and a low line is a blank. Rows without all three are left out,
    counted and named; so are those that relate a word to itself. Refuses a file without these columns.
    """
    counted = Counted()
    found = []
    for where, cells in read_rows(path, _COLUMNS, counted):
        pair = _pair(cells["start"], cells["relation"], cells["end"], where)
        if not (pair.start and pair.relation and pair.end):
            counted.add("a cell holds no word, and they were left out", where)
        elif pair.start == pair.end:
            counted.add("a word is related to itself, and they were left out", f"{where} {pair.start}")
        else:
            found.append(pair)
    return _once(found, len(found) + len(counted), counted.remarks())


def pairs_of(facts: pa.Table, names: pa.Table, language: str = "zh") -> Pairs:
    """The pairs that facts of a knowledge base state, in the names that their ends have in a language.

    ``facts`` and ``names`` are tables of a :class:`merkhet.knowledge.store.KnowledgeBase`. Facts with a number, or
    with an end that has no name in the language, are left out and counted.
    """
    labels = named(names, language)
    found, unnamed, same = [], 0, 0
    for fact in facts.select(["subject", "predicate", "object", "source"]).to_pylist():
        start, end = labels.get(fact["subject"]), labels.get(fact["object"])
        if start is None or end is None:
            unnamed += 1
        elif start == end:
            same += 1
        else:
            found.append(_pair(start, fact["predicate"], end, str(fact["source"] or "")))
    remarks = []
    if unnamed:
        remarks.append(f"{unnamed:,} facts have an end without a name in {language!r}, and were left out.")
    if same:
        remarks.append(f"{same:,} facts relate two things of one name, and were left out.")
    return _once(sorted(found, key=lambda pair: (pair.start, pair.relation, pair.end)), facts.num_rows, remarks)


def named(names: pa.Table, language: str) -> dict[str, str]:
    """What each entity is called in a language."""
    columns = (names[column].to_pylist() for column in ("entity", "language", "label"))
    return {entity: label for entity, spoken, label in zip(*columns, strict=True) if spoken == language and label}


def _pair(start: str, relation: str, end: str, where: str) -> Pair:
    return Pair(_word(start), relation.strip().removeprefix(_PREFIX), _word(end), where)


def _word(text: str) -> str:
    return _PART_OF_SPEECH.sub("", text.strip()).replace("_", " ").strip()


def _once(found: Iterable[Pair], rows: int, remarks: Iterable[str]) -> Pairs:
    first: dict[tuple[str, str, str], Pair] = {}
    for pair in found:
        first.setdefault((pair.start, pair.relation, pair.end), pair)
    return Pairs(tuple(first.values()), rows, tuple(remarks))
