"""What is odd in a sentence of Chinese: mixed scripts, full-width letters, characters beyond the basic plane."""

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


def oddities(sentence: str) -> dict[str, str]:
    """What is odd in a sentence, each with the characters that make it so; such a sentence is asked as it is."""
    found = {}
    scripts: dict[str, str] = {"simplified": "", "traditional": ""}
    for character in _HAN.findall(sentence):
        script = _script(character)
        if script is not None and character not in scripts[script]:
            scripts[script] += character
    if all(scripts.values()):
        found[MIXED] = f"{scripts['traditional']} and {scripts['simplified'][:4]}"
    for name, pattern in ((FULL_WIDTH, _WIDE), (BEYOND, _BEYOND)):
        characters = "".join(dict.fromkeys(pattern.findall(sentence)))
        if characters:
            found[name] = characters.replace("\u3000", "(blank)")
    return found


@cache
def _script(character: str) -> str | None:
    """Which of the two scripts a character belongs to alone, by the common characters of their national codes.

    GB 2312 holds the simplified forms, and Big5 the traditional ones; what both hold, or neither, tells nothing.
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


class Counted:
    """Things to remark, gathered by kind, each with the places where it was found."""

    def __init__(self) -> None:
        self._places: dict[str, list[str]] = defaultdict(list)

    def __len__(self) -> int:
        return sum(map(len, self._places.values()))

    def add(self, kind: str, where: str) -> None:
        """One more of a kind; ``where`` names the file and the line, and perhaps what is there."""
        self._places[kind].append(where)

    def remarks(self, shown: int = 3) -> list[str]:
        """A sentence for each kind: how many there are, and where the first of them are."""
        return [
            f"{len(places):,} {'line' if len(places) == 1 else 'lines'}: {kind} ({_listed(places, shown)})."
            for kind, places in self._places.items()
        ]


def _listed(places: Sequence[str], shown: int) -> str:
    more = len(places) - shown
    return "; ".join(places[:shown]) + (f"; and {more:,} more" if more > 0 else "")
