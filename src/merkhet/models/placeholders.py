"""Placeholders in prompts, for pseudowords and for soft tokens (trained embeddings)."""

from __future__ import annotations

import re
from dataclasses import dataclass

from merkhet.core.errors import InputError

PSEUDOWORD_MARKS = ("[X]", "[Y]")
"""The placeholders for the two pseudowords of a pair."""
SOFT_TOKEN = re.compile(r"<[A-Za-z]+\d+>")
"""The pattern of placeholders for trained embeddings, such as ``<T1>``."""


def replace_pseudowords(prompt: str) -> str:
    """Replace the placeholders [X] and [Y] by the letters X and Y, for models that only take text."""
    for mark in PSEUDOWORD_MARKS:
        prompt = prompt.replace(mark, mark.strip("[]"))
    return prompt


CENTRES = ("mask", "unknown")


@dataclass(frozen=True)
class PseudowordSettings:
    """Settings for the random embeddings of pseudowords."""

    pairs: int = 10
    """The number of pairs of pseudowords that each question is scored with."""
    alpha: float = 0.5
    """The distance from the centre, as a fraction of the distance between the centre and its nearest word."""
    seed: int = 0
    centre: str = "mask"
    """``mask`` or ``unknown``: the token whose embedding pseudowords surround.

    OntoProbe's published code uses the unknown token if the mask token is not called [MASK].
    """

    def __post_init__(self) -> None:
        if self.pairs < 1 or not 0 < self.alpha < 1:
            raise InputError(
                "pseudowords need at least one pair, and an alpha between 0 and 1, "
                f"got pairs {self.pairs!r} and alpha {self.alpha!r}"
            )
        if self.centre not in CENTRES:
            raise InputError(f"the centre of pseudowords must be one of {', '.join(CENTRES)}, got {self.centre!r}")
