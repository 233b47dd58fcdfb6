"""Word F1 and exact match of texts, and their expected values for a random candidate."""

from __future__ import annotations

import re
import string
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from functools import cache

import numpy as np

from merkhet.metrics.ranks import FloatArray

_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ARTICLES = re.compile(r"\b(?:a|an|the)\b")


def normalised_words(text: str) -> list[str]:
    """Lowercase a text, delete ASCII punctuation, drop articles and split on white space, in this order.

    As in SQuAD's evaluator, an article is matched between non-word characters, and other punctuation than ASCII is
    kept: "“the" becomes "“", and "a–b" becomes "–b".
    """
    return _ARTICLES.sub(" ", text.lower().translate(_NO_PUNCTUATION)).split()


def word_f1(prediction: str | Sequence[str], answers: Sequence[str]) -> float:
    """Return the best word F1 over all pairs of a prediction and a right answer.

    F1 = 2 · overlap / (words of the prediction + words of the answer). If both have no words, F1 is 1; if only one has
    none, F1 is 0. In [0, 1], higher is better.
    """
    predictions, golds = _bags(prediction), _bags(answers)
    return max((bag_f1(predicted, answer) for predicted in predictions for answer in golds), default=0.0)


def bag_f1(predicted: list[str], right: list[str]) -> float:
    """Return the F1 of two bags of words."""
    if not predicted or not right:
        return float(predicted == right)
    predicted_words, right_words = set(predicted), set(right)
    # Fast path: no word counts twice in both bags.
    if len(predicted_words) == len(predicted) or len(right_words) == len(right):
        overlap = len(predicted_words & right_words)
    else:
        overlap = sum((Counter(predicted) & Counter(right)).values())
    return 2.0 * overlap / (len(predicted) + len(right))


def same_words(predicted: list[str], right: list[str]) -> float:
    """Return 1 if both lists have the same words in the same order, else 0."""
    return float(predicted == right)


def exact_match(prediction: str | Sequence[str], answers: Sequence[str]) -> float:
    """Return 1 if the normalised words of any prediction equal those of any right answer, else 0."""
    predictions, golds = _bags(prediction), _bags(answers)
    return float(any(predicted in golds for predicted in predictions))


def _bags(texts: str | Sequence[str]) -> list[list[str]]:
    return [normalised_words(text) for text in ([texts] if isinstance(texts, str) else texts)]


class _BagIndex:
    """Bags of words indexed by word; empty bags are indexed under None."""

    def __init__(self, bags: Sequence[list[str]]) -> None:
        self.bags = bags
        self.positions: dict[str | None, list[int]] = defaultdict(list)
        for position, bag in enumerate(self.bags):
            for word in dict.fromkeys(bag) or (None,):
                self.positions[word].append(position)

    def mean(self, measure: Callable[[list[str], list[str]], float], right: Sequence[list[str]]) -> float:
        words = {word for bag in right for word in bag or (None,)}
        matches = {position for word in words for position in self.positions.get(word, ())}
        # Sort the positions, because float sums depend on the order of a set.
        total = sum(max(measure(self.bags[position], bag) for bag in right) for position in sorted(matches))
        return total / len(self.bags)


def mean_agreement(
    measure: Callable[[list[str], list[str]], float],
    candidates: Sequence[Sequence[str]],
    right: Sequence[Sequence[str]],
) -> FloatArray:
    """Return each question's mean, over its candidates, of the best agreement with a right answer.

    ``measure`` compares two bags of words, and must return 0 if they have no word in common, unless both are empty.
    Only candidates that share a word with a right answer are measured, and shared candidate lists are indexed once. The
    mean is 0 for a question without candidates.
    """
    get_bag = cache(normalised_words)
    lists: dict[int, _BagIndex] = {}
    values: dict[tuple[int, tuple[str, ...]], float] = {}
    means = np.zeros(len(candidates))
    for i, (texts, answers) in enumerate(zip(candidates, right, strict=True)):
        if not texts or not answers:
            continue
        # Candidate lists are compared by identity: questions share the list of their set, and lists outlive the loop.
        key = id(texts), tuple(answers)
        if key not in values:
            if id(texts) not in lists:
                lists[id(texts)] = _BagIndex([get_bag(text) for text in texts])
            values[key] = lists[id(texts)].mean(measure, [get_bag(answer) for answer in answers])
        means[i] = values[key]
    return means
