"""Word F1 and exact match of texts, and their expectation for a guess among the candidates."""

from __future__ import annotations

import re
import string
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence

import numpy as np

from merkhet.metrics.ranks import FloatArray

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


def same_words(predicted: list[str], right: list[str]) -> float:
    """1 where the words are the same and in the same order, else 0."""
    return float(predicted == right)


def exact_match(prediction: str | Sequence[str], answers: Sequence[str]) -> float:
    """1 where the normalised words of the prediction, or of one of several, equal those of a right answer, else 0."""
    given, right = _bags(prediction), _bags(answers)
    return float(any(predicted in right for predicted in given))


def _bags(texts: str | Sequence[str]) -> list[list[str]]:
    return [normalised_words(text) for text in ([texts] if isinstance(texts, str) else texts)]


class _Bags:
    """Texts as bags of words, each worked out once."""

    def __init__(self) -> None:
        self.known: dict[str, list[str]] = {}

    def of(self, text: str) -> list[str]:
        found = self.known.get(text)
        if found is None:
            found = self.known[text] = normalised_words(text)
        return found


class _Offered:
    """A list of texts as bags, and which of them have a word; those without any word stand under None."""

    def __init__(self, texts: Sequence[str], bags: _Bags) -> None:
        self.bags = [bags.of(text) for text in texts]
        self.places: dict[str | None, list[int]] = defaultdict(list)
        for place, bag in enumerate(self.bags):
            for word in dict.fromkeys(bag) or (None,):
                self.places[word].append(place)

    def mean(self, measure: Callable[[list[str], list[str]], float], right: Sequence[list[str]]) -> float:
        words = {word for bag in right for word in bag or (None,)}
        near = {place for word in words for place in self.places.get(word, ())}
        # In the order of the list: sums of the same numbers are the same.
        total = sum(max(measure(self.bags[place], bag) for bag in right) for place in sorted(near))
        return total / len(self.bags)


def mean_agreement(
    measure: Callable[[list[str], list[str]], float], offered: Sequence[Sequence[str]], right: Sequence[Sequence[str]]
) -> FloatArray:
    """For each question the mean, over all texts offered, of the best agreement of the text with a right answer.

    ``measure`` says how far two bags of words agree; it must be 0 where they have no word in common, unless both are
    empty. Only texts that share a word with a right answer are measured, and lists that questions share are looked
    through once. 0 for a question to which nothing was offered.
    """
    bags = _Bags()
    lists: dict[int, _Offered] = {}
    values: dict[tuple[int, tuple[str, ...]], float] = {}
    found = np.zeros(len(offered))
    for i, (texts, answers) in enumerate(zip(offered, right, strict=True)):
        if not texts or not answers:
            continue
        # Lists are told apart by identity: the questions of a candidate set share one, and all live as long as this.
        key = id(texts), tuple(answers)
        if key not in values:
            if id(texts) not in lists:
                lists[id(texts)] = _Offered(texts, bags)
            values[key] = lists[id(texts)].mean(measure, [bags.of(answer) for answer in answers])
        found[i] = values[key]
    return found
