"""The output head over symbols: loss, gradients and ranks at the mask."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, NamedTuple

import torch

from merkhet.training.distributed._process_group import ProcessGroup

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


class HeadGradients(NamedTuple):
    """Loss of a pass over some states, and its gradient at the states."""

    loss: torch.Tensor
    """Sum of the cross-entropies."""
    state_gradients: torch.Tensor


Softmax = Callable[[torch.Tensor, torch.Tensor], tuple[torch.Tensor, torch.Tensor]]
"""``target_softmax`` or an equivalent."""


def head_gradients(
    outputs: Outputs, states: torch.Tensor, targets: torch.Tensor, scale: float, softmax: Softmax, *, overwrite: bool
) -> HeadGradients:
    """Compute the loss of symbols at the masks, and the gradients of states, weights and biases, times ``scale``.

    The gradients of weights and biases are added to the present ones, or replace them (``overwrite``).
    """
    halved = states.dtype != outputs.weights[0].dtype
    table = _JoinedTable(outputs, states.dtype) if halved else _SeparateTables(outputs)
    columns = targets + table.ranges[-1].start
    probabilities, target_scores = softmax(table.scores(states), columns)
    # Scaled later, in the smaller tensors: that saves a pass over the table of scores.
    score_gradients = probabilities.scatter_add_(1, columns[:, None], torch.full_like(probabilities[:, :1], -1.0))
    state_gradients = table.backward(score_gradients).mul_(scale)
    table.accumulate(score_gradients, states * scale, overwrite)
    sums = score_gradients.sum(0, dtype=torch.float32).mul_(scale)
    for bias, span in zip(outputs.biases, table.ranges, strict=True):
        add_gradient(bias, sums[span], overwrite)
    return HeadGradients(-target_scores.sum(), state_gradients)


class _SeparateTables:
    """The tables of all outputs, with one product each."""

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
        sizes = [-(-len(bias) // _ALIGNED) * _ALIGNED for bias in outputs.biases]
        starts = [0, *accumulate(sizes)]
        self.ranges = [slice(start, start + len(bias)) for start, bias in zip(starts, outputs.biases, strict=False)]
        example = outputs.weights[0].detach()
        self.table = torch.empty(starts[-1], example.shape[1], dtype=dtype, device=example.device)
        self.bias = torch.full((starts[-1],), -torch.inf, dtype=dtype, device=example.device)
        for number, span in enumerate(self.ranges):
            self.table[span] = outputs.weights[number].detach()
            self.bias[span] = outputs.biases[number].detach()
            self.table[span.stop : starts[number + 1]] = 0

    def scores(self, states: torch.Tensor) -> torch.Tensor:
        return torch.addmm(self.bias, states, self.table.t())

    def backward(self, score_gradients: torch.Tensor) -> torch.Tensor:
        return score_gradients @ self.table

    def accumulate(self, score_gradients: torch.Tensor, states: torch.Tensor, overwrite: bool) -> None:
        gradient = score_gradients.t() @ states
        for parameter, span in zip(self.outputs.weights, self.ranges, strict=True):
            add_gradient(parameter, gradient[span], overwrite)


def target_softmax(scores: torch.Tensor, targets: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the probabilities of each row, and the log-probability of its target."""
    log_probabilities = torch.log_softmax(scores, dim=1)
    target_scores = log_probabilities.gather(1, targets[:, None])[:, 0].float()
    return log_probabilities.exp_(), target_scores


def fusable_target_softmax(scores: torch.Tensor, targets: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Do the same in a form that a compiler fuses, without a table in float32."""
    exact = scores.float()
    top = exact.amax(1)
    normalizer = top + (exact - top[:, None]).exp().sum(1).log()
    probabilities = (exact - normalizer[:, None]).exp().to(scores.dtype)
    return probabilities, scores.gather(1, targets[:, None])[:, 0].float() - normalizer


def add_gradient(parameter: torch.nn.Parameter, gradient: torch.Tensor, overwrite: bool) -> None:
    """Add a gradient to a parameter's, or replace that."""
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
    *,
    processes: ProcessGroup | None = None,
    count: int | None = None,
) -> Ranks:
    """Rank targets and gold answers in float32; half precision would create ties.

    Args:
        outputs: the competing outputs, or this process's shard of ``count`` outputs.
        states: states at the masks.
        targets: output index of each state's target.
        rows: state of each gold answer.
        answers: output index of each gold answer.
        top_k: number of best outputs to return.
        processes: the processes that hold the shards; all must call this function at once.
        count: number of outputs of all processes.
    """
    shard = _Shard(processes or ProcessGroup(), outputs.count if count is None else count)
    weight = torch.cat([weight.detach().float() for weight in outputs.weights])
    bias = torch.cat([bias.detach().float() for bias in outputs.biases])
    size = max(1, _CELLS.get(states.device.type, _DEFAULT_CELLS) // shard.count)
    counter = _ScoreCounter(min(size, len(states)), len(bias), states.device)
    chunks = []
    for start in range(0, len(states), size):
        span = slice(start, min(start + size, len(states)))
        scores = torch.addmm(bias, states[span].float(), weight.t())
        inside = (rows >= span.start) & (rows < span.stop)
        chunk_rows, chunk_answers = rows[inside] - span.start, answers[inside]
        chunks.append(shard.rank(scores, targets[span], chunk_rows, chunk_answers, top_k, counter))
    return Ranks(*(torch.cat(parts) for parts in zip(*chunks, strict=True)))


class _ScoreCounter:
    """Counts scores above or equal to a value. On a CPU summing floats is much faster than summing booleans."""

    def __init__(self, rows: int, columns: int, device: torch.device) -> None:
        self.table = torch.empty(rows, columns) if device.type == "cpu" else None

    def __call__(self, compare: Any, scores: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
        out = None if self.table is None else self.table[: len(scores)]
        counts: torch.Tensor = compare(scores, values[:, None], out=out).sum(1).long()
        return counts


@dataclass(frozen=True)
class _Shard:
    """This process's rows of a table of ``count`` outputs."""

    processes: ProcessGroup
    count: int

    def rank(
        self,
        scores: torch.Tensor,
        targets: torch.Tensor,
        rows: torch.Tensor,
        answers: torch.Tensor,
        top_k: int,
        counter: _ScoreCounter,
    ) -> tuple[torch.Tensor, ...]:
        """Return the columns of ``Ranks`` from the scores of this process's outputs."""
        inside, columns = local_columns(targets, self.processes.shard(self.count))
        target_scores, best_scores = extremes = scores.new_full((2, len(scores)), -torch.inf)
        target_scores[inside] = scores[inside, columns]
        inside, columns = local_columns(answers, self.processes.shard(self.count))
        gold_rows = rows[inside]
        gold_scores = scores[gold_rows, columns]
        best_scores.scatter_reduce_(0, gold_rows, gold_scores, "amax")
        self.processes.all_reduce_max(extremes)
        is_best = (gold_scores == best_scores[gold_rows]).to(targets.dtype)
        best_golds = torch.zeros_like(targets).scatter_add_(0, gold_rows, is_best)
        counts = [counter(compare, scores, values) for values in extremes for compare in (torch.gt, torch.eq)]
        stacked = torch.stack([*counts, best_golds])
        self.processes.all_reduce_sum([stacked])
        return (*stacked, *self._top(scores, min(top_k, self.count)))

    def _top(self, scores: torch.Tensor, top_k: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the best outputs of each state, and their log-probabilities."""
        best = torch.topk(scores, min(top_k, scores.shape[1]), dim=1)
        if not top_k or not self.processes.distributed:
            normalizer = torch.logsumexp(scores, dim=1)[:, None] if top_k else 0.0
            return best.indices, best.values - normalizer
        values = scores.new_full((len(scores), top_k), -torch.inf)
        numbers = torch.zeros_like(values, dtype=torch.long)
        values[:, : best.values.shape[1]] = best.values
        numbers[:, : best.values.shape[1]] = best.indices + self.processes.shard(self.count).start
        best = torch.topk(torch.cat(self.processes.all_gather(values), dim=1), top_k, dim=1)
        top = torch.cat(self.processes.all_gather(numbers), dim=1).gather(1, best.indices)
        maximum = best.values[:, 0].clone()
        total = (scores - maximum[:, None]).exp_().sum(1)
        self.processes.all_reduce_sum([total])
        return top, best.values - (maximum + total.log())[:, None]


def local_columns(numbers: torch.Tensor, shard: slice) -> tuple[torch.Tensor, torch.Tensor]:
    """Return which of some outputs are in a shard of a table, and their columns there."""
    inside = torch.nonzero((numbers >= shard.start) & (numbers < shard.stop))[:, 0]
    return inside, numbers[inside] - shard.start
