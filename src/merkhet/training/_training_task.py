"""Training tasks: the interface through which the trainer gets a learner's model, batches and loss."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

import torch

from merkhet.training._optimization import OptimizerSettings

CurvePoint = dict[str, float | None]
STEPS = "steps"
"""Unit of progress of a training that counts steps instead of examples."""


class Sliceable(Protocol):
    """A batch of examples that can be cut into micro-batches."""

    def __len__(self) -> int: ...

    def __getitem__(self, rows: slice, /) -> Any: ...


Batch = TypeVar("Batch", bound=Sliceable)


@dataclass
class TrainingState:
    """Progress of a training, which checkpoints store together with the weights and the optimizer state."""

    epoch: int = 0
    """Number of finished epochs."""
    batch: int = 0
    """Number of finished batches in the current epoch."""
    step: int = 0
    """Number of finished optimizer steps over all epochs."""
    micro_batch: int = 0
    """Number of examples in one forward pass; halved whenever memory runs out."""
    units: int = 0
    """Finished units of progress over all epochs: examples, or steps."""
    tokens: int = 0
    """Number of input tokens so far; 0 if the task does not count tokens."""
    seconds: float = 0.0
    losses: list[list[float]] = field(default_factory=list)
    """Summed losses of each step of the current epoch."""
    weight: float = 0.0
    """Sum of the batch weights of the current epoch, which divides the summed losses."""
    best_epoch: int = 0
    """The epoch with the best score; 0 before the first evaluation."""
    best_score: tuple[float, float] | None = None
    """Score and negative loss of the epoch ``best_epoch``; None before the first evaluation."""
    evaluations_without_gain: int = 0
    """Number of evaluations since the last improvement of the score."""
    stopped: str = ""
    """Reason why the training ended: ``until``, ``patience`` or ``epochs``; empty while the training runs."""
    curve: list[CurvePoint] = field(default_factory=list)
    """Training curve, with one point for each finished epoch."""


class TrainingTask(ABC, Generic[Batch]):
    """A model to train, with its batches and its loss.

    An epoch is a pass over all examples, or a fixed number of steps. Each epoch adds one point to the training curve.
    """

    label: str
    """Name of the training in progress displays, log messages and errors."""
    unit: str
    """Unit of progress: what the examples are called (plural), or ``STEPS``."""
    total: int
    """Number of units of progress in the whole training."""
    epochs: int
    steps: int
    """Number of optimizer steps in all epochs together."""
    batch_size: int
    """Number of examples in a batch, and the initial size of micro-batches."""
    device: torch.device
    modules: Mapping[str, torch.nn.Module]
    """Trained modules by name; checkpoints and the weights of the best epoch contain their state."""
    parameters: Sequence[torch.nn.Parameter]
    sharded_parameters: Sequence[torch.nn.Parameter] = ()
    """Parameters whose rows are split over the processes; each process holds and updates only its rows."""
    sharded_rows: int = 0
    """Number of rows of each sharded parameter over all processes."""
    optimizer: OptimizerSettings
    memory_hint: str = "Use a machine with more memory, or a smaller model"
    """Advice for the user if a single example does not fit into memory."""
    score_name: str = "score"
    """Name of the evaluation's score in the training curve."""

    def __init__(
        self,
        label: str,
        settings: Any,
        modules: Mapping[str, torch.nn.Module],
        *,
        examples: int = 0,
        unit: str = "questions",
        **optimizer: Any,
    ) -> None:
        """Set the batch size and the optimizer from ``settings``; ``optimizer`` holds further optimizer settings.

        ``examples`` is the number of examples in an epoch, from which ``epochs``, ``steps`` and ``total`` follow. A
        task that does not pass ``examples`` must set these three attributes itself.
        """
        self.label, self.settings, self.modules, self.unit = label, settings, modules, unit
        self.batch_size = settings.batch_size
        if examples:
            self.epochs, steps = settings.epochs, math.ceil(examples / self.batch_size)
            self.steps, self.total = self.epochs * steps, self.epochs * (steps if unit == STEPS else examples)
        self.parameters = [p for module in modules.values() for p in module.parameters() if p.requires_grad]
        self.device = self.parameters[0].device
        names = ("learning_rate", "weight_decay", "warmup", "largest_gradient")
        shared = {name: getattr(settings, name) for name in names if hasattr(settings, name)}
        self.optimizer = OptimizerSettings(**shared, **optimizer)

    @abstractmethod
    def batches(self, epoch: int, start: int) -> Iterable[Batch]:
        """Yield the batches of an epoch, without the first ``start`` batches. Epochs are counted from 1."""

    @abstractmethod
    def weight(self, batch: Batch) -> float:
        """Return the divisor of the summed losses of ``batch``: its number of targets or examples."""

    @abstractmethod
    def backward(self, batch: Batch, rows: slice, micro_batch: int) -> torch.Tensor:
        """Set the parameters' gradients to those of some rows of a batch; return a vector of the rows' summed losses.

        The gradients replace earlier gradients and are divided by the weight of the whole batch. An empty range of rows
        leaves no gradients.
        """

    def curve_point(self, state: TrainingState, losses: Sequence[float], score: float | None) -> CurvePoint:
        """Return the point of the training curve for an epoch with these mean losses and this score."""
        return {"loss": losses[0]} if score is None else {"loss": losses[0], self.score_name: score}

    def evaluate(self, epoch: int, micro_batch: int) -> float | None:
        """Return the score after an epoch, or None if this epoch is not evaluated. Higher scores are better."""
        return None

    def set_training(self, training: bool) -> None:
        """Put the modules into training mode or evaluation mode."""
        for module in self.modules.values():
            module.train(training)

    def count_tokens(self, batch: Batch) -> int:
        """Return the number of input tokens of a batch; 0 if the learner does not record it."""
        return 0


class AutogradTask(TrainingTask[Batch]):
    """A training task that defines a loss and gets its gradients from autograd."""

    dtype: torch.dtype = torch.float32
    """Precision of the forward pass; weights and gradients are float32."""
    loss_count: int = 1
    """Number of losses, whose sum is minimized and which are reported separately."""

    @abstractmethod
    def loss(self, batch: Batch) -> torch.Tensor:
        """Return ``loss_count`` losses, each summed over the examples of ``batch``."""

    def backward(self, batch: Batch, rows: slice, micro_batch: int) -> torch.Tensor:
        """Compute the gradients of some rows of a batch in micro-batches; return the summed losses of the rows."""
        for parameter in self.parameters:
            parameter.grad = None
        sums, weight = torch.zeros(self.loss_count, device=self.device), self.weight(batch)
        for begin in range(rows.start, rows.stop, micro_batch):
            with self._autocast():
                losses = self.loss(batch[begin : min(begin + micro_batch, rows.stop)])
            (losses.sum() / weight).backward()
            sums += losses.detach().float()
        return sums

    def _autocast(self) -> AbstractContextManager[Any]:
        return nullcontext() if self.dtype == torch.float32 else torch.autocast(self.device.type, dtype=self.dtype)
