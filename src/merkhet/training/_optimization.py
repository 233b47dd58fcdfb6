"""Helpers that all learners share: learning-rate schedule, gradients within memory, seeded random numbers."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import torch

from merkhet.core.errors import InputError, MerkhetError
from merkhet.models.batching import is_out_of_memory, release_memory

logger = logging.getLogger(__name__)

Example = TypeVar("Example")


def linear_schedule(step: int, steps: int, warmup: float) -> float:
    """Return the share of the learning rate at a step: linear warmup from 0, then linear decay to 0."""
    warmup_steps = warmup * steps
    return min((step + 1) / (warmup_steps + 1), (steps - step) / max(1.0, steps - warmup_steps))


def accumulate_gradients(
    batch: Sequence[Example],
    micro_batch: int,
    loss_of: Callable[[Sequence[Example]], torch.Tensor],
    weight: float,
    optimizer: torch.optim.Optimizer,
) -> tuple[float, int]:
    """Compute the gradients of a batch, in micro-batches where memory does not hold all of it.

    Args:
        batch: the examples.
        micro_batch: number of examples to try at once.
        loss_of: returns the summed loss of some examples.
        weight: divisor of the summed loss.
        optimizer: the optimizer whose gradients are reset.

    Returns:
        The summed loss, and the number of examples at once that fit into memory.

    Raises:
        MerkhetError: a single example does not fit into memory.
    """
    while True:
        try:
            optimizer.zero_grad()
            losses = 0.0
            for first in range(0, len(batch), micro_batch):
                loss = loss_of(batch[first : first + micro_batch])
                (loss / weight).backward()
                losses += float(loss.detach())
            return losses, micro_batch
        except (RuntimeError, MemoryError) as error:
            if not is_out_of_memory(error):
                raise
            if micro_batch == 1:
                raise MerkhetError(
                    "out of memory on a single question. Use a machine with more memory, or a smaller model"
                ) from error
            micro_batch = max(1, min(micro_batch, len(batch)) // 2)
            logger.warning("out of memory: continuing with %d questions at once", micro_batch)
            optimizer.zero_grad()
            release_memory()


def check_finite(loss: float, label: str) -> None:
    """Refuse to continue with an infinite or undefined loss."""
    if not math.isfinite(loss):
        raise MerkhetError(f"{label}: the loss is not a finite number. Use a smaller learning_rate.")


def check_settings(settings: Any, positive: Sequence[str]) -> None:
    """Refuse invalid settings of a learner; those in ``positive`` must be above 0."""
    for name in positive:
        if not getattr(settings, name) > 0:
            raise InputError(f"the setting {name} of learning is {getattr(settings, name)}, and should be above 0")
    if not 0 <= settings.warmup <= 1 or settings.weight_decay < 0:
        raise InputError("warmup is a share between 0 and 1, and weight_decay is not below 0; mend the settings")


@contextmanager
def seeded(seed: int, *, exact: bool) -> Iterator[None]:
    """Seed torch within the block, with deterministic operations if ``exact``; restore the state after it."""
    previous = torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled()
    devices = list(range(torch.cuda.device_count())) if torch.cuda.is_available() else []
    with torch.random.fork_rng(devices):
        torch.manual_seed(seed % 2**63)
        torch.use_deterministic_algorithms(exact or previous[0], warn_only=True)
        try:
            yield
        finally:
            torch.use_deterministic_algorithms(previous[0], warn_only=previous[1])
