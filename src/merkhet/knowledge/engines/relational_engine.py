"""What every engine can do: tables by name, and queries over them, all in one dialect of SQL."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa


class Tables(ABC):
    """Tables by name that queries make, fill and read.

    Queries are in DuckDB's SQL, of which an engine with another dialect translates what merkhet uses. Nothing may
    depend on the order of rows: whatever is numbered or drawn has a total order.
    """

    name: str
    wide: bool
    """Whether numbers of rows have 64 bits, and proofs are compared as rows of them."""

    @property
    def number(self) -> str:
        """The type of a row's number."""
        return "bigint" if self.wide else "integer"

    @abstractmethod
    def make(self, table: str, query: str, by: str | None = None) -> None:
        """Make a table of a query's rows, in place of one of that name, which the query may still read.

        ``by`` is a column with few values, one of which later queries mostly ask for: its rows are kept together.
        """

    def define_view(self, table: str, query: str) -> None:
        """Name a query that one later query reads: an engine that plans ahead does both at once."""
        self.make(table, query)

    @abstractmethod
    def add(self, table: str, query: str) -> None:
        """Add a query's rows to a table; its columns are matched by name."""

    @abstractmethod
    def drop(self, table: str) -> None:
        """Forget a table."""

    @abstractmethod
    def rows(self, query: str) -> list[tuple[Any, ...]]:
        """The rows of a query with few of them."""

    @abstractmethod
    def arrow(self, query: str) -> pa.Table:
        """A query's rows as a table in memory."""

    @abstractmethod
    def batches(self, table: str) -> Iterator[pa.Table]:
        """The rows of a table piece by piece, in no order; of an empty one, one piece without rows."""

    @abstractmethod
    def load_batches(self, table: str, pieces: Iterable[pa.Table]) -> None:
        """Make a table of pieces in memory, of which there is at least one."""

    def load(self, table: str, rows: pa.Table) -> None:
        """Make a table of rows in memory."""
        self.load_batches(table, [rows])

    def map_batches(self, table: str, query: str, shape: Callable[[pa.Table], pa.Table]) -> None:
        """Make a table of a query's rows, changed by Python piece by piece."""
        self.make("to_change", query)
        self.load_batches(table, map(shape, self.batches("to_change")))
        self.drop("to_change")

    @abstractmethod
    def define_function(self, function: str, parameters: Sequence[str], body: str) -> None:
        """Give an expression over some parameters a name that queries may call."""

    @abstractmethod
    def number_rows(
        self, table: str, query: str, order: Sequence[str], first: int = 1, spread: str | None = None
    ) -> None:
        """Make a table of a query's rows with their numbers ``n``, from the first on, in a total order.

        ``spread`` is an expression that divides many rows into some hundred parts and never falls in that order.
        """

    @abstractmethod
    def run_in_duckdb(self, table: str, connection: Any, statement: str) -> None:
        """Execute a statement of a DuckDB connection in which ``{rows}`` stands for a table's rows."""

    def count(self, what: str) -> int:
        """How many rows a table, or a table with a condition behind it, has."""
        return int(self.rows(f"select count(*) from {what}")[0][0])


def make_transitive_closure(tables: Tables, edges: str, into: str) -> None:
    """Make a table (low, high) of all pairs that a way along the edges joins; a circle leads back to its start.

    ``edges`` is a query with the columns low and high.
    """
    tables.make(f"{into}_edges", f"select distinct low, high from ({edges}) e")
    tables.make(into, f"select low, high from {into}_edges")
    tables.make(f"{into}_new", f"select low, high from {into}_edges")
    while tables.count(f"{into}_new"):
        tables.make(
            f"{into}_new",
            f"""select distinct n.low, e.high from {into}_new n join {into}_edges e on e.low = n.high
            anti join {into} k on k.low = n.low and k.high = e.high""",
        )
        tables.add(into, f"select low, high from {into}_new")
    for name in ("edges", "new"):
        tables.drop(f"{into}_{name}")
