"""Invented worlds: the sentences that a model is trained on, and three sets of questions."""

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
    """The texts of a card about a world."""

    description: str
    """The content of the world."""
    transfer: str
    """Description of the set ``in other words``."""
    bag: str
    """What a bag of words can know, as an explanation of its score."""


@dataclass(frozen=True)
class World:
    """An invented world for calibration: sentences to train on, and questions with known answers."""

    sentences: Sequence[Sentence]
    questions: Sequence[Question]
    """Questions whose task is the set that they belong to."""
    facts: Mapping[str, str]
    """Fact (or word) of each question, by question id."""
    chance: float
    """Score of guessing."""
    settings: Mapping[str, ContentSettings]
    """Training settings by kind of model."""
    texts: WorldTexts
    introductions: Sequence[str] = ()
    """Meaningless words that may precede a sentence."""


def invented_words(generator: random.Random, used: set[str]) -> Iterator[str]:
    """Yield words of two or three syllables in lower case, each once and none of ``used``; they are added to it."""
    while True:
        word = "".join(
            generator.choice(_CONSONANTS) + generator.choice(_VOWELS) for _ in range(generator.choice((2, 3)))
        )
        if word not in used:
            used.add(word)
            yield word
