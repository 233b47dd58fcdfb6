"""Source for a folder of Parquet tables, as written by ``merkhet knowledge export``."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from merkhet.core.errors import InputError, did_you_mean
from merkhet.core.schemas import NAMES
from merkhet.knowledge.chunk import DETAILS_SCHEMA, Chunk, Predicate
from merkhet.knowledge.predicate_labels import select_by_label
from merkhet.knowledge.source_reader import ROWS_IN_CHUNK, ReadContext
from merkhet.knowledge.sources.fact_table import cast_column, open_parquet, read_table_file

_PREDICATES_SCHEMA = pa.schema(
    [
        *(("name", pa.string()), ("label", pa.string()), ("functional", pa.bool_()), ("symmetric", pa.bool_())),
        ("complete", pa.string()),
    ]
)


def read_tables(folder: Path, context: ReadContext) -> Iterator[Chunk]:
    """Yield the facts with their proofs, the names, the details and the predicate declarations of a folder."""
    select_by_label(context, lambda scan: read_tables(folder, scan))
    for chunk in read_table_file(folder / "facts.parquet", context):
        yield replace(chunk, named_by_id=() if (folder / "names.parquet").is_file() else chunk.named_by_id)
    for batch in _read_batches(folder / "names.parquet", NAMES.schema):
        yield Chunk(names=batch)
    for batch in _read_batches(folder / "details.parquet", DETAILS_SCHEMA):
        yield Chunk(details=batch)
    for batch in _read_batches(folder / "predicates.parquet", _PREDICATES_SCHEMA):
        yield Chunk(
            predicates={
                row["name"]: Predicate(
                    row["name"],
                    row.get("label") or row["name"],
                    bool(row.get("functional")),
                    bool(row.get("symmetric")),
                    row.get("complete"),
                )
                for row in batch.to_pylist()
                if row.get("name")
            }
        )


def _read_batches(path: Path, schema: pa.Schema) -> Iterator[pa.Table]:
    """Yield the rows of a Parquet file in batches, cast to a schema; a missing file yields nothing.

    Raises:
        InputError: The file has a column that is not in the schema or cannot be cast.
    """
    if not path.is_file():
        return
    with open_parquet(path) as file:
        for name in file.schema_arrow.names:
            if name not in schema.names:
                raise InputError(f"{path}: unknown column {name!r}; {did_you_mean(name, schema.names)}")
        for batch in file.iter_batches(ROWS_IN_CHUNK):
            table = pa.Table.from_batches([batch])
            yield pa.table(
                {name: cast_column(path, name, table[name], schema.field(name).type) for name in table.column_names}
            )
