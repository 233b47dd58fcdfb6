"""Pre-training objectives: the masked-language-modelling loss, and the loss of an additional head.

The layers of the network run once, and its language-model head runs only at the target positions. An additional head
reads the hidden states after the last layer.
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
from merkhet.training._token_rows import TokenBatch, pad_rows

_INITIAL_STD = 0.02


@dataclass(frozen=True)
class Losses:
    """Cross-entropies summed over examples."""

    mlm: torch.Tensor
    """Loss of the masked tokens."""
    extra: torch.Tensor | None = None
    """Loss of the additional head; None if the objective has none."""


class SegmentHead(nn.Module):  # type: ignore[misc]
    """A binary classifier of segment pairs, from the hidden state of the first token.

    NSP asks whether the second segment is from another document, SOP whether the segments are swapped.
    """

    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.pooler = nn.Linear(hidden, hidden)
        self.classes = nn.Linear(hidden, 2)
        _initialize(self)

    def forward(self, first: torch.Tensor) -> torch.Tensor:
        """Return two logits for each hidden state in ``first``."""
        logits: torch.Tensor = self.classes(torch.tanh(self.pooler(first)))
        return logits.float()


class BoundaryHead(nn.Module):  # type: ignore[misc]
    """A head that predicts a token from the hidden states of its two neighbours and a position embedding.

    As in SpanBERT, the head has two layers with GELU and LayerNorm, and the input embeddings are its output matrix. All
    spans have one token, so there is one position embedding.
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
        """Return logits over the vocabulary for each pair of left and right hidden states."""
        position = self.position.weight.expand(len(left), -1).to(left.dtype)
        hidden: torch.Tensor = self.layers(torch.cat([left, right, position], dim=1))
        return nn.functional.linear(hidden, embeddings).float() + self.bias


class Objective:
    """A pre-training objective for a network, with its additional head if it has one."""

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
        """Return the number of masked tokens in a batch, and the number of targets of the additional head."""
        masked = sum(len(example.targets) for example in batch)
        if isinstance(self.head, SegmentHead):
            return masked, sum(example.label != NO_LABEL for example in batch)
        return masked, masked if self.head else 0

    def losses(self, examples: Sequence[Example]) -> Losses:
        """Return the losses summed over ``examples``."""
        batch = TokenBatch.pad(examples, self.pad, self.network.device)
        inputs = batch.inputs
        if self.segmented:
            inputs["token_type_ids"] = self._tensor(pad_rows([example.segments for example in examples], 0))
        states, mlm_logits = states_and_logits(self.network, batch.rows, batch.columns, **inputs)
        mlm = nn.functional.cross_entropy(mlm_logits, batch.targets, reduction="sum")
        if isinstance(self.head, SegmentHead):
            labels = self._tensor(np.array([example.label for example in examples]))
            logits = self.head(states[:, 0])
            return Losses(mlm, nn.functional.cross_entropy(logits, labels, ignore_index=NO_LABEL, reduction="sum"))
        if isinstance(self.head, BoundaryHead):
            last = inputs["attention_mask"].sum(1)[batch.rows] - 1
            left, right = (batch.columns - 1).clamp(min=0), torch.minimum(batch.columns + 1, last)
            embeddings = self.network.get_input_embeddings().weight
            logits = self.head(states[batch.rows, left], states[batch.rows, right], embeddings)
            return Losses(mlm, nn.functional.cross_entropy(logits, batch.targets, reduction="sum"))
        return Losses(mlm)

    def _tensor(self, values: IntArray) -> torch.Tensor:
        return torch.from_numpy(values).to(self.network.device)


def states_and_logits(
    network: Any, rows: torch.Tensor, columns: torch.Tensor, **inputs: Any
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the hidden states of all positions after the last layer, and the logits at (``rows``, ``columns``).

    The network runs once for both.
    """
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


def _initialize(head: nn.Module) -> None:
    """Initialize the weights of a head as BERT does."""
    for module in head.modules():
        if isinstance(module, nn.Linear | nn.Embedding):
            nn.init.normal_(module.weight, std=_INITIAL_STD)
        if isinstance(module, nn.Linear):
            nn.init.zeros_(module.bias)
