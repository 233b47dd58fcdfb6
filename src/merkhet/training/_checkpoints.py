"""Where a training stands, in a file that is there whole or as it was, and belongs to one training alone.

What is in it does not hang on how many processes have trained, nor on how they shared a table: it is read by the first
of any number of processes, and each gets what is its own.
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

Names = tuple[Any, ...]
Split = Mapping[Names, int]
"""Tables of which each process holds its share of the rows, and how many rows they have, by where they stand."""
_ROWS = 1 << 16
"""Rows of a table that are sent at once."""


def write_checkpoint(file: Path, identity: str, content: Mapping[str, Any]) -> None:
    """Write where the training of this identity stands."""
    # Into an open file: by its name, torch would not say that the disk is full.
    with atomic_path(file) as path, open(path, "wb") as handle:
        torch.save({"identity": identity, **content}, handle)


def read_checkpoint(file: Path, identity: str, label: str) -> Mapping[str, Any] | None:
    """Where the training of this identity stood; None without a file, and for one that is another's or damaged."""
    if not file.is_file():
        return None
    try:
        with zipfile.ZipFile(file) as archive:  # torch does not look at the checksums that it has written.
            damaged = archive.testzip()
        if damaged is not None:
            raise ValueError(f"{damaged} is damaged")
        content: Mapping[str, Any] = torch.load(file, map_location="cpu", weights_only=True)
    except (OSError, RuntimeError, EOFError, UnpicklingError, ValueError, zipfile.BadZipFile, zlib.error) as error:
        logger.warning("%s: the checkpoint %s cannot be read (%s): beginning anew", label, file.name, first_line(error))
        return None
    if content.get("identity") != identity:
        logger.info("%s: the checkpoint %s is of another training: beginning anew", label, file.name)
        return None
    return content


def save_checkpoint(
    file: Path, identity: str, content: Mapping[str, Any], processes: ProcessGroup, split: Split | None = None
) -> None:
    """Write where several processes stand, by the first of them; all must call this at once."""
    whole = _mapped(content, lambda names, one: _whole(names, one, processes, split or {}))
    if processes.first:
        write_checkpoint(file, identity, whole)


def load_checkpoint(
    file: Path,
    identity: str,
    label: str,
    processes: ProcessGroup,
    split: Callable[[Mapping[str, Any]], Split] | None = None,
) -> Mapping[str, Any] | None:
    """What the first process reads, for all: others need not see the file. All must call this at once.

    ``split`` says of a checkpoint which tables each process gets its share of.
    """
    content = read_checkpoint(file, identity, label) if processes.first else None
    if not processes.joined:
        return content
    shapes = None if content is None else _mapped(content, lambda _, one: _Shape(one))
    shapes = processes.told(shapes)
    if shapes is None:
        return None
    shared = split(shapes) if split else {}
    found: Mapping[str, Any] = _mapped(shapes, lambda names, one: _given(names, one, content, processes, shared))
    return found


class _Shape:
    """A tensor that is still to come."""

    def __init__(self, tensor: torch.Tensor) -> None:
        self.shape, self.dtype = tuple(tensor.shape), tensor.dtype


def _mapped(content: Any, change: Callable[[Names, Any], Any], names: Names = ()) -> Any:
    """The same content, with every tensor (or what stands for one) changed; in the same order in all processes."""
    if isinstance(content, torch.Tensor | _Shape):
        return change(names, content)
    if isinstance(content, Mapping):
        return {name: _mapped(one, change, (*names, name)) for name, one in content.items()}
    return content


def _whole(names: Names, own: torch.Tensor, processes: ProcessGroup, split: Split) -> torch.Tensor:
    if names not in split:
        return own
    whole = gather_rows(own, split[names], processes)
    return own if whole is None else whole


def _given(names: Names, shape: _Shape, content: Any, processes: ProcessGroup, split: Split) -> torch.Tensor:
    for name in names if processes.first else ():
        content = content[name]
    if names not in split:
        tensor = content if processes.first else torch.empty(shape.shape, dtype=shape.dtype)
        processes.tell(tensor)
        return tensor
    count = split[names]
    rows = processes.share(count)
    if processes.first:
        for rank in range(1, processes.count):
            for part in _pieces(content[processes.share(count, rank)]):
                processes.send(part, rank)
        own: torch.Tensor = content[rows].clone()
        return own
    own = torch.empty(rows.stop - rows.start, *shape.shape[1:], dtype=shape.dtype)
    for part in _pieces(own):
        processes.take(part, 0)
    return own


def gather_rows(own: torch.Tensor, count: int, processes: ProcessGroup) -> torch.Tensor | None:
    """A table of all rows on the host, for the first process; the others give theirs. All must call this at once."""
    own = own.detach()
    if not processes.first:
        for part in _pieces(own):
            processes.send(part, 0)
        return None
    whole = torch.empty(count, *own.shape[1:], dtype=own.dtype)
    whole[processes.share(count)] = own.cpu()
    for rank in range(1, processes.count):
        for part in _pieces(whole[processes.share(count, rank)]):
            processes.take(part, rank)
    return whole


def _pieces(table: torch.Tensor) -> Iterator[torch.Tensor]:
    yield from (table[first : first + _ROWS] for first in range(0, len(table), _ROWS))
