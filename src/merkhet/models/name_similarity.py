"""Baselines that compare names: the option nearest to the subject, the odd one out, and verdicts by a threshold."""

from __future__ import annotations

from abc import abstractmethod
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from merkhet.core import SLOT
from merkhet.core.records import Question, affirmative_choice
from merkhet.models.baselines import WritingBaseline
from merkhet.models.protocol import CandidateScores, FloatArray

NO_PAIRS = "no training questions to fit a threshold of similarity on"
_DECIMALS = 10
"""Decimals of scores. Rounding makes scores equal that differ by the order of a sum."""
_SCORES_AT_ONCE = 2**22
_BEYOND = 2.0
"""A similarity that no two texts have."""


class NameSimilarityBaseline(WritingBaseline):
    """Baseline that answers by a similarity of names, without reading the sentence.

    * Options: the one nearest to the names that the question mentions, such as its subject. If no names are recorded,
      the words of the prompt take their place.
    * Options that are themselves the names of the question: the odd one out, whose summed similarity to the others is
      lowest.
    * Verdicts (yes and no) on a statement: yes if its two names are more similar than a threshold. The threshold of a
      relation maximizes the number of right verdicts in training questions.

    Options with equal similarities are tied.
    """

    methods: tuple[str, ...] = ("similarity",)
    writing_methods = methods

    def __init__(self, name: str, *identity: Any) -> None:
        super().__init__(name, *identity)
        self._thresholds: dict[tuple[str, str | None], float] = {}
        self._verdict_tasks: set[str] = set()

    @abstractmethod
    def similarity_matrix(self, first: Sequence[str], second: Sequence[str]) -> FloatArray:
        """Return the similarity of each text in ``first`` (rows) to each in ``second`` (columns)."""

    def prepare_pairs(self, pairs: Sequence[Mapping[str, Any]]) -> None:
        """Fit the threshold of each relation, and of each task for relations without training questions."""
        similarities = self._pair_similarities([(row["first"], row["second"]) for row in pairs])
        by_key: dict[tuple[str, str | None], list[tuple[float, bool]]] = defaultdict(list)
        for row, similarity in zip(pairs, similarities, strict=True):
            by_key[row["task"], row["relation"]].append((similarity, row["holds"]))
            by_key[row["task"], None].append((similarity, row["holds"]))
        self._thresholds = {key: fit_threshold(values) for key, values in by_key.items()}
        self._verdict_tasks = {task for task, _ in self._thresholds}

    def score_candidates(self, questions: Sequence[Question], methods: Sequence[str]) -> Iterator[CandidateScores]:
        """Score the candidates of each question by their similarity to its names."""
        verdicts, nearest = [], defaultdict(list)
        for index, question in enumerate(questions):
            if not question.candidates:
                yield CandidateScores(index, unusable="the list of candidates is empty")
            elif self.asks_verdict(question):
                verdicts.append(index)
            elif len(question.candidates) > 2 and set(question.entities) == set(question.candidates):
                yield CandidateScores(index, dict.fromkeys(methods, self._score_odd_ones(question.candidates)))
            else:
                nearest[id(question.candidates)].append(index)
        yield from self._score_verdicts(questions, verdicts, methods)
        for indices in nearest.values():
            size = max(1, _SCORES_AT_ONCE // len(questions[indices[0]].candidates))
            for start in range(0, len(indices), size):
                yield from self._score_nearest(questions, indices[start : start + size], methods)

    def asks_verdict(self, question: Question) -> bool:
        """Return whether the candidates are two verdicts on a statement about two names."""
        candidates, names = question.candidates, question.entities
        # One of the names may be a verdict: No is the symbol of nobelium.
        if len(candidates) != 2 or len(names) != 2 or set(names) == set(candidates):
            return False
        # Without a word such as "yes", the first choice affirms, whatever it is.
        has_verdict = affirmative_choice(candidates) == affirmative_choice(candidates[::-1])
        return has_verdict or question.task in self._verdict_tasks

    def _score_verdicts(
        self, questions: Sequence[Question], indices: Sequence[int], methods: Sequence[str]
    ) -> Iterator[CandidateScores]:
        similarities = self._pair_similarities([questions[index].entities[:2] for index in indices])
        for index, similarity in zip(indices, similarities, strict=True):
            question = questions[index]
            keys = (question.task, question.relation), (question.task, None)
            threshold = next((self._thresholds[key] for key in keys if key in self._thresholds), None)
            if threshold is None:
                yield CandidateScores(index, unusable=NO_PAIRS)
                continue
            yes = affirmative_choice(question.candidates)
            # Yes needs a similarity above the threshold; at the threshold, the answer is no.
            margin = similarity - threshold or -(10.0**-_DECIMALS)
            scores = np.array([margin if text == yes else -margin for text in question.candidates])
            yield CandidateScores(index, dict.fromkeys(methods, scores))

    def _pair_similarities(self, pairs: Sequence[Sequence[str]]) -> list[float]:
        return [round(float(self.similarity_matrix([first], [second])[0, 0]), _DECIMALS) for first, second in pairs]

    def _score_odd_ones(self, candidates: Sequence[str]) -> FloatArray:
        """Score each candidate by its negative summed similarity to the others."""
        matrix = self.similarity_matrix(candidates, candidates)
        scores: FloatArray = np.round(np.diag(matrix) - matrix.sum(axis=1), _DECIMALS)
        return scores

    def _score_nearest(
        self, questions: Sequence[Question], indices: Sequence[int], methods: Sequence[str]
    ) -> Iterator[CandidateScores]:
        """Score the candidates that questions share by their mean similarity to the names of each question."""
        candidates = questions[indices[0]].candidates
        names = [mentioned_names(questions[index]) for index in indices]
        rows = {name: row for row, name in enumerate(dict.fromkeys(name for group in names for name in group))}
        matrix = np.round(self.similarity_matrix(list(rows), candidates), _DECIMALS)
        for index, group in zip(indices, names, strict=True):
            scores: FloatArray = matrix[[rows[name] for name in group]].mean(axis=0)
            yield CandidateScores(index, dict.fromkeys(methods, scores))


def mentioned_names(question: Question) -> tuple[str, ...]:
    """Return the names that a question mentions beside its candidates, or else the text of its prompt.

    The slot and listed candidates are cut out of the prompt.
    """
    names = tuple(name for name in question.entities if name not in question.candidates)
    if names:
        return names
    text = question.prompt.replace(SLOT, " ", 1)
    if len(question.candidates) <= _MOST_LISTED:
        for candidate in sorted(question.candidates, key=len, reverse=True):
            text = text.replace(candidate, " ")
    return (text,)


_MOST_LISTED = 26


def fit_threshold(pairs: Sequence[tuple[float, bool]]) -> float:
    """Return the threshold of similarity above which most statements hold.

    The threshold lies between two neighbouring similarities, or beyond all; it maximizes the number of right verdicts.
    Of several such thresholds, the lowest is returned.

    Args:
        pairs: Similarity of the two names of each statement, and whether the statement holds.
    """
    ordered = sorted(pairs)
    similarities = np.array([similarity for similarity, _ in ordered])
    holds = np.array([truth for _, truth in ordered], dtype=np.int64)
    held_below = np.concatenate([[0], np.cumsum(holds)])
    right = np.arange(len(ordered) + 1) - held_below + (held_below[-1] - held_below)
    best = int(np.argmax(right))
    if best == 0:
        return -_BEYOND
    if best == len(ordered):
        return _BEYOND
    return float((similarities[best - 1] + similarities[best]) / 2.0)
