"""Classification of failed responses of an endpoint: retry, abort, or give up one question."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from merkhet.core.http_response import Response
from merkhet.core.redaction import redact_content, redact_message
from merkhet.core.text_formats import parse_reply

TRANSIENT = (408, 409, 425, 429, 500, 502, 503, 504, 520, 522, 524, 529)
_TOO_LONG = re.compile(
    r"context.{0,20}(length|window|size|limit)|maximum context|too many tokens|prompt is too long"
    r"|exceeds? the (available|max)|input is too long|longer than the (maximum|model)|reduce the length",
    re.IGNORECASE,
)
_FILTERED = re.compile(r"content[ _]?(filter|management|policy)|safety system|moderation", re.IGNORECASE)
_NO_CREDIT = re.compile(r"insufficient[ _]quota|billing|credit balance|payment", re.IGNORECASE)
OPTIONAL = ("logprobs", "top_logprobs", "seed", "temperature", "max_tokens")
"""Request parameters that are dropped if an endpoint does not support them."""

RETRY, ABORT, UNUSABLE, REFUSED, UNSUPPORTED = "retry", "abort", "unusable", "refused", "unsupported"


@dataclass(frozen=True)
class Failure:
    """The failure of a request, and what to do about it."""

    action: str
    """The action to take: ``retry``, ``abort`` the run, record the question as ``unusable`` or ``refused``, or
    ``unsupported`` (send the request again without ``parameters``)."""
    message: str
    retry_after: float | None = None
    """The number of seconds that the endpoint asks to wait; None if it does not say."""
    parameters: tuple[str, ...] = ()
    """The parameters that the endpoint does not support."""


def classify_failure(response: Response, request: dict[str, Any]) -> Failure:
    """Classify a failed response by the action to take; see :attr:`Failure.action`."""
    message = error_message(response)
    status = response.status
    if status == 429 and _NO_CREDIT.search(message):
        return Failure(ABORT, f"{message} (429)")
    if status in TRANSIENT:
        return Failure(RETRY, f"{message} ({status})", retry_after=response.retry_after)
    if status in (400, 413, 422):
        if _TOO_LONG.search(message) or status == 413:
            return Failure(UNUSABLE, "too long for the model's context")
        if _FILTERED.search(response.text):
            return Failure(REFUSED, message)
        named = tuple(name for name in OPTIONAL if name in request and re.search(rf"\b{name}\b", message))
        if named:
            return Failure(UNSUPPORTED, message, parameters=named)
    return Failure(ABORT, f"{message} ({status}){response.redirect_note}")


def error_message(response: Response) -> str:
    """Return the endpoint's error message as one line of at most 300 characters."""
    content = redact_content(parse_reply(response.body))
    message: Any = content
    if isinstance(content, dict):
        message = next((content[key] for key in ("error", "detail", "message") if content.get(key)), content)
        if isinstance(message, dict):
            message = message.get("message") or message
    text = " ".join(str(message if content is not None else response.text).split())
    # Parsing decodes escapes, and the text may join values.
    return redact_message(text)[:300] or "the response is empty"
