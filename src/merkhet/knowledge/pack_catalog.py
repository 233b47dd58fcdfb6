"""The knowledge packs that come with merkhet: small, real, each with its source and licence."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from merkhet.core.errors import InputError
from merkhet.core.files import read_yaml
from merkhet.core.text_formats import short_repr

_FOLDER = Path(__file__).parent / "packs"


@dataclass(frozen=True)
class PackCard:
    """What a pack says of itself."""

    name: str
    title: str
    description: str
    licence: str
    facts: int
    names: int


def embedded_packs() -> dict[str, Path]:
    """Name and folder of each embedded pack."""
    return {path.parent.name: path.parent for path in sorted(_FOLDER.glob("*/pack.yaml"))}


def pack_card(folder: Path) -> PackCard:
    """A pack's card, with its rows counted."""
    about = read_manifest(folder)
    return PackCard(
        name=about["name"],
        title=about["title"],
        description=" ".join(about["description"].split()),
        licence=about["licence"] if isinstance(about["licence"], str) else ", ".join(about["licence"]),
        facts=_rows(folder / "facts.csv"),
        names=_rows(folder / "names.csv"),
    )


def declared_predicates(folder: Path) -> tuple[str, ...]:
    """The predicates that a pack declares."""
    return tuple(read_manifest(folder).get("predicates") or ())


def read_manifest(folder: Path) -> dict[str, Any]:
    """The content of pack.yaml; refuses a folder without one, or one that says too little."""
    file = folder / "pack.yaml"
    if not file.is_file():
        raise InputError(f"{folder} is no knowledge pack: it has no pack.yaml")
    about = read_yaml(file, "what the pack is")
    about = about if isinstance(about, dict) else {}
    missing = [key for key in ("name", "title", "description", "licence") if key not in about]
    if missing:
        raise InputError(f"{file}: the key {missing[0]!r} is missing")
    for key in ("name", "title", "description", "domain"):
        if not isinstance(about.get(key, ""), str):
            raise InputError(f"{file}: {key!r} is {short_repr(about[key])}, and should be a text; put quotes around it")
    licences = about["licence"] if isinstance(about["licence"], list) else [about["licence"]]
    if not all(isinstance(one, str) for one in licences):
        raise InputError(
            f"{file}: 'licence' is {short_repr(about['licence'])}, and should be a text or a list of texts"
        )
    _refuse_odd_predicates(file, about.get("predicates") or {})
    found: dict[str, Any] = about
    return found


def _refuse_odd_predicates(file: Path, given: Any) -> None:
    if not isinstance(given, dict) or not all(isinstance(name, str) for name in given):
        raise InputError(f"{file}: under 'predicates' stand names, each with what is declared of it")
    for name, declared in given.items():
        if not isinstance(declared, dict) or not isinstance(declared.get("label", ""), str):
            raise InputError(
                f"{file}: of the predicate {name!r} is declared {short_repr(declared)}, and should be {{label: a text}}"
            )


def _rows(file: Path) -> int:
    import csv

    with open(file, encoding="utf-8", newline="") as handle:
        return max(0, sum(1 for _ in csv.reader(handle)) - 1)
