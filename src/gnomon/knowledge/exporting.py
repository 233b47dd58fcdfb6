"""Knowledge out of the store: tables for any tool, or N-Triples for others' stores."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

from gnomon.foundation import InputError
from gnomon.foundation.files import atomic_path, refuse_foreign_folder
from gnomon.knowledge.database import FACT_COLUMNS, connected
from gnomon.knowledge.iris import full_iri
from gnomon.knowledge.reading import ROWS_IN_CHUNK

OWN_NAMES = "urn:gnomon:"
"""The beginning of an IRI for what is no IRI itself (``capital``)."""
_FORMATS = {
    ".parquet": "(format parquet, compression zstd)",
    ".csv": "(format csv, header)",
    ".tsv": "(format csv, header, delimiter '\t')",
    ".jsonl": "(format json)",
}
_DETAILS = (
    'select subject, predicate, object, value, unit, "start", "end", details.name, details.text '
    "from details join facts using (fact_id)"
)


def export_knowledge(
    store: Path, out: Path, *, inferred: bool = True, predicates: tuple[str, ...] = ()
) -> dict[str, int]:
    """Write a knowledge base; how many facts, names and details were written.

    A name without a suffix is a folder of Parquet tables that can be imported again; ``.parquet``, ``.csv``, ``.tsv``
    and ``.jsonl`` hold the facts alone; ``.nt`` holds facts and names as N-Triples, without times.
    """
    conditions = ([] if inferred else ["rule is null"]) + (["list_contains($p, predicate)"] if predicates else [])
    where = "where " + " and ".join(conditions) if conditions else ""
    values = {"p": list(predicates)} if predicates else {}
    if out.resolve() == store.resolve():
        raise InputError(f"{out} is the knowledge base itself; choose another name")
    with connected(store, read_only=True) as connection:
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
                for batch in connection.sql("select * from names order by entity, language").to_arrow_reader(
                    ROWS_IN_CHUNK
                ):
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
    made = out.with_name(f".{out.name}.{os.getpid()}.tmp")
    made.mkdir(parents=True)
    try:
        _copy(connection, facts, made / "facts.parquet", ".parquet", values)
        _copy(connection, "select * from names order by entity, language", made / "names.parquet", ".parquet", {})
        _copy(connection, _DETAILS, made / "details.parquet", ".parquet", {})
        out.mkdir(parents=True, exist_ok=True)
        for file in sorted(made.iterdir()):
            os.replace(file, out / file.name)
    finally:
        shutil.rmtree(made, ignore_errors=True)
    counts = connection.execute("select (select count(*) from names), (select count(*) from details)").fetchall()[0]
    return {"names": int(counts[0]), "details": int(counts[1])}


def _copy(connection: Any, query: str, path: Path, suffix: str, values: dict[str, Any]) -> None:
    target = str(path).replace("'", "''")
    connection.execute(f"copy ({query}) to '{target}' {_FORMATS[suffix]}", values or None)


def _flat(query: str) -> str:
    return f"select * replace (array_to_string(premises, '|') as premises) from ({query})"


def _triple(row: dict[str, Any]) -> str:
    if row["object"] is None:
        end = f'"{row["value"]!r}"^^<http://www.w3.org/2001/XMLSchema#double>'
    elif row["object"].startswith('"'):
        end = _literal(row["object"])
    else:
        end = _node(row["object"])
    return f"{_node(row['subject'])} {_node(row['predicate'])} {end} .\n"


def _labels(row: dict[str, Any]) -> Iterator[str]:
    entity = _node(row["entity"])
    tag = f"@{row['language']}"
    yield f'{entity} <http://www.w3.org/2000/01/rdf-schema#label> "{_escaped(row["label"])}"{tag} .\n'
    for alias in row["aliases"] or []:
        yield f'{entity} <http://www.w3.org/2004/02/skos/core#altLabel> "{_escaped(alias)}"{tag} .\n'


def _node(name: str) -> str:
    iri = full_iri(name)
    return f"<{quote(iri, safe=_SAFE)}>" if iri else f"<{OWN_NAMES}{quote(name, safe='')}>"


_SAFE = "".join(chr(code) for code in range(33, 127) if chr(code) not in '<>"{}|^`\\')


def _literal(text: str) -> str:
    body, _, tag = text[1:].rpartition('"')
    return f'"{_escaped(body)}"{tag}'


def _escaped(text: str) -> str:
    for given, written in (("\\", "\\\\"), ('"', '\\"'), ("\n", "\\n"), ("\r", "\\r"), ("\t", "\\t")):
        text = text.replace(given, written)
    return text
