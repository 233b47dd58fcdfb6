"""A folder of Parquet tables as a source, as ``merkhet knowledge export`` writes it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from merkhet.core.errors import InputError, did_you_mean, first_line
from merkhet.core.schemas import NAMES, PARQUET_ERRORS
from merkhet.knowledge.chunk import DETAILS_SCHEMA, Chunk, Predicate
from merkhet.knowledge.source_reader import ROWS_IN_CHUNK, ReadContext
from merkhet.knowledge.sources.fact_table import read_table_file, reject_duplicate_columns

_PREDICATES_SCHEMA = pa.schema(
    [("name", pa.string()), ("label", pa.string()), ("functional", pa.bool_()), ("symmetric", pa.bool_())]
)


def read_tables(folder: Path, context: ReadContext) -> Iterator[Chunk]:
    """Yield facts with their proofs, names in the selected languages, details and predicates."""
    for chunk in read_table_file(folder / "facts.parquet", context):
        yield replace(chunk, named_by_id=() if (folder / "names.parquet").is_file() else chunk.named_by_id)
    for batch in _read_batches(folder / "names.parquet", NAMES.schema):
        yield Chunk(names=batch)
    for batch in _read_batches(folder / "details.parquet", DETAILS_SCHEMA):
        yield Chunk(details=batch)
    for batch in _read_batches(folder / "predicates.parquet", _PREDICATES_SCHEMA):
        declared = [row for row in batch.to_pylist() if row["name"]]
        yield Chunk(predicates={row["name"]: Predicate(**_predicate_fields(row)) for row in declared})


def _predicate_fields(row: dict[str, Any]) -> dict[str, Any]:
    return {**{key: value for key, value in row.items() if value is not None}, "label": row["label"] or row["name"]}


def _read_batches(path: Path, schema: pa.Schema) -> Iterator[pa.Table]:
    """Yield the rows of a table in the columns of a schema; missing columns are null.

    Raises:
        InputError: The table has an unknown column.
    """
    if not path.is_file():
        return
    try:
        file = pq.ParquetFile(path)
        reject_duplicate_columns(path, file.schema_arrow.names)
        for name in file.schema_arrow.names:
            if name not in schema.names:
                raise InputError(f"{path}: unknown column {name!r}; {did_you_mean(name, schema.names)}")
        for batch in file.iter_batches(ROWS_IN_CHUNK):
            yield _conform(path, pa.Table.from_batches([batch]), schema)
    except PARQUET_ERRORS as error:
        raise InputError(f"{path} is not a whole Parquet file ({first_line(error)})") from error


def _conform(path: Path, table: pa.Table, schema: pa.Schema) -> pa.Table:
    columns = []
    for column in schema:
        if column.name not in table.column_names:
            columns.append(pa.nulls(table.num_rows, column.type))
            continue
        try:
            columns.append(table[column.name].cast(column.type))
            columns[-1].validate(full=True)
        except pa.ArrowException as error:
            actual = table[column.name].type
            raise InputError(
                f"{path}: the column {column.name!r} holds {actual}, not {column.type}. Export it anew."
            ) from error
    return pa.Table.from_arrays(columns, schema=schema)
