"""Differentiable candidate scores, equal to the scores that the models compute without gradients.

A question becomes token sequences, and a list of the positions and tokens whose log-probabilities are needed. For a
masked model there is one sequence for each number of masks. For a causal model the sequences are token tries, in which
the prompt and common prefixes of candidates are computed once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from merkhet.models.causal import METHODS as CAUSAL_METHODS
from merkhet.models.causal import NODES_PER_TRIE, CausalModel, split_shared_prefix
from merkhet.models.lm_head import logits_at
from merkhet.models.masked import METHODS as MASKED_METHODS
from merkhet.models.masked import MaskedModel
from merkhet.models.protocol import IntArray
from merkhet.models.token_trie import TokenTrie, build_tries
from merkhet.models.tokenize_candidates import TokenizedCandidates
from merkhet.training._token_rows import pad_rows

TRAINABLE_METHODS = {
    "masked": {name: ways for name, ways in MASKED_METHODS.items() if ways[0] in ("multiple", "single")},
    "causal": {
        name: ways
        for name, ways in CAUSAL_METHODS.items()
        if ways[0] in ("given", "candidate") and ways[1] in ("mean", "sum", "first-token")
    },
}
"""Differentiable scoring methods by kind of model.

Each method is a pair: which tokens are scored in which context, and how their log-probabilities are pooled.
"""
DEFAULT_METHODS = {"masked": "multiple-mean", "causal": "mean"}


@dataclass(frozen=True)
class TokenSequence:
    """A sequence of tokens, or a prompt followed by a token trie."""

    ids: IntArray
    positions: IntArray | None = None
    """In a trie, the position of each token in its sentence; else None."""
    attention: NDArray[np.bool_] | None = None
    """In a trie, whether the token of a row attends to the token of a column; else None."""


@dataclass(frozen=True)
class ScoringPlan:
    """The token sequences of one question's candidates, and the log-probabilities to read from them.

    Value i is the log-probability of ``tokens[i]`` at position ``columns[i]`` of sequence ``numbers[i]``.
    """

    sequences: tuple[TokenSequence, ...]
    numbers: IntArray
    columns: IntArray
    tokens: IntArray
    starts: IntArray
    """Index of each candidate's first value, and the total number of values."""


def plan_scoring(
    model: MaskedModel | CausalModel, tokenized: TokenizedCandidates, method: str, candidates: Sequence[int]
) -> ScoringPlan:
    """Plan the scoring of the candidates of a question whose indices are in ``candidates``.

    The scores will have the order of ``candidates``.
    """
    reading, pooling = TRAINABLE_METHODS[model.kind][method]
    if isinstance(model, CausalModel):
        return _plan_causal(model, tokenized, reading, pooling, candidates)
    plan = model.plan_reads([tokenized.windows.candidates[candidate] for candidate in candidates], reading)
    sequences = tuple(
        TokenSequence(np.array((*tokenized.prefix, *window, *tokenized.suffix), dtype=np.int64)) for window in plan.rows
    )
    row_indices, columns, tokens = plan.reads
    return ScoringPlan(sequences, row_indices, columns + len(tokenized.prefix), tokens, plan.starts)


def _plan_causal(
    model: CausalModel, tokenized: TokenizedCandidates, reading: str, pooling: str, candidates: Sequence[int]
) -> ScoringPlan:
    branches = split_shared_prefix(tokenized)
    prompt = (*tokenized.prefix, *branches.shared) or (model.start_token(),)
    sentences = [
        model.strip_end_tokens((*branches.sequences[n], *tokenized.suffix), branches.stops[n]) for n in candidates
    ]
    sequences, reads = [], {}
    for number, trie in enumerate(build_tries(sentences, NODES_PER_TRIE if model.share_prefixes else 0)):
        sequences.append(_attach_trie(prompt, trie, model.share_prefixes))
        for index, member in enumerate(trie.sequence_ids.tolist()):
            first, last = trie.starts[index : index + 2]
            if reading == "candidate":
                first, last = first + branches.starts[candidates[member]], first + branches.stops[candidates[member]]
            path = trie.paths[first : first + 1 if pooling == "first-token" else last]
            path = path[model.can_write(trie.targets[path])]
            reads[member] = np.full(len(path), number), len(prompt) + trie.sources[path], trie.targets[path]
    ordered = [reads[member] for member in range(len(candidates))]
    numbers, columns, tokens = (np.concatenate(parts).astype(np.int64) for parts in zip(*ordered, strict=True))
    starts = np.cumsum([0, *(len(read[0]) for read in ordered)])
    return ScoringPlan(tuple(sequences), numbers, columns, tokens, starts)


def _attach_trie(prompt: tuple[int, ...], trie: TokenTrie, shared: bool) -> TokenSequence:
    """Return a prompt followed by a trie of candidates; ``shared`` is False if the trie is one plain sequence."""
    prompt_length, size = len(prompt), len(prompt) + len(trie.tokens)
    ids = np.concatenate([np.array(prompt, dtype=np.int64), trie.tokens])
    if not shared:
        return TokenSequence(ids)
    attention = np.zeros((size, size), dtype=np.bool_)
    attention[:prompt_length, :prompt_length] = np.tri(prompt_length, dtype=np.bool_)
    attention[prompt_length:, :prompt_length] = True
    attention[prompt_length:, prompt_length:] = trie.visible
    return TokenSequence(ids, np.concatenate([np.arange(prompt_length), prompt_length + trie.depths]), attention)


def score_candidates(
    model: MaskedModel | CausalModel, plans: Sequence[ScoringPlan], method: str, *, raw: bool = False
) -> list[torch.Tensor]:
    """Return the candidate scores of each question in float32: log-probabilities, pooled by the method.

    With ``raw``, pool logits instead. Logits are not comparable between mask positions.
    """
    sequences = [sequence for plan in plans for sequence in plan.sequences]
    offsets = np.cumsum([0, *(len(plan.sequences) for plan in plans)])
    numbers = np.concatenate([plan.numbers + offset for plan, offset in zip(plans, offsets, strict=False)])
    columns = np.concatenate([plan.columns for plan in plans])
    # Several tokens may be read at one position; the language-model head should run there only once.
    width = int(columns.max()) + 1
    positions, position_of_value = np.unique(numbers * width + columns, return_inverse=True)
    device = model.model.device

    def to_device(values: Any) -> torch.Tensor:
        return torch.from_numpy(np.ascontiguousarray(values)).to(device)

    pick_after = model.pick_after if isinstance(model, MaskedModel) else None
    inputs = _inputs(model, sequences, to_device)
    logits = logits_at(model.model, to_device(positions // width), to_device(positions % width), pick_after, **inputs)
    table = logits if raw else torch.log_softmax(logits, dim=1)
    tokens = np.concatenate([plan.tokens for plan in plans])
    values = table[to_device(position_of_value.reshape(-1)), to_device(tokens)]
    counts = np.concatenate([np.diff(plan.starts) for plan in plans])
    pooled = _pool(values, to_device(counts), TRAINABLE_METHODS[model.kind][method][1])
    return list(pooled.split([len(plan.starts) - 1 for plan in plans]))


def _inputs(model: MaskedModel | CausalModel, sequences: Sequence[TokenSequence], to_device: Any) -> dict[str, Any]:
    """Return the network inputs of ``sequences``, padded to one length."""
    lengths = np.array([len(sequence.ids) for sequence in sequences])
    longest = int(lengths.max())
    ids = pad_rows([sequence.ids for sequence in sequences], model.pad if isinstance(model, MaskedModel) else 0)
    inputs: dict[str, Any] = {"input_ids": to_device(ids)}
    if isinstance(model, CausalModel):
        inputs["use_cache"] = False
    if sequences[0].attention is None:
        if lengths.min() < longest:
            inputs["attention_mask"] = to_device((np.arange(longest) < lengths[:, None]).astype(np.int64))
        return inputs
    attention = np.broadcast_to(np.eye(longest, dtype=np.bool_), (len(sequences), longest, longest)).copy()
    positions = np.zeros((len(sequences), longest), dtype=np.int64)
    for row, sequence in enumerate(sequences):
        assert sequence.attention is not None and sequence.positions is not None
        size = lengths[row]
        attention[row, :size, :size] = sequence.attention
        positions[row, :size] = sequence.positions
    hidden = to_device(~attention).unsqueeze(1)
    mask = torch.zeros(hidden.shape, dtype=model.model.dtype, device=hidden.device)
    inputs["attention_mask"] = mask.masked_fill_(hidden, torch.finfo(model.model.dtype).min)
    inputs["position_ids"] = to_device(positions)
    return inputs


def _pool(values: torch.Tensor, counts: torch.Tensor, pooling: str) -> torch.Tensor:
    """Pool the values of each candidate into one score; candidate i has ``counts[i]`` consecutive values."""
    if pooling in ("first", "first-token"):
        return values[torch.cumsum(counts, 0) - counts]
    candidates = torch.repeat_interleave(torch.arange(len(counts), device=values.device), counts)
    zeros = values.new_zeros(len(counts))
    if pooling == "max":
        return zeros.scatter_reduce(0, candidates, values, "amax", include_self=False)
    sums = zeros.index_add(0, candidates, values)
    return sums / counts if pooling == "mean" else sums
