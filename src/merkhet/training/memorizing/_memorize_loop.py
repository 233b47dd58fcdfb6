"""Training a network to store statements: batches from the seed and the epoch alone, checkpoints, exact resumption."""

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
from merkhet.training._checkpoints import Split, load_checkpoint, save_checkpoint
from merkhet.training._optimization import check_finite
from merkhet.training.distributed._gradient_sync import GradientSum
from merkhet.training.distributed._process_group import ProcessGroup
from merkhet.training.memorizing._device_batches import Feed, Placed
from merkhet.training.memorizing._memory_network import MemoryNetwork
from merkhet.training.memorizing._statement_arrays import Batch, Packed, epoch_batches, length_batches
from merkhet.training.memorizing.memorize_settings import MemorizeSettings

logger = logging.getLogger(__name__)

CHECKPOINT = "checkpoint.pt"
UNTIL, EPOCHS = "until", "epochs"


@dataclass
class Place:
    """Where a training stands: all that a checkpoint holds besides weights and the optimizer's state."""

    epoch: int = 0
    step: int = 0
    at_once: int = 0
    seconds: float = 0.0
    learned: int = 0
    stopped: str = ""
    curve: list[dict[str, float | None]] = field(default_factory=list)


def rate_at(step: int, steps: int, settings: MemorizeSettings) -> float:
    """The share of the learning rate at a step."""
    rising = settings.warmup * steps
    if step < rising:
        return (step + 1) / (rising + 1)
    if settings.schedule == "constant":
        return 1.0
    return 0.5 * (1 + math.cos(math.pi * (step - rising) / max(1.0, steps - rising)))


class Training:
    """One training of a network on statements."""

    def __init__(
        self,
        label: str,
        network: MemoryNetwork,
        packed: Packed,
        settings: MemorizeSettings,
        seed: int,
        progress: Progress | None = None,
        processes: ProcessGroup | None = None,
    ) -> None:
        self.label, self.network, self.packed = label, network, packed
        self.settings, self.seed = settings, seed
        self.processes = processes or ProcessGroup()
        self.progress = progress if progress is not None and self.processes.first else SilentProgress()
        self.parameters = network.parameters()
        kept = {id(one) for one in self._kept()}
        self.others = [one for one in self.parameters if id(one) not in kept]
        shared = self.others if network.shards else self.parameters
        self.gradients = GradientSum(shared, self.processes, settings.parts)
        self.optimizer = torch.optim.AdamW(
            self.parameters,
            lr=settings.learning_rate,
            weight_decay=settings.weight_decay,
            betas=(0.9, 0.98),
            fused=True,
        )
        self.feed = Feed(packed, network.device, network.pad)
        self.readable = int((packed.lengths[: packed.count] > 0).sum())
        self.steps = settings.epochs * len(self._batches(0))
        self.place = Place(at_once=settings.batch_size)

    def run(self, checkpoint: Path | None = None, identity: str = "") -> Place:
        """Learn until it is known well enough, or all epochs are done."""
        place, settings = self.place, self.settings
        began = saved = time.perf_counter()
        before = place.seconds
        self.progress.start(self.label, settings.epochs * self.readable, "statements")
        self.progress.advance(self.label, place.epoch * self.readable)
        try:
            while place.epoch < settings.epochs and not place.stopped:
                loss = self._epoch()
                place.epoch += 1
                check_finite(loss, self.label)
                last = place.epoch == settings.epochs
                known = self.accuracy() if last or place.epoch % settings.evaluate_every == 0 else None
                place.seconds = before + time.perf_counter() - began
                place.curve.append(
                    {"epoch": place.epoch, "loss": loss, "acc@1": known, "seconds": round(place.seconds, 3)}
                )
                logger.info("%s: %s", self.label, place.curve[-1])
                if known is not None and settings.until and known >= settings.until:
                    place.stopped = UNTIL
                elif last:
                    place.stopped = EPOCHS
                if checkpoint and not place.stopped:
                    due = time.perf_counter() - saved >= settings.checkpoint_seconds
                    if self.processes.told(due):  # Clocks differ.
                        self.save(checkpoint, identity)
                        saved = time.perf_counter()
        finally:
            self.progress.finish(self.label)
        return place

    def accuracy(self) -> float:
        """The share of statements whose first answer is right, as they are (ties count by chance)."""
        # Memory may have run out in one process alone, and batches must be the same in all.
        fewest = torch.tensor([-self.place.at_once], device=self.network.device)
        self.processes.highest(fewest)
        self.place.at_once = -int(fewest)
        # One value a statement, so that the sum is the same whoever has asked what.
        right = torch.zeros(self.packed.count, dtype=torch.float64, device=self.network.device)
        batches = length_batches(self.packed, np.arange(self.packed.count), self.place.at_once)
        self.network.begin()
        for batch, placed in self.feed.place(batches if self.network.shards else self.processes.own(batches)):
            ranks = self.network.rank(placed, *self.feed.answers(batch), first=0)
            share = (ranks.best_above == 0) * ranks.best_golds.double() / ranks.best_ties
            right[torch.from_numpy(batch.statements).to(right.device)] = share
        if not self.network.shards:
            self.processes.add([right])
        return float(right.sum()) / max(1, self.packed.count)

    def _batches(self, epoch: int) -> list[Batch]:
        return epoch_batches(
            self.packed,
            epoch,
            batch_size=self.settings.batch_size,
            seed=self.seed,
            dynamic=self.settings.dynamic,
            copies=self.settings.copies,
        )

    def _kept(self) -> list[torch.nn.Parameter]:
        """Parameters whose gradients the head writes anew in every step."""
        outputs = self.network.outputs
        return [*outputs.weights, *outputs.biases]

    def _epoch(self) -> float:
        losses = []
        for _, placed in self.feed.place(self._batches(self.place.epoch)):
            losses.append(self.learn(placed))
            self.place.step += 1
            self.place.learned += len(placed)
            self.progress.advance(self.label, len(placed))
        return float(torch.stack(losses).sum()) / max(1, self.readable)

    def learn(self, batch: Placed) -> torch.Tensor:
        """One step of the optimizer; the summed loss stays on the device."""
        rate = self.settings.learning_rate * rate_at(self.place.step, self.steps, self.settings)
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        loss = self.gradients(len(batch), lambda rows: self._learn_rows(batch, rows))
        self._clip()
        self.optimizer.step()
        return loss

    def _clip(self) -> None:
        """Keep the norm of all gradients within bounds, without waiting for it to come to the host."""
        largest = self.settings.largest_gradient
        if self.network.shards is None:
            torch.nn.utils.clip_grad_norm_(self.parameters, largest, foreach=True)
            return
        others, own = (
            torch.stack(torch._foreach_norm([one.grad for one in some if one.grad is not None])).square().sum()
            for some in (self.others, self._kept())
        )
        self.processes.add([own])
        factor = (largest / ((others + own).sqrt() + 1e-6)).clamp(max=1.0)
        torch._foreach_mul_([one.grad for one in self.parameters if one.grad is not None], factor)

    def _learn_rows(self, batch: Placed, rows: slice) -> torch.Tensor:
        """The summed loss of some rows, and gradients of it by the size of the batch, in parts that memory holds."""
        while True:
            for one in self.others:
                one.grad = None
            try:
                self.network.begin()
                losses = self._sharded(batch) if self.network.shards else self._plain(batch, rows)
                self.network.end()
                return losses
            except (RuntimeError, MemoryError) as error:
                if not is_out_of_memory(error):
                    raise
                if self.place.at_once == 1:
                    raise MerkhetError(
                        "out of memory on a single statement. Use a smaller model or fewer symbols"
                    ) from error
                self.place.at_once = max(1, min(self.place.at_once, len(batch)) // 2)
                logger.warning("%s: out of memory, going on with %d at once", self.label, self.place.at_once)
                release_memory()

    def _plain(self, batch: Placed, rows: slice) -> torch.Tensor:
        losses = [torch.zeros((), device=self.network.device)]
        for begin in range(rows.start, rows.stop, self.place.at_once):
            part = batch[begin : min(begin + self.place.at_once, rows.stop)]
            losses.append(self.network.learn(part, 1 / len(batch), first=begin == rows.start).loss)
        if len(losses) == 1:  # Fewer statements than processes: what the last step has left does not count.
            for one in self.parameters:
                one.grad = None
        return torch.stack(losses).sum()

    def _sharded(self, batch: Placed) -> torch.Tensor:
        """The same by processes that learn part after part at once."""
        every, most = self.processes, self.place.at_once
        losses = [torch.zeros((), device=self.network.device)]
        shares = [every.share(len(batch), rank) for rank in range(every.count)]
        for passed in range(0, max(share.stop - share.start for share in shares), most):
            parts = [slice(min(s.start + passed, s.stop), min(s.start + passed + most, s.stop)) for s in shares]
            sizes = [part.stop - part.start for part in parts]
            learnt = self.network.learn_sharded(batch[parts[every.rank]], sizes, 1 / len(batch), first=passed == 0)
            losses.append(learnt.loss)
        return torch.stack(losses).sum()

    def save(self, file: Path, identity: str) -> None:
        """Write where the training stands; the file is there whole or as it was. All processes must call this."""
        content = {
            "network": self.network.network.state_dict(),
            "symbols": self.network.symbols.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "place": vars(self.place),
        }
        save_checkpoint(file, identity, content, self.processes, self._split(content))

    def _split(self, content: Mapping[str, Any]) -> Split:
        """Where a checkpoint has tables that this process holds some rows of: the symbols, and their optimizer's."""
        if self.network.shards is None:
            return {}
        own = {place for place, one in enumerate(self.parameters) if any(one is kept for kept in self._kept())}
        names: list[Any] = [("symbols", name) for name in content["symbols"]]
        state = content["optimizer"]["state"]
        names += [
            ("optimizer", "state", place, name) for place in own & set(state) for name in ("exp_avg", "exp_avg_sq")
        ]
        return dict.fromkeys(names, self.network.count)

    def resume(self, file: Path, identity: str) -> None:
        """Go on from a checkpoint of this very training; one of another, or a damaged one, is left alone."""
        content = load_checkpoint(file, identity, self.label, self.processes, self._split)
        if content is None:
            return
        self.network.network.load_state_dict(content["network"])
        self.network.symbols.load_state_dict(content["symbols"])
        self.optimizer.load_state_dict(content["optimizer"])
        self.place = Place(**content["place"])
        logger.info("%s: going on after epoch %d", self.label, self.place.epoch)
