"""Retries of requests after growing pauses with jitter, or after the wait that the server asks for."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

Result = TypeVar("Result")


class RetryableError(Exception):
    """A failure that may be temporary; ``retry_after`` is the wait in seconds that the server asks for."""

    def __init__(self, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class RetriesExhaustedError(Exception):
    """Every attempt failed, or the server asked for a wait longer than the maximum."""

    def __init__(self, failure: RetryableError, attempts: int, wait_too_long: bool) -> None:
        super().__init__(str(failure))
        self.failure, self.attempts, self.wait_too_long = failure, attempts, wait_too_long


@dataclass(frozen=True)
class RetryPolicy:
    """Number of attempts of a request, and the pauses between them."""

    attempts: int
    first_pause: float
    """Seconds before the second attempt; the pause doubles before each further attempt."""
    max_pause: float = 60.0
    """Maximum pause in seconds, before jitter."""
    max_wait: float = 600.0
    """Maximum wait in seconds that a server may ask for."""

    def pause(self, attempt: int) -> float:
        """Return the seconds to wait after failed attempt number ``attempt``, counted from 1."""
        # The power would overflow for a large attempt number.
        doubled = self.first_pause * 2.0 ** min(attempt - 1, 64)
        return min(self.max_pause, doubled) * random.uniform(0.5, 1.5)


def retry(
    send: Callable[[], Result], policy: RetryPolicy, wait: Callable[[RetryableError, int, float], None]
) -> Result:
    """Call ``send`` until it raises no RetryableError, and return its result.

    Between two attempts, ``wait`` receives the failure, the number of the failed attempt and the seconds to wait.

    Raises:
        RetriesExhaustedError: The last attempt failed, or the server asks to wait longer than ``policy.max_wait``.
    """
    attempt = 0
    while True:
        attempt += 1
        try:
            return send()
        except RetryableError as failure:
            requested = failure.retry_after
            wait_too_long = attempt < policy.attempts and requested is not None and requested > policy.max_wait
            if attempt >= policy.attempts or wait_too_long:
                raise RetriesExhaustedError(failure, attempt, wait_too_long) from failure
            wait(failure, attempt, policy.pause(attempt) if requested is None else requested)
