"""Content-hash ids: the same thing has the same id on every machine."""

from __future__ import annotations

import hashlib
import json
from typing import Any


def _canonical(content: Any) -> bytes:
    return json.dumps(content, ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode()


def digest(content: Any) -> str:
    """SHA-256, in hex, of a JSON-like value, whatever the order of its keys."""
    return hashlib.sha256(_canonical(content)).hexdigest()


def content_id(prefix: str, *parts: Any) -> str:
    """A short id such as ``q_4be1…`` that depends on the parts alone (80 bits)."""
    return f"{prefix}_{digest(parts)[:20]}"


def derived_seed(*parts: Any) -> int:
    """A 64-bit seed that belongs to these parts, so that no draw depends on the order of draws."""
    return int.from_bytes(hashlib.sha256(_canonical(parts)).digest()[:8], "big")
