"""Scheduling of token rows: equal rows are computed once, and logits only at the positions that are read."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from merkhet.models.lm_head import log_probabilities, logits_at
from merkhet.models.protocol import FloatArray, IntArray

if TYPE_CHECKING:
    from merkhet.models._network import Network

Row = tuple[int, ...]
"""The token ids of one input sequence."""


class ReadPlan:
    """The log-probabilities that candidates need: each read is a token at a column of a token row.

    Equal rows are merged.
    """

    def __init__(self) -> None:
        self.rows: dict[Row, int] = {}
        self._row_indices, self._columns, self._tokens = array("q"), array("q"), array("q")
        self._starts = array("q", [0])

    def add_row(self, ids: Row) -> int:
        """Add a token row unless the plan has an equal row, and return the row's index."""
        return self.rows.setdefault(ids, len(self.rows))

    def add_reads(self, row_indices: Sequence[int], columns: Sequence[int], tokens: Sequence[int]) -> None:
        """Add one read per element of the three sequences: a token at a column of a row."""
        self._row_indices.extend(row_indices)
        self._columns.extend(columns)
        self._tokens.extend(tokens)

    def end_candidate(self) -> None:
        """End the reads of the current candidate; later reads belong to the next candidate."""
        self._starts.append(len(self._tokens))

    @cached_property
    def reads(self) -> tuple[IntArray, IntArray, IntArray]:
        """Three arrays: the row index, the column and the token of each read."""
        row_indices, columns, tokens = (
            np.array(values, dtype=np.int64) for values in (self._row_indices, self._columns, self._tokens)
        )
        return row_indices, columns, tokens

    @cached_property
    def starts(self) -> IntArray:
        """The index of each candidate's first read, followed by the total number of reads."""
        return np.array(self._starts, dtype=np.int64)


class RowScheduler:
    """Joint execution of the read plans of many prompts."""

    def __init__(self) -> None:
        self.rows: dict[Row, int] = {}
        self.size = 0
        self._reads: list[tuple[IntArray, IntArray, IntArray]] = []

    def add(self, plan: ReadPlan, prefix: Row = (), suffix: Row = ()) -> int:
        """Add a plan, with ``prefix`` and ``suffix`` around each of its rows.

        Returns:
            The index of the plan's first value in the result of :meth:`run`.
        """
        merged_rows = [self.rows.setdefault((*prefix, *row, *suffix), len(self.rows)) for row in plan.rows]
        row_indices, columns, tokens = plan.reads
        self._reads.append((np.array(merged_rows, dtype=np.int64)[row_indices], columns + len(prefix), tokens))
        self.size += len(tokens)
        return self.size - len(tokens)

    def run(self, network: Network) -> FloatArray:
        """Return the log-probability of every read, in the order in which plans were added."""
        values = np.empty(self.size)
        if not self.size:
            return values
        row_indices, columns, tokens = (np.concatenate(arrays) for arrays in zip(*self._reads, strict=True))
        # Several tokens may be read at one position, whose logits are computed once.
        width = int(columns.max()) + 1
        positions, inverse = np.unique(row_indices * width + columns, return_inverse=True)
        order = np.argsort(inverse, kind="stable")
        firsts = np.searchsorted(inverse[order], np.arange(len(positions) + 1))

        def store(batch_positions: IntArray, logits: torch.Tensor) -> None:
            starts, stops = firsts[batch_positions], firsts[batch_positions + 1]
            reads = order[_ranges(starts, stops)]
            lines = np.repeat(np.arange(len(batch_positions)), stops - starts)
            device = logits.device
            values[reads] = log_probabilities(
                logits, torch.from_numpy(lines).to(device), torch.from_numpy(tokens[reads]).to(device)
            )

        read_positions(network, list(self.rows), positions // width, positions % width, store)
        return values


def read_positions(
    network: Network,
    rows: Sequence[Row],
    row_indices: IntArray,
    columns: IntArray,
    store: Callable[[IntArray, torch.Tensor], None],
) -> None:
    """Run token rows through a network in batches, and read logits at positions.

    Position i is column ``columns[i]`` of row ``row_indices[i]``; ``row_indices`` must be ascending. For each batch,
    ``store`` is called with the indices of the batch's positions and with their logits.
    """
    firsts = np.searchsorted(row_indices, np.arange(len(rows) + 1))
    device = network.model.device

    def forward(batch: list[int]) -> None:
        batch_rows = np.array(batch)
        starts, stops = firsts[batch_rows], firsts[batch_rows + 1]
        positions = _ranges(starts, stops)
        lines = np.repeat(np.arange(len(batch)), stops - starts)
        inputs = pad_rows([rows[i] for i in batch], network.pad, device)
        with torch.inference_mode():
            where = torch.from_numpy(lines).to(device), torch.from_numpy(columns[positions]).to(device)
            store(positions, logits_at(network.model, *where, network.pick_after, **inputs))

    network.run_batches([len(row) for row in rows], forward)


def pad_rows(rows: Sequence[Row], pad: int, device: Any) -> dict[str, torch.Tensor]:
    """Pad token rows on the right into one batch, with an attention mask if there is padding."""
    longest = max(map(len, rows))
    ids = np.full((len(rows), longest), pad, dtype=np.int64)
    attention_mask = np.zeros((len(rows), longest), dtype=np.int64)
    for line, row in enumerate(rows):
        ids[line, : len(row)] = row
        attention_mask[line, : len(row)] = 1
    inputs = {"input_ids": torch.from_numpy(ids).to(device)}
    if not attention_mask.all():
        inputs["attention_mask"] = torch.from_numpy(attention_mask).to(device)
    return inputs


def _ranges(starts: IntArray, stops: IntArray) -> IntArray:
    """Concatenate the integer ranges from each start to the corresponding stop."""
    counts = stops - starts
    skipped = np.concatenate([[0], np.cumsum(counts)[:-1]])
    ranges: IntArray = np.arange(int(counts.sum())) + np.repeat(starts - skipped, counts)
    return ranges
