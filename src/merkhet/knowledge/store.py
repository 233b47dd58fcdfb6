"""Knowledge base: the facts, names and axioms of all sources in one DuckDB database."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from merkhet.core.schemas import FACTS, NAMES, validate
from merkhet.knowledge._staging import merge_staged, stage_chunks
from merkhet.knowledge.chunk import Chunk, Predicate
from merkhet.knowledge.database import FACT_COLUMNS, NAME_COLUMNS, connect, create_tables, define_macros, explain_error
from merkhet.knowledge.memory_limit import open_temporary
from merkhet.knowledge.source_lookup import STORE_SUFFIX, read_source, resolve_source
from merkhet.knowledge.source_reader import ReadContext


class KnowledgeBase:
    """A database of facts and names, in memory or in a file. Tables are returned in a stable order."""

    def __init__(
        self,
        chunks: Iterable[Chunk] = (),
        *,
        connection: duckdb.DuckDBPyConnection | None = None,
        context: ReadContext | None = None,
    ) -> None:
        if connection is None:
            connection = open_temporary()
            define_macros(connection)
            create_tables(connection)
            connection.execute("attach ':memory:' as staging")
            staged = stage_chunks(connection, "staging.chunks", chunks, context or ReadContext())
            merge_staged(connection, "staging.chunks", staged)
            connection.execute("detach staging")
        self.connection = connection
        self.path: Path | None = None

    @classmethod
    def open(cls, path: Path | str) -> KnowledgeBase:
        """Open the file of a knowledge base read-only."""
        opened = cls(connection=connect(Path(path), read_only=True))
        opened.path = Path(path)
        return opened

    @classmethod
    def load(
        cls, locations: Iterable[str], folder: Path | None = None, predicates: Sequence[str] = ()
    ) -> KnowledgeBase:
        """Load packs, folders, files and other knowledge bases into memory.

        If ``locations`` is a single knowledge base, its file is opened instead. Relative paths are looked up in
        ``folder`` first. ``predicates`` selects the predicates to load; empty for all.
        """
        locations = list(locations)
        if len(locations) == 1:
            _, path = resolve_source(locations[0], folder)
            if isinstance(path, Path) and path.suffix == STORE_SUFFIX:
                return cls.open(path)
        # Bad rows that are found in reading and those that are found in staging belong to one error.
        context = ReadContext(predicates=tuple(predicates))
        chunks = (chunk for location in locations for chunk in read_source(location, context, folder))
        return cls(chunks, context=context)

    def __enter__(self) -> KnowledgeBase:
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _traceback: object) -> None:
        self.close()
        if isinstance(error, duckdb.Error) and self.path is not None:
            explained = explain_error(error, self.path)
            if explained is not error:
                raise explained from error

    def close(self) -> None:
        """Close the connection."""
        self.connection.close()

    @property
    def predicates(self) -> Mapping[str, Predicate]:
        """The predicate declarations of all sources, by predicate name."""
        rows = self.connection.execute("select * from predicates order by name").fetchall()
        return {row[0]: Predicate(*row) for row in rows}

    def facts(
        self,
        predicate: str | None = None,
        *,
        subject: str | None = None,
        object: str | None = None,
        inferred: bool | None = None,
    ) -> pa.Table:
        """Return the facts that match all given filters, sorted by id.

        ``inferred`` selects inferred (True) or stated facts (False); None selects both.
        """
        filters = {"predicate": predicate, "subject": subject, "object": object}
        conditions = [f"{name} = ${name}" for name, value in filters.items() if value is not None]
        if inferred is not None:
            conditions.append("rule is not null" if inferred else "rule is null")
        where = "where " + " and ".join(conditions) if conditions else ""
        values = {name: value for name, value in filters.items() if value is not None}
        return validate(FACTS, self.query(f"select {FACT_COLUMNS} from facts {where} order by fact_id", values))

    def fact(self, fact_id: str) -> dict[str, Any] | None:
        """Return the fact with the id ``fact_id``; None if it does not exist."""
        rows = self.query(f"select {FACT_COLUMNS} from facts where fact_id = $id", {"id": fact_id}).to_pylist()
        return dict(rows[0]) if rows else None

    def names(self, language: str = "en") -> pa.Table:
        """Return the names of all entities in a language, sorted by entity."""
        return validate(
            NAMES, self.query(f"select {NAME_COLUMNS} from names where language = $l order by entity", {"l": language})
        )

    def complete_predicates(self) -> dict[str, str]:
        """Return the predicates that are declared complete, with the field of which all true names are stated.

        The field is ``object`` for functional predicates, by their declaration or as ``owl:FunctionalProperty``, and
        ``subject`` for those of ``owl:InverseFunctionalProperty``.
        """
        axioms: dict[str, str] = dict(
            self.connection.execute(
                """select subject, case when bool_or(object = 'owl:FunctionalProperty') and
                    bool_or(object = 'owl:InverseFunctionalProperty') then 'both'
                    when bool_or(object = 'owl:FunctionalProperty') then 'object' else 'subject' end as place
                from facts where predicate = 'rdf:type'
                and object in ('owl:FunctionalProperty', 'owl:InverseFunctionalProperty') group by subject"""
            ).fetchall()
        )
        declared = {
            name: predicate.complete or "object"
            for name, predicate in self.predicates.items()
            if predicate.complete or predicate.functional
        }
        return declared | axioms

    def labels(self, language: str = "en") -> dict[str, str]:
        """Return the labels in a language, by entity; entities without such a label are missing."""
        table = self.query("select entity, label from names where language = $l order by entity", {"l": language})
        return dict(zip(table["entity"].to_pylist(), table["label"].to_pylist(), strict=True))

    def ancestors(self, *predicates: str) -> pa.Table:
        """Return all pairs (subject, ancestor) in the transitive closure of the union of ``predicates``."""
        return self.query(
            "with recursive edges as (select distinct subject, object from facts "
            "  where list_contains($predicates, predicate) and object is not null"
            "), above(subject, ancestor) as ("
            "  select subject, object from edges"
            "  union"
            "  select above.subject, edges.object from above join edges on edges.subject = above.ancestor"
            ") select subject, ancestor from above order by subject, ancestor",
            {"predicates": list(predicates)},
        )

    def details(self, name: str | None = None) -> pa.Table:
        """Return the details of facts, such as weights and qualifiers, with the columns fact_id, name and text.

        ``name`` selects the details with this name; None selects all.
        """
        condition = "" if name is None else "where name = $name"
        return self.query(
            f"select fact_id, name, text from details {condition} order by fact_id, name",
            {} if name is None else {"name": name},
        )

    def imports(self) -> pa.Table:
        """Return the records of all imports, the oldest first."""
        return self.query("select * from imports order by done_at, import_id")

    def count(self) -> dict[str, int]:
        """Return the number of facts of each predicate, the most frequent predicate first."""
        rows = self.connection.execute(
            "select predicate, count(*) as n from facts group by predicate order by n desc, predicate"
        ).fetchall()
        return {str(predicate): int(n) for predicate, n in rows}

    def query(self, sql: str, values: Mapping[str, Any] | None = None) -> pa.Table:
        """Run an SQL query on the tables facts, names, details, predicates, imports and inferences."""
        return self.connection.sql(sql, params=dict(values) if values else None).to_arrow_table()
