"""The training loop of memorizing: batches from the seed and the epoch alone, checkpoints, exact resumption."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch

from merkhet.core.errors import MerkhetError
from merkhet.core.progress import Progress, SilentProgress
from merkhet.models.batching import is_out_of_memory, release_memory
from merkhet.training._checkpoints import ShardedTables, load_checkpoint, save_checkpoint
from merkhet.training._optimization import check_finite
from merkhet.training.distributed._gradient_sync import GradientSum
from merkhet.training.distributed._process_group import ProcessGroup
from merkhet.training.memorizing._device_batches import BatchLoader, DeviceBatch
from merkhet.training.memorizing._memory_network import MemoryNetwork
from merkhet.training.memorizing._statement_arrays import Batch, StatementArrays, epoch_batches, length_batches
from merkhet.training.memorizing.memorize_settings import MemorizeSettings

logger = logging.getLogger(__name__)

CHECKPOINT = "checkpoint.pt"
UNTIL, EPOCHS = "until", "epochs"


@dataclass
class TrainingState:
    """Progress of a training: what a checkpoint holds besides the states of network and optimizer."""

    epoch: int = 0
    """Number of finished epochs."""
    step: int = 0
    """Number of finished steps."""
    micro_batch: int = 0
    """Number of statements that fit into memory at once."""
    seconds: float = 0.0
    """Training time."""
    learned: int = 0
    """Number of statements trained so far, over all epochs."""
    stopped: str = ""
    """Why the training ended: ``until`` or ``epochs``; empty while it runs."""
    curve: list[dict[str, float | None]] = field(default_factory=list)
    """Loss and accuracy of each epoch."""


def learning_rate_factor(step: int, steps: int, settings: MemorizeSettings) -> float:
    """Return the share of the learning rate at a step: linear warmup, then a cosine or a constant."""
    warmup_steps = settings.warmup * steps
    if step < warmup_steps:
        return (step + 1) / (warmup_steps + 1)
    if settings.schedule == "constant":
        return 1.0
    return 0.5 * (1 + math.cos(math.pi * (step - warmup_steps) / max(1.0, steps - warmup_steps)))


class Training:
    """The training of a network on statements."""

    def __init__(
        self,
        label: str,
        network: MemoryNetwork,
        arrays: StatementArrays,
        settings: MemorizeSettings,
        seed: int,
        progress: Progress | None = None,
        processes: ProcessGroup | None = None,
    ) -> None:
        self.label, self.network, self.arrays = label, network, arrays
        self.settings, self.seed = settings, seed
        self.processes = processes or ProcessGroup()
        self.progress = progress if progress is not None and self.processes.is_main else SilentProgress()
        self.parameters = network.parameters()
        head_ids = {id(parameter) for parameter in self._head_parameters()}
        self.body_parameters = [parameter for parameter in self.parameters if id(parameter) not in head_ids]
        summed = self.body_parameters if network.sharded_head else self.parameters
        self.gradients = GradientSum(summed, self.processes, settings.parts)
        self.optimizer = torch.optim.AdamW(
            self.parameters,
            lr=settings.learning_rate,
            weight_decay=settings.weight_decay,
            betas=(0.9, 0.98),
            fused=True,
        )
        self.loader = BatchLoader(arrays, network.device, network.pad)
        self.readable = int((arrays.lengths[: arrays.count] > 0).sum())
        self.steps = settings.epochs * len(self._batches(0))
        self.state = TrainingState(micro_batch=settings.batch_size)

    def run(self, checkpoint: Path | None = None, identity: str = "") -> TrainingState:
        """Train until the accuracy is reached or all epochs are done."""
        state, settings = self.state, self.settings
        began = saved = time.perf_counter()
        earlier_seconds = state.seconds
        self.progress.start(self.label, settings.epochs * self.readable, "statements")
        self.progress.advance(self.label, state.epoch * self.readable)
        try:
            while state.epoch < settings.epochs and not state.stopped:
                loss = self._train_epoch()
                state.epoch += 1
                check_finite(loss, self.label)
                last = state.epoch == settings.epochs
                accuracy = self.accuracy() if last or state.epoch % settings.evaluate_every == 0 else None
                state.seconds = earlier_seconds + time.perf_counter() - began
                state.curve.append(
                    {"epoch": state.epoch, "loss": loss, "acc@1": accuracy, "seconds": round(state.seconds, 3)}
                )
                logger.info("%s: %s", self.label, state.curve[-1])
                if accuracy is not None and settings.until and accuracy >= settings.until:
                    state.stopped = UNTIL
                elif last:
                    state.stopped = EPOCHS
                if checkpoint and not state.stopped:
                    due = time.perf_counter() - saved >= settings.checkpoint_seconds
                    if self.processes.broadcast_object(due):  # The processes' clocks differ.
                        self.save(checkpoint, identity)
                        saved = time.perf_counter()
        finally:
            self.progress.finish(self.label)
        return state

    def accuracy(self) -> float:
        """Return the share of statements whose first answer is right; ties count by chance."""
        # Memory may have run out in one process only, but batches must be the same in all.
        smallest = torch.tensor([-self.state.micro_batch], device=self.network.device)
        self.processes.all_reduce_max(smallest)
        self.state.micro_batch = -int(smallest)
        # One cell a statement, so that the sum does not depend on which process ranked it.
        credits = torch.zeros(self.arrays.count, dtype=torch.float64, device=self.network.device)
        batches = length_batches(self.arrays, np.arange(self.arrays.count), self.state.micro_batch)
        self.network.begin_step()
        for batch, device_batch in self.loader.load(
            batches if self.network.sharded_head else self.processes.stride(batches)
        ):
            ranks = self.network.rank(device_batch, *self.loader.answers(batch), top_k=0)
            credit = (ranks.best_above == 0) * ranks.best_golds.double() / ranks.best_ties
            credits[torch.from_numpy(batch.statements).to(credits.device)] = credit
        if not self.network.sharded_head:
            self.processes.all_reduce_sum([credits])
        return float(credits.sum()) / max(1, self.arrays.count)

    def _batches(self, epoch: int) -> list[Batch]:
        return epoch_batches(
            self.arrays,
            epoch,
            batch_size=self.settings.batch_size,
            seed=self.seed,
            dynamic=self.settings.dynamic,
            copies=self.settings.copies,
        )

    def _head_parameters(self) -> list[torch.nn.Parameter]:
        """Return the parameters whose gradients the head overwrites in every step."""
        outputs = self.network.outputs
        return [*outputs.weights, *outputs.biases]

    def _train_epoch(self) -> float:
        losses = []
        for _, batch in self.loader.load(self._batches(self.state.epoch)):
            losses.append(self.train_step(batch))
            self.state.step += 1
            self.state.learned += len(batch)
            self.progress.advance(self.label, len(batch))
        return float(torch.stack(losses).sum()) / max(1, self.readable)

    def train_step(self, batch: DeviceBatch) -> torch.Tensor:
        """Take one step of the optimizer; return the summed loss, which stays on the device."""
        rate = self.settings.learning_rate * learning_rate_factor(self.state.step, self.steps, self.settings)
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        loss = self.gradients(len(batch), lambda rows: self._backward_rows(batch, rows))
        self._clip()
        self.optimizer.step()
        return loss

    def _clip(self) -> None:
        """Clip the gradient norm without copying it to the host."""
        limit = self.settings.largest_gradient
        if self.network.sharded_head is None:
            torch.nn.utils.clip_grad_norm_(self.parameters, limit, foreach=True)
            return
        body_norm, head_norm = (
            torch.stack(torch._foreach_norm([parameter.grad for parameter in parameters if parameter.grad is not None]))
            .square()
            .sum()
            for parameters in (self.body_parameters, self._head_parameters())
        )
        self.processes.all_reduce_sum([head_norm])
        factor = (limit / ((body_norm + head_norm).sqrt() + 1e-6)).clamp(max=1.0)
        torch._foreach_mul_([parameter.grad for parameter in self.parameters if parameter.grad is not None], factor)

    def _backward_rows(self, batch: DeviceBatch, rows: slice) -> torch.Tensor:
        """Compute the summed loss and the gradients of some rows, in micro-batches that fit into memory."""
        while True:
            for parameter in self.body_parameters:
                parameter.grad = None
            try:
                self.network.begin_step()
                losses = self._backward_sharded(batch) if self.network.sharded_head else self._backward(batch, rows)
                self.network.end_step()
                return losses
            except (RuntimeError, MemoryError) as error:
                if not is_out_of_memory(error):
                    raise
                if self.state.micro_batch == 1:
                    raise MerkhetError(
                        "out of memory on a single statement. Use a smaller model or fewer symbols"
                    ) from error
                self.state.micro_batch = max(1, min(self.state.micro_batch, len(batch)) // 2)
                logger.warning(
                    "%s: out of memory, continuing with %d statements at once", self.label, self.state.micro_batch
                )
                release_memory()

    def _backward(self, batch: DeviceBatch, rows: slice) -> torch.Tensor:
        losses = [torch.zeros((), device=self.network.device)]
        for begin in range(rows.start, rows.stop, self.state.micro_batch):
            micro_batch = batch[begin : min(begin + self.state.micro_batch, rows.stop)]
            losses.append(self.network.backward(micro_batch, 1 / len(batch), overwrite=begin == rows.start).loss)
        if len(losses) == 1:  # Fewer statements than processes: the gradients of the last step are stale.
            for parameter in self.parameters:
                parameter.grad = None
        return torch.stack(losses).sum()

    def _backward_sharded(self, batch: DeviceBatch) -> torch.Tensor:
        """Do the same with a sharded head: all processes run the same number of micro-batches at once."""
        processes, size = self.processes, self.state.micro_batch
        losses = [torch.zeros((), device=self.network.device)]
        shares = [processes.shard(len(batch), rank) for rank in range(processes.count)]
        for offset in range(0, max(share.stop - share.start for share in shares), size):
            parts = [slice(min(s.start + offset, s.stop), min(s.start + offset + size, s.stop)) for s in shares]
            sizes = [part.stop - part.start for part in parts]
            gradients = self.network.backward_sharded(
                batch[parts[processes.rank]], sizes, 1 / len(batch), overwrite=offset == 0
            )
            losses.append(gradients.loss)
        return torch.stack(losses).sum()

    def save(self, file: Path, identity: str) -> None:
        """Write a checkpoint atomically. All processes must call this at once."""
        content = {
            "network": self.network.network.state_dict(),
            "symbols": self.network.symbols.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "state": vars(self.state),
        }
        save_checkpoint(file, identity, content, self.processes, self._sharded_tables(content))

    def _sharded_tables(self, content: Mapping[str, Any]) -> ShardedTables:
        """Return the tables of a checkpoint that are sharded: the symbols and their optimizer state."""
        if self.network.sharded_head is None:
            return {}
        indices = {
            index
            for index, parameter in enumerate(self.parameters)
            if any(parameter is head_parameter for head_parameter in self._head_parameters())
        }
        paths: list[Any] = [("symbols", name) for name in content["symbols"]]
        state = content["optimizer"]["state"]
        paths += [
            ("optimizer", "state", index, name) for index in indices & set(state) for name in ("exp_avg", "exp_avg_sq")
        ]
        return dict.fromkeys(paths, self.network.count)

    def resume(self, file: Path, identity: str) -> None:
        """Continue from a checkpoint of this training; ignore a damaged one or another training's."""
        content = load_checkpoint(file, identity, self.label, self.processes, self._sharded_tables)
        if content is None:
            return
        self.network.network.load_state_dict(content["network"])
        self.network.symbols.load_state_dict(content["symbols"])
        self.optimizer.load_state_dict(content["optimizer"])
        self.state = TrainingState(**content["state"])
        logger.info("%s: resuming after epoch %d", self.label, self.state.epoch)
