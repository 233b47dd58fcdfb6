"""Calibration cards: what was found when a probe was calibrated, kept with merkhet or in its cache."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from merkhet.core.errors import InputError
from merkhet.core.files import cache_folder, write_json
from merkhet.core.ids import digest
from merkhet.core.registry import part_identity
from merkhet.core.version import __version__

EMBEDDED = Path(__file__).parent / "embedded"
FOLDER = "calibration"


def find_cards(probes: Sequence[str], home: Path | None = None) -> list[dict[str, Any]]:
    """The cards of these probes: one a probe and kind of model, none for a probe that was never calibrated.

    Probes of merkhet come with cards. A card made here by this version (``merkhet calibrate``) replaces the one for the
    same kind of model; probes of your own have only these, and none once their file has changed.
    """
    found: list[dict[str, Any]] = []
    for probe in dict.fromkeys(probes):
        embedded = _read(EMBEDDED / f"{probe}.json") if probe.isidentifier() else []
        own = _read(card_file(probe, home))
        if embedded:
            own = [card for card in own if card.get("made", {}).get("merkhet") == __version__]
        found += {card["kind"]: card for card in (*embedded, *own)}.values()
    return found


def save_cards(probe: str, cards: Sequence[dict[str, Any]], home: Path | None = None) -> Path:
    """Keep the cards of a probe in the cache, beside those of other kinds of models; returns the file."""
    file = card_file(probe, home)
    kept = {card["kind"]: card for card in (*_read(file), *cards)}
    write_json(file, list(kept.values()))
    return file


def card_file(probe: str, home: Path | None = None) -> Path:
    """Where the cards of a probe are kept: by its name and, for one in a loose file, the file's content."""
    try:
        identity = part_identity(probe, home)
    except InputError:  # Whoever asks by it is told that there is no such file; here it only has no card.
        identity = probe
    place, _, content = identity.partition("@")
    # A loose file may be named from several folders.
    name = place.rpartition(":")[2] if content else place
    return cache_folder() / FOLDER / f"{name.replace(':', '-')}-{digest([name, content])[:16]}.json"


def _read(file: Path) -> list[dict[str, Any]]:
    """The cards of a file; none if it is not there, or damaged."""
    try:
        cards = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return []
    if not isinstance(cards, list):
        return []
    return [card for card in cards if isinstance(card, dict) and "kind" in card]
