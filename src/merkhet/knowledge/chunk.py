"""What a source gives: facts, names and what is known of the predicates, in chunks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from merkhet.core.schemas import FACTS, NAMES

DETAILS_SCHEMA = pa.schema(
    [("subject", pa.string()), ("predicate", pa.string()), ("object", pa.string()), ("value", pa.float64())]
    + [(name, pa.string()) for name in ("unit", "start", "end", "name", "text")]
)
"""Further things said of a fact (a weight, a rank, a qualifier): the fact's columns, then a name and a text."""


@dataclass(frozen=True)
class Predicate:
    """What is declared of a predicate; ``functional`` means at most one object a subject."""

    name: str
    label: str
    functional: bool = False
    symmetric: bool = False


@dataclass(frozen=True)
class Material:
    """Facts and names from one source, or a chunk of them, as tables of the house.

    Facts need no ids: the store gives them. ``where`` names the place of a row of facts (counted from 0) for errors.
    ``named_by_id`` says for which of ``subject`` and ``object`` what stands in the facts is also what it is called,
    in which ``language``.
    """

    facts: pa.Table = field(default_factory=FACTS.schema.empty_table)
    names: pa.Table = field(default_factory=NAMES.schema.empty_table)
    predicates: Mapping[str, Predicate] = field(default_factory=dict)
    details: pa.Table = field(default_factory=DETAILS_SCHEMA.empty_table)
    where: Callable[[int], str] | None = None
    named_by_id: tuple[str, ...] = ()
    language: str = "en"


def columns_table(schema: pa.Schema, columns: Mapping[str, Sequence[Any]]) -> pa.Table:
    """A table with some of a schema's columns filled and the others null."""
    length = len(next(iter(columns.values()))) if columns else 0
    arrays = [
        pa.array(columns[name], schema.field(name).type)
        if name in columns
        else pa.nulls(length, schema.field(name).type)
        for name in schema.names
    ]
    return pa.Table.from_arrays(arrays, schema=schema)


class Gathering:
    """Rows gathered one by one into a chunk, by sources that read line by line."""

    def __init__(self, source: str) -> None:
        self.source = source
        self._facts: list[tuple[Any, ...]] = []
        self._places: list[str] = []
        self._names: list[tuple[Any, ...]] = []
        self._details: list[tuple[Any, ...]] = []

    def __len__(self) -> int:
        return len(self._facts) + len(self._names) + len(self._details)

    def fact(
        self,
        place: str,
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
        """Add a fact that stands at a place (``file:line``), with further things said of it."""
        key = (subject, predicate, object, value, unit, start, end)
        self._facts.append((*key, domain))
        self._places.append(place)
        if details:
            self._details.extend((*key, name, text) for name, text in details.items())

    def name(
        self, entity: str, label: str | None, language: str = "en", aliases: Sequence[str] = (), kind: str | None = None
    ) -> None:
        """Add an entity's name; None with aliases if these are all that is said here.

        Several names of one entity in one language become one label and its aliases in the store.
        """
        self._names.append((entity, language, label, list(aliases), kind))

    def take(self) -> Material:
        """The chunk so far; the gathering is empty again."""
        columns = ("subject", "predicate", "object", "value", "unit", "start", "end", "domain")
        facts = _turned(columns, self._facts)
        if facts:
            facts["source"] = [self.source] * len(self._facts)
        names = _turned(NAMES.schema.names, self._names)
        details = _turned(DETAILS_SCHEMA.names, self._details)
        places = self._places
        self._facts, self._places, self._names, self._details = [], [], [], []
        return Material(
            columns_table(FACTS.schema, facts),
            columns_table(NAMES.schema, names),
            details=columns_table(DETAILS_SCHEMA, details),
            where=lambda row: places[row],
        )


def _turned(names: Sequence[str], rows: Sequence[tuple[Any, ...]]) -> dict[str, Sequence[Any]]:
    return dict(zip(names, zip(*rows, strict=True), strict=True)) if rows else {}
