"""Several processes that train together: torchrun's, by gloo on a CPU and nccl on GPUs, or one alone.

Whatever all must decide alike is decided by the first, or by all together, with what is here.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import torch
import torch.distributed as dist

from merkhet.core.errors import InputError
from merkhet.models.batching import is_out_of_memory

Item = TypeVar("Item")
_SMALL = 1 << 16
"""Tensors of fewer cells are sent as one."""


@dataclass(frozen=True)
class ProcessGroup:
    """This process among all that train together; ``joined`` where torchrun has started it, be it alone."""

    rank: int = 0
    count: int = 1
    joined: bool = False

    @property
    def first(self) -> bool:
        """Whether this is the one that writes."""
        return self.rank == 0

    def share(self, rows: int, rank: int | None = None) -> slice:
        """The part of so many rows that belongs to this process, or to another."""
        rank = self.rank if rank is None else rank
        return slice(rows * rank // self.count, rows * (rank + 1) // self.count)

    def own(self, items: Sequence[Item]) -> Sequence[Item]:
        """Every so-manieth of some items."""
        return items[self.rank :: self.count]

    def add(self, tensors: Sequence[torch.Tensor]) -> None:
        """Add up what all processes have, in place of what each has."""
        if not self.joined:
            return
        small: dict[tuple[torch.dtype, torch.device], list[torch.Tensor]] = {}
        for tensor in tensors:
            if tensor.numel() < _SMALL:
                small.setdefault((tensor.dtype, tensor.device), []).append(tensor)
            else:
                self._reduce(tensor, dist.ReduceOp.SUM)
        for together in small.values():
            flat = torch.cat([tensor.detach().reshape(-1) for tensor in together])
            self._reduce(flat, dist.ReduceOp.SUM)
            for tensor, part in zip(together, flat.split([tensor.numel() for tensor in together]), strict=True):
                tensor.detach().copy_(part.view_as(tensor))

    def highest(self, tensor: torch.Tensor) -> None:
        """The highest value that any process has, in each place."""
        if self.joined:
            self._reduce(tensor, dist.ReduceOp.MAX)

    def gather(self, tensor: torch.Tensor) -> list[torch.Tensor]:
        """What each process has, all of one shape, by rank."""
        if not self.joined:
            return [tensor]
        given = _staged(tensor)
        found = [torch.empty_like(given) for _ in range(self.count)]
        dist.all_gather(found, given)
        return [one.to(tensor.device) for one in found]

    def tell(self, tensor: torch.Tensor) -> None:
        """Give all processes what the first has, in place of what each has."""
        if self.joined:
            staged = _staged(tensor)
            dist.broadcast(staged, 0)
            if staged is not tensor:
                tensor.copy_(staged)

    def told(self, said: Item) -> Item:
        """What the first process says; what the others say does not count."""
        if not self.joined:
            return said
        found = [said]
        dist.broadcast_object_list(found, 0)
        return found[0]

    def every(self, said: Item) -> list[Item]:
        """What each process says, by rank."""
        if not self.joined:
            return [said]
        found: list[Any] = [None] * self.count
        dist.all_gather_object(found, said)
        return found

    def send(self, tensor: torch.Tensor, to: int) -> None:
        """Give a tensor to another process, which takes it."""
        dist.send(_staged(tensor), to)

    def take(self, tensor: torch.Tensor, of: int) -> None:
        """Take a tensor of this shape from another process."""
        staged = _staged(tensor)
        dist.recv(staged, of)
        if staged is not tensor:
            tensor.copy_(staged)

    def any(self, so: bool, device: torch.device) -> bool:
        """Whether it is so in some process."""
        if not self.joined:
            return so
        flag = torch.tensor([int(so)], device=device)
        self.highest(flag)
        return bool(flag)

    def within_memory(self, work: Callable[[], Item], device: torch.device) -> Item:
        """What work gives. Where memory runs out in one process, it counts as run out in all, so that none waits."""
        failed: BaseException | None = None
        try:
            found = work()
        except (RuntimeError, MemoryError) as error:
            if not is_out_of_memory(error):
                raise
            failed = error
        if self.any(failed is not None, device):
            raise failed or RuntimeError("out of memory in another process")
        return found

    def refuse_others(self, said: Mapping[str, str]) -> None:
        """Refuse to work together with processes that say something else of the same things."""
        for rank, other in enumerate(self.every(dict(said))):
            for name, own in said.items():
                if other.get(name) != own:
                    raise InputError(
                        f"the processes that train together do not agree on the {name}: it is {own} in process "
                        f"{self.rank}, and {other.get(name)} in process {rank}. Give all machines the same."
                    )

    def wait(self) -> None:
        """Wait until all processes are here."""
        if self.joined:
            self.every(None)

    def _reduce(self, tensor: torch.Tensor, how: Any) -> None:
        staged = _staged(tensor)
        dist.all_reduce(staged, how)
        if staged is not tensor:
            tensor.copy_(staged)


def _staged(tensor: torch.Tensor) -> torch.Tensor:
    """A tensor where the processes can exchange it: gloo wants it in the memory of the host, and nccl on a GPU."""
    on_gpu = dist.get_backend() == "nccl"
    if tensor.is_cuda != on_gpu:
        return tensor.cuda() if on_gpu else tensor.cpu()
    return tensor.contiguous()


@contextmanager
def join_process_group(device: str = "auto") -> Iterator[ProcessGroup]:
    """The processes that torchrun has started, until all is done; one alone where it has not.

    By nccl where each has a GPU of its own, else by gloo.
    """
    if "WORLD_SIZE" not in os.environ or "MASTER_ADDR" not in os.environ:
        yield ProcessGroup()
        return
    on_gpus = torch.cuda.is_available() and device in ("auto", "cuda")
    alone = int(os.environ.get("LOCAL_WORLD_SIZE", "1")) <= torch.cuda.device_count()
    if on_gpus:
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")) % torch.cuda.device_count())
    # Its functions keep the group that there is when it is first imported: then gloo's threads would outlive the
    # interpreter's end, and abort the process.
    importlib.import_module("torch.distributed.nn.functional")
    dist.init_process_group("nccl" if on_gpus and alone else "gloo")
    yield ProcessGroup(dist.get_rank(), dist.get_world_size(), joined=True)
    # Not where something was raised: who takes leave then may wait for others that wait for it.
    dist.destroy_process_group()
