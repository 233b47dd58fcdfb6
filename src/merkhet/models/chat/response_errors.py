"""What a response that is no reply means: try again, leave this question, leave a parameter out, or stop."""

from __future__ import annotations

import math
import re
import time
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any

from merkhet.models.chat.http_connection import Response

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
