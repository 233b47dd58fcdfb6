"""The weights of a fused network body: concatenated projections, optionally in half precision."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

LayerParameters = list[list[torch.nn.Parameter]]
"""The parameters of a layer; the members of an inner list are concatenated."""


def make_weights(layers: Sequence[Any], dense: Any, norm: Any, dtype: torch.dtype) -> BodyWeights:
    """Return the parameters themselves, or copies in half precision that follow them."""
    parameters = [_layer_parameters(layer) for layer in layers]
    transform = [dense.weight, dense.bias, norm.weight, norm.bias]
    if dtype == torch.float32:
        return BodyWeights(parameters, transform)
    return HalfPrecisionWeights(parameters, transform, dtype)


def _layer_parameters(layer: Any) -> LayerParameters:
    attention, after, down = layer.attention.self, layer.attention.output, layer.output
    projections = [
        [getattr(module, name) for module in (attention.query, attention.key, attention.value)]
        for name in ("weight", "bias")
    ]
    modules = (after.dense, after.LayerNorm, layer.intermediate.dense, down.dense, down.LayerNorm)
    return [*projections, *([parameter] for module in modules for parameter in (module.weight, module.bias))]


class BodyWeights:
    """The parameters of the layers and of the head's transform. ``begin_step`` and ``end_step`` enclose each step."""

    transform: Sequence[torch.Tensor]
    """Weight and bias of the dense layer and of the norm before the output vocabulary."""

    def __init__(self, layers: list[LayerParameters], transform: list[torch.nn.Parameter]) -> None:
        self.layers, self.transform = layers, transform

    def layer(self, number: int) -> Sequence[torch.Tensor]:
        """Return the weights of a layer.

        These are weight and bias of the concatenated projections (queries, keys, values), then the weights and biases
        of the modules after the attention. Concatenation in each pass costs little beside the products.
        """
        return [torch.cat(group) if len(group) > 1 else group[0] for group in self.layers[number]]

    def begin_step(self) -> None:
        """Take over the optimizer's changes."""

    def end_step(self) -> None:
        """Hand the gradients to the optimizer."""


class HalfPrecisionWeights(BodyWeights):
    """Copies in half precision that receive the gradients; parameters and their gradients stay in float32.

    All are copied at once before a step, and their gradients after it, instead of a cast for each use.
    """

    def __init__(self, layers: list[LayerParameters], transform: list[torch.nn.Parameter], dtype: torch.dtype) -> None:
        self.copies: list[torch.Tensor] = []
        self.masters: list[torch.nn.Parameter] = []
        self.views: list[torch.Tensor] = []
        self.slices: list[tuple[int, int, int]] = []
        self.layer_copies = [[self._copy(group, dtype) for group in parameters] for parameters in layers]
        self.transform = [self._copy([parameter], dtype) for parameter in transform]
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

    def layer(self, number: int) -> Sequence[torch.Tensor]:
        """Return the copies of a layer."""
        return self.layer_copies[number]

    def begin_step(self) -> None:
        """Copy the parameters and clear the gradients of the last step."""
        with torch.no_grad():
            torch._foreach_copy_(self.views, [parameter.detach() for parameter in self.masters])
        for copy in self.copies:
            copy.grad = None

    def end_step(self) -> None:
        """Copy the gradients to the parameters."""
        masters, gradients = [], []
        for master, (index, start, stop) in zip(self.masters, self.slices, strict=True):
            gradient = self.copies[index].grad
            if gradient is not None:
                master.grad = torch.empty_like(master) if master.grad is None else master.grad
                masters.append(master.grad)
                gradients.append(gradient[start:stop])
        with torch.no_grad():
            torch._foreach_copy_(masters, gradients)
