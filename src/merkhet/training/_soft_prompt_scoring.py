"""Scores of candidates that gradients flow back through: the same that a model's own scoring gives.

A question becomes lines of tokens and a list of what is read there. A masked model has one line for each number of
masks; a causal one has trees of tokens, in which the prompt and common beginnings are computed once.
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

WAYS = {
    "masked": {name: ways for name, ways in MASKED_METHODS.items() if ways[0] in ("multiple", "single")},
    "causal": {
        name: ways
        for name, ways in CAUSAL_METHODS.items()
        if ways[0] in ("given", "candidate") and ways[1] in ("mean", "sum", "first-token")
    },
}
"""Of each kind of model the methods that can be learned by, each as a way of reading and a pooling."""
USUAL = {"masked": "multiple-mean", "causal": "mean"}


@dataclass(frozen=True)
class Line:
    """A row of tokens. In a tree each token has its place in a sentence, and sees some of the others."""

    ids: IntArray
    places: IntArray | None = None
    seen: NDArray[np.bool_] | None = None


@dataclass(frozen=True)
class Asked:
    """Candidates of one question as lines of tokens, and what is read of them.

    Value i is the log-probability of token ``tokens[i]`` at column ``columns[i]`` of line ``numbers[i]``; those of
    candidate c begin at ``starts[c]`` and end before ``starts[c + 1]``.
    """

    lines: tuple[Line, ...]
    numbers: IntArray
    columns: IntArray
    tokens: IntArray
    starts: IntArray


def ask(model: MaskedModel | CausalModel, placed: TokenizedCandidates, method: str, chosen: Sequence[int]) -> Asked:
    """Some candidates of a placed list, by their numbers and in their order, ready to be scored by a method."""
    way, pooling = WAYS[model.kind][method]
    if isinstance(model, CausalModel):
        return _ask_causal(model, placed, way, pooling, chosen)
    plan = model.plan_reads([placed.windows.candidates[number] for number in chosen], way)
    lines = tuple(Line(np.array((*placed.prefix, *inner, *placed.suffix), dtype=np.int64)) for inner in plan.rows)
    return Asked(lines, plan.row_indices, plan.columns + len(placed.prefix), plan.tokens, plan.starts)


def _ask_causal(
    model: CausalModel, placed: TokenizedCandidates, part: str, pooling: str, chosen: Sequence[int]
) -> Asked:
    branches = split_shared_prefix(placed)
    prompt = (*placed.prefix, *branches.shared) or (model.start_token(),)
    sentences = [model.strip_end_tokens((*branches.sequences[n], *placed.suffix), branches.stops[n]) for n in chosen]
    lines, reads = [], {}
    for number, tree in enumerate(build_tries(sentences, NODES_PER_TRIE if model.share_prefixes else 0)):
        lines.append(_rooted(prompt, tree, model.share_prefixes))
        for place, member in enumerate(tree.sequence_ids.tolist()):
            first, last = tree.starts[place : place + 2]
            if part == "candidate":
                first, last = first + branches.starts[chosen[member]], first + branches.stops[chosen[member]]
            path = tree.paths[first : first + 1 if pooling == "first-token" else last]
            path = path[model.can_write(tree.targets[path])]
            reads[member] = np.full(len(path), number), len(prompt) + tree.sources[path], tree.targets[path]
    ordered = [reads[place] for place in range(len(chosen))]
    numbers, columns, tokens = (np.concatenate(parts).astype(np.int64) for parts in zip(*ordered, strict=True))
    starts = np.cumsum([0, *(len(one[0]) for one in ordered)])
    return Asked(tuple(lines), numbers, columns, tokens, starts)


def _rooted(prompt: tuple[int, ...], tree: TokenTrie, shared: bool) -> Line:
    """A prompt with a tree of candidates after it."""
    first, size = len(prompt), len(prompt) + len(tree.tokens)
    ids = np.concatenate([np.array(prompt, dtype=np.int64), tree.tokens])
    if not shared:
        return Line(ids)
    seen = np.zeros((size, size), dtype=np.bool_)
    seen[:first, :first] = np.tri(first, dtype=np.bool_)
    seen[first:, :first] = True
    seen[first:, first:] = tree.visible
    return Line(ids, np.concatenate([np.arange(first), first + tree.depths]), seen)


def score(
    model: MaskedModel | CausalModel, some: Sequence[Asked], method: str, *, raw: bool = False
) -> list[torch.Tensor]:
    """The scores of each question's candidates, in float32: log-probabilities pooled as the method says.

    ``raw`` pools the logits themselves, which are not comparable between masks.
    """
    lines = [line for one in some for line in one.lines]
    shifts = np.cumsum([0, *(len(one.lines) for one in some)])
    numbers = np.concatenate([one.numbers + shift for one, shift in zip(some, shifts, strict=False)])
    columns = np.concatenate([one.columns for one in some])
    # Several tokens may be read at one position: the head works there once.
    width = int(columns.max()) + 1
    positions, at = np.unique(numbers * width + columns, return_inverse=True)
    device = model.model.device

    def there(values: Any) -> torch.Tensor:
        return torch.from_numpy(np.ascontiguousarray(values)).to(device)

    early = model.pick_after if isinstance(model, MaskedModel) else None
    logits = logits_at(
        model.model, there(positions // width), there(positions % width), early, **_inputs(model, lines, there)
    )
    found = there(at.reshape(-1))
    table = logits if raw else torch.log_softmax(logits, dim=1)
    values = table[found, there(np.concatenate([one.tokens for one in some]))]
    sizes = [len(one.starts) - 1 for one in some]
    counts = np.concatenate([np.diff(one.starts) for one in some])
    pooled = _pool(values, there(counts), WAYS[model.kind][method][1])
    return list(pooled.split(sizes))


def _inputs(model: MaskedModel | CausalModel, lines: Sequence[Line], there: Any) -> dict[str, Any]:
    """Lines as a padded batch."""
    lengths = np.array([len(line.ids) for line in lines])
    longest = int(lengths.max())
    ids = np.full((len(lines), longest), model.pad if isinstance(model, MaskedModel) else 0, dtype=np.int64)
    for number, line in enumerate(lines):
        ids[number, : lengths[number]] = line.ids
    inputs: dict[str, Any] = {"input_ids": there(ids)}
    if isinstance(model, CausalModel):
        inputs["use_cache"] = False
    if lines[0].seen is None:
        if lengths.min() < longest:
            inputs["attention_mask"] = there((np.arange(longest) < lengths[:, None]).astype(np.int64))
        return inputs
    seen = np.broadcast_to(np.eye(longest, dtype=np.bool_), (len(lines), longest, longest)).copy()
    places = np.zeros((len(lines), longest), dtype=np.int64)
    for number, line in enumerate(lines):
        assert line.seen is not None and line.places is not None
        size = lengths[number]
        seen[number, :size, :size] = line.seen
        places[number, :size] = line.places
    hidden = there(~seen).unsqueeze(1)
    mask = torch.zeros(hidden.shape, dtype=model.model.dtype, device=hidden.device)
    inputs["attention_mask"] = mask.masked_fill_(hidden, torch.finfo(model.model.dtype).min)
    inputs["position_ids"] = there(places)
    return inputs


def _pool(values: torch.Tensor, counts: torch.Tensor, pooling: str) -> torch.Tensor:
    """One value a candidate, of the values that are its own."""
    if pooling in ("first", "first-token"):
        return values[torch.cumsum(counts, 0) - counts]
    owners = torch.repeat_interleave(torch.arange(len(counts), device=values.device), counts)
    empty = values.new_zeros(len(counts))
    if pooling == "max":
        return empty.scatter_reduce(0, owners, values, "amax", include_self=False)
    sums = empty.index_add(0, owners, values)
    return sums / counts if pooling == "mean" else sums
