"""Calibration cards: what was found when a probe was calibrated, kept with gnomon or beside its cache."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

_EMBEDDED = Path(__file__).parent / "embedded"


def find_cards(probes: Sequence[str], home: Path | None = None) -> list[dict[str, Any]]:
    """The cards of these probes: one a probe and kind of model, none for a probe that was never calibrated."""
    found: list[dict[str, Any]] = []
    for probe in dict.fromkeys(probes):
        file = _EMBEDDED / f"{probe}.json"
        if file.is_file():
            found += json.loads(file.read_text(encoding="utf-8"))
    return found
