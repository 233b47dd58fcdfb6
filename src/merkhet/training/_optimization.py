"""AdamW with a learning-rate schedule and gradient clipping, and seeding of random generators."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import torch

from merkhet.training.distributed._process_group import ProcessGroup


@dataclass(frozen=True)
class OptimizerSettings:
    """Hyperparameters of AdamW."""

    learning_rate: float
    weight_decay: float
    warmup: float
    """Share of all steps during which the learning rate rises."""
    largest_gradient: float = 1.0
    """Maximum gradient norm."""
    schedule: str = "linear"
    """Learning rate after the warmup: ``linear`` or ``cosine`` decay to 0, or ``constant``."""
    decay_vectors: bool = True
    """Whether weight decay also applies to biases and layer norms."""
    betas: tuple[float, float] = (0.9, 0.999)
    fused: bool = False
    """Whether to use torch's fused AdamW, which is faster for large tables."""


def make_optimizer(parameters: Sequence[torch.nn.Parameter], settings: OptimizerSettings) -> torch.optim.AdamW:
    """Return an AdamW optimizer for ``parameters``."""
    groups = [{"params": list(parameters), "weight_decay": settings.weight_decay}]
    if not settings.decay_vectors:
        groups = [
            {"params": [p for p in parameters if p.ndim > 1], "weight_decay": settings.weight_decay},
            {"params": [p for p in parameters if p.ndim <= 1], "weight_decay": 0.0},
        ]
    return torch.optim.AdamW(groups, lr=settings.learning_rate, betas=settings.betas, fused=settings.fused or None)


def learning_rate_factor(step: int, steps: int, warmup: float, schedule: str = "linear") -> float:
    """Return the factor of the learning rate after ``step`` of ``steps`` steps.

    The factor rises linearly during the warmup. Then it decays to 0 or stays 1, depending on ``schedule``.
    """
    warmup_steps = warmup * steps
    if step < warmup_steps:
        return (step + 1) / (warmup_steps + 1)
    if schedule == "constant":
        return 1.0
    decay_steps = max(1.0, steps - warmup_steps)
    if schedule == "cosine":
        return 0.5 * (1 + math.cos(math.pi * (step - warmup_steps) / decay_steps))
    return (steps - step) / decay_steps


def clip_gradients(
    parameters: Sequence[torch.nn.Parameter],
    limit: float,
    sharded: Sequence[torch.nn.Parameter],
    processes: ProcessGroup,
) -> None:
    """Scale all gradients down if their common norm exceeds ``limit``.

    The norm counts the shares of ``sharded`` parameters in all processes. It is never copied from the GPU to the CPU.
    """
    if not sharded:
        torch.nn.utils.clip_grad_norm_(parameters, limit, foreach=True)
        return
    sharded_ids = {id(parameter) for parameter in sharded}
    trained = [parameter for parameter in parameters if parameter.grad is not None]

    def squared_norm(is_sharded: bool) -> torch.Tensor:
        gradients = [p.grad for p in trained if (id(p) in sharded_ids) is is_sharded]
        return torch.stack(torch._foreach_norm(gradients)).square().sum()

    common_square, local_square = squared_norm(False), squared_norm(True)
    processes.all_reduce_sum([local_square])
    factor = (limit / ((common_square + local_square).sqrt() + 1e-6)).clamp(max=1.0)
    torch._foreach_mul_([parameter.grad for parameter in trained], factor)


@contextmanager
def seeded(seed: int, *, exact: bool) -> Iterator[None]:
    """Seed torch's random generators within a ``with`` block, and restore their state afterwards.

    With ``exact``, torch also uses deterministic algorithms within the block.
    """
    previous = torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled()
    devices = list(range(torch.cuda.device_count())) if torch.cuda.is_available() else []
    with torch.random.fork_rng(devices):
        torch.manual_seed(seed % 2**63)
        torch.use_deterministic_algorithms(exact or previous[0], warn_only=True)
        try:
            yield
        finally:
            torch.use_deterministic_algorithms(previous[0], warn_only=previous[1])
