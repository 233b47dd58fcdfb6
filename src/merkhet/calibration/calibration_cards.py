"""Storage of calibration cards, the results of calibrating a probe, in the package or the user's cache."""

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
    """Return the calibration cards of ``probes``, one for each probe and kind of model.

    Cards of merkhet's probes are part of the package. ``merkhet calibrate`` stores cards in the cache; a cached card of
    the same merkhet version replaces the package's card for that kind of model. A user's probe has only cached cards,
    which are not found after its file has changed.
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
    """Store the cards of a probe in the cache, keep its cards for other kinds of models, and return the file."""
    file = card_file(probe, home)
    merged = {card["kind"]: card for card in (*_read(file), *cards)}
    write_json(file, list(merged.values()))
    return file


def card_file(probe: str, home: Path | None = None) -> Path:
    """Return the cache file of a probe's cards; its name depends on the probe and, if any, its file's content."""
    try:
        identity = part_identity(probe, home)
    except InputError:  # A missing file is reported where the probe is used; here it only has no card.
        identity = probe
    reference, _, content = identity.partition("@")
    # The same file may be referred to from several folders.
    name = reference.rpartition(":")[2] if content else reference
    return cache_folder() / FOLDER / f"{name.replace(':', '-')}-{digest([name, content])[:16]}.json"


def _read(file: Path) -> list[dict[str, Any]]:
    """Return the cards in a file; empty if the file is missing or damaged."""
    try:
        cards = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return []
    if not isinstance(cards, list):
        return []
    return [card for card in cards if isinstance(card, dict) and "kind" in card]
