"""The group of processes that train together: torchrun's, by gloo or nccl, or a single one.

A decision that must be the same everywhere is taken by the main process or by a collective operation of this module.
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
"""Tensors with fewer cells are reduced together, in one message."""


@dataclass(frozen=True)
class ProcessGroup:
    """This process and its peers. Every collective method must be called by all processes at once."""

    rank: int = 0
    count: int = 1
    """Number of processes."""
    distributed: bool = False
    """True if torchrun started this process, even as the only one."""

    @property
    def is_main(self) -> bool:
        """True for the process that writes files and reports progress."""
        return self.rank == 0

    def shard(self, rows: int, rank: int | None = None) -> slice:
        """Return the contiguous share of ``rows`` rows of this process, or of the process ``rank``."""
        rank = self.rank if rank is None else rank
        return slice(rows * rank // self.count, rows * (rank + 1) // self.count)

    def all_reduce_sum(self, tensors: Sequence[torch.Tensor]) -> None:
        """Replace each tensor by its sum over all processes."""
        if not self.distributed:
            return
        small: dict[tuple[torch.dtype, torch.device], list[torch.Tensor]] = {}
        for tensor in tensors:
            if tensor.numel() < _SMALL:
                small.setdefault((tensor.dtype, tensor.device), []).append(tensor)
            else:
                self._all_reduce(tensor, dist.ReduceOp.SUM)
        for bucket in small.values():
            flat = torch.cat([tensor.detach().reshape(-1) for tensor in bucket])
            self._all_reduce(flat, dist.ReduceOp.SUM)
            for tensor, total in zip(bucket, flat.split([tensor.numel() for tensor in bucket]), strict=True):
                tensor.detach().copy_(total.view_as(tensor))

    def all_reduce_max(self, tensor: torch.Tensor) -> None:
        """Replace each cell by its maximum over all processes."""
        if self.distributed:
            self._all_reduce(tensor, dist.ReduceOp.MAX)

    def _all_reduce(self, tensor: torch.Tensor, operation: Any) -> None:
        with _staged(tensor) as staged:
            dist.all_reduce(staged, operation)

    def all_gather(self, tensor: torch.Tensor) -> list[torch.Tensor]:
        """Return the tensors of all processes by rank; they must have one shape."""
        if not self.distributed:
            return [tensor]
        staged = _stage(tensor)
        gathered = [torch.empty_like(staged) for _ in range(self.count)]
        dist.all_gather(gathered, staged)
        return [copy.to(tensor.device) for copy in gathered]

    def broadcast(self, tensor: torch.Tensor) -> None:
        """Replace the tensor by the main process's."""
        if self.distributed:
            with _staged(tensor) as staged:
                dist.broadcast(staged, 0)

    def broadcast_object(self, item: Item) -> Item:
        """Return the main process's object."""
        items = [item]
        if self.distributed:
            dist.broadcast_object_list(items, 0)
        return items[0]

    def all_gather_object(self, item: Item) -> list[Item]:
        """Return the objects of all processes by rank."""
        if not self.distributed:
            return [item]
        items: list[Any] = [None] * self.count
        dist.all_gather_object(items, item)
        return items

    def send(self, tensor: torch.Tensor, target: int) -> None:
        """Send a tensor to the process ``target``, which must receive it."""
        dist.send(_stage(tensor), target)

    def receive(self, tensor: torch.Tensor, source: int) -> None:
        """Fill the tensor with one of the same shape from the process ``source``."""
        with _staged(tensor) as staged:
            dist.recv(staged, source)

    def run_within_memory(self, work: Callable[[], Item], device: torch.device) -> Item:
        """Run ``work``. If memory runs out in one process, raise in all, so that none waits for another."""
        failure: BaseException | None = None
        try:
            output = work()
        except (RuntimeError, MemoryError) as error:
            if not is_out_of_memory(error):
                raise
            failure = error
        failed = torch.tensor([int(failure is not None)], device=device)
        self.all_reduce_max(failed)
        if failed:
            raise failure or RuntimeError("out of memory in another process")
        return output

    def require_agreement(self, facts: Mapping[str, str]) -> None:
        """Refuse to train if named values (of model, data, version …) differ between processes."""
        for rank, peer_facts in enumerate(self.all_gather_object(dict(facts))):
            for name, value in facts.items():
                if peer_facts.get(name) != value:
                    raise InputError(
                        f"the processes that train together have different values of the {name}: {value} in process "
                        f"{self.rank}, {peer_facts.get(name)} in process {rank}. Give all machines the same."
                    )

    def barrier(self) -> None:
        """Wait until all processes are here."""
        if self.distributed:
            self.all_gather_object(None)


def _stage(tensor: torch.Tensor) -> torch.Tensor:
    """Move a tensor to the memory from which the backend exchanges it: the host's for gloo, a GPU's for nccl."""
    on_gpu = dist.get_backend() == "nccl"
    if tensor.is_cuda != on_gpu:
        return tensor.cuda() if on_gpu else tensor.cpu()
    return tensor.contiguous()


@contextmanager
def _staged(tensor: torch.Tensor) -> Iterator[torch.Tensor]:
    """Yield a tensor that the backend can change; copy its changes back."""
    staged = _stage(tensor)
    yield staged
    if staged is not tensor:
        tensor.copy_(staged)


@contextmanager
def join_process_group(device: str = "auto") -> Iterator[ProcessGroup]:
    """Join torchrun's processes until the block ends; without torchrun, yield a group of one.

    The backend is nccl if there is a GPU for each process, else gloo.
    """
    if "WORLD_SIZE" not in os.environ or "MASTER_ADDR" not in os.environ:
        yield ProcessGroup()
        return
    on_gpus = torch.cuda.is_available() and device in ("auto", "cuda")
    gpu_each = int(os.environ.get("LOCAL_WORLD_SIZE", "1")) <= torch.cuda.device_count()
    if on_gpus:
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")) % torch.cuda.device_count())
    # Its functions keep the group that exists when it is first imported: gloo's threads would then outlive the
    # interpreter's end and abort the process.
    importlib.import_module("torch.distributed.nn.functional")
    dist.init_process_group("nccl" if on_gpus and gpu_each else "gloo")
    yield ProcessGroup(dist.get_rank(), dist.get_world_size(), distributed=True)
    # Not after an exception: a process that leaves would wait for others that wait for it.
    dist.destroy_process_group()
