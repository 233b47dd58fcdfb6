"""Random orders in which the rank of one candidate costs the same in a list of any length."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from merkhet.models.protocol import IntArray

_ROUNDS = 8
Keys = NDArray[np.uint64]
_Step = Callable[[Keys, int, Keys, Keys], tuple[Keys, Keys]]


class RandomOrders:
    """Random orders of the numbers below ``length``, one for each key of 64 bits.

    An order is a Feistel network over pairs (x, y) of digits of base ⌈√length⌉, with hashes as round functions:
    a permutation of all pairs, in which the rank of a number and the number at a rank are computed alone. A result that
    is not below ``length`` is permuted again, until it is (cycle walking).
    """

    def __init__(self, length: int) -> None:
        self.length = length
        self.base = np.uint64(max(1, math.isqrt(length - 1) + 1))

    def ranks(self, keys: Keys, numbers: IntArray) -> IntArray:
        """Return the rank, counted from 0, of each number in the order of the key beside it."""
        return self._walk(keys, numbers, range(_ROUNDS), self._step)

    def numbers(self, keys: Keys, ranks: IntArray) -> IntArray:
        """Return the number at each rank, counted from 0, in the order of the key beside it."""
        return self._walk(keys, ranks, range(_ROUNDS - 1, -1, -1), self._step_back)

    def _walk(self, keys: Keys, start: IntArray, rounds: Sequence[int], step: _Step) -> IntArray:
        values = start.astype(np.uint64)
        outside = np.arange(len(values))
        while len(outside):
            own_keys, first = keys[outside], values[outside] // self.base
            second = values[outside] - first * self.base
            for number in rounds:
                first, second = step(own_keys, number, first, second)
            values[outside] = first * self.base + second
            outside = outside[values[outside] >= self.length]
        return values.astype(np.int64)

    def _step(self, keys: Keys, number: int, first: Keys, second: Keys) -> tuple[Keys, Keys]:
        # The smaller of the two is right, because numbers without a sign that fall below 0 are very large.
        total = first + self._digits(keys, number, second)
        return second, np.minimum(total, total - self.base)

    def _step_back(self, keys: Keys, number: int, first: Keys, second: Keys) -> tuple[Keys, Keys]:
        difference = second - self._digits(keys, number, first)
        return np.minimum(difference, difference + self.base), first

    def _digits(self, keys: Keys, number: int, digits: Keys) -> Keys:
        """Return pseudorandom digits (SplitMix64) that depend on keys, the number of the round, and other digits."""
        mixed = keys + (digits * np.uint64(_ROUNDS) + np.uint64(number + 1)) * np.uint64(0x9E3779B97F4A7C15)
        mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        mixed ^= mixed >> np.uint64(31)
        # numpy divides by one number several times as fast as it computes remainders.
        drawn: Keys = mixed - mixed // self.base * self.base
        return drawn
