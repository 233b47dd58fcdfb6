"""DuckDB engine: temporary tables of a connection, which spill to disk if they exceed memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from merkhet.core.files import scratch_folder
from merkhet.knowledge.database import sql_literals
from merkhet.knowledge.engines.relational_engine import Tables

_MAX_ROWS_IN_ONE_SORT = 5_000_000
"""The maximum number of rows for a single sort; more rows are divided into parts before numbering."""
_BATCH_ROWS = 4 * 122_880
"""Rows per batch in Python's memory: a multiple of DuckDB's row group size."""


class DuckTables(Tables):
    """The temporary tables of a DuckDB connection, beside the tables of its database."""

    name = "duckdb"

    def __init__(self, connection: duckdb.DuckDBPyConnection, *, wide: bool = False) -> None:
        self.connection = connection
        self.wide = wide

    def make(self, table: str, query: str, by: str | None = None) -> None:
        """Create or replace a table from a query; rows with the same value of ``by`` are adjacent."""
        order = f" order by {by}" if by else ""
        self.connection.execute(f"create or replace temp table {table} as {query}{order}")

    def add(self, table: str, query: str) -> None:
        """Append the rows of a query to a table; columns are matched by name."""
        self.connection.execute(f"insert into {table} by name {query}")

    def drop(self, table: str) -> None:
        """Drop a table."""
        self.connection.execute(f"drop table if exists {table}")

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        """Return the rows of a query whose result is small."""
        rows: list[tuple[Any, ...]] = self.connection.execute(query).fetchall()
        return rows

    def arrow(self, query: str) -> pa.Table:
        """Return the rows of a query as an Arrow table."""
        return self.connection.sql(query).to_arrow_table()

    def batches(self, table: str) -> Iterator[pa.Table]:
        """Yield the rows of a table in batches, in no particular order; an empty table yields one empty batch.

        The connection cannot run other queries until all batches are read.
        """
        yield from self._read_batches(f"select * from {table}")

    def map_batches(self, table: str, query: str, transform: Callable[[pa.Table], pa.Table]) -> None:
        """Create or replace a table from the rows of a query, after ``transform`` changed each batch."""
        self.load_batches(table, map(transform, self._read_batches(query)))

    def _read_batches(self, query: str) -> Iterator[pa.Table]:
        reader = self.connection.sql(query).to_arrow_reader(_BATCH_ROWS)
        empty = True
        for batch in reader:
            empty = False
            yield pa.Table.from_batches([batch])
        if empty:
            yield reader.schema.empty_table()

    def load_batches(self, table: str, batches: Iterable[pa.Table]) -> None:
        """Create or replace a table from batches; there must be at least one batch."""
        spill_folder, remaining = self._spill_folder(), iter(batches)
        first, second = next(remaining), next(remaining, None)
        if second is None:
            self.connection.register("loaded_batch", first)
            self.make(table, "select * from loaded_batch")
            # Not in a finally clause, which would hide an error; after an error the connection is closed anyway.
            self.connection.unregister("loaded_batch")
            return
        with scratch_folder("batches", spill_folder) as folder:
            file = folder / "batches.parquet"
            with pq.ParquetWriter(file, first.schema) as writer:
                for batch in chain([first, second], remaining):
                    writer.write_table(batch)
            self.make(table, f"select * from read_parquet({sql_literals(file)})")

    def _spill_folder(self) -> str | None:
        """Return the folder into which DuckDB spills; None if it does not exist."""
        [(folder,)] = self.connection.execute("select current_setting('temp_directory')").fetchall()
        return folder if folder and Path(folder).is_dir() else None

    def define_function(self, function: str, parameters: Sequence[str], body: str) -> None:
        """Define an SQL function; ``body`` is an expression over its parameters."""
        self.connection.execute(f"create or replace temp macro {function}({', '.join(parameters)}) as {body}")

    def number_rows(
        self, table: str, query: str, order: Sequence[str], first: int = 1, spread: str | None = None
    ) -> None:
        """Create or replace a table from a query, with row numbers ``n`` in a total order.

        Many rows are numbered in parts, since a single sort of all rows would have to fit into memory.
        """
        by = f"order by {', '.join(order)}"
        if spread is None:
            self.make(table, f"select ({first - 1} + row_number() over ({by}))::{self.number} as n, * from ({query}) q")
            return
        self.make("to_number", f"select *, {spread} as number_part from ({query}) q")
        if self.count("to_number") <= _MAX_ROWS_IN_ONE_SORT:
            numbered = f"({first - 1} + row_number() over ({by}))::{self.number} as n"
            self.make(table, f"select {numbered}, * exclude (number_part) from to_number")
        else:
            self.make(
                "part_starts",
                f"""select number_part, {first - 1} + coalesce(sum(size) over (
                    order by number_part rows between unbounded preceding and 1 preceding), 0) as rows_before
                from (select number_part, count(*) as size from to_number group by number_part) p""",
            )
            numbered = f"(s.rows_before + row_number() over (partition by t.number_part {by}))::{self.number} as n"
            self.make(
                table,
                f"select {numbered}, t.* exclude (number_part) from to_number t "
                "join part_starts s on s.number_part = t.number_part",
            )
            self.drop("part_starts")
        self.drop("to_number")

    def run_in_duckdb(self, table: str, connection: Any, statement: str) -> None:
        """Execute a statement on a DuckDB connection, after replacing ``{rows}`` by the rows of a table."""
        connection.execute(statement.format(rows=table))
