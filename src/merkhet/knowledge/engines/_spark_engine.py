"""Spark engine: tables as folders of Parquet files, and queries translated from DuckDB's SQL."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable, Iterator, Sequence
from functools import reduce
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from merkhet.knowledge.database import sql_literals
from merkhet.knowledge.engines._spark_dialect import Translator
from merkhet.knowledge.engines.relational_engine import Tables

_PART, _POSITION, _NUMBER = "number_part", "part_position", "n"
_BATCH_ROWS = 500_000
_MAX_ROWS_IN_ONE_SORT = 2_000_000
"""The maximum number of rows that one worker numbers alone, which is faster than several workers."""
_FILES_PER_VALUE = 8
_MAX_PENDING = 24
"""The maximum number of deferred appends to a table; deferred appends run as one query."""


class SparkTables(Tables):
    """The tables of a Spark session, stored in a temporary folder that all workers can access."""

    name = "spark"
    wide = True

    def __init__(self, session: Any, folder: Path) -> None:
        self.session = session
        self.folder = folder
        self.translator = Translator()
        self._folders: dict[str, list[Path]] = {}
        self._schemas: dict[str, Any] = {}
        self._folder_count = 0
        self._pending: dict[str, list[Any]] = {}
        self._obsolete: list[Path] = []

    def read(self, table: str, files: Path) -> None:
        """Register an existing Parquet file, or a folder of such files, as a table."""
        self.session.read.parquet(str(files)).createOrReplaceTempView(table)

    def make(self, table: str, query: str, by: str | None = None) -> None:
        """Create or replace a table from a query; rows with the same value of ``by`` share a folder."""
        self._store(table, self._frame(query), by)

    def add(self, table: str, query: str) -> None:
        """Append the rows of a query to a table; columns are matched by name.

        The append may be deferred until the table is read.
        """
        from pyspark.sql import functions as F  # noqa: N812

        frame = self._frame(query)
        columns = [
            F.col(f"`{column.name}`").cast(column.dataType).alias(column.name) for column in self._schemas[table]
        ]
        pending = self._pending.setdefault(table, [])
        pending.append(frame.select(columns))
        if len(pending) >= _MAX_PENDING:
            self._flush(table)

    def _flush(self, table: str) -> None:
        """Write the deferred appends of a table."""
        frames = self._pending.pop(table, [])
        if frames:
            combined = reduce(lambda left, right: left.unionAll(right), frames)
            self._folders[table].append(self._write(table, combined))
            self._register_view(table)
        if not self._pending:
            self._remove_obsolete()

    def _remove_obsolete(self) -> None:
        """Remove the folders of replaced tables once no deferred append may still read them."""
        for folder in self._obsolete:
            shutil.rmtree(folder, ignore_errors=True)
        self._obsolete = []

    def count(self, source: str) -> int:
        """Count the rows of ``source``: a table name, optionally followed by a where clause."""
        if source not in self._folders:
            return super().count(source)
        self._flush(source)
        return sum(pq.read_metadata(file).num_rows for file in self.files(source))

    def drop(self, table: str) -> None:
        """Drop a table."""
        self.session.catalog.dropTempView(table)
        self._forget(table)

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        """Return the rows of a query whose result is small."""
        return [tuple(row) for row in self._frame(query).collect()]

    def arrow(self, query: str) -> pa.Table:
        """Return the rows of a query as an Arrow table."""
        return self._frame(query).toArrow()

    def batches(self, table: str) -> Iterator[pa.Table]:
        """Yield the rows of a table in batches, in no particular order; an empty table yields one empty batch."""
        any_rows = False
        for file in self.files(table):
            for batch in pq.ParquetFile(file).iter_batches(_BATCH_ROWS):
                any_rows = True
                # Spark trusts its schema metadata even after columns were added.
                yield pa.Table.from_batches([batch]).replace_schema_metadata(None)
        if not any_rows:
            yield self.arrow(f"select * from {table} limit 0")

    def files(self, table: str) -> list[Path]:
        """Return the Parquet files of a table."""
        self._flush(table)
        return sorted(file for folder in self._folders[table] for file in folder.rglob("*.parquet"))

    def load_batches(self, table: str, batches: Iterable[pa.Table]) -> None:
        """Create or replace a table from batches; there must be at least one batch."""
        folder = self._new_folder(table)
        folder.mkdir(parents=True)
        for number, batch in enumerate(batches):
            pq.write_table(batch, folder / f"{number:05d}.parquet")
        self._forget(table)
        self._folders[table] = [folder]
        self._schemas[table] = self.session.read.parquet(str(folder)).schema
        self._register_view(table)

    def define_function(self, function: str, parameters: Sequence[str], body: str) -> None:
        """Define an SQL function; ``body`` is an expression over its parameters."""
        self.translator.define(function, parameters, body)

    def number_rows(
        self, table: str, query: str, order: Sequence[str], first: int = 1, spread: str | None = None
    ) -> None:
        """Create or replace a table from a query, with row numbers ``n`` in a total order.

        If there are many rows, all workers sort them together.
        """
        from pyspark.sql import functions as F  # noqa: N812
        from pyspark.sql.window import Window

        rows = f"{table}_rows"
        self._store(rows, self._frame(query))
        frame, columns = self.session.table(rows), [self._column(expression) for expression in order]
        if self.count(rows) <= _MAX_ROWS_IN_ONE_SORT:
            number = F.row_number().over(Window.orderBy(*columns)) + F.lit(first - 1)
            self._store(table, frame.withColumn(_NUMBER, number.cast("bigint")))
        else:
            self._number_partitions(table, frame.orderBy(*columns), first)
        self.drop(rows)

    def _number_partitions(self, table: str, ordered: Any, first: int) -> None:
        """Number sorted rows by partition; each partition continues the numbers of the previous partition."""
        from pyspark.sql import functions as F  # noqa: N812

        parts = f"{table}_parts"
        position = F.monotonically_increasing_id().bitwiseAND(2**33 - 1)
        self._store(parts, ordered.withColumn(_PART, F.spark_partition_id()).withColumn(_POSITION, position))
        counts = self.session.table(parts).groupBy(_PART).count().collect()
        next_number, starts = first, []
        for part, count in sorted((row[0], row[1]) for row in counts):
            starts.append((part, next_number))
            next_number += count
        starts_frame = self.session.createDataFrame(starts, f"{_PART} int, first_number bigint")
        numbered = self.session.table(parts).join(F.broadcast(starts_frame), _PART)
        self._store(
            table,
            numbered.withColumn(_NUMBER, F.col("first_number") + F.col(_POSITION)).drop(
                _PART, _POSITION, "first_number"
            ),
        )
        self.drop(parts)

    def run_in_duckdb(self, table: str, connection: Any, statement: str) -> None:
        """Execute a statement on a DuckDB connection, after replacing ``{rows}`` by the rows of a table."""
        connection.execute(statement.format(rows=f"read_parquet([{sql_literals(*self.files(table))}])"))

    def _column(self, text: str) -> Any:
        from pyspark.sql import functions as F  # noqa: N812

        return F.expr(self.translator.query(text)).asc_nulls_last()

    def _frame(self, query: str) -> Any:
        for table in [name for name in self._pending if re.search(rf"\b{name}\b", query)]:
            self._flush(table)
        return self.session.sql(self.translator.query(query))

    def _store(self, table: str, frame: Any, by: str | None = None) -> None:
        folder = self._write(table, frame, by)
        self._forget(table)
        self._folders[table] = [folder]
        self._schemas[table] = frame.schema
        self._register_view(table)

    def _register_view(self, table: str) -> None:
        paths = [str(folder) for folder in self._folders[table]]
        self.session.read.schema(self._schemas[table]).parquet(*paths).createOrReplaceTempView(table)

    def _write(self, table: str, frame: Any, by: str | None = None) -> Path:
        from pyspark.sql import functions as F  # noqa: N812

        folder = self._new_folder(table)
        if by:
            # A frequent value is written by several workers, with few files each.
            share = F.pmod(F.hash(*frame.columns[:2]), F.lit(_FILES_PER_VALUE))
            frame.repartition(by, share).write.partitionBy(by).parquet(str(folder))
        else:
            frame.write.parquet(str(folder))
        return folder

    def _new_folder(self, table: str) -> Path:
        self._folder_count += 1
        return self.folder / f"{table}-{self._folder_count}"

    def _forget(self, table: str) -> None:
        self._pending.pop(table, None)
        self._obsolete += self._folders.pop(table, ())
        self._schemas.pop(table, None)
        if not self._pending:
            self._remove_obsolete()
