"""Interface of relational engines: named tables, and queries in DuckDB's SQL."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa


class Tables(ABC):
    """Named tables that queries create, extend and read.

    Queries are in DuckDB's SQL; an engine with another SQL dialect translates them. No result may depend on the order
    of rows, so numbering and sampling need a total order.
    """

    name: str
    wide: bool
    """Whether row numbers have 64 bits; in this case, proofs are compared as structs instead of packed numbers."""

    @property
    def number(self) -> str:
        """The SQL type of a row number."""
        return "bigint" if self.wide else "integer"

    @abstractmethod
    def make(self, table: str, query: str, by: str | None = None) -> None:
        """Create or replace a table from a query; the query may read the table that is replaced.

        ``by`` is a column with few values that later queries filter by; rows with the same value are stored together.
        """

    @abstractmethod
    def add(self, table: str, query: str) -> None:
        """Append the rows of a query to a table; columns are matched by name."""

    @abstractmethod
    def drop(self, table: str) -> None:
        """Drop a table."""

    @abstractmethod
    def rows(self, query: str) -> list[tuple[Any, ...]]:
        """Return the rows of a query whose result is small."""

    @abstractmethod
    def arrow(self, query: str) -> pa.Table:
        """Return the rows of a query as an Arrow table."""

    @abstractmethod
    def batches(self, table: str) -> Iterator[pa.Table]:
        """Yield the rows of a table in batches, in no particular order; an empty table yields one empty batch."""

    @abstractmethod
    def load_batches(self, table: str, batches: Iterable[pa.Table]) -> None:
        """Create or replace a table from batches; there must be at least one batch."""

    def load(self, table: str, rows: pa.Table) -> None:
        """Create or replace a table from an Arrow table."""
        self.load_batches(table, [rows])

    def map_batches(self, table: str, query: str, transform: Callable[[pa.Table], pa.Table]) -> None:
        """Create or replace a table from the rows of a query, after ``transform`` changed each batch."""
        self.make("to_map", query)
        self.load_batches(table, map(transform, self.batches("to_map")))
        self.drop("to_map")

    @abstractmethod
    def define_function(self, function: str, parameters: Sequence[str], body: str) -> None:
        """Define an SQL function; ``body`` is an expression over its parameters."""

    @abstractmethod
    def number_rows(
        self, table: str, query: str, order: Sequence[str], first: int = 1, spread: str | None = None
    ) -> None:
        """Create or replace a table from a query, with row numbers ``n`` that start at ``first`` and follow ``order``.

        ``spread`` is an SQL expression that divides the rows into some hundred parts, which can be sorted one by one.
        Its value must not decrease in ``order``, which must be a total order. None sorts all rows at once.
        """

    @abstractmethod
    def run_in_duckdb(self, table: str, connection: Any, statement: str) -> None:
        """Execute a statement on a DuckDB connection, after replacing ``{rows}`` by the rows of a table."""

    def count(self, source: str) -> int:
        """Count the rows of ``source``: a table name, optionally followed by a where clause."""
        return int(self.rows(f"select count(*) from {source}")[0][0])


def make_transitive_closure(tables: Tables, edges: str, table: str, key: str | None = None) -> None:
    """Create a table (low, high) with the transitive closure of ``edges``; a node in a cycle reaches itself.

    ``edges`` is a query with the columns low and high. ``key`` names a further column that distinguishes graphs: only
    edges with the same key are joined.
    """
    columns = "low, high" if key is None else f"{key}, low, high"

    def same_graph(one: str, other: str) -> str:
        return "" if key is None else f" and {one}.{key} = {other}.{key}"

    tables.make(f"{table}_edges", f"select distinct {columns} from ({edges}) e")
    tables.make(table, f"select {columns} from {table}_edges")
    tables.make(f"{table}_new", f"select {columns} from {table}_edges")
    while tables.count(f"{table}_new"):
        tables.make(
            f"{table}_new",
            f"""select distinct {"" if key is None else f"n.{key}, "}n.low, e.high from {table}_new n
            join {table}_edges e on e.low = n.high{same_graph("e", "n")}
            anti join {table} k on k.low = n.low and k.high = e.high{same_graph("k", "n")}""",
        )
        tables.add(table, f"select {columns} from {table}_new")
    for name in ("edges", "new"):
        tables.drop(f"{table}_{name}")
