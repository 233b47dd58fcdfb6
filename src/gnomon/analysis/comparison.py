"""Models compared on the same questions, with p-values corrected for the number of comparisons."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from gnomon.foundation import derived_seed
from gnomon.foundation.records import Question
from gnomon.scores import Metric, NoRanksError, paired_difference
from gnomon.scores.table import gather

Row = dict[str, Any]


@dataclass(frozen=True)
class Comparison:
    """How far ``model`` is ahead of ``other`` on the questions that both could be asked; p is Holm-corrected."""

    task: str
    metric: str
    model: str
    other: str
    difference: float
    low: float
    high: float
    p: float
    n: int


def compare_models(
    answers: Sequence[Row],
    questions: Mapping[str, Question],
    clusters: Mapping[str, str],
    headline: Sequence[tuple[str, Metric]],
    *,
    seed: int,
) -> list[Comparison]:
    """Every pair of models on every headline metric, paired by question and clustered by fact.

    A model is taken by its first method. The better model of a pair stands first.
    """
    by_model: dict[str, dict[str, Row]] = defaultdict(dict)
    for answer in answers:
        if answer["unusable"] is None:
            by_model[answer["model"]].setdefault(answer["question_id"], answer)
    found = []
    for task, metric in headline:
        for model, other in combinations(by_model, 2):
            shared = sorted(
                question_id
                for question_id in by_model[model].keys() & by_model[other].keys()
                if questions[question_id].task == task
            )
            own = np.array([clusters[question_id] for question_id in shared], dtype=np.str_)
            if len(set(own.tolist())) < 2:
                continue
            sign = 1.0 if metric.higher_is_better else -1.0
            try:
                values = [
                    sign * metric.values(gather([by_model[name][question_id] for question_id in shared], questions))
                    for name in (model, other)
                ]
            except NoRanksError:
                continue
            pair = (model, other) if values[0].mean() >= values[1].mean() else (other, model)
            ahead, behind = values if pair[0] == model else values[::-1]
            result = paired_difference(ahead, behind, own, seed=derived_seed(seed, task, metric.name))
            found.append(
                Comparison(task, metric.name, *pair, result.difference, result.low, result.high, result.p, len(shared))
            )
    return holm(found)


def holm(comparisons: list[Comparison]) -> list[Comparison]:
    """Holm's step-down correction: the i-th smallest of m p-values times m - i, never falling."""
    corrected: dict[int, float] = {}
    highest = 0.0
    order = sorted(range(len(comparisons)), key=lambda i: comparisons[i].p)
    for place, i in enumerate(order):
        highest = max(highest, min(1.0, comparisons[i].p * (len(comparisons) - place)))
        corrected[i] = highest
    return [Comparison(**{**vars(one), "p": corrected[i]}) for i, one in enumerate(comparisons)]
