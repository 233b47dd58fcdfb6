"""Models paired by the questions that both were asked: how far apart they are, and why some are not compared."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from merkhet.analysis.comparison import Comparison, compare_groups, compare_models, correct_comparisons, is_layer_method
from merkhet.analysis.difference_text import join_pairs, join_some
from merkhet.analysis.types import quote_name
from merkhet.core.records import Question
from merkhet.engine._run_collection import Together
from merkhet.engine.score_step import group_values, question_classes
from merkhet.metrics.bootstrap import class_weights
from merkhet.metrics.metrics import Metric, MetricNotApplicableError
from merkhet.metrics.ranks import FloatArray
from merkhet.metrics.score_table import collect_responses, mean_by_question, question_starts, scoring_rows

_MOST_NAMED = 6
Pair = tuple[str, str]
Values = tuple[np.ndarray[Any, np.dtype[np.str_]], FloatArray]
_READ = ["question_id", "model", "probe", "method", "repeat", "ranked", "golds", "gold_ranks", "gold_ties", "among"]


class PairedAnswers:
    """The answers of models to the tasks that they are compared on, by the first method of each probe."""

    def __init__(self, together: Together, models: Sequence[str], headline: Sequence[tuple[str, Metric]]) -> None:
        self.together, self.headline = together, list(headline)
        card = together.card
        self.seed = together.runs[0].study.seed
        self.unusable_is_wrong = bool(card.get("unusable_is_wrong", False))
        self.classes = question_classes(together.asked, card.get("average_over"))
        self.clusters = together.asked.clusters()
        self.answers, self.ways = self._chosen(models)
        self.models = [model for model in models if any(name == model for name, _ in self.ways)]
        self._values: dict[tuple[str, str, str, str], Values | None] = {}

    @cached_property
    def questions(self) -> dict[str, Question]:
        """The questions by their ids."""
        return self.together.asked.by_id()

    @cached_property
    def rows(self) -> dict[str, list[dict[str, Any]]]:
        """The answers of each model, sorted by question."""
        found: dict[str, list[dict[str, Any]]] = {model: [] for model in self.models}
        for row in sorted(scoring_rows(self.answers), key=lambda row: (row["question_id"], row["repeat"] or 0)):
            found[row["model"]].append(row)
        return found

    def compare(self, pairs: Sequence[Pair]) -> list[dict[str, Any]]:
        """The pairs on every task, with the scores of both on the questions that they share."""
        found = [one for pair in pairs for one in compare_models(**self._given(pair, self.headline))]
        return [self._scored(one) for one in correct_comparisons(_numbers(found))]

    def compare_groups(self, pairs: Sequence[Pair], column: str) -> list[dict[str, Any]]:
        """The same within the groups that a column makes."""
        groups = {
            row["question_id"]: value
            for row in self.together.asked.questions.to_pylist()
            if (value := group_values(row, self.questions[row["question_id"]], [column])[column]) is not None
        }
        found = [
            one
            for pair in pairs
            for one in compare_groups(**self._given(pair, self.headline), groups=groups, column=column)
        ]
        return [self._scored(one, groups) for one in correct_comparisons(_numbers(found))]

    def reasons(self, pairs: Sequence[Pair], comparisons: Sequence[Mapping[str, Any]]) -> list[str]:
        """Why pairs are not compared on some tasks, in words."""
        there = {(frozenset((one["model"], one["other"])), one["task"], one["metric"]) for one in comparisons}
        left: dict[tuple[str, str], dict[str, None]] = {}
        for task, metric in self.headline:
            for pair in pairs:
                if (frozenset(pair), task, metric.name) not in there:
                    why = self._reason(pair, task, metric)
                    left.setdefault((why, task), {})[" and ".join(map(quote_name, pair))] = None
        said: dict[tuple[str, tuple[str, ...]], list[str]] = {}
        for (why, task), own in left.items():
            said.setdefault((why, tuple(own)), []).append(task)
        return [
            f"Not compared on {join_some(tasks, _MOST_NAMED)} ({why}): {join_pairs(own, _MOST_NAMED)}."
            for (why, own), tasks in said.items()
        ]

    def asked_by(self, pairs: Sequence[Pair]) -> dict[str, dict[str, tuple[str, str]]]:
        """For each task, the probe and the method by which models are compared."""
        found: dict[str, dict[str, tuple[str, str]]] = {}
        for task in dict.fromkeys(task for task, _ in self.headline):
            for pair in pairs:
                probe = self._probe(pair, task)
                if probe is not None:
                    own = found.setdefault(task, {})
                    own.update({model: (probe, self.ways[model, task][probe]) for model in pair if model not in own})
        return found

    def asked_in(self, place: int) -> pa.Array:
        """The ids of the questions of these tasks that a run asked."""
        tasks = pa.array(sorted({task for task, _ in self.headline}), pa.string())
        table = self.together.runs[place].questions.questions
        ids = table.filter(pc.is_in(table["task"], value_set=tasks))["question_id"]
        answered = pc.unique(self.together.runs[place].answers["question_id"])
        return ids.filter(pc.is_in(ids, value_set=answered)).combine_chunks()

    def _chosen(self, models: Sequence[str]) -> tuple[pa.Table, dict[Pair, dict[str, str]]]:
        """The answers that count, and for each model and task the method of every probe: the first, and no layer's."""
        answers, asked = self.together.answers, self.together.asked.questions
        place = pc.index_in(answers["question_id"], value_set=asked["question_id"].combine_chunks())
        task = asked["task"].combine_chunks().take(place.combine_chunks())
        tasks = pa.array(sorted({name for name, _ in self.headline}), pa.string())
        keep = pc.and_(pc.is_in(answers["model"], value_set=pa.array(models, pa.string())), pc.is_in(task, tasks))
        keep = pc.fill_null(keep, False)
        answers, task = answers.select([*_READ, "unusable"]).filter(keep), task.filter(keep.combine_chunks())
        columns = [_codes(column) for column in (answers["model"], task, answers["probe"], answers["method"])]
        key = np.zeros(answers.num_rows, dtype=np.int64)
        for code, names in columns:
            key = key * (len(names) + 1) + code
        _, first, inverse = np.unique(key, return_index=True, return_inverse=True)
        combinations = [tuple(names[code[row]] for code, names in columns) for row in first]
        ways: dict[Pair, dict[str, str]] = {}
        for place in sorted(
            range(len(first)), key=lambda place: (is_layer_method(combinations[place][3]), first[place])
        ):
            model, name, probe, method = combinations[place]
            ways.setdefault((model, name), {}).setdefault(probe, method)
        counts = np.array(
            [ways[model, name][probe] == method for model, name, probe, method in combinations], dtype=bool
        )
        return answers.filter(pa.array(counts[inverse])) if len(first) else answers, ways

    def _given(self, pair: Pair, headline: Sequence[tuple[str, Metric]]) -> dict[str, Any]:
        return {
            "answers": [row for model in pair for row in self.rows[model]],
            "questions": self.questions,
            "clusters": self.clusters,
            "headline": headline,
            "seed": self.seed,
            "classes": self.classes,
            "unusable_is_wrong": self.unusable_is_wrong,
        }

    def _probe(self, pair: Pair, task: str) -> str | None:
        first, second = (self.ways.get((model, task), {}) for model in pair)
        return next((probe for probe in first if probe in second), None)

    def values(self, model: str, task: str, probe: str, metric: Metric) -> Values | None:
        """Questions with the model's values, in order; None where the metric has none for such answers."""
        key = (model, task, probe, metric.name)
        if key not in self._values:
            rows = [
                row
                for row in self.rows[model]
                if row["probe"] == probe and self.questions[row["question_id"]].task == task
            ]
            usable = [row for row in rows if row["unusable"] is None]
            firsts = question_starts([row["question_id"] for row in usable])
            ids = [usable[place]["question_id"] for place in firsts]
            wrong = self.unusable_is_wrong and metric.share and metric.higher_is_better
            missing = sorted({row["question_id"] for row in rows}.difference(ids)) if wrong else []
            try:
                own = (
                    mean_by_question(metric.values(collect_responses(usable, self.questions)), firsts)
                    if usable
                    else np.zeros(0)
                )
            except MetricNotApplicableError:
                self._values[key] = None
                return None
            own = np.concatenate([own, np.zeros(len(missing))])
            known = np.isfinite(own)
            self._values[key] = np.array([*ids, *missing], dtype=np.str_)[known], own[known]
        return self._values[key]

    def _both(self, pair: Pair, task: str, metric: Metric) -> tuple[list[str], FloatArray, FloatArray] | None:
        """The questions that two models share, with the values of both; None where there are no values."""
        probe = self._probe(pair, task)
        if probe is None:
            return None
        own, others = (self.values(model, task, probe, metric) for model in pair)
        if own is None or others is None:
            return None
        shared, first, second = np.intersect1d(own[0], others[0], assume_unique=True, return_indices=True)
        return shared.tolist(), own[1][first], others[1][second]

    def _scored(self, one: Comparison, groups: Mapping[str, str] | None = None) -> dict[str, Any]:
        metric = next(found for task, found in self.headline if (task, found.name) == (one.task, one.metric))
        both = self._both((one.model, one.other), one.task, metric)
        means: list[float | None] = [None, None]
        equal = False
        if both is not None:
            ids, *values = both
            inside = np.array([groups is None or groups.get(name) == one.group for name in ids])
            kinds = np.array([self.classes.get(name, "") for name, kept in zip(ids, inside, strict=True) if kept])
            if groups is not None:
                kinds = np.zeros(len(kinds))
            if len(kinds):
                means = [float(np.mean(class_weights(kinds) * own[inside])) for own in values]
                equal = bool(np.array_equal(values[0][inside], values[1][inside]))
        about = {"share": metric.share, "higher_is_better": metric.higher_is_better, "equal": equal}
        return {**asdict(one), "value": means[0], "other_value": means[1], **about}

    def _reason(self, pair: Pair, task: str, metric: Metric) -> str:
        first, second = (self.ways.get((model, task), {}) for model in pair)
        if not first or not second:
            return "not asked of both"
        if self._probe(pair, task) is None:
            return f"asked by different probes: {', '.join([*first, *second])}"
        both = self._both(pair, task, metric)
        if both is None:
            return f"{metric.name} needs ranks, and there are none"
        shared = both[0]
        if not shared:
            return "no question that both could be asked"
        if len({self.clusters[name] for name in shared}) < 2:
            count = "one question" if len(shared) == 1 else f"{len(shared)} questions, all about one fact"
            return f"only {count}"
        return f"{metric.name} is not a number"


def _codes(column: Any) -> tuple[np.ndarray[Any, np.dtype[np.int64]], list[str]]:
    encoded = pc.dictionary_encode(column)
    encoded = encoded.combine_chunks() if isinstance(encoded, pa.ChunkedArray) else encoded
    if isinstance(encoded, pa.ChunkedArray):  # An empty column has no chunk to combine.
        return np.zeros(0, dtype=np.int64), []
    return encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64), encoded.dictionary.to_pylist()


def _numbers(found: Sequence[Comparison]) -> list[Comparison]:
    """Those that are numbers: what has none is not compared."""
    return [one for one in found if all(map(math.isfinite, (one.difference, one.low, one.high, one.p)))]
