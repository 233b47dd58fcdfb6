"""Anomalies of Chinese sentences: mixed scripts, full-width letters, characters beyond the basic plane."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from functools import cache

_WIDE = re.compile("[\uff10-\uff19\uff21-\uff3a\uff41-\uff5a\u3000]")
_BEYOND = re.compile("[\U00010000-\U0010ffff]")
_HAN = re.compile("[\u4e00-\u9fff]")

MIXED = "traditional and simplified characters are mixed"
FULL_WIDTH = "full-width letters, digits or blanks"
BEYOND = "emoji or other characters beyond the basic plane"


def find_anomalies(sentence: str) -> dict[str, str]:
    """Return the anomalies of a sentence, each with its characters; such a sentence is asked as it is."""
    anomalies = {}
    scripts: dict[str, str] = {"simplified": "", "traditional": ""}
    for character in _HAN.findall(sentence):
        script = _script(character)
        if script is not None and character not in scripts[script]:
            scripts[script] += character
    if all(scripts.values()):
        anomalies[MIXED] = f"{scripts['traditional']} and {scripts['simplified'][:4]}"
    for name, pattern in ((FULL_WIDTH, _WIDE), (BEYOND, _BEYOND)):
        characters = "".join(dict.fromkeys(pattern.findall(sentence)))
        if characters:
            anomalies[name] = characters.replace("\u3000", "(blank)")
    return anomalies


@cache
def _script(character: str) -> str | None:
    """Return the only script that has a character, simplified or traditional; None if both or neither have it.

    The scripts are the common characters of their national codes: GB 2312 for simplified, Big5 for traditional.
    """
    simplified, traditional = _code(character, "gb2312"), _code(character, "big5")
    if simplified is not None and traditional is None and 0xB0A1 <= simplified <= 0xD7F9:
        return "simplified"
    if traditional is not None and simplified is None and 0xA440 <= traditional <= 0xC67E:
        return "traditional"
    return None


def _code(character: str, encoding: str) -> int | None:
    try:
        return int.from_bytes(character.encode(encoding), "big")
    except UnicodeEncodeError:
        return None


class RemarkCounter:
    """Counter of irregular lines by kind, with their locations."""

    def __init__(self) -> None:
        self._locations: dict[str, list[str]] = defaultdict(list)

    def __len__(self) -> int:
        return sum(map(len, self._locations.values()))

    def add(self, kind: str, where: str) -> None:
        """Count a line; ``where`` names the file and the line, and optionally its text."""
        self._locations[kind].append(where)

    def remarks(self, limit: int = 3) -> list[str]:
        """Return a sentence for each kind: the count and the first ``limit`` locations."""
        return [
            f"{len(locations):,} {'line' if len(locations) == 1 else 'lines'}: {kind} ({_abridge(locations, limit)})."
            for kind, locations in self._locations.items()
        ]


def _abridge(locations: Sequence[str], limit: int) -> str:
    more = len(locations) - limit
    return "; ".join(locations[:limit]) + (f"; and {more:,} more" if more > 0 else "")
