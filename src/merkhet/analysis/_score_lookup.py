"""Lookup of scores in the scores table, shared by all analyses so that their scores agree."""

from __future__ import annotations

from functools import cached_property

from merkhet.analysis.comparison import is_layer_method
from merkhet.analysis.types import AnalysisInput, Estimate, Line, Row
from merkhet.core.schemas import SCORES
from merkhet.metrics.metrics import Metric, make_precision

PRECISIONS = (make_precision("1"), make_precision("10"))


class ScoreLookup:
    """Scores of a run by line (model, probe and method), task, metric and class."""

    def __init__(self, inputs: AnalysisInput) -> None:
        self.inputs = inputs
        self._rows: dict[tuple[Line, str, str, str, str], Row] = {}
        for row in inputs.scores:
            line = Line(row["model"], row["probe"], row["method"])
            groups = [(name, row[name]) for name in row if name not in SCORES.schema.names and row[name] is not None]
            if len(groups) < 2:
                column, value = groups[0] if groups else ("", "")
                self._rows.setdefault((line, row["task"], row["metric"], column, str(value)), row)

    @cached_property
    def lines(self) -> list[Line]:
        """Models, probes and methods that have scores, in the order of the scores table."""
        return list(dict.fromkeys(line for line, *_ in self._rows))

    @cached_property
    def tasks(self) -> list[str]:
        """Tasks that have scores, headline tasks first."""
        scored = dict.fromkeys(task for _, task, *_ in self._rows)
        headline = dict.fromkeys(task for task, _ in self.inputs.headline if task in scored)
        return list({**headline, **scored})

    @cached_property
    def sense_tasks(self) -> frozenset[str]:
        """Tasks that compare word senses."""
        return frozenset(question.task for question in self.inputs.questions_by_id.values() if question.words)

    def row(self, line: Line, task: str, metric: Metric, column: str = "", value: str = "") -> Row | None:
        """Return a row of the scores table; None if the row is missing or has no score."""
        row = self._rows.get((line, task, metric.name, column, value))
        return row if row is not None and row["value"] is not None else None

    def cell(self, line: Line, task: str, metric: Metric, column: str = "", value: str = "") -> Estimate | None:
        """Return a score with its interval and number of questions; None if the score is missing."""
        row = self.row(line, task, metric, column, value)
        return None if row is None else Estimate(row["value"], row["low"], row["high"], row["n"])

    def model_cell(self, model: str, task: str, metric: Metric) -> Estimate | None:
        """Return a model's score by its first probe and method (:meth:`first_line`); None if it is missing."""
        line = self.first_line(model, task)
        return None if line is None else self.cell(line, task, metric)

    def metrics(self, task: str) -> list[Metric]:
        """Return the metrics of a task: P@1 and P@10 for cloze tasks, otherwise the headline metric."""
        headline = [metric for name, metric in self.inputs.headline if name == task]
        scored = {metric_name for _, row_task, metric_name, *_ in self._rows if row_task == task}
        precisions = [metric for metric in PRECISIONS if metric.name in scored]
        if task not in self.sense_tasks and precisions:
            return precisions
        return [metric for metric in dict.fromkeys([*headline, *precisions[:1]]) if metric.name in scored][:1]

    def first_line(self, model: str, task: str) -> Line | None:
        """Return the first probe and method that scored a model on a task, except single-layer methods; or None."""
        scored_lines = (
            line
            for (line, row_task, _, column, _), row in self._rows.items()
            if (line.model, row_task, column) == (model, task, "") and row["value"] is not None and not is_layer(line)
        )
        return next(scored_lines, None)

    def classes(self, task: str) -> list[str]:
        """Return the classes that a task's score is averaged over; empty if the task has only one class.

        Domains are in the order of the data card, other classes in alphabetical order.
        """
        scored = {
            value for _, row_task, _, column, value in self._rows if (row_task, column) == (task, self.class_column)
        }
        ordered = [name for name in self.inputs.domains if name in scored] if self.class_column == "domain" else []
        classes = [*ordered, *sorted(scored.difference(ordered))]
        return classes if len(classes) > 1 else []

    @property
    def class_column(self) -> str:
        """Name of the column that holds the classes."""
        return self.inputs.average_over or "domain"


def is_layer(line: Line) -> bool:
    """Return whether the method of a line uses the hidden states of a single layer."""
    return is_layer_method(line.method)
