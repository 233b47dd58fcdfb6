"""Dropout that belongs to the example: what is dropped hangs on a seed and the example's place in its batch alone.

Not on which other examples are read with it, how long these are, or which process reads them, as it does where numbers
are drawn one after another.
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

_ONE, _TWO = -2048144789, -1028477387
"""The factors of MurmurHash3's last steps, as signed numbers."""


@contextmanager
def example_dropout(seed: int, slots: Sequence[int]) -> Iterator[None]:
    """Within, a network drops of each example (one a row) what the seed and its slot say; all else is as it is."""
    # Whatever else should draw numbers has the same ones in all processes.
    torch.manual_seed(seed % 2**63)
    with _Dropping(torch.tensor([_signed(derived_seed(seed, slot)) for slot in slots], dtype=torch.int32)):
        yield


class _Dropping(TorchFunctionMode):  # type: ignore[misc]
    """Takes the place of the library's dropout, also of that within its attention."""

    def __init__(self, seeds: torch.Tensor) -> None:
        super().__init__()
        self.seeds, self.calls = seeds, 0

    def __torch_function__(
        self,
        called: Callable[..., Any],
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        given = dict(kwargs or {})
        if called is functional.dropout:
            return self._dropout(*args, **given)
        if called is functional.scaled_dot_product_attention and given.get("dropout_p", 0.0) > 0:
            return self._attention(*args, **given)
        return called(*args, **given)

    def _dropout(
        self, states: torch.Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
    ) -> torch.Tensor:
        if not training or p == 0:
            return states
        return states * (self._kept(states, p) if p < 1 else 0.0)

    def _attention(
        self,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        attn_mask: torch.Tensor | None = None,
        dropout_p: float = 0.0,
        is_causal: bool = False,
        scale: float | None = None,
        **others: Any,
    ) -> torch.Tensor:
        if is_causal or others.get("enable_gqa"):
            raise MerkhetError(
                "a model whose attention looks back only, or shares keys among heads, cannot be trained with dropout "
                "here; take a masked model with ordinary attention"
            )
        scores = query @ key.transpose(-2, -1) * (1 / math.sqrt(query.shape[-1]) if scale is None else scale)
        if attn_mask is not None:
            scores = scores.masked_fill(~attn_mask, -torch.inf) if attn_mask.dtype == torch.bool else scores + attn_mask
        weights = torch.softmax(scores, dim=-1, dtype=torch.float32).to(query.dtype)
        return self._dropout(weights, dropout_p) @ value

    def _kept(self, states: torch.Tensor, p: float) -> torch.Tensor:
        """What states are multiplied by: 0 in a share p of all cells, and more than 1 in the others."""
        self.calls += 1
        shape = states.shape
        if not shape or shape[0] % len(self.seeds):  # Nothing of single examples, such as positions.
            shape, seeds = torch.Size((1, *shape)), torch.zeros(1, dtype=torch.int32)
        else:  # Some networks have the heads of an example one after another.
            seeds = self.seeds
            shape = torch.Size((len(seeds), shape[0] // len(seeds), *shape[1:]))
        own = _mixed(seeds + _signed(derived_seed("dropout", self.calls))).to(states.device)
        cells = _mixed(_cells(shape[1:], states.device) ^ own.view(-1, *[1] * (len(shape) - 1)))
        kept = (cells >= round((p - 0.5) * 2**32)).view(states.shape)
        return kept.to(states.dtype).mul_(1 / (1 - p))


@lru_cache(maxsize=16)
def _cells(shape: Sequence[int], device: torch.device) -> torch.Tensor:
    """A number for each cell of a table, the same however large the table is."""
    found = torch.zeros((), dtype=torch.int32, device=device)
    for size in shape:
        place = torch.arange(size, dtype=torch.int32, device=device)
        found = _mixed(found[..., None] + _mixed(place + 1))
    return found


def _mixed(numbers: torch.Tensor) -> torch.Tensor:
    """Numbers of 32 bits made into others that look drawn."""
    numbers = (numbers ^ (numbers >> 16) & 0xFFFF) * _ONE
    numbers = (numbers ^ (numbers >> 13) & 0x7FFFF) * _TWO
    return numbers ^ (numbers >> 16) & 0xFFFF


def _signed(number: int) -> int:
    number %= 2**32
    return number - 2**32 if number >= 2**31 else number
