"""What a source gives: facts, names and what is known of the predicates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import pyarrow as pa

from gnomon.foundation import InputError, did_you_mean
from gnomon.foundation.files import file_digest
from gnomon.foundation.tables import FACTS, NAMES, validate


@dataclass(frozen=True)
class Predicate:
    """What is declared of a predicate; ``functional`` means at most one object a subject."""

    name: str
    label: str
    functional: bool = False
    symmetric: bool = False


@dataclass(frozen=True)
class Material:
    """Facts and names from one source, as tables of the house, with the predicates it declares."""

    facts: pa.Table
    names: pa.Table
    predicates: Mapping[str, Predicate] = field(default_factory=dict)


def load_material(place: str, folder: Path | None = None) -> Material:
    """Facts and names from an embedded pack, a pack folder, a table file, or ``SOURCE=PLACE`` with any source.

    Refuses what is not there, with the nearest known name.
    """
    from gnomon.knowledge import SOURCES

    source, where = locate(place, folder)
    material = SOURCES.get(source, folder)(where)
    if not isinstance(material, Material):
        raise InputError(f"the source {source!r} gave {type(material).__name__}, and should give a Material")

    def row_of(row: int) -> str:
        return f"{place}, row {row + 1}"

    return replace(
        material, facts=validate(FACTS, material.facts, row_of), names=validate(NAMES, material.names, row_of)
    )


def locate(place: str, folder: Path | None = None) -> tuple[str, Path]:
    """The name of the source that reads a place, and the place as a path."""
    from gnomon.knowledge.embedded import embedded_packs

    if "=" in place and not Path(place).exists() and not (folder and (folder / place).exists()):
        source, _, where = place.partition("=")
        path = _existing(where, folder)
        return source, path
    packs = embedded_packs()
    if place in packs:
        return "pack", packs[place]
    path = _existing(place, folder, packs)
    if path.is_dir():
        return "pack", path
    return "table", path


def material_identity(place: str, folder: Path | None = None) -> str:
    """What a cache key holds of a place: the content of its files."""
    from gnomon.foundation.registry import part_identity

    source, path = locate(place, folder)
    files = sorted(file for file in path.rglob("*") if file.is_file()) if path.is_dir() else [path]
    contents = ",".join(f"{file.name}:{file_digest(file)}" for file in files)
    return f"{part_identity(source, folder)}={contents}"


def _existing(place: str, folder: Path | None, packs: Mapping[str, Path] | None = None) -> Path:
    for path in ((folder / place) if folder else Path(place), Path(place)):
        if path.exists():
            return path
    hint = did_you_mean(place, packs or ())
    raise InputError(f"there is no knowledge pack, folder or file {place!r}; {hint}" if packs else f"no file {place}")
