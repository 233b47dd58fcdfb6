"""Scoreboard of a run: a table with a line per model and a column per headline score."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from merkhet.core.schemas import SCORES
from merkhet.core.text import finite_or_none, metric_label, printable
from merkhet.reports.table_model import has_few_questions

LOWER_IS_BETTER = frozenset({"mean_rank", "median_rank", "perplexity", "ece", "brier"})
_FIRST_GROUPS = ("relation", "domain")
_DIGITS = re.compile(r"(\d+)")
ScoreRow = dict[str, Any]
"""A row of the score table, by column name."""


@dataclass(frozen=True)
class ScoreCell:
    """A score with its interval, number of questions and chance level."""

    value: float | None
    low: float | None
    high: float | None
    chance: float | None
    n: int
    unusable: int
    wording_sd: float | None = None
    """Standard deviation of the score over paraphrases; None if it is unknown."""
    wording_n: int = 0
    """Number of items that were asked in all compared paraphrases."""

    @property
    def few(self) -> bool:
        """Whether the score is of too few questions to be read as a result."""
        return has_few_questions(self.n)


@dataclass(frozen=True)
class ScoreColumn:
    """A headline score: a task and a metric."""

    task: str
    metric: str
    percent: bool
    """Whether the values are shares, which are shown in percent."""

    @property
    def label(self) -> str:
        """The column label, such as ``completion R@1``."""
        return printable(f"{self.task} {metric_label(self.metric)}")


@dataclass(frozen=True)
class Series:
    """A line of the scoreboard: a model, or one method of a model that answered by several methods."""

    model: str
    method: str | None = None
    probe: str | None = None
    extra_methods: tuple[str, ...] = ()
    """Further methods of the model, which it used only in tasks without alternative methods."""

    @property
    def label(self) -> str:
        """The name of the model, with probe and method if needed to tell its lines apart."""
        parts = ", ".join(part for part in (self.probe, self.method) if part is not None)
        return printable(f"{self.model} ({parts})" if parts else self.model)

    def covers(self, row: Mapping[str, Any]) -> bool:
        """Return whether a score or answer row has the model, probe and method of this scoreboard line."""
        if row["model"] != self.model:
            return False
        matches = self.method in (None, row["method"]) and self.probe in (None, row["probe"])
        return matches or row["method"] in self.extra_methods


@dataclass(frozen=True)
class Scoreboard:
    """The lines (``series``), columns and cells of a scoreboard; combinations without a score have no cell."""

    columns: tuple[ScoreColumn, ...]
    series: tuple[Series, ...]
    cells: Mapping[tuple[Series, ScoreColumn], ScoreCell]
    best: Mapping[ScoreColumn, frozenset[Series]] = field(default_factory=dict)
    """Lines with the best value in each column; several lines if they tie."""
    absent: tuple[str, ...] = ()
    """Labels of headline scores that no model has."""

    def chances(self, column: ScoreColumn) -> list[float]:
        """Return the known chance levels of the cells in a column."""
        cells = (self.cells.get((line, column)) for line in self.series)
        return [cell.chance for cell in cells if cell is not None and cell.chance is not None]


def order_groups(names: Iterable[str], declared: Iterable[str] = ()) -> list[str]:
    """Return distinct group names in the order that all tables and figures share.

    Names in ``declared`` come first, in that order; the others follow by name, with numbers by size.
    """
    rank = {name: index for index, name in enumerate(declared)}

    def key(name: str) -> tuple[int, list[tuple[bool, int, str]], str]:
        parts = (
            (part.isdecimal(), int(part) if part.isdecimal() else 0, part.casefold()) for part in _DIGITS.split(name)
        )
        return rank.get(name, len(rank)), list(parts), name

    return sorted(set(names), key=key)


def order_tasks(names: Iterable[str], board: Scoreboard) -> list[str]:
    """Return distinct task names: those of the scoreboard first, in its order, then the others by name."""
    headline = list(dict.fromkeys(column.task for column in board.columns))
    present = set(names)
    return [*(name for name in headline if name in present), *order_groups(present.difference(headline))]


def group_columns(scores: pa.Table) -> list[str]:
    """Return the group columns of a score table, which are all columns outside the score schema."""
    return [name for name in scores.column_names if name not in SCORES.schema.names]


def overall_rows(scores: pa.Table) -> list[ScoreRow]:
    """Return the score rows that cover all questions of a task; their group columns are all null."""
    return _rows_without(scores, group_columns(scores))


def rows_by_group(scores: pa.Table) -> dict[str, list[ScoreRow]]:
    """Return the score rows of each group column, relation and domain first; columns without rows are omitted."""
    names = sorted(group_columns(scores), key=lambda name: (name not in _FIRST_GROUPS, name not in _FIRST_GROUPS[:1]))
    return {name: rows for name in names if (rows := _grouped_rows(scores, name))}


def _grouped_rows(scores: pa.Table, group: str) -> list[ScoreRow]:
    """Return the score rows that are grouped by the column ``group`` alone.

    Without such rows, return the rows grouped by ``group`` and other columns, unless groups then have several rows.
    """
    grouped = scores.filter(pc.is_valid(scores[group]))
    single = _rows_without(grouped, [name for name in group_columns(scores) if name != group])
    if single:
        return single
    names = ("model", "task", "probe", "method", "metric", group)
    rows: list[ScoreRow] = grouped.to_pylist()
    return rows if len({tuple(row[name] for name in names) for row in rows}) == len(rows) else []


def build_scoreboard(
    scores: pa.Table,
    headline: Iterable[Any],
    baselines: Collection[str] = (),
    main_methods: Collection[str] = (),
    models: Iterable[str] = (),
) -> Scoreboard:
    """Arrange the overall scores of a run as lines and columns.

    A model has one line. If it has scores by several methods in a column, each method has a line.

    Args:
        headline: Mappings with ``task`` and ``metric``, or pairs of them. If none has scores, the columns are the first
            metric of each task.
        baselines: Models that are marked as best only if there are no other models.
        main_methods: Methods to show. All methods are shown for a model and task that has none of them.
        models: Models in the order of the study, by which lines are ordered. A model that has scores, but no headline
            score, has a line without cells.
    """
    rows = overall_rows(scores)
    pairs = _headline_pairs(rows, headline)
    available = {(row["task"], row["metric"]) for row in rows}
    columns = [ScoreColumn(*pair, percent=is_share(rows, pair[1])) for pair in pairs if pair in available]
    absent = tuple(ScoreColumn(*pair, percent=True).label for pair in pairs if pair not in available)
    column_of = {(column.task, column.metric): column for column in columns}
    headline_rows = [row for row in rows if (row["task"], row["metric"]) in column_of]
    has_main = {(row["model"], row["task"]) for row in headline_rows if row["method"] in main_methods}
    headline_rows = [
        row for row in headline_rows if (row["model"], row["task"]) not in has_main or row["method"] in main_methods
    ]
    known_models = scores["model"].unique().to_pylist()
    series = _ordered_series(series_from_rows(headline_rows), models, known_models if columns else ())
    cells: dict[tuple[Series, ScoreColumn], ScoreCell] = {}
    for row in headline_rows:
        line = next(line for line in series if line.covers(row))
        cells.setdefault((line, column_of[row["task"], row["metric"]]), cell_from_row(row))
    best = {}
    contenders = [line for line in series if line.model not in baselines] or list(series)
    for column in columns:
        values = {line: cells[line, column].value for line in contenders if (line, column) in cells}
        known = {line: value for line, value in values.items() if value is not None}
        if known:
            best_value = min(known.values()) if column.metric in LOWER_IS_BETTER else max(known.values())
            best[column] = frozenset(line for line, value in known.items() if value == best_value)
    return Scoreboard(tuple(columns), tuple(series), cells, best, absent)


def _ordered_series(series: Sequence[Series], models: Iterable[str], known_models: Iterable[str]) -> list[Series]:
    """Order scoreboard lines by model, and add a line for each known model that has none."""
    position = {name: index for index, name in enumerate(dict.fromkeys(models))}
    scored = {line.model for line in series}
    lines = [*series, *(Series(name) for name in dict.fromkeys(known_models) if name not in scored)]
    return sorted(lines, key=lambda line: position.get(line.model, len(position)))


def cell_from_row(row: Mapping[str, Any]) -> ScoreCell:
    """Make a cell from a row of the score table; null and NaN become None."""
    value, low, high, chance, sd = (
        finite_or_none(row.get(name)) for name in ("value", "low", "high", "chance", "wording_sd")
    )
    n, unusable, wording_n = (int(row.get(name) or 0) for name in ("n", "unusable", "wording_n"))
    return ScoreCell(value, low, high, chance, n, unusable, sd, wording_n)


def above_chance(value: float | None, chance: float | None) -> float | None:
    """Adjust a score for chance: (value - chance) / (1 - chance).

    Return None if the value or the chance level is missing, or if chance is 1.
    """
    if value is None or chance is None or chance >= 1:
        return None
    return (value - chance) / (1 - chance)


def _rows_without(scores: pa.Table, groups: Sequence[str]) -> list[ScoreRow]:
    if groups:
        scores = scores.filter(reduce(pc.and_, [pc.is_null(scores[name]) for name in groups]))
    rows: list[ScoreRow] = scores.to_pylist()
    return rows


def _headline_pairs(rows: list[ScoreRow], headline: Iterable[Any]) -> list[tuple[str, str]]:
    """Return distinct pairs of task and metric; if none has scores, the first metric of each task."""
    pairs = list(dict.fromkeys(map(_headline_pair, headline)))
    available = {(row["task"], row["metric"]) for row in rows}
    if not available.isdisjoint(pairs):
        return pairs
    first_metric: dict[str, str] = {}
    for row in rows:
        first_metric.setdefault(row["task"], row["metric"])
    return list(first_metric.items())


def _headline_pair(item: Any) -> tuple[str, str]:
    if isinstance(item, Mapping):
        return str(item["task"]), str(item["metric"])
    task, metric = item
    return str(task), str(metric)


def is_share(rows: list[ScoreRow], metric: str) -> bool:
    """Return whether a metric is a share, which is assumed if all its values lie within [-1, 1]."""
    values = (finite_or_none(row["value"]) for row in rows if row["metric"] == metric)
    return all(value is None or abs(value) <= 1 for value in values)


def series_from_rows(rows: list[ScoreRow]) -> list[Series]:
    """Make the scoreboard lines of score rows: one per model, or one per method if methods compete.

    Methods compete if a model has several for the same task and metric. The model's other methods join its first line.
    """
    ways_of: dict[str, dict[tuple[str, str], dict[tuple[str, str], None]]] = {}
    for row in rows:
        ways = ways_of.setdefault(row["model"], {}).setdefault((row["task"], row["metric"]), {})
        ways[row["probe"], row["method"]] = None
    series: list[Series] = []
    for model, by_score in ways_of.items():
        alternatives = [ways for ways in by_score.values() if len(ways) > 1]
        if not alternatives:
            series.append(Series(model))
            continue
        used = list(dict.fromkeys(way for ways in alternatives for way in ways))
        methods = dict.fromkeys(method for ways in by_score.values() for _, method in ways)
        extra = tuple(method for method in methods if method not in {method for _, method in used})
        if any(len({method for _, method in ways}) < len(ways) for ways in alternatives):
            lines = [Series(model, method, probe) for probe, method in used]
        else:
            lines = [Series(model, method) for method in dict.fromkeys(method for _, method in used)]
        series += [replace(lines[0], extra_methods=extra), *lines[1:]]
    return series
