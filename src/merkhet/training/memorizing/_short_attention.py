"""A kernel for attention within sentences of up to 64 tokens; the usual ones work on blocks of 128, mostly empty."""

# mypy: disable-error-code="no-untyped-def,untyped-decorator,misc"

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl


@triton.jit
def _probabilities(query, key, places, length, scale):
    scores = tl.dot(query, tl.trans(key)) * scale
    scores = tl.where(places[None, :] < length, scores, float("-inf"))
    scores = tl.exp(scores - tl.max(scores, 1)[:, None])
    return scores / tl.sum(scores, 1)[:, None]


@triton.jit
def _forward(
    projected, gathered, lengths, tokens, scale, heads: tl.constexpr, width: tl.constexpr, block: tl.constexpr
):
    sentence = tl.program_id(0).to(tl.int64)
    head = tl.program_id(1)
    places, cells = tl.arange(0, block), tl.arange(0, width)
    there = (places < tokens)[:, None]
    joined = projected + sentence * tokens * 3 * heads * width + head * width
    at = joined + places[:, None] * (3 * heads * width) + cells[None, :]
    query = tl.load(at, mask=there, other=0.0)
    key = tl.load(at + heads * width, mask=there, other=0.0)
    value = tl.load(at + 2 * heads * width, mask=there, other=0.0)
    weights = _probabilities(query, key, places, tl.load(lengths + sentence), scale)
    result = tl.dot(weights.to(value.dtype), value)
    out = gathered + sentence * tokens * heads * width + head * width
    tl.store(out + places[:, None] * (heads * width) + cells[None, :], result.to(query.dtype), mask=there)


@triton.jit
def _backward(
    projected, given, wanted, lengths, tokens, scale, heads: tl.constexpr, width: tl.constexpr, block: tl.constexpr
):
    sentence = tl.program_id(0).to(tl.int64)
    head = tl.program_id(1)
    places, cells = tl.arange(0, block), tl.arange(0, width)
    there = (places < tokens)[:, None]
    offset = sentence * tokens * 3 * heads * width + head * width
    inside = places[:, None] * (3 * heads * width) + cells[None, :]
    at = projected + offset + inside
    query = tl.load(at, mask=there, other=0.0)
    key = tl.load(at + heads * width, mask=there, other=0.0)
    value = tl.load(at + 2 * heads * width, mask=there, other=0.0)
    from_above = given + sentence * tokens * heads * width + head * width
    grad = tl.load(from_above + places[:, None] * (heads * width) + cells[None, :], mask=there, other=0.0)
    weights = _probabilities(query, key, places, tl.load(lengths + sentence), scale)
    of_value = tl.dot(tl.trans(weights.to(value.dtype)), grad)
    of_weights = tl.dot(grad, tl.trans(value))
    of_scores = weights * (of_weights - tl.sum(weights * of_weights, 1)[:, None]) * scale
    of_scores = of_scores.to(query.dtype)
    out = wanted + offset + inside
    tl.store(out, tl.dot(of_scores, key).to(query.dtype), mask=there)
    tl.store(out + heads * width, tl.dot(tl.trans(of_scores), query).to(query.dtype), mask=there)
    tl.store(out + 2 * heads * width, of_value.to(query.dtype), mask=there)


class _ShortAttention(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, projected: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        projected = projected.contiguous()
        ctx.save_for_backward(projected, lengths)
        sentences, tokens, _, heads, width = projected.shape
        gathered = torch.empty((sentences, tokens, heads, width), dtype=projected.dtype, device=projected.device)
        _launch(_forward, projected, [projected, gathered, lengths])
        return gathered

    @staticmethod
    def backward(ctx: Any, *given: torch.Tensor) -> tuple[torch.Tensor, None]:
        projected, lengths = ctx.saved_tensors
        wanted = torch.empty_like(projected)
        _launch(_backward, projected, [projected, given[0].contiguous(), wanted, lengths])
        return wanted, None


def _launch(kernel: Any, projected: torch.Tensor, tensors: list[torch.Tensor]) -> None:
    sentences, tokens, _, heads, width = projected.shape
    block = max(16, triton.next_power_of_2(tokens))
    kernel[(sentences, heads)](
        *tensors, tokens, width**-0.5, heads=heads, width=width, block=block, num_warps=WARPS, num_stages=1
    )


WARPS = 2
"""Groups of 32 threads that work on one head of one sentence."""


def short_attention(projected: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
    """Attention of joined projections (sentences, tokens, 3, heads, width) within sentences of these lengths."""
    gathered: torch.Tensor = _ShortAttention.apply(projected, lengths)
    return gathered
