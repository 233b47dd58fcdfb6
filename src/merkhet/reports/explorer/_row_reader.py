"""Random access to rows of a Parquet file, reading only the row groups that hold them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from merkhet.core.errors import InputError, MerkhetError, first_line
from merkhet.core.schemas import PARQUET_ERRORS, TableKind

_BATCH_ROWS = 1_024
"""Batch size in which a row group is read, up to the last row needed."""


class ParquetRows:
    """Read a table of a run on disk. Columns that an older file lacks are null.

    Raises:
        InputError: if the file is missing or broken.
        MerkhetError: if the file has changed since it was opened.
    """

    def __init__(self, kind: TableKind, path: Path) -> None:
        self.kind, self.path = kind, path
        if not path.is_file():
            raise InputError(f"there is no file {path}; it should hold a table of {kind.name}")
        try:
            self.metadata = pq.read_metadata(path)
            self._column_names = frozenset(self.metadata.schema.to_arrow_schema().names)
        except PARQUET_ERRORS as error:
            raise self._broken_error(error) from error
        leaves = [self.metadata.schema.column(number) for number in range(self.metadata.num_columns)]
        # Lists of strings repeat few values: dictionary encoding avoids decoding the rows that are not needed.
        self._dictionary_columns = [
            leaf.path for leaf in leaves if leaf.physical_type == "BYTE_ARRAY" and "." in leaf.path
        ]
        sizes = [self.metadata.row_group(number).num_rows for number in range(self.metadata.num_row_groups)]
        self.largest_group = max(sizes, default=0)
        self._starts = np.cumsum([0, *sizes])
        self._opened_state = _file_state(path)

    def __len__(self) -> int:
        return int(self.metadata.num_rows)

    def columns(self, *names: str) -> pa.Table:
        """Read whole columns, with the types of the declared schema."""
        existing = [name for name in names if name in self._column_names]
        try:
            table = pq.read_table(self.path, columns=existing)
            columns = [self._cast(name, table[name]) if name in existing else self._nulls(name) for name in names]
        except PARQUET_ERRORS as error:
            raise self._broken_error(error) from error
        return pa.Table.from_arrays(columns, names=list(names))

    def rows(self, numbers: Sequence[int], *names: str) -> list[dict[str, Any]]:
        """Read some columns of the rows with these numbers, in the given order."""
        existing = [name for name in names if name in self._column_names]
        by_group: dict[int, list[int]] = defaultdict(list)
        for number in sorted(set(numbers)):
            by_group[int(np.searchsorted(self._starts, number, side="right")) - 1].append(number)
        row_of: dict[int, dict[str, Any]] = {}
        if by_group:
            self._check_unchanged()
            with open(self.path, "rb") as handle:
                file = pq.ParquetFile(handle, metadata=self.metadata, read_dictionary=self._dictionary_columns)
                for group, group_numbers in by_group.items():
                    for number, row in self._group_rows(file, group, group_numbers, existing):
                        row_of[number] = {name: row.get(name) for name in names}
        return [row_of[number] for number in numbers]

    def _group_rows(
        self, file: pq.ParquetFile, group: int, numbers: list[int], names: list[str]
    ) -> Iterable[tuple[int, dict[str, Any]]]:
        start = int(self._starts[group])
        if not names:
            return [(number, {}) for number in numbers]
        rows: list[tuple[int, dict[str, Any]]] = []
        for batch in file.iter_batches(_BATCH_ROWS, row_groups=[group], columns=names, use_threads=False):
            in_batch = [number for number in numbers if start <= number < start + batch.num_rows]
            rows += [(number, batch.slice(number - start, 1).to_pylist()[0]) for number in in_batch]
            start += batch.num_rows
            if numbers[-1] < start:
                break
        return rows

    def _cast(self, name: str, column: pa.ChunkedArray) -> pa.ChunkedArray:
        return column.cast(self.kind.schema.field(name).type)

    def _nulls(self, name: str) -> pa.Array:
        return pa.nulls(len(self), self.kind.schema.field(name).type)

    def _check_unchanged(self) -> None:
        if _file_state(self.path) != self._opened_state:
            raise MerkhetError(
                f"{self.path.name} of this run changed or was removed after the explorer started; start it again"
            )

    def _broken_error(self, error: Exception) -> InputError:
        reason = first_line(error).rstrip(".")
        return InputError(f"{self.path} is not a whole Parquet file ({reason}). Make it again, or fetch it anew.")


def _file_state(path: Path) -> tuple[int, int, int] | None:
    try:
        stat = path.stat()
    except OSError:
        return None
    return stat.st_ino, stat.st_size, stat.st_mtime_ns
