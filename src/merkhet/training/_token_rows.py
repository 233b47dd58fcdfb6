"""Token sequences with prediction targets, padded into batches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from merkhet.models.lm_head import logits_at
from merkhet.models.protocol import IntArray


@dataclass(frozen=True)
class TokenRow:
    """A sequence of input tokens, and the tokens to predict at some of its positions."""

    ids: Sequence[int] | IntArray
    columns: Sequence[int] | IntArray
    """Positions at which the targets are predicted."""
    targets: Sequence[int] | IntArray


def pad_rows(rows: Sequence[Sequence[int] | IntArray], pad: int) -> IntArray:
    """Return ``rows`` as a matrix, padded with ``pad`` on the right to the length of the longest row."""
    matrix = np.full((len(rows), max(map(len, rows))), pad, dtype=np.int64)
    for number, row in enumerate(rows):
        matrix[number, : len(row)] = row
    return matrix


@dataclass(frozen=True)
class TokenBatch:
    """A batch of padded token sequences, with the position and token of every training target."""

    inputs: dict[str, torch.Tensor]
    """Inputs of the network: ``input_ids`` and ``attention_mask``."""
    rows: torch.Tensor
    """Index of each target's sequence in the batch."""
    columns: torch.Tensor
    """Position of each target in its sequence."""
    targets: torch.Tensor

    @classmethod
    def pad(cls, rows: Sequence[TokenRow], pad: int, device: torch.device) -> TokenBatch:
        """Return a batch of ``rows``, padded with the token ``pad`` to the length of the longest row."""
        numbers = np.repeat(np.arange(len(rows)), [len(row.columns) for row in rows])
        columns, targets = (
            np.concatenate([getattr(row, name) for row in rows]).astype(np.int64) for name in ("columns", "targets")
        )
        lengths = np.array([len(row.ids) for row in rows])
        attention = (np.arange(lengths.max()) < lengths[:, None]).astype(np.int64)
        arrays = (pad_rows([row.ids for row in rows], pad), attention, numbers, columns, targets)
        ids, mask, *positions = (torch.from_numpy(array).to(device) for array in arrays)
        return cls({"input_ids": ids, "attention_mask": mask}, *positions)

    def logits(self, network: Any, pick_after: Any = None, **options: Any) -> torch.Tensor:
        """Return the logits at all targets; ``pick_after`` and ``options`` are passed to ``logits_at``."""
        return logits_at(network, self.rows, self.columns, pick_after, **self.inputs, **options)
