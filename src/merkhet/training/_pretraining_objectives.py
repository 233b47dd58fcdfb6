"""Pre-training objectives: the loss of masked tokens, and the losses that an objective adds with a head of its own.

The body of the network runs once, and its language-model head at the masked tokens alone. The added heads read the
states of the body.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from inspect import signature
from typing import Any

import numpy as np
import torch
from torch import nn

from merkhet.models.lm_head import logits_at
from merkhet.models.protocol import IntArray
from merkhet.training._pretraining_examples import NO_LABEL, Example

_INITIAL_STD = 0.02


@dataclass(frozen=True)
class Losses:
    """Summed cross-entropies of some examples."""

    mlm: torch.Tensor
    """Loss of the masked tokens."""
    extra: torch.Tensor | None = None
    """Loss of the head that the objective adds."""


class SegmentHead(nn.Module):  # type: ignore[misc]
    """Classifies from the first token's state whether two segments are in their original order."""

    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.pooler = nn.Linear(hidden, hidden)
        self.classes = nn.Linear(hidden, 2)
        _initialize(self)

    def forward(self, first: torch.Tensor) -> torch.Tensor:
        """Return two logits for each state."""
        logits: torch.Tensor = self.classes(torch.tanh(self.pooler(first)))
        return logits.float()


class BoundaryHead(nn.Module):  # type: ignore[misc]
    """Predicts a token from its neighbours' states and a position embedding.

    Two layers with GELU and LayerNorm, as in SpanBERT; the output matrix is the network's input embeddings. All spans
    have one token, so there is one position.
    """

    def __init__(self, hidden: int, embedding: int, vocabulary: int) -> None:
        super().__init__()
        self.position = nn.Embedding(1, hidden)
        self.layers = nn.Sequential(
            *(nn.Linear(3 * hidden, hidden), nn.GELU(), nn.LayerNorm(hidden)),
            *(nn.Linear(hidden, embedding), nn.GELU(), nn.LayerNorm(embedding)),
        )
        self.bias = nn.Parameter(torch.zeros(vocabulary))
        _initialize(self)

    def forward(self, left: torch.Tensor, right: torch.Tensor, embeddings: torch.Tensor) -> torch.Tensor:
        """Return logits over the vocabulary for each pair of neighbours."""
        position = self.position.weight.expand(len(left), -1).to(left.dtype)
        hidden: torch.Tensor = self.layers(torch.cat([left, right, position], dim=1))
        return nn.functional.linear(hidden, embeddings).float() + self.bias


class Objective:
    """An objective for a network: the new head that it adds, and the losses of examples."""

    def __init__(self, network: Any, name: str, pad: int) -> None:
        self.network, self.name, self.pad = network, name, pad
        embeddings = network.get_input_embeddings().weight
        hidden = int(network.config.hidden_size)
        self.head: SegmentHead | BoundaryHead | None = None
        if name in ("mlm+nsp", "mlm+sop"):
            self.head = SegmentHead(hidden).to(network.device)
        elif name == "mlm+sbo":
            self.head = BoundaryHead(hidden, embeddings.shape[1], embeddings.shape[0]).to(network.device)
        self.segmented = (getattr(network.config, "type_vocab_size", 0) or 0) > 1
        self.segmented &= "token_type_ids" in signature(network.forward).parameters

    def counts(self, batch: Sequence[Example]) -> tuple[int, int]:
        """Return the number of masked tokens of a batch, and of the added head's targets."""
        masked = sum(len(example.targets) for example in batch)
        if isinstance(self.head, SegmentHead):
            return masked, sum(example.label != NO_LABEL for example in batch)
        return masked, masked if self.head else 0

    def losses(self, examples: Sequence[Example]) -> Losses:
        """Return the summed losses of some examples."""
        ids, attention, segments = _pad_batch(examples, self.pad)
        rows = np.repeat(np.arange(len(examples)), [len(example.columns) for example in examples])
        columns = np.concatenate([example.columns for example in examples])
        inputs = {"input_ids": self._tensor(ids), "attention_mask": self._tensor(attention)}
        if self.segmented:
            inputs["token_type_ids"] = self._tensor(segments)
        targets = self._tensor(np.concatenate([example.targets for example in examples]))
        positions = self._tensor(rows), self._tensor(columns)
        states, mlm_logits = states_and_logits(self.network, *positions, **inputs)
        mlm = nn.functional.cross_entropy(mlm_logits, targets, reduction="sum")
        if isinstance(self.head, SegmentHead):
            labels = self._tensor(np.array([example.label for example in examples]))
            logits = self.head(states[:, 0])
            return Losses(mlm, nn.functional.cross_entropy(logits, labels, ignore_index=NO_LABEL, reduction="sum"))
        if isinstance(self.head, BoundaryHead):
            left, right = (
                self._tensor(np.maximum(columns - 1, 0)),
                self._tensor(_right_neighbours(rows, columns, attention)),
            )
            embeddings = self.network.get_input_embeddings().weight
            logits = self.head(states[positions[0], left], states[positions[0], right], embeddings)
            return Losses(mlm, nn.functional.cross_entropy(logits, targets, reduction="sum"))
        return Losses(mlm)

    def _tensor(self, values: IntArray) -> torch.Tensor:
        return torch.from_numpy(values).to(self.network.device)


def states_and_logits(
    network: Any, rows: torch.Tensor, columns: torch.Tensor, **inputs: Any
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the states of all positions after the network's body, and the logits at chosen ones, in one pass."""
    captured: list[torch.Tensor] = []

    def capture(_module: Any, _arguments: Any, output: Any) -> None:
        captured.append(output[0])

    # Hooks run in the order of registration: this one runs before positions are selected.
    handle = network.base_model.register_forward_hook(capture)
    try:
        logits = logits_at(network, rows, columns, **inputs)
    finally:
        handle.remove()
    return captured[0], logits


def _pad_batch(examples: Sequence[Example], pad: int) -> tuple[IntArray, IntArray, IntArray]:
    """Return tokens, attention mask and segments, padded to the longest row."""
    shape = len(examples), max(len(example.ids) for example in examples)
    ids, attention, segments = np.full(shape, pad, dtype=np.int64), np.zeros(shape, np.int64), np.zeros(shape, np.int64)
    for row, example in enumerate(examples):
        ids[row, : len(example.ids)] = example.ids
        attention[row, : len(example.ids)] = 1
        segments[row, : len(example.ids)] = example.segments
    return ids, attention, segments


def _right_neighbours(rows: IntArray, columns: IntArray, attention: IntArray) -> IntArray:
    """Return the column right of each, within its row."""
    neighbours: IntArray = np.minimum(columns + 1, attention.sum(axis=1)[rows] - 1)
    return neighbours


def _initialize(head: nn.Module) -> None:
    """Initialize weights as BERT does."""
    for module in head.modules():
        if isinstance(module, nn.Linear | nn.Embedding):
            nn.init.normal_(module.weight, std=_INITIAL_STD)
        if isinstance(module, nn.Linear):
            nn.init.zeros_(module.bias)
