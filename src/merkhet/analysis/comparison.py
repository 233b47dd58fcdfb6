"""Models compared on the same questions, with p-values corrected for the number of comparisons."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np

from merkhet.core.ids import derived_seed
from merkhet.core.records import Question
from merkhet.metrics.bootstrap import class_weights, paired_difference
from merkhet.metrics.corrections import benjamini_hochberg
from merkhet.metrics.corrections import holm as holm_corrected
from merkhet.metrics.metrics import Metric, NoRanksError
from merkhet.metrics.paired_tests import paired_details
from merkhet.metrics.ranks import FloatArray
from merkhet.metrics.score_table import gather, mean_of_each

Row = dict[str, Any]


@dataclass(frozen=True)
class Comparison:
    """How far ``model`` is ahead of ``other`` on the questions that both could be asked.

    ``p`` is that of a permutation test, Holm-corrected over the table it stands in, ``p_raw`` the same uncorrected,
    ``q`` by Benjamini and Hochberg; ``mcnemar`` is the uncorrected p of McNemar's test. ``effect`` is Cohen's d of
    paired values, ``odds`` the odds ratio of the questions that only one of the two has right, ``detectable`` the
    smallest true difference that one test finds in 80% of samples, ``facts`` the number of clusters among the ``n``
    questions (:mod:`merkhet.metrics.paired_tests`). ``group_column`` and ``group`` name the group that is
    compared. None: there is no such number.
    """

    task: str
    metric: str
    model: str
    other: str
    difference: float
    low: float
    high: float
    p: float
    n: int
    p_raw: float | None = None
    q: float | None = None
    mcnemar: float | None = None
    effect: float | None = None
    odds: float | None = None
    detectable: float | None = None
    facts: int | None = None
    group_column: str | None = None
    group: str | None = None


@dataclass(frozen=True)
class _Given:
    """Two models' answers to the questions of a task, by question; those that count."""

    task: str
    metric: Metric
    models: tuple[str, str]
    answers: tuple[Mapping[str, Sequence[Row]], Mapping[str, Sequence[Row]]]


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
    pair stands first. A question that was answered several times counts once, by the mean; where questions have
    ``classes``, the difference is the mean over classes. What could not be asked has the value 0 with
    ``unusable_is_wrong`` in every metric that is a share and better if higher, and is left out else; so is a question
    for which a metric has no number.
    """
    found = []
    for given in _pairs(answers, questions, headline, unusable_is_wrong=unusable_is_wrong):
        shared = sorted(given.answers[0].keys() & given.answers[1].keys())
        drawn = derived_seed(seed, given.task, given.metric.name)
        found += _compared(given, shared, questions, clusters, classes or {}, drawn)
    return corrected(found)


def compare_groups(
    answers: Sequence[Row],
    questions: Mapping[str, Question],
    clusters: Mapping[str, str],
    headline: Sequence[tuple[str, Metric]],
    *,
    groups: Mapping[str, str],
    column: str,
    seed: int,
    classes: Mapping[str, str] | None = None,
    unusable_is_wrong: bool = False,
) -> list[Comparison]:
    """The same within each group of questions: ``groups`` gives a question's group of the column called ``column``.

    p-values are corrected over the whole table of groups. ``classes`` have no part in it: as in the scores, a group's
    difference is the plain mean over its questions.
    """
    found = []
    for given in _pairs(answers, questions, headline, unusable_is_wrong=unusable_is_wrong):
        members: dict[str, list[str]] = defaultdict(list)
        for question_id in sorted(given.answers[0].keys() & given.answers[1].keys()):
            if groups.get(question_id) is not None:
                members[groups[question_id]].append(question_id)
        for group, shared in sorted(members.items()):
            drawn = derived_seed(seed, given.task, column, group, given.metric.name)
            own = _compared(given, shared, questions, clusters, {}, drawn)
            found += [replace(one, group_column=column, group=group) for one in own]
    return corrected(found)


def _pairs(
    answers: Sequence[Row],
    questions: Mapping[str, Question],
    headline: Sequence[tuple[str, Metric]],
    *,
    unusable_is_wrong: bool,
) -> list[_Given]:
    ways: dict[tuple[str, str], dict[str, str]] = defaultdict(dict)
    given: dict[tuple[str, str, str], dict[str, list[Row]]] = defaultdict(lambda: defaultdict(list))
    for answer in sorted(answers, key=lambda answer: is_a_layer(answer["method"])):
        model, task, probe = answer["model"], questions[answer["question_id"]].task, answer["probe"]
        if ways[model, task].setdefault(probe, answer["method"]) == answer["method"]:
            given[model, task, probe][answer["question_id"]].append(answer)
    models = list(dict.fromkeys(model for model, _ in ways))
    found = []
    for task, metric in headline:
        wrong = unusable_is_wrong and metric.share and metric.higher_is_better
        for model, other in combinations(models, 2):
            probe = next((name for name in ways[model, task] if name in ways[other, task]), None)
            if probe is not None:
                own, others = (_counted(given[name, task, probe], wrong) for name in (model, other))
                found.append(_Given(task, metric, (model, other), (own, others)))
    return found


def _counted(answers: Mapping[str, Sequence[Row]], wrong: bool) -> dict[str, list[Row]]:
    """The usable answers to each question; one without any is left out unless it is ``wrong``, with no answer."""
    usable = {question_id: [one for one in own if one["unusable"] is None] for question_id, own in answers.items()}
    return {question_id: own for question_id, own in usable.items() if own or wrong}


def _compared(
    given: _Given,
    shared: Sequence[str],
    questions: Mapping[str, Question],
    clusters: Mapping[str, str],
    classes: Mapping[str, str],
    seed: int,
) -> list[Comparison]:
    """The comparison on these questions, its p not yet corrected; none where they are of fewer than two facts."""
    try:
        values = [
            _values(given.metric, [own[question_id] for question_id in shared], questions) for own in given.answers
        ]
    except NoRanksError:
        return []
    known = np.isfinite(values[0]) & np.isfinite(values[1])
    shared = [question_id for question_id, there in zip(shared, known, strict=True) if there]
    _, own = np.unique(np.array([clusters[question_id] for question_id in shared], dtype=np.str_), return_inverse=True)
    if not len(own) or int(own.max()) < 1:
        return []
    kinds = np.array([classes.get(question_id, "") for question_id in shared], dtype=np.str_)
    weights = class_weights(kinds) if len(np.unique(kinds)) > 1 else None
    sign = 1.0 if given.metric.higher_is_better else -1.0
    first, second = (sign * one[known] for one in values)
    ahead = float(np.average(first - second, weights=weights)) >= 0.0
    pair = given.models if ahead else given.models[::-1]
    first, second = (first, second) if ahead else (second, first)
    result = paired_difference(first, second, own, seed=seed, weights=weights)
    details = paired_details(first, second, own, weights=weights)
    about: Row = {"model": pair[0], "other": pair[1], "n": len(shared), "p_raw": result.p}
    return [Comparison(task=given.task, metric=given.metric.name, **about, **asdict(result), **asdict(details))]


def is_a_layer(method: str) -> bool:
    """Whether a method is one of many layers: not what a model is compared by, if it answered otherwise too."""
    return "@" in method


def _values(metric: Metric, answers: Sequence[Sequence[Row]], questions: Mapping[str, Question]) -> FloatArray:
    """The metric's value of each question, the mean over its answers; 0 where there is none."""
    counts = np.array([len(own) for own in answers], dtype=np.int64)
    values = np.zeros(len(answers))
    if counts.any():
        found = metric.values(gather([one for own in answers for one in own], questions))
        values[counts > 0] = mean_of_each(found, (np.cumsum(counts) - counts)[counts > 0])
    return values


def corrected(comparisons: Sequence[Comparison]) -> list[Comparison]:
    """The comparisons of one table: p by Holm over the table, q by Benjamini and Hochberg, p_raw as it was.

    What was corrected before is corrected anew, from p_raw.
    """
    plain = np.array([one.p if one.p_raw is None else one.p_raw for one in comparisons], dtype=np.float64)
    return [
        replace(one, p=float(p), q=float(q), p_raw=float(raw))
        for one, p, q, raw in zip(comparisons, holm_corrected(plain), benjamini_hochberg(plain), plain, strict=True)
    ]


holm = corrected
