"""What an analysis of a memorizing run gets: what each model stored under each condition, and what it recalled."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import pyarrow as pa

from merkhet.analysis.comparison import Comparison, holm
from merkhet.analysis.types import Analysis, Estimate, percent
from merkhet.core.ids import derived_seed
from merkhet.metrics.bootstrap import PairedDifference
from merkhet.metrics.recall_scores import GROUPS, METRICS, frequency_recalls, paired_recall_difference

LABELS = {"acc@1": "Acc@1", "acc@5": "Acc@5", "hit@5": "Hit@5", "hit@10": "Hit@10"}
CONDITIONS = ("facts", "conflict", "static", "dynamic")
"""What conditions differ in."""
STATEMENT = "statement"
FREQUENCY = "frequency"
INTERVALS = (
    "Intervals are of 95% and take the statements of one fact, and those that are one prompt, as one observation each. "
    "p-values of a table are Holm-corrected over it; those against the baseline are not corrected. All this is about "
    "one training of each model: another seed, or only another number of threads, gives another model, which on "
    "questions in other words may differ by more than the intervals and p-values say. Train several times "
    "(options.trainings) before you conclude something about a way of training."
)
Row = dict[str, Any]


@dataclass(frozen=True)
class Stored:
    """One model under one condition.

    ``model`` is its name in the scores, ``base`` the model it was before; ``condition`` says what was stored and how
    (facts, conflict, static, dynamic), ``record`` is what was written down of learning. ``asked`` gives the statements
    and recalls of each task; it is looked at one task at a time, so that it may read them from files.
    """

    model: str
    base: str
    condition: Mapping[str, Any]
    record: Mapping[str, Any]
    asked: Mapping[str, tuple[pa.Table, pa.Table]]

    @property
    def tasks(self) -> frozenset[str]:
        """What was asked, without looking at it."""
        return frozenset(self.asked)

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
        """How many facts were stored."""
        return self.condition.get("facts")


@dataclass(frozen=True)
class MemoryInput:
    """One memorizing run as an analysis sees it.

    ``scores`` are all rows of scores, those of the baseline among them: its model is "frequency", followed by what
    follows the base in a model's name where there are several conditions. With ``symbols`` models can be compared with
    the baseline statement by statement.
    """

    experiment: str
    stored: tuple[Stored, ...]
    scores: Sequence[Row]
    seed: int = 0
    symbols: pa.Table | None = None

    @property
    def bases(self) -> dict[str, list[Stored]]:
        """The conditions of each model, in order."""
        found: dict[str, list[Stored]] = {}
        for one in self.stored:
            found.setdefault(one.base, []).append(one)
        return found

    @property
    def metrics(self) -> list[str]:
        """The metrics there are scores for."""
        there = {row["metric"] for row in self.scores}
        return [metric for metric in METRICS if metric in there]

    def cell(self, model: str, task: str, metric: str, **groups: str) -> Estimate | None:
        """A score with its interval: over all statements of the task, or of the groups that are named."""
        row = self._rows.get((model, task, metric, *_key(groups)))
        return None if row is None else Estimate(row["value"], row["low"], row["high"], row["n"])

    def chance(self, model: str, task: str, metric: str, **groups: str) -> float | None:
        """What guessing among all symbols would give."""
        row = self._rows.get((model, task, metric, *_key(groups)))
        return None if row is None else row.get("chance")

    def baseline(self, one: Stored, task: str, metric: str, **groups: str) -> Estimate | None:
        """What the baseline has that counted what was stored under the same condition."""
        own = self.cell(f"{FREQUENCY}{one.model.removeprefix(one.base)}", task, metric, **groups)
        return own or self.cell(FREQUENCY, task, metric, **groups)

    def above_baseline(self, one: Stored, task: str, metric: str) -> tuple[PairedDifference, int] | None:
        """How far a model is above that baseline, statement by statement; None without symbols or such a task."""
        if self.symbols is None or not {task, STATEMENT} <= one.tasks:
            return None
        statements, recalls = one.asked[task]
        if not statements.num_rows:
            return None
        counted = frequency_recalls(one.asked[STATEMENT][0], statements, self.symbols)
        return paired_recall_difference(statements, recalls, counted, metric, self.drawn(task, metric))

    def drawn(self, *parts: str) -> int:
        """The seed of what is drawn for these."""
        return derived_seed(self.seed, self.experiment, *parts)

    @cached_property
    def _rows(self) -> dict[tuple[str | None, ...], Row]:
        return {
            (row["model"], row["task"], row["metric"], *(row.get(name) for name in GROUPS)): row
            for row in reversed(self.scores)
        }


MemoryAnalysis: TypeAlias = Callable[[MemoryInput], Analysis | None]
"""An analysis of a memorizing run; None where it has nothing to say."""


def analyse_memory(given: MemoryInput, analyses: Sequence[MemoryAnalysis]) -> Iterator[Analysis]:
    """Run analyses of a memorizing run; skip those that have nothing to say."""
    for analysis in analyses:
        found = analysis(given)
        if found is not None:
            yield found


def comparable(base: str | None, condition: Mapping[str, Any], other_base: str, other: Mapping[str, Any]) -> bool:
    """Whether two memories differ in one thing: conditions of one model in one, other models in no condition."""
    different = [kind for kind in CONDITIONS if condition.get(kind) != other.get(kind)]
    return len(different) == (1 if base == other_base else 0)


def compared(found: Mapping[tuple[str, str, str, str], tuple[PairedDifference, int]]) -> list[Comparison]:
    """Differences by task, metric, model and what it is compared with, their p-values corrected; unknown ones not."""
    return holm(
        [
            Comparison(*names, one.difference, one.low, one.high, one.p, n)
            for names, (one, n) in found.items()
            if n and one.p == one.p
        ]
    )


def side(one: Comparison | PairedDifference) -> str:
    """On which side of what it is compared with something is, as far as that can be told."""
    return "not told apart from" if one.p >= 0.05 else "above" if one.difference > 0 else "below"


def gap(one: Comparison | PairedDifference) -> str:
    """A difference in a sentence: points with their interval and p."""
    p = "p < 0.001" if one.p < 0.001 else f"p = {one.p:.3f}"
    value, low, high = (f"{100 * end:+.1f}".replace("-0.0", "+0.0") for end in (one.difference, one.low, one.high))
    return f"{value} points [{low}, {high}], {p}"


def shown(cell: Estimate | None) -> str:
    """A score in a sentence, with its interval."""
    if cell is None or cell.value is None:
        return "unknown"
    if cell.low is None or cell.high is None:
        return percent(cell.value)
    return f"{percent(cell.value)} [{100 * cell.low:.1f}, {100 * cell.high:.1f}]"


def _key(groups: Mapping[str, str]) -> tuple[str | None, ...]:
    return tuple(groups.get(name) for name in GROUPS)
