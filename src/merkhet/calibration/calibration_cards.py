"""Calibration cards: the results of calibrating a probe, embedded in merkhet or stored in its cache."""

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
    """Return the cards of some probes, one for each probe and kind of model.

    merkhet's probes come with cards. A card that ``merkhet calibrate`` of this version has stored in the cache replaces
    the embedded one of its kind. A user's probe has only such cards, and none after its file has changed.
    """
    cards: list[dict[str, Any]] = []
    for probe in dict.fromkeys(probes):
        embedded = _read(EMBEDDED / f"{probe}.json") if probe.isidentifier() else []
        cached = _read(card_file(probe, home))
        if embedded:
            cached = [card for card in cached if card.get("made", {}).get("merkhet") == __version__]
        cards += {card["kind"]: card for card in (*embedded, *cached)}.values()
    return cards


def save_cards(probe: str, cards: Sequence[dict[str, Any]], home: Path | None = None) -> Path:
    """Store the cards of a probe in the cache, beside those of other kinds of models; return the file."""
    file = card_file(probe, home)
    merged = {card["kind"]: card for card in (*_read(file), *cards)}
    write_json(file, list(merged.values()))
    return file


def card_file(probe: str, home: Path | None = None) -> Path:
    """Return the file for a probe's cards: by its name and, for a probe in a loose file, the file's content."""
    try:
        identity = part_identity(probe, home)
    except InputError:  # A missing file is reported where the probe is used; here it only has no card.
        identity = probe
    reference, _, content = identity.partition("@")
    # The same file may be referred to from several folders.
    name = reference.rpartition(":")[2] if content else reference
    return cache_folder() / FOLDER / f"{name.replace(':', '-')}-{digest([name, content])[:16]}.json"


def _read(file: Path) -> list[dict[str, Any]]:
    """Return the cards of a file; none if it is missing or damaged."""
    try:
        cards = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return []
    if not isinstance(cards, list):
        return []
    return [card for card in cards if isinstance(card, dict) and "kind" in card]
