"""Embedded knowledge packs and pack manifests (``pack.yaml``)."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from merkhet.core.errors import InputError
from merkhet.core.files import read_yaml
from merkhet.core.text_formats import short_repr
from merkhet.knowledge.chunk import COMPLETE

_FOLDER = Path(__file__).parent / "packs"


@dataclass(frozen=True)
class PackCard:
    """The description of a knowledge pack and its numbers of facts and names."""

    name: str
    title: str
    description: str
    licence: str
    facts: int
    names: int


def embedded_packs() -> dict[str, Path]:
    """Return the folders of the embedded packs by pack name."""
    return {path.parent.name: path.parent for path in sorted(_FOLDER.glob("*/pack.yaml"))}


def pack_card(folder: Path) -> PackCard:
    """Read the description of a pack from its manifest, and count its facts and names."""
    manifest = read_manifest(folder)
    return PackCard(
        name=manifest["name"],
        title=manifest["title"],
        description=" ".join(manifest["description"].split()),
        licence=manifest["licence"] if isinstance(manifest["licence"], str) else ", ".join(manifest["licence"]),
        facts=_count_rows(folder / "facts.csv"),
        names=_count_rows(folder / "names.csv"),
    )


def declared_predicates(folder: Path) -> tuple[str, ...]:
    """Return the names of the predicates that a pack declares in its manifest."""
    return tuple(read_manifest(folder).get("predicates") or ())


def declared_completeness(declared: Mapping[str, Any]) -> str | None:
    """Return for which place the declaration of a predicate says that no fact is missing, one of ``COMPLETE``.

    A functional predicate is complete for its object; a symmetric one is complete for both places or for none.
    """
    places = {declared.get("complete"), "object" if declared.get("functional") else None} - {None}
    if len(places) > 1 or (places and declared.get("symmetric")):
        return "both"
    return next(iter(places), None)


def read_manifest(folder: Path) -> dict[str, Any]:
    """Read and check the manifest ``pack.yaml`` of a pack.

    Raises:
        InputError: The file is missing, lacks a required key, or has a value of the wrong type.
    """
    path = folder / "pack.yaml"
    if not path.is_file():
        raise InputError(f"{folder} is not a knowledge pack: it has no pack.yaml. Name a file in it, or a pack.")
    return _read_checked(path, path.stat().st_mtime_ns)


@functools.cache
def _read_checked(path: Path, _modified: int) -> dict[str, Any]:
    """Read and check a manifest.

    Results are cached by path and modification time, because a build reads the manifest twice.
    """
    manifest = read_yaml(path, "what the pack is")
    manifest = manifest if isinstance(manifest, dict) else {}
    missing = [key for key in ("name", "title", "description", "licence") if key not in manifest]
    if missing:
        raise InputError(f"{path}: the key {missing[0]!r} is missing; add it")
    for key in ("name", "title", "description", "domain"):
        if not isinstance(manifest.get(key, ""), str):
            raise InputError(f"{path}: {key!r} must be a text, got {short_repr(manifest[key])}; put quotes around it")
    licences = manifest["licence"] if isinstance(manifest["licence"], list) else [manifest["licence"]]
    if not all(isinstance(licence, str) for licence in licences):
        raise InputError(f"{path}: 'licence' must be a text or a list of texts, got {short_repr(manifest['licence'])}")
    _check_predicates(path, manifest.get("predicates") or {})
    checked: dict[str, Any] = manifest
    return checked


def _check_predicates(path: Path, predicates: Any) -> None:
    if not isinstance(predicates, dict) or not all(isinstance(name, str) for name in predicates):
        raise InputError(
            f"{path}: 'predicates' must map names to declarations, such as {{capital: {{label: capital}}}}"
        )
    for name, declared in predicates.items():
        if not isinstance(declared, dict) or not isinstance(declared.get("label", ""), str):
            raise InputError(
                f"{path}: the predicate {name!r} must be like {{label: a text}}, got {short_repr(declared)}"
            )
        complete = declared.get("complete")
        if complete is not None and complete not in COMPLETE:
            raise InputError(
                f"{path}: 'complete' of the predicate {name!r} must be one of {', '.join(COMPLETE)}, "
                f"got {short_repr(complete)}"
            )


def _count_rows(path: Path) -> int:
    import csv

    with open(path, encoding="utf-8", newline="") as handle:
        return max(0, sum(1 for _ in csv.reader(handle)) - 1)
