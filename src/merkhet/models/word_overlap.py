"""Baselines that compare texts by what they share: word senses by words, names by sequences of characters."""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from merkhet.core import SLOT
from merkhet.core.records import Question
from merkhet.models.baselines import Baseline
from merkhet.models.name_similarity import NameSimilarityBaseline
from merkhet.models.protocol import CandidateScores, FloatArray
from merkhet.models.tokenize_candidates import CHINESE

# Kana are included, because neither Chinese nor Japanese separates words by spaces.
_SINGLE_CHARACTER_WORD = re.compile(rf"[{CHINESE}\u3005-\u3007\u3040-\u30ff]")

_MAX_CACHED = 2**16
"""Maximum number of texts whose sequences of characters are cached."""


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


class OverlapBaseline(NameSimilarityBaseline):
    """Baseline that compares names by the sequences of three characters that they share.

    The similarity of two texts is the cosine of their bags of such sequences. A word begins and ends with a blank, so
    that a word that both texts contain counts for more than its letters.
    """

    def __init__(self, name: str = "overlap") -> None:
        super().__init__(name, "merkhet overlap baseline", 1)
        self._bags: dict[str, Counter[str]] = {}

    def similarity_matrix(self, first: Sequence[str], second: Sequence[str]) -> FloatArray:
        """Return the overlap of each text in ``first`` with each in ``second``."""
        sides = [[self._count_trigrams(text) for text in texts] for texts in (first, second)]
        shared = set().union(*sides[0]) & set().union(*sides[1])
        columns = {trigram: column for column, trigram in enumerate(sorted(shared))}
        left, right = (_as_matrix(bags, columns) for bags in sides)
        sizes = [np.array([sum(n * n for n in bag.values()) for bag in bags], dtype=np.float64) for bags in sides]
        scale = np.sqrt(np.maximum(np.outer(*sizes), 1.0))
        matrix: FloatArray = (left @ right.T) / scale
        return matrix

    def _count_trigrams(self, text: str) -> Counter[str]:
        if text not in self._bags:
            if len(self._bags) > _MAX_CACHED:
                self._bags.clear()
            words = (f" {word} " for word in split_words(text))
            self._bags[text] = Counter(word[i : i + 3] for word in words for i in range(len(word) - 2))
        return self._bags[text]


def _as_matrix(bags: Sequence[Counter[str]], columns: Mapping[str, int]) -> FloatArray:
    matrix = np.zeros((len(bags), len(columns)))
    for row, bag in enumerate(bags):
        for trigram, count in bag.items():
            if trigram in columns:
                matrix[row, columns[trigram]] = count
    return matrix


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
