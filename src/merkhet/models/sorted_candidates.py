"""Candidates in alphabetical order, and a cache of what is derived from lists that many questions share."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from typing import Any, Generic, TypeVar

import numpy as np

Value = TypeVar("Value")


class SharedCache(Generic[Value]):
    """A cache of values that are derived from large immutable objects.

    Objects are recognized by identity, because hashing thousands of candidates for each question would be slow. The
    values that were not used for the longest time are dropped once the sizes add up to more than ``max_size``.
    """

    def __init__(self, max_size: int) -> None:
        self.max_size = max_size
        self._size = 0
        # The objects are kept with the value: the identity of a deleted object can be that of a new one.
        self._entries: OrderedDict[Hashable, tuple[tuple[Any, ...], int, Value]] = OrderedDict()

    def get(self, objects: tuple[Any, ...], key: Hashable, size: int, make: Callable[[], Value]) -> Value:
        """Return the value for ``objects`` and a further ``key``; ``make`` makes it if it is not in the cache."""
        identity = (*map(id, objects), key)
        if identity in self._entries:
            self._entries.move_to_end(identity)
            return self._entries[identity][2]
        value = make()
        self._entries[identity] = (objects, size, value)
        self._size += size
        while self._size > self.max_size and len(self._entries) > 1:
            _, (_, dropped, _) = self._entries.popitem(last=False)
            self._size -= dropped
        return value

    def clear(self) -> None:
        """Drop all values."""
        self._entries.clear()
        self._size = 0


class SortedCandidates:
    """A list of candidates in alphabetical order, in which tied candidates are listed."""

    def __init__(self, candidates: Sequence[str]) -> None:
        self.indices = sorted(range(len(candidates)), key=candidates.__getitem__)
        self.order = np.array(self.indices, dtype=np.int64)
        self.texts = [candidates[index] for index in self.indices]
        # Lists of columns would be one object per candidate, which the garbage collector visits again and again.
        self._first_columns = {self.texts[column]: column for column in reversed(range(len(self.texts)))}

    def gold_columns(self, answers: tuple[str, ...]) -> tuple[int, ...]:
        """Return the alphabetical positions of the right answers, in the original order of the candidates."""
        if len(answers) == 1:
            return tuple(self._columns(answers[0]))
        columns = [column for text in set(answers) for column in self._columns(text)]
        return tuple(sorted(columns, key=self.indices.__getitem__))

    def _columns(self, text: str) -> range:
        """Return the alphabetical positions of a text, which is listed more than once if it was given repeatedly."""
        start = stop = self._first_columns.get(text, len(self.texts))
        while stop < len(self.texts) and self.texts[stop] == text:
            stop += 1
        return range(start, stop)


SHARED_LENGTH = 256
"""Number of candidates from which on sorted lists and rankings are cached, because sorting takes long."""
_sorted_lists: SharedCache[SortedCandidates] = SharedCache(2**20)


def sort_candidates(candidates: tuple[str, ...]) -> SortedCandidates:
    """Return the sorted candidates; long lists are sorted once as long as they are in use."""
    if len(candidates) < SHARED_LENGTH:
        return SortedCandidates(candidates)
    return _sorted_lists.get((candidates,), None, len(candidates), lambda: SortedCandidates(candidates))
