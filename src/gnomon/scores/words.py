"""How far a text agrees with a right answer: word F1 and exact match."""

from __future__ import annotations

import string
from collections import Counter
from collections.abc import Sequence

_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ARTICLES = frozenset({"a", "an", "the"})


def normalised_words(text: str) -> list[str]:
    """Lower case, ASCII punctuation deleted, articles dropped, split on white space."""
    return [word for word in text.lower().translate(_NO_PUNCTUATION).split() if word not in _ARTICLES]


def word_f1(prediction: str, answers: Sequence[str]) -> float:
    """Best F1 of the bags of words of the prediction and of a right answer.

    F1 = 2 · overlap / (words predicted + words of the answer); two empty bags agree (1), one empty does not (0).
    In [0, 1], higher is better.
    """
    predicted = normalised_words(prediction)
    return max((_bag_f1(predicted, normalised_words(answer)) for answer in answers), default=0.0)


def _bag_f1(predicted: list[str], right: list[str]) -> float:
    if not predicted or not right:
        return float(predicted == right)
    overlap = sum((Counter(predicted) & Counter(right)).values())
    return 2.0 * overlap / (len(predicted) + len(right))


def exact_match(prediction: str, answers: Sequence[str]) -> float:
    """1 where the normalised words equal those of a right answer, else 0."""
    predicted = normalised_words(prediction)
    return float(any(predicted == normalised_words(answer) for answer in answers))
