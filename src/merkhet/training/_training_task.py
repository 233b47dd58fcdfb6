"""The interface between a learner and the trainer: model, batches and loss."""

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
"""The unit of progress of trainings that count steps instead of examples."""


class Sliceable(Protocol):
    """A batch: a number of examples that can be cut into micro-batches."""

    def __len__(self) -> int: ...

    def __getitem__(self, rows: slice, /) -> Any: ...


Batch = TypeVar("Batch", bound=Sliceable)


@dataclass
class TrainingState:
    """Progress of a training: the part of a checkpoint beside the weights and the optimizer."""

    epoch: int = 0
    """Number of finished epochs."""
    batch: int = 0
    """Number of finished batches of the current epoch."""
    step: int = 0
    """Number of finished steps."""
    micro_batch: int = 0
    """Number of examples that fit into memory at once."""
    units: int = 0
    """Progress so far: examples over all epochs, or steps."""
    tokens: int = 0
    """Number of tokens read so far, where the task counts them."""
    seconds: float = 0.0
    losses: list[list[float]] = field(default_factory=list)
    """Summed losses of each step of the current epoch."""
    weight: float = 0.0
    """Sum of the weights of the current epoch's batches."""
    best_epoch: int = 0
    """The epoch with the best score; 0 before the first evaluation."""
    best_score: tuple[float, float] | None = None
    """Score and negative loss of that epoch."""
    evaluations_without_gain: int = 0
    """Number of evaluations since the score has last improved."""
    stopped: str = ""
    """Why the training ended: ``until``, ``patience`` or ``epochs``; empty while it runs."""
    curve: list[CurvePoint] = field(default_factory=list)
    """One point for each epoch."""


class TrainingTask(ABC, Generic[Batch]):
    """A model to train, its batches and their loss.

    An epoch is the part of a training between two points of its curve: all examples once, or a fixed number of steps.
    """

    label: str
    """Name of the training in progress, log messages and errors."""
    unit: str
    """Unit of progress: plural of the examples' name, or ``STEPS``."""
    total: int
    """Number of units of the whole training."""
    epochs: int
    steps: int
    """Number of steps of all epochs."""
    batch_size: int
    """Number of examples to try at once."""
    device: torch.device
    modules: Mapping[str, torch.nn.Module]
    """Trained modules by name, for checkpoints and the weights of the best epoch."""
    parameters: Sequence[torch.nn.Parameter]
    sharded_parameters: Sequence[torch.nn.Parameter] = ()
    """Parameters of which each process holds and updates other rows."""
    sharded_rows: int = 0
    """Number of their rows over all processes."""
    optimizer: OptimizerSettings
    memory_hint: str = "Use a machine with more memory, or a smaller model"
    """What to do if a single example does not fit into memory."""
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
        """Set the batch size, the optimizer and, from ``examples`` per epoch, the epochs, steps and total.

        A task that does not pass ``examples`` must set ``epochs``, ``steps`` and ``total`` itself.
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
        """Yield the batches of an epoch (counted from 1) from the index ``start``."""

    @abstractmethod
    def weight(self, batch: Batch) -> float:
        """Return the divisor of a batch's summed losses: its number of targets or examples."""

    @abstractmethod
    def backward(self, batch: Batch, rows: slice, micro_batch: int) -> torch.Tensor:
        """Write (not add) the gradients of some rows to the parameters; return the vector of their summed losses.

        The weight of the whole batch divides the gradients. An empty range of rows leaves no gradients.
        """

    def curve_point(self, state: TrainingState, losses: Sequence[float], score: float | None) -> CurvePoint:
        """Return the point of the training curve of an epoch, from its mean losses and its score."""
        return {"loss": losses[0]} if score is None else {"loss": losses[0], self.score_name: score}

    def evaluate(self, epoch: int, micro_batch: int) -> float | None:
        """Return the score after an epoch (counted from 1), higher is better; None without evaluation."""
        return None

    def set_training(self, training: bool) -> None:
        """Put the modules into training mode or evaluation mode."""
        for module in self.modules.values():
            module.train(training)

    def count_tokens(self, batch: Batch) -> int:
        """Return the number of tokens of a batch, if the learner records it."""
        return 0


class AutogradTask(TrainingTask[Batch]):
    """A task whose gradients are those of a loss."""

    dtype: torch.dtype = torch.float32
    """Precision of the forward pass; weights and gradients are float32."""
    loss_count: int = 1
    """Number of losses that are added for the gradient and reported separately."""

    @abstractmethod
    def loss(self, batch: Batch) -> torch.Tensor:
        """Return a vector of ``loss_count`` losses, each summed over the examples."""

    def backward(self, batch: Batch, rows: slice, micro_batch: int) -> torch.Tensor:
        """Compute the gradients of some rows, one micro-batch after the other."""
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
