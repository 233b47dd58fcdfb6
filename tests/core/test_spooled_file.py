"""Temporary content in memory and on disk: the same bytes, and errors in one line."""

from __future__ import annotations

import resource
import tempfile
from pathlib import Path

import pytest

from merkhet.core.errors import InputError
from merkhet.core.spooled_file import SpooledFile


@pytest.mark.parametrize("max_memory", [1, 10, 1000])
def test_content_is_the_same_in_memory_and_on_disk_and_leaves_no_file(
    max_memory: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with SpooledFile(max_memory) as file:
        for _ in range(9):
            file.write(b"ab\nc")
        lines = file.lines()
        assert next(lines) == b"ab\n"
        assert file.read() == b"ab\nc" * 9
        assert [next(file.lines()), *lines] == [b"ab\n", *[b"cab\n"] * 8, b"c"]
        assert list(tmp_path.iterdir()) == []


def test_a_full_or_missing_temporary_folder_is_an_error_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, hard))
    try:
        with (
            SpooledFile(10) as file,
            pytest.raises(InputError, match="the disk is full") as full,
        ):
            file.write(bytes(200_000))
            file.read()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "missing"))
    with SpooledFile(10) as file, pytest.raises(InputError, match=r"missing cannot hold temporary files .* Set TMPDIR"):
        file.write(bytes(11))
    assert str(full.value).startswith(str(tmp_path)) and "\n" not in str(full.value)
