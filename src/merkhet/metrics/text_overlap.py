"""How far a text agrees with a right answer: word F1 and exact match."""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Sequence

_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ARTICLES = re.compile(r"\b(?:a|an|the)\b")


def normalised_words(text: str) -> list[str]:
    """Lower case, ASCII punctuation deleted, articles dropped, split on white space: in this order.

    An article is a word between two characters that belong to no word, as in SQuAD's evaluator: of "“the" and "a–b",
    whose marks are not ASCII, "“" and "–b" are left.
    """
    return _ARTICLES.sub(" ", text.lower().translate(_NO_PUNCTUATION)).split()


def word_f1(prediction: str | Sequence[str], answers: Sequence[str]) -> float:
    """Best F1 of the bags of words of the prediction, or of one of several, and of a right answer.

    F1 = 2 · overlap / (words predicted + words of the answer); two empty bags agree (1), one empty does not (0).
    In [0, 1], higher is better.
    """
    given, right = _bags(prediction), _bags(answers)
    return max((bag_f1(predicted, answer) for predicted in given for answer in right), default=0.0)


def bag_f1(predicted: list[str], right: list[str]) -> float:
    """F1 of two bags of words."""
    if not predicted or not right:
        return float(predicted == right)
    words, others = set(predicted), set(right)
    if len(words) == len(predicted) or len(others) == len(right):  # No word counts twice in both.
        overlap = len(words & others)
    else:
        overlap = sum((Counter(predicted) & Counter(right)).values())
    return 2.0 * overlap / (len(predicted) + len(right))


def same_bag(predicted: list[str], right: list[str]) -> float:
    """1 where the words are the same and in the same order, else 0."""
    return float(predicted == right)


def exact_match(prediction: str | Sequence[str], answers: Sequence[str]) -> float:
    """1 where the normalised words of the prediction, or of one of several, equal those of a right answer, else 0."""
    given, right = _bags(prediction), _bags(answers)
    return float(any(predicted in right for predicted in given))


def _bags(texts: str | Sequence[str]) -> list[list[str]]:
    return [normalised_words(text) for text in ([texts] if isinstance(texts, str) else texts)]
