"""The knowledge base: facts, names and ontology of all sources in one DuckDB, asked relationally."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from merkhet.core.schemas import FACTS, NAMES, validate
from merkhet.knowledge._staging import merge, stage
from merkhet.knowledge.chunk import Chunk, Predicate
from merkhet.knowledge.database import FACT_COLUMNS, NAME_COLUMNS, connect, define_macros, explain_error, prepare
from merkhet.knowledge.source_lookup import STORE_SUFFIX, read_source, resolve_source
from merkhet.knowledge.source_reader import ReadContext


class KnowledgeBase:
    """Facts and names, in memory or in a file. Methods return Arrow tables in a stable order."""

    def __init__(self, materials: Iterable[Chunk] = (), *, connection: duckdb.DuckDBPyConnection | None = None) -> None:
        if connection is None:
            connection = duckdb.connect()
            define_macros(connection)
            prepare(connection)
            connection.execute("attach ':memory:' as staging")
            context = ReadContext()
            merge(connection, "staging.given", stage(connection, "staging.given", materials, context))
            connection.execute("detach staging")
        self.connection = connection
        self.path: Path | None = None

    @classmethod
    def open(cls, path: Path | str) -> KnowledgeBase:
        """The knowledge base in a file, for reading; refuses what is none."""
        opened = cls(connection=connect(Path(path), read_only=True))
        opened.path = Path(path)
        return opened

    @classmethod
    def load(cls, places: Iterable[str], folder: Path | None = None, predicates: Sequence[str] = ()) -> KnowledgeBase:
        """Load packs, folders, files and other knowledge bases together; of ``predicates`` alone where some are named.

        A single knowledge base is opened as it is, whatever the predicates.
        """
        given = list(places)
        if len(given) == 1:
            _, where = resolve_source(given[0], folder)
            if isinstance(where, Path) and where.suffix == STORE_SUFFIX:
                return cls.open(where)
        wanted = tuple(predicates)
        return cls(chunk for place in given for chunk in read_source(place, ReadContext(predicates=wanted), folder))

    def __enter__(self) -> KnowledgeBase:
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _traceback: object) -> None:
        self.close()
        if isinstance(error, duckdb.Error) and self.path is not None:
            told = explain_error(error, self.path)
            if told is not error:
                raise told from error

    def close(self) -> None:
        """Let go of the file."""
        self.connection.close()

    @property
    def predicates(self) -> Mapping[str, Predicate]:
        """What sources declared of predicates."""
        rows = self.connection.execute(
            'select name, label, functional, "symmetric" from predicates order by name'
        ).fetchall()
        return {row[0]: Predicate(*row) for row in rows}

    def facts(
        self,
        predicate: str | None = None,
        *,
        subject: str | None = None,
        object: str | None = None,
        inferred: bool | None = None,
    ) -> pa.Table:
        """Facts by id: all, or those of a predicate, a subject or an object; ``inferred`` asks for one kind alone."""
        asked = {"predicate": predicate, "subject": subject, "object": object}
        conditions = [f"{name} = ${name}" for name, value in asked.items() if value is not None]
        if inferred is not None:
            conditions.append("rule is not null" if inferred else "rule is null")
        where = "where " + " and ".join(conditions) if conditions else ""
        values = {name: value for name, value in asked.items() if value is not None}
        found = self._arrow(f"select {FACT_COLUMNS} from facts {where} order by fact_id", values)
        return validate(FACTS, found)

    def fact(self, fact_id: str) -> dict[str, Any] | None:
        """One fact by its id, or None."""
        rows: list[dict[str, Any]] = self._arrow(
            f"select {FACT_COLUMNS} from facts where fact_id = $id", {"id": fact_id}
        ).to_pylist()
        return rows[0] if rows else None

    def objects(self, subject: str, predicate: str | None = None) -> pa.Table:
        """What is said of a subject: predicate, object or value with its unit, and when."""
        condition = "" if predicate is None else "and predicate = $predicate"
        values = {"subject": subject} | ({} if predicate is None else {"predicate": predicate})
        return self._arrow(
            'select predicate, object, value, unit, "start", "end", fact_id from facts '
            f"where subject = $subject {condition} order by predicate, object, value, fact_id",
            values,
        )

    def neighbours(self, entity: str) -> pa.Table:
        """Entities that share a fact with one: the other end, the predicate, and which way it points."""
        return self._arrow(
            "select object as entity, predicate, 'out' as direction, fact_id from facts "
            "where subject = $entity and object is not null "
            "union all select subject, predicate, 'in', fact_id from facts where object = $entity "
            "order by entity, predicate, direction, fact_id",
            {"entity": entity},
        )

    def names(self, language: str = "en") -> pa.Table:
        """Names of entities in a language, by entity."""
        return validate(
            NAMES, self._arrow(f"select {NAME_COLUMNS} from names where language = $l order by entity", {"l": language})
        )

    def labels(self, language: str = "en") -> dict[str, str]:
        """What each entity is called; an entity without a name is not in it."""
        table = self._arrow("select entity, label from names where language = $l order by entity", {"l": language})
        return dict(zip(table["entity"].to_pylist(), table["label"].to_pylist(), strict=True))

    def ancestors(self, *predicates: str) -> pa.Table:
        """Every (subject, ancestor) pair that follows from a chain of facts of is-a-like predicates."""
        return self._arrow(
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
        """Further things said of facts (a weight, a rank, a qualifier): fact_id, name and text."""
        condition = "" if name is None else "where name = $name"
        return self._arrow(
            f"select fact_id, name, text from details {condition} order by fact_id, name",
            {} if name is None else {"name": name},
        )

    def imports(self) -> pa.Table:
        """Where the knowledge came from: one row an import, the first one first."""
        return self._arrow("select * from imports order by done_at, import_id", {})

    def count(self) -> dict[str, int]:
        """How many facts each predicate has, largest first."""
        rows = self.connection.execute(
            "select predicate, count(*) as n from facts group by predicate order by n desc, predicate"
        ).fetchall()
        return {str(predicate): int(n) for predicate, n in rows}

    def query(self, sql: str, values: Mapping[str, Any] | None = None) -> pa.Table:
        """The answer to a query in SQL over the tables facts, names, details, predicates and imports."""
        return self._arrow(sql, dict(values or {}))

    def _arrow(self, query: str, values: Mapping[str, Any]) -> pa.Table:
        return (
            self.connection.sql(query, params=dict(values)).to_arrow_table()
            if values
            else self.connection.sql(query).to_arrow_table()
        )
