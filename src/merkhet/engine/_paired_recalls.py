"""Models that memorized, paired by the statements that both were asked: all that was recalled, not a sample of it."""

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
from merkhet.analysis.difference_text import join_pairs
from merkhet.analysis.types import quote_name
from merkhet.core.errors import InputError, did_you_mean
from merkhet.core.ids import derived_seed
from merkhet.engine._run_collection import Together
from merkhet.engine.combine_runs import parts_of
from merkhet.engine.memorize_steps import METHOD, PROBE, RecallPart, RecallReader
from merkhet.engine.recall_findings import RunPart, recall_findings
from merkhet.engine.suite_card import HeadlineScore
from merkhet.metrics.recall_scores import RECALL_GROUPS, align_recalls, paired_recall_difference, recall_values

_MOST_NAMED = 6
Pair = tuple[str, str]


class PairedRecalls:
    """What models recalled of the tasks that they are compared on."""

    def __init__(self, together: Together, models: Sequence[str], headline: Sequence[tuple[str, str]]) -> None:
        self.together, self.headline = together, list(headline)
        self.seed = together.runs[0].study.seed
        self.readers = {run.folder: RecallReader(run.folder) for run in together.runs}
        parts = [*parts_of(together), *_baseline_parts(together)]
        self.parts = {(part.model, part.task): (folder, part) for folder, part in parts if part.model in models}
        self.models = [model for model in models if any(name == model for name, _ in self.parts)]
        self._recalls = cache(lambda key: self._read(*self.parts[key]))

    def compare(self, pairs: Sequence[Pair]) -> list[dict[str, Any]]:
        """The pairs on every task, with the scores of both on the statements that they share.

        Compared are models under one condition, and conditions of one model that differ in one thing.
        """
        wanted = set(map(frozenset, pairs))
        headline = [HeadlineScore(task, metric) for task, metric in self.headline]
        found = [
            Comparison(**one)
            for one in recall_findings(list(self.parts.values()), headline, self.seed)["comparisons"]
            if frozenset((one["model"], one["other"])) in wanted
        ]
        return [self._scored(one) for one in correct_comparisons(found)]

    def compare_groups(self, pairs: Sequence[Pair], column: str) -> list[dict[str, Any]]:
        """The same within the groups that a column makes."""
        if column not in RECALL_GROUPS:
            hint = did_you_mean(column, RECALL_GROUPS)
            raise InputError(f"models that memorized cannot be compared by {column!r}; {hint}")
        compared = [(one["task"], one["metric"], (one["model"], one["other"])) for one in self.compare(pairs)]
        found = []
        for task, metric, pair in compared:
            statements, first, second = self._shared(pair, task)
            for group, own in _grouped(statements, column).items():
                seed = derived_seed(self.seed, task, metric, column, group)
                result, n = paired_recall_difference(own, first, second, metric, seed)
                if n and all(map(math.isfinite, (result.difference, result.low, result.high, result.p))):
                    facts = pc.count_distinct(own["fact_id"]).as_py()
                    one = Comparison(task, metric, *pair, **asdict(result), n=n, p_raw=result.p, facts=facts)
                    found.append(replace(one, group_column=column, group=group))
        return [self._scored(one) for one in correct_comparisons(found)]

    def reasons(self, pairs: Sequence[Pair], comparisons: Sequence[Mapping[str, Any]]) -> list[str]:
        """Why pairs are not compared on any task, in words."""
        there = {frozenset((one["model"], one["other"])) for one in comparisons}
        left = [" and ".join(map(quote_name, pair)) for pair in pairs if frozenset(pair) not in there]
        if not left:
            return []
        why = "for they share no statement, or stored under conditions that differ in more than one thing"
        return [f"Not compared, {why}: {join_pairs(left, _MOST_NAMED)}."]

    def asked_by(self, pairs: Sequence[Pair]) -> dict[str, dict[str, tuple[str, str]]]:
        """For each task, the probe and the method by which models are compared: there is one."""
        models = dict.fromkeys(name for pair in pairs for name in pair)
        return {task: dict.fromkeys(models, (PROBE, METHOD)) for task, _ in self.headline}

    def asked_in(self, place: int) -> pa.Array:
        """The ids of the statements of these tasks that a run asked."""
        tasks = {task for task, _ in self.headline}
        folder = self.together.runs[place].folder
        names = {part.asked for own, part in self.parts.values() if own == folder and part.task in tasks}
        tables = [self.readers[folder].statements(name)["statement_id"] for name in sorted(names)]
        chunks = [chunk for table in tables for chunk in table.chunks]
        return pc.unique(pa.chunked_array(chunks, pa.string())).cast(pa.string())

    def _read(self, folder: Path, part: RecallPart) -> tuple[pa.Table, pa.Table]:
        statements = self.readers[folder].statements(part.asked)
        return statements, self.readers[folder].recalls(part, statements)

    def _shared(self, pair: Pair, task: str) -> tuple[pa.Table, pa.Table, pa.Table]:
        """The statements that two models share, and what both recalled of all of theirs."""
        (statements, first), (others, second) = (self._recalls((model, task)) for model in pair)
        both = pc.is_in(statements["statement_id"], value_set=others["statement_id"].combine_chunks())
        return statements.filter(both), first, second

    def _scored(self, one: Comparison) -> dict[str, Any]:
        statements, *recalls = self._shared((one.model, one.other), one.task)
        if one.group_column:
            statements = _grouped(statements, one.group_column)[str(one.group)]
        values = [recall_values(align_recalls(statements, own), one.metric) for own in recalls]
        means = {"value": float(values[0].mean()), "other_value": float(values[1].mean())}
        about = {"share": True, "higher_is_better": True, "equal": bool(np.array_equal(values[0], values[1]))}
        return {**asdict(one), **means, **about}


def _grouped(statements: pa.Table, column: str) -> dict[str, pa.Table]:
    values = statements[column]
    if pa.types.is_boolean(values.type):
        values = pc.if_else(values, "yes", "no")
    return {
        str(value): statements.filter(pc.equal(values, value))
        for value in sorted(pc.unique(values).drop_null().to_pylist())
    }


def _baseline_parts(together: Together) -> list[RunPart]:
    """What the baselines were asked: the same as the models, worked out from what was stored under each condition."""
    found: dict[tuple[str, str], RunPart] = {}
    for place, run in enumerate(together.runs):
        names = [model["name"] for model in run.record.get("models", []) if model.get("kind") == "baseline"]
        for part in run.record["recalls"]:
            own = next((name for name in names if name.endswith(f", {part['condition']}")), None)
            own = own or (names[0] if len(names) == 1 else None)
            if own is not None:
                name = together.name(own, place)
                base = own.partition(", ")[0]
                own_part = {**part, "model": name, "base": base, "recalls": None}
                found[name, part["task"]] = run.folder, RecallPart.from_json(own_part)
    return list(found.values())
