"""What all learners share: how the learning rate goes, gradients within memory, and random numbers from a seed."""

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
    """The share of the learning rate at a step: linear from 0 up over the warmup, then down to 0."""
    rising = warmup * steps
    return min((step + 1) / (rising + 1), (steps - step) / max(1.0, steps - rising))


def backward_in_parts(
    batch: Sequence[Example],
    at_once: int,
    loss_of: Callable[[Sequence[Example]], torch.Tensor],
    weight: float,
    optimizer: torch.optim.Optimizer,
) -> tuple[float, int]:
    """The gradients of a batch, in parts where memory does not hold it whole.

    ``loss_of`` gives the sum of the losses of some examples; gradients are of the sum over the batch by ``weight``.
    Returns that sum, and how many examples at once were found to fit.
    """
    while True:
        try:
            optimizer.zero_grad()
            losses = 0.0
            for first in range(0, len(batch), at_once):
                loss = loss_of(batch[first : first + at_once])
                (loss / weight).backward()
                losses += float(loss.detach())
            return losses, at_once
        except (RuntimeError, MemoryError) as error:
            if not is_out_of_memory(error):
                raise
            if at_once == 1:
                raise MerkhetError(
                    "out of memory on a single question. Use a machine with more memory, or a smaller model"
                ) from error
            at_once = max(1, min(at_once, len(batch)) // 2)
            logger.warning("out of memory: going on with %d questions at once", at_once)
            optimizer.zero_grad()
            release_memory()


def check_finite(loss: float, label: str) -> None:
    """Refuse to go on with a loss that is not a number any more."""
    if not math.isfinite(loss):
        raise MerkhetError(f"{label}: the loss is not a number any more. Use a smaller learning_rate.")


def check_settings(settings: Any, above_zero: Sequence[str]) -> None:
    """Refuse settings of a learner that make no sense; those named must be above 0."""
    for name in above_zero:
        if not getattr(settings, name) > 0:
            raise InputError(f"the setting {name} of learning is {getattr(settings, name)}, and should be above 0")
    if not 0 <= settings.warmup <= 1 or settings.weight_decay < 0:
        raise InputError("warmup is a share between 0 and 1, and weight_decay is not below 0; mend the settings")


@contextmanager
def seeded(seed: int, *, exact: bool) -> Iterator[None]:
    """Random numbers from a seed, and if asked for operations that give the same every time; then all as before."""
    before = torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled()
    devices = list(range(torch.cuda.device_count())) if torch.cuda.is_available() else []
    with torch.random.fork_rng(devices):
        torch.manual_seed(seed % 2**63)
        torch.use_deterministic_algorithms(exact or before[0], warn_only=True)
        try:
            yield
        finally:
            torch.use_deterministic_algorithms(before[0], warn_only=before[1])
