"""Tables in Spark: each a folder of Parquet that workers write and read, queries translated from DuckDB's SQL."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable, Iterator, Sequence
from functools import reduce
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from merkhet.knowledge.engines._spark_dialect import Translator
from merkhet.knowledge.engines.relational_engine import Tables

_PART, _PLACE, _NUMBERED = "part", "place", "n"
_PIECE = 500_000
_ONE_SORT = 2_000_000
"""Rows up to which one worker numbers them all: it is quicker than to agree on who begins where."""
_FILES_FOR_ONE = 8
_MOST_WAITING = 24
"""Queries whose rows are to be added to a table that are put off, to be run as one."""


class SparkTables(Tables):
    """Tables of a session, kept in a folder that all workers see and that goes away with them."""

    name = "spark"
    wide = True

    def __init__(self, session: Any, folder: Path) -> None:
        self.session = session
        self.folder = folder
        self.translator = Translator()
        self._folders: dict[str, list[Path]] = {}
        self._schemas: dict[str, Any] = {}
        self._written = 0
        self._waiting: dict[str, list[Any]] = {}
        self._left: list[Path] = []

    def read(self, table: str, files: Path) -> None:
        """Name a file or folder of Parquet that is there."""
        self.session.read.parquet(str(files)).createOrReplaceTempView(table)

    def make(self, table: str, query: str, by: str | None = None) -> None:
        """Make a table of a query's rows, in place of one of that name; rows with the same ``by`` have a folder."""
        self._put(table, self._frame(query), by)

    def define_view(self, table: str, query: str) -> None:
        """Name a query that one later query reads: it is planned with that one."""
        self._forget(table)
        self._frame(query).createOrReplaceTempView(table)

    def add(self, table: str, query: str) -> None:
        """Add a query's rows to a table, its columns matched by name; not before the table is read."""
        from pyspark.sql import functions as F  # noqa: N812

        frame = self._frame(query)
        columns = [F.col(f"`{one.name}`").cast(one.dataType).alias(one.name) for one in self._schemas[table]]
        waiting = self._waiting.setdefault(table, [])
        waiting.append(frame.select(columns))
        if len(waiting) >= _MOST_WAITING:
            self._settle(table)

    def _settle(self, table: str) -> None:
        """Write what was added to a table and is not in it yet."""
        frames = self._waiting.pop(table, [])
        if frames:
            together = reduce(lambda one, other: one.unionAll(other), frames)
            self._folders[table].append(self._write(table, together))
            self._name(table)
        if not self._waiting:
            self._clear()

    def _clear(self) -> None:
        """Remove what nothing that is put off can read any more."""
        for folder in self._left:
            shutil.rmtree(folder, ignore_errors=True)
        self._left = []

    def count(self, what: str) -> int:
        """How many rows a table, or a table with a condition behind it, has."""
        if what not in self._folders:
            return super().count(what)
        self._settle(what)
        return sum(pq.read_metadata(file).num_rows for file in self.files(what))

    def drop(self, table: str) -> None:
        """Forget a table."""
        self.session.catalog.dropTempView(table)
        self._forget(table)

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        """The rows of a query with few of them."""
        return [tuple(row) for row in self._frame(query).collect()]

    def arrow(self, query: str) -> pa.Table:
        """A query's rows as a table in memory."""
        return self._frame(query).toArrow()

    def batches(self, table: str) -> Iterator[pa.Table]:
        """The rows of a table piece by piece, in no order; of an empty one, one piece without rows."""
        found = False
        for file in self.files(table):
            for batch in pq.ParquetFile(file).iter_batches(_PIECE):
                found = True
                # Spark believes what it wrote about the columns, whatever was added since.
                yield pa.Table.from_batches([batch]).replace_schema_metadata(None)
        if not found:
            yield self.arrow(f"select * from {table} limit 0")

    def files(self, table: str) -> list[Path]:
        """The Parquet files that hold a table."""
        self._settle(table)
        return sorted(file for folder in self._folders[table] for file in folder.rglob("*.parquet"))

    def load_batches(self, table: str, pieces: Iterable[pa.Table]) -> None:
        """Make a table of pieces in memory, of which there is at least one."""
        folder = self._new_folder(table)
        folder.mkdir(parents=True)
        for number, piece in enumerate(pieces):
            pq.write_table(piece, folder / f"{number:05d}.parquet")
        self._forget(table)
        self._folders[table] = [folder]
        self._schemas[table] = self.session.read.parquet(str(folder)).schema
        self._name(table)

    def define_function(self, function: str, parameters: Sequence[str], body: str) -> None:
        """Give an expression over some parameters a name that queries may call."""
        self.translator.define(function, parameters, body)

    def number_rows(
        self, table: str, query: str, order: Sequence[str], first: int = 1, spread: str | None = None
    ) -> None:
        """Make a table of a query's rows with their numbers ``n``, from the first on, in a total order.

        Where there are many, they are sorted over all workers.
        """
        from pyspark.sql import functions as F  # noqa: N812
        from pyspark.sql.window import Window

        rows = f"{table}_rows"
        self._put(rows, self._frame(query))
        frame, columns = self.session.table(rows), [self._column(one) for one in order]
        if self.count(rows) <= _ONE_SORT:
            place = F.row_number().over(Window.orderBy(*columns)) + F.lit(first - 1)
            self._put(table, frame.withColumn(_NUMBERED, place.cast("bigint")))
        else:
            self._number_parts(table, frame.orderBy(*columns), first)
        self.drop(rows)

    def _number_parts(self, table: str, ordered: Any, first: int) -> None:
        """Each worker numbers its part of sorted rows, and begins where the parts before it end."""
        from pyspark.sql import functions as F  # noqa: N812

        parts = f"{table}_parts"
        within = F.monotonically_increasing_id().bitwiseAND(2**33 - 1)
        self._put(parts, ordered.withColumn(_PART, F.spark_partition_id()).withColumn(_PLACE, within))
        counted = self.session.table(parts).groupBy(_PART).count().collect()
        before, begins = first, []
        for part, count in sorted((row[0], row[1]) for row in counted):
            begins.append((part, before))
            before += count
        starts = self.session.createDataFrame(begins, f"{_PART} int, begin bigint")
        numbered = self.session.table(parts).join(F.broadcast(starts), _PART)
        self._put(table, numbered.withColumn(_NUMBERED, F.col("begin") + F.col(_PLACE)).drop(_PART, _PLACE, "begin"))
        self.drop(parts)

    def run_in_duckdb(self, table: str, connection: Any, statement: str) -> None:
        """Execute a statement of a DuckDB connection in which ``{rows}`` stands for a table's rows."""
        files = ", ".join("'" + str(file).replace("'", "''") + "'" for file in self.files(table))
        connection.execute(statement.format(rows=f"read_parquet([{files}])"))

    def _column(self, text: str) -> Any:
        from pyspark.sql import functions as F  # noqa: N812

        return F.expr(self.translator.query(text)).asc_nulls_last()

    def _frame(self, query: str) -> Any:
        for table in [name for name in self._waiting if re.search(rf"\b{name}\b", query)]:
            self._settle(table)
        return self.session.sql(self.translator.query(query))

    def _put(self, table: str, frame: Any, by: str | None = None) -> None:
        folder = self._write(table, frame, by)
        self._forget(table)
        self._folders[table] = [folder]
        self._schemas[table] = frame.schema
        self._name(table)

    def _name(self, table: str) -> None:
        paths = [str(folder) for folder in self._folders[table]]
        self.session.read.schema(self._schemas[table]).parquet(*paths).createOrReplaceTempView(table)

    def _write(self, table: str, frame: Any, by: str | None = None) -> Path:
        from pyspark.sql import functions as F  # noqa: N812

        folder = self._new_folder(table)
        if by:
            # Several workers for a value that many rows have, and few files for each.
            share = F.pmod(F.hash(*frame.columns[:2]), F.lit(_FILES_FOR_ONE))
            frame.repartition(by, share).write.partitionBy(by).parquet(str(folder))
        else:
            frame.write.parquet(str(folder))
        return folder

    def _new_folder(self, table: str) -> Path:
        self._written += 1
        return self.folder / f"{table}-{self._written}"

    def _forget(self, table: str) -> None:
        self._waiting.pop(table, None)
        self._left += self._folders.pop(table, ())
        self._schemas.pop(table, None)
        if not self._waiting:
            self._clear()
