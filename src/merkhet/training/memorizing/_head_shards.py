"""The output head in shards: each process holds and scores its rows of the symbol table.

States at the masks are small beside the table, so all processes receive all states, and their results are combined.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from merkhet.training.distributed._process_group import ProcessGroup
from merkhet.training.memorizing._symbol_head import (
    HeadGradients,
    Outputs,
    Ranks,
    SymbolTable,
    add_gradient,
    local_columns,
    rank_symbols,
)

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
