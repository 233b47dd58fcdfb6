"""The head: symbols scored at the mask alone; loss and gradients in one go, ranks without leaving the device."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import torch

TOP = 10
_ALIGNED = 64
"""Sizes of tables are multiples of this on a GPU."""
_CELLS = {"cpu": 1 << 22}
_CELLS_ELSEWHERE = 1 << 26
"""Scores that are held at once where symbols are ranked: on a CPU, as many as its cache holds."""


class SymbolTable(torch.nn.Module):  # type: ignore[misc]
    """A vector and a bias for each symbol."""

    def __init__(self, count: int, width: int) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.empty(count, width))
        self.bias = torch.nn.Parameter(torch.zeros(count))
        torch.nn.init.normal_(self.weight, std=0.02)


@dataclass(frozen=True)
class Outputs:
    """The rows that compete at the mask: the words of the vocabulary, if they do, then the symbols."""

    weights: tuple[torch.nn.Parameter, ...]
    biases: tuple[torch.nn.Parameter, ...]

    @property
    def count(self) -> int:
        """How many compete."""
        return sum(len(bias) for bias in self.biases)

    @property
    def offset(self) -> int:
        """The number of the first symbol among all that compete."""
        return self.count - len(self.biases[-1])


@dataclass(frozen=True)
class Learnt:
    """What a pass over some states gives: the summed loss, the gradient at the states, how many targets came first."""

    loss: torch.Tensor
    of_states: torch.Tensor
    firsts: torch.Tensor


Spread = Callable[[torch.Tensor, torch.Tensor], tuple[torch.Tensor, torch.Tensor, torch.Tensor]]


def learn(
    outputs: Outputs, states: torch.Tensor, targets: torch.Tensor, scale: float, spread: Spread, *, first: bool
) -> Learnt:
    """Loss and gradients at once, from one table of scores.

    Gradients (of the loss by ``scale``) of weights and biases are added to theirs, or are the ``first`` of a step and
    replace them. Targets are numbers of symbols.
    """
    halved = states.dtype != outputs.weights[0].dtype
    table = _Joined(outputs, states.dtype) if halved else _Apart(outputs)
    columns = targets + table.places[-1].start
    probabilities, own, top = spread(table.scores(states), columns)
    # The gradient at the scores is this by the scale; scaling what is small afterwards spares a pass.
    changed = probabilities.scatter_add_(1, columns[:, None], torch.full_like(probabilities[:, :1], -1.0))
    of_states = table.back(changed).mul_(scale)
    table.take(changed, states * scale, first)
    sums = changed.sum(0, dtype=torch.float32).mul_(scale)
    for bias, place in zip(outputs.biases, table.places, strict=True):
        _add(bias, sums[place], first)
    return Learnt(-own.sum(), of_states, (own >= top).sum())


class _Apart:
    """The tables of all that compete as they are, one product each."""

    def __init__(self, outputs: Outputs) -> None:
        self.outputs, self.weights = outputs, [weight.detach() for weight in outputs.weights]
        ends = list(accumulate(len(bias) for bias in outputs.biases))
        self.places = [slice(end - len(bias), end) for end, bias in zip(ends, outputs.biases, strict=True)]

    def scores(self, states: torch.Tensor) -> torch.Tensor:
        scores = states.new_empty(len(states), self.outputs.count)
        for weight, bias, place in zip(self.weights, self.outputs.biases, self.places, strict=True):
            torch.addmm(bias.detach(), states, weight.t(), out=scores[:, place])
        return scores

    def back(self, changed: torch.Tensor) -> torch.Tensor:
        of_states = changed[:, self.places[0]] @ self.weights[0]
        for weight, place in zip(self.weights[1:], self.places[1:], strict=True):
            of_states.addmm_(changed[:, place], weight)
        return of_states

    def take(self, changed: torch.Tensor, states: torch.Tensor, first: bool) -> None:
        for parameter, place in zip(self.outputs.weights, self.places, strict=True):
            part = changed[:, place].t()
            if parameter.grad is None:
                parameter.grad = part @ states
            elif first:
                torch.mm(part, states, out=parameter.grad)
            else:
                parameter.grad.addmm_(part, states)


class _Joined:
    """One table in half precision; rows that nobody wins fill it up to sizes at which products on a GPU are fast."""

    def __init__(self, outputs: Outputs, dtype: torch.dtype) -> None:
        self.outputs = outputs
        self.places: list[slice] = []
        size = 0
        for bias in outputs.biases:
            self.places.append(slice(size, size + len(bias)))
            size += -(-len(bias) // _ALIGNED) * _ALIGNED
        example = outputs.weights[0].detach()
        self.table = torch.empty(size, example.shape[1], dtype=dtype, device=example.device)
        self.bias = torch.full((size,), -torch.inf, dtype=dtype, device=example.device)
        for number, place in enumerate(self.places):
            self.table[place] = outputs.weights[number].detach()
            self.bias[place] = outputs.biases[number].detach()
            self.table[place.stop : place.start + -(-(place.stop - place.start) // _ALIGNED) * _ALIGNED] = 0

    def scores(self, states: torch.Tensor) -> torch.Tensor:
        return torch.addmm(self.bias, states, self.table.t())

    def back(self, changed: torch.Tensor) -> torch.Tensor:
        return changed @ self.table

    def take(self, changed: torch.Tensor, states: torch.Tensor, first: bool) -> None:
        gradient = changed.t() @ states
        for parameter, place in zip(self.outputs.weights, self.places, strict=True):
            _add(parameter, gradient[place], first)


def spread(scores: torch.Tensor, targets: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Probabilities of a table of scores, and the logarithms of the target's and of the highest one of each row."""
    logarithms = torch.log_softmax(scores, dim=1)
    own, top = logarithms.gather(1, targets[:, None])[:, 0].float(), logarithms.amax(1).float()
    return logarithms.exp_(), own, top


def spread_in_kernels(scores: torch.Tensor, targets: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """The same in a form that a compiler fuses, without a table in float32."""
    exact = scores.float()
    top = exact.amax(1)
    normaliser = top + (exact - top[:, None]).exp().sum(1).log()
    probabilities = (exact - normaliser[:, None]).exp().to(scores.dtype)
    own = scores.gather(1, targets[:, None])[:, 0].float()
    return probabilities, own - normaliser, top - normaliser


def _add(parameter: torch.nn.Parameter, gradient: torch.Tensor, first: bool) -> None:
    if parameter.grad is None:
        parameter.grad = gradient.to(parameter.dtype)
    elif first:
        parameter.grad.copy_(gradient)
    else:
        parameter.grad.add_(gradient)


@dataclass(frozen=True)
class Ranks:
    """Where the target and the best right answer stand among all that compete, one row a statement, on the device."""

    target_above: torch.Tensor
    target_ties: torch.Tensor
    best_above: torch.Tensor
    best_ties: torch.Tensor
    best_golds: torch.Tensor
    top: torch.Tensor
    top_scores: torch.Tensor


def rank(
    outputs: Outputs,
    states: torch.Tensor,
    targets: torch.Tensor,
    rows: torch.Tensor,
    answers: torch.Tensor,
    first: int = TOP,
) -> Ranks:
    """Ranks of targets and of the best of all right answers (``answers`` of the state numbered in ``rows``).

    In float32: half precision would make equal what is not. The ``first`` so many are told with their logarithms of
    probabilities.
    """
    weight = torch.cat([one.detach().float() for one in outputs.weights])
    bias = torch.cat([one.detach().float() for one in outputs.biases])
    found = []
    at_once = at_once_of(states.device, outputs.count)
    counting = Counting(min(at_once, len(states)), outputs.count, states.device)
    for begin in range(0, len(states), at_once):
        some = slice(begin, min(begin + at_once, len(states)))
        scores = torch.addmm(bias, states[some].float(), weight.t())
        inside = (rows >= some.start) & (rows < some.stop)
        found.append(_ranked(scores, targets[some], rows[inside] - some.start, answers[inside], first, counting))
    return Ranks(*(torch.cat(parts) for parts in zip(*found, strict=True)))


def at_once_of(device: torch.device, count: int) -> int:
    """How many states are ranked at once among so many symbols."""
    return max(1, _CELLS.get(device.type, _CELLS_ELSEWHERE) // count)


class Counting:
    """Counts scores above or at a value; on a CPU into a table of floats, which it adds up much faster than truths."""

    def __init__(self, rows: int, columns: int, device: torch.device) -> None:
        self.table = torch.empty(rows, columns) if device.type == "cpu" else None

    def above(self, scores: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
        """How many scores of each row are above its value."""
        return self._count(torch.gt, scores, values)

    def equal(self, scores: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
        """How many scores of each row are its value."""
        return self._count(torch.eq, scores, values)

    def _count(self, compare: Any, scores: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
        out = None if self.table is None else self.table[: len(scores)]
        found: torch.Tensor = compare(scores, values[:, None], out=out).sum(1).long()
        return found


def _ranked(
    scores: torch.Tensor,
    targets: torch.Tensor,
    rows: torch.Tensor,
    answers: torch.Tensor,
    first: int,
    counting: Counting,
) -> tuple[torch.Tensor, ...]:
    own = scores.gather(1, targets[:, None])[:, 0]
    golds = scores[rows, answers]
    best = torch.full_like(own, -torch.inf).scatter_reduce(0, rows, golds, "amax")
    count = torch.zeros_like(targets).scatter_add(0, rows, (golds == best[rows]).to(targets.dtype))
    top = torch.topk(scores, min(first, scores.shape[1]), dim=1)
    normaliser = torch.logsumexp(scores, dim=1)[:, None] if first else 0.0
    return (
        counting.above(scores, own),
        counting.equal(scores, own),
        counting.above(scores, best),
        counting.equal(scores, best),
        count,
        top.indices,
        top.values - normaliser,
    )
