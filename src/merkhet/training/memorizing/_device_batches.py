"""Batches on the device: the arrays are copied there once, and each batch is indexed there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from merkhet.training.memorizing._statement_arrays import Batch, StatementArrays


@dataclass(frozen=True)
class DeviceBatch:
    """A batch on the device."""

    ids: torch.Tensor
    lengths: torch.Tensor | None
    """Number of tokens of each row; None if all rows are full."""
    columns: torch.Tensor
    """Position of the mask in each row."""
    targets: torch.Tensor
    """Symbol number of each target."""

    def __len__(self) -> int:
        return len(self.ids)

    def __getitem__(self, rows: slice) -> DeviceBatch:
        lengths = None if self.lengths is None else self.lengths[rows]
        return DeviceBatch(self.ids[rows], lengths, self.columns[rows], self.targets[rows])


class BatchLoader:
    """Loads batches of statements onto a device; on a CPU the arrays stay in their files."""

    def __init__(self, arrays: StatementArrays, device: torch.device, pad: int) -> None:
        self.arrays, self.device, self.pad = arrays, device, pad
        self.ids, self.starts, self.columns = (
            self._tensor(array) for array in (arrays.ids, arrays.starts, arrays.columns)
        )
        self.targets, self.lengths = self._tensor(arrays.targets), self._tensor(arrays.lengths.astype(np.int32))

    def _tensor(self, array: Any) -> torch.Tensor:
        return torch.from_numpy(np.ascontiguousarray(array)).to(self.device)

    def load(self, batches: Sequence[Batch]) -> Iterator[tuple[Batch, DeviceBatch]]:
        """Yield each batch with its copy on the device; the row numbers of all batches are copied at once."""
        if not batches:
            return
        rows, numbers = (
            self._tensor(np.concatenate([getattr(batch, name) for batch in batches])) for name in ("rows", "statements")
        )
        start = 0
        for batch in batches:
            chosen = slice(start, start + len(batch.rows))
            start = chosen.stop
            yield batch, self._load(batch, rows[chosen], numbers[chosen])

    def _load(self, batch: Batch, rows: torch.Tensor, numbers: torch.Tensor) -> DeviceBatch:
        positions = torch.arange(batch.length, device=self.device)
        lengths = self.lengths[rows]
        ids = self.ids[(self.starts[rows][:, None] + positions).clamp_(max=len(self.ids) - 1)].long()
        if batch.padded:
            ids = torch.where(positions[None, :] < lengths[:, None], ids, self.pad)
        return DeviceBatch(
            ids, lengths if batch.padded else None, self.columns[rows].long(), self.targets[numbers].long()
        )

    def answers(self, batch: Batch) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the gold answers of a batch's statements: for each answer its row in the batch, and its symbol."""
        first, last = (self.arrays.answer_starts[batch.statements + offset] for offset in (0, 1))
        counts = last - first
        rows = np.repeat(np.arange(len(counts)), counts)
        flat = np.repeat(first - np.cumsum(counts) + counts, counts) + np.arange(int(counts.sum()))
        return self._tensor(rows), self._tensor(self.arrays.answers[flat]).long()
