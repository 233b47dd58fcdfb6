"""Triton kernel for attention within at most 64 tokens.

Common kernels use blocks of 128 tokens, which short sentences would leave mostly empty.
"""

# mypy: disable-error-code="no-untyped-def,untyped-decorator,misc"

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl


@triton.jit
def _probabilities(query, key, positions, length, scale):
    scores = tl.dot(query, tl.trans(key)) * scale
    scores = tl.where(positions[None, :] < length, scores, float("-inf"))
    scores = tl.exp(scores - tl.max(scores, 1)[:, None])
    return scores / tl.sum(scores, 1)[:, None]


@triton.jit
def _forward(
    projected, gathered, lengths, tokens, scale, heads: tl.constexpr, width: tl.constexpr, block: tl.constexpr
):
    sentence = tl.program_id(0).to(tl.int64)
    head = tl.program_id(1)
    positions, cells = tl.arange(0, block), tl.arange(0, width)
    inside = (positions < tokens)[:, None]
    joined = projected + sentence * tokens * 3 * heads * width + head * width
    source = joined + positions[:, None] * (3 * heads * width) + cells[None, :]
    query = tl.load(source, mask=inside, other=0.0)
    key = tl.load(source + heads * width, mask=inside, other=0.0)
    value = tl.load(source + 2 * heads * width, mask=inside, other=0.0)
    weights = _probabilities(query, key, positions, tl.load(lengths + sentence), scale)
    result = tl.dot(weights.to(value.dtype), value)
    out = gathered + sentence * tokens * heads * width + head * width
    tl.store(out + positions[:, None] * (heads * width) + cells[None, :], result.to(query.dtype), mask=inside)


@triton.jit
def _backward(
    projected, upstream, gradient, lengths, tokens, scale, heads: tl.constexpr, width: tl.constexpr, block: tl.constexpr
):
    sentence = tl.program_id(0).to(tl.int64)
    head = tl.program_id(1)
    positions, cells = tl.arange(0, block), tl.arange(0, width)
    inside = (positions < tokens)[:, None]
    offset = sentence * tokens * 3 * heads * width + head * width
    offsets = positions[:, None] * (3 * heads * width) + cells[None, :]
    source = projected + offset + offsets
    query = tl.load(source, mask=inside, other=0.0)
    key = tl.load(source + heads * width, mask=inside, other=0.0)
    value = tl.load(source + 2 * heads * width, mask=inside, other=0.0)
    upstream_start = upstream + sentence * tokens * heads * width + head * width
    grad = tl.load(upstream_start + positions[:, None] * (heads * width) + cells[None, :], mask=inside, other=0.0)
    weights = _probabilities(query, key, positions, tl.load(lengths + sentence), scale)
    value_gradient = tl.dot(tl.trans(weights.to(value.dtype)), grad)
    weight_gradient = tl.dot(grad, tl.trans(value))
    score_gradient = weights * (weight_gradient - tl.sum(weights * weight_gradient, 1)[:, None]) * scale
    score_gradient = score_gradient.to(query.dtype)
    out = gradient + offset + offsets
    tl.store(out, tl.dot(score_gradient, key).to(query.dtype), mask=inside)
    tl.store(out + heads * width, tl.dot(tl.trans(score_gradient), query).to(query.dtype), mask=inside)
    tl.store(out + 2 * heads * width, value_gradient.to(query.dtype), mask=inside)


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
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor, None]:
        projected, lengths = ctx.saved_tensors
        gradient = torch.empty_like(projected)
        _launch(_backward, projected, [projected, gradients[0].contiguous(), gradient, lengths])
        return gradient, None


def _launch(kernel: Any, projected: torch.Tensor, tensors: list[torch.Tensor]) -> None:
    sentences, tokens, _, heads, width = projected.shape
    block = max(16, triton.next_power_of_2(tokens))
    kernel[(sentences, heads)](
        *tensors, tokens, width**-0.5, heads=heads, width=width, block=block, num_warps=WARPS, num_stages=1
    )


WARPS = 2
"""Number of warps (of 32 threads) for one attention head of one sentence."""


def short_attention(projected: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
    """Return the attention outputs of all tokens, of shape (sentences, tokens, heads, width).

    ``projected`` holds queries, keys and values, and has the shape (sentences, tokens, 3, heads, width).
    """
    gathered: torch.Tensor = _ShortAttention.apply(projected, lengths)
    return gathered
