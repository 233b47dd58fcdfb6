"""How fast an endpoint is asked, how long it is left alone after a fault, and what may be spent on it."""

from __future__ import annotations

import random
import threading
import time

from merkhet.core.errors import MerkhetError


class BudgetSpentError(MerkhetError):
    """What one start of a run may use is used; what was replied is kept."""


class Pace:
    """Lets requests begin, evenly and no more than so many a minute, and none while the endpoint wants a rest."""

    def __init__(self, rate: float | None) -> None:
        self.gap = 60.0 / rate if rate else 0.0
        self.free = 0.0
        self.rest = 0.0
        self.lock = threading.Lock()

    def wait(self, stopped: threading.Event) -> None:
        """Wait for one's turn; returns early if all is stopped."""
        with self.lock:
            now = time.monotonic()
            begin = max(now, self.free, self.rest)
            self.free = begin + self.gap
        while begin > now and not stopped.is_set():
            stopped.wait(begin - now)
            with self.lock:
                begin = max(begin, self.rest)
            now = time.monotonic()

    def leave_alone(self, seconds: float) -> None:
        """Let no request begin for so long."""
        with self.lock:
            self.rest = max(self.rest, time.monotonic() + seconds)


def back_off(attempt: int) -> float:
    """How long to wait after so many failed attempts: twice as long each time, a minute at most, spread at random."""
    return float(min(60.0, 0.5 * 2.0 ** (attempt - 1)) * random.uniform(0.75, 1.25))


class Budget:
    """What may be spent: requests and tokens. What is in flight counts by what it is expected to need."""

    def __init__(self, requests: int | None, tokens: int | None) -> None:
        self.most_requests, self.most_tokens = requests, tokens
        self.requests = 0
        self.tokens = 0
        self.expected = 0
        self.lock = threading.Lock()

    def take(self, expected: int) -> None:
        """Take a request that may need so many tokens; raises BudgetSpentError where it is not to be had."""
        with self.lock:
            if self.most_requests is not None and self.requests >= self.most_requests:
                raise BudgetSpentError(f"the budget of {self.most_requests:,} requests is spent")
            if self.most_tokens is not None and self.tokens + self.expected + expected > self.most_tokens:
                raise BudgetSpentError(
                    f"the budget of {self.most_tokens:,} tokens is spent ({self.tokens:,} used, {expected:,} more are "
                    "wanted for the next request)"
                )
            self.requests += 1
            self.expected += expected

    def used(self, expected: int, tokens: int | None) -> None:
        """A request that was expected to need so many tokens needed these: 0 if it failed, None if that is not told."""
        with self.lock:
            self.expected -= expected
            self.tokens += expected if tokens is None else tokens
