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
from gnomon.scores.bootstrap import class_weights
from gnomon.scores.ranks import FloatArray
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
    classes: Mapping[str, str] | None = None,
    unusable_is_wrong: bool = False,
) -> list[Comparison]:
    """Every pair of models on every headline metric, paired by question and clustered by fact.

    Two models are compared by the first probe that both were asked by, each by its first method. The better model of a
    pair stands first. Where questions have ``classes``, the difference is the mean over classes; what could not be
    asked has the value 0 with ``unusable_is_wrong``, and is left out without it.
    """
    ways: dict[tuple[str, str], dict[str, str]] = defaultdict(dict)
    given: dict[tuple[str, str, str], dict[str, Row]] = defaultdict(dict)
    for answer in sorted(answers, key=lambda answer: is_a_layer(answer["method"])):
        model, task, probe = answer["model"], questions[answer["question_id"]].task, answer["probe"]
        first = ways[model, task].setdefault(probe, answer["method"]) == answer["method"]
        if first and (unusable_is_wrong or answer["unusable"] is None):
            given[model, task, probe].setdefault(answer["question_id"], answer)
    models = list(dict.fromkeys(model for model, _ in ways))
    found = []
    for task, metric in headline:
        for model, other in combinations(models, 2):
            probe = next((name for name in ways[model, task] if name in ways[other, task]), None)
            if probe is None:
                continue
            by_model = {name: given[name, task, probe] for name in (model, other)}
            shared = sorted(by_model[model].keys() & by_model[other].keys())
            own = np.array([clusters[question_id] for question_id in shared], dtype=np.str_)
            if len(set(own.tolist())) < 2:
                continue
            weights = class_weights(np.array([(classes or {}).get(question_id, "") for question_id in shared]))
            try:
                values = [
                    weights * _values(metric, [by_model[name][question_id] for question_id in shared], questions)
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


def is_a_layer(method: str) -> bool:
    """Whether a method is one of many layers: not what a model is compared by, if it answered otherwise too."""
    return "@" in method


def _values(metric: Metric, answers: Sequence[Row], questions: Mapping[str, Question]) -> FloatArray:
    """The metric's values, higher for better ones; 0 where there is no answer."""
    usable = np.array([answer["unusable"] is None for answer in answers])
    values = np.zeros(len(answers))
    sign = 1.0 if metric.higher_is_better else -1.0
    found = [answer for answer in answers if answer["unusable"] is None]
    if found:
        values[usable] = sign * metric.values(gather(found, questions))
    return values


def holm(comparisons: list[Comparison]) -> list[Comparison]:
    """Holm's step-down correction: the i-th smallest of m p-values times m - i, never falling."""
    corrected: dict[int, float] = {}
    highest = 0.0
    order = sorted(range(len(comparisons)), key=lambda i: comparisons[i].p)
    for place, i in enumerate(order):
        highest = max(highest, min(1.0, comparisons[i].p * (len(comparisons) - place)))
        corrected[i] = highest
    return [Comparison(**{**vars(one), "p": corrected[i]}) for i, one in enumerate(comparisons)]
