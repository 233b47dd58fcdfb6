"""Baseline that compares word senses by the words that two sentences share."""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np

from merkhet.core import SLOT
from merkhet.core.records import Question
from merkhet.models.baselines import Baseline
from merkhet.models.protocol import CandidateScores
from merkhet.models.tokenize_candidates import CHINESE

# Kana are included, because neither Chinese nor Japanese separates words by spaces.
_SINGLE_CHARACTER_WORD = re.compile(rf"[{CHINESE}\u3005-\u3007\u3040-\u30ff]")


class WordOverlapBaseline(Baseline):
    """Baseline that compares sentences as bags of words, without the word whose sense is compared.

    An accuracy above chance comes from the topic of the sentences, not from the sense of the word. Candidates with
    equal overlaps are tied.
    """

    comparing_methods: tuple[str, ...] = ("overlap",)

    def __init__(self, name: str = "word-overlap") -> None:
        super().__init__(name, "merkhet word-overlap baseline", 1)

    def compare_senses(self, questions: Sequence[Question], methods: Sequence[str]) -> Iterator[CandidateScores]:
        """Score each candidate by the cosine of its bag of words with that of the prompt."""
        for index, question in enumerate(questions):
            prompt_words = _count_words(question.prompt)
            values = np.array([overlap(prompt_words, _count_words(text)) for text in question.candidates])
            yield CandidateScores(index, dict.fromkeys(methods, values))


def overlap(first: Counter[str], second: Counter[str]) -> float:
    r"""Compute the cosine of two bags of words.

    .. math:: \sum_w a_w b_w / \sqrt{\sum_w a_w^2 \sum_w b_w^2}

    The value is in [0, 1], higher for more similar bags, and 0 if a bag is empty.
    """
    sizes = math.prod(sum(count * count for count in bag.values()) for bag in (first, second))
    shared = sum(count * second[word] for word, count in first.items())
    # The quotient of integers is correctly rounded, so equal overlaps are equal numbers.
    return math.sqrt(shared * shared / sizes) if sizes else 0.0


def split_words(text: str) -> list[str]:
    """Split a text into lower-case words; each Chinese or Japanese character is one word."""
    spaced = _SINGLE_CHARACTER_WORD.sub(r" \g<0> ", text.lower())
    return "".join(char if unicodedata.category(char)[0] in "LMN" else " " for char in spaced).split()


def _count_words(sentence: str) -> Counter[str]:
    return Counter(split_words(sentence.replace(SLOT, " ", 1)))
