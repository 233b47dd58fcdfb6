"""Training task of memorizing, with reproducible batches and a fast backward pass."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import torch

from merkhet.training._training_task import CurvePoint, TrainingState, TrainingTask
from merkhet.training.distributed._process_group import ProcessGroup
from merkhet.training.memorizing._memory_network import MemoryNetwork
from merkhet.training.memorizing._statement_arrays import (
    Batch,
    BatchLoader,
    DeviceBatch,
    StatementArrays,
    epoch_batches,
    length_batches,
)
from merkhet.training.memorizing.memorize_settings import MemorizeSettings


class MemorizeTask(TrainingTask[DeviceBatch]):
    """The training of a memory network on statements."""

    memory_hint = "Use a smaller model or fewer symbols"

    def __init__(
        self,
        label: str,
        network: MemoryNetwork,
        arrays: StatementArrays,
        settings: MemorizeSettings,
        seed: int,
        processes: ProcessGroup | None = None,
    ) -> None:
        modules = {"network": network.network, "symbols": network.symbols}
        super().__init__(
            *(label, settings, modules),
            unit="statements",
            schedule=settings.schedule,
            betas=(0.9, 0.98),
            fused=True,
        )
        self.network, self.arrays, self.seed = network, arrays, seed
        self.processes = processes or ProcessGroup()
        self.loader = BatchLoader(arrays, network.device, network.pad)
        self.epochs = settings.epochs
        self.steps = self.epochs * len(self.epoch_batches(1))
        self.total = self.epochs * int((arrays.lengths[: arrays.count] > 0).sum())
        head = [*network.outputs.weights, *network.outputs.biases]
        head_ids = {id(parameter) for parameter in head}
        self.body_parameters = [parameter for parameter in self.parameters if id(parameter) not in head_ids]
        """All parameters except those of the output head, whose gradients are overwritten in every step."""
        if network.sharded_head:
            self.sharded_parameters, self.sharded_rows = head, network.count

    def set_training(self, training: bool) -> None:
        """Do nothing: the network stays in evaluation mode, because dropout would hinder memorizing."""

    def epoch_batches(self, epoch: int) -> list[Batch]:
        """Return the batches of an epoch. Epochs are counted from 1."""
        dynamic, copies = self.settings.dynamic, self.settings.copies
        return epoch_batches(
            self.arrays, epoch - 1, batch_size=self.batch_size, seed=self.seed, dynamic=dynamic, copies=copies
        )

    def batches(self, epoch: int, start: int) -> Iterator[DeviceBatch]:
        """Yield the batches of an epoch from the index ``start`` on, loaded onto the device."""
        for _, batch in self.loader.load(self.epoch_batches(epoch)[start:]):
            yield batch

    def weight(self, batch: DeviceBatch) -> float:
        """Return the number of statements in a batch."""
        return len(batch)

    def backward(self, batch: DeviceBatch, rows: slice, micro_batch: int) -> torch.Tensor:
        """Compute the gradients of some rows of a batch; return their summed loss.

        The gradients of the output head are computed by a formula instead of autograd.
        """
        for parameter in self.body_parameters:
            parameter.grad = None
        self.network.begin_step()
        losses = (
            self._backward_sharded(batch, micro_batch)
            if self.network.sharded_head
            else self._backward_rows(batch, rows, micro_batch)
        )
        self.network.end_step()
        return torch.stack([torch.zeros((), device=self.device), *losses]).sum(0, keepdim=True)

    def _backward_rows(self, batch: DeviceBatch, rows: slice, micro_batch: int) -> list[torch.Tensor]:
        losses = []
        for begin in range(rows.start, rows.stop, micro_batch):
            part = batch[begin : min(begin + micro_batch, rows.stop)]
            losses.append(self.network.backward(part, 1 / len(batch), overwrite=begin == rows.start).loss)
        if not losses:  # This process has no statements of the batch, and still holds gradients of an earlier step.
            for parameter in self.parameters:
                parameter.grad = None
        return losses

    def _backward_sharded(self, batch: DeviceBatch, micro_batch: int) -> list[torch.Tensor]:
        """Compute the gradients with a sharded head; return the losses of this process's micro-batches.

        All processes run the same number of micro-batches at the same time.
        """
        losses = []
        shares = [self.processes.shard(len(batch), rank) for rank in range(self.processes.count)]
        for offset in range(0, max(share.stop - share.start for share in shares), micro_batch):
            parts = [slice(min(s.start + offset, s.stop), min(s.start + offset + micro_batch, s.stop)) for s in shares]
            sizes = [part.stop - part.start for part in parts]
            gradients = self.network.backward_sharded(
                batch[parts[self.processes.rank]], sizes, 1 / len(batch), overwrite=offset == 0
            )
            losses.append(gradients.loss)
        return losses

    def evaluate(self, epoch: int, micro_batch: int) -> float | None:
        """Return the share of statements whose highest-scoring output is a gold answer.

        Ties for the highest score count as the chance of drawing a gold answer. Return None if this epoch is not
        evaluated.
        """
        if epoch % self.settings.evaluate_every and epoch < self.epochs:
            return None
        # One element for each statement: the sum then does not depend on which process ranked the statement.
        credits = torch.zeros(self.arrays.count, dtype=torch.float64, device=self.device)
        batches = length_batches(self.arrays, np.arange(self.arrays.count), micro_batch)
        self.network.begin_step()
        if not self.network.sharded_head:
            batches = batches[self.processes.rank :: self.processes.count]
        for batch, device_batch in self.loader.load(batches):
            ranks = self.network.rank(device_batch, *self.loader.answers(batch), top_k=0)
            credit = (ranks.best_above == 0) * ranks.best_golds.double() / ranks.best_ties
            credits[torch.from_numpy(batch.statements).to(credits.device)] = credit
        if not self.network.sharded_head:
            self.processes.all_reduce_sum([credits])
        return float(credits.sum()) / max(1, self.arrays.count)

    def curve_point(self, state: TrainingState, losses: Sequence[float], score: float | None) -> CurvePoint:
        """Return a curve point with the epoch, the loss, the accuracy and the elapsed seconds."""
        return {"epoch": state.epoch, "loss": losses[0], "acc@1": score, "seconds": round(state.seconds, 3)}
