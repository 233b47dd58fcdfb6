"""Findings on scores of tasks and of groups of questions, relative to chance."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence

import numpy as np

from merkhet.analysis.comparison import is_layer_method
from merkhet.analysis.finding_types import (
    FEW,
    FEW_QUESTIONS,
    FREE_ANSWERS,
    NO_CHANCE,
    NO_SCORE,
    SINGLE_FACT,
    UNDECIDABLE,
    Finding,
    Kind,
    Verdict,
)
from merkhet.analysis.types import Row
from merkhet.core.schemas import SCORES
from merkhet.core.text import finite_or_none
from merkhet.metrics.answer_table import AnswerTable
from merkhet.metrics.bootstrap import constant_interval
from merkhet.metrics.metrics import Metric

FREE_PROBES = ("write", "answer")
"""Probes whose answers are not chosen among candidates, so that guessing is undefined."""
_CLOSE = 1e-9
_LEVEL = 0.95
_TWO_SIDED = 1.959964


class FactCounts:
    """Numbers of facts behind the rows of a table of scores.

    Args:
        clusters: Fact of each question, by question id.
        groups: Values of the group columns, by question id; facts of groups are unknown without them.
    """

    def __init__(
        self,
        table: AnswerTable,
        clusters: Mapping[str, str],
        groups: Mapping[str, Mapping[str, str | None]],
        *,
        unusable_is_wrong: bool = False,
    ) -> None:
        self.table, self.groups, self.unusable_is_wrong = table, groups, unusable_is_wrong
        self._facts = [clusters[name] for name in table.ids]
        self._counts: dict[tuple[str, ...], dict[str | None, int]] = {}

    def count(self, row: Row, metric: Metric, column: str | None = None) -> int | None:
        """Return the number of facts behind a row of the scores, or None if it is unknown."""
        cell = (row["model"], row["task"], row["probe"], row["method"])
        if cell not in self.table.cell_rows:
            return None
        wrong = self.unusable_is_wrong and metric.share and metric.higher_is_better
        key = (*cell, str(wrong), column or "")
        if key not in self._counts:
            facts: dict[str | None, set[str]] = {}
            for code in self.table.cell(*cell).question_codes(wrong).tolist():
                group = None if column is None else self.groups.get(self.table.ids[code], {}).get(column)
                facts.setdefault(group, set()).add(self._facts[code])
            self._counts[key] = {group: len(members) for group, members in facts.items()}
        return self._counts[key].get(None if column is None else row[column])


def find_scores(
    model: str, scores: Sequence[Row], headline: Sequence[tuple[str, Metric]], facts: FactCounts
) -> Iterator[Finding]:
    """Yield a finding for each headline score of a model, by every probe and method."""
    for task, metric in headline:
        for row in scores:
            if (row["model"], row["task"], row["metric"]) == (model, task, metric.name) and not group_columns(row):
                yield judge_row(row, metric, facts.count(row, metric))


def find_groups(
    model: str,
    scores: Sequence[Row],
    task: str,
    metric: Metric,
    column: str,
    facts: FactCounts,
    names: Mapping[str, str],
) -> Iterator[Finding]:
    """Yield a finding for each group of a task's questions, by the first method of each probe of a model.

    Args:
        names: Readable names of groups, by group.
    """
    rows = [
        row
        for row in scores
        if (row["model"], row["task"], row["metric"]) == (model, task, metric.name) and group_columns(row) == [column]
    ]
    first: dict[str, str] = {}
    for row in sorted(rows, key=lambda row: is_layer_method(row["method"])):
        first.setdefault(row["probe"], row["method"])
    for row in rows:
        if first[row["probe"]] == row["method"]:
            yield judge_row(row, metric, facts.count(row, metric, column), column, names)


def group_columns(row: Row) -> list[str]:
    """Return the group columns of a row of the scores; empty for a score over all questions of a task."""
    return [column for column, value in row.items() if column not in SCORES.schema.names and value is not None]


def main_group_column(scores: Sequence[Row]) -> str:
    """Return the column whose groups are described in sentences: the relation, or else the domain."""
    return "relation" if any(row.get("relation") for row in scores) else "domain"


def judge_row(
    row: Row, metric: Metric, facts: int | None, column: str | None = None, names: Mapping[str, str] | None = None
) -> Finding:
    """Make the finding on a row of the scores."""
    value, low, high, chance = (finite_or_none(row[name]) for name in ("value", "low", "high", "chance"))
    verdict, reason = Verdict.NONE, FREE_ANSWERS
    if row["probe"] not in FREE_PROBES:
        verdict, reason = judge(value, low, high, chance, row["n"], facts, metric)
    group = None if column is None else str(row[column])
    name = (names or {}).get(group) if group is not None else None
    return Finding(
        Kind.SCORE if column is None else Kind.GROUP,
        verdict,
        model=row["model"],
        task=row["task"],
        metric=row["metric"],
        probe=row["probe"],
        method=row["method"],
        group_column=column,
        group=group,
        group_name=None if name == group else name,
        value=value,
        low=low,
        high=high,
        chance=chance,
        n=row["n"],
        facts=facts,
        reason=reason or None,
        share=metric.share,
        higher_is_better=metric.higher_is_better,
    )


def judge(
    value: float | None,
    low: float | None,
    high: float | None,
    chance: float | None,
    n: int,
    facts: int | None,
    metric: Metric,
) -> tuple[Verdict, str]:
    """Judge a score by its interval against the chance level.

    There is no verdict on fewer than ``FEW_QUESTIONS`` questions, nor where even the interval of a perfect score would
    contain the chance level. Below chance is only what a random chooser would hardly score
    (:func:`is_likely_by_chance`).

    Args:
        facts: Number of facts; if it is unknown, the number of questions stands for it.

    Returns:
        The verdict, and the reason if there is none.
    """
    if value is None:
        return Verdict.NONE, NO_SCORE
    if low is None or high is None:
        return Verdict.NONE, SINGLE_FACT
    if chance is None:
        return Verdict.NONE, NO_CHANCE
    if n < FEW_QUESTIONS:
        return Verdict.NONE, FEW
    if is_undecidable(chance, facts or n, metric):
        return Verdict.NONE, UNDECIDABLE
    above, below = low > chance + _CLOSE, high < chance - _CLOSE
    if not metric.higher_is_better:
        above, below = below, above
    below = below and not is_likely_by_chance(value, chance, facts or n, metric)
    return (Verdict.ABOVE_CHANCE if above else Verdict.BELOW_CHANCE if below else Verdict.AT_CHANCE), ""


def is_likely_by_chance(value: float, chance: float, facts: int, metric: Metric) -> bool:
    """Return whether a random chooser may well score as low as ``value``.

    Metrics of ranks are skewed: a random chooser owes its mean to few high values. Without any of these, the bootstrap
    interval is short and does not contain the chance level. Values between 0 and 1 with mean c have at most the
    variance c (1 - c), which bounds the standard error.
    """
    if not metric.share or not 0.0 <= chance <= 1.0:
        return False
    return chance - value <= _TWO_SIDED * math.sqrt(chance * (1.0 - chance) / facts) + _CLOSE


def is_undecidable(chance: float, facts: int, metric: Metric) -> bool:
    """Return whether the interval of a perfect score contains the chance level.

    The perfect value is taken to be 1, which it is for shares and for ranks. Of other metrics it is unknown.
    """
    if not metric.higher_is_better:
        return not metric.share and chance <= 1.0 + _CLOSE
    return metric.share and constant_interval(1.0, facts, _LEVEL)[0] <= chance + _CLOSE


def count_asked(table: AnswerTable, models: Collection[str]) -> dict[str, int]:
    """Return, for each model, the number of questions with a usable answer by any probe and method."""
    answered: dict[str, set[int]] = {model: set() for model in models}
    for key in table.cell_rows:
        if key[0] in answered:
            answered[key[0]].update(np.asarray(table.cell(*key).question_codes(wrong=False)).tolist())
    return {model: len(codes) for model, codes in answered.items()}
