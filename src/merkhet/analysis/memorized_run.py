"""Conditions, scores and paired differences of a run in which models memorize facts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from merkhet.analysis.comparison import Comparison, correct_comparisons
from merkhet.analysis.finding_types import Verdict
from merkhet.analysis.training_comparison import training_finding
from merkhet.analysis.training_text import format_finding
from merkhet.analysis.types import AnalysisInput, Estimate, Table, TableRow
from merkhet.core.ids import derived_seed
from merkhet.core.records import Question, question_column
from merkhet.core.text import percent
from merkhet.metrics.answer_table import AnswerTable, Cell
from merkhet.metrics.clusters import Clusters
from merkhet.metrics.metrics import Metric, get_metric
from merkhet.metrics.ranks import FloatArray
from merkhet.metrics.recalls import METHOD, PROBE, RECALL_METRICS

LABELS = {"acc@1": "Acc@1", "acc@5": "Acc@5", "hit@5": "Hit@5", "hit@10": "Hit@10"}
STATEMENT = "statement"
FREQUENCY = "frequency"
INTERVALS = (
    "95% intervals of scores treat the statements of one fact, and those with one prompt, as one observation each. "
    "They are about the first training of each model: another seed, or only another number of threads, gives another "
    "model, whose scores on questions in other words may lie outside the interval. Differences are between trainings "
    "of the same seed on the same statements. With several trainings, their intervals are Student's over trainings, "
    "and their p-values those of the paired t test, Holm-corrected over their table, except those against the "
    "baseline. With one training, their intervals are over statements, and there is neither a p-value nor a verdict."
)
Row = dict[str, Any]
_GROUPS = ("mask", "relation", "conflict", "cardinality", "template")


@dataclass(frozen=True)
class MemorizedModel:
    """A model that was trained to memorize facts under one condition."""

    model: str
    """Name of the model in the scores table."""
    base: str
    """Name of the model before memorizing."""
    condition: Mapping[str, Any]
    """Settings of the memorized facts and the training: facts, conflict, static, dynamic."""
    record: Mapping[str, Any]
    """Training record."""
    tasks: frozenset[str]
    """Tasks that the model was asked."""

    @property
    def conflict(self) -> bool:
        """Whether the model also memorized statements with several right answers."""
        return self.condition.get("conflict", "with") in (True, "with")

    @property
    def static(self) -> bool:
        """Whether the model memorized facts without their times."""
        return bool(self.condition.get("static"))

    @property
    def facts(self) -> int | None:
        """Number of memorized facts."""
        return self.condition.get("facts")


@dataclass(frozen=True)
class Recalled:
    """Statements of one task that a model was asked, with the model's answers."""

    cell: Cell
    ids: Sequence[str]
    """Question id of each statement."""
    questions: Mapping[str, Question]
    """All questions of the run."""
    facts: Sequence[str]
    """Fact of each statement."""
    clusters: Clusters
    ranked: pa.ChunkedArray
    """Best symbols of each statement with their log-probabilities."""

    def values(self, metric: str) -> FloatArray:
        """Return the metric value of every statement."""
        return self.cell.values(load_metric(metric))

    def take(self, rows: NDArray[np.int64]) -> Recalled:
        """Select the statements with these indices."""
        return replace(
            self,
            ids=[self.ids[row] for row in rows.tolist()],
            facts=[self.facts[row] for row in rows.tolist()],
            clusters=self.clusters.take(rows),
            ranked=self.ranked.take(pa.array(rows)),
        )

    def column(self, name: str) -> list[Any]:
        """Return a field of each statement's question, such as prompt, answers, target or template."""
        return question_column(self.questions, name, self.ids)

    def template_parts(self, index: int) -> list[str]:
        """Return one component of each statement's template name; see :func:`template_part`."""
        return [template_part(template, index) for template in self.column("template")]


def template_part(template: str | None, index: int) -> str:
    """Return one component of a template name: relation (0), template (1), mask (2) or cardinality (3)."""
    return (template or "///").split("/")[index]


_METRICS: dict[str, Metric] = {}


def load_metric(name: str) -> Metric:
    """Return a metric by name, always the same object, because values are cached by metric object."""
    return _METRICS.setdefault(name, get_metric(name))


class MemorizedRun:
    """Models of a run in which models memorize facts, with their scores and recalls."""

    def __init__(self, inputs: AnalysisInput) -> None:
        self.inputs = inputs
        self.paired = inputs.paired
        self.scores = inputs.scores
        self.seed = inputs.seed

    @cached_property
    def models(self) -> tuple[MemorizedModel, ...]:
        """Models that memorized facts, without baselines."""
        records = {record["model"]: record for record in self.inputs.training_records}
        tasks: dict[str, set[str]] = {}
        for model, task, _, _ in self.inputs.answer_table.cell_rows:
            tasks.setdefault(model, set()).add(task)
        return tuple(
            MemorizedModel(name, condition.base, condition.settings, records.get(name, {}), frozenset(tasks[name]))
            for name, condition in self.inputs.conditions.items()
            if name not in self.inputs.baselines and name in tasks
        )

    @property
    def bases(self) -> dict[str, list[MemorizedModel]]:
        """Memorized models of each base model, one per condition."""
        by_base: dict[str, list[MemorizedModel]] = {}
        for memorized in self.models:
            by_base.setdefault(memorized.base, []).append(memorized)
        return by_base

    @cached_property
    def metrics(self) -> list[str]:
        """Names of the recall metrics that have scores."""
        scored = {row["metric"] for row in self.scores}
        return [metric for metric in RECALL_METRICS if metric in scored]

    def recalled(self, model: str, task: str) -> Recalled:
        """Return the statements of a task that a model was asked, with its answers after its first training."""
        return self._recalled(self.inputs.answer_table, model, task)

    def _recalled(self, table: AnswerTable, model: str, task: str) -> Recalled:
        cell = table.cell(model, task, PROBE, METHOD)
        ids = [table.ids[code] for code in cell.codes.tolist()]
        codes = np.searchsorted(np.array(self.inputs.answer_table.ids), np.array(ids))
        return Recalled(
            cell,
            ids,
            self.inputs.questions_by_id,
            [self.inputs.clusters[name] for name in ids],
            self.paired.clusters.take(codes),
            table.take("ranked", cell.rows),
        )

    def cell(self, model: str, task: str, metric: str, **groups: str) -> Estimate | None:
        """Return a score with its interval over all statements of a task, or over the statements of ``groups``."""
        row = self._rows.get((model, task, metric, *_key(groups)))
        return None if row is None else Estimate(row["value"], row["low"], row["high"], row["n"])

    def chance(self, model: str, task: str, metric: str, **groups: str) -> float | None:
        """Return the chance level, the expected score of guessing among all symbols."""
        row = self._rows.get((model, task, metric, *_key(groups)))
        return None if row is None else row.get("chance")

    def baseline(self, memorized: MemorizedModel, task: str, metric: str, **groups: str) -> Estimate | None:
        """Return the score of the frequency baseline with the same condition as ``memorized``."""
        return self.cell(self._baseline_name(memorized), task, metric, **groups)

    def _baseline_name(self, memorized: MemorizedModel) -> str:
        name = f"{FREQUENCY}{memorized.model.removeprefix(memorized.base)}"
        return name if any(row["model"] == name for row in self.scores) else FREQUENCY

    def difference(
        self,
        pair: tuple[str, str],
        task: str,
        metric: str,
        *seed_parts: str,
        only: tuple[str, Callable[[Any], bool]] | None = None,
    ) -> Comparison | None:
        """Return the paired difference of two models over their trainings; None if they share too few statements.

        Args:
            seed_parts: Parts that the seed is derived from.
            only: Field of the first model's questions, and a predicate on its value that selects statements.
        """

        def select(ids: Sequence[str]) -> NDArray[np.bool_]:
            assert only is not None
            values = question_column(self.inputs.questions_by_id, only[0], ids)
            return np.array([only[1](value) for value in values], dtype=bool)

        seed = self.seed_for(*seed_parts)
        select_only = None if only is None else select
        return self.paired.difference(pair, task, load_metric(metric), seed=seed, select=select_only)

    def above_baseline(self, memorized: MemorizedModel, task: str, metric: str) -> Comparison | None:
        """Return the paired difference of a model and its frequency baseline; None if it cannot be computed."""
        baseline = self._baseline_name(memorized)
        if task not in memorized.tasks or (baseline, task) not in self.paired.methods:
            return None
        return self.difference((memorized.model, baseline), task, metric, task, metric)

    def repeated(self, model: str, task: str) -> list[Recalled]:
        """Return the statements that a model was asked and its answers, after each training in order."""
        tables = [self.inputs.answer_table, *self._repeated_tables]
        return [
            self._recalled(table, model, task) for table in tables if (model, task, PROBE, METHOD) in table.cell_rows
        ]

    @cached_property
    def _repeated_tables(self) -> list[AnswerTable]:
        return [AnswerTable(table, self.inputs.questions_by_id) for table in self.inputs.repeated_answers]

    def count_conflicts(self, memorized: MemorizedModel) -> tuple[int, int]:
        """Return the number of stored statements with several right answers, and of all stored statements."""
        of_all = self.cell(memorized.model, STATEMENT, self.metrics[0])
        several = self.cell(memorized.model, STATEMENT, self.metrics[0], conflict="yes")
        return (several.n or 0 if several else 0), (of_all.n or 0 if of_all else 0)

    def seed_for(self, *parts: str) -> int:
        """Derive a seed from the seed of the run and ``parts``."""
        return derived_seed(self.seed, *parts)

    @cached_property
    def _rows(self) -> dict[tuple[str | None, ...], Row]:
        return {
            (row["model"], row["task"], row["metric"], *(row.get(name) for name in _GROUPS)): row
            for row in reversed(self.scores)
        }


def drop_missing_baseline(table: Table) -> Table:
    """Drop the columns of the frequency baseline if they are empty, because it had no answers to count."""
    kept = [
        index
        for index, column in enumerate(table.columns)
        if not column.name.startswith(FREQUENCY) or any(row[index] is not None for row in table.rows)
    ]
    rows = tuple(tuple(row[index] for index in kept) for row in table.rows)
    return replace(table, columns=tuple(table.columns[index] for index in kept), rows=rows)


def make_comparisons(
    differences: Mapping[str, Comparison | None] | Iterable[tuple[str, Comparison | None]],
) -> list[Comparison]:
    """Label differences by what was asked and correct their p-values over the table; skip missing differences.

    Args:
        differences: Differences with the label of what was asked, which becomes the task of the comparison.
    """
    items = differences.items() if isinstance(differences, Mapping) else differences
    return correct_comparisons([replace(compared, task=asked) for asked, compared in items if compared is not None])


def difference_cells(comparison: Comparison) -> TableRow:
    """Return the table cells of a comparison: label of the metric, difference, p, statements and trainings."""
    difference = Estimate(comparison.difference, comparison.low, comparison.high, comparison.n)
    label = LABELS.get(comparison.metric, comparison.metric)
    return label, difference, comparison.p, comparison.n, comparison.trainings


def describe_side(comparison: Comparison, other: str) -> str:
    """Return a clause on the difference from ``other``, with a direction only if there are several trainings."""
    finding = training_finding(asdict(comparison))
    numbers = format_finding(replace(finding, value=comparison.difference, low=comparison.low, high=comparison.high))
    if finding.verdict is Verdict.NONE:
        return f"against {other}: {numbers}"
    sides = {
        Verdict.AHEAD: f"{'above' if comparison.difference > 0 else 'below'} {other}",
        Verdict.NO_DIFFERENCE: f"not significantly different from {other}",
    }
    return f"{sides[finding.verdict]} ({numbers})"


def format_score(cell: Estimate | None) -> str:
    """Format a score in percent, with its interval; "unknown" if the score is missing."""
    if cell is None or cell.value is None:
        return "unknown"
    if cell.low is None or cell.high is None:
        return percent(cell.value)
    return f"{percent(cell.value)} [{100 * cell.low:.1f}, {100 * cell.high:.1f}]"


def _key(groups: Mapping[str, str]) -> tuple[str | None, ...]:
    return tuple(groups.get(name) for name in _GROUPS)
