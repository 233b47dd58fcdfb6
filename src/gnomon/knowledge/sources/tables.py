"""A folder of tables as ``gnomon knowledge export`` writes it: facts, names, details and predicates, in Parquet."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from gnomon.foundation import InputError
from gnomon.knowledge.material import Material, Predicate
from gnomon.knowledge.reading import ROWS_IN_CHUNK, Reading
from gnomon.knowledge.sources.table import read_table_file


def read_tables(folder: Path, reading: Reading) -> Iterator[Material]:
    """Facts with their proofs, names in the languages asked for, details, and what is declared of predicates."""
    for chunk in read_table_file(folder / "facts.parquet", reading):
        yield replace(chunk, named_by_id=() if (folder / "names.parquet").is_file() else chunk.named_by_id)
    for batch in _batches(folder / "names.parquet"):
        yield Material(names=batch)
    for batch in _batches(folder / "details.parquet"):
        yield Material(details=batch)
    for batch in _batches(folder / "predicates.parquet"):
        yield Material(predicates={row["name"]: Predicate(**row) for row in batch.to_pylist()})


def _batches(path: Path) -> Iterator[pa.Table]:
    if not path.is_file():
        return
    try:
        for batch in pq.ParquetFile(path).iter_batches(ROWS_IN_CHUNK):
            yield pa.Table.from_batches([batch])
    except (pa.ArrowInvalid, OSError) as error:
        raise InputError(f"{path} is not a whole Parquet file ({str(error).splitlines()[0]})") from error
