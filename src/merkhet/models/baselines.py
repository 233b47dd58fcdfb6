"""Baselines that do not read the question: random guesses and frequent answers."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from merkhet.core.ids import derived_seed, digest
from merkhet.core.records import Question
from merkhet.models.protocol import ANSWER_LENGTH, CandidateScores, FloatArray, WrittenAnswer, refuse_questions

_MAX_CACHED_LISTS = 1000


class Baseline:
    """A model without a network.

    Args:
        name: The baseline's name in tables.
        identity: Everything that decides the baseline's answers; hashed into the fingerprint.
    """

    kind = "baseline"
    methods: tuple[str, ...] = ()
    needs_counts = False
    """Whether the baseline answers by answer counts. It is then asked only the tasks that have counts."""

    def __init__(self, name: str, *identity: Any) -> None:
        self.name = name
        self.fingerprint = digest(identity)

    def describe(self) -> dict[str, str | int | float]:
        """Return an empty description, because this baseline has no settings."""
        return {}

    def score_candidates(self, questions: Sequence[Question], methods: Sequence[str]) -> Iterator[CandidateScores]:
        """Mark every question as unusable; subclasses that can score candidates override this."""
        return refuse_questions(questions, f"{self.name} only compares sentences")


class _WritingBaseline(Baseline):
    def write_answers(
        self, questions: Sequence[Question], methods: Sequence[str], length: int = ANSWER_LENGTH
    ) -> Iterator[WrittenAnswer]:
        """Write the candidate with the highest score; among tied candidates, the alphabetically first."""
        for result in self.score_candidates(questions, methods):
            candidates = questions[result.index].candidates
            for method, scores in (result.by_method or {}).items():
                if candidates:
                    best = min(range(len(candidates)), key=lambda i: (-scores[i], candidates[i]))
                    yield WrittenAnswer(result.index, method, candidates[best], float(scores[best]))
                else:
                    yield WrittenAnswer(result.index, method, unusable="the list of candidates is empty")


class RandomBaseline(_WritingBaseline):
    """Baseline that guesses: a candidate's score is a hash of the seed, the question and the candidate."""

    methods: tuple[str, ...] = ("uniform",)
    writing_methods = comparing_methods = methods

    def __init__(self, name: str = "random", seed: int = 0) -> None:
        super().__init__(name, "merkhet random baseline", 1, seed)
        self.seed = seed

    def score_candidates(self, questions: Sequence[Question], methods: Sequence[str]) -> Iterator[CandidateScores]:
        """Draw scores in [0, 1), which are reproducible for each question and candidate."""
        for index, question in enumerate(questions):
            draws = [derived_seed(self.seed, question.question_id, text) / 2.0**64 for text in question.candidates]
            yield CandidateScores(index, {method: np.array(draws) for method in methods})

    def compare_senses(self, questions: Sequence[Question], methods: Sequence[str]) -> Iterator[CandidateScores]:
        """Draw random scores, like :meth:`score_candidates`."""
        return self.score_candidates(questions, methods)

    def describe(self) -> dict[str, str | int | float]:
        """Describe the baseline by its seed."""
        return {"seed": self.seed}


class ConstantBaseline(Baseline):
    """Baseline that ties all candidates: its expected score is the chance level. It writes nothing."""

    methods: tuple[str, ...] = ("constant",)
    comparing_methods = methods

    def __init__(self, name: str = "constant") -> None:
        super().__init__(name, "merkhet constant baseline", 1)

    def score_candidates(self, questions: Sequence[Question], methods: Sequence[str]) -> Iterator[CandidateScores]:
        """Score every candidate 0; questions with equally many candidates share one array."""
        by_count = {count: np.zeros(count) for count in {len(question.candidates) for question in questions}}
        for index, question in enumerate(questions):
            yield CandidateScores(index, dict.fromkeys(methods, by_count[len(question.candidates)]))

    def compare_senses(self, questions: Sequence[Question], methods: Sequence[str]) -> Iterator[CandidateScores]:
        """Score every sentence 0, like :meth:`score_candidates`."""
        return self.score_candidates(questions, methods)


class FrequencyBaseline(_WritingBaseline):
    """Baseline that prefers frequent answers: a candidate's score is how often it is right in the same relation.

    Answers are counted in training questions or in facts that no question asks about, never in the questions asked.
    Counts are per relation, or per task under the task's name. Candidates with equal counts are tied.
    """

    methods: tuple[str, ...] = ("count",)
    writing_methods = methods
    needs_counts = True

    def __init__(self, name: str = "frequency") -> None:
        super().__init__(name, "merkhet frequency baseline", 2)
        self._counts: dict[tuple[str, str], Counter[str]] = {}

    def prepare(self, questions: Sequence[Question], frequencies: Sequence[Mapping[str, Any]]) -> None:
        """Use the run's answer counts; ``questions`` are ignored."""
        self._counts = _count_answers(frequencies)

    def score_candidates(self, questions: Sequence[Question], methods: Sequence[str]) -> Iterator[CandidateScores]:
        """Score each candidate by the number of times it is right in the same relation, among the counted answers."""
        for index, question in enumerate(questions):
            keys = (question.task, question.relation), (question.task, question.task)
            counts = next((self._counts[key] for key in keys if self._counts.get(key)), Counter())
            scores = np.array([float(counts[text]) for text in question.candidates])
            yield CandidateScores(index, dict.fromkeys(methods, scores))


class TrainFrequencyBaseline(Baseline):
    """Baseline that ranks answers of training questions by frequency, and then all other candidates at random.

    The run provides the counts of training answers; among equal counts, the answer listed first is ranked first. The
    other candidates follow in twenty random orders, and each order is a repeat. Questions with the same list of
    candidates have the same random orders.
    """

    methods: tuple[str, ...] = ("shuffles",)
    needs_counts = True
    shuffles = 20

    def __init__(self, name: str = "train-frequency", seed: int = 0) -> None:
        super().__init__(name, "merkhet train-frequency baseline", 2, seed, self.shuffles)
        self.seed = seed
        self._frequency_ranks: dict[tuple[str, str], dict[str, int]] = {}
        self._draws: dict[tuple[str, str], FloatArray] = {}
        self._scores: dict[tuple[str, str, tuple[str, ...]], list[FloatArray]] = {}

    def prepare(self, questions: Sequence[Question], frequencies: Sequence[Mapping[str, Any]]) -> None:
        """Use the run's answer counts; ``questions`` are ignored. Without counts, every order is random."""
        self._scores.clear()
        self._frequency_ranks = {
            key: {answer: rank for rank, (answer, _) in enumerate(counter.most_common())}
            for key, counter in _count_answers(frequencies).items()
        }

    def score_candidates(self, questions: Sequence[Question], methods: Sequence[str]) -> Iterator[CandidateScores]:
        """Score training answers above 1, and other candidates by a random number between 0 and 1 in each repeat."""
        for index, question in enumerate(questions):
            key = (question.task, question.relation, question.candidates)
            if key not in self._scores:
                if len(self._scores) >= _MAX_CACHED_LISTS:
                    self._scores.clear()
                self._scores[key] = self._score(*key)
            for repeat, scores in enumerate(self._scores[key]):
                yield CandidateScores(index, dict.fromkeys(methods, scores), repeat=repeat)

    def describe(self) -> dict[str, str | int | float]:
        """Describe the baseline by its seed and its number of random orders."""
        return {"seed": self.seed, "shuffles": self.shuffles}

    def _score(self, task: str, relation: str, candidates: tuple[str, ...]) -> list[FloatArray]:
        scores = np.empty((self.shuffles, len(candidates)))
        ranks = self._frequency_ranks.get((task, relation), {})
        for index, text in enumerate(candidates):
            if text in ranks:
                scores[:, index] = 1 + len(ranks) - ranks[text]
                continue
            if (task, text) not in self._draws:
                pairs = range(self.shuffles // 2)
                drawn = np.array([derived_seed(self.seed, task, pair, text) / 2.0**64 for pair in pairs])
                # Every random order is followed by its reverse, which reduces the variance of the mean over repeats.
                self._draws[task, text] = np.stack([drawn, 1.0 - drawn], axis=1).ravel()
            scores[:, index] = self._draws[task, text]
        return list(scores)


def _count_answers(frequencies: Sequence[Mapping[str, Any]]) -> dict[tuple[str, str], Counter[str]]:
    counts: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for row in frequencies:
        counts[row["task"], row["relation"]][row["answer"]] += row["count"]
    return counts
