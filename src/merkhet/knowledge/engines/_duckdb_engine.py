"""Tables in DuckDB: temporary ones of a connection, spilled to disk where memory does not hold them."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from merkhet.knowledge.engines.relational_engine import Tables

_ONE_SORT = 5_000_000
"""Rows up to which one order over all of them does."""
_PIECE = 4 * 122_880
"""Rows that are in Python's memory at once: whole row groups of DuckDB."""


class DuckTables(Tables):
    """Temporary tables of a connection, beside those of its database."""

    name = "duckdb"

    def __init__(self, connection: duckdb.DuckDBPyConnection, *, wide: bool = False) -> None:
        self.connection = connection
        self.wide = wide

    def make(self, table: str, query: str, by: str | None = None) -> None:
        """Make a table of a query's rows, in place of one of that name; rows with the same ``by`` stand together."""
        order = f" order by {by}" if by else ""
        self.connection.execute(f"create or replace temp table {table} as {query}{order}")

    def add(self, table: str, query: str) -> None:
        """Add a query's rows to a table; its columns are matched by name."""
        self.connection.execute(f"insert into {table} by name {query}")

    def drop(self, table: str) -> None:
        """Forget a table."""
        self.connection.execute(f"drop table if exists {table}")

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        """The rows of a query with few of them."""
        found: list[tuple[Any, ...]] = self.connection.execute(query).fetchall()
        return found

    def arrow(self, query: str) -> pa.Table:
        """A query's rows as a table in memory."""
        return self.connection.sql(query).to_arrow_table()

    def batches(self, table: str) -> Iterator[pa.Table]:
        """The rows of a table piece by piece, in no order; of an empty one, one piece without rows.

        Nothing else can be asked of the connection until all of them were taken.
        """
        reader = self.connection.sql(f"select * from {table}").to_arrow_reader(_PIECE)
        empty = True
        for batch in reader:
            empty = False
            yield pa.Table.from_batches([batch])
        if empty:
            yield reader.schema.empty_table()

    def load_batches(self, table: str, pieces: Iterable[pa.Table]) -> None:
        """Make a table of pieces in memory, of which there is at least one."""
        spilled, given = self._spilled(), iter(pieces)
        first, second = next(given), next(given, None)
        if second is None:
            self.connection.register("given_piece", first)
            self.make(table, "select * from given_piece")
            # Not after an error: it would hide it, and the connection is closed then.
            self.connection.unregister("given_piece")
            return
        with tempfile.TemporaryDirectory(prefix="merkhet-pieces-", dir=spilled) as folder:
            file = Path(folder) / "pieces.parquet"
            with pq.ParquetWriter(file, first.schema) as writer:
                for piece in chain([first, second], given):
                    writer.write_table(piece)
            self.make(table, f"select * from read_parquet('{str(file).replace(chr(39), chr(39) * 2)}')")

    def _spilled(self) -> str | None:
        """Where DuckDB has room for what memory does not hold, if it is a folder that is there."""
        [(folder,)] = self.connection.execute("select current_setting('temp_directory')").fetchall()
        return folder if folder and Path(folder).is_dir() else None

    def define_function(self, function: str, parameters: Sequence[str], body: str) -> None:
        """Give an expression over some parameters a name that queries may call."""
        self.connection.execute(f"create or replace temp macro {function}({', '.join(parameters)}) as {body}")

    def number_rows(
        self, table: str, query: str, order: Sequence[str], first: int = 1, spread: str | None = None
    ) -> None:
        """Make a table of a query's rows with their numbers ``n``, from the first on, in a total order.

        Many rows are numbered part by part, as one order over all of them would have to fit into memory.
        """
        by = f"order by {', '.join(order)}"
        if spread is None:
            self.make(table, f"select ({first - 1} + row_number() over ({by}))::{self.number} as n, * from ({query}) q")
            return
        self.make("to_number", f"select *, {spread} as part_of from ({query}) q")
        if self.count("to_number") <= _ONE_SORT:
            numbered = f"({first - 1} + row_number() over ({by}))::{self.number} as n"
            self.make(table, f"select {numbered}, * exclude (part_of) from to_number")
        else:
            self.make(
                "part_starts",
                f"""select part_of, {first - 1} + coalesce(sum(size) over (
                    order by part_of rows between unbounded preceding and 1 preceding), 0) as before
                from (select part_of, count(*) as size from to_number group by part_of) p""",
            )
            numbered = f"(s.before + row_number() over (partition by t.part_of {by}))::{self.number} as n"
            self.make(
                table,
                f"select {numbered}, t.* exclude (part_of) from to_number t "
                "join part_starts s on s.part_of = t.part_of",
            )
            self.drop("part_starts")
        self.drop("to_number")

    def run_in_duckdb(self, table: str, connection: Any, statement: str) -> None:
        """Execute a statement of the connection in which ``{rows}`` stands for a table's rows."""
        connection.execute(statement.format(rows=table))
