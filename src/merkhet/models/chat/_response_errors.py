"""Responses that are no reply, and how fast an endpoint is asked."""

from __future__ import annotations

import math
import random
import re
import threading
import time
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any

from merkhet.core.errors import MerkhetError
from merkhet.models.chat._http_connection import Response

PASSING = (408, 409, 425, 429, 500, 502, 503, 504, 520, 522, 524, 529)
_TOO_LONG = re.compile(
    r"context.{0,20}(length|window|size|limit)|maximum context|too many tokens|prompt is too long"
    r"|exceeds? the (available|max)|input is too long|longer than the (maximum|model)|reduce the length",
    re.IGNORECASE,
)
_FILTERED = re.compile(r"content[ _]?(filter|management|policy)|safety system|moderation", re.IGNORECASE)
_BROKE = re.compile(r"insufficient[ _]quota|billing|credit balance|payment", re.IGNORECASE)
OPTIONAL = ("logprobs", "top_logprobs", "seed", "temperature", "max_tokens")
"""Parameters of a request that some endpoints do not take."""


@dataclass(frozen=True)
class Fault:
    """What went wrong. ``meaning``: again, stop, question (this one cannot be asked), refused, or parameter."""

    meaning: str
    said: str
    wait: float | None = None
    parameters: tuple[str, ...] = ()


def fault_of(response: Response, sent: dict[str, Any]) -> Fault:
    """What a response means that is no reply to what was sent."""
    said = message_of(response)
    status = response.status
    if status == 429 and _BROKE.search(said):
        return Fault("stop", f"{said} (429)")
    if status in PASSING:
        return Fault("again", f"{said} ({status})", wait=retry_after(response))
    if status in (400, 413, 422):
        if _TOO_LONG.search(said) or status == 413:
            return Fault("question", "too long for the model's context")
        if _FILTERED.search(response.text):
            return Fault("refused", said)
        named = tuple(name for name in OPTIONAL if name in sent and re.search(rf"\b{name}\b", said))
        if named:
            return Fault("parameter", said, parameters=named)
    return Fault("stop", f"{said} ({status})")


def message_of(response: Response) -> str:
    """What the endpoint says of an error, in one line."""
    content = response.content
    found: Any = content
    if isinstance(content, dict):
        found = next((content[key] for key in ("error", "detail", "message") if content.get(key)), content)
        if isinstance(found, dict):
            found = found.get("message") or found
    text = " ".join(str(found if content is not None else response.text).split())
    return text[:300] or "nothing was said"


def retry_after(response: Response) -> float | None:
    """After how many seconds the endpoint wants to be asked again, if it says so."""
    given = response.headers.get("retry-after-ms")
    if given is not None:
        try:
            return _sane(float(given) / 1000.0)
        except ValueError:
            pass
    given = response.headers.get("retry-after")
    if given is None:
        return None
    try:
        return _sane(float(given))
    except ValueError:
        try:
            return _sane(parsedate_to_datetime(given).timestamp() - _now(response))
        except (ValueError, TypeError):
            return None


def _now(response: Response) -> float:
    """What time it is by the endpoint's clock, if it says so: ours may be wrong, and may jump."""
    try:
        return parsedate_to_datetime(response.headers["date"]).timestamp()
    except (KeyError, ValueError, TypeError):
        return time.time()


def _sane(seconds: float) -> float | None:
    return max(0.0, seconds) if math.isfinite(seconds) else None


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
