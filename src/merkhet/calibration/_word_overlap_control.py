"""A bag-of-words control that knows only which words occur together in a sentence."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np

from merkhet.core import SLOT
from merkhet.core.ids import derived_seed
from merkhet.core.records import Question
from merkhet.metrics.ranks import expected_ranks
from merkhet.models.baselines import Baseline
from merkhet.models.protocol import ANSWER_LENGTH, CandidateScores, FilledSlot, FloatArray, WrittenAnswer
from merkhet.training.calibration_models import split_words


class BagOfWords(Baseline):
    r"""A model that ignores word order: naive Bayes over the words of sentences.

    .. math:: s(c) = \log n_c + \sum_{w} \log \frac{n_{wc} + 1 / V}{n_c + 1}

    over the words w of the prompt, with n_c sentences that contain the word c, n_wc sentences that contain w and c, and
    V distinct words. The model ranks the candidates, ranks all words that are not in the prompt, or writes the best of
    these words. Tied words keep equal scores; a written word is drawn from the words tied for the best score.
    """

    methods: tuple[str, ...] = ("co-occurrence",)
    writing_methods = methods

    def __init__(self, sentences: Sequence[str], name: str = "bag of words") -> None:
        super().__init__(name, "merkhet bag of words", 1, list(sentences))
        bags = [set(split_words(text)) for text in sentences]
        self.counts = Counter(word for bag in bags for word in bag)
        self.cooccurrences = Counter(
            (word, neighbour) for bag in bags for word in bag for neighbour in bag if word != neighbour
        )
        self.words = sorted(word for word in self.counts if word.isalnum())

    def describe(self) -> dict[str, str | int | float]:
        return {"words": len(self.words)}

    def score_candidates(self, questions: Sequence[Question], methods: Sequence[str]) -> Iterator[CandidateScores]:
        """Score each candidate; a candidate of several words gets the mean of their scores."""
        for index, question in enumerate(questions):
            bag = self._bag(question)
            scores = [np.mean([self._score(word, bag) for word in split_words(text)]) for text in question.candidates]
            yield CandidateScores(index, dict.fromkeys(methods, np.array(scores)))

    def fill_slots(self, questions: Sequence[Question], count: int) -> Iterator[FilledSlot]:
        """Rank all words that are not in the prompt."""
        for index, question in enumerate(questions):
            words, scores = self._ranked(question)
            golds = [word for word in dict.fromkeys(question.answers) if word in words]
            indices = np.array([words.index(word) for word in golds], dtype=np.int64)
            gold_ranks, gold_ties = expected_ranks(scores, indices)
            order = np.argsort(-scores, kind="stable")[:count]
            yield FilledSlot(
                index,
                pieces=tuple((words[position], float(scores[position])) for position in order),
                golds=tuple(golds),
                gold_ranks=tuple(gold_ranks.tolist()),
                gold_ties=tuple(gold_ties.tolist()),
                among=len(words),
                unusable=None if golds else "no right answer is a word of the text",
            )

    def write_answers(
        self, questions: Sequence[Question], methods: Sequence[str], length: int = ANSWER_LENGTH
    ) -> Iterator[WrittenAnswer]:
        """Write the best word that is not in the prompt; break ties at random."""
        for index, question in enumerate(questions):
            words, scores = self._ranked(question)
            best = [word for word, score in zip(words, scores, strict=True) if score == scores.max()]
            drawn = best[derived_seed("bag of words", question.question_id) % len(best)]
            for method in methods:
                yield WrittenAnswer(index, method, drawn, float(scores.max()))

    def _ranked(self, question: Question) -> tuple[list[str], FloatArray]:
        bag = self._bag(question)
        words = [word for word in self.words if word not in bag]
        return words, np.array([self._score(word, bag) for word in words])

    def _bag(self, question: Question) -> list[str]:
        """Return the known words of the prompt, sorted to make float sums reproducible."""
        return sorted(set(split_words(question.prompt.replace(SLOT, " "))) & self.counts.keys())

    def _score(self, word: str, bag: Sequence[str]) -> float:
        count = self.counts[word]
        score = math.log(count) if count else -math.inf
        for neighbour in bag:
            if neighbour != word:
                score += math.log((self.cooccurrences[neighbour, word] + 1 / len(self.counts)) / (count + 1))
        return max(score, -1e9)
