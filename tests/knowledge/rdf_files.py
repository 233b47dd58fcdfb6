"""What tests of RDF have in common: a file written and read, its facts and its names."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from merkhet.knowledge.chunk import Chunk
from merkhet.knowledge.source_reader import ReadContext
from merkhet.knowledge.sources.rdf import read_rdf


def read(path: Path, **asked: Any) -> tuple[ReadContext, list[Chunk]]:
    reading = ReadContext(**asked)
    return reading, list(read_rdf(path, reading))


def facts_of(chunks: list[Chunk]) -> Counter[tuple[str, str, Any]]:
    rows = (row for chunk in chunks for row in chunk.facts.to_pylist())
    return Counter((r["subject"], r["predicate"], r["object"] or (r["value"], r["unit"])) for r in rows)


def names_of(chunks: list[Chunk]) -> set[tuple[str, str, Any]]:
    rows = (row for chunk in chunks for row in chunk.names.to_pylist())
    return {(row["entity"], row["language"], row["label"] or tuple(row["aliases"])) for row in rows}


def written(path: Path, text: str | bytes) -> Path:
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path
