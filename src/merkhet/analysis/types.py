"""What an analysis gets and what it gives: the tables of a run in; tables, figures and sentences out."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from merkhet.core.records import Question
from merkhet.metrics.bootstrap import Interval, class_weights
from merkhet.metrics.metrics import ACCURACY, EXACT, F1, Metric, NoRanksError, Responses
from merkhet.metrics.ranks import FloatArray
from merkhet.metrics.score_table import first_of_each, gather, mean_of_each

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

    ``lines``: rows with x, line, value, low, high and n, a line for each of the values of ``line``, x in order; where
    every x is a number it stands where it lies, with ``log`` on a logarithmic axis. Without ``zero`` the axis of
    shares begins near the least of them instead of at 0.
    ``stack``: rows with bar, part and count, parts of a bar laid end to end, bars and parts in order.
    ``bars``: rows with panel, x, bar, value, low, high and n; in every panel a group of bars for each x, its bars side
    by side, all in order. ``legend`` says what the bars of a group are.
    ``percent`` says whether values are shown in percent; None: where all of them lie between -1 and 1. ``x`` and ``y``
    are the titles of the axes.
    """

    kind: str
    caption: str
    rows: tuple[Row, ...]
    x: str = ""
    legend: str = ""
    percent: bool | None = None
    log: bool = False
    zero: bool = True
    y: str = ""


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
    ``settings`` tell of a model and a question how its premises are given ("EX/IM"), ``learned`` are records of what
    was learned in the run: model, task, loss, ``epochs`` (each with its loss and perhaps dev_mrr_a) and kept_epoch, or
    for a model that was trained further its objective and ``curve``. ``unusable_is_wrong`` says that questions that
    could not be asked count as wrong, ``average_over`` over the classes of which column a task's score is averaged.
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
    settings: Mapping[tuple[str, str], str] = field(default_factory=dict)
    learned: Sequence[Mapping[str, Any]] = ()
    seed: int = 0
    unusable_is_wrong: bool = False
    average_over: str | None = None

    @cached_property
    def usable(self) -> dict[Line, dict[str, Row]]:
        """The usable answers of each line by question, lines in the order of the answers; of repeats the first."""
        return {line: {name: answers[0] for name, answers in own.items()} for line, own in self._usable_repeats.items()}

    @cached_property
    def _usable_repeats(self) -> dict[Line, dict[str, list[Row]]]:
        found: dict[Line, dict[str, list[Row]]] = {}
        lines: dict[tuple[str, str, str], Line] = {}
        for answer in self.answers:
            way = (answer["model"], answer["probe"], answer["method"])
            if way not in lines:
                lines[way] = Line(*way)
                found[lines[way]] = {}
            if answer["unusable"] is None:
                found[lines[way]].setdefault(answer["question_id"], []).append(answer)
        for own in found.values():
            for answers in own.values():
                if len(answers) > 1:
                    answers.sort(key=lambda answer: answer.get("repeat") or 0)
        return found

    @cached_property
    def unusable(self) -> dict[Line, dict[str, str]]:
        """The questions that each line was asked and could not answer, with the first reason."""
        found: dict[Line, dict[str, str]] = {line: {} for line in self.usable}
        for answer in self.answers:
            if answer["unusable"] is not None:
                line = Line(answer["model"], answer["probe"], answer["method"])
                if answer["question_id"] not in self.usable[line]:
                    found[line].setdefault(answer["question_id"], answer["unusable"])
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
        """The task's headline metric; word F1 where there is none, or where it needs ranks and nothing was ranked.

        Where a model only judged, so that there are neither words nor candidates, it is accuracy.
        """
        found = next((metric for name, metric in self.headline if name == task), F1)
        answers = self.usable[line].values()
        unlike = [one for one in answers if not one["gold_ranks"] or (one.get("outcome") and not one["ranked"])]
        for metric in (found, F1, ACCURACY) if unlike else ():
            try:
                metric.values(gather(unlike, self.asked))
                return metric
            except NoRanksError:
                continue
        return found

    def values(self, line: Line, ids: Sequence[str], metric: Metric) -> FloatArray:
        """The metric's values for these questions, which the line has answered: each the mean over its repeats."""
        found = {task: self._measured(line, task, metric) for task in {self.asked[name].task for name in ids}}
        if len(found) == 1:
            (own,) = found.values()
            return np.array([own[name] for name in ids], dtype=np.float64)
        return np.array([found[self.asked[name].task][name] for name in ids], dtype=np.float64)

    def counted(self, line: Line, task: str) -> list[str]:
        """The questions of a task that count for a line, sorted: those it answered, and where they count as wrong those
        that it could not be asked."""
        if line not in self._counted:
            names = [*self.usable.get(line, ()), *(self.unusable.get(line, ()) if self.unusable_is_wrong else ())]
            own = self._counted[line] = {}
            for name in sorted(names):
                own.setdefault(self.asked[name].task, []).append(name)
        return self._counted[line].get(task, [])

    def counted_values(self, line: Line, ids: Sequence[str], metric: Metric) -> FloatArray:
        """The metric's values for questions that count for the line: 0 for what it could not be asked."""
        answered = np.array([name in self.usable[line] for name in ids], dtype=bool)
        found = np.zeros(len(ids))
        if answered.any():
            found[answered] = self.values(line, [name for name in ids if name in self.usable[line]], metric)
        return found

    def weights(self, ids: Sequence[str]) -> FloatArray:
        """A weight for each question such that a weighted mean is the mean over the classes averaged over."""
        return class_weights(np.array([self._classes.get(name, "") for name in ids], dtype=np.str_))

    @cached_property
    def _classes(self) -> dict[str, str]:
        column = self.average_over
        return {row["question_id"]: str(row[column]) for row in self.questions} if column else {}

    @cached_property
    def _counted(self) -> dict[Line, dict[str, list[str]]]:
        return {}

    def _measured(self, line: Line, task: str, metric: Metric) -> dict[str, float]:
        """The metric's value of every question of the task that the line has answered, worked out once."""
        known = self._known.setdefault((line, task), {})
        if metric not in known:
            names, firsts, responses = self._gathered(line, task)
            values = mean_of_each(np.asarray(metric.values(responses), dtype=np.float64), firsts)
            known[metric] = dict(zip(names, values.tolist(), strict=True))
        return known[metric]

    def _gathered(self, line: Line, task: str) -> tuple[list[str], NDArray[np.int64], Responses]:
        """The questions of a task, where the answers of each begin, and the answers' responses."""
        if (line, task) not in self._responses:
            repeats = self._usable_repeats[line]
            names = [name for name in repeats if self.asked[name].task == task]
            answers = [answer for name in names for answer in repeats[name]]
            firsts = first_of_each([answer["question_id"] for answer in answers])
            self._responses[line, task] = names, firsts, gather(answers, self.asked)
        return self._responses[line, task]

    @cached_property
    def _known(self) -> dict[tuple[Line, str], dict[Metric, dict[str, float]]]:
        return {}

    @cached_property
    def _responses(self) -> dict[tuple[Line, str], tuple[list[str], NDArray[np.int64], Responses]]:
        return {}

    def chance_right(self, line: Line, ids: Sequence[str]) -> FloatArray:
        """The chance that an answer is right: 0 or 1, but where right and wrong ones are tied for the first place."""
        try:
            return self.values(line, ids, EXACT)
        except NoRanksError:
            return self.values(line, ids, ACCURACY)

    def clusters_of(self, ids: Sequence[str]) -> NDArray[np.int64]:
        """The facts that these questions stand and fall with, each as its place among the sorted names of all facts."""
        places = self._places
        return np.array([places[name] for name in ids], dtype=np.int64)

    @cached_property
    def _places(self) -> dict[str, int]:
        order = {fact: place for place, fact in enumerate(sorted(set(self.clusters.values())))}
        return {name: order[fact] for name, fact in self.clusters.items()}


def estimate(interval: Interval, n: int) -> Estimate:
    """An interval of :mod:`merkhet.metrics.bootstrap` as a cell; ends that are not there are None."""
    value, low, high = (
        None if math.isnan(end) else float(end) for end in (interval.value, interval.low, interval.high)
    )
    return Estimate(value, low, high, n)


def metric_label(metric: Metric) -> str:
    """A metric's name as papers write it: F1, MRR, MRR_a, R@5; longer words stay words."""
    return name_label(metric.name)


def name_label(name: str) -> str:
    """The same of a metric's name."""
    stem = re.split("[@_]", name)[0]
    return stem.upper() + name[len(stem) :] if len(stem) <= 3 else name


def listed(names: Sequence[str]) -> str:
    """Names in a sentence."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def told(name: str) -> str:
    """A model's name in a sentence: between quotation marks where it has a comma of its own."""
    return f"“{name}”" if "," in name else name


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
