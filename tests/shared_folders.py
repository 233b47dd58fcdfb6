"""Folders that are made once per test run and shared by all worker processes."""

from __future__ import annotations

import fcntl
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest


def make_shared_folder(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], object]) -> Path:
    """Return the folder ``name`` of this test run; the first caller fills it, others wait for it."""
    base = factory.getbasetemp()
    if base.name.startswith("popen-"):  # A worker of pytest-xdist: its siblings have folders beside it.
        base = base.parent
    target = base / "shared" / name
    target.parent.mkdir(parents=True, exist_ok=True)
    with open(target.with_name(f"{target.name}.lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not target.is_dir():
            partial = target.with_name(f"{target.name}.part")
            shutil.rmtree(partial, ignore_errors=True)  # Left by a maker that failed.
            partial.mkdir()
            make(partial)
            partial.rename(target)
    return target
