"""The losses of pre-training: masked tokens, and what an objective adds by a head of its own.

The body of a network works once; its language-model head works at the masked tokens alone, whatever the architecture.
What an objective adds (pairs of segments, boundaries) is read from the states of the body.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from inspect import signature
from typing import Any

import numpy as np
import torch
from torch import nn

from merkhet.models.lm_head import logits_at
from merkhet.models.protocol import IntArray
from merkhet.training._pretraining_examples import NO_LABEL, Example

_SPREAD = 0.02


@dataclass(frozen=True)
class Losses:
    """Sums of cross-entropies over masked tokens and, where the objective adds something, over what it adds."""

    mlm: torch.Tensor
    extra: torch.Tensor | None = None


class SegmentHead(nn.Module):  # type: ignore[misc]
    """Tells from the first token's state whether two segments stand as they were: a pooler and two classes."""

    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.pooler = nn.Linear(hidden, hidden)
        self.classes = nn.Linear(hidden, 2)
        _begin(self)

    def forward(self, first: torch.Tensor) -> torch.Tensor:
        """Two logits for each state."""
        found: torch.Tensor = self.classes(torch.tanh(self.pooler(first)))
        return found.float()


class BoundaryHead(nn.Module):  # type: ignore[misc]
    """Tells a token from the states left and right of it, and the embedding of its place between them.

    Two layers with GELU and LayerNorm, as SpanBERT has them, and the network's own input embeddings as the output.
    All spans are of one token, so there is one place.
    """

    def __init__(self, hidden: int, embedding: int, vocabulary: int) -> None:
        super().__init__()
        self.place = nn.Embedding(1, hidden)
        self.layers = nn.Sequential(
            *(nn.Linear(3 * hidden, hidden), nn.GELU(), nn.LayerNorm(hidden)),
            *(nn.Linear(hidden, embedding), nn.GELU(), nn.LayerNorm(embedding)),
        )
        self.bias = nn.Parameter(torch.zeros(vocabulary))
        _begin(self)

    def forward(self, left: torch.Tensor, right: torch.Tensor, embeddings: torch.Tensor) -> torch.Tensor:
        """Logits over the vocabulary for each pair of neighbours."""
        place = self.place.weight.expand(len(left), -1).to(left.dtype)
        found: torch.Tensor = self.layers(torch.cat([left, right, place], dim=1))
        return nn.functional.linear(found, embeddings).float() + self.bias


class Objective:
    """An objective for a network: the head that it adds, trained from new, and the losses of examples."""

    def __init__(self, network: Any, name: str, pad: int, precision: str = "float32") -> None:
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
        self.halved = precision == "bfloat16" and network.device.type == "cuda"

    def counts(self, batch: Sequence[Example]) -> tuple[int, int]:
        """How many masked tokens a batch has, and how many things the objective adds to be told."""
        masked = sum(len(one.targets) for one in batch)
        if isinstance(self.head, SegmentHead):
            return masked, sum(one.label != NO_LABEL for one in batch)
        return masked, masked if self.head else 0

    def losses(self, some: Sequence[Example]) -> Losses:
        """The sums of the losses of some examples."""
        ids, seen, segments = _table(some, self.pad)
        rows = np.repeat(np.arange(len(some)), [len(one.columns) for one in some])
        columns = np.concatenate([one.columns for one in some])
        inputs = {"input_ids": self._there(ids), "attention_mask": self._there(seen)}
        if self.segmented:
            inputs["token_type_ids"] = self._there(segments)
        targets = self._there(np.concatenate([one.targets for one in some]))
        places = self._there(rows), self._there(columns)
        with self._precision():
            states, logits = states_and_logits(self.network, *places, **inputs)
            mlm = nn.functional.cross_entropy(logits, targets, reduction="sum")
            if isinstance(self.head, SegmentHead):
                labels = self._there(np.array([one.label for one in some]))
                told = self.head(states[:, 0])
                return Losses(mlm, nn.functional.cross_entropy(told, labels, ignore_index=NO_LABEL, reduction="sum"))
            if isinstance(self.head, BoundaryHead):
                left, right = self._there(np.maximum(columns - 1, 0)), self._there(_right(rows, columns, seen))
                embeddings = self.network.get_input_embeddings().weight
                told = self.head(states[places[0], left], states[places[0], right], embeddings)
                return Losses(mlm, nn.functional.cross_entropy(told, targets, reduction="sum"))
        return Losses(mlm)

    def _there(self, values: IntArray) -> torch.Tensor:
        return torch.from_numpy(values).to(self.network.device)

    def _precision(self) -> AbstractContextManager[Any]:
        return torch.autocast("cuda", dtype=torch.bfloat16) if self.halved else nullcontext()


def states_and_logits(
    network: Any, rows: torch.Tensor, columns: torch.Tensor, **inputs: Any
) -> tuple[torch.Tensor, torch.Tensor]:
    """The states of all positions after a network's body, and the logits at chosen ones, in one pass."""
    kept: list[torch.Tensor] = []

    def keep(_module: Any, _arguments: Any, output: Any) -> None:
        kept.append(output[0])

    # Hooks are called in the order of their making: this one comes before positions are picked.
    handle = network.base_model.register_forward_hook(keep)
    try:
        logits = logits_at(network, rows, columns, **inputs)
    finally:
        handle.remove()
    return kept[0], logits


def _table(some: Sequence[Example], pad: int) -> tuple[IntArray, IntArray, IntArray]:
    """Tokens, which of them are seen, and their segments, padded to the longest row."""
    shape = len(some), max(len(one.ids) for one in some)
    ids, seen, segments = np.full(shape, pad, dtype=np.int64), np.zeros(shape, np.int64), np.zeros(shape, np.int64)
    for line, one in enumerate(some):
        ids[line, : len(one.ids)] = one.ids
        seen[line, : len(one.ids)] = 1
        segments[line, : len(one.ids)] = one.segments
    return ids, seen, segments


def _right(rows: IntArray, columns: IntArray, seen: IntArray) -> IntArray:
    """The column right of each, within its row."""
    found: IntArray = np.minimum(columns + 1, seen.sum(axis=1)[rows] - 1)
    return found


def _begin(head: nn.Module) -> None:
    """Weights as BERT begins with them."""
    for part in head.modules():
        if isinstance(part, nn.Linear | nn.Embedding):
            nn.init.normal_(part.weight, std=_SPREAD)
        if isinstance(part, nn.Linear):
            nn.init.zeros_(part.bias)
