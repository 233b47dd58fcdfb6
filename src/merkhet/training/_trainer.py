"""Training loop of all learners: steps, micro-batches, early stopping, checkpoints and progress."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic

import torch

from merkhet.core.errors import MerkhetError
from merkhet.core.ids import digest
from merkhet.core.progress import Progress, SilentProgress
from merkhet.models.batching import is_out_of_memory, release_memory
from merkhet.training._checkpoints import KeyPath, ShardedTables, load_checkpoint, save_checkpoint
from merkhet.training._optimization import clip_gradients, learning_rate_factor, make_optimizer
from merkhet.training._training_task import STEPS, Batch, TrainingState, TrainingTask
from merkhet.training.artifact import result_settings
from merkhet.training.distributed._gradient_sync import GradientSum
from merkhet.training.distributed._process_group import ProcessGroup

logger = logging.getLogger(__name__)

CHECKPOINT = "checkpoint.pt"
UNTIL, PATIENCE, EPOCHS = "until", "patience", "epochs"
"""Reasons why a training ends: target score reached, no improvement, or last epoch finished."""


@dataclass(frozen=True)
class EarlyStopping:
    """Rules for ending a training before its last epoch, and for the choice of weights."""

    until: float | None = None
    """Score at which the training ends; None sets no target."""
    patience: int | None = None
    """Number of evaluations without a better score after which the training ends; None means no limit.

    The training does not end in this way before a score is above 0.
    """
    keep_best: bool = False
    """Whether to keep the weights of the epoch with the best score instead of the last epoch.

    The lowest loss decides between equal scores.
    """


@dataclass(frozen=True)
class CheckpointSchedule:
    """Folder, identity and frequency of the checkpoints of a training."""

    folder: Path
    identity: str
    """Hash that identifies the training; a checkpoint with another identity is never loaded."""
    every_steps: int = 0
    """Number of steps between checkpoints; 0 writes checkpoints only after epochs."""
    seconds: float = 120.0
    """Minimum number of seconds between checkpoints that are written after epochs."""

    @property
    def file(self) -> Path:
        """Path of the checkpoint file."""
        return self.folder / CHECKPOINT

    def remove(self) -> None:
        """Remove the checkpoint file, if it exists."""
        self.file.unlink(missing_ok=True)


def make_shared_schedule(
    folder: Path | None,
    processes: ProcessGroup,
    learner: str,
    fingerprint: str,
    data: Mapping[str, str],
    settings: Any,
    seed: int,
    **options: Any,
) -> CheckpointSchedule | None:
    """Check that all processes have the same model, data and settings, and return a schedule of checkpoints.

    Return None without a ``folder``. ``fingerprint`` identifies the model before training; ``data`` holds digests of
    the training data by name; ``options`` are further fields of the schedule.
    """
    chosen = result_settings(settings)
    processes.require_agreement({"model": fingerprint, **data, "settings": digest(chosen)})
    if folder is None:
        return None
    return CheckpointSchedule(folder, digest([learner, fingerprint, *data.values(), chosen, seed]), **options)


class Trainer(Generic[Batch]):
    """One run of a training task, with AdamW as the optimizer.

    A killed run that is started again with the same checkpoints ends with the weights of an uninterrupted run. Several
    processes train together like a single process, each on its share of every batch.
    """

    def __init__(
        self,
        task: TrainingTask[Batch],
        progress: Progress | None = None,
        *,
        stopping: EarlyStopping | None = None,
        checkpoints: CheckpointSchedule | None = None,
        processes: ProcessGroup | None = None,
        parts: int = 1,
    ) -> None:
        """Prepare a training, by default without early stopping and checkpoints.

        Each batch is cut into ``parts`` parts. With ``parts`` > 1, any number of processes up to ``parts`` gives
        bit-identical weights.
        """
        self.task, self.stopping, self.checkpoints = task, stopping or EarlyStopping(), checkpoints
        self.processes, self.parts = processes or ProcessGroup(), parts
        self.progress = progress if progress is not None and self.processes.is_main else SilentProgress()
        self.optimizer = make_optimizer(task.parameters, task.optimizer)
        sharded = {id(parameter) for parameter in task.sharded_parameters}
        shared = [parameter for parameter in task.parameters if id(parameter) not in sharded]
        self.gradients = GradientSum(shared, self.processes, parts)
        self.state = TrainingState(micro_batch=task.batch_size)
        self._best: Mapping[str, Any] = {}
        self._new_losses: list[torch.Tensor] = []
        """Losses that are still on the GPU. They are copied together, since each copy waits for the GPU."""

    def run(self) -> TrainingState:
        """Resume from the last checkpoint if there is one, and train to the end."""
        self._resume()
        state, task = self.state, self.task
        self._began = time.perf_counter() - state.seconds
        self._saved = time.perf_counter()
        self.progress.start(task.label, task.total, task.unit)
        self.progress.advance(task.label, state.units)
        try:
            while not state.stopped:
                self.train_epoch()
                self._finish_epoch()
                if self._is_checkpoint_due():
                    self._save()
        finally:
            task.set_training(False)
            self.progress.finish(task.label)
        for name, weights in self._best.items():
            task.modules[name].load_state_dict(weights)
        return state

    def train_epoch(self) -> None:
        """Run the remaining steps of the current epoch."""
        state, task, schedule = self.state, self.task, self.checkpoints
        task.set_training(True)
        for batch in task.batches(state.epoch + 1, state.batch):
            self._new_losses.append(self.train_step(batch))
            state.weight += task.weight(batch)
            state.tokens += task.count_tokens(batch)
            state.step += 1
            state.batch += 1
            units = 1 if task.unit == STEPS else len(batch)
            state.units += units
            self.progress.advance(task.label, units)
            if schedule and schedule.every_steps and state.step % schedule.every_steps == 0 and state.step < task.steps:
                self._save()

    def train_step(self, batch: Batch) -> torch.Tensor:
        """Run one optimizer step on ``batch``; return its summed losses as a tensor on the device."""
        settings = self.task.optimizer
        factor = learning_rate_factor(self.state.step, self.task.steps, settings.warmup, settings.schedule)
        for group in self.optimizer.param_groups:
            group["lr"] = settings.learning_rate * factor
        losses = self.gradients(len(batch), lambda rows: self._backward(batch, rows))
        clip_gradients(self.task.parameters, settings.largest_gradient, self.task.sharded_parameters, self.processes)
        self.optimizer.step()
        return losses

    def _backward(self, batch: Batch, rows: slice) -> torch.Tensor:
        """Compute losses and gradients of some rows of a batch, and halve the micro-batch while memory runs out."""
        state, task = self.state, self.task
        while True:
            try:
                return task.backward(batch, rows, state.micro_batch)
            except (RuntimeError, MemoryError) as error:
                if not is_out_of_memory(error):
                    raise
                if state.micro_batch == 1:
                    raise MerkhetError(
                        f"{task.label}: out of memory on a single example. {task.memory_hint}"
                    ) from error
            # The size of the largest share, not of this process's share: all processes get the same number.
            share = math.ceil(len(batch) / max(self.processes.count, self.parts))
            state.micro_batch = max(1, min(state.micro_batch, share) // 2)
            logger.warning("%s: out of memory, continuing with %d examples at once", task.label, state.micro_batch)
            release_memory()

    def _finish_epoch(self) -> None:
        """Evaluate the weights, append the epoch to the training curve, and decide whether to stop."""
        state, task = self.state, self.task
        self._fetch_losses()
        losses = [sum(values) / state.weight for values in zip(*state.losses, strict=True)]
        state.epoch += 1
        state.batch, state.weight, state.losses = 0, 0.0, []
        # Memory may have run out in one process only, which then has a smaller micro-batch than the others.
        state.micro_batch = min(self.processes.all_gather_object(state.micro_batch))
        task.set_training(False)
        score = task.evaluate(state.epoch, state.micro_batch)
        state.seconds = time.perf_counter() - self._began
        state.curve.append(task.curve_point(state, losses, score))
        logger.info("%s, epoch %d: %s", task.label, state.epoch, state.curve[-1])
        if score is not None:
            self._apply_stopping(score, sum(losses))
        if state.epoch == task.epochs and not state.stopped:
            state.stopped = EPOCHS

    def _fetch_losses(self) -> None:
        """Copy the new losses to the CPU; raise an error if a loss is infinite or NaN."""
        if self._new_losses:
            self.state.losses += torch.stack(self._new_losses).tolist()
            self._new_losses = []
        if not all(math.isfinite(loss) for losses in self.state.losses for loss in losses):
            raise MerkhetError(f"{self.task.label}: the loss is not a finite number. Use a smaller learning_rate.")

    def _apply_stopping(self, score: float, loss: float) -> None:
        state, rules = self.state, self.stopping
        improved = state.best_score is None or score > state.best_score[0]
        state.evaluations_without_gain = 0 if improved else state.evaluations_without_gain + 1
        if state.best_score is None or (score, -loss) > tuple(state.best_score):
            state.best_epoch, state.best_score = state.epoch, (score, -loss)
            if rules.keep_best:
                self._best = {
                    name: {key: value.detach().clone() for key, value in module.state_dict().items()}
                    for name, module in self.task.modules.items()
                }
        if rules.until is not None and score >= rules.until:
            state.stopped = UNTIL
        elif rules.patience is not None and state.best_score[0] > 0:
            state.stopped = PATIENCE if state.evaluations_without_gain >= rules.patience else ""

    def _is_checkpoint_due(self) -> bool:
        schedule = self.checkpoints
        if schedule is None or schedule.every_steps or self.state.stopped:
            return False
        # The main process decides for all, because the clocks of the processes differ.
        return self.processes.broadcast_object(time.perf_counter() - self._saved >= schedule.seconds)

    def _save(self) -> None:
        """Write a checkpoint atomically. All processes must call this method at the same time."""
        assert self.checkpoints is not None
        self._fetch_losses()
        self.state.seconds = time.perf_counter() - self._began
        random_states = {"cpu": torch.get_rng_state()}  # The random generators draw dropout.
        if self.task.device.type == "cuda":
            random_states["cuda"] = torch.cuda.get_rng_state(self.task.device)
        content = {
            "modules": {name: module.state_dict() for name, module in self.task.modules.items()},
            "best": self._best,
            "optimizer": self.optimizer.state_dict(),
            "random": random_states,
            "state": vars(self.state),
        }
        schedule, sharded = self.checkpoints, self._sharded_tables(content)
        save_checkpoint(schedule.file, schedule.identity, content, self.processes, sharded)
        self._saved = time.perf_counter()

    def _resume(self) -> None:
        """Load the checkpoint of this training; do nothing if it is missing, damaged or from another training."""
        schedule, task = self.checkpoints, self.task
        if schedule is None:
            return
        content = load_checkpoint(schedule.file, schedule.identity, task.label, self.processes, self._sharded_tables)
        if content is None:
            return
        for name, weights in content["modules"].items():
            task.modules[name].load_state_dict(weights)
        self._best = content["best"]
        self.optimizer.load_state_dict(content["optimizer"])
        self.state = TrainingState(**content["state"])
        torch.set_rng_state(content["random"]["cpu"])
        if task.device.type == "cuda" and "cuda" in content["random"]:
            torch.cuda.set_rng_state(content["random"]["cuda"], task.device)
        logger.info("%s: resuming after step %d", task.label, self.state.step)

    def _sharded_tables(self, content: Mapping[str, Any]) -> ShardedTables:
        """Return the sharded tables of a checkpoint: the sharded parameters and their optimizer states."""
        sharded = {id(parameter) for parameter in self.task.sharded_parameters}
        paths: list[KeyPath] = [
            ("modules", name, key)
            for name, module in self.task.modules.items()
            for key, parameter in module.named_parameters()
            if id(parameter) in sharded
        ]
        ordered = [parameter for group in self.optimizer.param_groups for parameter in group["params"]]
        paths += [
            ("optimizer", "state", index, key)
            for index, parameter in enumerate(ordered)
            if id(parameter) in sharded and index in content["optimizer"]["state"]
            for key in ("exp_avg", "exp_avg_sq")
        ]
        return dict.fromkeys(paths, self.task.sharded_rows)
