"""Paired comparison of memorizing models by all statements that both were asked."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from merkhet.analysis.comparison import Comparison, correct_comparisons
from merkhet.core.errors import InputError, did_you_mean
from merkhet.core.ids import derived_seed
from merkhet.core.text import join_pairs, quote_name
from merkhet.engine._run_collection import RunCollection
from merkhet.engine.combine_runs import collect_recall_parts
from merkhet.engine.memorize_steps import METHOD, PROBE, RecallPart, RecallReader
from merkhet.engine.recall_findings import RunPart, recall_findings
from merkhet.engine.suite_card import HeadlineScore
from merkhet.metrics.recall_scores import RECALL_GROUPS, align_recalls, paired_recall_difference, recall_values

_MAX_NAMES = 6
Pair = tuple[str, str]


class PairedRecalls:
    """Recalls of models on the tasks that they are compared on."""

    def __init__(self, collection: RunCollection, models: Sequence[str], headline: Sequence[tuple[str, str]]) -> None:
        self.collection, self.headline = collection, list(headline)
        self.seed = collection.runs[0].study.seed
        self.readers = {run.folder: RecallReader(run.folder) for run in collection.runs}
        parts = [*collect_recall_parts(collection), *_baseline_parts(collection)]
        self.parts = {(part.model, part.task): (folder, part) for folder, part in parts if part.model in models}
        self.models = [model for model in models if any(name == model for name, _ in self.parts)]
        self._recalls = cache(lambda key: self._read(*self.parts[key]))

    def compare(self, pairs: Sequence[Pair]) -> list[dict[str, Any]]:
        """Compare pairs of models on every task; add both scores on the shared statements.

        Comparable are models under one condition, and conditions of one model that differ in one setting.
        """
        requested = set(map(frozenset, pairs))
        headline = [HeadlineScore(task, metric) for task, metric in self.headline]
        comparisons = [
            Comparison(**comparison)
            for comparison in recall_findings(list(self.parts.values()), headline, self.seed)["comparisons"]
            if frozenset((comparison["model"], comparison["other"])) in requested
        ]
        return [self._with_scores(comparison) for comparison in correct_comparisons(comparisons)]

    def compare_groups(self, pairs: Sequence[Pair], column: str) -> list[dict[str, Any]]:
        """Compare pairs of models within each group of a column."""
        if column not in RECALL_GROUPS:
            hint = did_you_mean(column, RECALL_GROUPS)
            raise InputError(f"models that memorized cannot be compared by {column!r}; {hint}")
        entries = [
            (comparison["task"], comparison["metric"], (comparison["model"], comparison["other"]))
            for comparison in self.compare(pairs)
        ]
        comparisons = []
        for task, metric, pair in entries:
            statements, first, second = self._shared_recalls(pair, task)
            for group, group_statements in _split_by_column(statements, column).items():
                seed = derived_seed(self.seed, task, metric, column, group)
                result, n = paired_recall_difference(group_statements, first, second, metric, seed)
                if n and all(map(math.isfinite, (result.difference, result.low, result.high, result.p))):
                    facts = pc.count_distinct(group_statements["fact_id"]).as_py()
                    comparison = Comparison(task, metric, *pair, **asdict(result), n=n, p_raw=result.p, facts=facts)
                    comparisons.append(replace(comparison, group_column=column, group=group))
        return [self._with_scores(comparison) for comparison in correct_comparisons(comparisons)]

    def explain_missing(self, pairs: Sequence[Pair], comparisons: Sequence[Mapping[str, Any]]) -> list[str]:
        """Explain which pairs are not compared on any task."""
        compared = {frozenset((comparison["model"], comparison["other"])) for comparison in comparisons}
        missing = [" and ".join(map(quote_name, pair)) for pair in pairs if frozenset(pair) not in compared]
        if not missing:
            return []
        reason = "for they share no statement, or stored under conditions that differ in more than one thing"
        return [f"Not compared, {reason}: {join_pairs(missing, _MAX_NAMES)}."]

    def methods_by_task(self, pairs: Sequence[Pair]) -> dict[str, dict[str, tuple[str, str]]]:
        """Return the probe and method by which each model is compared, by task and model; all have the same."""
        models = dict.fromkeys(name for pair in pairs for name in pair)
        return {task: dict.fromkeys(models, (PROBE, METHOD)) for task, _ in self.headline}

    def question_ids(self, run_index: int) -> pa.Array:
        """Return the ids of the statements of the compared tasks that a run asked."""
        tasks = {task for task, _ in self.headline}
        folder = self.collection.runs[run_index].folder
        names = {
            part.asked for part_folder, part in self.parts.values() if part_folder == folder and part.task in tasks
        }
        tables = [self.readers[folder].statements(name)["statement_id"] for name in sorted(names)]
        chunks = [chunk for table in tables for chunk in table.chunks]
        return pc.unique(pa.chunked_array(chunks, pa.string())).cast(pa.string())

    def _read(self, folder: Path, part: RecallPart) -> tuple[pa.Table, pa.Table]:
        statements = self.readers[folder].statements(part.asked)
        return statements, self.readers[folder].recalls(part, statements)

    def _shared_recalls(self, pair: Pair, task: str) -> tuple[pa.Table, pa.Table, pa.Table]:
        """Return the shared statements, and all recalls of each model."""
        (statements, first), (other_statements, second) = (self._recalls((model, task)) for model in pair)
        is_shared = pc.is_in(statements["statement_id"], value_set=other_statements["statement_id"].combine_chunks())
        return statements.filter(is_shared), first, second

    def _with_scores(self, comparison: Comparison) -> dict[str, Any]:
        statements, *recalls = self._shared_recalls((comparison.model, comparison.other), comparison.task)
        if comparison.group_column:
            statements = _split_by_column(statements, comparison.group_column)[str(comparison.group)]
        values = [
            recall_values(align_recalls(statements, model_recalls), comparison.metric) for model_recalls in recalls
        ]
        means = {"value": float(values[0].mean()), "other_value": float(values[1].mean())}
        properties = {"share": True, "higher_is_better": True, "equal": bool(np.array_equal(values[0], values[1]))}
        return {**asdict(comparison), **means, **properties}


def _split_by_column(statements: pa.Table, column: str) -> dict[str, pa.Table]:
    values = statements[column]
    if pa.types.is_boolean(values.type):
        values = pc.if_else(values, "yes", "no")
    return {
        str(value): statements.filter(pc.equal(values, value))
        for value in sorted(pc.unique(values).drop_null().to_pylist())
    }


def _baseline_parts(collection: RunCollection) -> list[RunPart]:
    """Make parts for the baselines, whose recalls are computed from what was stored under each condition."""
    parts: dict[tuple[str, str], RunPart] = {}
    for run_index, run in enumerate(collection.runs):
        names = [model["name"] for model in run.record.get("models", []) if model.get("kind") == "baseline"]
        for part in run.record["recalls"]:
            baseline = next((name for name in names if name.endswith(f", {part['condition']}")), None)
            baseline = baseline or (names[0] if len(names) == 1 else None)
            if baseline is not None:
                name = collection.name(baseline, run_index)
                base = baseline.partition(", ")[0]
                content = {**part, "model": name, "base": base, "recalls": None}
                parts[name, part["task"]] = run.folder, RecallPart.from_json(content)
    return list(parts.values())
