"""Atomic training checkpoints.

A checkpoint can be resumed with another number of processes. Tables that are sharded over processes are stored whole:
the main process reads the checkpoint and sends each process its share of the rows.
"""

from __future__ import annotations

import logging
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

import torch

from merkhet.core.errors import first_line
from merkhet.core.files import atomic_path
from merkhet.training.distributed._process_group import ProcessGroup

logger = logging.getLogger(__name__)

KeyPath = tuple[Any, ...]
ShardedTables = Mapping[KeyPath, int]
"""Tables whose rows are split over the processes: from the key path in the checkpoint to the total number of rows."""
_ROWS = 1 << 16
"""Number of table rows sent in one message."""
_FORMAT = 2
"""Version of the checkpoint layout."""


def write_checkpoint(file: Path, identity: str, content: Mapping[str, Any]) -> None:
    """Write ``content`` as a checkpoint of the training that ``identity`` identifies."""
    # torch gets an open file, because it does not report a full disk if it opens the file itself.
    with atomic_path(file) as temporary, open(temporary, "wb") as stream:
        torch.save({"identity": identity, "format": _FORMAT, **content}, stream)


def read_checkpoint(file: Path, identity: str, label: str) -> Mapping[str, Any] | None:
    """Read the checkpoint of the training that ``identity`` identifies.

    Return None if the file is missing, is damaged or belongs to another training. ``label`` names the training in logs.
    """
    if not file.is_file():
        return None
    try:
        with zipfile.ZipFile(file) as archive:  # torch does not verify the checksums that it writes.
            damaged = archive.testzip()
        if damaged is not None:
            raise ValueError(f"{damaged} is damaged")
        content: Mapping[str, Any] = torch.load(file, map_location="cpu", weights_only=True)
    except (OSError, RuntimeError, EOFError, UnpicklingError, ValueError, zipfile.BadZipFile, zlib.error) as error:
        logger.warning(
            "%s: cannot read the checkpoint %s (%s); starting from the beginning", label, file.name, first_line(error)
        )
        return None
    if content.get("identity") != identity or content.get("format") != _FORMAT:
        logger.info("%s: the checkpoint %s belongs to another training; starting from the beginning", label, file.name)
        return None
    return content


def save_checkpoint(
    file: Path, identity: str, content: Mapping[str, Any], processes: ProcessGroup, sharded: ShardedTables | None = None
) -> None:
    """Gather the sharded tables, and write a checkpoint in the main process.

    All processes must call this function at the same time.
    """

    def gather(path: KeyPath, tensor: torch.Tensor) -> torch.Tensor:
        gathered = gather_rows(tensor, sharded[path], processes) if sharded and path in sharded else None
        return tensor if gathered is None else gathered

    gathered = _map_tensors(content, gather)
    if processes.is_main:
        write_checkpoint(file, identity, gathered)


def load_checkpoint(
    file: Path,
    identity: str,
    label: str,
    processes: ProcessGroup,
    find_sharded: Callable[[Mapping[str, Any]], ShardedTables] | None = None,
) -> Mapping[str, Any] | None:
    """Read a checkpoint in the main process and send it to all processes; return None without a usable checkpoint.

    ``find_sharded`` returns the sharded tables of a checkpoint; each process receives only its share of their rows.
    All processes must call this function at the same time.
    """
    content = read_checkpoint(file, identity, label) if processes.is_main else None
    if not processes.distributed:
        return content
    shapes = None if content is None else _map_tensors(content, lambda _, tensor: _TensorShape(tensor))
    shapes = processes.broadcast_object(shapes)
    if shapes is None:
        return None
    sharded = find_sharded(shapes) if find_sharded else {}
    return dict(_map_tensors(shapes, lambda path, shape: _distribute_tensor(path, shape, content, processes, sharded)))


class _TensorShape:
    """Shape and data type of a tensor that this process has not received yet."""

    def __init__(self, tensor: torch.Tensor) -> None:
        self.shape, self.dtype = tuple(tensor.shape), tensor.dtype


def _map_tensors(content: Any, change: Callable[[KeyPath, Any], Any], path: KeyPath = ()) -> Any:
    """Return a copy of nested ``content`` in which ``change`` has replaced every tensor or tensor shape.

    The order of the calls is the same in all processes.
    """
    if isinstance(content, torch.Tensor | _TensorShape):
        return change(path, content)
    if isinstance(content, Mapping):
        return {key: _map_tensors(entry, change, (*path, key)) for key, entry in content.items()}
    return content


def _distribute_tensor(
    path: KeyPath, shape: _TensorShape, content: Any, processes: ProcessGroup, sharded: ShardedTables
) -> torch.Tensor:
    for key in path if processes.is_main else ():
        content = content[key]
    if path not in sharded:
        tensor = content if processes.is_main else torch.empty(shape.shape, dtype=shape.dtype)
        processes.broadcast(tensor)
        return tensor
    count = sharded[path]
    rows = processes.shard(count)
    if processes.is_main:
        for rank in range(1, processes.count):
            for chunk in _chunks(content[processes.shard(count, rank)]):
                processes.send(chunk, rank)
        share: torch.Tensor = content[rows].clone()
        return share
    share = torch.empty(rows.stop - rows.start, *shape.shape[1:], dtype=shape.dtype)
    for chunk in _chunks(share):
        processes.receive(chunk, 0)
    return share


def gather_rows(local: torch.Tensor, count: int, processes: ProcessGroup) -> torch.Tensor | None:
    """Gather the rows of all processes into a table of ``count`` rows, in the CPU memory of the main process.

    Return None in the other processes. All processes must call this function at the same time.
    """
    local = local.detach()
    if not processes.is_main:
        for chunk in _chunks(local):
            processes.send(chunk, 0)
        return None
    table = torch.empty(count, *local.shape[1:], dtype=local.dtype)
    table[processes.shard(count)] = local.cpu()
    for rank in range(1, processes.count):
        for chunk in _chunks(table[processes.shard(count, rank)]):
            processes.receive(chunk, rank)
    return table


def _chunks(table: torch.Tensor) -> Iterator[torch.Tensor]:
    yield from (table[first : first + _ROWS] for first in range(0, len(table), _ROWS))
