"""Gradients of a batch that several processes learn: added up at once, or in one order whatever their number is.

Added up by ``all_reduce``, the last digits hang on how many processes there are. With ``parts`` a batch is always cut
into so many parts, and the gradients of these are added along one binary tree: up to so many processes give the very
same bits, each doing some whole parts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import torch

from merkhet.training.distributed._process_group import ProcessGroup

Learn = Callable[[slice], torch.Tensor]
Node = tuple[int, int]
"""The first part that a sum is of, and how many (a power of two; some may be beyond the last)."""
_CELLS = 1 << 20
"""Gradients that are exchanged at once."""


@contextmanager
def single_thread(so: bool) -> Iterator[None]:
    """Work with one thread, if so: with several, the last digits hang on how many there are."""
    before = torch.get_num_threads()
    if so:
        torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def tree_nodes(parts: slice, every: int) -> list[Node]:
    """The fewest sums of the tree over all parts that some consecutive parts make up."""
    size = _width(every)
    start, stop = parts.start, size if parts.stop == every else parts.stop
    found: list[Node] = []
    while start < min(stop, every):
        size = start & -start or size
        while start + size > stop:
            size //= 2
        found.append((start, size))
        start += size
    return found


class GradientSum:
    """Sums the gradients of parameters over the parts of a batch and over processes.

    ``learn`` leaves the gradients of some rows at the parameters, not adding them to others, and returns sums of
    losses; of no rows, it leaves none and returns zeros.
    """

    def __init__(self, parameters: Sequence[torch.nn.Parameter], processes: ProcessGroup, parts: int = 1) -> None:
        self.parameters, self.processes, self.parts = list(parameters), processes, parts
        self._used: list[torch.nn.Parameter] = []

    def __call__(self, rows: int, learn: Learn) -> torch.Tensor:
        """Leave the gradients of a batch of so many rows at the parameters; returns the sums of its losses."""
        if self.parts > 1:
            return self._in_order(rows, learn)
        losses = learn(self.processes.share(rows))
        self._settle()
        self.processes.add([losses, *self._gradients()])
        return losses

    def _settle(self) -> None:
        """Find out which parameters have gradients in some process, once: it is the same in all steps."""
        if not self._used:
            device = self.parameters[0].device
            used = torch.tensor([int(one.grad is not None) for one in self.parameters], device=device)
            self.processes.highest(used)
            self._used = [one for one, so in zip(self.parameters, used.tolist(), strict=True) if so]

    def _gradients(self) -> list[torch.Tensor]:
        """The gradients of all that has some; zeros where this process had nothing to learn and others had."""
        for one in self._used:
            if one.grad is None:
                one.grad = torch.zeros_like(one)
        return [one.grad for one in self._used]

    def _rows(self, node: Node, rows: int) -> slice:
        """Of a batch, the rows that a sum is of."""
        first, last = (min(part, self.parts) for part in (node[0], sum(node)))
        return slice(rows * first // self.parts, rows * last // self.parts)

    def _in_order(self, rows: int, learn: Learn) -> torch.Tensor:
        own = self.processes.share(self.parts)
        if not self._used:
            mine = [some for part in range(own.start, own.stop) if _any(some := self._rows((part, 1), rows))]
            learn(mine[0] if mine else slice(0, 0))
            self._settle()
        losses = learn(slice(0, 0))
        kept = {node: self._sum(node, rows, learn) for node in tree_nodes(own, self.parts)}
        whole = self._exchanged(kept, rows, losses)
        found, *gradients = whole.split([losses.numel(), *(one.numel() for one in self._used)])
        for one, gradient in zip(self._gradients(), gradients, strict=True):
            one.copy_(gradient.view_as(one))
        return found.view_as(losses)

    def _sum(self, node: Node, rows: int, learn: Learn) -> torch.Tensor | None:
        """The sum of losses and gradients at a place of the tree; None where there are no rows."""
        some = self._rows(node, rows)
        if not _any(some):
            return None
        if node[1] == 1:
            losses = learn(some)
            return torch.cat([losses.reshape(-1), *(one.reshape(-1) for one in self._gradients())])
        return _added(*(self._sum(half, rows, learn) for half in _halves(node)))

    def _exchanged(self, kept: dict[Node, torch.Tensor | None], rows: int, losses: torch.Tensor) -> torch.Tensor:
        """The sum over all parts, of what the processes have of it."""
        every = [tree_nodes(self.processes.share(self.parts, rank), self.parts) for rank in range(self.processes.count)]
        whole = kept[every[0][0]] if self.processes.count == 1 else None
        if whole is not None:
            return whole
        whole = losses.new_empty(losses.numel() + sum(one.numel() for one in self._used))
        for begin in range(0, len(whole), _CELLS):
            some = slice(begin, min(begin + _CELLS, len(whole)))
            mine = whole.new_zeros(max(map(len, every)), some.stop - some.start)
            for place, node in enumerate(every[self.processes.rank]):
                own = kept[node]
                if own is not None:
                    mine[place] = own[some]
            given = self.processes.gather(mine)
            found = {node: given[rank][place] for rank, nodes in enumerate(every) for place, node in enumerate(nodes)}
            summed = self._joined((0, _width(self.parts)), rows, found)
            assert summed is not None
            whole[some] = summed
        return whole

    def _joined(self, node: Node, rows: int, found: dict[Node, torch.Tensor]) -> torch.Tensor | None:
        """The sum at a place of the tree, of sums that were found below it."""
        if not _any(self._rows(node, rows)):
            return None
        if node in found:
            return found[node]
        return _added(*(self._joined(half, rows, found) for half in _halves(node)))


def _any(rows: slice) -> bool:
    return bool(rows.stop > rows.start)


def _halves(node: Node) -> tuple[Node, Node]:
    first, count = node
    return (first, count // 2), (first + count // 2, count // 2)


def _added(left: torch.Tensor | None, right: torch.Tensor | None) -> torch.Tensor | None:
    if left is None or right is None:
        return right if left is None else left
    return left.add_(right)


def _width(parts: int) -> int:
    """The parts that the whole tree has place for."""
    return 1 << (parts - 1).bit_length()
