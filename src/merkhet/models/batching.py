"""Rows into batches: sorted by length, filled to a token budget, halved when memory runs out."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import logging
from collections.abc import Callable, Sequence

from merkhet.core.errors import MerkhetError

logger = logging.getLogger(__name__)

BUSY_SHARE = 8
WORTHWHILE = 0.8
_NO_PRIMITIVE = "could not create a primitive"
"""What oneDNN says when it gets no memory for its work."""


def fill_batches(lengths: Sequence[int], budget: int) -> list[list[int]]:
    """Row numbers in batches whose padded size (rows × longest) stays within the budget of tokens.

    Longest first, so that the largest batch comes first. A row beyond the budget is a batch of its own. A batch that
    is large enough to keep the device busy takes no row that would be a fifth padding or more. The batches depend on
    the lengths and the budget alone.
    """
    order = sorted(range(len(lengths)), key=lambda row: (-lengths[row], row))
    batches: list[list[int]] = []
    for row in order:
        longest = lengths[batches[-1][0]] if batches else 0
        fits = bool(batches) and (len(batches[-1]) + 1) * longest <= budget
        busy = fits and len(batches[-1]) * longest >= budget // BUSY_SHARE
        if fits and not (busy and lengths[row] < WORTHWHILE * longest):
            batches[-1].append(row)
        else:
            batches.append([row])
    return batches


def run_batches(lengths: Sequence[int], budget: int, forward: Callable[[list[int]], None]) -> int:
    """Run every row in batches; one that does not fit into memory is halved, and so are those after it.

    Returns the budget that was found to fit. A single row that does not fit is an error: nothing is left out in
    silence.
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
            if len(batch) == 1 and _go_without_onednn(error):
                waiting.append(batch)
                continue
            if len(batch) == 1:
                raise MerkhetError(
                    "out of memory on a single row. Use a machine with more memory, a smaller model, or dtype: bfloat16"
                ) from error
        # Only here is what the error held on to free.
        half = len(batch) // 2
        logger.warning("out of memory with %d rows: going on with %d", len(batch), half)
        release_memory()
        budget = half * max(lengths[row] for row in batch)
        rest = [row for other in [batch, *reversed(waiting)] for row in other]
        refilled = fill_batches([lengths[row] for row in rest], budget)
        waiting = [[rest[place] for place in one] for one in reversed(refilled)]
    return budget


def usual_budget(device: str, on_cpu: int) -> int:
    """How many tokens a batch begins with: what keeps the device busy; too much is halved when memory runs out."""
    return on_cpu if device == "cpu" else 8 * on_cpu


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error says that memory ran out, on any device."""
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":
        return True
    signs = ("out of memory", "can't allocate memory", "not enough memory", _NO_PRIMITIVE)
    return any(sign in str(error) for sign in signs)


def _go_without_onednn(error: BaseException) -> bool:
    """Switch oneDNN off if it is what failed, and was not off: once it got no memory it may never get any again."""
    import torch

    if (
        _NO_PRIMITIVE not in str(error)
        or not torch.backends.mkldnn.is_available()
        or not torch._C._get_mkldnn_enabled()
    ):
        return False
    logger.warning("oneDNN gets no memory: going on without it")
    torch.backends.mkldnn.set_flags(False)
    return True


def release_memory() -> None:
    """Give cached memory back before the next try: what is freed is not always at once free for others."""
    import torch

    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
    with contextlib.suppress(OSError, AttributeError):  # Only glibc has it.
        ctypes.CDLL(None).malloc_trim(0)
