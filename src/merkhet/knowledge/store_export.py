"""Knowledge out of the store: tables for any tool, or N-Triples for others' stores."""

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
from merkhet.knowledge._iris import OWN_NAMES, PREFIXES, full_iri
from merkhet.knowledge.database import FACT_COLUMNS, NAME_COLUMNS, open_database
from merkhet.knowledge.source_reader import ROWS_IN_CHUNK

_FORMATS = {
    ".parquet": "(format parquet, compression zstd)",
    ".csv": "(format csv, header)",
    ".tsv": "(format csv, header, delimiter '\t')",
    ".jsonl": "(format json)",
}
_DETAILS = (
    'select subject, predicate, object, value, unit, "start", "end", details.name, details.text '
    "from details join ({facts}) using (fact_id) order by fact_id, details.name"
)
_TAG = re.compile(r"[A-Za-z]{1,8}(-[A-Za-z0-9]{1,8})*")
_LITERAL = re.compile(r'"(.*)"(?:@([^"]*))?', re.DOTALL)
# What may not stand in an IRI as it is (RFC 3987), and a percent sign that begins no code.
_PLANES = "".join(f"{chr(plane << 16)}-{chr(plane << 16 | 0xFFFD)}" for plane in range(1, 14))
_NOT_IN_IRI = re.compile(
    rf"[^!#$%&-;=?-Z_a-z~\xa0-\ud7ff\uf900-\ufdcf\ufdf0-\uffef{_PLANES}\U000e1000-\U000efffd]|%(?![0-9A-Fa-f]{{2}})"
)
# An address whose host and port can be such; what is none is written as a name of its own.
_SOUND = re.compile(
    r"urn:[A-Za-z0-9][A-Za-z0-9-]*:.+|[A-Za-z][A-Za-z0-9+.-]*://([^/?#@]*@)?[^/?#@:]*(:\d*)?([/?#].*)?", re.DOTALL
)


def export_knowledge(
    store: Path, out: Path, *, inferred: bool = True, predicates: tuple[str, ...] = ()
) -> dict[str, int]:
    """Write a knowledge base; how many facts, names and details were written.

    A name without a suffix is a folder of Parquet tables that can be imported again; ``.parquet``, ``.csv``, ``.tsv``
    and ``.jsonl`` hold the facts alone; ``.nt`` holds facts and names as N-Triples, without times, and without units
    but those of DBpedia.
    """
    conditions = ([] if inferred else ["rule is null"]) + (["list_contains($p, predicate)"] if predicates else [])
    where = "where " + " and ".join(conditions) if conditions else ""
    values = {"p": list(predicates)} if predicates else {}
    if out.resolve() == store.resolve():
        raise InputError(f"{out} is the knowledge base itself; choose another name")
    if out.suffix and out.is_dir():
        raise InputError(f"{out} is a folder, and a file is to be written; choose another name")
    with open_database(store, read_only=True) as connection:
        facts = f"select {FACT_COLUMNS} from facts {where} order by fact_id"
        count = int(connection.execute(f"select count(*) from ({facts})", values or None).fetchall()[0][0])
        if out.suffix in _FORMATS:
            with atomic_path(out) as path:
                _copy(connection, _flat(facts) if out.suffix in (".csv", ".tsv") else facts, path, out.suffix, values)
            return {"facts": count}
        if out.suffix == ".nt":
            with atomic_path(out) as path, open(path, "w", encoding="utf-8") as handle:
                names = 0
                for batch in connection.sql(facts, params=values or None).to_arrow_reader(ROWS_IN_CHUNK):
                    handle.writelines(_triple(row) for row in batch.to_pylist())
                for batch in connection.sql(
                    f"select {NAME_COLUMNS} from names order by entity, language"
                ).to_arrow_reader(ROWS_IN_CHUNK):
                    for row in batch.to_pylist():
                        lines = list(_labels(row))
                        names += len(lines)
                        handle.writelines(lines)
            return {"facts": count, "names": names}
        if out.suffix:
            known = ", ".join([*_FORMATS, ".nt"])
            raise InputError(f"{out}: facts are exported to {known}, or to a folder (a name without a suffix)")
        return {"facts": count, **_export_folder(connection, facts, values, out)}


def _export_folder(connection: Any, facts: str, values: dict[str, Any], out: Path) -> dict[str, int]:
    refuse_foreign_folder(out, "facts.parquet")
    out = out.resolve()
    made = temporary_path(out)
    try:
        made.mkdir(parents=True)
        tables = {
            "facts": facts,
            "names": f"select {NAME_COLUMNS} from names order by entity, language",
            "details": _DETAILS.format(facts=facts),
            "predicates": "select * from predicates order by name",
        }
        for name, query in tables.items():
            _copy(connection, query, made / f"{name}.parquet", ".parquet", values if "$p" in query else {})
        counted = connection.execute(
            f"select (select count(*) from names), count(*) from ({tables['details']})", values or None
        ).fetchall()[0]
        if not out.exists() or not any(out.iterdir()):
            os.replace(made, out)
        else:
            for file in sorted(made.iterdir()):
                os.replace(file, out / file.name)
    except OSError as error:
        raise (explain_write_error(error, out) or error) from error
    finally:
        shutil.rmtree(made, ignore_errors=True)
    return {"names": int(counted[0]), "details": int(counted[1])}


def _copy(connection: Any, query: str, path: Path, suffix: str, values: dict[str, Any]) -> None:
    target = str(path).replace("'", "''")
    try:
        connection.execute(f"copy ({query}) to '{target}' {_FORMATS[suffix]}", values or None)
    except duckdb.IOException as error:
        if "No space left" in str(error):
            raise disk_full_error(path.parent) from error
        raise InputError(f"{path.parent} cannot be written to ({first_line(error)})") from error


def _flat(query: str) -> str:
    return f"select * replace (array_to_string(premises, '|') as premises) from ({query})"


def _triple(row: dict[str, Any]) -> str:
    if row["object"] is None:
        # DBpedia's units are datatypes, and are read as such again.
        unit = full_iri(row["unit"] or "") or ""
        datatype = unit if unit.startswith(PREFIXES["dbt"]) else PREFIXES["xsd"] + "double"
        end = f'"{row["value"]!r}"^^<{_iri(datatype)}>'
    elif row["object"].startswith('"'):
        end = _literal(row["object"])
    else:
        end = _node(row["object"])
    return f"{_node(row['subject'])} {_node(row['predicate'])} {end} .\n"


def _labels(row: dict[str, Any]) -> Iterator[str]:
    if not _TAG.fullmatch(row["language"]):
        return  # RDF has no way to say this language, and without it the name would count as another one's.
    entity = _node(row["entity"])
    for predicate, text in (
        ("rdfs:label", row["label"]),
        *(("skos:altLabel", alias) for alias in row["aliases"] or []),
    ):
        yield f'{entity} {_node(predicate)} "{_escaped(text)}"@{row["language"]} .\n'


def _node(name: str) -> str:
    iri = full_iri(name)
    return f"<{_iri(iri)}>" if iri and _SOUND.fullmatch(iri) else f"<{OWN_NAMES}{quote(name, safe='')}>"


def _iri(iri: str) -> str:
    before, mark, fragment = _NOT_IN_IRI.sub(lambda found: quote(found[0], safe=""), iri).partition("#")
    return before + mark + fragment.replace("#", "%23")


def _literal(text: str) -> str:
    found = _LITERAL.fullmatch(text)
    if found and (found[2] is None or _TAG.fullmatch(found[2])):
        return f'"{_escaped(found[1])}"' + (f"@{found[2]}" if found[2] else "")
    return f'"{_escaped(text)}"'


def _escaped(text: str) -> str:
    for given, written in (("\\", "\\\\"), ('"', '\\"'), ("\n", "\\n"), ("\r", "\\r"), ("\t", "\\t")):
        text = text.replace(given, written)
    return text
