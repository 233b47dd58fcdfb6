"""A knowledge base's tables in the engine that was asked for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import duckdb

from merkhet.core.compute_engines import Engine
from merkhet.core.files import disk_full_error
from merkhet.knowledge.database import TIME_KEY
from merkhet.knowledge.engines._duckdb_engine import DuckTables
from merkhet.knowledge.engines.relational_engine import Tables

_MOST_NUMBERED = 2**30
"""Facts up to which numbers of 32 bits do, with all that follows from them."""


@contextmanager
def open_tables(
    connection: duckdb.DuckDBPyConnection, engine: Engine | None, wanted: Sequence[str]
) -> Iterator[Tables]:
    """The engine's tables; another one than DuckDB gets the wanted tables of the knowledge base as Parquet."""
    if engine is None or engine.name == "duckdb":
        if engine is not None and engine.memory:
            connection.execute(f"set memory_limit = '{engine.memory}'")
        [(facts,)] = connection.execute("select count(*) from facts").fetchall()
        yield DuckTables(connection, wide=facts > _MOST_NUMBERED)
        return
    from merkhet.knowledge.engines._spark_session import open_spark_tables

    with open_spark_tables(engine) as tables:
        tables.define_function("time_key", ["t", "missing"], TIME_KEY)
        tables.folder.mkdir(parents=True, exist_ok=True)
        for name in wanted:
            file = tables.folder / f"given-{name}.parquet"
            try:
                connection.execute(f"copy {name} to '{str(file).replace(chr(39), chr(39) * 2)}' (format parquet)")
            except duckdb.IOException as error:
                if "No space left" in str(error):
                    raise disk_full_error(file) from error
                raise
            tables.read(name, file)
        yield tables
