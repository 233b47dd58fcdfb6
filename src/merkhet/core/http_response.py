"""Responses of HTTP servers."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone
from email.utils import parsedate_to_datetime


@dataclass(frozen=True)
class Response:
    """An HTTP response with a decompressed body, without secrets."""

    status: int
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    """Headers by lowercase name."""
    reason: str = ""
    """Reason phrase of the status line."""
    location: str = ""
    """Address that the last redirect leads to, without secrets and query; empty without a redirect."""

    @property
    def is_success(self) -> bool:
        """Whether the status is from 200 to 299."""
        return 200 <= self.status < 300

    @property
    def text(self) -> str:
        """The body as UTF-8, with replacement characters for invalid bytes."""
        return self.body.decode("utf-8", errors="replace")

    @property
    def redirect_note(self) -> str:
        """The end of a message about this response: where redirects have led, or would lead."""
        return redirect_note(self.location)

    @property
    def retry_after(self) -> float | None:
        """Seconds that the server asks to wait before a retry; None if the response names no wait."""
        for header, units in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
            wait = _parse_seconds(self.headers.get(header, ""))
            if wait is not None:
                return wait / units
        until = _parse_date(self.headers.get("retry-after", ""))
        if until is None:
            return None
        # The server's clock decides, because the local clock may be wrong.
        now = _parse_date(self.headers.get("date", ""))
        return max(0.0, until - (time.time() if now is None else now))


def redirect_note(location: str) -> str:
    """Return the end of a message about a response that redirects lead to; empty without a redirect."""
    return f" (redirected to {location})" if location else ""


def _parse_seconds(text: str) -> float | None:
    try:
        seconds = float(text)
    except ValueError:
        return None
    return max(0.0, seconds) if math.isfinite(seconds) else None


def _parse_date(text: str) -> float | None:
    try:
        date: datetime = parsedate_to_datetime(text)
        return date.replace(tzinfo=date.tzinfo or timezone.utc).timestamp()
    except (TypeError, ValueError, OverflowError):
        return None
