"""Several processes that share each batch: torchrun's, by gloo on a CPU and nccl on GPUs, or one alone."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import torch
import torch.distributed as dist

Item = TypeVar("Item")


@dataclass(frozen=True)
class Processes:
    """This process among all that train together."""

    rank: int = 0
    count: int = 1

    @property
    def first(self) -> bool:
        """Whether this is the one that writes."""
        return self.rank == 0

    def share(self, rows: int) -> slice:
        """The part of a batch of so many rows that this process learns."""
        return slice(rows * self.rank // self.count, rows * (self.rank + 1) // self.count)

    def own(self, items: Sequence[Item]) -> Sequence[Item]:
        """Every so-manieth of some items."""
        return items[self.rank :: self.count]

    def add(self, tensors: Sequence[torch.Tensor]) -> None:
        """Add up what all processes have, in place of what each has."""
        if self.count > 1:
            for tensor in tensors:
                dist.all_reduce(tensor)

    def wait(self) -> None:
        """Wait until all processes are here."""
        if self.count > 1:
            dist.barrier()

    def leave(self) -> None:
        """Take leave of the others."""
        if self.count > 1 and dist.is_initialized():
            dist.destroy_process_group()


def join_processes() -> Processes:
    """The processes that torchrun has started; one alone where it has not."""
    count = int(os.environ.get("WORLD_SIZE", "1"))
    if count == 1:
        return Processes()
    if torch.cuda.is_available():
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")) % torch.cuda.device_count())
    if not dist.is_initialized():
        dist.init_process_group("nccl" if torch.cuda.is_available() else "gloo")
    return Processes(dist.get_rank(), dist.get_world_size())
