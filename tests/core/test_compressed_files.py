"""Compressed files: what other programs compress is read, damage is one line, and memory is bounded."""

from __future__ import annotations

import bz2
import gzip
import lzma
import struct
import tracemalloc
import zlib
from pathlib import Path

import pyarrow as pa
import pytest
from all_cases import check_all

from merkhet.core.compressed_files import SUFFIXES, format_suffix, is_compressed, open_file
from merkhet.core.errors import InputError
from merkhet.knowledge.source_reader import ReadContext, read_lines

PACK = {
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
    ".zst": lambda data: pa.compress(data, "zstd", asbytes=True),
}
CONTENT = b"".join(b"line %d of the file\n" % number for number in range(5_000))


def packed(folder: Path, suffix: str, data: bytes) -> Path:
    (folder / f"a.txt{suffix}").write_bytes(data)
    return folder / f"a.txt{suffix}"


def test_every_format_is_read_and_every_truncation_is_one_line(tmp_path: Path) -> None:
    def check(suffix: str) -> None:
        whole = PACK[suffix](CONTENT)
        with open_file(packed(tmp_path, suffix, whole)) as handle:
            assert handle.read() == CONTENT
        for cut in (1, 5, len(whole) // 2, len(whole) - 1):
            path = packed(tmp_path, suffix, whole[:cut])
            with pytest.raises(InputError, match="the compressed file is broken or ends early") as refused:
                open_file(path).read()
            assert str(refused.value).startswith(f"{path}: ") and "\n" not in str(refused.value)
        with pytest.raises(InputError, match="the compressed file is broken or ends early"):
            open_file(packed(tmp_path, suffix, b"plain text\n")).read()

    assert set(PACK) == set(SUFFIXES)
    check_all(check, SUFFIXES)
    assert [format_suffix(Path(name)) for name in ("a.NT.XZ", "a.nt", "a.xz")] == [".nt", ".nt", ""]
    assert is_compressed(Path("a.xz")) and not is_compressed(Path("a.csv"))


def test_xz_of_several_streams_with_padding_is_read_whole(tmp_path: Path) -> None:
    halves = [lzma.compress(CONTENT[:40_000]), lzma.compress(CONTENT[40_000:], check=lzma.CHECK_CRC32)]
    for between, end in ((b"", b""), (b"\0" * 8, b""), (b"\0" * 200_000, b"\0" * 4)):
        with open_file(packed(tmp_path, ".xz", between.join(halves) + end)) as handle:
            assert handle.read() == CONTENT
    flipped = bytearray(halves[0])
    flipped[len(flipped) // 2] ^= 1
    for data in (halves[0] + b"x" * 20, halves[0] + halves[1][:-4], bytes(flipped)):
        with pytest.raises(InputError, match="broken or ends early"):
            open_file(packed(tmp_path, ".xz", data)).read()


def test_xz_that_demands_gigabytes_of_memory_is_refused(tmp_path: Path) -> None:
    data = bytearray(lzma.compress(b"a\n"))
    # A block header after the 12 bytes of the stream header: size, flags, filter 0x21, its size, dictionary, CRC.
    assert data[14:16] == b"\x21\x01"
    data[16] = 40  # A dictionary of 4 GiB.
    data[20:24] = struct.pack("<I", zlib.crc32(data[12:20]))
    with pytest.raises(InputError, match="broken or ends early"):
        open_file(packed(tmp_path, ".xz", bytes(data))).read()


@pytest.mark.slow
def test_bombs_are_read_in_pieces_and_endless_lines_are_refused(tmp_path: Path) -> None:
    line, size = b"x" * 99_999 + b"\n", 150_000_000

    def check(suffix: str) -> None:
        lines = packed(tmp_path, suffix, PACK[suffix](line * (size // len(line))))
        one_line = packed(tmp_path / "one", suffix, PACK[suffix](b"x" * size))
        tracemalloc.start()
        assert sum(1 for _ in read_lines(lines, ReadContext())) == size // len(line)
        with pytest.raises(InputError, match=r"a.txt.*:1: the line is longer than 64 MiB"):
            list(read_lines(one_line, ReadContext()))
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 250_000_000

    (tmp_path / "one").mkdir()
    check_all(check, SUFFIXES)
