"""The control that reads no sentences: it knows which words stood in a sentence together, and nothing else."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np

from merkhet.core import SLOT
from merkhet.core.ids import derived_seed, digest
from merkhet.core.records import Question
from merkhet.models.protocol import ANSWER_LENGTH, CandidateScores, FilledSlot, FloatArray, WrittenAnswer
from merkhet.training.calibration_models import words_of


class BagOfWords:
    r"""A model that sees which words a prompt has, not where they stand: naive Bayes over the words of sentences.

    .. math:: s(c) = \log n_c + \sum_{w} \log \frac{n_{wc} + 1 / V}{n_c + 1}

    over the words w of the prompt, with n_c sentences that have the word c and n_wc that have both, V words in all.
    It ranks candidates, all words that the prompt lacks, or writes the best of these; what is tied stays tied, and
    where only one can be written it is drawn.
    """

    kind = "baseline"
    methods: tuple[str, ...] = ("co-occurrence",)
    writing_methods = methods

    def __init__(self, sentences: Sequence[str], name: str = "bag of words") -> None:
        self.name = name
        self.fingerprint = digest(["merkhet bag of words", 1, list(sentences)])
        bags = [set(words_of(text)) for text in sentences]
        self.counts = Counter(word for bag in bags for word in bag)
        self.together = Counter((one, other) for bag in bags for one in bag for other in bag if one != other)
        self.words = sorted(word for word in self.counts if word.isalnum())

    def describe(self) -> dict[str, str | int | float]:
        """What it is."""
        return {"words": len(self.words)}

    def score_candidates(self, questions: Sequence[Question], methods: Sequence[str]) -> Iterator[CandidateScores]:
        """The score of each candidate; of one with several words their mean."""
        for index, question in enumerate(questions):
            bag = self._bag(question)
            scores = [np.mean([self._score(word, bag) for word in words_of(text)]) for text in question.candidates]
            yield CandidateScores(index, dict.fromkeys(methods, np.array(scores)))

    def fill_slots(self, questions: Sequence[Question], count: int) -> Iterator[FilledSlot]:
        """All words that the prompt lacks, ranked."""
        for index, question in enumerate(questions):
            words, scores = self._ranked(question)
            golds = [word for word in dict.fromkeys(question.answers) if word in words]
            own = [scores[words.index(word)] for word in golds]
            order = np.argsort(-scores, kind="stable")[:count]
            ties = [int(np.sum(scores == one)) for one in own]
            yield FilledSlot(
                index,
                pieces=tuple((words[place], float(scores[place])) for place in order),
                golds=tuple(golds),
                gold_ranks=tuple(
                    float(np.sum(scores > one)) + (tie + 1) / 2 for one, tie in zip(own, ties, strict=True)
                ),
                gold_ties=tuple(ties),
                among=len(words),
                unusable=None if golds else "no right answer is a word of the text",
            )

    def write_answers(
        self, questions: Sequence[Question], methods: Sequence[str], length: int = ANSWER_LENGTH
    ) -> Iterator[WrittenAnswer]:
        """The best word that the prompt lacks; one of the best where several are."""
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
        """The prompt's words that the text has, in one order, so that equal scores are equal numbers."""
        return sorted(set(words_of(question.prompt.replace(SLOT, " "))) & self.counts.keys())

    def _score(self, word: str, bag: Sequence[str]) -> float:
        own = self.counts[word]
        score = math.log(own) if own else -math.inf
        for other in bag:
            if other != word:
                score += math.log((self.together[other, word] + 1 / len(self.counts)) / (own + 1))
        return max(score, -1e9)
