"""The mean agreement of everything that was offered with the right answers: what guessing gives, without trying all."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence

import numpy as np

from merkhet.metrics.ranks import FloatArray
from merkhet.metrics.text_overlap import normalised_words


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
