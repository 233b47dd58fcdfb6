"""Export of a knowledge base as table files or N-Triples."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import duckdb

from merkhet.core.errors import InputError, first_line
from merkhet.core.files import atomic_path, disk_full_error, explain_write_error, refuse_foreign_folder, temporary_path
from merkhet.knowledge._iris import LOCAL_NAMESPACE, PREFIXES, full_iri
from merkhet.knowledge.database import (
    DETAIL_COLUMNS,
    FACT_COLUMNS,
    NAME_COLUMNS,
    count_rows,
    open_database,
    sql_literals,
)
from merkhet.knowledge.predicate_labels import find_predicates
from merkhet.knowledge.source_reader import ROWS_IN_CHUNK

_FORMATS = {
    ".parquet": "(format parquet, compression zstd)",
    ".csv": "(format csv, header)",
    ".tsv": "(format csv, header, delimiter '\t')",
    ".jsonl": "(format json)",
}
_DETAILS = f"select {DETAIL_COLUMNS} from details join ({{facts}}) using (fact_id) order by fact_id, details.name"
_NAMES = f"select {NAME_COLUMNS} from names order by entity, language"
_LANGUAGE_TAG = re.compile(r"[A-Za-z]{1,8}(-[A-Za-z0-9]{1,8})*")
# Without a language, a literal may have a datatype, which is written as a part of the text.
_LITERAL = re.compile(r'"(.*)"(?:@([A-Za-z0-9-]+)|\^\^[^"\s]+)?', re.DOTALL)
# Characters that an IRI may not contain (RFC 3987), and percent signs that do not start an escape.
_PLANES = "".join(f"{chr(plane << 16)}-{chr(plane << 16 | 0xFFFD)}" for plane in range(1, 14))
_INVALID_IN_IRI = re.compile(
    rf"[^!#$%&-;=?-Z_a-z~\xa0-\ud7ff\uf900-\ufdcf\ufdf0-\uffef{_PLANES}\U000e1000-\U000efffd]|%(?![0-9A-Fa-f]{{2}})"
)
# IRIs with a plausible host and port; anything else is written under LOCAL_NAMESPACE.
_VALID_IRI = re.compile(
    r"urn:[A-Za-z0-9][A-Za-z0-9-]*:.+|[A-Za-z][A-Za-z0-9+.-]*://([^/?#@]*@)?[^/?#@:]*(:\d*)?([/?#].*)?", re.DOTALL
)


def export_knowledge(
    store: Path, out: Path, *, inferred: bool = True, predicates: tuple[str, ...] = ()
) -> dict[str, int]:
    """Write a knowledge base to a file or folder.

    Args:
        store: The file of the knowledge base.
        out: The file or folder to write. A path without a suffix is a folder of Parquet tables that can be imported
            again. Files with the suffix ``.parquet``, ``.csv``, ``.tsv`` or ``.jsonl`` contain only facts. A ``.nt``
            file contains facts and names as N-Triples, without times; of the units, it keeps only those of DBpedia.
        inferred: Whether to export inferred facts.
        predicates: The predicates to export, by id, IRI or label; empty for all.

    Returns:
        The numbers of written facts, of names (in folders and ``.nt`` files) and of details (in folders).
    """
    conditions = ([] if inferred else ["rule is null"]) + (["list_contains($p, predicate)"] if predicates else [])
    where = "where " + " and ".join(conditions) if conditions else ""
    if out.resolve() == store.resolve():
        raise InputError(f"{out} is the knowledge base itself; choose another name")
    if out.suffix and out.is_dir():
        raise InputError(f"{out} is a folder, not a file; choose another name")
    if out.suffix and out.suffix not in (*_FORMATS, ".nt"):
        known = ", ".join([*_FORMATS, ".nt"])
        raise InputError(f"{out}: unknown suffix; use {known}, or no suffix for a folder")
    with open_database(store, read_only=True) as connection:
        found = find_predicates(connection, predicates)
        values = {"p": [name for names in found.values() for name in names]} if predicates else {}
        facts = f"select {FACT_COLUMNS} from facts {where} order by fact_id"
        count = count_rows(connection, f"({facts})", values)
        if not out.suffix:
            return {"facts": count, **_export_folder(connection, facts, values, out)}
        with atomic_path(out) as path:
            if out.suffix == ".nt":
                return {"facts": count, "names": _write_triples(connection, facts, values, path)}
            if out.suffix in (".csv", ".tsv"):
                facts = f"select * replace (array_to_string(premises, '|') as premises) from ({facts})"
            _copy(connection, facts, path, out.suffix, values)
            return {"facts": count}


def _write_triples(connection: Any, facts: str, values: dict[str, Any], path: Path) -> int:
    """Write facts and names as N-Triples; return the number of names."""
    count = 0
    with open(path, "w", encoding="utf-8") as handle:
        for batch in connection.sql(facts, params=values or None).to_arrow_reader(ROWS_IN_CHUNK):
            handle.writelines(map(_triple, batch.to_pylist()))
        for batch in connection.sql(_NAMES).to_arrow_reader(ROWS_IN_CHUNK):
            lines = [line for row in batch.to_pylist() for line in _label_triples(row)]
            count += len(lines)
            handle.writelines(lines)
    return count


def _export_folder(connection: Any, facts: str, values: dict[str, Any], out: Path) -> dict[str, int]:
    refuse_foreign_folder(out, "facts.parquet")
    out = out.resolve()
    unfinished = temporary_path(out)
    try:
        unfinished.mkdir(parents=True)
        tables = {
            "facts": facts,
            "names": _NAMES,
            "details": _DETAILS.format(facts=facts),
            "predicates": "select * from predicates order by name",
        }
        for name, query in tables.items():
            _copy(connection, query, unfinished / f"{name}.parquet", ".parquet", values if "$p" in query else {})
        counts = connection.execute(
            f"select (select count(*) from names), count(*) from ({tables['details']})", values or None
        ).fetchall()[0]
        if not out.exists() or not any(out.iterdir()):
            os.replace(unfinished, out)
        else:
            for file in sorted(unfinished.iterdir()):
                os.replace(file, out / file.name)
    except OSError as error:
        raise (explain_write_error(error, out) or error) from error
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
    return {"names": int(counts[0]), "details": int(counts[1])}


def _copy(connection: Any, query: str, path: Path, suffix: str, values: dict[str, Any]) -> None:
    try:
        connection.execute(f"copy ({query}) to {sql_literals(path)} {_FORMATS[suffix]}", values or None)
    except duckdb.IOException as error:
        if "No space left" in str(error):
            raise disk_full_error(path.parent) from error
        raise InputError(
            f"{path.parent} cannot be written to ({first_line(error)}). Choose another path with --out."
        ) from error


def _triple(row: dict[str, Any]) -> str:
    if row["object"] is None:
        # DBpedia's units are datatypes, which an import reads as units again.
        unit = full_iri(row["unit"] or "") or ""
        datatype = unit if unit.startswith(PREFIXES["dbt"]) else PREFIXES["xsd"] + "double"
        object_ = f'"{row["value"]!r}"^^<{_escape_iri(datatype)}>'
    elif literal := _LITERAL.fullmatch(row["object"]):
        object_ = _literal(literal)
    else:
        object_ = _node(row["object"])
    return f"{_node(row['subject'])} {_node(row['predicate'])} {object_} .\n"


def _label_triples(row: dict[str, Any]) -> Iterator[str]:
    if not _LANGUAGE_TAG.fullmatch(row["language"]):
        return  # RDF cannot express this language; without a tag, the name would get another one.
    entity = _node(row["entity"])
    for predicate, text in (
        ("rdfs:label", row["label"]),
        *(("skos:altLabel", alias) for alias in row["aliases"] or []),
    ):
        yield f'{entity} {_node(predicate)} "{_escape_text(text)}"@{row["language"]} .\n'


def _node(name: str) -> str:
    iri = full_iri(name)
    return (
        f"<{_escape_iri(iri)}>" if iri and _VALID_IRI.fullmatch(iri) else f"<{LOCAL_NAMESPACE}{quote(name, safe='')}>"
    )


def _escape_iri(iri: str) -> str:
    base, mark, fragment = _INVALID_IN_IRI.sub(lambda match: quote(match[0], safe=""), iri).partition("#")
    return base + mark + fragment.replace("#", "%23")


def _literal(match: re.Match[str]) -> str:
    text, language = match.groups()
    if language and _LANGUAGE_TAG.fullmatch(language):
        return f'"{_escape_text(text)}"@{language}'
    return f'"{_escape_text(text if match[0].endswith(chr(34)) else match[0])}"'


def _escape_text(text: str) -> str:
    for character, escape in (("\\", "\\\\"), ('"', '\\"'), ("\n", "\\n"), ("\r", "\\r"), ("\t", "\\t")):
        text = text.replace(character, escape)
    return text
