"""The head in shards: each process holds some rows of the table of symbols, and scores those alone.

States at masks are small beside the table, so that they travel: all processes see those of all, and what each finds
among its own symbols is put together.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from merkhet.training.distributed._process_group import ProcessGroup
from merkhet.training.memorizing._symbol_head import Counting, Learnt, Ranks, SymbolTable, at_once_of

_ROWS = 1 << 16
"""Rows of a table that are drawn at once."""


def draw_table_rows(count: int, width: int, rows: slice) -> SymbolTable:
    """Some rows of the table that would be drawn as a whole, without the others being held."""
    table = SymbolTable(0, width)
    own = torch.empty(rows.stop - rows.start, width)
    first = 0
    while first < count:
        # A draw of fewer than 16 numbers, or one that is no multiple of 16, would be another at its end.
        last = count if count - first < 2 * _ROWS else first + _ROWS
        some = torch.nn.init.normal_(torch.empty(last - first, width), std=0.02)
        begin, end = max(first, rows.start), min(last, rows.stop)
        if begin < end:
            own[begin - rows.start : end - rows.start] = some[begin - first : end - first]
        first = last
    table.weight = torch.nn.Parameter(own)
    table.bias = torch.nn.Parameter(torch.zeros(len(own)))
    return table


class ShardedHead:
    """The symbols of this process among those of all."""

    def __init__(self, table: SymbolTable, count: int, processes: ProcessGroup) -> None:
        self.table, self.count, self.processes = table, count, processes
        self.rows = processes.share(count)

    def learn(
        self, states: torch.Tensor, targets: torch.Tensor, sizes: Sequence[int], scale: float, *, first: bool
    ) -> Learnt:
        """Loss and gradient of this process's states; gradients of its symbols are of the states of all.

        ``sizes`` says how many states each process has. All must call this at once.
        """
        device = states.device
        everything, every_target = self._of_all(states, targets, sizes)
        weight, bias = (part.detach().to(states.dtype) for part in (self.table.weight, self.table.bias))
        scores = self.processes.within_memory(lambda: torch.addmm(bias, everything, weight.t()).float(), device)
        top = scores.amax(1) if len(self.table.bias) else scores.new_full((len(scores),), -torch.inf)
        self.processes.highest(top)
        inside, columns = self._inside(every_target)
        own = torch.zeros_like(top)
        own[inside] = scores[inside, columns] - top[inside]

        def probabilities() -> torch.Tensor:
            return scores.sub_(top[:, None]).exp_()

        spread = self.processes.within_memory(probabilities, device)
        sums = torch.stack([spread.sum(1), own])
        self.processes.add([sums])
        total, own = sums

        def gradients() -> torch.Tensor:
            changed = spread.div_(total[:, None])
            changed[inside, columns] -= 1.0
            changed = changed.to(states.dtype)
            _put(self.table.weight, (changed.t() @ (everything * scale)).to(self.table.weight.dtype), first)
            _put(self.table.bias, changed.sum(0, dtype=torch.float32).mul_(scale), first)
            return (changed @ weight).float().mul_(scale)

        of_states = self.processes.within_memory(gradients, device)
        self.processes.add([of_states])
        begin = sum(sizes[: self.processes.rank])
        mine = slice(begin, begin + len(states))
        return Learnt((total.log() - own)[mine].sum(), of_states[mine].to(states.dtype), (own >= 0)[mine].sum())

    def rank(
        self,
        states: torch.Tensor,
        sizes: Sequence[int],
        targets: torch.Tensor,
        rows: torch.Tensor,
        answers: torch.Tensor,
        first: int,
    ) -> Ranks:
        """Where targets and right answers stand among the symbols of all.

        ``states`` are this process's, ``targets`` and ``answers`` are of all states. All processes must call this at
        once, and all get the whole.
        """
        everything = self._gathered(states.float(), sizes)
        weight, bias = self.table.weight.detach().float(), self.table.bias.detach().float()
        found = []
        at_once = at_once_of(everything.device, self.count)
        counting = Counting(min(at_once, len(everything)), len(bias), everything.device)
        for begin in range(0, len(everything), at_once):
            some = slice(begin, min(begin + at_once, len(everything)))
            scores = torch.addmm(bias, everything[some], weight.t())
            inside = (rows >= some.start) & (rows < some.stop)
            found.append(
                self._ranked(scores, targets[some], rows[inside] - some.start, answers[inside], first, counting)
            )
        return Ranks(*(torch.cat(parts) for parts in zip(*found, strict=True)))

    def _ranked(
        self,
        scores: torch.Tensor,
        targets: torch.Tensor,
        rows: torch.Tensor,
        answers: torch.Tensor,
        first: int,
        counting: Counting,
    ) -> tuple[torch.Tensor, ...]:
        nothing = scores.new_full((len(scores),), -torch.inf)
        here, columns = self._inside(targets)
        own, best = nothing.clone(), nothing.clone()
        own[here] = scores[here, columns]
        known, places = self._inside(answers)
        golds = scores[rows[known], places]
        best.scatter_reduce_(0, rows[known], golds, "amax")
        extremes = torch.stack([own, best])
        self.processes.highest(extremes)
        own, best = extremes
        right = torch.zeros_like(targets).scatter_add_(0, rows[known], (golds == best[rows[known]]).to(targets.dtype))
        counts = torch.stack(
            [
                *(counting.above(scores, own), counting.equal(scores, own)),
                *(counting.above(scores, best), counting.equal(scores, best)),
                right,
            ]
        )
        self.processes.add([counts])
        return (*counts, *self._tops(scores, first))

    def _tops(self, scores: torch.Tensor, first: int) -> tuple[torch.Tensor, torch.Tensor]:
        """The numbers of the first so many symbols of each state, and their logarithms of probabilities."""
        first = min(first, self.count)
        if not first:
            return scores.new_zeros(len(scores), 0, dtype=torch.long), scores.new_zeros(len(scores), 0)
        own = torch.topk(scores, min(first, scores.shape[1]), dim=1)
        values = scores.new_full((len(scores), first), -torch.inf)
        numbers = torch.zeros_like(values, dtype=torch.long)
        values[:, : own.values.shape[1]], numbers[:, : own.values.shape[1]] = own.values, own.indices + self.rows.start
        best = torch.topk(torch.cat(self.processes.gather(values), dim=1), first, dim=1)
        chosen = torch.cat(self.processes.gather(numbers), dim=1).gather(1, best.indices)
        top = best.values[:, 0].clone()
        total = (scores - top[:, None]).exp_().sum(1)
        self.processes.add([total])
        return chosen, best.values - (top + total.log())[:, None]

    def _inside(self, numbers: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Which of some symbols are this process's, and their places among its own."""
        inside = torch.nonzero((numbers >= self.rows.start) & (numbers < self.rows.stop))[:, 0]
        return inside, numbers[inside] - self.rows.start

    def _of_all(
        self, states: torch.Tensor, targets: torch.Tensor, sizes: Sequence[int]
    ) -> tuple[torch.Tensor, torch.Tensor]:
        return self._gathered(states, sizes), self._gathered(targets, sizes)

    def _gathered(self, rows: torch.Tensor, sizes: Sequence[int]) -> torch.Tensor:
        """The rows of all processes, one after another."""
        padded = rows.new_zeros(max(sizes), *rows.shape[1:])
        padded[: len(rows)] = rows
        return torch.cat([one[:size] for one, size in zip(self.processes.gather(padded), sizes, strict=True)])


def _put(parameter: torch.nn.Parameter, gradient: torch.Tensor, first: bool) -> None:
    if first or parameter.grad is None:
        parameter.grad = gradient
    else:
        parameter.grad.add_(gradient)
