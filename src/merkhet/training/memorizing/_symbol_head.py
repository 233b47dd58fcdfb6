"""The output head over symbols: loss, gradients and ranks at the mask."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, NamedTuple

import torch

from merkhet.training.distributed._process_group import ProcessGroup

TOP = 10
_ALIGNED = 64
"""Table sizes are padded to a multiple of this in half precision."""
_ROWS = 1 << 16
"""Number of table rows drawn at once."""
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


def draw_table_rows(count: int, width: int, rows: slice) -> SymbolTable:
    """Draw some rows of a random table of ``count`` rows without holding the others."""
    table = SymbolTable(0, width)
    drawn = torch.empty(rows.stop - rows.start, width)
    first = 0
    while first < count:
        # torch draws other numbers at the end of a chunk that is smaller than 16 or no multiple of 16.
        last = count if count - first < 2 * _ROWS else first + _ROWS
        chunk = torch.nn.init.normal_(torch.empty(last - first, width), std=0.02)
        begin, end = max(first, rows.start), min(last, rows.stop)
        if begin < end:
            drawn[begin - rows.start : end - rows.start] = chunk[begin - first : end - first]
        first = last
    table.weight = torch.nn.Parameter(drawn)
    table.bias = torch.nn.Parameter(torch.zeros(len(drawn)))
    return table


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
    """The weight tables of all outputs, each multiplied separately."""

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
    """Compute :func:`target_softmax` in a form that a compiler fuses, without a table in float32."""
    exact = scores.float()
    top = exact.amax(1)
    normalizer = top + (exact - top[:, None]).exp().sum(1).log()
    probabilities = (exact - normalizer[:, None]).exp().to(scores.dtype)
    return probabilities, scores.gather(1, targets[:, None])[:, 0].float() - normalizer


def add_gradient(parameter: torch.nn.Parameter, gradient: torch.Tensor, overwrite: bool) -> None:
    """Add a gradient to that of a parameter, or replace it."""
    if parameter.grad is None:
        parameter.grad = gradient.to(parameter.dtype)
    elif overwrite:
        parameter.grad.copy_(gradient)
    else:
        parameter.grad.add_(gradient)


@dataclass(frozen=True)
class Ranks:
    """Ranks of the target and of the best gold answer among all outputs, one row per statement, on the device."""

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

    ``targets`` and ``answers`` are indices of outputs; ``rows`` holds, for each gold answer, the index of its state.
    With ``processes``, ``outputs`` is this process's shard of ``count`` outputs, and all processes must call this
    function at once.
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


class ShardedHead:
    """This process's rows of the symbol table. All processes must call its methods at once.

    States at the masks are small beside the table, so all processes receive all states, and their results are combined.
    """

    def __init__(self, table: SymbolTable, count: int, processes: ProcessGroup) -> None:
        self.table, self.count, self.processes = table, count, processes

    def gradients(
        self, states: torch.Tensor, targets: torch.Tensor, sizes: Sequence[int], scale: float, *, overwrite: bool
    ) -> HeadGradients:
        """Return loss and gradient of this process's states; its symbols receive the gradients of all states.

        ``sizes`` are the numbers of states of all processes. The other arguments are those of ``head_gradients``.
        """
        device, table = states.device, self.table
        all_states, all_targets = self._gather_rows(states, sizes), self._gather_rows(targets, sizes)
        weight, bias = (part.detach().to(states.dtype) for part in (table.weight, table.bias))
        scores = self.processes.run_within_memory(lambda: torch.addmm(bias, all_states, weight.t()).float(), device)
        top = scores.amax(1) if len(bias) else scores.new_full((len(scores),), -torch.inf)
        self.processes.all_reduce_max(top)
        inside, columns = local_columns(all_targets, self.processes.shard(self.count))
        target_scores = torch.zeros_like(top)
        target_scores[inside] = scores[inside, columns] - top[inside]
        exponentials = self.processes.run_within_memory(lambda: scores.sub_(top[:, None]).exp_(), device)
        sums = torch.stack([exponentials.sum(1), target_scores])
        self.processes.all_reduce_sum([sums])
        total, target_scores = sums

        def backward() -> torch.Tensor:
            score_gradients = exponentials.div_(total[:, None])
            score_gradients[inside, columns] -= 1.0
            score_gradients = score_gradients.to(states.dtype)
            add_gradient(table.weight, score_gradients.t() @ (all_states * scale), overwrite)
            add_gradient(table.bias, score_gradients.sum(0, dtype=torch.float32).mul_(scale), overwrite)
            return (score_gradients @ weight).float().mul_(scale)

        state_gradients = self.processes.run_within_memory(backward, device)
        self.processes.all_reduce_sum([state_gradients])
        begin = sum(sizes[: self.processes.rank])
        local = slice(begin, begin + len(states))
        return HeadGradients((total.log() - target_scores)[local].sum(), state_gradients[local].to(states.dtype))

    def rank(
        self,
        states: torch.Tensor,
        sizes: Sequence[int],
        targets: torch.Tensor,
        rows: torch.Tensor,
        answers: torch.Tensor,
        top_k: int,
    ) -> Ranks:
        """Rank targets and gold answers of all processes' states, with the same result in all processes.

        ``states`` are those of this process; ``targets``, ``rows`` and ``answers`` are those of all processes.
        """
        outputs = Outputs((self.table.weight,), (self.table.bias,))
        all_states = self._gather_rows(states.float(), sizes)
        return rank_symbols(
            outputs, all_states, targets, rows, answers, top_k, processes=self.processes, count=self.count
        )

    def _gather_rows(self, rows: torch.Tensor, sizes: Sequence[int]) -> torch.Tensor:
        """Concatenate the rows of all processes."""
        padded = rows.new_zeros(max(sizes), *rows.shape[1:])
        padded[: len(rows)] = rows
        return torch.cat([block[:size] for block, size in zip(self.processes.all_gather(padded), sizes, strict=True)])
