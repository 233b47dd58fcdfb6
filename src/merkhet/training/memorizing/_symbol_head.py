"""Output head over symbols: loss, gradients and ranks at the mask."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, NamedTuple

import torch

from merkhet.training.distributed._process_group import ProcessGroup

TOP = 10
_ALIGNED = 64
"""In half precision, the number of rows of each table is padded to a multiple of this."""
_ROWS = 1 << 16
"""Number of table rows drawn at once."""
_CELLS = {"cpu": 1 << 22}
_DEFAULT_CELLS = 1 << 26
"""Number of scores in memory at the same time during ranking; ``_CELLS`` sets it to the size of the cache on a CPU."""


class SymbolTable(torch.nn.Module):  # type: ignore[misc]
    """A vector and a bias for each symbol."""

    def __init__(self, count: int, width: int) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.empty(count, width))
        self.bias = torch.nn.Parameter(torch.zeros(count))
        torch.nn.init.normal_(self.weight, std=0.02)


def draw_table_rows(count: int, width: int, rows: slice) -> SymbolTable:
    """Return some rows of a random table of ``count`` symbols, without storing the other rows."""
    table = SymbolTable(0, width)
    drawn = torch.empty(rows.stop - rows.start, width)
    first = 0
    while first < count:
        # The last chunk may be longer: torch draws different numbers at the end of a tensor whose size is less than 16
        # or not a multiple of 16.
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
    """Weights and biases of all outputs that compete at the mask: optionally the vocabulary, then the symbols."""

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
    """Loss at the masks, and its gradient with respect to the hidden states."""

    loss: torch.Tensor
    """Cross-entropy summed over all masks."""
    state_gradients: torch.Tensor


Softmax = Callable[[torch.Tensor, torch.Tensor], tuple[torch.Tensor, torch.Tensor]]
"""Type of ``target_softmax`` and ``fusable_target_softmax``."""


def head_gradients(
    outputs: Outputs, states: torch.Tensor, targets: torch.Tensor, scale: float, softmax: Softmax, *, overwrite: bool
) -> HeadGradients:
    """Compute the summed loss at the masks, and the gradients of hidden states, weights and biases times ``scale``.

    ``targets`` are symbol indices. The gradients of weights and biases are added to the present gradients, or replace
    them with ``overwrite``.
    """
    halved = states.dtype != outputs.weights[0].dtype
    table = _JoinedTable(outputs, states.dtype) if halved else _SeparateTables(outputs)
    columns = targets + table.ranges[-1].start
    probabilities, target_scores = softmax(table.scores(states), columns)
    # The gradients are scaled later, in smaller tensors, which saves a pass over the table of scores.
    score_gradients = probabilities.scatter_add_(1, columns[:, None], torch.full_like(probabilities[:, :1], -1.0))
    state_gradients = table.backward(score_gradients).mul_(scale)
    table.accumulate(score_gradients, states * scale, overwrite)
    sums = score_gradients.sum(0, dtype=torch.float32).mul_(scale)
    for bias, span in zip(outputs.biases, table.ranges, strict=True):
        add_gradient(bias, sums[span], overwrite)
    return HeadGradients(-target_scores.sum(), state_gradients)


class _SeparateTables:
    """The weight tables of vocabulary and symbols, multiplied one after the other."""

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
    """A half-precision table with the weights of all outputs, padded to sizes that are fast on a GPU.

    The padding rows have a bias of -∞, so their probability is 0.
    """

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
    """Return the softmax of each row of ``scores``, and the log-probability of each row's target."""
    log_probabilities = torch.log_softmax(scores, dim=1)
    target_scores = log_probabilities.gather(1, targets[:, None])[:, 0].float()
    return log_probabilities.exp_(), target_scores


def fusable_target_softmax(scores: torch.Tensor, targets: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Compute :func:`target_softmax` in a form that torch's compiler fuses, without a float32 table in memory."""
    exact = scores.float()
    top = exact.amax(1)
    normalizer = top + (exact - top[:, None]).exp().sum(1).log()
    probabilities = (exact - normalizer[:, None]).exp().to(scores.dtype)
    return probabilities, scores.gather(1, targets[:, None])[:, 0].float() - normalizer


def add_gradient(parameter: torch.nn.Parameter, gradient: torch.Tensor, overwrite: bool) -> None:
    """Add ``gradient`` to the gradient of a parameter, or replace the gradient with ``overwrite``."""
    if parameter.grad is None:
        parameter.grad = gradient.to(parameter.dtype)
    elif overwrite:
        parameter.grad.copy_(gradient)
    else:
        parameter.grad.add_(gradient)


@dataclass(frozen=True)
class Ranks:
    """Ranks of the target and of the best gold answer among all outputs, for each statement of a batch."""

    target_above: torch.Tensor
    """Number of outputs with a higher score than the target."""
    target_ties: torch.Tensor
    """Number of outputs with the same score as the target, including the target."""
    best_above: torch.Tensor
    """Number of outputs with a higher score than the best gold answer."""
    best_ties: torch.Tensor
    """Number of outputs with the same score as the best gold answer, including that answer."""
    best_golds: torch.Tensor
    """Number of gold answers with the same score as the best gold answer."""
    top: torch.Tensor
    """Indices of the outputs with the highest scores."""
    top_scores: torch.Tensor
    """Log-probabilities of the outputs in ``top``."""


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
    """Rank targets and gold answers among all outputs, in float32 because half precision would create ties.

    ``targets`` and ``answers`` are indices of outputs; ``rows`` holds, for each gold answer, the index of its state.
    With ``processes``, ``outputs`` is this process's shard of ``count`` outputs, and all processes must call this
    function at the same time.
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
    """A counter of the scores that are above, or equal to, a value.

    On a CPU it compares into a float table, because summing floats is much faster there than summing booleans.
    """

    def __init__(self, rows: int, columns: int, device: torch.device) -> None:
        self.table = torch.empty(rows, columns) if device.type == "cpu" else None

    def __call__(self, compare: Any, scores: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
        out = None if self.table is None else self.table[: len(scores)]
        counts: torch.Tensor = compare(scores, values[:, None], out=out).sum(1).long()
        return counts


@dataclass(frozen=True)
class _Shard:
    """This process's share of ``count`` outputs, whose scores are ranked together with those of other processes."""

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
        """Return the fields of ``Ranks`` over all outputs; ``scores`` are those of this process's outputs."""
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
        """Return the ``top_k`` outputs with the highest scores for each state, and their log-probabilities."""
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
    """Return the positions in ``numbers`` of the outputs that belong to ``shard``, and their columns in the shard."""
    inside = torch.nonzero((numbers >= shard.start) & (numbers < shard.stop))[:, 0]
    return inside, numbers[inside] - shard.start


class ShardedHead:
    """An output head of which each process holds only its rows of the symbol table.

    Hidden states are small compared with the table, so all processes receive all states and combine their results. All
    processes must call a method at the same time.
    """

    def __init__(self, table: SymbolTable, count: int, processes: ProcessGroup) -> None:
        self.table, self.count, self.processes = table, count, processes

    def gradients(
        self, states: torch.Tensor, targets: torch.Tensor, sizes: Sequence[int], scale: float, *, overwrite: bool
    ) -> HeadGradients:
        """Return the loss and the gradients of this process's states; set the gradients of this process's symbols.

        The gradients of symbols come from the states of all processes. ``sizes`` holds the number of states of each
        process. The other arguments are those of ``head_gradients``.
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
        """Rank the targets and gold answers of all processes' states, with the same result in all processes.

        ``states`` holds this process's states, and ``sizes`` the number of states of each process. ``targets``,
        ``rows`` and ``answers`` refer to the states of all processes.
        """
        outputs = Outputs((self.table.weight,), (self.table.bias,))
        all_states = self._gather_rows(states.float(), sizes)
        return rank_symbols(
            outputs, all_states, targets, rows, answers, top_k, processes=self.processes, count=self.count
        )

    def _gather_rows(self, rows: torch.Tensor, sizes: Sequence[int]) -> torch.Tensor:
        """Return the concatenated rows of all processes, of which process i has ``sizes[i]``."""
        padded = rows.new_zeros(max(sizes), *rows.shape[1:])
        padded[: len(rows)] = rows
        return torch.cat([block[:size] for block, size in zip(self.processes.all_gather(padded), sizes, strict=True)])
