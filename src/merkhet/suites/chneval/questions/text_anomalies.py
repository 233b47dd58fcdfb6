"""Anomalies of Chinese sentences: mixed scripts, full-width letters, and characters such as emoji."""

from __future__ import annotations

import re
from collections import defaultdict
from functools import cache

from merkhet.core.text import counted, join_pairs

_WIDE = re.compile("[\uff10-\uff19\uff21-\uff3a\uff41-\uff5a\u3000]")
_BEYOND = re.compile("[\U00010000-\U0010ffff]")
_HAN = re.compile("[\u4e00-\u9fff]")

MIXED = "traditional and simplified characters are mixed"
FULL_WIDTH = "full-width letters, digits or blanks"
BEYOND = "emoji or other characters beyond the basic plane"


def find_anomalies(sentence: str) -> dict[str, str]:
    """Return the kinds of anomalies in a sentence, each with the characters concerned."""
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
    """Return whether a character is only simplified or only traditional; None if it is in both scripts or in neither.

    The common characters of GB 2312 count as simplified, the common characters of Big5 as traditional.
    """
    simplified, traditional = character_code(character, "gb2312"), character_code(character, "big5")
    if simplified is not None and traditional is None and 0xB0A1 <= simplified <= 0xD7F9:
        return "simplified"
    if traditional is not None and simplified is None and 0xA440 <= traditional <= 0xC67E:
        return "traditional"
    return None


def character_code(character: str, encoding: str) -> int | None:
    """Return the code of a character in an encoding, or None if the encoding lacks it."""
    try:
        return int.from_bytes(character.encode(encoding), "big")
    except UnicodeEncodeError:
        return None


class RemarkCounter:
    """Counter of irregular lines by kind of irregularity, with the location of each line."""

    def __init__(self) -> None:
        self._locations: dict[str, list[str]] = defaultdict(list)

    def __len__(self) -> int:
        return sum(map(len, self._locations.values()))

    def skip(self, reason: str, where: str) -> None:
        """Count a line that is left out; ``where`` gives file, line number and, optionally, the text of the line."""
        self._locations[f" left out: {reason}"].append(where)

    def add_anomalies(self, sentence: str, where: str) -> None:
        """Count the anomalies of a sentence that is kept unchanged."""
        for kind, characters in find_anomalies(sentence).items():
            self._locations[f": {kind}"].append(f"{where}: {characters}" if where else characters)

    def remarks(self, limit: int = 3) -> list[str]:
        """Return a sentence for each kind of irregularity, with the count and the first ``limit`` locations."""
        return [
            f"{counted(len(locations), 'line')}{kind} ({join_pairs(locations, limit)})."
            for kind, locations in self._locations.items()
        ]
