"""What tests of large files have in common: files packed in every way, all that came of one, and its refusal."""

from __future__ import annotations

import bz2
import gzip
import lzma

import pyarrow as pa
import pytest

from merkhet.core.errors import InputError
from merkhet.knowledge.source_reader import ReadContext


def pack(path, data):
    if path.suffix == ".zst":
        with pa.CompressedOutputStream(str(path), "zstd") as out:
            out.write(data)
    else:
        path.write_bytes(
            {".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}.get(path.suffix, bytes)(data)
        )
    return path


def gathered(chunks):
    chunks = list(chunks)
    facts = [row for chunk in chunks for row in chunk.facts.to_pylist()]
    names = [row for chunk in chunks for row in chunk.names.to_pylist()]
    details = {}
    for chunk in chunks:
        for row in chunk.details.to_pylist():
            key = row["subject"], row["predicate"], row["object"], row["start"]
            details.setdefault(key, {})[row["name"]] = row["text"]
    return facts, names, details


def refusal(read, path, **asked):
    with pytest.raises(InputError) as refused:
        list(read(path, ReadContext(**asked)))
    assert "\n" not in str(refused.value)
    return str(refused.value)
