"""Paired comparisons of models on the same questions, with corrected p-values."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from merkhet.analysis.training_comparison import compare_trainings
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
    low: float | None
    high: float | None
    p: float | None
    """P-value of a permutation test, or of a t test over trainings, Holm-corrected over the table.

    None if a model was trained once: one training supports no test."""
    n: int
    """Number of questions."""
    p_raw: float | None = None
    """Uncorrected p-value of the test."""
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
    trainings: int | None = None
    """Number of trainings of each model that the difference is based on; None if the run trained neither model.

    With several trainings, interval and p-value are over the trainings; with one, the interval is over questions."""


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

    def take(self, rows: NDArray[np.int64]) -> SharedValues:
        """Select the questions with these indices."""
        return SharedValues(self.codes[rows], self.first[rows], self.second[rows])


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
        trained: Models that the run has trained. Their comparisons are based on trainings, not on questions.
        repeated: Answers of these models after further trainings, one table for each training.
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
        trained: Collection[str] = (),
        repeated: Sequence[pa.Table] = (),
    ) -> None:
        self.table = answers if isinstance(answers, AnswerTable) else AnswerTable(answers, questions)
        self.seed, self.unusable_is_wrong, self.trained = seed, unusable_is_wrong, frozenset(trained)
        ids = self.table.ids
        self._tables = [self.table, *(AnswerTable(table, questions) for table in repeated)]
        self._codes_of_table = [np.searchsorted(np.array(ids), np.array(table.ids)) for table in self._tables]
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

    def count_trainings(self, pair: tuple[str, str], task: str) -> int | None:
        """Return the number of trainings that both models were asked after; None if the run trained neither."""
        probe = self.shared_probe(pair, task)
        cells = [(model, task, probe, self.methods[model, task][probe]) for model in pair if probe is not None]
        trained = [cell for cell in cells if cell[0] in self.trained]
        counts = (sum(cell in table.cell_rows for table in self._tables) for cell in trained)
        return min(counts, default=None)

    def shared_values(self, pair: tuple[str, str], task: str, metric: Metric) -> SharedValues | None:
        """Return the values of both models on shared questions; None without a shared probe or applicable metric.

        The values of a trained model are those after its first training; see :meth:`training_values`.
        """
        return next(iter(self.training_values(pair, task, metric, 1)), None)

    def training_values(
        self, pair: tuple[str, str], task: str, metric: Metric, count: int | None = None
    ) -> list[SharedValues]:
        """Return the values of both models on shared questions, after each training.

        A model that was not trained has the same values each time. Only questions that both models could be asked
        after every training are kept.

        Args:
            count: Number of trainings; as many as both models have if None.
        """
        probe = self.shared_probe(pair, task)
        if probe is None:
            return []
        count = count or self.count_trainings(pair, task) or 1
        sides = [[self._values(model, task, probe, metric, training) for model in pair] for training in range(count)]
        known = [side for of_training in sides for side in of_training if side is not None]
        if len(known) < 2 * count:
            return []
        shared = self._pair_codes[known[0][0]]
        for codes, _ in known[1:]:
            shared = np.intersect1d(shared, self._pair_codes[codes])
        order = np.argsort(known[0][0][self._rows_of(known[0][0], shared)], kind="stable")
        rows = [self._rows_of(codes, shared)[order] for codes, _ in known]
        values = [side[1][taken] for side, taken in zip(known, rows, strict=True)]
        codes = known[0][0][rows[0]]
        return [SharedValues(codes, values[2 * k], values[2 * k + 1]) for k in range(count)]

    def _rows_of(self, codes: IntArray, shared: IntArray) -> IntArray:
        """Return the index of each shared pair code among the questions ``codes``."""
        pair_codes = self._pair_codes[codes]
        order = np.argsort(pair_codes, kind="stable")
        return np.asarray(order[np.searchsorted(pair_codes[order], shared)], dtype=np.int64)

    def _values(
        self, model: str, task: str, probe: str, metric: Metric, training: int
    ) -> tuple[IntArray, FloatArray] | None:
        """Return the questions that a model could be asked after a training, and its values."""
        number = training if model in self.trained else 0
        wrong = self.unusable_is_wrong and metric.share and metric.higher_is_better
        cell = self._tables[number].cell(model, task, probe, self.methods[model, task][probe])
        try:
            values = cell.values(metric, wrong=wrong)
        except MetricNotApplicableError:
            return None
        known = np.isfinite(values)
        return self._codes_of_table[number][cell.question_codes(wrong)[known]], values[known]

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
        values = self.training_values(pair, task, metric)
        if not values:
            return []
        if groups is None:
            return self._compare_values(pair, task, metric, values, derived_seed(self.seed, task, metric.name))
        members: dict[str, list[int]] = {}
        for row, code in enumerate(values[0].codes.tolist()):
            if (group := groups.get(self.table.ids[code])) is not None:
                members.setdefault(group, []).append(row)
        comparisons = []
        for group, rows in sorted(members.items()):
            part = [each.take(np.array(rows)) for each in values]
            seed = derived_seed(self.seed, task, str(column), group, metric.name)
            in_group = self._compare_values(pair, task, metric, part, seed, weighted=False)
            comparisons += [replace(comparison, group_column=column, group=group) for comparison in in_group]
        return comparisons

    def difference(
        self,
        pair: tuple[str, str],
        task: str,
        metric: Metric,
        *,
        seed: int,
        select: Callable[[Sequence[str]], NDArray[np.bool_]] | None = None,
    ) -> Comparison | None:
        """Compare two models in the order of ``pair``; None if they share questions about fewer than two facts.

        Args:
            select: Function that selects some of the question ids of the first model; all if None.
        """
        values = self.training_values(pair, task, metric)
        if values and select is not None:
            rows = np.flatnonzero(select([self.table.ids[code] for code in values[0].codes.tolist()]))
            values = [each.take(rows) for each in values]
        if not values:
            return None
        return next(iter(self._compare_values(pair, task, metric, values, seed, better_first=False)), None)

    def _compare_values(
        self,
        pair: tuple[str, str],
        task: str,
        metric: Metric,
        values: Sequence[SharedValues],
        seed: int,
        *,
        weighted: bool = True,
        better_first: bool = True,
    ) -> list[Comparison]:
        codes = values[0].codes
        clusters = self.clusters.take(codes)
        if len(np.unique(clusters.facts)) < 2:
            return []
        classes = self.classes[codes]
        weights = class_weights(classes) if weighted and len(np.unique(classes)) > 1 else None
        sign = 1.0 if metric.higher_is_better else -1.0
        sides = [(sign * each.first, sign * each.second) for each in values]
        mean = np.mean([float(np.average(first - second, weights=weights)) for first, second in sides])
        tie_p = 0.0 if not self.trained.isdisjoint(pair) else self._tie_p_value(pair, task, metric, values[0])
        if better_first and mean < 0.0:
            pair, sides = pair[::-1], [side[::-1] for side in sides]
        fields: Row = {"task": task, "metric": metric.name, "model": pair[0], "other": pair[1], "n": len(codes)}
        if not self.trained.isdisjoint(pair):
            compared = compare_trainings(sides, clusters, seed, weights)
            return [] if compared is None else [Comparison(**fields, **compared)]
        paired = clusters.difference(*sides[0], seed, weights)
        if not all(map(math.isfinite, (paired.difference, paired.low, paired.high, paired.p))):
            return []
        details = clusters.details(*sides[0], weights)
        p = max(paired.p, tie_p)
        return [Comparison(**fields, p_raw=p, **{**asdict(paired), "p": p}, **asdict(details))]

    def _tie_p_value(self, pair: tuple[str, str], task: str, metric: Metric, values: SharedValues) -> float:
        """Return the p-value of the difference if it came from breaking ties at random; 0 without ties.

        The value of a question with ties is an expectation over ways to break them, which hides that one way is as good
        as another: for values v between 0 and 1, that of one way has at most the variance v (1 - v).
        """
        probe = self.shared_probe(pair, task)
        if probe is None or not metric.share:
            return 0.0
        variance = 0.0
        for model, side in zip(pair, (values.first, values.second), strict=True):
            cell = self.table.cell(model, task, probe, self.methods[model, task][probe])
            tied = side[np.isin(values.codes, cell.tied_codes())]
            variance += float(np.sum(tied * (1.0 - tied))) / len(side) ** 2
        if variance <= 0.0:
            return 0.0
        return math.erfc(abs(float(np.mean(values.first - values.second))) / math.sqrt(2.0 * variance))


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

    Comparisons without a p-value remain without one, and do not count.
    The corrections start from ``p_raw`` if it is set, so joined tables can be corrected again.
    """
    raw = [comparison.p if comparison.p_raw is None else comparison.p_raw for comparison in comparisons]
    tested = [index for index, p in enumerate(raw) if p is not None]
    raw_p = np.array([raw[index] for index in tested], dtype=np.float64)
    corrected = list(comparisons)
    for index, p, q in zip(tested, holm_corrected(raw_p), benjamini_hochberg(raw_p), strict=True):
        corrected[index] = replace(comparisons[index], p=float(p), q=float(q), p_raw=raw[index])
    return corrected
