"""Sizes in bytes as users write them."""

from __future__ import annotations

import pytest

from merkhet.core.byte_sizes import parse_size
from merkhet.core.errors import InputError


@pytest.mark.parametrize(
    ("text", "size"),
    [("64MB", 64_000_000), (" 1.5 GiB ", 3 << 29), ("7B", 7), ("20kB", 20_000), ("2KiB", 2048), ("0.5KB", 500)],
)
def test_a_size_is_a_number_of_bytes(text: str, size: int) -> None:
    assert parse_size("x", text) == size


@pytest.mark.parametrize("text", ["", "64", "MB", "-1MB", "1e3MB", "0MB", "0.001B", "64MBs", "9" * 99 + "B", "٣MB", 64])
def test_what_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(InputError, match=r"^chat.max_bytes must be a size such as 64MB or 512KiB, got"):
        parse_size("chat.max_bytes", text)
