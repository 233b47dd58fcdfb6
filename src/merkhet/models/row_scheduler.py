"""Rows of tokens and what is read of them: equal rows go through a model once, its head works where it is read."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import torch

from merkhet.models.batching import run_batches
from merkhet.models.lm_head import log_probabilities, logits_at
from merkhet.models.protocol import FloatArray, IntArray

Row = tuple[int, ...]


class Plan:
    """Tokens to be read at columns of rows, for one candidate after another; equal rows are one."""

    def __init__(self) -> None:
        self.rows: dict[Row, int] = {}
        self._numbers = array("q")
        self._columns = array("q")
        self._tokens = array("q")
        self._starts = array("q", [0])

    def row(self, ids: Row) -> int:
        """The number of a row of tokens."""
        return self.rows.setdefault(ids, len(self.rows))

    def read(self, numbers: Sequence[int], columns: Sequence[int], tokens: Sequence[int]) -> None:
        """Read tokens, each at its column of its row."""
        self._numbers.extend(numbers)
        self._columns.extend(columns)
        self._tokens.extend(tokens)

    def begin_next(self) -> None:
        """What is read from now on is the next candidate's."""
        self._starts.append(len(self._tokens))

    @cached_property
    def row_indices(self) -> IntArray:
        """The row of each token that is read."""
        return np.array(self._numbers, dtype=np.int64)

    @cached_property
    def columns(self) -> IntArray:
        """Its column."""
        return np.array(self._columns, dtype=np.int64)

    @cached_property
    def tokens(self) -> IntArray:
        """The token itself."""
        return np.array(self._tokens, dtype=np.int64)

    @cached_property
    def starts(self) -> IntArray:
        """Where the tokens of each candidate begin, and where the last one's end."""
        return np.array(self._starts, dtype=np.int64)


class Reads:
    """The plans of many prompts together."""

    def __init__(self) -> None:
        self.rows: dict[Row, int] = {}
        self.size = 0
        self._numbers: list[IntArray] = []
        self._columns: list[IntArray] = []
        self._tokens: list[IntArray] = []

    def add(self, plan: Plan, before: Row = (), after: Row = ()) -> int:
        """Carry out a plan between the tokens of a prompt; returns the place of its first value."""
        numbers = [self.rows.setdefault((*before, *inner, *after), len(self.rows)) for inner in plan.rows]
        self._numbers.append(np.array(numbers, dtype=np.int64)[plan.row_indices])
        self._columns.append(plan.columns + len(before))
        self._tokens.append(plan.tokens)
        self.size += len(plan.tokens)
        return self.size - len(plan.tokens)

    def values(self, model: Any, pad: int, budget: int, early: Any = None) -> tuple[FloatArray, int]:
        """The log-probability of every token that is read, in the order of reading, and the budget that was found."""
        values = np.empty(self.size)
        if not self.size:
            return values, budget
        columns = np.concatenate(self._columns)
        # Several tokens may be read at one position: the head works there once.
        width = int(columns.max()) + 1
        positions, at = np.unique(np.concatenate(self._numbers) * width + columns, return_inverse=True)
        order = np.argsort(at, kind="stable")
        firsts = np.searchsorted(at[order], np.arange(len(positions) + 1))
        tokens = np.concatenate(self._tokens)

        def take(some: IntArray, logits: torch.Tensor) -> None:
            own = order[_ranges(firsts[some], firsts[some + 1])]
            lines = np.repeat(np.arange(len(some)), firsts[some + 1] - firsts[some])
            device = logits.device
            values[own] = log_probabilities(
                logits, torch.from_numpy(lines).to(device), torch.from_numpy(tokens[own]).to(device)
            )

        rows = list(self.rows)
        budget = read_positions(model, rows, positions // width, positions % width, pad, budget, take, early)
        return values, budget


def read_positions(
    model: Any,
    rows: Sequence[Row],
    numbers: IntArray,
    columns: IntArray,
    pad: int,
    budget: int,
    take: Callable[[IntArray, torch.Tensor], None],
    early: Any = None,
) -> int:
    """Run rows through a model; ``take`` gets, batch by batch, numbers of positions and the logits there.

    Positions are given by row number (ascending) and column. Returns the token budget that was found to fit.
    """
    firsts = np.searchsorted(numbers, np.arange(len(rows) + 1))
    lengths = [len(row) for row in rows]

    def forward(batch: list[int]) -> None:
        chosen = np.array(batch)
        own = _ranges(firsts[chosen], firsts[chosen + 1])
        lines = np.repeat(np.arange(len(batch)), firsts[chosen + 1] - firsts[chosen])
        device = model.device
        inputs = padded([rows[i] for i in batch], pad, device)
        with torch.inference_mode():
            places = torch.from_numpy(lines).to(device), torch.from_numpy(columns[own]).to(device)
            logits = logits_at(model, *places, early, **inputs)
            take(own, logits)

    return run_batches(lengths, budget, forward)


def padded(rows: Sequence[Row], pad: int, device: Any) -> dict[str, torch.Tensor]:
    """Rows as the input of a network, filled up on the right; what was filled up is not seen."""
    longest = max(map(len, rows))
    ids = np.full((len(rows), longest), pad, dtype=np.int64)
    seen = np.zeros((len(rows), longest), dtype=np.int64)
    for line, row in enumerate(rows):
        ids[line, : len(row)] = row
        seen[line, : len(row)] = 1
    inputs = {"input_ids": torch.from_numpy(ids).to(device)}
    if not seen.all():
        inputs["attention_mask"] = torch.from_numpy(seen).to(device)
    return inputs


def _ranges(starts: IntArray, stops: IntArray) -> IntArray:
    """The numbers from each start to its stop, one range after another."""
    counts = stops - starts
    skipped = np.concatenate([[0], np.cumsum(counts)[:-1]])
    found: IntArray = np.arange(int(counts.sum())) + np.repeat(starts - skipped, counts)
    return found
