"""What an analysis gets and what it gives: the tables of a run in; tables, figures and sentences out."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from gnomon.foundation.records import Question
from gnomon.scores import Interval, Metric
from gnomon.scores.metrics import EXACT, F1, NoRanksError
from gnomon.scores.ranks import FloatArray
from gnomon.scores.table import gather

Row = dict[str, Any]
NO_DOMAIN = "no domain"


@dataclass(frozen=True)
class Estimate:
    """A number with its interval and the number of things behind it."""

    value: float | None
    low: float | None = None
    high: float | None = None
    n: int | None = None


TableRow = tuple[str | int | float | Estimate | None, ...]


@dataclass(frozen=True)
class Column:
    """A column of a table.

    Kinds: text, count, share (shown in percent), points (a difference of shares), number, correlation, p.
    """

    name: str
    kind: str = "text"


@dataclass(frozen=True)
class Table:
    """Rows of texts, numbers and estimates; None is shown as a dash. What is ``aside`` is folded until it is opened."""

    caption: str
    columns: tuple[Column, ...]
    rows: tuple[TableRow, ...]
    aside: bool = False


@dataclass(frozen=True)
class Figure:
    """What a figure shows, as data; the report draws it.

    ``lines``: rows with x, line, value, low, high and n, a line for each of the values of ``line``, x in order.
    ``stack``: rows with bar, part and count, parts of a bar laid end to end, bars and parts in order.
    """

    kind: str
    caption: str
    rows: tuple[Row, ...]
    x: str = ""


@dataclass(frozen=True)
class Analysis:
    """What one analysis found, ready to be shown."""

    name: str
    title: str
    explanation: str
    tables: tuple[Table, ...] = ()
    figures: tuple[Figure, ...] = ()
    sentences: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """The same as JSON values; what is not a finite number is null."""
        plain: dict[str, Any] = _plain(asdict(self))
        return plain


@dataclass(frozen=True)
class Line:
    """The answers of one model by one probe and one method."""

    model: str
    probe: str
    method: str


@dataclass(frozen=True)
class AnalysisInput:
    """One run as an analysis sees it.

    ``questions`` are rows of the table of questions, ``asked`` the same as objects by id, ``facts`` rows of facts,
    ``answers`` and ``scores`` rows of those tables. ``clusters`` names the fact that a question stands and falls with.
    ``headline`` are the tasks with their metrics, ``about`` is what the data card says (``domains``: names in order,
    ``knowledge_types``: the kind of knowledge of each). ``entities`` are the names in a question's prompt, where the
    suite has written them down. ``options`` are those of the study; paths among them are as they can be opened.
    """

    questions: Sequence[Row]
    asked: Mapping[str, Question]
    answers: Sequence[Row]
    clusters: Mapping[str, str]
    headline: Sequence[tuple[str, Metric]]
    scores: Sequence[Row] = ()
    facts: Sequence[Row] = ()
    baselines: frozenset[str] = frozenset()
    about: Mapping[str, Any] = field(default_factory=dict)
    entities: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    seed: int = 0

    @cached_property
    def usable(self) -> dict[Line, dict[str, Row]]:
        """The usable answers of each line by question, lines in the order of the answers."""
        found: dict[Line, dict[str, Row]] = {}
        for answer in self.answers:
            own = found.setdefault(Line(answer["model"], answer["probe"], answer["method"]), {})
            if answer["unusable"] is None:
                own[answer["question_id"]] = answer
        return found

    @cached_property
    def labels(self) -> dict[Line, str]:
        """What a line is called: the model, with its method and, if need be, its probe where it has several lines."""
        ways: dict[str, list[Line]] = {}
        for line in self.usable:
            ways.setdefault(line.model, []).append(line)
        return {
            line: line.model if len(ways[line.model]) == 1 else _way(line, ways[line.model]) for line in self.usable
        }

    @cached_property
    def tasks(self) -> list[str]:
        """The tasks that were asked: those of the headline first."""
        asked = [row["task"] for row in self.questions]
        there = set(asked)
        return [task for task in dict.fromkeys([*(task for task, _ in self.headline), *asked]) if task in there]

    @cached_property
    def domains(self) -> dict[str, str]:
        """Every domain that the card or a question names, in the card's order, with its kind of knowledge or ''."""
        kinds = self.about.get("knowledge_types") or {}
        found = {str(name): str(kinds.get(name) or "") for name in self.about.get("domains") or kinds}
        there = {row["domain"] for row in self.questions}
        more = sorted(name for name in there if name is not None and name not in found)
        return found | dict.fromkeys(more, "") | ({NO_DOMAIN: ""} if None in there else {})

    def metric(self, task: str, line: Line) -> Metric:
        """The task's headline metric; word F1 where there is none, or where it needs ranks and nothing was ranked."""
        found = next((metric for name, metric in self.headline if name == task), F1)
        written = next((answer for answer in self.usable[line].values() if not answer["gold_ranks"]), None)
        if written is not None:
            try:
                found.values(gather([written], self.asked))
            except NoRanksError:
                return F1
        return found

    def values(self, line: Line, ids: Sequence[str], metric: Metric) -> FloatArray:
        """The metric's values for these questions, which the line has answered."""
        return metric.values(gather([self.usable[line][name] for name in ids], self.asked))

    def chance_right(self, line: Line, ids: Sequence[str]) -> FloatArray:
        """The chance that an answer is right: 0 or 1, but where right and wrong ones are tied for the first place."""
        return self.values(line, ids, EXACT)

    def clusters_of(self, ids: Sequence[str]) -> np.ndarray[Any, np.dtype[np.str_]]:
        """The facts that these questions stand and fall with."""
        return np.array([self.clusters[name] for name in ids], dtype=np.str_)


def estimate(interval: Interval, n: int) -> Estimate:
    """An interval of :mod:`gnomon.scores.bootstrap` as a cell; ends that are not there are None."""
    value, low, high = (
        None if math.isnan(end) else float(end) for end in (interval.value, interval.low, interval.high)
    )
    return Estimate(value, low, high, n)


def metric_label(metric: Metric) -> str:
    """A metric's name as papers write it: F1, MRR, R@5; longer words stay words."""
    return metric.name.upper() if len(metric.name.partition("@")[0]) <= 3 else metric.name


def listed(names: Sequence[str]) -> str:
    """Names in a sentence."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def percent(value: float) -> str:
    """A share in a sentence."""
    return f"{100 * value:.1f}%"


def _way(line: Line, lines: Sequence[Line]) -> str:
    alone = len({other.method for other in lines}) == len(lines)
    return f"{line.model} ({line.method})" if alone else f"{line.model} ({line.probe}, {line.method})"


def _plain(content: Any) -> Any:
    if isinstance(content, Mapping):
        return {str(key): _plain(value) for key, value in content.items()}
    if isinstance(content, list | tuple):
        return [_plain(value) for value in content]
    if isinstance(content, np.generic):
        content = content.item()
    return None if isinstance(content, float) and not math.isfinite(content) else content
