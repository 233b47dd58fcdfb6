"""Stand-ins that know nothing of the world: what a model must beat."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from merkhet.core.ids import derived_seed, digest
from merkhet.core.records import Question
from merkhet.models.protocol import ANSWER_LENGTH, CandidateScores, FloatArray, WrittenAnswer

_KEPT_LISTS = 1000


class RandomBaseline:
    """Guesses: every candidate gets a score drawn from the seed, the question and the candidate."""

    kind = "baseline"
    methods: tuple[str, ...] = ("uniform",)
    writing_methods = methods
    comparing_methods = methods

    def __init__(self, name: str = "random", seed: int = 0) -> None:
        self.name = name
        self.seed = seed
        self.fingerprint = digest(["merkhet random baseline", 1, seed])

    def score_candidates(self, questions: Sequence[Question], methods: Sequence[str]) -> Iterator[CandidateScores]:
        """Scores in [0, 1), the same for the same question and candidate on every machine."""
        for index, question in enumerate(questions):
            draws = [derived_seed(self.seed, question.question_id, text) / 2.0**64 for text in question.candidates]
            yield CandidateScores(index, {method: np.array(draws) for method in methods})

    def compare_senses(self, questions: Sequence[Question], methods: Sequence[str]) -> Iterator[CandidateScores]:
        """The same scores for usages: no sense is nearer than another."""
        return self.score_candidates(questions, methods)

    def write_answers(
        self, questions: Sequence[Question], methods: Sequence[str], length: int = ANSWER_LENGTH
    ) -> Iterator[WrittenAnswer]:
        """One of the candidates, each as likely as another."""
        return _best_candidates(questions, self.score_candidates(questions, methods))

    def describe(self) -> dict[str, str | int | float]:
        """What it is."""
        return {"seed": self.seed}


class FrequencyBaseline:
    """Gives the most frequent answer: a candidate's score is how often it is right in the same relation.

    The counts come from the whole knowledge behind the questions where the suite gives them (by relation, or under the
    task's name for all of its relations), else from the right answers of the run's questions. What it scores above
    chance can be had without reading the question; ties are left as ties.
    """

    kind = "baseline"
    methods: tuple[str, ...] = ("count",)
    writing_methods = methods

    def __init__(self, name: str = "frequency") -> None:
        self.name = name
        self.fingerprint = digest(["merkhet frequency baseline", 1])
        self._counts: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)

    def prepare(self, questions: Sequence[Question], frequencies: Sequence[Mapping[str, Any]]) -> None:
        """Take the counts given, or count the right answers of each task and relation."""
        self._counts.clear()
        for row in frequencies:
            self._counts[row["task"], row["relation"]][row["answer"]] += row["count"]
        for question in questions if not frequencies else ():
            self._counts[question.task, question.relation][question.target] += 1

    def score_candidates(self, questions: Sequence[Question], methods: Sequence[str]) -> Iterator[CandidateScores]:
        """How often each candidate is the answer of such a question."""
        for index, question in enumerate(questions):
            counts = self._counts.get((question.task, question.relation)) or self._counts[question.task, question.task]
            scores = np.array([float(counts[text]) for text in question.candidates])
            yield CandidateScores(index, dict.fromkeys(methods, scores))

    def write_answers(
        self, questions: Sequence[Question], methods: Sequence[str], length: int = ANSWER_LENGTH
    ) -> Iterator[WrittenAnswer]:
        """The most frequent answer among the candidates."""
        return _best_candidates(questions, self.score_candidates(questions, methods))

    def describe(self) -> dict[str, str | int | float]:
        """What it is."""
        return {}


class TrainFrequencyBaseline:
    """Ranks the answers of the training questions by how often they are right, and guesses the order of all others.

    The counts are those that the suite gives; of equal ones the answer that is named first comes first. The others
    follow in twenty random orders, one list of candidates an order whatever the question, and each is a repeat.
    """

    kind = "baseline"
    methods: tuple[str, ...] = ("shuffles",)
    shuffles = 20

    def __init__(self, name: str = "train-frequency", seed: int = 0) -> None:
        self.name = name
        self.seed = seed
        self.fingerprint = digest(["merkhet train-frequency baseline", 2, seed, self.shuffles])
        self._places: dict[tuple[str, str], dict[str, int]] = {}
        self._draws: dict[tuple[str, str], FloatArray] = {}
        self._scores: dict[tuple[str, str, tuple[str, ...]], list[FloatArray]] = {}

    def prepare(self, questions: Sequence[Question], frequencies: Sequence[Mapping[str, Any]]) -> None:
        """Take the counts given; without any, all candidates are in random order."""
        counts: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
        for row in frequencies:
            counts[row["task"], row["relation"]][row["answer"]] += row["count"]
        self._scores.clear()
        self._places = {
            key: {answer: place for place, (answer, _) in enumerate(own.most_common())} for key, own in counts.items()
        }

    def score_candidates(self, questions: Sequence[Question], methods: Sequence[str]) -> Iterator[CandidateScores]:
        """Numbers in [0, 1) for guesses, the same for the same task and candidate, and above them for counted ones."""
        for index, question in enumerate(questions):
            key = (question.task, question.relation, question.candidates)
            if key not in self._scores:
                if len(self._scores) >= _KEPT_LISTS:
                    self._scores.clear()
                self._scores[key] = self._score(*key)
            for repeat, scores in enumerate(self._scores[key]):
                yield CandidateScores(index, dict.fromkeys(methods, scores), repeat=repeat)

    def describe(self) -> dict[str, str | int | float]:
        """What it is."""
        return {"seed": self.seed, "shuffles": self.shuffles}

    def _score(self, task: str, relation: str, candidates: tuple[str, ...]) -> list[FloatArray]:
        scores = np.empty((self.shuffles, len(candidates)))
        places = self._places.get((task, relation), {})
        for number, text in enumerate(candidates):
            if text in places:
                scores[:, number] = 1 + len(places) - places[text]
                continue
            if (task, text) not in self._draws:
                pairs = range(self.shuffles // 2)
                drawn = np.array([derived_seed(self.seed, task, pair, text) / 2.0**64 for pair in pairs])
                # Every order comes with its reverse: their mean is nearer to what all orders would give.
                self._draws[task, text] = np.stack([drawn, 1.0 - drawn], axis=1).ravel()
            scores[:, number] = self._draws[task, text]
        return list(scores)


def _best_candidates(questions: Sequence[Question], scored: Iterator[CandidateScores]) -> Iterator[WrittenAnswer]:
    """The candidate with the best score; of those that are tied the first by its text."""
    for one in scored:
        candidates = questions[one.index].candidates
        for method, scores in (one.by_method or {}).items():
            if candidates:
                best = min(range(len(candidates)), key=lambda i: (-scores[i], candidates[i]))
                yield WrittenAnswer(one.index, method, candidates[best], float(scores[best]))
            else:
                yield WrittenAnswer(one.index, method, unusable="the list of candidates is empty")
