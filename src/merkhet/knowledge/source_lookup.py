"""Where knowledge is: which source reads a place, and what a cache key holds of it."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from merkhet.core.errors import InputError, did_you_mean
from merkhet.core.files import file_digest, path_exists
from merkhet.knowledge.chunk import Chunk
from merkhet.knowledge.source_reader import ReadContext, format_suffix

STORE_SUFFIX = ".duckdb"
_BY_SUFFIX = {
    **dict.fromkeys((".csv", ".tsv", ".jsonl", ".parquet"), "table"),
    **dict.fromkeys((".nt", ".ttl", ".rdf", ".owl", ".xml", ".jsonld", ".nq", ".trig"), "rdf"),
    ".json": "wikidata",
    ".rq": "sparql",
}
# A folder is known by a file in it.
_BY_FILE = {
    "pack.yaml": "pack",
    "facts.parquet": "tables",
    "data.noun": "wordnet",
    "entity2id.txt": "quadruples",
}


def resolve_source(place: str, folder: Path | None = None) -> tuple[str, Path | str]:
    """The name of the source that reads a place, and the place: a path, or an address as it was given.

    A place is an embedded pack, a folder, a file, the address of a SPARQL endpoint, or ``SOURCE=PLACE``.
    """
    from merkhet.knowledge.pack_catalog import embedded_packs

    if (
        "=" in place
        and not _is_address(place)
        and not path_exists(Path(place))
        and not (folder and (folder / place).exists())
    ):
        source, _, where = place.partition("=")
        return source, where if _is_address(where) else _existing(where, folder)
    if _is_address(place):
        return "sparql", place
    packs = embedded_packs()
    if place in packs:
        return "pack", packs[place]
    path = _existing(place, folder, packs)
    return _source_of_folder(path) if path.is_dir() else _source_of_file(path), path


def read_source(place: str, context: ReadContext, folder: Path | None = None) -> Iterator[Chunk]:
    """What a place's source gives, chunk by chunk; refuses what is not there, with the nearest known name."""
    from merkhet.knowledge import SOURCES

    source, where = resolve_source(place, folder)
    read = SOURCES.get(source, folder)
    # Somebody's own source may be a plain function of a path that gives all at once.
    given: Any = read(where, context) if len(inspect.signature(read).parameters) > 1 else read(where)
    chunks: Iterable[Any] = [given] if isinstance(given, Chunk) or not isinstance(given, Iterable) else given
    for chunk in chunks:
        if not isinstance(chunk, Chunk):
            raise InputError(f"the source {source!r} gave {type(chunk).__name__}, and should give a Chunk")
        yield chunk


def source_identity(place: str, folder: Path | None = None) -> str:
    """What a cache key holds of a place: the content of its files."""
    from merkhet.core.registry import part_identity

    source, path = resolve_source(place, folder)
    if isinstance(path, str):
        return f"{part_identity(source, folder)}={path}"
    files = sorted(file for file in path.rglob("*") if file.is_file()) if path.is_dir() else [path]
    contents = ",".join(f"{file.name}:{file_digest(file)}" for file in files)
    return f"{part_identity(source, folder)}={contents}"


def _is_address(place: str) -> bool:
    return place.startswith(("http://", "https://"))


def _source_of_folder(path: Path) -> str:
    for file, source in _BY_FILE.items():
        if (path / file).exists():
            return source
    return "pack"


def _source_of_file(path: Path) -> str:
    if path.suffix == STORE_SUFFIX:
        return "store"
    if path.name.startswith("conceptnet-assertions"):
        return "conceptnet"
    source = _BY_SUFFIX.get(format_suffix(path))
    if source is None:
        known = ", ".join(sorted(_BY_SUFFIX))
        raise InputError(f"{path}: the name does not tell what it holds ({known}); say SOURCE={path}")
    return source


def _existing(place: str, folder: Path | None, packs: Mapping[str, Path] | None = None) -> Path:
    for path in ((folder / place) if folder else Path(place), Path(place)):
        if path_exists(path):
            return path
    hint = did_you_mean(place, packs or ())
    raise InputError(f"there is no knowledge pack, folder or file {place!r}; {hint}" if packs else f"no file {place}")
