"""What an invented world is to calibration: sentences that a model learns, and questions of three sets about it."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from merkhet.core.records import Question
from merkhet.training.calibration_models import ContentSettings, Sentence

MEMORIZED, NEVER_SHOWN, IN_OTHER_WORDS = "memorized", "never shown", "in other words"
SETS = (MEMORIZED, NEVER_SHOWN, IN_OTHER_WORDS)
_CONSONANTS, _VOWELS = "bdfgklmnprstvz", "aeiou"


@dataclass(frozen=True)
class World:
    """Sentences to be learned, and questions whose task is the set that they belong to.

    ``facts`` says which fact (or word) each question is about, ``chance`` is what guessing gives, ``settings`` say
    how a model of each kind learns, and ``introductions`` are words of no meaning that may stand before a sentence.
    """

    sentences: Sequence[Sentence]
    questions: Sequence[Question]
    facts: Mapping[str, str]
    chance: float
    settings: Mapping[str, ContentSettings]
    introductions: Sequence[str] = ()


def invented_words(draw: random.Random, taken: set[str]) -> Iterator[str]:
    """Words that nobody uses, each once, none of those that are taken: two or three syllables in lower case."""
    while True:
        word = "".join(draw.choice(_CONSONANTS) + draw.choice(_VOWELS) for _ in range(draw.choice((2, 3))))
        if word not in taken:
            taken.add(word)
            yield word
