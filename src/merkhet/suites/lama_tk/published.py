"""Temporal facts as others publish them: a table of terms of office, anybody's table with times, YAGO11k's files."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from merkhet.core.errors import InputError
from merkhet.core.files import scratch_folder
from merkhet.knowledge.source_reader import ReadContext, format_suffix
from merkhet.knowledge.sources.fact_table import DELIMITERS, delimited_rows
from merkhet.knowledge.store import KnowledgeBase
from merkhet.knowledge.store_import import ImportSummary, import_knowledge

POSITIONS = "positions.tsv"
NUMBERED = ("train.txt", "valid.txt", "test.txt", "entity2id.txt", "relation2id.txt")
TABLES = ("*.tsv", "*.csv", "*.tsv.gz", "*.csv.gz")
FILES = (POSITIONS, *NUMBERED, *TABLES)
"""What there may be in a folder of published facts, and which single files are read."""

OFFICES = "position held"
"""The relation of a table that has a column ``position``."""
_COLUMNS = {
    "subject": ("subject_id", "subject"),
    "subject_label": ("subject_label", "subject"),
    "predicate": ("predicate", "relation"),
    "object": ("object_id", "object", "position"),
    "object_label": ("object_label", "object", "position"),
    "start": ("start",),
    "end": ("end",),
}
"""Each column of a fact with the columns that a table may have for it, the first one first."""


@contextmanager
def published_facts(place: Path) -> Iterator[tuple[KnowledgeBase, tuple[str, ...]]]:
    """The knowledge of a table or a folder, and what is to be said of it; gone when the block ends.

    A table has the columns subject, object (or position), start and end, and perhaps relation (or predicate; a table of
    positions is about ``position held``), subject_id and object_id; others are left aside. A folder holds
    ``positions.tsv``, or the numbers and dictionaries of YAGO11k. Rows that are no facts (an end before the start, a
    time that is none) are left out, counted and named; a table without the columns is refused.
    """
    source, options = _source(place)
    with scratch_folder("lama-tk") as folder:
        store = folder / "knowledge.duckdb"
        [done] = import_knowledge([source], store, options=options, skip_bad=True)
        if not done.facts:
            raise InputError(f"{place} holds no facts: {_first(done) or 'there are no rows'}")
        with KnowledgeBase.open(store) as knowledge:
            yield knowledge, _remarks(done)


def source_name(place: Path) -> str:
    """What the facts at a place are called in a card: the name of the table, or of the folder."""
    return POSITIONS if (place / POSITIONS).is_file() else place.name


def _source(place: Path) -> tuple[str, dict[str, str]]:
    """The place as an import knows it, with what it must be told about a table's columns."""
    if place.is_dir():
        file = place / POSITIONS
        if not file.is_file():
            return f"quadruples={place}", {}
        place = file
    if place.name in NUMBERED:
        raise InputError(f"{place} is one file of several that name each other's numbers. Name its folder with --data.")
    return f"table={place}", _columns(place)


def _columns(table: Path) -> dict[str, str]:
    """Which column of a table is which of a fact; refuses a table that lacks one."""
    delimiter = DELIMITERS.get(format_suffix(table), ",")
    _, header = next(delimited_rows(table, ReadContext(), delimiter), (1, []))
    by_name = {name.strip().lower(): name for name in header}
    found = {
        target: by_name[next(name for name in names if name in by_name)]
        for target, names in _COLUMNS.items()
        if any(name in by_name for name in names)
    }
    for target in ("subject", "object", "start", "end"):
        if target not in found:
            wanted = " or ".join(repr(name) for name in _COLUMNS[target] if not name.endswith("_id"))
            raise InputError(
                f"{table}:1: the column {wanted} is missing; a table of temporal facts has subject, object (or "
                f"position), start and end, and this has: {', '.join(header) or 'nothing'}"
            )
    options = {f"map.{target}": column for target, column in found.items()}
    for end in ("subject", "object"):
        if found.get(f"{end}_label") == found[end]:
            del options[f"map.{end}_label"]
    if "predicate" not in found:
        if "position" not in by_name:
            raise InputError(
                f"{table}:1: the column 'relation' is missing; it says what holds between subject and object, as in "
                f"{OFFICES!r}"
            )
        options["constant.predicate"] = OFFICES
    return options


def _remarks(done: ImportSummary) -> tuple[str, ...]:
    """Rows that were left out, and things that were not used, in sentences."""
    found = []
    if done.bad:
        rows = "1 row is no fact and was" if done.bad == 1 else f"{done.bad:,} rows are no facts and were"
        found.append(f"{rows} left out; the first is {_first(done)}.")
    found += [f"Not used: {count:,} {what}." for what, count in done.left_out.items()]
    if done.repeated:
        rows = "1 row repeats another" if done.repeated == 1 else f"{done.repeated:,} rows repeat others"
        found.append(f"{rows} and {'counts' if done.repeated == 1 else 'count'} once.")
    return tuple(found)


def _first(done: ImportSummary) -> str:
    """The first bad row, without the path of somebody's machine."""
    if not done.examples:
        return ""
    where, _, reason = done.examples[0].partition(": ")
    return f"{Path(where).name}: {reason}"
