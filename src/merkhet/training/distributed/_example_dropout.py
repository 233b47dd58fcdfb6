"""Dropout that depends only on a seed and on the index of the example in its batch.

Dropout from a single random stream would also depend on the other examples, on their lengths and on the process.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

import torch
from torch.nn import functional
from torch.overrides import TorchFunctionMode

from merkhet.core.errors import MerkhetError
from merkhet.core.ids import derived_seed

_FIRST_FACTOR, _SECOND_FACTOR = -2048144789, -1028477387
"""Factors of MurmurHash3's finalizer, as signed 32-bit integers."""


@contextmanager
def example_dropout(seed: int, slots: Sequence[int]) -> Iterator[None]:
    """Draw the dropout of each example from the seed and its batch index, within a ``with`` block.

    ``slots`` holds the batch index of each row of the network's input. Torch's generator is seeded too, so other random
    numbers are the same in all processes.
    """
    torch.manual_seed(seed % 2**63)
    with _DropoutMode(torch.tensor([_to_int32(derived_seed(seed, slot)) for slot in slots], dtype=torch.int32)):
        yield


class _DropoutMode(TorchFunctionMode):  # type: ignore[misc]
    """A mode that replaces torch's dropout, including the dropout within its attention function."""

    def __init__(self, seeds: torch.Tensor) -> None:
        super().__init__()
        self.seeds, self.calls = seeds, 0

    def __torch_function__(
        self,
        function: Callable[..., Any],
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        options = dict(kwargs or {})
        if function is functional.dropout:
            return self._dropout(*args, **options)
        if function is functional.scaled_dot_product_attention and options.get("dropout_p", 0.0) > 0:
            return self._attention(*args, **options)
        return function(*args, **options)

    def _dropout(
        self, states: torch.Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
    ) -> torch.Tensor:
        if not training or p == 0:
            return states
        return states * (self._multipliers(states, p) if p < 1 else 0.0)

    def _attention(
        self,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        attn_mask: torch.Tensor | None = None,
        dropout_p: float = 0.0,
        is_causal: bool = False,
        scale: float | None = None,
        **options: Any,
    ) -> torch.Tensor:
        if is_causal or options.get("enable_gqa"):
            raise MerkhetError(
                "a model with causal or grouped-query attention cannot be trained with dropout here; use a masked "
                "model with ordinary attention"
            )
        scores = query @ key.transpose(-2, -1) * (1 / math.sqrt(query.shape[-1]) if scale is None else scale)
        if attn_mask is not None:
            scores = scores.masked_fill(~attn_mask, -torch.inf) if attn_mask.dtype == torch.bool else scores + attn_mask
        weights = torch.softmax(scores, dim=-1, dtype=torch.float32).to(query.dtype)
        return self._dropout(weights, dropout_p) @ value

    def _multipliers(self, states: torch.Tensor, p: float) -> torch.Tensor:
        """Return a factor for each element of ``states``: 0 with probability ``p``, else 1 / (1 - p)."""
        self.calls += 1
        shape = states.shape
        if not shape or shape[0] % len(self.seeds):  # The states are shared by all examples, like position embeddings.
            shape, seeds = torch.Size((1, *shape)), torch.zeros(1, dtype=torch.int32)
        else:  # Some networks fold the heads of an example into the rows.
            seeds = self.seeds
            shape = torch.Size((len(seeds), shape[0] // len(seeds), *shape[1:]))
        call_seeds = _mix(seeds + _to_int32(derived_seed("dropout", self.calls))).to(states.device)
        cells = _mix(_cell_numbers(shape[1:], states.device) ^ call_seeds.view(-1, *[1] * (len(shape) - 1)))
        is_kept = (cells >= round((p - 0.5) * 2**32)).view(states.shape)
        return is_kept.to(states.dtype).mul_(1 / (1 - p))


@lru_cache(maxsize=16)
def _cell_numbers(shape: Sequence[int], device: torch.device) -> torch.Tensor:
    """Return a hash of the index of each element of a tensor, which does not depend on the shape of the tensor."""
    numbers = torch.zeros((), dtype=torch.int32, device=device)
    for size in shape:
        indices = torch.arange(size, dtype=torch.int32, device=device)
        numbers = _mix(numbers[..., None] + _mix(indices + 1))
    return numbers


def _mix(numbers: torch.Tensor) -> torch.Tensor:
    """Hash 32-bit integers to pseudorandom 32-bit integers."""
    numbers = (numbers ^ (numbers >> 16) & 0xFFFF) * _FIRST_FACTOR
    numbers = (numbers ^ (numbers >> 13) & 0x7FFFF) * _SECOND_FACTOR
    return numbers ^ (numbers >> 16) & 0xFFFF


def _to_int32(number: int) -> int:
    number %= 2**32
    return number - 2**32 if number >= 2**31 else number
