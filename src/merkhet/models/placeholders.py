"""Placeholders in prompts: pseudowords and soft tokens."""

from __future__ import annotations

import re
from dataclasses import dataclass

from merkhet.core.errors import InputError

PSEUDOWORD_MARKS = ("[X]", "[Y]")
"""The placeholders for the two pseudowords of a pair."""
SOFT_TOKEN = re.compile(r"<[A-Za-z]+\d+>")
"""The placeholder for a trained embedding."""


def replace_pseudowords(prompt: str) -> str:
    """Replace the placeholders of pseudowords by the letters X and Y, for models that only take text."""
    for mark in PSEUDOWORD_MARKS:
        prompt = prompt.replace(mark, mark.strip("[]"))
    return prompt


CENTRES = ("mask", "unknown")


@dataclass(frozen=True)
class PseudowordSettings:
    """How pseudowords are drawn."""

    pairs: int = 10
    """How many pairs a question is asked with."""
    alpha: float = 0.5
    """The distance from the centre, as a fraction of the distance of the nearest word."""
    seed: int = 0
    centre: str = "mask"
    """The token at the centre. OntoProbe's published code uses ``unknown`` if the mask is not called [MASK]."""

    def __post_init__(self) -> None:
        if self.pairs < 1 or not 0 < self.alpha < 1:
            raise InputError(
                "pseudowords need at least one pair, and an alpha between 0 and 1, "
                f"got pairs {self.pairs!r} and alpha {self.alpha!r}"
            )
        if self.centre not in CENTRES:
            raise InputError(f"the centre of pseudowords must be one of {', '.join(CENTRES)}, got {self.centre!r}")
