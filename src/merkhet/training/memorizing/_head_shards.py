"""The output head in shards: each process holds and scores its rows of the symbol table.

States at the masks are small beside the table, so all processes receive all states, and their results are combined.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from merkhet.training.distributed._process_group import ProcessGroup
from merkhet.training.memorizing._symbol_head import HeadGradients, Ranks, ScoreCounter, SymbolTable, states_per_pass

_ROWS = 1 << 16
"""Number of table rows drawn at once."""


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


class ShardedHead:
    """This process's rows of the symbol table. All processes must call its methods at once."""

    def __init__(self, table: SymbolTable, count: int, processes: ProcessGroup) -> None:
        self.table, self.count, self.processes = table, count, processes
        self.rows = processes.shard(count)

    def gradients(
        self, states: torch.Tensor, targets: torch.Tensor, sizes: Sequence[int], scale: float, *, overwrite: bool
    ) -> HeadGradients:
        """Return loss and gradient of this process's states; its symbols receive the gradients of all states.

        Args:
            states: states at the masks of this process.
            targets: symbol numbers of this process's targets.
            sizes: number of states of each process.
            scale: factor of all gradients.
            overwrite: replace the gradients of the table instead of adding to them.
        """
        device = states.device
        all_states, all_targets = self._gather_inputs(states, targets, sizes)
        weight, bias = (part.detach().to(states.dtype) for part in (self.table.weight, self.table.bias))
        scores = self.processes.run_within_memory(lambda: torch.addmm(bias, all_states, weight.t()).float(), device)
        top = scores.amax(1) if len(self.table.bias) else scores.new_full((len(scores),), -torch.inf)
        self.processes.all_reduce_max(top)
        inside, columns = self._local_columns(all_targets)
        target_scores = torch.zeros_like(top)
        target_scores[inside] = scores[inside, columns] - top[inside]

        def exponentiate() -> torch.Tensor:
            return scores.sub_(top[:, None]).exp_()

        exponentials = self.processes.run_within_memory(exponentiate, device)
        sums = torch.stack([exponentials.sum(1), target_scores])
        self.processes.all_reduce_sum([sums])
        total, target_scores = sums

        def backward() -> torch.Tensor:
            score_gradients = exponentials.div_(total[:, None])
            score_gradients[inside, columns] -= 1.0
            score_gradients = score_gradients.to(states.dtype)
            _accumulate(
                self.table.weight, (score_gradients.t() @ (all_states * scale)).to(self.table.weight.dtype), overwrite
            )
            _accumulate(self.table.bias, score_gradients.sum(0, dtype=torch.float32).mul_(scale), overwrite)
            return (score_gradients @ weight).float().mul_(scale)

        state_gradients = self.processes.run_within_memory(backward, device)
        self.processes.all_reduce_sum([state_gradients])
        begin = sum(sizes[: self.processes.rank])
        local = slice(begin, begin + len(states))
        return HeadGradients(
            (total.log() - target_scores)[local].sum(),
            state_gradients[local].to(states.dtype),
            (target_scores >= 0)[local].sum(),
        )

    def rank(
        self,
        states: torch.Tensor,
        sizes: Sequence[int],
        targets: torch.Tensor,
        rows: torch.Tensor,
        answers: torch.Tensor,
        top_k: int,
    ) -> Ranks:
        """Rank targets and gold answers among the symbols of all processes.

        Args:
            states: states at the masks of this process.
            sizes: number of states of each process.
            targets: symbol number of the target of every state of all processes.
            rows: state of each gold answer, among those of all processes.
            answers: symbol number of each gold answer.
            top_k: number of best symbols to return.

        Returns:
            The ranks of all states, the same in all processes.
        """
        all_states = self._gather_rows(states.float(), sizes)
        weight, bias = self.table.weight.detach().float(), self.table.bias.detach().float()
        chunks = []
        size = states_per_pass(all_states.device, self.count)
        counter = ScoreCounter(min(size, len(all_states)), len(bias), all_states.device)
        for start in range(0, len(all_states), size):
            span = slice(start, min(start + size, len(all_states)))
            scores = torch.addmm(bias, all_states[span], weight.t())
            inside = (rows >= span.start) & (rows < span.stop)
            chunks.append(
                self._rank_chunk(scores, targets[span], rows[inside] - span.start, answers[inside], top_k, counter)
            )
        return Ranks(*(torch.cat(parts) for parts in zip(*chunks, strict=True)))

    def _rank_chunk(
        self,
        scores: torch.Tensor,
        targets: torch.Tensor,
        rows: torch.Tensor,
        answers: torch.Tensor,
        top_k: int,
        counter: ScoreCounter,
    ) -> tuple[torch.Tensor, ...]:
        lowest = scores.new_full((len(scores),), -torch.inf)
        local, columns = self._local_columns(targets)
        target_scores, best_scores = lowest.clone(), lowest.clone()
        target_scores[local] = scores[local, columns]
        known_answers, answer_columns = self._local_columns(answers)
        gold_scores = scores[rows[known_answers], answer_columns]
        best_scores.scatter_reduce_(0, rows[known_answers], gold_scores, "amax")
        extremes = torch.stack([target_scores, best_scores])
        self.processes.all_reduce_max(extremes)
        target_scores, best_scores = extremes
        best_golds = torch.zeros_like(targets).scatter_add_(
            0, rows[known_answers], (gold_scores == best_scores[rows[known_answers]]).to(targets.dtype)
        )
        counts = torch.stack(
            [
                *(counter.above(scores, target_scores), counter.equal(scores, target_scores)),
                *(counter.above(scores, best_scores), counter.equal(scores, best_scores)),
                best_golds,
            ]
        )
        self.processes.all_reduce_sum([counts])
        return (*counts, *self._top_symbols(scores, top_k))

    def _top_symbols(self, scores: torch.Tensor, top_k: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the numbers of the best symbols of each state, and their log-probabilities."""
        top_k = min(top_k, self.count)
        if not top_k:
            return scores.new_zeros(len(scores), 0, dtype=torch.long), scores.new_zeros(len(scores), 0)
        local = torch.topk(scores, min(top_k, scores.shape[1]), dim=1)
        values = scores.new_full((len(scores), top_k), -torch.inf)
        numbers = torch.zeros_like(values, dtype=torch.long)
        values[:, : local.values.shape[1]] = local.values
        numbers[:, : local.values.shape[1]] = local.indices + self.rows.start
        best = torch.topk(torch.cat(self.processes.all_gather(values), dim=1), top_k, dim=1)
        symbols = torch.cat(self.processes.all_gather(numbers), dim=1).gather(1, best.indices)
        maximum = best.values[:, 0].clone()
        total = (scores - maximum[:, None]).exp_().sum(1)
        self.processes.all_reduce_sum([total])
        return symbols, best.values - (maximum + total.log())[:, None]

    def _local_columns(self, numbers: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return which of some symbols belong to this process, and their columns in its table."""
        inside = torch.nonzero((numbers >= self.rows.start) & (numbers < self.rows.stop))[:, 0]
        return inside, numbers[inside] - self.rows.start

    def _gather_inputs(
        self, states: torch.Tensor, targets: torch.Tensor, sizes: Sequence[int]
    ) -> tuple[torch.Tensor, torch.Tensor]:
        return self._gather_rows(states, sizes), self._gather_rows(targets, sizes)

    def _gather_rows(self, rows: torch.Tensor, sizes: Sequence[int]) -> torch.Tensor:
        """Concatenate the rows of all processes."""
        padded = rows.new_zeros(max(sizes), *rows.shape[1:])
        padded[: len(rows)] = rows
        return torch.cat([block[:size] for block, size in zip(self.processes.all_gather(padded), sizes, strict=True)])


def _accumulate(parameter: torch.nn.Parameter, gradient: torch.Tensor, overwrite: bool) -> None:
    if overwrite or parameter.grad is None:
        parameter.grad = gradient
    else:
        parameter.grad.add_(gradient)
