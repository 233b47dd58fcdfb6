"""The scores of a run arranged for reading: one line a model, one column a headline score."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from merkhet.core.schemas import SCORES
from merkhet.reports.formatting import finite, metric_label, printable

LOWER_IS_BETTER = frozenset({"mean_rank", "median_rank", "perplexity", "ece", "brier"})


@dataclass(frozen=True)
class Cell:
    """One score with its interval, the number of questions behind it, and chance."""

    value: float | None
    low: float | None
    high: float | None
    chance: float | None
    n: int
    unusable: int


@dataclass(frozen=True)
class Column:
    """A headline score: a task and a metric, shown in percent where it is a share."""

    task: str
    metric: str
    percent: bool

    @property
    def label(self) -> str:
        """Such as ``completion R@1``."""
        return printable(f"{self.task} {metric_label(self.metric)}")


@dataclass(frozen=True)
class Series:
    """What one line shows: a model, or a model with one method where it answered by several.

    ``also`` are methods by which it answered what no other line has.
    """

    model: str
    method: str | None = None
    probe: str | None = None
    also: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """The model's name, with the method where that tells lines apart."""
        parts = ", ".join(part for part in (self.probe, self.method) if part is not None)
        return printable(f"{self.model} ({parts})" if parts else self.model)

    def covers(self, row: Mapping[str, Any]) -> bool:
        """Whether a row of scores or answers belongs to this line."""
        if row["model"] != self.model:
            return False
        own = self.method in (None, row["method"]) and self.probe in (None, row["probe"])
        return own or row["method"] in self.also


@dataclass(frozen=True)
class Scoreboard:
    """Lines, columns and the cells there are."""

    columns: tuple[Column, ...]
    series: tuple[Series, ...]
    cells: Mapping[tuple[Series, Column], Cell]
    best: Mapping[Column, frozenset[Series]] = field(default_factory=dict)

    def chances(self, column: Column) -> list[float]:
        """The chance levels that the column's rows name."""
        found = (self.cells.get((line, column)) for line in self.series)
        return [cell.chance for cell in found if cell is not None and cell.chance is not None]


def group_columns(scores: pa.Table) -> list[str]:
    """The columns by which scores are split: all that a plain table of scores has not."""
    return [name for name in scores.column_names if name not in SCORES.schema.names]


def overall_rows(scores: pa.Table) -> list[dict[str, Any]]:
    """Rows over all questions of a task: every group column is empty."""
    return _rows_without(scores, group_columns(scores))


def grouped_rows(scores: pa.Table, group: str) -> list[dict[str, Any]]:
    """Rows split by one group column; rows split by more are left out, unless they are all there is."""
    kept = scores.filter(pc.is_valid(scores[group]))
    alone = _rows_without(kept, [name for name in group_columns(scores) if name != group])
    if alone:
        return alone
    names = ("model", "task", "probe", "method", "metric", group)
    rows: list[dict[str, Any]] = kept.to_pylist()
    return rows if len({tuple(row[name] for name in names) for row in rows}) == len(rows) else []


def scoreboard(
    scores: pa.Table, headline: Iterable[Any], baselines: Collection[str] = (), main_methods: Collection[str] = ()
) -> Scoreboard:
    """The overall scores as lines and columns.

    Headline pairs are mappings with ``task`` and ``metric``, or two-tuples; without any, each task's first metric
    is taken. A model has one line, unless it answered one of the columns by several methods: then a line for each,
    or for those that are among ``main_methods`` if any of them is, task by task.
    The best of a column (several, if equal) is sought among the models that are no baselines, or among all if there
    are only baselines.
    """
    rows = overall_rows(scores)
    columns = _columns(rows, headline)
    wanted = {(column.task, column.metric): column for column in columns}
    shown = [row for row in rows if (row["task"], row["metric"]) in wanted]
    main = {(row["model"], row["task"]) for row in shown if row["method"] in main_methods}
    shown = [row for row in shown if (row["model"], row["task"]) not in main or row["method"] in main_methods]
    series = lines_of(shown)
    cells: dict[tuple[Series, Column], Cell] = {}
    for row in shown:
        line = next(line for line in series if line.covers(row))
        cells.setdefault((line, wanted[row["task"], row["metric"]]), cell(row))
    best = {}
    contenders = [line for line in series if line.model not in baselines] or list(series)
    for column in columns:
        values = {line: cells[line, column].value for line in contenders if (line, column) in cells}
        known = {line: value for line, value in values.items() if value is not None}
        if known:
            winning = min(known.values()) if column.metric in LOWER_IS_BETTER else max(known.values())
            best[column] = frozenset(line for line, value in known.items() if value == winning)
    return Scoreboard(tuple(columns), tuple(series), cells, best)


def cell(row: Mapping[str, Any]) -> Cell:
    """A row of scores as a cell; what is null or not a number is None."""
    numbers = {name: finite(row.get(name)) for name in ("value", "low", "high", "chance")}
    return Cell(**numbers, n=int(row.get("n") or 0), unusable=int(row.get("unusable") or 0))


def above_chance(value: float | None, chance: float | None) -> float | None:
    """(value - chance) / (1 - chance): 0 at chance, 1 where all is right; None where one is missing or chance is 1."""
    if value is None or chance is None or chance >= 1:
        return None
    return (value - chance) / (1 - chance)


def _rows_without(scores: pa.Table, groups: Sequence[str]) -> list[dict[str, Any]]:
    if groups:
        scores = scores.filter(reduce(pc.and_, [pc.is_null(scores[name]) for name in groups]))
    rows: list[dict[str, Any]] = scores.to_pylist()
    return rows


def _columns(rows: list[dict[str, Any]], headline: Iterable[Any]) -> list[Column]:
    pairs = [_pair(item) for item in headline]
    if not pairs:
        first: dict[str, str] = {}
        for row in rows:
            first.setdefault(row["task"], row["metric"])
        pairs = list(first.items())
    there = {(row["task"], row["metric"]) for row in rows}
    return [Column(*pair, percent=is_share(rows, pair[1])) for pair in dict.fromkeys(pairs) if pair in there]


def _pair(item: Any) -> tuple[str, str]:
    if isinstance(item, Mapping):
        return str(item["task"]), str(item["metric"])
    task, metric = item
    return str(task), str(metric)


def is_share(rows: list[dict[str, Any]], metric: str) -> bool:
    """Whether the values of a metric look like shares: none is beyond 1."""
    values = (finite(row["value"]) for row in rows if row["metric"] == metric)
    return all(value is None or abs(value) <= 1 for value in values)


def lines_of(rows: list[dict[str, Any]]) -> list[Series]:
    """One line a model, or one for each method of a model that answered the same by several.

    What such a model answered in one way only, and in none of these, stands in its first line.
    """
    ways: dict[str, dict[tuple[str, str], dict[tuple[str, str], None]]] = {}
    for row in rows:
        place = ways.setdefault(row["model"], {}).setdefault((row["task"], row["metric"]), {})
        place[row["probe"], row["method"]] = None
    series: list[Series] = []
    for model, places in ways.items():
        several = [place for place in places.values() if len(place) > 1]
        if not several:
            series.append(Series(model))
            continue
        used = list(dict.fromkeys(way for place in several for way in place))
        rest = dict.fromkeys(method for place in places.values() for _, method in place)
        also = tuple(method for method in rest if method not in {method for _, method in used})
        if any(len({method for _, method in place}) < len(place) for place in several):
            lines = [Series(model, method, probe) for probe, method in used]
        else:
            lines = [Series(model, method) for method in dict.fromkeys(method for _, method in used)]
        series += [replace(lines[0], also=also), *lines[1:]]
    return series
