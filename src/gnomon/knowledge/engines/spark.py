"""Tables in Spark: each a folder of Parquet that workers write and read, queries translated from DuckDB's SQL."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from gnomon.knowledge.engines.dialect import Translator
from gnomon.knowledge.engines.tables import Tables

_PART = "part"
_PLACE = "place"
_PIECE = 2_000_000


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

    def read(self, table: str, files: Path) -> None:
        """Name a file or folder of Parquet that is there."""
        self.session.read.parquet(str(files)).createOrReplaceTempView(table)

    def make(self, table: str, query: str) -> None:
        """Make a table of a query's rows, in place of one of that name."""
        self._put(table, self._frame(query))

    def sketch(self, table: str, query: str) -> None:
        """Name a query that one later query reads: it is planned with that one."""
        self._forget(table)
        self._frame(query).createOrReplaceTempView(table)

    def add(self, table: str, query: str) -> None:
        """Add a query's rows to a table; its columns are matched by name."""
        from pyspark.sql import functions as F  # noqa: N812

        schema = self._schemas[table]
        frame = self._frame(query)
        columns = [F.col(f"`{one.name}`").cast(one.dataType).alias(one.name) for one in schema]
        self._folders[table].append(self._write(table, frame.select(columns)))
        self._name(table)

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

    def pieces(self, table: str) -> Iterator[pa.Table]:
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
        return sorted(file for folder in self._folders[table] for file in folder.glob("*.parquet"))

    def fill(self, table: str, pieces: Iterable[pa.Table]) -> None:
        """Make a table of pieces in memory, of which there is at least one."""
        folder = self._new_folder(table)
        folder.mkdir(parents=True)
        for number, piece in enumerate(pieces):
            pq.write_table(piece, folder / f"{number:05d}.parquet")
        self._forget(table)
        self._folders[table] = [folder]
        self._schemas[table] = self.session.read.parquet(str(folder)).schema
        self._name(table)

    def define(self, function: str, parameters: Sequence[str], body: str) -> None:
        """Give an expression over some parameters a name that queries may call."""
        self.translator.define(function, parameters, body)

    def number_rows(self, table: str, query: str, order: Sequence[str], first: int = 1) -> None:
        """Make a table of a query's rows with their numbers ``n``, from the first on, in a total order.

        Sorted over all workers: each numbers its part, and begins where the parts before it end.
        """
        from pyspark.sql import functions as F  # noqa: N812

        frame = self._frame(query)
        columns = [self._column(one) for one in order]
        within = F.monotonically_increasing_id().bitwiseAND(2**33 - 1)
        parts = frame.orderBy(*columns).withColumn(_PART, F.spark_partition_id()).withColumn(_PLACE, within)
        self._put(f"{table}_parts", parts)
        counted = self._view(f"{table}_parts").groupBy(_PART).count().collect()
        before, begins = first, []
        for part, count in sorted((row[0], row[1]) for row in counted):
            begins.append((part, before))
            before += count
        starts = self.session.createDataFrame(begins, f"{_PART} int, begin bigint")
        numbered = self._view(f"{table}_parts").join(F.broadcast(starts), _PART)
        numbered = numbered.withColumn("n", F.col("begin") + F.col(_PLACE)).drop(_PART, _PLACE, "begin")
        self._put(table, numbered.select("n", *[one for one in numbered.columns if one != "n"]))
        self.drop(f"{table}_parts")

    def hand_over(self, table: str, connection: Any, statement: str) -> None:
        """Execute a statement of a DuckDB connection in which ``{rows}`` stands for a table's rows."""
        files = ", ".join("'" + str(file).replace("'", "''") + "'" for file in self.files(table))
        connection.execute(statement.format(rows=f"read_parquet([{files}])"))

    def _column(self, text: str) -> Any:
        from pyspark.sql import functions as F  # noqa: N812

        return F.expr(self.translator.query(text)).asc_nulls_last()

    def _frame(self, query: str) -> Any:
        return self.session.sql(self.translator.query(query))

    def _view(self, table: str) -> Any:
        return self.session.table(table)

    def _put(self, table: str, frame: Any) -> None:
        folder = self._write(table, frame)
        self._forget(table)
        self._folders[table] = [folder]
        self._schemas[table] = frame.schema
        self._name(table)

    def _name(self, table: str) -> None:
        paths = [str(folder) for folder in self._folders[table]]
        self.session.read.schema(self._schemas[table]).parquet(*paths).createOrReplaceTempView(table)

    def _write(self, table: str, frame: Any) -> Path:
        folder = self._new_folder(table)
        frame.write.parquet(str(folder))
        return folder

    def _new_folder(self, table: str) -> Path:
        self._written += 1
        return self.folder / f"{table}-{self._written}"

    def _forget(self, table: str) -> None:
        for folder in self._folders.pop(table, ()):
            shutil.rmtree(folder, ignore_errors=True)
        self._schemas.pop(table, None)
