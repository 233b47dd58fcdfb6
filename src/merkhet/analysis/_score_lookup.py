"""Scores as analyses show them: looked up in the table of scores, so that a score is the same wherever it stands."""

from __future__ import annotations

from functools import cached_property

from merkhet.analysis.types import AnalysisInput, Estimate, Line, Row
from merkhet.core.schemas import SCORES
from merkhet.metrics.metrics import Metric, make_precision

PRECISIONS = (make_precision("1"), make_precision("10"))


class ScoreBook:
    """The scores of a run by line, task, metric and class."""

    def __init__(self, given: AnalysisInput) -> None:
        self.given = given
        self._rows: dict[tuple[Line, str, str, str, str], Row] = {}
        for row in given.scores:
            line = Line(row["model"], row["probe"], row["method"])
            groups = [(name, row[name]) for name in row if name not in SCORES.schema.names and row[name] is not None]
            if len(groups) < 2:
                column, value = groups[0] if groups else ("", "")
                self._rows.setdefault((line, row["task"], row["metric"], column, str(value)), row)

    @cached_property
    def lines(self) -> list[Line]:
        """The lines that have scores, in the order of the table."""
        return list(dict.fromkeys(line for line, *_ in self._rows))

    @cached_property
    def tasks(self) -> list[str]:
        """The tasks that have scores: those of the headline first."""
        there = dict.fromkeys(task for _, task, *_ in self._rows)
        first = dict.fromkeys(task for task, _ in self.given.headline if task in there)
        return list({**first, **there})

    @cached_property
    def sense_tasks(self) -> frozenset[str]:
        """The tasks in which senses are compared."""
        return frozenset(question.task for question in self.given.asked.values() if question.words)

    def row(self, line: Line, task: str, metric: Metric, column: str = "", value: str = "") -> Row | None:
        """A row of the table; None where there is none, or no score in it."""
        found = self._rows.get((line, task, metric.name, column, value))
        return found if found is not None and found["value"] is not None else None

    def cell(self, line: Line, task: str, metric: Metric, column: str = "", value: str = "") -> Estimate | None:
        """A score with its interval and number of questions; None where there is none."""
        row = self.row(line, task, metric, column, value)
        return None if row is None else Estimate(row["value"], row["low"], row["high"], row["n"])

    def metrics(self, task: str) -> list[Metric]:
        """P@1 and P@10 of a cloze task; the headline's metric of another, or of one that has neither."""
        headline = [metric for name, metric in self.given.headline if name == task]
        there = {name for _, own, name, *_ in self._rows if own == task}
        precisions = [metric for metric in PRECISIONS if metric.name in there]
        if task not in self.sense_tasks and precisions:
            return precisions
        return [metric for metric in dict.fromkeys([*headline, *precisions[:1]]) if metric.name in there][:1]

    def first_line(self, model: str, task: str) -> Line | None:
        """The line by which a model is compared on a task: its first one with a score, and no single layer's."""
        own = (line for line, name, *_ in self._rows if line.model == model and name == task and not is_layer(line))
        return next((line for line in dict.fromkeys(own) if self._scored(line, task)), None)

    def _scored(self, line: Line, task: str) -> bool:
        return any(
            row["value"] is not None
            for (own, name, _, column, _), row in self._rows.items()
            if (own, name, column) == (line, task, "")
        )

    def classes(self, task: str) -> list[str]:
        """The classes of a task that scores are averaged over, in the card's order; none where there is one class."""
        there = {value for _, name, _, own, value in self._rows if (name, own) == (task, self.column)}
        order = [name for name in self.given.domains if name in there] if self.column == "domain" else []
        found = [*order, *sorted(there.difference(order))]
        return found if len(found) > 1 else []

    @property
    def column(self) -> str:
        """The column that classes stand in."""
        return self.given.average_over or "domain"


def is_layer(line: Line) -> bool:
    """Whether a line compares the states of one layer among many."""
    return "@" in line.method
