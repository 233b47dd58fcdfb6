"""Invented worlds, each with sentences to train a model on and three sets of questions."""

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
class WorldTexts:
    """Texts about an invented world for a calibration card."""

    description: str
    """Description of the world's content."""
    transfer: str
    """Description of the set of questions ``in other words``."""
    bag: str
    """Explanation of the score of a bag of words."""


@dataclass(frozen=True)
class World:
    """An invented world for calibration: sentences to train on, and questions with known answers."""

    sentences: Sequence[Sentence]
    questions: Sequence[Question]
    """Questions; the task of a question is the name of its set."""
    facts: Mapping[str, str]
    """Id of the fact or ambiguous word of each question, by question id."""
    chance: float
    """Expected score of a random guess."""
    settings: Mapping[str, ContentSettings]
    """Training settings by kind of model."""
    texts: WorldTexts
    introductions: Sequence[str] = ()
    """Meaningless words that may precede a sentence."""


def invented_words(generator: random.Random, used: set[str]) -> Iterator[str]:
    """Yield distinct lowercase words of two or three syllables that are not in ``used``, and add them to ``used``."""
    while True:
        word = "".join(
            generator.choice(_CONSONANTS) + generator.choice(_VOWELS) for _ in range(generator.choice((2, 3)))
        )
        if word not in used:
            used.add(word)
            yield word
