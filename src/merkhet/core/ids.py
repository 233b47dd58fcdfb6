"""Content hashes, ids and seeds; equal content gives equal ids on every machine."""

from __future__ import annotations

import hashlib
import json
from typing import Any


def _canonical(content: Any) -> bytes:
    return json.dumps(content, ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode()


def digest(content: Any) -> str:
    """Return the SHA-256, in hex, of a JSON-like value; the order of keys does not matter."""
    return hashlib.sha256(_canonical(content)).hexdigest()


def content_id(prefix: str, *parts: Any) -> str:
    """Return a short id such as ``q_4be1…``, an 80-bit hash of the parts."""
    return f"{prefix}_{digest(parts)[:20]}"


def derived_seed(*parts: Any) -> int:
    """Derive a 64-bit seed from the parts; random draws then do not depend on the order of earlier draws."""
    return int.from_bytes(hashlib.sha256(_canonical(parts)).digest()[:8], "big")
