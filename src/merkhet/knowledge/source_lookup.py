"""Lookup of the source that reads a location (pack, file, folder or address), and cache keys of locations."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from merkhet.core.compressed_files import format_suffix
from merkhet.core.credentials import refuse_user_info
from merkhet.core.errors import InputError, did_you_mean
from merkhet.core.files import file_digest, path_exists
from merkhet.knowledge.chunk import Chunk
from merkhet.knowledge.source_reader import ReadContext

STORE_SUFFIX = ".duckdb"
_BY_SUFFIX = {
    **dict.fromkeys((".csv", ".tsv", ".jsonl", ".parquet"), "table"),
    **dict.fromkeys((".nt", ".ttl", ".rdf", ".owl", ".xml", ".jsonld", ".nq", ".trig"), "rdf"),
    ".json": "wikidata",
    ".rq": "sparql",
}
_LOGIN = re.compile(r"(?:https?:/?)?([^:/@\s]+:[^/@]+@.+)", re.IGNORECASE)
"""An address with a login that is not recognized as one, because its scheme or a slash is missing."""
# A folder is recognized by a file in it.
_BY_FILE = {
    "pack.yaml": "pack",
    "facts.parquet": "tables",
    "data.noun": "wordnet",
    "entity2id.txt": "quadruples",
}


def resolve_source(location: str, folder: Path | None = None) -> tuple[str, Path | str]:
    """Return the name of the source for a location, and the path or address that the source reads.

    A location is an embedded pack, a folder, a file, the address of a SPARQL endpoint, or ``SOURCE=LOCATION``.
    Relative paths are looked up in ``folder``, then in the working directory.

    Raises:
        InputError: The location does not exist, its suffix does not determine the format, or it is an address with a
            user or password.
    """
    from merkhet.knowledge.pack_catalog import embedded_packs

    if "://" in location:
        refuse_user_info(location)
    source = named_source(location, folder)
    if source is not None:
        target = location.partition("=")[2]
        return source, target if _is_address(target) else _find_path(target, folder)
    if _is_address(location):
        return "sparql", location
    packs = embedded_packs()
    if location in packs:
        return "pack", packs[location]
    path = _find_path(location, folder, packs)
    return _folder_source(path) if path.is_dir() else _file_source(path), path


def named_source(location: str, folder: Path | None = None) -> str | None:
    """Return the source that ``SOURCE=LOCATION`` names; None for a location without a source."""
    is_location = (
        "=" not in location
        or _is_address(location)
        or path_exists(Path(location))
        or (folder is not None and path_exists(folder / location))
    )
    return None if is_location else location.partition("=")[0]


def read_source(location: str, context: ReadContext, folder: Path | None = None) -> Iterator[Chunk]:
    """Read a location with its source and yield the chunks.

    Raises:
        InputError: The location or its source is unknown, with a similar name; or the chunks read so far have bad rows.
    """
    from merkhet.knowledge import SOURCES

    source, target = resolve_source(location, folder)
    context.collects_faults = True
    read = SOURCES.get(source, folder)
    # A user's source may be a function of the path alone that returns a single chunk.
    output: Any = read(target, context) if len(inspect.signature(read).parameters) > 1 else read(target)
    chunks: Iterable[Any] = [output] if isinstance(output, Chunk) or not isinstance(output, Iterable) else output
    for chunk in chunks:
        if not isinstance(chunk, Chunk):
            raise InputError(f"the source {source!r} must return or yield a Chunk, got {type(chunk).__name__}")
        yield chunk
        if context.faults:  # Later chunks are not read.
            break
    context.refuse_faults()


def source_identity(location: str, folder: Path | None = None) -> str:
    """Return a cache key for a location: its source with the hashes of its files, or with its address."""
    from merkhet.core.registry import part_identity

    source, path = resolve_source(location, folder)
    if isinstance(path, str):
        return f"{part_identity(source, folder)}={path}"
    files = sorted(file for file in path.rglob("*") if file.is_file()) if path.is_dir() else [path]
    contents = ",".join(f"{file.name}:{file_digest(file)}" for file in files)
    return f"{part_identity(source, folder)}={contents}"


def _is_address(location: str) -> bool:
    return location.startswith(("http://", "https://"))


def _folder_source(path: Path) -> str:
    for file, source in _BY_FILE.items():
        if (path / file).exists():
            return source
    return "pack"


def _file_source(path: Path) -> str:
    if path.suffix == STORE_SUFFIX:
        return "store"
    if path.name.startswith("conceptnet-assertions"):
        return "conceptnet"
    source = _BY_SUFFIX.get(format_suffix(path))
    if source is None:
        known = ", ".join(sorted(_BY_SUFFIX))
        raise InputError(f"{path}: the suffix does not tell the format (known: {known}); write SOURCE={path}")
    return source


def _find_path(location: str, folder: Path | None, packs: Mapping[str, Path] | None = None) -> Path:
    for path in ((folder / location) if folder else Path(location), Path(location)):
        if path_exists(path):
            return path
    if login := _LOGIN.fullmatch(location):
        refuse_user_info(login[1])
    hint = did_you_mean(location, packs or ())
    raise InputError(
        f"there is no knowledge pack, folder or file {location!r}; {hint}"
        if packs
        else f"there is no file {location}; check the path"
    )
