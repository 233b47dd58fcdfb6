"""Paired comparison of models by their answers to shared questions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from merkhet.analysis.comparison import Comparison, PairedModels, are_comparable, correct_comparisons
from merkhet.analysis.question_sets import describe_question_sets, withhold_verdicts
from merkhet.core.text import join_pairs, join_some, quote_name
from merkhet.engine._comparability import asked_question_ids
from merkhet.engine._run_collection import RunCollection
from merkhet.engine.score_step import question_classes, question_groups
from merkhet.metrics.bootstrap import class_weights
from merkhet.metrics.metrics import Metric

_MAX_NAMES = 6
Pair = tuple[str, str]


class PairedAnswers:
    """Answers of the compared models to the compared tasks, with the first method of each probe."""

    def __init__(
        self, collection: RunCollection, models: Sequence[str], headline: Sequence[tuple[str, Metric]]
    ) -> None:
        self.collection, self.headline = collection, list(headline)
        questions = collection.questions
        self.paired = PairedModels(
            self._select_answers(models, collection.answers),
            questions.by_id(),
            questions.clusters(),
            seed=collection.runs[0].study.seed,
            classes=question_classes(questions, collection.card.get("average_over")),
            unusable_is_wrong=bool(collection.card.get("unusable_is_wrong", False)),
            statements=collection.memorized,
            trained=collection.trained,
            repeated=[self._select_answers(models, table) for table in collection.repeated_answers],
        )
        self.models = [model for model in models if model in self.paired.models]

    def compare(self, pairs: Sequence[Pair], column: str | None = None) -> list[dict[str, Any]]:
        """Compare pairs of models on every task, and add the scores of both models to each comparison.

        If ``column`` is given, models are compared within each group of questions of that column.
        """
        groups = self._groups(column) if column else None
        comparisons = [
            comparison
            for pair in pairs
            if self._are_comparable(pair)
            for task, metric in self.headline
            for comparison in self.paired.compare(pair, task, metric, groups=groups, column=column)
        ]
        corrected = withhold_verdicts(correct_comparisons(comparisons), self.collection.conditions, self.paired.table)
        return [self._with_scores(comparison, groups) for comparison in corrected]

    def _groups(self, column: str) -> dict[str, str]:
        """Return the value of ``column`` for each question; questions without a value are left out."""
        groups = question_groups(self.collection.questions, [column], self.collection.memorized)
        return {name: group for name, values in groups.items() if (group := values[column]) is not None}

    def _are_comparable(self, pair: Pair) -> bool:
        return are_comparable(*(self.collection.conditions.get(model) for model in pair))

    def explain_missing(self, pairs: Sequence[Pair], comparisons: Sequence[Mapping[str, Any]]) -> list[str]:
        """Explain, for each task, which pairs of models are missing from ``comparisons`` and why."""
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

    def describe_question_sets(self, comparisons: Sequence[Mapping[str, Any]]) -> list[str]:
        """Say on which tasks the compared models of a run were asked different questions, as by their training."""
        kind = "statements" if self.collection.memorized else "questions"
        return describe_question_sets(self.paired.table, comparisons, kind)

    def methods_by_task(self, pairs: Sequence[Pair]) -> dict[str, dict[str, tuple[str, str]]]:
        """Return the probe and method whose answers are compared, by task and model."""
        ways_by_task: dict[str, dict[str, tuple[str, str]]] = {}
        for task in dict.fromkeys(task for task, _ in self.headline):
            for pair in pairs:
                probe = self.paired.shared_probe(pair, task)
                if probe is not None:
                    ways = ways_by_task.setdefault(task, {})
                    for model in pair:
                        ways.setdefault(model, (probe, self.paired.methods[model, task][probe]))
        return ways_by_task

    def name_methods(self, pairs: Sequence[Pair]) -> list[str]:
        """Name the methods that models are compared by, on the tasks that a model was asked by several methods."""
        methods: dict[tuple[str, str], set[tuple[str, str]]] = {}
        for model, task, probe, method in self.paired.table.cell_rows:
            methods.setdefault((model, task), set()).add((probe, method))
        tasks_by_ways: dict[str, list[str]] = {}
        for task, ways in self.methods_by_task(pairs).items():
            if any(len(methods[model, task]) > 1 for model in ways):
                names = sorted({f"{probe} ({method})" for probe, method in ways.values()})
                tasks_by_ways.setdefault(join_some(names, _MAX_NAMES), []).append(task)
        return [
            f"Models were asked by several methods; on {join_some(tasks, _MAX_NAMES)} they are compared by {names}."
            for names, tasks in tasks_by_ways.items()
        ]

    def question_ids(self, run_index: int) -> pa.Array:
        """Return the ids of the questions of the compared tasks that a run asked.

        The ids are those of :meth:`RunCollection.pair_ids`.
        """
        return asked_question_ids(self.collection, run_index, {task for task, _ in self.headline})

    def _select_answers(self, models: Sequence[str], answers: pa.Table) -> pa.Table:
        """Select the answers of the compared models to the compared tasks."""
        questions = self.collection.questions.questions
        tasks = pa.array(sorted({name for name, _ in self.headline}), pa.string())
        ids = questions.filter(pc.is_in(questions["task"], value_set=tasks))["question_id"].combine_chunks()
        is_selected = pc.is_in(answers["model"], value_set=pa.array(models, pa.string()))
        return answers.filter(pc.and_(is_selected, pc.is_in(answers["question_id"], value_set=ids)))

    def _with_scores(self, comparison: Comparison, groups: Mapping[str, str] | None) -> dict[str, Any]:
        metric = next(
            candidate
            for task, candidate in self.headline
            if (task, candidate.name) == (comparison.task, comparison.metric)
        )
        trainings = self.paired.training_values((comparison.model, comparison.other), comparison.task, metric)
        means: list[float | None] = [None, None]
        equal = False
        if trainings:
            codes = trainings[0].codes
            ids, classes = self.paired.table.ids, self.paired.classes[codes]
            inside = np.ones(len(codes), dtype=bool)
            if groups is not None:
                inside = np.array([groups.get(ids[code]) == comparison.group for code in codes.tolist()])
                classes = np.zeros_like(classes)
            if inside.any():
                weights = class_weights(classes[inside])
                sides = zip(*((shared.first, shared.second) for shared in trainings), strict=True)
                means = [float(np.mean([weights * values[inside] for values in side])) for side in sides]
                equal = all(np.array_equal(shared.first[inside], shared.second[inside]) for shared in trainings)
        properties = {"share": metric.share, "higher_is_better": metric.higher_is_better, "equal": equal}
        return {**asdict(comparison), "value": means[0], "other_value": means[1], **properties}

    def _missing_reason(self, pair: Pair, task: str, metric: Metric) -> str:
        first, second = (self.paired.methods.get((model, task), {}) for model in pair)
        if not first or not second:
            return "not asked of both"
        if not self._are_comparable(pair):
            return "trained under conditions that differ in more than one setting"
        if self.paired.shared_probe(pair, task) is None:
            return f"asked by different probes: {', '.join([*first, *second])}"
        shared = self.paired.shared_values(pair, task, metric)
        if shared is None:
            return f"{metric.name} needs ranks, and there are none"
        if not len(shared.codes):
            return "no question scored for both"
        if len(np.unique(self.paired.clusters.facts[shared.codes])) < 2:
            count = "one question" if len(shared.codes) == 1 else f"{len(shared.codes):,} questions, all about one fact"
            return f"only {count}"
        return f"{metric.name} is undefined"
