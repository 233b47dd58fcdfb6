"""Batches on the device: all arrays are taken there once, and a batch is picked out of them there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from merkhet.training.memorizing._statement_arrays import Batch, Packed


@dataclass(frozen=True)
class Placed:
    """A batch on the device: tokens, lengths where they differ, places of the masks, and symbols as targets."""

    ids: torch.Tensor
    lengths: torch.Tensor | None
    columns: torch.Tensor
    targets: torch.Tensor

    def __len__(self) -> int:
        return len(self.ids)

    def __getitem__(self, some: slice) -> Placed:
        lengths = None if self.lengths is None else self.lengths[some]
        return Placed(self.ids[some], lengths, self.columns[some], self.targets[some])


class Feed:
    """Statements on a device; on a CPU they stay in their files."""

    def __init__(self, packed: Packed, device: torch.device, pad: int) -> None:
        self.packed, self.device, self.pad = packed, device, pad
        self.ids, self.starts, self.columns = (self._to(one) for one in (packed.ids, packed.starts, packed.columns))
        self.targets, self.lengths = self._to(packed.targets), self._to(packed.lengths.astype(np.int32))

    def _to(self, array: Any) -> torch.Tensor:
        return torch.from_numpy(np.ascontiguousarray(array)).to(self.device)

    def place(self, batches: Sequence[Batch]) -> Iterator[tuple[Batch, Placed]]:
        """Each batch on the device; which rows they are goes there at once, not one by one."""
        if not batches:
            return
        rows, numbers = (
            self._to(np.concatenate([getattr(batch, name) for batch in batches])) for name in ("rows", "statements")
        )
        start = 0
        for batch in batches:
            some = slice(start, start + len(batch.rows))
            start = some.stop
            yield batch, self._placed(batch, rows[some], numbers[some])

    def _placed(self, batch: Batch, rows: torch.Tensor, numbers: torch.Tensor) -> Placed:
        places = torch.arange(batch.length, device=self.device)
        lengths = self.lengths[rows]
        ids = self.ids[(self.starts[rows][:, None] + places).clamp_(max=len(self.ids) - 1)].long()
        if batch.padded:
            ids = torch.where(places[None, :] < lengths[:, None], ids, self.pad)
        return Placed(ids, lengths if batch.padded else None, self.columns[rows].long(), self.targets[numbers].long())

    def answers(self, batch: Batch) -> tuple[torch.Tensor, torch.Tensor]:
        """All right answers of the statements of a batch, and the place in it of the statement that each belongs to."""
        first, last = (self.packed.answer_starts[batch.statements + more] for more in (0, 1))
        counts = last - first
        rows = np.repeat(np.arange(len(counts)), counts)
        flat = np.repeat(first - np.cumsum(counts) + counts, counts) + np.arange(int(counts.sum()))
        return self._to(rows), self._to(self.packed.answers[flat]).long()
