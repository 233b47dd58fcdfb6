"""Input and output types of analyses."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from merkhet.analysis.analysis_options import AnalysisOptions
from merkhet.analysis.comparison import Condition, PairedModels
from merkhet.analysis.finding_types import Finding
from merkhet.analysis.model_descriptions import ModelDescription
from merkhet.core.ids import derived_seed
from merkhet.core.records import Question
from merkhet.core.text import metric_label
from merkhet.metrics.answer_table import AnswerTable, LazyRows
from merkhet.metrics.association import rank_correlation
from merkhet.metrics.bootstrap import Interval, class_weights, clustered_interval
from merkhet.metrics.metrics import ACCURACY, EXACT, F1, Metric, MetricNotApplicableError
from merkhet.metrics.ranks import FloatArray
from merkhet.metrics.score_table import collect_responses

Row = dict[str, Any]
NO_DOMAIN = "no domain"


@dataclass(frozen=True)
class Estimate:
    """A number with its confidence interval and sample size."""

    value: float | None
    low: float | None = None
    high: float | None = None
    n: int | None = None


TableRow = tuple[str | int | float | Estimate | None, ...]


@dataclass(frozen=True)
class Column:
    """A column of a table."""

    name: str
    kind: str = "text"
    """Kind of values: text, count, share (in percent), points (a difference of shares), number, correlation or p."""


def make_columns(*specs: str) -> tuple[Column, ...]:
    """Make columns from ``name`` or ``name:kind``, such as ``questions:count``."""
    return tuple(Column(name, kind or "text") for name, _, kind in (spec.partition(":") for spec in specs))


@dataclass(frozen=True)
class Table:
    """A table of texts, numbers and estimates."""

    caption: str
    columns: tuple[Column, ...]
    rows: tuple[TableRow, ...]
    """Rows with one cell per column; None is shown as a dash."""
    aside: bool = False
    """Whether the report shows the table collapsed."""
    unit: str = "questions"
    """What the ``n`` of an estimate counts. Numbers of few questions are grey."""


@dataclass(frozen=True)
class Figure:
    """Data of a figure that the report draws."""

    kind: str
    """``lines``, ``stack`` or ``bars``."""
    caption: str
    rows: tuple[Row, ...]
    """Data points, in drawing order.

    A row without a value marks its place, such as a setting that was not asked.
    ``lines``: x, line, value, low, high and n; one line for each value of ``line``. Numeric x are drawn to scale.
    ``stack``: bar, part and count; the parts of a bar are stacked.
    ``bars``: panel, x, bar, value, low, high and n; each panel has a group of bars for each x.
    """
    x: str = ""
    """Title of the x axis."""
    legend: str = ""
    """Title of the legend of ``bars``."""
    percent: bool | None = None
    """Whether values are shown in percent; None shows percent if all values lie between -1 and 1."""
    log: bool = False
    """Whether numeric x are drawn on a logarithmic axis."""
    zero: bool = True
    """Whether the axis of shares begins at 0; otherwise it begins near the smallest value."""
    y: str = ""
    """Title of the y axis."""
    unit: str = "questions"
    """What ``n`` counts. Bars and points of few questions are grey."""


@dataclass(frozen=True)
class Analysis:
    """Output of one analysis: tables, figures and sentences for the report."""

    name: str
    title: str
    explanation: str
    tables: tuple[Table, ...] = ()
    figures: tuple[Figure, ...] = ()
    sentences: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()
    """Findings that sentences with a verdict are rendered from. Those on designs are rendered by the run instead."""

    def as_json(self) -> dict[str, Any]:
        """Convert the analysis to JSON values; numbers that are not finite become null."""
        plain: dict[str, Any] = _plain({**asdict(self), "findings": [finding.as_json() for finding in self.findings]})
        return plain


@dataclass(frozen=True)
class Line:
    """A combination of model, probe and method, which is one line of a table of scores."""

    model: str
    probe: str
    method: str


@dataclass(frozen=True)
class AnalysisInput:
    """Tables and settings of one run that analyses read."""

    questions: Sequence[Row]
    """Rows of the questions table."""
    questions_by_id: Mapping[str, Question]
    """Question objects by question id."""
    answers: Sequence[Row]
    """Rows of the answers table."""
    clusters: Mapping[str, str]
    """Cluster id of each question, the fact that it depends on, by question id."""
    headline: Sequence[tuple[str, Metric]]
    """Headline tasks and their metrics."""
    scores: Sequence[Row] = ()
    """Rows of the scores table."""
    facts: Sequence[Row] = ()
    """Rows of the facts table."""
    baselines: frozenset[str] = frozenset()
    """Names of the models that are baselines."""
    data_card: Mapping[str, Any] = field(default_factory=dict)
    """Metadata of the questions: ``domains`` (names in order), ``knowledge_types`` (by domain) and ``names``."""
    premises: Mapping[str, tuple[tuple[str, str], ...]] = field(default_factory=dict)
    """Stated facts at the bottom of a conclusion's proof, as pairs of fact id and axiom, by question id."""
    entities: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Entity names in a question's prompt, by question id, if the suite records them."""
    options: AnalysisOptions = field(default_factory=AnalysisOptions)
    """Options of the study, with resolved paths."""
    premise_settings: Mapping[tuple[str, str], str] = field(default_factory=dict)
    """Presentation of the premises, such as "EX/IM", by model and question id."""
    training_records: Sequence[Mapping[str, Any]] = ()
    """Training records of the run.

    A record has learner, model, task, loss, ``epochs`` (loss and perhaps dev_f1 or dev_mrr_a) and kept_epoch. Records
    of further pre-training have objective and ``curve``; records of memorizing have ``seconds`` and ``statements``.
    """
    conditions: Mapping[str, Condition] = field(default_factory=dict)
    """Training condition of each model, if the run trains models under several conditions."""
    repeated_answers: Sequence[pa.Table] = ()
    """Answers of the trained models after each further training, with other seeds."""
    models: Mapping[str, ModelDescription] = field(default_factory=dict)
    """Size and training corpus of the models, by name; models of which nothing is known are left out."""
    trained: frozenset[str] = frozenset()
    """Names of the models that the run has trained."""
    seed: int = 0
    unusable_is_wrong: bool = False
    """Whether unusable questions count as wrong."""
    average_over: str | None = None
    """Column of the questions table whose classes a task's score is averaged over."""

    @cached_property
    def usable(self) -> dict[Line, dict[str, Row]]:
        """First usable answer to each question, by line (model, probe and method) and question id."""
        return {
            line: {question_id: answers[0] for question_id, answers in repeats.items()}
            for line, repeats in self._usable_repeats.items()
        }

    @cached_property
    def _usable_repeats(self) -> dict[Line, dict[str, list[Row]]]:
        by_line: dict[Line, dict[str, list[Row]]] = {}
        lines: dict[tuple[str, str, str], Line] = {}
        for answer in self.answers:
            key = (answer["model"], answer["probe"], answer["method"])
            if key not in lines:
                lines[key] = Line(*key)
                by_line[lines[key]] = {}
            if answer["unusable"] is None:
                by_line[lines[key]].setdefault(answer["question_id"], []).append(answer)
        for repeats in by_line.values():
            for answers in repeats.values():
                if len(answers) > 1:
                    answers.sort(key=lambda answer: answer.get("repeat") or 0)
        return by_line

    @cached_property
    def unusable(self) -> dict[Line, dict[str, str]]:
        """Reason why a question has no usable answer, by line (model, probe and method) and question id."""
        reasons: dict[Line, dict[str, str]] = {line: {} for line in self.usable}
        for answer in self.answers:
            if answer["unusable"] is not None:
                line = Line(answer["model"], answer["probe"], answer["method"])
                if answer["question_id"] not in self.usable[line]:
                    reasons[line].setdefault(answer["question_id"], answer["unusable"])
        return reasons

    @cached_property
    def labels(self) -> dict[Line, str]:
        """Label of each line (model, probe and method)."""
        return label_lines(self.usable)

    @cached_property
    def tasks(self) -> list[str]:
        """Tasks of the questions, headline tasks first."""
        tasks = [row["task"] for row in self.questions]
        present = set(tasks)
        return [task for task in dict.fromkeys([*(task for task, _ in self.headline), *tasks]) if task in present]

    @cached_property
    def domains(self) -> dict[str, str]:
        """Knowledge type (or '') of every domain of the data card and the questions, in the order of the card."""
        types = self.data_card.get("knowledge_types") or {}
        card_domains = {str(name): str(types.get(name) or "") for name in self.data_card.get("domains") or types}
        asked_domains = {row["domain"] for row in self.questions}
        additional = sorted(name for name in asked_domains if name is not None and name not in card_domains)
        return card_domains | dict.fromkeys(additional, "") | ({NO_DOMAIN: ""} if None in asked_domains else {})

    @property
    def has_domains(self) -> bool:
        """Whether the data card or a question names a domain."""
        return set(self.domains) != {NO_DOMAIN}

    def metric(self, task: str, line: Line) -> Metric:
        """Choose the metric of a task for one model, probe and method.

        Returns:
            The headline metric. Word F1 if the task has no headline metric, or if it needs ranks that the answers lack.
            Accuracy if the model only judged, because such answers have no words.
        """
        headline_metric = next((metric for name, metric in self.headline if name == task), F1)
        answers = self.usable[line].values()
        unranked = [row for row in answers if not row["gold_ranks"] or (row.get("outcome") and not row["ranked"])]
        for metric in (headline_metric, F1, ACCURACY) if unranked else ():
            try:
                metric.values(collect_responses(unranked, self.questions_by_id))
                return metric
            except MetricNotApplicableError:
                continue
        return headline_metric

    def values(self, line: Line, ids: Sequence[str], metric: Metric) -> FloatArray:
        """Compute the metric of each question as the mean over its repetitions; 0 without a usable answer."""
        tasks = [self.questions_by_id[question_id].task for question_id in ids]
        by_task = {task: self._task_values(line, task, metric) for task in set(tasks)}
        values = [by_task[task].get(question_id, 0.0) for task, question_id in zip(tasks, ids, strict=True)]
        return np.array(values, dtype=np.float64)

    def counted_ids(self, line: Line, task: str) -> list[str]:
        """Return the sorted ids of the questions of a task that count in the score of a line.

        These are the questions with a usable answer, and the unusable questions if they count as wrong.
        """
        return self._counted.get(line, {}).get(task, [])

    def mean(self, values: FloatArray, ids: Sequence[str], *seed_parts: str | int) -> Estimate:
        """Estimate the mean of one value per question, with a bootstrap interval clustered by fact."""
        seed = derived_seed(self.seed, *seed_parts)
        return estimate(clustered_interval(values, self.cluster_ids(ids), seed=seed), len(ids))

    def score(self, line: Line, ids: Sequence[str], metric: Metric, *seed_parts: str | int) -> Estimate:
        """Estimate the score of one model, probe and method on the questions ``ids``; see :meth:`mean`."""
        return self.mean(self.values(line, ids, metric), ids, *seed_parts, metric.name)

    def correlation(
        self, line: Line, ids: Sequence[str], metric: Metric, other: Mapping[str, float], *seed_parts: str | int
    ) -> Estimate:
        """Estimate the rank correlation (Spearman's rho) of the score with the value ``other`` of each question.

        Rho is positive if questions with a larger value have better scores.
        """
        values = (1.0 if metric.higher_is_better else -1.0) * self.values(line, ids, metric)
        others = np.array([other[question_id] for question_id in ids], dtype=np.float64)
        seed = derived_seed(self.seed, *seed_parts, metric.name)
        return estimate(rank_correlation(others, values, self.cluster_ids(ids), seed=seed), len(ids))

    def metric_labels(self, task: str, lines: Sequence[Line]) -> str:
        """Join the labels of the distinct metrics of a task over ``lines``."""
        return " and ".join(dict.fromkeys(metric_label(self.metric(task, line).name) for line in lines))

    def weights(self, ids: Sequence[str]) -> FloatArray:
        """Return weights that turn the mean over questions into the mean over the classes of ``average_over``."""
        return class_weights(np.array([self._classes.get(question_id, "") for question_id in ids], dtype=np.str_))

    @cached_property
    def _classes(self) -> dict[str, str]:
        column = self.average_over
        return {row["question_id"]: str(row[column]) for row in self.questions} if column else {}

    @cached_property
    def _counted(self) -> dict[Line, dict[str, list[str]]]:
        counted: dict[Line, dict[str, list[str]]] = {}
        for line, answers in self.usable.items():
            by_task = counted[line] = defaultdict(list)
            for question_id in sorted([*answers, *(self.unusable[line] if self.unusable_is_wrong else ())]):
                by_task[self.questions_by_id[question_id].task].append(question_id)
        return counted

    def _task_values(self, line: Line, task: str, metric: Metric) -> dict[str, float]:
        """Return the cached metric value of each answered question of a task, by question id."""
        cache = self._value_cache.setdefault((line, task), {})
        if metric not in cache:
            cell = self.answer_table.cell(line.model, task, line.probe, line.method)
            ids = [self.answer_table.ids[code] for code in cell.question_codes(wrong=False).tolist()]
            cache[metric] = dict(zip(ids, cell.values(metric).tolist(), strict=True))
        return cache[metric]

    @cached_property
    def answer_table(self) -> AnswerTable:
        """Answers as arrays."""
        if isinstance(self.answers, LazyRows) and self.answers.answers is not None:
            return self.answers.answers
        return AnswerTable(self.answers, self.questions_by_id)

    @cached_property
    def paired(self) -> PairedModels:
        """Answers of all models, paired by question."""
        return PairedModels(
            self.answer_table,
            self.questions_by_id,
            self.clusters,
            seed=self.seed,
            classes=self._classes,
            unusable_is_wrong=self.unusable_is_wrong,
            statements=bool(self.conditions),
            trained=self.trained,
            repeated=self.repeated_answers,
        )

    @cached_property
    def _value_cache(self) -> dict[tuple[Line, str], dict[Metric, dict[str, float]]]:
        return {}

    def right_probabilities(
        self, line: Line, ids: Sequence[str], metrics: Sequence[Metric] = (EXACT, ACCURACY)
    ) -> FloatArray:
        """Compute the probability that each answer is right.

        It is 0 or 1, unless right and wrong answers are tied for the first rank.

        Args:
            metrics: Metrics to try in order; the first metric that applies to the answers is used.
        """
        for metric in metrics[:-1]:
            with suppress(MetricNotApplicableError):
                return self.values(line, ids, metric)
        return self.values(line, ids, metrics[-1])

    def cluster_ids(self, ids: Sequence[str]) -> NDArray[np.int64]:
        """Return the cluster number of each question, its index among the sorted cluster ids."""
        indices = self._cluster_indices
        return np.array([indices[question_id] for question_id in ids], dtype=np.int64)

    @cached_property
    def _cluster_indices(self) -> dict[str, int]:
        order = {fact: index for index, fact in enumerate(sorted(set(self.clusters.values())))}
        return {question_id: order[fact] for question_id, fact in self.clusters.items()}


def estimate(interval: Interval, n: int) -> Estimate:
    """Convert an interval to an estimate; NaN becomes None."""
    value, low, high = (
        None if math.isnan(end) else float(end) for end in (interval.value, interval.low, interval.high)
    )
    return Estimate(value, low, high, n)


def label_lines(lines: Collection[Line]) -> dict[Line, str]:
    """Label each line by its model, followed by method and probe if needed to distinguish lines."""
    methods: dict[str, list[str]] = defaultdict(list)
    for line in lines:
        methods[line.model].append(line.method)
    return {line: _label(line, methods[line.model]) for line in lines}


def _label(line: Line, methods: Sequence[str]) -> str:
    if len(methods) == 1:
        return line.model
    return f"{line.model} ({'' if len(set(methods)) == len(methods) else f'{line.probe}, '}{line.method})"


def _plain(content: Any) -> Any:
    if isinstance(content, Mapping):
        return {str(key): _plain(value) for key, value in content.items()}
    if isinstance(content, list | tuple):
        return [_plain(value) for value in content]
    if isinstance(content, np.generic):
        content = content.item()
    return None if isinstance(content, float) and not math.isfinite(content) else content
