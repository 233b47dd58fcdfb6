"""Selection of the engine for the tables of a knowledge base."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import duckdb

from merkhet.core.compute_engines import Engine
from merkhet.core.files import disk_full_error
from merkhet.knowledge.database import LITERAL, TIME_KEY, count_rows, sql_literals
from merkhet.knowledge.engines._duckdb_engine import DuckTables
from merkhet.knowledge.engines.relational_engine import Tables
from merkhet.knowledge.memory_limit import duckdb_share, limit_connection

_MAX_FACTS_IN_32_BITS = 2**30
"""The maximum number of stated facts for which stated and inferred facts have 32-bit numbers."""


@contextmanager
def open_tables(connection: duckdb.DuckDBPyConnection, engine: Engine | None, names: Sequence[str]) -> Iterator[Tables]:
    """Open the tables of a knowledge base in an engine; None stands for DuckDB.

    For Spark, the tables in ``names`` are first copied to Parquet files.
    """
    if engine is None or engine.name == "duckdb":
        if engine is not None and engine.memory:
            limit_connection(connection, duckdb_share(engine.memory))
        yield DuckTables(connection, wide=count_rows(connection, "facts") > _MAX_FACTS_IN_32_BITS)
        return
    from merkhet.knowledge.engines._spark_session import open_spark_tables

    with open_spark_tables(engine) as tables:
        tables.define_function("time_key", ["t", "missing"], TIME_KEY)
        tables.define_function("is_literal", ["t"], LITERAL)
        tables.folder.mkdir(parents=True, exist_ok=True)
        for table in names:
            file = tables.folder / f"input-{table}.parquet"
            try:
                connection.execute(f"copy {table} to {sql_literals(file)} (format parquet)")
            except duckdb.IOException as error:
                if "No space left" in str(error):
                    raise disk_full_error(file) from error
                raise
            tables.read(table, file)
        yield tables
