"""Baselines that do not read the question: random guesses, frequent answers and long answers."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from merkhet.core.ids import derived_seed, derived_seeds, digest
from merkhet.core.records import Question
from merkhet.models.protocol import (
    ANSWER_LENGTH,
    NO_GOLD,
    CandidateScores,
    FloatArray,
    IntArray,
    RankedCandidates,
    WrittenAnswer,
    refuse_questions,
)
from merkhet.models.random_order import RandomOrders
from merkhet.models.sorted_candidates import SharedCache, sort_candidates

_MAX_CACHED_SCORES = 2**22
_MAX_HASHED = 100
"""Number of candidates up to which a random score is a hash of the candidate; longer lists are in a random order."""


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


class WritingBaseline(Baseline):
    """Baseline that scores candidates and writes the best one."""

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


class RandomBaseline(WritingBaseline):
    """Baseline that guesses.

    A candidate's score is a hash of the seed, the question and the candidate. More than 100 candidates are put into a
    random order instead, which depends on the seed and the question, and in which a rank costs the same in a list of
    any length; their scores are evenly spaced.
    """

    methods: tuple[str, ...] = ("uniform",)
    writing_methods = comparing_methods = methods

    def __init__(self, name: str = "random", seed: int = 0) -> None:
        super().__init__(name, "merkhet random baseline", 2, seed)
        self.seed = seed

    def score_candidates(self, questions: Sequence[Question], methods: Sequence[str]) -> Iterator[CandidateScores]:
        """Draw scores in [0, 1), which are reproducible for each question and candidate."""
        for index, question in enumerate(questions):
            scores = self._order_scores(question) if len(question.candidates) > _MAX_HASHED else self._hash(question)
            yield CandidateScores(index, dict.fromkeys(methods, scores))

    def rank_candidates(
        self, questions: Sequence[Question], methods: Sequence[str], count: int
    ) -> Iterator[CandidateScores | RankedCandidates]:
        """Rank long lists of candidates by their random order, and score short lists."""
        if type(self).score_candidates is not RandomBaseline.score_candidates:
            yield from self.score_candidates(questions, methods)  # A subclass scores in another way.
            return
        by_list: dict[int, list[int]] = defaultdict(list)
        for index, question in enumerate(questions):
            if len(question.candidates) > _MAX_HASHED:
                by_list[id(question.candidates)].append(index)
            else:
                yield CandidateScores(index, dict.fromkeys(methods, self._hash(question)))
        for indices in by_list.values():
            yield from self._rank_list(questions, indices, methods, count)

    def _rank_list(
        self, questions: Sequence[Question], indices: Sequence[int], methods: Sequence[str], count: int
    ) -> Iterator[CandidateScores | RankedCandidates]:
        """Rank the candidates of questions that share one list."""
        candidates = sort_candidates(questions[indices[0]].candidates)
        texts, length = candidates.texts, len(candidates.texts)
        golds = [candidates.gold_columns(questions[index].answers) for index in indices]
        keys = np.array(derived_seeds((self.seed,), [questions[i].question_id for i in indices]), dtype=np.uint64)
        sizes = list(map(len, golds))
        columns = np.array([column for group in golds for column in group], dtype=np.int64)
        orders = RandomOrders(length)
        ranks = orders.ranks(np.repeat(keys, sizes), columns)
        best_ranks = np.arange(min(count, length))
        best = orders.numbers(np.repeat(keys, len(best_ranks)), np.tile(best_ranks, len(keys)))
        best_scores = _spaced(best_ranks, length).tolist()
        # Texts are looked up at once for all questions, which is faster than one by one.
        lookup = np.array(texts, dtype=object)
        best_texts = lookup[best.reshape(len(keys), -1)].tolist()
        gold_texts, gold_ranks = lookup[columns].tolist(), (ranks + 1.0).tolist()
        stop = 0
        for index, size, row in zip(indices, sizes, best_texts, strict=True):
            if not size:
                yield CandidateScores(index, unusable=NO_GOLD)
                continue
            start, stop = stop, stop + size
            ranked, right = tuple(zip(row, best_scores, strict=True)), tuple(gold_texts[start:stop])
            for method in methods:
                yield RankedCandidates(index, method, ranked, right, tuple(gold_ranks[start:stop]))

    def _hash(self, question: Question) -> FloatArray:
        seeds = derived_seeds((self.seed, question.question_id), question.candidates)
        return np.array(seeds, dtype=np.uint64) / 2.0**64

    def _order_scores(self, question: Question) -> FloatArray:
        candidates = sort_candidates(question.candidates)
        length = len(candidates.texts)
        keys = np.full(length, derived_seed(self.seed, question.question_id), dtype=np.uint64)
        scores = np.empty(length)
        scores[candidates.order] = _spaced(RandomOrders(length).ranks(keys, np.arange(length)), length)
        return scores

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
        self._zeros: dict[int, FloatArray] = {}

    def score_candidates(self, questions: Sequence[Question], methods: Sequence[str]) -> Iterator[CandidateScores]:
        """Score every candidate 0; all questions with equally many candidates share one array."""
        for index, question in enumerate(questions):
            count = len(question.candidates)
            if count not in self._zeros:
                self._zeros[count] = _shared(np.zeros(count))
            yield CandidateScores(index, dict.fromkeys(methods, self._zeros[count]))

    def compare_senses(self, questions: Sequence[Question], methods: Sequence[str]) -> Iterator[CandidateScores]:
        """Score every sentence 0, like :meth:`score_candidates`."""
        return self.score_candidates(questions, methods)


class LongestBaseline(WritingBaseline):
    """Baseline that prefers long answers: a candidate's score is its number of characters; equal lengths are tied."""

    methods: tuple[str, ...] = ("length",)
    writing_methods = methods

    def __init__(self, name: str = "longest") -> None:
        super().__init__(name, "merkhet longest baseline", 1)
        self._scores: SharedCache[FloatArray] = SharedCache(_MAX_CACHED_SCORES)

    def score_candidates(self, questions: Sequence[Question], methods: Sequence[str]) -> Iterator[CandidateScores]:
        """Score every candidate by its number of characters."""
        for index, question in enumerate(questions):
            candidates = question.candidates
            scores = self._scores.get((candidates,), None, len(candidates), partial(_count_characters, candidates))
            yield CandidateScores(index, dict.fromkeys(methods, scores))


class FrequencyBaseline(WritingBaseline):
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
        self._scores: SharedCache[FloatArray] = SharedCache(_MAX_CACHED_SCORES)

    def prepare(self, questions: Sequence[Question], frequencies: Sequence[Mapping[str, Any]]) -> None:
        """Use the run's answer counts; ``questions`` are ignored."""
        self._counts = _count_answers(frequencies)
        self._scores.clear()

    def score_candidates(self, questions: Sequence[Question], methods: Sequence[str]) -> Iterator[CandidateScores]:
        """Score each candidate by the number of times it is right in the same relation, among the counted answers."""
        for index, question in enumerate(questions):
            keys = (question.task, question.relation), (question.task, question.task)
            key = next((key for key in keys if self._counts.get(key)), None)
            scores = self._scores.get(
                (question.candidates,), key, len(question.candidates), partial(self._score, key, question.candidates)
            )
            yield CandidateScores(index, dict.fromkeys(methods, scores))

    def _score(self, key: tuple[str, str] | None, candidates: tuple[str, ...]) -> FloatArray:
        counts = self._counts[key] if key is not None else Counter()
        return _shared(np.array([float(counts[text]) for text in candidates]))


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
        self._scores: SharedCache[list[FloatArray]] = SharedCache(_MAX_CACHED_SCORES)

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
            key = (question.task, question.relation)
            shuffles = self._scores.get(
                (question.candidates,),
                key,
                self.shuffles * len(question.candidates),
                partial(self._score, *key, question.candidates),
            )
            for repeat, scores in enumerate(shuffles):
                yield CandidateScores(index, dict.fromkeys(methods, scores), repeat=repeat)

    def describe(self) -> dict[str, str | int | float]:
        """Describe the baseline by its seed and its number of random orders."""
        return {"seed": self.seed, "shuffles": self.shuffles}

    def _score(self, task: str, relation: str, candidates: tuple[str, ...]) -> list[FloatArray]:
        scores = np.empty((self.shuffles, len(candidates)))
        ranks = self._frequency_ranks.get((task, relation), {})
        others = [index for index, text in enumerate(candidates) if text not in ranks]
        self._draw(task, [candidates[index] for index in others])
        for index in others:
            scores[:, index] = self._draws[task, candidates[index]]
        counted = [index for index, text in enumerate(candidates) if text in ranks]
        scores[:, counted] = [1 + len(ranks) - ranks[candidates[index]] for index in counted]
        return [_shared(row) for row in scores]

    def _draw(self, task: str, texts: Sequence[str]) -> None:
        """Draw random numbers between 0 and 1, one per repeat, for each text that has none yet."""
        new = [text for text in dict.fromkeys(texts) if (task, text) not in self._draws]
        pairs = range(self.shuffles // 2)
        drawn = np.array([derived_seeds((self.seed, task, pair), new) for pair in pairs], dtype=np.uint64).T / 2.0**64
        # Every random order is followed by its reverse, which reduces the variance of the mean over repeats.
        rows = np.stack([drawn, 1.0 - drawn], axis=2).reshape(len(new), self.shuffles)
        self._draws.update(zip(((task, text) for text in new), rows, strict=True))


def _count_characters(candidates: tuple[str, ...]) -> FloatArray:
    return _shared(np.array([float(len(text)) for text in candidates]))


def _shared(scores: FloatArray) -> FloatArray:
    """Make an array read-only, so that it is ranked once for all questions."""
    scores.flags.writeable = False
    return scores


def _spaced(ranks: IntArray, length: int) -> FloatArray:
    """Return scores between 0 and 1 that are evenly spaced in the order of ranks, the best first."""
    return 1.0 - (ranks + 0.5) / length


def _count_answers(frequencies: Sequence[Mapping[str, Any]]) -> dict[tuple[str, str], Counter[str]]:
    counts: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for row in frequencies:
        counts[row["task"], row["relation"]][row["answer"]] += row["count"]
    return counts
