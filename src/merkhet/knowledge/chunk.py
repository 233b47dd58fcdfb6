"""Chunks: the batches of facts, names and predicate declarations that sources yield."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from merkhet.core.schemas import FACTS, NAMES

COMPLETE = ("object", "subject", "both")
"""Values of ``Predicate.complete``."""
DETAILS_SCHEMA = pa.schema(
    [("subject", pa.string()), ("predicate", pa.string()), ("object", pa.string()), ("value", pa.float64())]
    + [(name, pa.string()) for name in ("unit", "start", "end", "name", "text")]
)
"""Details of facts, such as a weight or a rank: the key columns of the fact, then the detail's name and text."""


@dataclass(frozen=True)
class Predicate:
    """A source's declaration of a predicate."""

    name: str
    label: str
    functional: bool = False
    """Whether a subject has at most one object."""
    symmetric: bool = False
    complete: str | None = None
    """Where nothing is missing, one of ``COMPLETE``; only there is a value that is not stated known to be wrong.

    ``object``: all true objects of a subject with this predicate are stated. ``subject``: all true subjects of an
    object with this predicate are stated, among the subjects of this predicate. ``both``: both."""


@dataclass(frozen=True)
class Chunk:
    """A batch of facts and names from a source."""

    facts: pa.Table = field(default_factory=FACTS.schema.empty_table)
    """Facts without ids; the store assigns the ids."""
    names: pa.Table = field(default_factory=NAMES.schema.empty_table)
    predicates: Mapping[str, Predicate] = field(default_factory=dict)
    details: pa.Table = field(default_factory=DETAILS_SCHEMA.empty_table)
    where: Callable[[int], str] | None = None
    """Function from a row index of ``facts`` to the row's location for error messages."""
    named_by_id: tuple[str, ...] = ()
    """Columns of ``facts`` (``subject``, ``object``) whose ids also serve as labels."""
    language: str = "en"
    """Language of the labels that come from ``named_by_id``."""


def columns_table(schema: pa.Schema, columns: Mapping[str, Sequence[Any]]) -> pa.Table:
    """Build a table with a given schema from some of its columns; missing columns are null."""
    return conform(
        pa.table({name: pa.array(cells, schema.field(name).type) for name, cells in columns.items()}), schema
    )


def conform(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """Cast a table to a schema; columns that the table lacks are null."""
    columns = [
        table[column.name].cast(column.type)
        if column.name in table.column_names
        else pa.nulls(table.num_rows, column.type)
        for column in schema
    ]
    return pa.Table.from_arrays(columns, schema=schema)


class ChunkBuilder:
    """A builder of chunks for sources that add facts and names one by one."""

    def __init__(self, source: str) -> None:
        self.source = source
        self._facts: list[tuple[Any, ...]] = []
        self._locations: list[str] = []
        self._names: list[tuple[Any, ...]] = []
        self._details: list[tuple[Any, ...]] = []

    def __len__(self) -> int:
        return len(self._facts) + len(self._names) + len(self._details)

    def add_fact(
        self,
        where: str,
        subject: str,
        predicate: str,
        object: str | None = None,
        *,
        value: float | None = None,
        unit: str | None = None,
        start: str | None = None,
        end: str | None = None,
        domain: str | None = None,
        details: Mapping[str, str] | None = None,
    ) -> None:
        """Add a fact and its details; ``where`` is its location for error messages (``file:line``)."""
        key = (subject, predicate, object, value, unit, start, end)
        self._facts.append((*key, domain))
        self._locations.append(where)
        if details:
            self._details.extend((*key, name, text) for name, text in details.items())

    def add_name(
        self, entity: str, label: str | None, language: str = "en", aliases: Sequence[str] = (), kind: str | None = None
    ) -> None:
        """Add a label and aliases of an entity; ``label`` is None if there are only aliases.

        If an entity gets several labels in one language, the store keeps one and turns the others into aliases.
        """
        self._names.append((entity, language, label, list(aliases), kind))

    def flush(self) -> Chunk:
        """Return the collected facts, names and details as a chunk, and start a new chunk."""
        columns = ("subject", "predicate", "object", "value", "unit", "start", "end", "domain")
        facts = _to_columns(columns, self._facts)
        if facts:
            facts["source"] = [self.source] * len(self._facts)
        names = _to_columns(NAMES.schema.names, self._names)
        details = _to_columns(DETAILS_SCHEMA.names, self._details)
        locations = self._locations
        self._facts, self._locations, self._names, self._details = [], [], [], []
        return Chunk(
            columns_table(FACTS.schema, facts),
            columns_table(NAMES.schema, names),
            details=columns_table(DETAILS_SCHEMA, details),
            where=lambda row: locations[row],
        )


def _to_columns(names: Sequence[str], rows: Sequence[tuple[Any, ...]]) -> dict[str, Sequence[Any]]:
    return dict(zip(names, zip(*rows, strict=True), strict=True)) if rows else {}
