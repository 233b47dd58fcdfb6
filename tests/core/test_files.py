"""Files are there whole or not at all, also on a full disk."""

from __future__ import annotations

import hashlib
import subprocess

import pyarrow as pa
import pytest

from merkhet.core.errors import InputError
from merkhet.core.files import atomic_path, cache_folder, file_digest, write_json, write_text
from merkhet.core.schemas import FREQUENCIES, make_table, write_table


@pytest.fixture
def small_disk(tmp_path):
    """A folder on a file system of its own, of 256 kB."""
    folder = tmp_path / "small"
    folder.mkdir()
    try:
        command = ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(folder)]
        mounted = subprocess.run(command, capture_output=True, text=True, timeout=10, check=False)
    except OSError as error:
        pytest.skip(f"there is no mount command here: {error}")
    if mounted.returncode:
        pytest.skip(f"a small file system cannot be mounted here: {mounted.stderr.strip()}")
    yield folder
    subprocess.run(["umount", str(folder)], check=True, timeout=10)


def test_an_interrupted_block_leaves_the_old_file_and_nothing_else(tmp_path):
    target = tmp_path / "scores.json"
    target.write_text("old")

    class Stopped(BaseException):
        pass

    with pytest.raises(Stopped), atomic_path(target) as path:
        path.write_text("half")
        assert target.read_text() == "old"
        raise Stopped
    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]


def test_a_block_that_ends_well_takes_the_place_of_the_old_file(tmp_path):
    target = tmp_path / "deep" / "er" / "scores.json"
    write_text(target, "one")
    write_text(target, "zwei ✓")
    assert target.read_text(encoding="utf-8") == "zwei ✓"
    assert list(target.parent.iterdir()) == [target]


def test_json_is_the_same_for_the_same_content_and_refuses_nan(tmp_path):
    write_json(tmp_path / "a.json", {"name": "Åland", "n": 1})
    assert (tmp_path / "a.json").read_text(encoding="utf-8") == '{\n  "name": "Åland",\n  "n": 1\n}\n'
    with pytest.raises(ValueError, match="JSON"):
        write_json(tmp_path / "b.json", float("nan"))
    assert not (tmp_path / "b.json").exists()


def test_file_digest_is_the_sha256_of_the_bytes(tmp_path):
    content = bytes(range(256)) * 10_000
    (tmp_path / "data").write_bytes(content)
    assert file_digest(tmp_path / "data") == hashlib.sha256(content).hexdigest()


def test_cache_folder_is_where_the_environment_says(monkeypatch, tmp_path):
    monkeypatch.setenv("MERKHET_CACHE", str(tmp_path / "own"))
    assert cache_folder() == tmp_path / "own"
    monkeypatch.delenv("MERKHET_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "merkhet"


def fill_text(target):
    write_text(target, "x" * 1_000_000)


def fill_table(target):
    rows = [
        {"task": "t", "relation": "r", "answer": hashlib.sha256(bytes([i % 256, i // 256])).hexdigest(), "count": i}
        for i in range(20_000)
    ]
    write_table(FREQUENCIES, make_table(FREQUENCIES, rows), target)


@pytest.mark.parametrize("fill", [fill_text, fill_table])
def test_a_full_disk_is_said_in_one_line_and_leaves_the_old_file(small_disk, fill):
    target = small_disk / "table.parquet"
    target.write_text("old")
    with pytest.raises(InputError) as refused:
        fill(target)
    assert str(refused.value).startswith(f"{target}: the disk is full")
    assert "\n" not in str(refused.value)
    assert target.read_text() == "old"
    assert list(small_disk.iterdir()) == [target]


def test_a_full_disk_is_known_by_what_arrow_says():
    from merkhet.core.files import is_disk_full

    assert is_disk_full(OSError(28, "No space left on device"))
    assert is_disk_full(pa.ArrowIOError("Error writing bytes to file. Detail: [errno 28] No space left on device"))
    assert is_disk_full(OSError("6233 requested and 6112 written"))  # numpy
    assert not is_disk_full(OSError(13, "Permission denied"))
