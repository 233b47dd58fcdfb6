"""Rate limit and budget of requests to an endpoint."""

from __future__ import annotations

import threading
import time

from merkhet.core.errors import MerkhetError
from merkhet.core.text import counted


class BudgetExhaustedError(MerkhetError):
    """Error of a run that has used its budget since its last start; cached replies are kept."""


class RateLimiter:
    """Rate limiter that starts requests at equal intervals, and pauses when the endpoint asks for it.

    Args:
        rate: The maximum number of requests per minute; None for no limit.
    """

    def __init__(self, rate: float | None) -> None:
        self.interval = 60.0 / rate if rate else 0.0
        self.next_start = 0.0
        self.paused_until = 0.0
        self.lock = threading.Lock()

    def wait(self, stopped: threading.Event) -> None:
        """Wait until a request may start, or until ``stopped`` is set."""
        with self.lock:
            now = time.monotonic()
            start = max(now, self.next_start, self.paused_until)
            self.next_start = start + self.interval
        while start > now and not stopped.is_set():
            stopped.wait(start - now)
            with self.lock:
                start = max(start, self.paused_until)
            now = time.monotonic()

    def pause(self, seconds: float) -> None:
        """Delay the start of all further requests by at least ``seconds``."""
        with self.lock:
            self.paused_until = max(self.paused_until, time.monotonic() + seconds)


class Budget:
    """The maximum and used numbers of requests and tokens; requests in flight count with their expected tokens."""

    def __init__(self, requests: int | None, tokens: int | None) -> None:
        self.max_requests, self.max_tokens = requests, tokens
        self.requests = 0
        self.tokens = 0
        self.reserved = 0
        self.lock = threading.Lock()

    def reserve(self, expected: int) -> None:
        """Reserve one request and its ``expected`` tokens.

        Raises:
            BudgetExhaustedError: The budget is too small for this request.
        """
        with self.lock:
            if self.max_requests is not None and self.requests >= self.max_requests:
                raise BudgetExhaustedError(f"the budget of {counted(self.max_requests, 'request')} is exhausted")
            if self.max_tokens is not None and self.tokens + self.reserved + expected > self.max_tokens:
                raise BudgetExhaustedError(
                    f"the budget of {counted(self.max_tokens, 'token')} is exhausted ({self.tokens:,} used, the next "
                    f"request needs {expected:,})"
                )
            self.requests += 1
            self.reserved += expected

    def settle(self, expected: int, tokens: int | None) -> None:
        """Replace a reservation of ``expected`` tokens by the ``tokens`` used.

        ``tokens`` is 0 for a failed request. If it is None, the expected number counts.
        """
        with self.lock:
            self.reserved -= expected
            self.tokens += expected if tokens is None else tokens
