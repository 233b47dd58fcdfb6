"""The weights of a fused network body: concatenated projections, optionally in half precision."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch


@dataclass(frozen=True)
class LayerWeights:
    """Weights and biases of a layer."""

    projection: torch.Tensor
    """Weights of queries, keys and values, concatenated."""
    projection_bias: torch.Tensor
    after_attention: tuple[torch.Tensor, ...]
    """Weights and biases of the parts that follow the attention, in order."""


class Weights(Protocol):
    """Weights of the layers and of the head's transform. ``begin_step`` and ``end_step`` enclose each step."""

    def layer(self, number: int) -> LayerWeights:
        """Return the weights of a layer."""

    def transform(self) -> tuple[torch.Tensor, ...]:
        """Return weight and bias of the dense layer and of the norm before the output vocabulary."""

    def begin_step(self) -> None:
        """Take over the optimizer's changes."""

    def end_step(self) -> None:
        """Hand the gradients to the optimizer."""


def make_weights(layers: Sequence[Any], dense: Any, norm: Any, dtype: torch.dtype) -> Weights:
    """Return the parameters themselves, or copies in half precision that follow them."""
    layer_parameters = [_layer_parameters(layer) for layer in layers]
    transform = [dense.weight, dense.bias, norm.weight, norm.bias]
    return (
        DirectWeights(layer_parameters, transform)
        if dtype == torch.float32
        else HalfPrecisionWeights(layer_parameters, transform, dtype)
    )


LayerParameters = list[list[torch.nn.Parameter]]
"""The parameters of a layer; the members of an inner list are concatenated."""


def _layer_parameters(layer: Any) -> LayerParameters:
    attention, attention_output, up, down = (
        layer.attention.self,
        layer.attention.output,
        layer.intermediate.dense,
        layer.output,
    )
    projections = [
        [getattr(module, name) for module in (attention.query, attention.key, attention.value)]
        for name in ("weight", "bias")
    ]
    modules = (attention_output.dense, attention_output.LayerNorm, up, down.dense, down.LayerNorm)
    return [*projections, *([parameter] for module in modules for parameter in (module.weight, module.bias))]


class DirectWeights:
    """The parameters themselves."""

    def __init__(self, layers: list[LayerParameters], transform: list[torch.nn.Parameter]) -> None:
        self.layers, self.transform_parameters = layers, transform

    def layer(self, number: int) -> LayerWeights:
        """Concatenate the projections again in each pass, which costs little beside the products."""
        weight, bias, *after_attention = self.layers[number]
        return LayerWeights(torch.cat(weight), torch.cat(bias), tuple(parameter for [parameter] in after_attention))

    def transform(self) -> tuple[torch.Tensor, ...]:
        """Return the parameters."""
        return tuple(self.transform_parameters)

    def begin_step(self) -> None:
        """Do nothing."""

    def end_step(self) -> None:
        """Do nothing."""


class HalfPrecisionWeights:
    """Copies in half precision that receive the gradients; parameters and their gradients stay in float32.

    All are copied at once before a step, and their gradients after it, instead of a cast for each use.
    """

    def __init__(self, layers: list[LayerParameters], transform: list[torch.nn.Parameter], dtype: torch.dtype) -> None:
        self.copies: list[torch.Tensor] = []
        self.masters: list[torch.nn.Parameter] = []
        self.views: list[torch.Tensor] = []
        self.slices: list[tuple[int, int, int]] = []
        self.layers = [[self._copy(group, dtype) for group in parameters] for parameters in layers]
        self.transform_parameters = [self._copy([parameter], dtype) for parameter in transform]
        self.begin_step()

    def _copy(self, parameters: list[torch.nn.Parameter], dtype: torch.dtype) -> torch.Tensor:
        rows = sum(len(parameter) for parameter in parameters)
        copy = torch.empty(rows, *parameters[0].shape[1:], dtype=dtype, device=parameters[0].device)
        start = 0
        for parameter in parameters:
            self.masters.append(parameter)
            self.views.append(copy[start : start + len(parameter)])
            self.slices.append((len(self.copies), start, start + len(parameter)))
            start += len(parameter)
        self.copies.append(copy.requires_grad_())
        return copy

    def layer(self, number: int) -> LayerWeights:
        """Return the copies of a layer."""
        weight, bias, *after_attention = self.layers[number]
        return LayerWeights(weight, bias, tuple(after_attention))

    def transform(self) -> tuple[torch.Tensor, ...]:
        """Return the copies of the head's transform."""
        return tuple(self.transform_parameters)

    def begin_step(self) -> None:
        """Copy the parameters and clear the gradients of the last step."""
        with torch.no_grad():
            torch._foreach_copy_(self.views, [parameter.detach() for parameter in self.masters])
        for copy in self.copies:
            copy.grad = None

    def end_step(self) -> None:
        """Copy the gradients to the parameters."""
        copy_gradients = [self.copies[index].grad for index, _, _ in self.slices]
        trained = [master for master, grad in zip(self.masters, copy_gradients, strict=True) if grad is not None]
        for master in trained:
            if master.grad is None:
                master.grad = torch.empty_like(master)
        gradients = [
            grad[start:stop]
            for grad, (_, start, stop) in zip(copy_gradients, self.slices, strict=True)
            if grad is not None
        ]
        with torch.no_grad():
            torch._foreach_copy_([master.grad for master in trained], gradients)
