"""Rows of a Parquet file by their numbers: only the row groups that hold them are read."""

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

_AT_ONCE = 1_024
"""Row groups are read in batches of so many rows, up to the last row that is wanted."""


class ParquetRows:
    """A table of a run on disk. Columns that an older file lacks are empty.

    Refuses a file that is broken, and later one that is no longer the one that was opened.
    """

    def __init__(self, kind: TableKind, path: Path) -> None:
        self.kind, self.path = kind, path
        if not path.is_file():
            raise InputError(f"there is no file {path}; it should hold a table of {kind.name}")
        try:
            self.metadata = pq.read_metadata(path)
            self._known = frozenset(self.metadata.schema.to_arrow_schema().names)
        except PARQUET_ERRORS as error:
            raise self._broken(error) from error
        leaves = [self.metadata.schema.column(number) for number in range(self.metadata.num_columns)]
        # Lists of texts hold few different ones: they are not written out for the rows that nobody wants.
        self._repeated = [one.path for one in leaves if one.physical_type == "BYTE_ARRAY" and "." in one.path]
        sizes = [self.metadata.row_group(number).num_rows for number in range(self.metadata.num_row_groups)]
        self.largest = max(sizes, default=0)
        self._starts = np.cumsum([0, *sizes])
        self._state = _state(path)

    def __len__(self) -> int:
        return int(self.metadata.num_rows)

    def columns(self, *names: str) -> pa.Table:
        """Whole columns, with the types that the table's kind gives them."""
        wanted = [name for name in names if name in self._known]
        try:
            table = pq.read_table(self.path, columns=wanted)
            columns = [self._typed(name, table[name]) if name in wanted else self._empty(name) for name in names]
        except PARQUET_ERRORS as error:
            raise self._broken(error) from error
        return pa.Table.from_arrays(columns, names=list(names))

    def rows(self, numbers: Sequence[int], *names: str) -> list[dict[str, Any]]:
        """Some columns of the rows with these numbers, in the order of the numbers."""
        wanted = [name for name in names if name in self._known]
        by_group: dict[int, list[int]] = defaultdict(list)
        for number in sorted(set(numbers)):
            by_group[int(np.searchsorted(self._starts, number, side="right")) - 1].append(number)
        found: dict[int, dict[str, Any]] = {}
        if by_group:
            self._refuse_changed()
            with open(self.path, "rb") as handle:
                file = pq.ParquetFile(handle, metadata=self.metadata, read_dictionary=self._repeated)
                for group, own in by_group.items():
                    for number, row in self._group_rows(file, group, own, wanted):
                        found[number] = {name: row.get(name) for name in names}
        return [found[number] for number in numbers]

    def _group_rows(
        self, file: pq.ParquetFile, group: int, numbers: list[int], names: list[str]
    ) -> Iterable[tuple[int, dict[str, Any]]]:
        start = int(self._starts[group])
        if not names:
            return [(number, {}) for number in numbers]
        found: list[tuple[int, dict[str, Any]]] = []
        for batch in file.iter_batches(_AT_ONCE, row_groups=[group], columns=names, use_threads=False):
            within = [number for number in numbers if start <= number < start + batch.num_rows]
            found += [(number, batch.slice(number - start, 1).to_pylist()[0]) for number in within]
            start += batch.num_rows
            if numbers[-1] < start:
                break
        return found

    def _typed(self, name: str, column: pa.ChunkedArray) -> pa.ChunkedArray:
        return column.cast(self.kind.schema.field(name).type)

    def _empty(self, name: str) -> pa.Array:
        return pa.nulls(len(self), self.kind.schema.field(name).type)

    def _refuse_changed(self) -> None:
        if _state(self.path) != self._state:
            raise MerkhetError(
                f"{self.path.name} of this run was changed or removed since the explorer was started; start it again"
            )

    def _broken(self, error: Exception) -> InputError:
        reason = first_line(error).rstrip(".")
        return InputError(f"{self.path} is not a whole Parquet file ({reason}). Make it again, or fetch it anew.")


def _state(path: Path) -> tuple[int, int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns
