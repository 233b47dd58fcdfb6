"""Paired comparisons of models on the same questions, with corrected p-values."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np
import pyarrow as pa

from merkhet.core.ids import derived_seed
from merkhet.core.records import Question
from merkhet.metrics.answer_table import AnswerTable, IntArray
from merkhet.metrics.bootstrap import class_weights
from merkhet.metrics.clusters import question_clusters
from merkhet.metrics.corrections import benjamini_hochberg
from merkhet.metrics.corrections import holm as holm_corrected
from merkhet.metrics.metrics import Metric, MetricNotApplicableError
from merkhet.metrics.ranks import FloatArray

Row = dict[str, Any]
CONDITION_SETTINGS = ("facts", "conflict", "static", "dynamic")
"""Settings in which training conditions may differ."""


@dataclass(frozen=True)
class Comparison:
    """A paired difference between two models; numbers that are not available are None."""

    task: str
    metric: str
    model: str
    other: str
    difference: float
    """Score of ``model`` minus score of ``other`` on the questions that both models were asked."""
    low: float
    high: float
    p: float
    """P-value of a permutation test, Holm-corrected over the table."""
    n: int
    """Number of questions."""
    p_raw: float | None = None
    """Uncorrected p-value of the permutation test."""
    q: float | None = None
    """P-value after Benjamini and Hochberg's correction over the table."""
    mcnemar: float | None = None
    """Uncorrected p-value of McNemar's test."""
    effect: float | None = None
    """Cohen's d of the paired values."""
    odds: float | None = None
    """Odds ratio of the questions that only one of the models has right."""
    detectable: float | None = None
    """Smallest true difference that a single test detects with 80% power (:mod:`merkhet.metrics.paired_tests`)."""
    facts: int | None = None
    """Number of clusters among the questions."""
    group_column: str | None = None
    group: str | None = None
    """Compared group of questions: a value of ``group_column``."""


@dataclass(frozen=True)
class Condition:
    """Training condition of a model."""

    base: str
    """Name of the model before training."""
    label: str
    """Label of the condition, which follows the name of the model."""
    settings: Mapping[str, Any]
    """Settings that differ between conditions: facts, conflict, static, dynamic."""


def are_comparable(first: Condition | None, second: Condition | None) -> bool:
    """Return whether two models differ in exactly one respect: one setting, or the base model.

    Models without a condition are always comparable.
    """
    if first is None or second is None:
        return True
    different = [key for key in CONDITION_SETTINGS if first.settings.get(key) != second.settings.get(key)]
    return len(different) == (1 if first.base == second.base else 0)


@dataclass(frozen=True)
class SharedValues:
    """Metric values of two models on the questions that both models were asked."""

    codes: IntArray
    """Codes of the questions."""
    first: FloatArray
    second: FloatArray


class PairedModels:
    """Answers of models, paired by question and clustered by fact.

    Two models are compared by the first probe that was used with both. For each model, the first method of this probe
    counts; methods that use a single layer come last, and those without a usable answer are left out if others have
    one. A question with several answers counts once, with their mean. A
    question for which a metric is undefined is skipped.

    Args:
        clusters: Fact of each question, by question id.
        classes: Class of each question, by question id; a difference is then the mean over classes.
        unusable_is_wrong: Score unusable questions as 0 in metrics that are shares and better if higher. By default,
            unusable questions are skipped.
        statements: Whether questions are statements. Variants of a statement are then paired (see
            :func:`statement_id`), and statements with the same prompt are one observation.
    """

    def __init__(
        self,
        answers: AnswerTable | pa.Table | Sequence[Row],
        questions: Mapping[str, Question],
        clusters: Mapping[str, str],
        *,
        seed: int,
        classes: Mapping[str, str] | None = None,
        unusable_is_wrong: bool = False,
        statements: bool = False,
    ) -> None:
        self.table = answers if isinstance(answers, AnswerTable) else AnswerTable(answers, questions)
        self.seed, self.unusable_is_wrong = seed, unusable_is_wrong
        ids = self.table.ids
        self.clusters = question_clusters(ids, clusters, questions if statements else None)
        names = np.array([(classes or {}).get(name, "") for name in ids], dtype=np.str_)
        self.classes = np.unique(names, return_inverse=True)[1]
        pairs = [statement_id(name) for name in ids] if statements else ids
        numbers = {name: number for number, name in enumerate(dict.fromkeys(pairs))}
        self._pair_codes = np.array([numbers[name] for name in pairs], dtype=np.int64)
        self.methods: dict[tuple[str, str], dict[str, str]] = {}
        """Method of each probe, by model and task."""
        keys = sorted(self.table.cell_rows, key=lambda key: is_layer_method(key[3]))
        answered = {key[:2] for key in keys if self.table.cell(*key).answered}
        for key in keys:
            model, task, probe, method = key
            if self.table.cell(*key).answered or key[:2] not in answered:
                self.methods.setdefault((model, task), {}).setdefault(probe, method)

    @property
    def models(self) -> list[str]:
        """Models that have answers."""
        return list(dict.fromkeys(model for model, _ in self.methods))

    def shared_probe(self, pair: tuple[str, str], task: str) -> str | None:
        """Return the first probe that was used with both models; None if there is no such probe."""
        first, second = (self.methods.get((model, task), {}) for model in pair)
        return next((probe for probe in first if probe in second), None)

    def shared_values(self, pair: tuple[str, str], task: str, metric: Metric) -> SharedValues | None:
        """Return the values of both models on shared questions; None without a shared probe or applicable metric."""
        probe = self.shared_probe(pair, task)
        if probe is None:
            return None
        wrong = self.unusable_is_wrong and metric.share and metric.higher_is_better
        sides = []
        for model in pair:
            cell = self.table.cell(model, task, probe, self.methods[model, task][probe])
            try:
                values = cell.values(metric, wrong=wrong)
            except MetricNotApplicableError:
                return None
            known = np.isfinite(values)
            sides.append((cell.question_codes(wrong)[known], values[known]))
        _, first, second = np.intersect1d(
            self._pair_codes[sides[0][0]], self._pair_codes[sides[1][0]], assume_unique=True, return_indices=True
        )
        order = np.argsort(sides[0][0][first], kind="stable")
        first, second = first[order], second[order]
        return SharedValues(sides[0][0][first], sides[0][1][first], sides[1][1][second])

    def compare(
        self,
        pair: tuple[str, str],
        task: str,
        metric: Metric,
        *,
        groups: Mapping[str, str] | None = None,
        column: str | None = None,
    ) -> list[Comparison]:
        """Compare two models on a task, or within each of its groups; the better model comes first.

        P-values are uncorrected. The difference in a group is the plain mean over its questions. Comparisons with fewer
        than two facts are left out.
        """
        shared = self.shared_values(pair, task, metric)
        if shared is None:
            return []
        if groups is None:
            return self._compare_values(pair, task, metric, shared, derived_seed(self.seed, task, metric.name))
        members: dict[str, list[int]] = {}
        for row, code in enumerate(shared.codes.tolist()):
            if (group := groups.get(self.table.ids[code])) is not None:
                members.setdefault(group, []).append(row)
        comparisons = []
        for group, rows in sorted(members.items()):
            part = SharedValues(shared.codes[rows], shared.first[rows], shared.second[rows])
            seed = derived_seed(self.seed, task, str(column), group, metric.name)
            in_group = self._compare_values(pair, task, metric, part, seed, weighted=False)
            comparisons += [replace(comparison, group_column=column, group=group) for comparison in in_group]
        return comparisons

    def _compare_values(
        self,
        pair: tuple[str, str],
        task: str,
        metric: Metric,
        shared: SharedValues,
        seed: int,
        *,
        weighted: bool = True,
    ) -> list[Comparison]:
        clusters = self.clusters.take(shared.codes)
        if len(np.unique(clusters.facts)) < 2:
            return []
        classes = self.classes[shared.codes]
        weights = class_weights(classes) if weighted and len(np.unique(classes)) > 1 else None
        sign = 1.0 if metric.higher_is_better else -1.0
        values = (sign * shared.first, sign * shared.second)
        if float(np.average(values[0] - values[1], weights=weights)) < 0.0:
            pair, values = pair[::-1], values[::-1]
        paired = clusters.difference(*values, seed, weights)
        if not all(map(math.isfinite, (paired.difference, paired.low, paired.high, paired.p))):
            return []
        details = clusters.details(*values, weights)
        fields: Row = {"model": pair[0], "other": pair[1], "n": len(shared.codes), "p_raw": paired.p}
        return [Comparison(task=task, metric=metric.name, **fields, **asdict(paired), **asdict(details))]


def compare_models(
    answers: AnswerTable | pa.Table | Sequence[Row],
    questions: Mapping[str, Question],
    clusters: Mapping[str, str],
    headline: Sequence[tuple[str, Metric]],
    *,
    groups: Mapping[str, str] | None = None,
    column: str | None = None,
    models: Collection[str] | None = None,
    conditions: Mapping[str, Condition] | None = None,
    **options: Any,
) -> list[Comparison]:
    """Compare every pair of models on every headline metric, with p-values corrected over all comparisons.

    Args:
        groups: Group of each question, by question id, to compare models within each group.
        column: Column that the groups come from.
        models: Models to compare; all models by default.
        conditions: Training condition of each model; only comparable models are compared (:func:`are_comparable`).
        options: Further arguments of :class:`PairedModels`.

    Returns:
        Comparisons with the better model first.
    """
    paired = PairedModels(answers, questions, clusters, **options)
    pairs = [
        (model, other)
        for model, other in combinations([name for name in paired.models if models is None or name in models], 2)
        if are_comparable((conditions or {}).get(model), (conditions or {}).get(other))
    ]
    return correct_comparisons(
        [
            comparison
            for task, metric in headline
            for pair in pairs
            for comparison in paired.compare(pair, task, metric, groups=groups, column=column)
        ]
    )


def statement_id(question_id: str) -> str:
    """Return the part of a question id before ``~``, shared by variants of a statement with other right answers."""
    return question_id.partition("~")[0]


def is_layer_method(method: str) -> bool:
    """Return whether a method uses a single layer; other methods are preferred in comparisons."""
    return "@" in method


def correct_comparisons(comparisons: Sequence[Comparison]) -> list[Comparison]:
    """Correct the p-values of all ``comparisons``: p by Holm, q by Benjamini and Hochberg.

    The corrections start from ``p_raw`` if it is set, so joined tables can be corrected again.
    """
    raw_p = np.array(
        [comparison.p if comparison.p_raw is None else comparison.p_raw for comparison in comparisons], dtype=np.float64
    )
    return [
        replace(comparison, p=float(p), q=float(q), p_raw=float(uncorrected))
        for comparison, p, q, uncorrected in zip(
            comparisons, holm_corrected(raw_p), benjamini_hochberg(raw_p), raw_p, strict=True
        )
    ]
