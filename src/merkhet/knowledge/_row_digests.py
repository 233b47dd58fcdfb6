"""Compact set of the digests of rows."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np

_BYTES = 16
_MIN_PENDING = 1 << 16


class RowDigests:
    """A set of rows that takes some 30 bytes per row: a sorted array of digests, and a small set of the latest."""

    def __init__(self) -> None:
        self._sorted = np.empty(0, f"S{_BYTES}")
        self._pending: set[bytes] = set()

    def __len__(self) -> int:
        return len(self._sorted) + len(self._pending)

    def add(self, rows: Sequence[str]) -> list[bool]:
        """Add rows, and return for each whether it is new."""
        digests = [hashlib.blake2b(row.encode(errors="surrogatepass"), digest_size=_BYTES).digest() for row in rows]
        new = []
        for digest, known in zip(digests, self._in_sorted(digests), strict=True):
            new.append(not known and digest not in self._pending)
            if new[-1]:
                self._pending.add(digest)
        if len(self._pending) > max(_MIN_PENDING, len(self._sorted) // 8):
            self._merge(np.array(list(self._pending), self._sorted.dtype))
            self._pending.clear()
        return new

    def _in_sorted(self, digests: Sequence[bytes]) -> list[bool]:
        if not len(self._sorted):
            return [False] * len(digests)
        wanted = np.array(digests, self._sorted.dtype)
        places = np.searchsorted(self._sorted, wanted).clip(max=len(self._sorted) - 1)
        found: list[bool] = (self._sorted[places] == wanted).tolist()
        return found

    def _merge(self, digests: np.ndarray) -> None:
        self._sorted = np.concatenate([self._sorted, digests])
        self._sorted.sort()
