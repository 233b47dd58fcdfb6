"""The output head over symbols: loss and gradients in one pass at the mask, ranks without leaving the device."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import torch

TOP = 10
_ALIGNED = 64
"""Table sizes are padded to a multiple of this in half precision."""
_CELLS = {"cpu": 1 << 22}
_DEFAULT_CELLS = 1 << 26
"""Number of scores held at once while ranking; on a CPU as many as fit its cache."""


class SymbolTable(torch.nn.Module):  # type: ignore[misc]
    """A vector and a bias for each symbol."""

    def __init__(self, count: int, width: int) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.empty(count, width))
        self.bias = torch.nn.Parameter(torch.zeros(count))
        torch.nn.init.normal_(self.weight, std=0.02)


@dataclass(frozen=True)
class Outputs:
    """The output rows that compete at the mask: optionally the vocabulary, then the symbols."""

    weights: tuple[torch.nn.Parameter, ...]
    biases: tuple[torch.nn.Parameter, ...]

    @property
    def count(self) -> int:
        """Number of competing outputs."""
        return sum(len(bias) for bias in self.biases)

    @property
    def offset(self) -> int:
        """Index of the first symbol among all outputs."""
        return self.count - len(self.biases[-1])


@dataclass(frozen=True)
class HeadGradients:
    """Loss of a pass over some states, and its gradient at the states."""

    loss: torch.Tensor
    """Sum of the cross-entropies."""
    state_gradients: torch.Tensor
    correct: torch.Tensor
    """Number of targets with the highest score."""


Softmax = Callable[[torch.Tensor, torch.Tensor], tuple[torch.Tensor, torch.Tensor, torch.Tensor]]
"""``target_softmax`` or an equivalent."""


def head_gradients(
    outputs: Outputs, states: torch.Tensor, targets: torch.Tensor, scale: float, softmax: Softmax, *, overwrite: bool
) -> HeadGradients:
    """Compute loss and gradients from one table of scores.

    Args:
        outputs: the competing outputs; their weights and biases receive gradients.
        states: states at the masks.
        targets: symbol numbers.
        scale: factor of all gradients.
        softmax: ``target_softmax`` or an equivalent.
        overwrite: replace the gradients of weights and biases instead of adding to them.
    """
    halved = states.dtype != outputs.weights[0].dtype
    table = _JoinedTable(outputs, states.dtype) if halved else _SeparateTables(outputs)
    columns = targets + table.ranges[-1].start
    probabilities, target_scores, top = softmax(table.scores(states), columns)
    # Scaled later, in the smaller tensors: that saves a pass over the table of scores.
    score_gradients = probabilities.scatter_add_(1, columns[:, None], torch.full_like(probabilities[:, :1], -1.0))
    state_gradients = table.backward(score_gradients).mul_(scale)
    table.accumulate(score_gradients, states * scale, overwrite)
    sums = score_gradients.sum(0, dtype=torch.float32).mul_(scale)
    for bias, span in zip(outputs.biases, table.ranges, strict=True):
        _accumulate(bias, sums[span], overwrite)
    return HeadGradients(-target_scores.sum(), state_gradients, (target_scores >= top).sum())


class _SeparateTables:
    """The tables of all outputs as they are, with one product each."""

    def __init__(self, outputs: Outputs) -> None:
        self.outputs, self.weights = outputs, [weight.detach() for weight in outputs.weights]
        ends = list(accumulate(len(bias) for bias in outputs.biases))
        self.ranges = [slice(end - len(bias), end) for end, bias in zip(ends, outputs.biases, strict=True)]

    def scores(self, states: torch.Tensor) -> torch.Tensor:
        scores = states.new_empty(len(states), self.outputs.count)
        for weight, bias, span in zip(self.weights, self.outputs.biases, self.ranges, strict=True):
            torch.addmm(bias.detach(), states, weight.t(), out=scores[:, span])
        return scores

    def backward(self, score_gradients: torch.Tensor) -> torch.Tensor:
        state_gradients = score_gradients[:, self.ranges[0]] @ self.weights[0]
        for weight, span in zip(self.weights[1:], self.ranges[1:], strict=True):
            state_gradients.addmm_(score_gradients[:, span], weight)
        return state_gradients

    def accumulate(self, score_gradients: torch.Tensor, states: torch.Tensor, overwrite: bool) -> None:
        for parameter, span in zip(self.outputs.weights, self.ranges, strict=True):
            block = score_gradients[:, span].t()
            if parameter.grad is None:
                parameter.grad = block @ states
            elif overwrite:
                torch.mm(block, states, out=parameter.grad)
            else:
                parameter.grad.addmm_(block, states)


class _JoinedTable:
    """One table in half precision, padded with rows that never win to sizes that are fast on a GPU."""

    def __init__(self, outputs: Outputs, dtype: torch.dtype) -> None:
        self.outputs = outputs
        self.ranges: list[slice] = []
        size = 0
        for bias in outputs.biases:
            self.ranges.append(slice(size, size + len(bias)))
            size += -(-len(bias) // _ALIGNED) * _ALIGNED
        example = outputs.weights[0].detach()
        self.table = torch.empty(size, example.shape[1], dtype=dtype, device=example.device)
        self.bias = torch.full((size,), -torch.inf, dtype=dtype, device=example.device)
        for number, span in enumerate(self.ranges):
            self.table[span] = outputs.weights[number].detach()
            self.bias[span] = outputs.biases[number].detach()
            self.table[span.stop : span.start + -(-(span.stop - span.start) // _ALIGNED) * _ALIGNED] = 0

    def scores(self, states: torch.Tensor) -> torch.Tensor:
        return torch.addmm(self.bias, states, self.table.t())

    def backward(self, score_gradients: torch.Tensor) -> torch.Tensor:
        return score_gradients @ self.table

    def accumulate(self, score_gradients: torch.Tensor, states: torch.Tensor, overwrite: bool) -> None:
        gradient = score_gradients.t() @ states
        for parameter, span in zip(self.outputs.weights, self.ranges, strict=True):
            _accumulate(parameter, gradient[span], overwrite)


def target_softmax(scores: torch.Tensor, targets: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return the probabilities of each row, and the log-probabilities of its target and of its maximum."""
    log_probabilities = torch.log_softmax(scores, dim=1)
    target_scores, top = log_probabilities.gather(1, targets[:, None])[:, 0].float(), log_probabilities.amax(1).float()
    return log_probabilities.exp_(), target_scores, top


def fusable_target_softmax(
    scores: torch.Tensor, targets: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """The same in a form that a compiler fuses, without a table in float32."""
    exact = scores.float()
    top = exact.amax(1)
    normaliser = top + (exact - top[:, None]).exp().sum(1).log()
    probabilities = (exact - normaliser[:, None]).exp().to(scores.dtype)
    target_scores = scores.gather(1, targets[:, None])[:, 0].float()
    return probabilities, target_scores - normaliser, top - normaliser


def _accumulate(parameter: torch.nn.Parameter, gradient: torch.Tensor, overwrite: bool) -> None:
    if parameter.grad is None:
        parameter.grad = gradient.to(parameter.dtype)
    elif overwrite:
        parameter.grad.copy_(gradient)
    else:
        parameter.grad.add_(gradient)


@dataclass(frozen=True)
class Ranks:
    """Ranks of the target and of the best gold answer among all outputs, one row a statement, on the device."""

    target_above: torch.Tensor
    """Number of outputs with a higher score than the target."""
    target_ties: torch.Tensor
    """Number of outputs with the target's score, itself included."""
    best_above: torch.Tensor
    """Number of outputs with a higher score than the best gold answer."""
    best_ties: torch.Tensor
    """Number of outputs with the score of the best gold answer."""
    best_golds: torch.Tensor
    """Number of gold answers with that score."""
    top: torch.Tensor
    """The best outputs."""
    top_scores: torch.Tensor
    """Their log-probabilities."""


def rank_symbols(
    outputs: Outputs,
    states: torch.Tensor,
    targets: torch.Tensor,
    rows: torch.Tensor,
    answers: torch.Tensor,
    top_k: int = TOP,
) -> Ranks:
    """Rank targets and gold answers in float32; half precision would create ties.

    Args:
        outputs: the competing outputs.
        states: states at the masks.
        targets: output index of each state's target.
        rows: state of each gold answer.
        answers: output index of each gold answer.
        top_k: number of best outputs to return.
    """
    weight = torch.cat([weight.detach().float() for weight in outputs.weights])
    bias = torch.cat([bias.detach().float() for bias in outputs.biases])
    chunks = []
    size = states_per_pass(states.device, outputs.count)
    counter = ScoreCounter(min(size, len(states)), outputs.count, states.device)
    for start in range(0, len(states), size):
        span = slice(start, min(start + size, len(states)))
        scores = torch.addmm(bias, states[span].float(), weight.t())
        inside = (rows >= span.start) & (rows < span.stop)
        chunks.append(_rank_chunk(scores, targets[span], rows[inside] - span.start, answers[inside], top_k, counter))
    return Ranks(*(torch.cat(parts) for parts in zip(*chunks, strict=True)))


def states_per_pass(device: torch.device, count: int) -> int:
    """Return how many states are ranked at once among ``count`` outputs."""
    return max(1, _CELLS.get(device.type, _DEFAULT_CELLS) // count)


class ScoreCounter:
    """Counts scores above or equal to a value. On a CPU summing floats is much faster than summing booleans."""

    def __init__(self, rows: int, columns: int, device: torch.device) -> None:
        self.table = torch.empty(rows, columns) if device.type == "cpu" else None

    def above(self, scores: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
        """Count the scores of each row above its value."""
        return self._count(torch.gt, scores, values)

    def equal(self, scores: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
        """Count the scores of each row equal to its value."""
        return self._count(torch.eq, scores, values)

    def _count(self, compare: Any, scores: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
        out = None if self.table is None else self.table[: len(scores)]
        counts: torch.Tensor = compare(scores, values[:, None], out=out).sum(1).long()
        return counts


def _rank_chunk(
    scores: torch.Tensor,
    targets: torch.Tensor,
    rows: torch.Tensor,
    answers: torch.Tensor,
    top_k: int,
    counter: ScoreCounter,
) -> tuple[torch.Tensor, ...]:
    target_scores = scores.gather(1, targets[:, None])[:, 0]
    gold_scores = scores[rows, answers]
    best_scores = torch.full_like(target_scores, -torch.inf).scatter_reduce(0, rows, gold_scores, "amax")
    best_golds = torch.zeros_like(targets).scatter_add(0, rows, (gold_scores == best_scores[rows]).to(targets.dtype))
    top = torch.topk(scores, min(top_k, scores.shape[1]), dim=1)
    normaliser = torch.logsumexp(scores, dim=1)[:, None] if top_k else 0.0
    return (
        counter.above(scores, target_scores),
        counter.equal(scores, target_scores),
        counter.above(scores, best_scores),
        counter.equal(scores, best_scores),
        best_golds,
        top.indices,
        top.values - normaliser,
    )
