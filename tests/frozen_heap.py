"""A heap that the garbage collector passes over, for tests of code that collects garbage often."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def frozen_heap() -> Iterator[None]:
    """Hide all that is loaded from the garbage collector: with PyTorch loaded, each collection takes 0.1 s or more."""
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
