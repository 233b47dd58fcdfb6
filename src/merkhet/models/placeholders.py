"""Marks in prompts that are no words of any language: pseudowords and soft tokens."""

from __future__ import annotations

import re
from dataclasses import dataclass

from merkhet.core.errors import InputError

PSEUDOWORD_MARKS = ("[X]", "[Y]")
"""What stands in a prompt for the two pseudowords of a pair."""
SOFT_TOKEN = re.compile(r"<[A-Za-z]+\d+>")
"""What stands in a prompt for an embedding that is learned."""


def replace_pseudowords(prompt: str) -> str:
    """A prompt for models that take text alone: X and Y stand for the pseudowords."""
    for mark in PSEUDOWORD_MARKS:
        prompt = prompt.replace(mark, mark.strip("[]"))
    return prompt


CENTRES = ("mask", "unknown")


@dataclass(frozen=True)
class PseudowordSettings:
    """How many pairs a question is asked with, how near to the centre they lie, and what the centre is.

    The ``unknown`` token is the centre in the code that was published with OntoProbe where a model calls its mask
    otherwise than [MASK].
    """

    pairs: int = 10
    alpha: float = 0.5
    seed: int = 0
    centre: str = "mask"

    def __post_init__(self) -> None:
        if self.pairs < 1 or not 0 < self.alpha < 1:
            raise InputError("pseudowords need at least one pair, and an alpha between 0 and 1")
        if self.centre not in CENTRES:
            raise InputError(f"the centre of pseudowords is {self.centre!r}, and should be one of {', '.join(CENTRES)}")
