"""Groups of processes that train together, started by torchrun and connected by gloo or nccl, or a single process.

A decision that must be the same in all processes is made by the main process or by a collective operation.
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
"""Tensors with fewer elements than this are reduced together, in one message."""


@dataclass(frozen=True)
class ProcessGroup:
    """The group of processes that train together, as seen by one of them.

    All processes must call a collective method at the same time.
    """

    rank: int = 0
    count: int = 1
    """Number of processes."""
    distributed: bool = False
    """True if torchrun started this process, even if the group has only one process."""

    @property
    def is_main(self) -> bool:
        """True in the main process, which writes files and reports progress."""
        return self.rank == 0

    def shard(self, rows: int, rank: int | None = None) -> slice:
        """Return the contiguous range of rows, out of ``rows``, that belongs to this process or to process ``rank``."""
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
        """Replace each element of ``tensor`` by its maximum over all processes."""
        if self.distributed:
            self._all_reduce(tensor, dist.ReduceOp.MAX)

    def _all_reduce(self, tensor: torch.Tensor, operation: Any) -> None:
        with _staged(tensor) as staged:
            dist.all_reduce(staged, operation)

    def all_gather(self, tensor: torch.Tensor) -> list[torch.Tensor]:
        """Return the tensors of all processes, ordered by rank. All tensors must have the same shape."""
        if not self.distributed:
            return [tensor]
        staged = _stage(tensor)
        gathered = [torch.empty_like(staged) for _ in range(self.count)]
        dist.all_gather(gathered, staged)
        return [copy.to(tensor.device) for copy in gathered]

    def broadcast(self, tensor: torch.Tensor) -> None:
        """Overwrite ``tensor`` with the tensor of the main process."""
        if self.distributed:
            with _staged(tensor) as staged:
                dist.broadcast(staged, 0)

    def broadcast_object(self, item: Item) -> Item:
        """Return the ``item`` of the main process in all processes."""
        items = [item]
        if self.distributed:
            dist.broadcast_object_list(items, 0)
        return items[0]

    def all_gather_object(self, item: Item) -> list[Item]:
        """Return the items of all processes, ordered by rank."""
        if not self.distributed:
            return [item]
        items: list[Any] = [None] * self.count
        dist.all_gather_object(items, item)
        return items

    def send(self, tensor: torch.Tensor, target: int) -> None:
        """Send a tensor to the process ``target``, which must receive it."""
        dist.send(_stage(tensor), target)

    def receive(self, tensor: torch.Tensor, source: int) -> None:
        """Overwrite ``tensor`` with a tensor of the same shape that the process ``source`` sends."""
        with _staged(tensor) as staged:
            dist.recv(staged, source)

    def run_within_memory(self, work: Callable[[], Item], device: torch.device) -> Item:
        """Run ``work`` in all processes and return its result.

        If memory runs out in one process, raise an error in all processes; otherwise the others would wait forever.
        """
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
        """Raise an ``InputError`` if a value in ``facts`` (model, data, version …) differs between processes."""
        for rank, peer_facts in enumerate(self.all_gather_object(dict(facts))):
            for name, value in facts.items():
                if peer_facts.get(name) != value:
                    raise InputError(
                        f"the processes that train together have different values of the {name}: {value} in process "
                        f"{self.rank}, {peer_facts.get(name)} in process {rank}. Give all machines the same."
                    )

    def barrier(self) -> None:
        """Wait until all processes have called this method."""
        if self.distributed:
            self.all_gather_object(None)


def _stage(tensor: torch.Tensor) -> torch.Tensor:
    """Move a tensor to the memory that the backend uses: CPU memory for gloo, GPU memory for nccl."""
    on_gpu = dist.get_backend() == "nccl"
    if tensor.is_cuda != on_gpu:
        return tensor.cuda() if on_gpu else tensor.cpu()
    return tensor.contiguous()


@contextmanager
def _staged(tensor: torch.Tensor) -> Iterator[torch.Tensor]:
    """Yield ``tensor``, or a copy in the memory that the backend uses; copy changes back afterwards."""
    staged = _stage(tensor)
    yield staged
    if staged is not tensor:
        tensor.copy_(staged)


@contextmanager
def join_process_group(device: str = "auto") -> Iterator[ProcessGroup]:
    """Join the process group that torchrun started, within a ``with`` block.

    Without torchrun, yield a group of a single process. The backend is nccl if each process has its own GPU, else gloo.
    """
    if "WORLD_SIZE" not in os.environ or "MASTER_ADDR" not in os.environ:
        yield ProcessGroup()
        return
    on_gpus = torch.cuda.is_available() and device in ("auto", "cuda")
    gpu_each = int(os.environ.get("LOCAL_WORLD_SIZE", "1")) <= torch.cuda.device_count()
    if on_gpus:
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")) % torch.cuda.device_count())
    # Import this module before the group exists: its functions keep the group that exists at the first import. The
    # threads of gloo would then outlive the interpreter and abort the process.
    importlib.import_module("torch.distributed.nn.functional")
    dist.init_process_group("nccl" if on_gpus and gpu_each else "gloo")
    yield ProcessGroup(dist.get_rank(), dist.get_world_size(), distributed=True)
    # Not after an exception: a process that leaves the group would wait for processes that wait for it.
    dist.destroy_process_group()
