"""Content hashes, ids and seeds; equal content gives equal ids on every machine."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Any

# ``json.dumps`` would make an encoder for each call, which takes as long as the encoding.
_encode = json.JSONEncoder(ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode


def _canonical(content: Any) -> bytes:
    return _encode(content).encode()


def digest(content: Any) -> str:
    """Return the SHA-256, in hex, of a JSON-like value; the order of keys does not matter."""
    return hashlib.sha256(_canonical(content)).hexdigest()


def content_id(prefix: str, *parts: Any) -> str:
    """Return a short id such as ``q_4be1…``, an 80-bit hash of the parts."""
    return f"{prefix}_{digest(parts)[:20]}"


def derived_seed(*parts: Any) -> int:
    """Derive a 64-bit seed from the parts; random draws then do not depend on the order of earlier draws."""
    return int.from_bytes(hashlib.sha256(_canonical(parts)).digest()[:8], "big")


def derived_seeds(parts: Sequence[Any], endings: Sequence[str]) -> list[int]:
    """Derive a seed from ``parts`` and each ending, ``derived_seed(*parts, ending)``; ``parts`` are encoded once."""
    start = _canonical(parts)[:-1] + (b"," if parts else b"")
    digests = [hashlib.sha256(start + _canonical(ending) + b"]").digest() for ending in endings]
    return [int.from_bytes(digest[:8], "big") for digest in digests]
