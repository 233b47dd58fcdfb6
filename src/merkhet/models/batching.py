"""Batches of token rows, which are filled up to a token budget and halved when memory runs out."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import logging
from collections.abc import Callable, Iterator, Sequence

from merkhet.core.errors import MerkhetError

logger = logging.getLogger(__name__)

BUSY_SHARE = 8
"""The divisor of the token budget: a batch of at least 1/8 of the budget keeps the device busy."""
MIN_FILL = 0.8
"""The minimum length of a row that joins a batch of at least this size, relative to the batch's longest row."""
_NO_PRIMITIVE = "could not create a primitive"
"""The error message of oneDNN when it cannot allocate memory."""


def fill_batches(lengths: Sequence[int], budget: int) -> list[list[int]]:
    """Group row indices into batches whose padded size (rows × longest row) stays within the token budget.

    The longest rows come first. A row longer than the budget forms a batch alone. Once a batch keeps the device busy,
    it takes no row whose padding would exceed a fifth of the batch's longest row. The batches depend on the lengths
    and the budget alone.
    """
    order = sorted(range(len(lengths)), key=lambda row: (-lengths[row], row))
    batches: list[list[int]] = []
    for row in order:
        longest = lengths[batches[-1][0]] if batches else 0
        fits = bool(batches) and (len(batches[-1]) + 1) * longest <= budget
        busy = fits and len(batches[-1]) * longest >= budget // BUSY_SHARE
        if fits and not (busy and lengths[row] < MIN_FILL * longest):
            batches[-1].append(row)
        else:
            batches.append([row])
    return batches


def run_batches(lengths: Sequence[int], budget: int, forward: Callable[[list[int]], None]) -> int:
    """Call ``forward`` with the row indices of each batch; return the token budget that fits into memory.

    When memory runs out, the batch is halved and the budget reduced.

    Raises:
        MerkhetError: A single row does not fit into memory.
    """
    waiting = list(reversed(fill_batches(lengths, budget)))
    while waiting:
        batch = waiting.pop()
        try:
            forward(batch)
            continue
        except (RuntimeError, MemoryError) as error:
            if not is_out_of_memory(error):
                raise
            if len(batch) == 1 and _disable_onednn(error):
                waiting.append(batch)
                continue
            if len(batch) == 1:
                raise MerkhetError(
                    "out of memory on a single row. Use a machine with more memory, a smaller model, or dtype: bfloat16"
                ) from error
        # Outside the except block: inside it, the error would keep the batch's memory alive.
        half = len(batch) // 2
        logger.warning("out of memory with %d rows: retrying with %d", len(batch), half)
        release_memory()
        budget = half * max(lengths[row] for row in batch)
        remaining = [row for rows in [batch, *reversed(waiting)] for row in rows]
        refilled = fill_batches([lengths[row] for row in remaining], budget)
        waiting = [[remaining[position] for position in positions] for positions in reversed(refilled)]
    return budget


@contextlib.contextmanager
def single_thread(enabled: bool = True) -> Iterator[None]:
    """Limit torch to one thread, because the last digits of sums depend on the number of threads."""
    import torch

    threads = torch.get_num_threads()
    if enabled:
        torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def is_out_of_memory(error: BaseException) -> bool:
    """Return whether an error means that a CPU or GPU ran out of memory."""
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":
        return True
    phrases = ("out of memory", "can't allocate memory", "not enough memory", _NO_PRIMITIVE)
    return any(phrase in str(error) for phrase in phrases)


def _disable_onednn(error: BaseException) -> bool:
    """Disable oneDNN if it caused the error; return whether it was disabled.

    After one failed allocation, oneDNN may fail at every later one.
    """
    import torch

    if (
        _NO_PRIMITIVE not in str(error)
        or not torch.backends.mkldnn.is_available()
        or not torch._C._get_mkldnn_enabled()
    ):
        return False
    logger.warning("oneDNN gets no memory: continuing without it")
    torch.backends.mkldnn.set_flags(False)
    return True


def release_memory() -> None:
    """Return cached memory to the device and the system before a retry."""
    import torch

    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
    with contextlib.suppress(OSError, AttributeError):  # Only glibc has malloc_trim.
        ctypes.CDLL(None).malloc_trim(0)
