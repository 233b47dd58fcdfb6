"""Sums of gradients over the parts of a batch and over processes.

The last digits of a sum by ``all_reduce`` depend on the number of processes. With ``parts`` > 1, a batch is always cut
into ``parts`` parts, and their gradients are added along a fixed binary tree. So any number of processes up to
``parts`` gives bit-identical sums.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch

from merkhet.training.distributed._process_group import ProcessGroup

Backward = Callable[[slice], torch.Tensor]
"""A function that computes the losses and gradients of a range of rows of a batch."""
Node = tuple[int, int]
"""A node of the binary tree: the index of its first part and the number of parts that it sums.

The number is a power of two, and the range may extend beyond the last part.
"""
_CELLS = 1 << 20
"""Number of gradient values exchanged in one message."""


def tree_nodes(parts: slice, total: int) -> list[Node]:
    """Return the smallest set of tree nodes that covers the range ``parts`` of the ``total`` parts of a batch."""
    size = _width(total)
    start, stop = parts.start, size if parts.stop == total else parts.stop
    nodes: list[Node] = []
    while start < min(stop, total):
        size = start & -start or size
        while start + size > stop:
            size //= 2
        nodes.append((start, size))
        start += size
    return nodes


class GradientSum:
    """Sum of the gradients of parameters over the parts of a batch and over processes.

    The object is called with a function ``backward``. This function must replace the gradients of the parameters by
    those of a range of rows, and return the summed losses. For an empty range it must leave no gradients and return
    zeros.
    """

    def __init__(self, parameters: Sequence[torch.nn.Parameter], processes: ProcessGroup, parts: int = 1) -> None:
        self.parameters, self.processes, self.parts = list(parameters), processes, parts
        self._used: list[torch.nn.Parameter] = []

    def __call__(self, rows: int, backward: Backward) -> torch.Tensor:
        """Set the gradients of the parameters to those of a batch of ``rows`` rows; return its summed losses."""
        if self.parts > 1:
            return self._sum_in_order(rows, backward)
        losses = backward(self.processes.shard(rows))
        self._find_used()
        self.processes.all_reduce_sum([losses, *self._gradients()])
        return losses

    def _find_used(self) -> None:
        """Find the parameters that have gradients in at least one process; they are the same in all steps."""
        if not self._used:
            device = self.parameters[0].device
            flags = torch.tensor([int(parameter.grad is not None) for parameter in self.parameters], device=device)
            self.processes.all_reduce_max(flags)
            self._used = [parameter for parameter, flag in zip(self.parameters, flags.tolist(), strict=True) if flag]

    def _gradients(self) -> list[torch.Tensor]:
        """Return the gradients of all used parameters; they are zeros if this process had no rows."""
        for parameter in self._used:
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
        return [parameter.grad for parameter in self._used]

    def _rows(self, node: Node, rows: int) -> slice:
        """Return the range of rows that a tree node sums, in a batch of ``rows`` rows."""
        first, last = (min(part, self.parts) for part in (node[0], sum(node)))
        return slice(rows * first // self.parts, rows * last // self.parts)

    def _sum_in_order(self, rows: int, backward: Backward) -> torch.Tensor:
        parts = self.processes.shard(self.parts)
        if not self._used:
            ranges = [self._rows((part, 1), rows) for part in range(parts.start, parts.stop)]
            backward(next((part_rows for part_rows in ranges if not _is_empty(part_rows)), slice(0, 0)))
            self._find_used()
        losses = backward(slice(0, 0))
        sums = {node: self._sum_node(node, rows, backward) for node in tree_nodes(parts, self.parts)}
        total = self._exchange(sums, rows, losses)
        total_losses, *gradients = total.split([losses.numel(), *(parameter.numel() for parameter in self._used)])
        for gradient, summed in zip(self._gradients(), gradients, strict=True):
            gradient.copy_(summed.view_as(gradient))
        return total_losses.view_as(losses)

    def _sum_node(self, node: Node, rows: int, backward: Backward) -> torch.Tensor | None:
        """Return the losses and gradients summed over the rows of a tree node, or None if the node has no rows."""
        node_rows = self._rows(node, rows)
        if _is_empty(node_rows):
            return None
        if node[1] == 1:
            losses = backward(node_rows)
            return torch.cat([losses.reshape(-1), *(gradient.reshape(-1) for gradient in self._gradients())])
        return _add(*(self._sum_node(half, rows, backward) for half in _halves(node)))

    def _exchange(self, sums: dict[Node, torch.Tensor | None], rows: int, losses: torch.Tensor) -> torch.Tensor:
        """Exchange the node sums of all processes, and return their sum over all parts of the batch."""
        nodes_by_rank = [
            tree_nodes(self.processes.shard(self.parts, rank), self.parts) for rank in range(self.processes.count)
        ]
        total = sums[nodes_by_rank[0][0]] if self.processes.count == 1 else None
        if total is not None:
            return total
        total = losses.new_empty(losses.numel() + sum(parameter.numel() for parameter in self._used))
        for begin in range(0, len(total), _CELLS):
            cells = slice(begin, min(begin + _CELLS, len(total)))
            local = total.new_zeros(max(map(len, nodes_by_rank)), cells.stop - cells.start)
            for index, node in enumerate(nodes_by_rank[self.processes.rank]):
                node_sum = sums[node]
                if node_sum is not None:
                    local[index] = node_sum[cells]
            gathered = self.processes.all_gather(local)
            node_sums = {
                node: gathered[rank][index]
                for rank, nodes in enumerate(nodes_by_rank)
                for index, node in enumerate(nodes)
            }
            summed = self._join((0, _width(self.parts)), rows, node_sums)
            assert summed is not None
            total[cells] = summed
        return total

    def _join(self, node: Node, rows: int, node_sums: dict[Node, torch.Tensor]) -> torch.Tensor | None:
        """Return the sum of a tree node from the known sums of nodes below it, or None if the node has no rows."""
        if _is_empty(self._rows(node, rows)):
            return None
        if node in node_sums:
            return node_sums[node]
        return _add(*(self._join(half, rows, node_sums) for half in _halves(node)))


def _is_empty(rows: slice) -> bool:
    return bool(rows.stop <= rows.start)


def _halves(node: Node) -> tuple[Node, Node]:
    first, count = node
    return (first, count // 2), (first + count // 2, count // 2)


def _add(left: torch.Tensor | None, right: torch.Tensor | None) -> torch.Tensor | None:
    if left is None or right is None:
        return right if left is None else left
    return left.add_(right)


def _width(parts: int) -> int:
    """Return the number of leaves of the tree: the smallest power of two that is at least ``parts``."""
    return 1 << (parts - 1).bit_length()
