"""Reader of published temporal facts: tables with start and end columns, and the files of YAGO11k."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from merkhet.core.compressed_files import SUFFIXES
from merkhet.core.errors import InputError
from merkhet.core.files import scratch_folder
from merkhet.knowledge.source_reader import ReadContext
from merkhet.knowledge.sources.fact_table import delimited_rows
from merkhet.knowledge.store import KnowledgeBase
from merkhet.knowledge.store_import import ImportSummary, import_knowledge

POSITIONS = "positions.tsv"
NUMBERED = ("train.txt", "valid.txt", "test.txt", "entity2id.txt", "relation2id.txt")
TABLES = tuple(f"*{suffix}{packed}" for packed in ("", *SUFFIXES) for suffix in (".tsv", ".csv"))
FILES = (POSITIONS, *NUMBERED, *TABLES)
"""Names and patterns of files that are recognized as published facts."""

OFFICES = "position held"
"""Relation of all facts in a table with a column ``position`` but without a relation column."""
_COLUMNS = {
    "subject": ("subject_id", "subject"),
    "subject_label": ("subject_label", "subject"),
    "predicate": ("predicate", "relation"),
    "object": ("object_id", "object", "position"),
    "object_label": ("object_label", "object", "position"),
    "start": ("start",),
    "end": ("end",),
}
"""Accepted column names in a table for each property of a fact, in order of preference."""


@contextmanager
def published_facts(path: Path) -> Iterator[tuple[KnowledgeBase, tuple[str, ...]]]:
    """Import a table or folder of facts into a temporary knowledge base; yield it with remarks.

    A table has the columns ``subject``, ``object`` (or ``position``), ``start`` and ``end``. It may have ``relation``
    (or ``predicate``), ``subject_id`` and ``object_id``; other columns are ignored. The relation defaults to
    ``position held`` if there is a column ``position``. A folder contains ``positions.tsv``, or the quadruples of
    YAGO11k with their dictionaries. Invalid rows (an end before the start, a malformed time) are skipped; a remark
    counts them and quotes the first one.

    Raises:
        InputError: A column is missing, or there are no facts.
    """
    source, options = _import_source(path)
    with scratch_folder("lama-tk") as folder:
        store = folder / "knowledge.duckdb"
        [report] = import_knowledge([source], store, options=options, skip_bad=True)
        if not report.facts:
            raise InputError(f"{path} contains no facts: {_first_bad_row(report) or 'there are no rows'}")
        with KnowledgeBase.open(store) as knowledge:
            yield knowledge, _remarks(report)


def source_name(path: Path) -> str:
    """Return a source's name for the data card: ``positions.tsv`` if the folder contains it, else ``path.name``."""
    return POSITIONS if (path / POSITIONS).is_file() else path.name


def _import_source(path: Path) -> tuple[str, dict[str, str]]:
    """Return the import source of a path, and import options that map the columns of a table."""
    if path.is_dir():
        positions = path / POSITIONS
        if not positions.is_file():
            return f"quadruples={path}", {}
        path = positions
    if path.name in NUMBERED:
        raise InputError(f"{path} is one of several files that refer to each other. Name their folder with --data.")
    return f"table={path}", _columns(path)


def _columns(table: Path) -> dict[str, str]:
    """Return import options that map the columns of a table to the properties of a fact.

    Raises:
        InputError: A required column is missing.
    """
    known = {name for names in _COLUMNS.values() for name in names}
    _, header = next(delimited_rows(table, ReadContext(), known), (1, []))
    by_name = {name.strip().lower(): name for name in header}
    columns = {
        target: by_name[next(name for name in names if name in by_name)]
        for target, names in _COLUMNS.items()
        if any(name in by_name for name in names)
    }
    for target in ("subject", "object", "start", "end"):
        if target not in columns:
            alternatives = " or ".join(repr(name) for name in _COLUMNS[target] if not name.endswith("_id"))
            raise InputError(
                f"{table}:1: column {alternatives} is missing; a table of temporal facts needs subject, object (or "
                f"position), start and end, this one has: {', '.join(header) or 'nothing'}"
            )
    options = {f"map.{target}": column for target, column in columns.items()}
    for role in ("subject", "object"):
        if columns.get(f"{role}_label") == columns[role]:
            del options[f"map.{role}_label"]
    if "predicate" not in columns:
        if "position" not in by_name:
            raise InputError(
                f"{table}:1: column 'relation' is missing; it names the relation of subject and object, such as "
                f"{OFFICES!r}"
            )
        options["constant.predicate"] = OFFICES
    return options


def _remarks(report: ImportSummary) -> tuple[str, ...]:
    """Return remarks on skipped rows, unused data and repeated rows."""
    remarks = []
    if report.bad:
        subject_phrase = "1 row is no fact and was" if report.bad == 1 else f"{report.bad:,} rows are no facts and were"
        remarks.append(f"{subject_phrase} left out; the first is {_first_bad_row(report)}.")
    remarks += [f"Not used: {count:,} {kind}." for kind, count in report.left_out.items()]
    if report.repeated:
        subject_phrase = "1 row repeats another" if report.repeated == 1 else f"{report.repeated:,} rows repeat others"
        remarks.append(f"{subject_phrase} and {'counts' if report.repeated == 1 else 'count'} once.")
    return tuple(remarks)


def _first_bad_row(report: ImportSummary) -> str:
    """Describe the first invalid row by file name, without its folder; empty if all rows are valid."""
    if not report.examples:
        return ""
    where, _, reason = report.examples[0].partition(": ")
    return f"{Path(where).name}: {reason}"
