"""Sizes in bytes as users write them, such as 64MB or 2 GiB."""

from __future__ import annotations

import re

from merkhet.core.errors import InputError
from merkhet.core.text_formats import short_repr

_SIZE = re.compile(r"([0-9]{1,9}(?:[.][0-9]{1,9})?)\s*([kKMGT]?)(i?)B")
_POWERS = {"": 0, "k": 1, "K": 1, "M": 2, "G": 3, "T": 4}


def parse_size(name: str, size: str) -> int:
    """Return the number of bytes of a size; a kB has 1000 bytes, a KiB 1024.

    Args:
        name: What the message calls the setting.
        size: The size as the user wrote it.

    Raises:
        InputError: The text is not a size of at least one byte.
    """
    match = _SIZE.fullmatch(size.strip()) if isinstance(size, str) else None
    count = int(float(match[1]) * (1024 if match[3] else 1000) ** _POWERS[match[2]]) if match else 0
    if count < 1:
        raise InputError(f"{name} must be a size such as 64MB or 512KiB, got {short_repr(size)}")
    return count
