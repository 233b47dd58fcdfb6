"""Names and JSON files of a run's folder that several steps share."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from merkhet.core.errors import InputError, first_line

CALIBRATION = "calibration.json"
SHARD_FILE = ".merkhet/shard.json"


def read_json(file: Path) -> Any:
    """Read a JSON file of a run; refuse one that is missing or broken."""
    try:
        return json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(
            f"{file} cannot be read ({first_line(error)}). Make the run again, or fetch it anew."
        ) from error
