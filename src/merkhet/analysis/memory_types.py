"""Input types and wording helpers of the analyses of memorizing runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import pyarrow as pa

from merkhet.analysis.comparison import Comparison, correct_comparisons
from merkhet.analysis.types import Analysis, Estimate
from merkhet.core.ids import derived_seed
from merkhet.core.text import percent
from merkhet.metrics.bootstrap import PairedDifference
from merkhet.metrics.recall_scores import RECALL_GROUPS, RECALL_METRICS, frequency_recalls, paired_recall_difference

LABELS = {"acc@1": "Acc@1", "acc@5": "Acc@5", "hit@5": "Hit@5", "hit@10": "Hit@10"}
CONDITIONS = ("facts", "conflict", "static", "dynamic")
"""Keys of a condition."""
STATEMENT = "statement"
FREQUENCY = "frequency"
INTERVALS = (
    "Intervals are of 95% and take the statements of one fact, and those that are one prompt, as one observation "
    "each. p-values of a table are Holm-corrected over it; those against the baseline are not corrected. All this is "
    "about one training of each model: another seed, or only another number of threads, gives another model, which on "
    "questions in other words may differ by more than the intervals and p-values say. Train several times "
    "(options.trainings) before you conclude something about a way of training."
)
Row = dict[str, Any]


@dataclass(frozen=True)
class MemorizedModel:
    """One model that memorized facts under one condition."""

    model: str
    """Name in the scores."""
    base: str
    """The model before memorizing."""
    condition: Mapping[str, Any]
    """What was stored and how: facts, conflict, static, dynamic."""
    record: Mapping[str, Any]
    """Training record."""
    tables_by_task: Mapping[str, tuple[pa.Table, pa.Table]]
    """Statements and recalls of each task. Values may be read from files, so look up one task at a time."""

    @property
    def tasks(self) -> frozenset[str]:
        """The tasks that were asked; reads no table."""
        return frozenset(self.tables_by_task)

    @property
    def conflict(self) -> bool:
        """Whether statements with several right answers were stored too."""
        return self.condition.get("conflict", "with") in (True, "with")

    @property
    def static(self) -> bool:
        """Whether facts were stored without their times."""
        return bool(self.condition.get("static"))

    @property
    def facts(self) -> int | None:
        """The number of stored facts."""
        return self.condition.get("facts")


@dataclass(frozen=True)
class MemoryInput:
    """The tables of one memorizing run, as analyses read them."""

    experiment: str
    models: tuple[MemorizedModel, ...]
    scores: Sequence[Row]
    """Rows of scores, with those of the baseline: its model is "frequency", followed by the condition's suffix of a
    model's name where there are several conditions."""
    seed: int = 0
    symbols: pa.Table | None = None
    """All symbols; needed to compare models with the baseline statement by statement."""

    @property
    def bases(self) -> dict[str, list[MemorizedModel]]:
        """The conditions of each base model, in order."""
        by_base: dict[str, list[MemorizedModel]] = {}
        for memorized in self.models:
            by_base.setdefault(memorized.base, []).append(memorized)
        return by_base

    @property
    def metrics(self) -> list[str]:
        """The metrics that have scores."""
        scored = {row["metric"] for row in self.scores}
        return [metric for metric in RECALL_METRICS if metric in scored]

    def cell(self, model: str, task: str, metric: str, **groups: str) -> Estimate | None:
        """Find a score with its interval: over all statements of the task, or over the named groups."""
        row = self._rows.get((model, task, metric, *_key(groups)))
        return None if row is None else Estimate(row["value"], row["low"], row["high"], row["n"])

    def chance(self, model: str, task: str, metric: str, **groups: str) -> float | None:
        """Find the chance level: guessing among all symbols."""
        row = self._rows.get((model, task, metric, *_key(groups)))
        return None if row is None else row.get("chance")

    def baseline(self, memorized: MemorizedModel, task: str, metric: str, **groups: str) -> Estimate | None:
        """Find the score of the frequency baseline of the same condition."""
        suffix = memorized.model.removeprefix(memorized.base)
        return self.cell(f"{FREQUENCY}{suffix}", task, metric, **groups) or self.cell(FREQUENCY, task, metric, **groups)

    def above_baseline(self, memorized: MemorizedModel, task: str, metric: str) -> tuple[PairedDifference, int] | None:
        """Compare a model with its baseline, paired by statement; None without symbols or without such a task."""
        if self.symbols is None or not {task, STATEMENT} <= memorized.tasks:
            return None
        statements, recalls = memorized.tables_by_task[task]
        if not statements.num_rows:
            return None
        baseline_recalls = frequency_recalls(memorized.tables_by_task[STATEMENT][0], statements, self.symbols)
        return paired_recall_difference(statements, recalls, baseline_recalls, metric, self.seed_for(task, metric))

    def seed_for(self, *parts: str) -> int:
        """Derive the seed of a random draw."""
        return derived_seed(self.seed, self.experiment, *parts)

    @cached_property
    def _rows(self) -> dict[tuple[str | None, ...], Row]:
        return {
            (row["model"], row["task"], row["metric"], *(row.get(name) for name in RECALL_GROUPS)): row
            for row in reversed(self.scores)
        }


MemoryAnalysis: TypeAlias = Callable[[MemoryInput], Analysis | None]
"""An analysis of a memorizing run; None if it does not apply."""


def run_memory_analyses(inputs: MemoryInput, analyses: Sequence[MemoryAnalysis]) -> Iterator[Analysis]:
    """Run analyses of a memorizing run; skip those that do not apply."""
    for run_analysis in analyses:
        analysis = run_analysis(inputs)
        if analysis is not None:
            yield analysis


def are_comparable(base: str | None, condition: Mapping[str, Any], other_base: str, other: Mapping[str, Any]) -> bool:
    """Tell whether two memories differ in one respect only.

    Conditions of one base model must differ in one key; different base models must have the same condition.
    """
    different = [key for key in CONDITIONS if condition.get(key) != other.get(key)]
    return len(different) == (1 if base == other_base else 0)


def make_comparisons(
    differences: Mapping[tuple[str, str, str, str], tuple[PairedDifference, int]],
) -> list[Comparison]:
    """Convert paired differences to comparisons with corrected p-values; skip those without a p-value.

    Args:
        differences: The difference and its number of statements, by task, metric, model and other model.
    """
    return correct_comparisons(
        [
            Comparison(*key, paired.difference, paired.low, paired.high, paired.p, n)
            for key, (paired, n) in differences.items()
            if n and paired.p == paired.p
        ]
    )


def describe_side(difference: Comparison | PairedDifference) -> str:
    """Word the direction of a difference: above, below, or not told apart from."""
    return "not told apart from" if difference.p >= 0.05 else "above" if difference.difference > 0 else "below"


def format_paired_difference(difference: Comparison | PairedDifference) -> str:
    """Format a difference in points, with its interval and p."""
    p = "p < 0.001" if difference.p < 0.001 else f"p = {difference.p:.3f}"
    ends = (difference.difference, difference.low, difference.high)
    value, low, high = (f"{100 * end:+.1f}".replace("-0.0", "+0.0") for end in ends)
    return f"{value} points [{low}, {high}], {p}"


def format_score(cell: Estimate | None) -> str:
    """Format a score in percent, with its interval."""
    if cell is None or cell.value is None:
        return "unknown"
    if cell.low is None or cell.high is None:
        return percent(cell.value)
    return f"{percent(cell.value)} [{100 * cell.low:.1f}, {100 * cell.high:.1f}]"


def _key(groups: Mapping[str, str]) -> tuple[str | None, ...]:
    return tuple(groups.get(name) for name in RECALL_GROUPS)
