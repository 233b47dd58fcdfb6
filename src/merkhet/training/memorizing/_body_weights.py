"""The weights of a body as its products want them: joined where several read the same states, in half precision."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch


@dataclass(frozen=True)
class LayerWeights:
    """Weights and biases of a layer: queries, keys and values joined, then all behind the attention in its order."""

    projection: torch.Tensor
    projection_bias: torch.Tensor
    behind: tuple[torch.Tensor, ...]


class Weights(Protocol):
    """Gives the weights of layers and of the head's transform; ``begin`` and ``end`` stand around each step."""

    def layer(self, number: int) -> LayerWeights:
        """The weights of a layer."""

    def transform(self) -> tuple[torch.Tensor, ...]:
        """Weight and bias of the dense layer and of the norm before the table of the vocabulary."""

    def begin(self) -> None:
        """Take over what the optimizer has changed."""

    def end(self) -> None:
        """Hand the gradients to the optimizer."""


def weights_of(layers: Sequence[Any], dense: Any, norm: Any, dtype: torch.dtype) -> Weights:
    """The weights as they are, or copies in half precision that follow them."""
    parts = [_layer_parts(layer) for layer in layers]
    last = [dense.weight, dense.bias, norm.weight, norm.bias]
    return OwnWeights(parts, last) if dtype == torch.float32 else HalvedWeights(parts, last, dtype)


Parts = list[list[torch.nn.Parameter]]


def _layer_parts(layer: Any) -> Parts:
    """What belongs to a layer; the members of a list are joined."""
    own, first, up, down = layer.attention.self, layer.attention.output, layer.intermediate.dense, layer.output
    joined = [[getattr(one, part) for one in (own.query, own.key, own.value)] for part in ("weight", "bias")]
    behind = (first.dense, first.LayerNorm, up, down.dense, down.LayerNorm)
    return [*joined, *([part] for one in behind for part in (one.weight, one.bias))]


class OwnWeights:
    """The parameters themselves."""

    def __init__(self, layers: list[Parts], last: list[torch.nn.Parameter]) -> None:
        self.layers, self.last = layers, last

    def layer(self, number: int) -> LayerWeights:
        """Joined anew in each pass, which is little beside the products."""
        weight, bias, *behind = self.layers[number]
        return LayerWeights(torch.cat(weight), torch.cat(bias), tuple(one for [one] in behind))

    def transform(self) -> tuple[torch.Tensor, ...]:
        """As they are."""
        return tuple(self.last)

    def begin(self) -> None:
        """Nothing to do."""

    def end(self) -> None:
        """Nothing to do."""


class HalvedWeights:
    """Copies in half precision, of which gradients are taken; parameters and their gradients stay in float32.

    All are copied at once before a step, and their gradients after it: not a cast for each use.
    """

    def __init__(self, layers: list[Parts], last: list[torch.nn.Parameter], dtype: torch.dtype) -> None:
        self.copies: list[torch.Tensor] = []
        self.masters: list[torch.nn.Parameter] = []
        self.views: list[torch.Tensor] = []
        self.places: list[tuple[int, int, int]] = []
        self.layers = [[self._copy(part, dtype) for part in parts] for parts in layers]
        self.last = [self._copy([part], dtype) for part in last]
        self.begin()

    def _copy(self, joined: list[torch.nn.Parameter], dtype: torch.dtype) -> torch.Tensor:
        rows = sum(len(one) for one in joined)
        copy = torch.empty(rows, *joined[0].shape[1:], dtype=dtype, device=joined[0].device)
        start = 0
        for one in joined:
            self.masters.append(one)
            self.views.append(copy[start : start + len(one)])
            self.places.append((len(self.copies), start, start + len(one)))
            start += len(one)
        self.copies.append(copy.requires_grad_())
        return copy

    def layer(self, number: int) -> LayerWeights:
        """The copies of a layer."""
        weight, bias, *behind = self.layers[number]
        return LayerWeights(weight, bias, tuple(behind))

    def transform(self) -> tuple[torch.Tensor, ...]:
        """The copies of the head's transform."""
        return tuple(self.last)

    def begin(self) -> None:
        """Copy the parameters, and forget the gradients of the last step."""
        with torch.no_grad():
            torch._foreach_copy_(self.views, [one.detach() for one in self.masters])
        for copy in self.copies:
            copy.grad = None

    def end(self) -> None:
        """Copy the gradients."""
        given = [self.copies[place].grad for place, _, _ in self.places]
        taken = [one for one, found in zip(self.masters, given, strict=True) if found is not None]
        for one in taken:
            if one.grad is None:
                one.grad = torch.empty_like(one)
        found = [one[start:stop] for one, (_, start, stop) in zip(given, self.places, strict=True) if one is not None]
        with torch.no_grad():
            torch._foreach_copy_([one.grad for one in taken], found)
