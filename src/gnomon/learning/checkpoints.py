"""Where a training stands, in a file that is there whole or as it was, and belongs to one training alone."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

import torch

from gnomon.foundation import atomic_path

logger = logging.getLogger(__name__)


def write_checkpoint(file: Path, identity: str, content: Mapping[str, Any]) -> None:
    """Write where the training of this identity stands."""
    with atomic_path(file) as path:
        torch.save({"identity": identity, **content}, path)


def read_checkpoint(file: Path, identity: str, label: str) -> Mapping[str, Any] | None:
    """Where the training of this identity stood; None without a file, and for one that is another's or damaged."""
    if not file.is_file():
        return None
    try:
        content: Mapping[str, Any] = torch.load(file, map_location="cpu", weights_only=True)
    except (OSError, RuntimeError, EOFError, UnpicklingError, ValueError) as error:
        logger.warning("%s: the checkpoint %s cannot be read (%s): beginning anew", label, file.name, error)
        return None
    if content.get("identity") != identity:
        logger.info("%s: the checkpoint %s is of another training: beginning anew", label, file.name)
        return None
    return content
