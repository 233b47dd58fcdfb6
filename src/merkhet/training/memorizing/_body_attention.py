"""Attention within short sentences: on CUDA one small kernel a head that reads the joined projections in place."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch.nn import functional

LONGEST_IN_KERNEL = 64


def attend(projected: torch.Tensor, lengths: torch.Tensor | None) -> torch.Tensor:
    """What each token gathers from all tokens of its sentence.

    ``projected`` is (sentences, tokens, 3, heads, width): queries, keys and values; ``lengths`` says how many tokens
    each sentence has, where some are padding. The result is (sentences × tokens, heads × width).
    """
    sentences, tokens, _, heads, width = projected.shape
    kernel = _kernel(projected, tokens, width)
    if kernel is not None:
        if lengths is None:
            lengths = torch.full((sentences,), tokens, dtype=torch.int32, device=projected.device)
        gathered: torch.Tensor = kernel(projected, lengths)
        return gathered.view(sentences * tokens, heads * width)
    query, key, value = projected.permute(2, 0, 3, 1, 4).unbind(0)
    there = None
    if lengths is not None:
        there = (torch.arange(tokens, device=projected.device)[None, :] < lengths[:, None])[:, None, None, :]
    gathered = functional.scaled_dot_product_attention(query, key, value, attn_mask=there)
    return gathered.transpose(1, 2).reshape(sentences * tokens, heads * width)


def attend_from_one(query: torch.Tensor, projected: torch.Tensor, lengths: torch.Tensor | None) -> torch.Tensor:
    """What one token of each sentence gathers: its query (sentences, heads, width), keys and values of all tokens.

    ``projected`` is (sentences, tokens, 2, heads, width). The result is (sentences, heads × width).
    """
    sentences, tokens, _, heads, width = projected.shape
    key, value = projected.unbind(2)
    scores = (query[:, None].float() * key.float()).sum(-1) / math.sqrt(width)
    if lengths is not None:
        absent = torch.arange(tokens, device=projected.device)[None, :] >= lengths[:, None]
        scores = scores.masked_fill(absent[:, :, None], -torch.inf)
    weights = torch.softmax(scores, dim=1)
    gathered = (weights[..., None] * value.float()).sum(1)
    return gathered.to(query.dtype).reshape(sentences, heads * width)


def _kernel(projected: torch.Tensor, tokens: int, width: int) -> Any:
    """The kernel for such sentences, where there is one."""
    small = tokens <= LONGEST_IN_KERNEL and width in (16, 32, 64, 128)
    if not small or projected.device.type != "cuda" or projected.dtype != torch.bfloat16:
        return None
    try:
        from merkhet.training.memorizing._short_attention import short_attention
    except ImportError:  # No compiler for kernels: the library's own attention will do.
        return None
    return short_attention
