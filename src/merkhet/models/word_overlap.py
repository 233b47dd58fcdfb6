"""A stand-in that compares senses without reading: by the words that two sentences share."""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np

from merkhet.core import SLOT
from merkhet.core.ids import digest
from merkhet.core.records import Question
from merkhet.models.protocol import CandidateScores
from merkhet.models.tokenize_candidates import CHINESE

# Kana too: neither script sets blanks between words.
_ALONE = re.compile(rf"[{CHINESE}\u3005-\u3007\u3040-\u30ff]")


class WordOverlapBaseline:
    """Compares sentences as bags of words, the word that is asked about left out.

    What it scores above chance comes from the topic of the sentences, not from the sense of the word. Sentences that
    share as much are left as ties.
    """

    kind = "baseline"
    methods: tuple[str, ...] = ()
    comparing_methods: tuple[str, ...] = ("overlap",)

    def __init__(self, name: str = "word-overlap") -> None:
        self.name = name
        self.fingerprint = digest(["merkhet word-overlap baseline", 1])

    def score_candidates(self, questions: Sequence[Question], methods: Sequence[str]) -> Iterator[CandidateScores]:
        """Nothing: the reason why, for each question."""
        for index in range(len(questions)):
            yield CandidateScores(index, unusable="word-overlap only compares sentences")

    def compare_senses(self, questions: Sequence[Question], methods: Sequence[str]) -> Iterator[CandidateScores]:
        """The overlap of each prompt with each candidate."""
        for index, question in enumerate(questions):
            base = _counted(question.prompt)
            values = np.array([overlap(base, _counted(text)) for text in question.candidates])
            yield CandidateScores(index, dict.fromkeys(methods, values))

    def describe(self) -> dict[str, str | int | float]:
        """What it is."""
        return {}


def overlap(first: Counter[str], second: Counter[str]) -> float:
    r"""Cosine of two bags of words.

    .. math:: \sum_w a_w b_w / \sqrt{\sum_w a_w^2 \sum_w b_w^2}

    In [0, 1], higher for bags that are more alike; 0 where one is empty.
    """
    sizes = math.prod(sum(count * count for count in bag.values()) for bag in (first, second))
    shared = sum(count * second[word] for word, count in first.items())
    # The quotient of whole numbers is exact to the last digit, so equal overlaps are equal numbers.
    return math.sqrt(shared * shared / sizes) if sizes else 0.0


def words_of(text: str) -> list[str]:
    """The words of a text in lower case; a Chinese or Japanese character is a word of its own."""
    spaced = _ALONE.sub(r" \g<0> ", text.lower())
    return "".join(letter if unicodedata.category(letter)[0] in "LMN" else " " for letter in spaced).split()


def _counted(sentence: str) -> Counter[str]:
    return Counter(words_of(sentence.replace(SLOT, " ", 1)))
