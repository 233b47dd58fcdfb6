"""Paired comparison of models by their answers to shared questions."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from merkhet.analysis.comparison import Comparison, compare_models, correct_comparisons, is_layer_method
from merkhet.core.records import Question
from merkhet.core.text import join_pairs, join_some, quote_name
from merkhet.engine._run_collection import RunCollection
from merkhet.engine.score_step import group_values, question_classes
from merkhet.metrics.bootstrap import class_weights
from merkhet.metrics.metrics import Metric, MetricNotApplicableError
from merkhet.metrics.ranks import FloatArray
from merkhet.metrics.score_table import collect_responses, mean_by_question, question_starts, scoring_rows

_MAX_NAMES = 6
Pair = tuple[str, str]
Values = tuple[np.ndarray[Any, np.dtype[np.str_]], FloatArray]
_COLUMNS = ["question_id", "model", "probe", "method", "repeat", "ranked", "golds", "gold_ranks", "gold_ties", "among"]


class PairedAnswers:
    """Answers of models to the tasks that they are compared on, by the first method of each probe."""

    def __init__(
        self, collection: RunCollection, models: Sequence[str], headline: Sequence[tuple[str, Metric]]
    ) -> None:
        self.collection, self.headline = collection, list(headline)
        card = collection.card
        self.seed = collection.runs[0].study.seed
        self.unusable_is_wrong = bool(card.get("unusable_is_wrong", False))
        self.classes = question_classes(collection.questions, card.get("average_over"))
        self.clusters = collection.questions.clusters()
        self.answers, self.ways = self._select_answers(models)
        self.models = [model for model in models if any(name == model for name, _ in self.ways)]
        self._values: dict[tuple[str, str, str, str], Values | None] = {}

    @cached_property
    def questions(self) -> dict[str, Question]:
        """The questions by their ids."""
        return self.collection.questions.by_id()

    @cached_property
    def rows(self) -> dict[str, list[dict[str, Any]]]:
        """The answers of each model, sorted by question."""
        rows_by_model: dict[str, list[dict[str, Any]]] = {model: [] for model in self.models}
        for row in sorted(scoring_rows(self.answers), key=lambda row: (row["question_id"], row["repeat"] or 0)):
            rows_by_model[row["model"]].append(row)
        return rows_by_model

    def compare(self, pairs: Sequence[Pair]) -> list[dict[str, Any]]:
        """Compare pairs of models on every task; add both scores on the shared questions."""
        comparisons = [
            comparison
            for pair in pairs
            for comparison in compare_models(**self._comparison_arguments(pair, self.headline))
        ]
        return [self._with_scores(comparison) for comparison in correct_comparisons(_finite(comparisons))]

    def compare_groups(self, pairs: Sequence[Pair], column: str) -> list[dict[str, Any]]:
        """Compare pairs of models within each group of a column."""
        groups = {
            row["question_id"]: value
            for row in self.collection.questions.questions.to_pylist()
            if (value := group_values(row, self.questions[row["question_id"]], [column])[column]) is not None
        }
        comparisons = [
            comparison
            for pair in pairs
            for comparison in compare_models(
                **self._comparison_arguments(pair, self.headline), groups=groups, column=column
            )
        ]
        return [self._with_scores(comparison, groups) for comparison in correct_comparisons(_finite(comparisons))]

    def explain_missing(self, pairs: Sequence[Pair], comparisons: Sequence[Mapping[str, Any]]) -> list[str]:
        """Explain which pairs are not compared on which tasks."""
        compared = {
            (frozenset((comparison["model"], comparison["other"])), comparison["task"], comparison["metric"])
            for comparison in comparisons
        }
        pairs_by_reason: dict[tuple[str, str], dict[str, None]] = {}
        for task, metric in self.headline:
            for pair in pairs:
                if (frozenset(pair), task, metric.name) not in compared:
                    reason = self._missing_reason(pair, task, metric)
                    pairs_by_reason.setdefault((reason, task), {})[" and ".join(map(quote_name, pair))] = None
        tasks_by_reason: dict[tuple[str, tuple[str, ...]], list[str]] = {}
        for (reason, task), names in pairs_by_reason.items():
            tasks_by_reason.setdefault((reason, tuple(names)), []).append(task)
        return [
            f"Not compared on {join_some(tasks, _MAX_NAMES)} ({reason}): {join_pairs(names, _MAX_NAMES)}."
            for (reason, names), tasks in tasks_by_reason.items()
        ]

    def methods_by_task(self, pairs: Sequence[Pair]) -> dict[str, dict[str, tuple[str, str]]]:
        """Return the probe and method by which each model is compared, by task and model."""
        ways_by_task: dict[str, dict[str, tuple[str, str]]] = {}
        for task in dict.fromkeys(task for task, _ in self.headline):
            for pair in pairs:
                probe = self._shared_probe(pair, task)
                if probe is not None:
                    ways = ways_by_task.setdefault(task, {})
                    ways.update({model: (probe, self.ways[model, task][probe]) for model in pair if model not in ways})
        return ways_by_task

    def question_ids(self, run_index: int) -> pa.Array:
        """Return the ids of the questions of the compared tasks that a run asked."""
        tasks = pa.array(sorted({task for task, _ in self.headline}), pa.string())
        table = self.collection.runs[run_index].questions.questions
        ids = table.filter(pc.is_in(table["task"], value_set=tasks))["question_id"]
        answered = pc.unique(self.collection.runs[run_index].answers["question_id"])
        return ids.filter(pc.is_in(ids, value_set=answered)).combine_chunks()

    def _select_answers(self, models: Sequence[str]) -> tuple[pa.Table, dict[Pair, dict[str, str]]]:
        """Select the answers to compare, and the method of every probe by model and task.

        The method is the first that is not a layer's.
        """
        answers, questions = self.collection.answers, self.collection.questions.questions
        positions = pc.index_in(answers["question_id"], value_set=questions["question_id"].combine_chunks())
        task = questions["task"].combine_chunks().take(positions.combine_chunks())
        tasks = pa.array(sorted({name for name, _ in self.headline}), pa.string())
        keep = pc.and_(pc.is_in(answers["model"], value_set=pa.array(models, pa.string())), pc.is_in(task, tasks))
        keep = pc.fill_null(keep, False)
        answers, task = answers.select([*_COLUMNS, "unusable"]).filter(keep), task.filter(keep.combine_chunks())
        columns = [_encode(column) for column in (answers["model"], task, answers["probe"], answers["method"])]
        key = np.zeros(answers.num_rows, dtype=np.int64)
        for code, names in columns:
            key = key * (len(names) + 1) + code
        _, first, inverse = np.unique(key, return_index=True, return_inverse=True)
        combinations = [tuple(names[code[row]] for code, names in columns) for row in first]
        ways: dict[Pair, dict[str, str]] = {}
        for index in sorted(
            range(len(first)), key=lambda index: (is_layer_method(combinations[index][3]), first[index])
        ):
            model, name, probe, method = combinations[index]
            ways.setdefault((model, name), {}).setdefault(probe, method)
        selected = np.array(
            [ways[model, name][probe] == method for model, name, probe, method in combinations], dtype=bool
        )
        return answers.filter(pa.array(selected[inverse])) if len(first) else answers, ways

    def _comparison_arguments(self, pair: Pair, headline: Sequence[tuple[str, Metric]]) -> dict[str, Any]:
        return {
            "answers": [row for model in pair for row in self.rows[model]],
            "questions": self.questions,
            "clusters": self.clusters,
            "headline": headline,
            "seed": self.seed,
            "classes": self.classes,
            "unusable_is_wrong": self.unusable_is_wrong,
        }

    def _shared_probe(self, pair: Pair, task: str) -> str | None:
        first, second = (self.ways.get((model, task), {}) for model in pair)
        return next((probe for probe in first if probe in second), None)

    def values(self, model: str, task: str, probe: str, metric: Metric) -> Values | None:
        """Return question ids and the model's metric values; None if the metric needs ranks and there are none."""
        key = (model, task, probe, metric.name)
        if key not in self._values:
            rows = [
                row
                for row in self.rows[model]
                if row["probe"] == probe and self.questions[row["question_id"]].task == task
            ]
            usable = [row for row in rows if row["unusable"] is None]
            firsts = question_starts([row["question_id"] for row in usable])
            ids = [usable[index]["question_id"] for index in firsts]
            missing_is_wrong = self.unusable_is_wrong and metric.share and metric.higher_is_better
            missing = sorted({row["question_id"] for row in rows}.difference(ids)) if missing_is_wrong else []
            try:
                values = (
                    mean_by_question(metric.values(collect_responses(usable, self.questions)), firsts)
                    if usable
                    else np.zeros(0)
                )
            except MetricNotApplicableError:
                self._values[key] = None
                return None
            values = np.concatenate([values, np.zeros(len(missing))])
            finite = np.isfinite(values)
            self._values[key] = np.array([*ids, *missing], dtype=np.str_)[finite], values[finite]
        return self._values[key]

    def _shared_values(self, pair: Pair, task: str, metric: Metric) -> tuple[list[str], FloatArray, FloatArray] | None:
        """Return the shared question ids with the values of both models; None if there are no values."""
        probe = self._shared_probe(pair, task)
        if probe is None:
            return None
        first_values, second_values = (self.values(model, task, probe, metric) for model in pair)
        if first_values is None or second_values is None:
            return None
        shared, first, second = np.intersect1d(
            first_values[0], second_values[0], assume_unique=True, return_indices=True
        )
        return shared.tolist(), first_values[1][first], second_values[1][second]

    def _with_scores(self, comparison: Comparison, groups: Mapping[str, str] | None = None) -> dict[str, Any]:
        metric = next(
            candidate
            for task, candidate in self.headline
            if (task, candidate.name) == (comparison.task, comparison.metric)
        )
        both = self._shared_values((comparison.model, comparison.other), comparison.task, metric)
        means: list[float | None] = [None, None]
        equal = False
        if both is not None:
            ids, *values = both
            inside = np.array([groups is None or groups.get(name) == comparison.group for name in ids])
            classes = np.array(
                [self.classes.get(name, "") for name, is_inside in zip(ids, inside, strict=True) if is_inside]
            )
            if groups is not None:
                classes = np.zeros(len(classes))
            if len(classes):
                means = [float(np.mean(class_weights(classes) * model_values[inside])) for model_values in values]
                equal = bool(np.array_equal(values[0][inside], values[1][inside]))
        properties = {"share": metric.share, "higher_is_better": metric.higher_is_better, "equal": equal}
        return {**asdict(comparison), "value": means[0], "other_value": means[1], **properties}

    def _missing_reason(self, pair: Pair, task: str, metric: Metric) -> str:
        first, second = (self.ways.get((model, task), {}) for model in pair)
        if not first or not second:
            return "not asked of both"
        if self._shared_probe(pair, task) is None:
            return f"asked by different probes: {', '.join([*first, *second])}"
        both = self._shared_values(pair, task, metric)
        if both is None:
            return f"{metric.name} needs ranks, and there are none"
        shared = both[0]
        if not shared:
            return "no question that both could be asked"
        if len({self.clusters[name] for name in shared}) < 2:
            count = "one question" if len(shared) == 1 else f"{len(shared)} questions, all about one fact"
            return f"only {count}"
        return f"{metric.name} is not a number"


def _encode(column: Any) -> tuple[np.ndarray[Any, np.dtype[np.int64]], list[str]]:
    encoded = pc.dictionary_encode(column)
    encoded = encoded.combine_chunks() if isinstance(encoded, pa.ChunkedArray) else encoded
    if isinstance(encoded, pa.ChunkedArray):  # An empty column has no chunk to combine.
        return np.zeros(0, dtype=np.int64), []
    return encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64), encoded.dictionary.to_pylist()


def _finite(comparisons: Sequence[Comparison]) -> list[Comparison]:
    """Drop comparisons without finite numbers."""
    return [
        comparison
        for comparison in comparisons
        if all(map(math.isfinite, (comparison.difference, comparison.low, comparison.high, comparison.p)))
    ]
