"""What models have memorized of an ontology: types, superclasses, superproperties, domains and ranges."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from merkhet.analysis.types import (
    Analysis,
    AnalysisInput,
    Column,
    Estimate,
    Line,
    Table,
    TableRow,
    estimate,
    join_names,
    metric_label,
)
from merkhet.core.ids import derived_seed
from merkhet.metrics.bootstrap import clustered_interval
from merkhet.metrics.metrics import ACCURACY, EXACT, MRR, MRR_ALL, Metric, make_recall

TASKS = ("TP", "SCO", "SPO", "DM", "RG")
CHOICE = "-choice"
METRICS = (make_recall("1"), make_recall("5"), MRR_ALL, MRR)
_SOFT = re.compile(r"^(?P<base>.+), soft(?: \((?P<loss>[^()]+)\))?$")
_EXPLANATION = (
    "How high the right classes and properties stand among all candidates. Best choice: of all templates and methods "
    "(and, for soft prompts, training losses) the one with the best result, for each score by itself, as in the paper. "
    "This choice is made on the test questions themselves, so these numbers flatter a model the more, the more ways it "
    "was asked in. Fixed choice: the template “… is a particular …”, or the first where there is none, and the "
    "model's first method, whatever comes of it. A baseline does not read the words: its numbers are over all "
    "templates. MRR_a is left out where every question has a single right answer, since there it equals MRR. 95% "
    "bootstrap intervals over facts; they do not account for the choice."
)


@dataclass(frozen=True)
class Way:
    """How questions were asked and answers read: a line and one template."""

    line: Line
    template: str


@dataclass(frozen=True)
class _Asked:
    """A column of the tables: a baseline, or a model by manual templates or by soft ones."""

    title: str
    models: tuple[str, ...]
    baseline: bool = False


def base_model(model: str) -> str:
    """The model that soft prompts were learned for; the model itself where there are none."""
    found = _SOFT.match(model)
    return found["base"] if found else model


def soft_loss(model: str) -> str | None:
    """The loss by which a model's soft prompts were learned; None for a model without."""
    found = _SOFT.match(model)
    return (found["loss"] or "bce") if found else None


def ranked_ways(given: AnalysisInput, tasks: Sequence[str]) -> dict[str, dict[Way, list[str]]]:
    """Of each task the ways in which it was asked with the sorted ids of the questions answered so, templates in order.

    What was written has no ranks and is left out; so is a task that nobody answered.
    """
    asked: dict[str, dict[str, list[str]]] = {task: defaultdict(list) for task in tasks}
    for row in given.questions:
        if row["task"] in asked:
            asked[row["task"]][row["template"] or row["task"]].append(row["question_id"])
    found: dict[str, dict[Way, list[str]]] = {}
    for task, templates in asked.items():
        for template in sorted(templates):
            ids = sorted(templates[template])
            for line, answers in given.usable.items():
                kept = [name for name in ids if name in answers]
                if kept and answers[kept[0]]["gold_ranks"]:
                    found.setdefault(task, {})[Way(line, template)] = kept
    return found


def metrics_of(given: AnalysisInput, task_ways: dict[Way, list[str]]) -> list[Metric]:
    """The metrics of a task: without MRR_a where every question has one right answer."""
    several = any(len(given.questions_by_id[name].answers) > 1 for ids in task_ways.values() for name in ids)
    return [metric for metric in METRICS if several or metric is not MRR_ALL]


def memorizing(given: AnalysisInput) -> Analysis | None:
    """Best and fixed ways of asking, all of them, and multiple choice; None where no such task was answered."""
    found = _Memorized(given)
    choices = _choice_table(given)
    if not found.ways and choices is None:
        return None
    tables = found.tables() if found.ways else []
    return Analysis(
        "memorizing",
        "Memorizing: types, hierarchies, domains and ranges",
        _EXPLANATION,
        (*tables, *([choices] if choices else [])),
        sentences=tuple(found.sentences()),
    )


class _Memorized:
    """The tables of one run; means and intervals are worked out once."""

    def __init__(self, given: AnalysisInput) -> None:
        self.given = given
        self.ways = ranked_ways(given, TASKS)
        self._estimates: dict[tuple[str, Way, str], Estimate] = {}

    @cached_property
    def columns(self) -> list[_Asked]:
        """Baselines first, then every model by manual and by soft prompts."""
        models = list(dict.fromkeys(way.line.model for ways in self.ways.values() for way in ways))
        order = [model for model in dict.fromkeys(line.model for line in self.given.usable) if model in models]
        baselines = [_Asked(model, (model,), baseline=True) for model in order if model in self.given.baselines]
        rest = [model for model in order if model not in self.given.baselines]
        columns = []
        for base in dict.fromkeys(base_model(model) for model in rest):
            soft = [model for model in rest if model != base and base_model(model) == base]
            if base in rest:
                columns.append(_Asked(f"{base}, manual" if soft else base, (base,)))
            if soft:
                columns.append(_Asked(f"{base}, soft", tuple(sorted(soft))))
        return baselines + columns

    @cached_property
    def means(self) -> dict[tuple[str, Way, str], float]:
        """The mean of every task, way and metric."""
        return {
            (task, way, metric.name): float(self.given.values(way.line, ids, metric).mean())
            for task, ways in self.ways.items()
            for metric in metrics_of(self.given, ways)
            for way, ids in ways.items()
        }

    def tables(self) -> list[Table]:
        best: list[TableRow] = []
        winners: list[TableRow] = []
        fixed: list[TableRow] = []
        for task, ways in self.ways.items():
            for metric in metrics_of(self.given, ways):
                head = (task, metric_label(metric))
                chosen = [self.best(task, column, metric) for column in self.columns]
                kept = [self.fixed(task, column) for column in self.columns]
                best.append((*head, *self._cells(task, chosen, metric)))
                fixed.append((*head, *self._cells(task, kept, metric)))
                own = [way for way, column in zip(chosen, self.columns, strict=True) if not column.baseline]
                winners.append((*head, *(None if way is None else _named(way) for way in own)))
        titles = [column.title for column in self.columns]
        numbers = (Column("Task"), Column("Score"), *(Column(title, "share") for title in titles))
        models = [column.title for column in self.columns if not column.baseline]
        texts = (Column("Task"), Column("Score"), *(Column(title) for title in models))
        tables = [Table("Best choice of template and method, made on the test questions.", numbers, tuple(best))]
        if models:
            caption = "Which template and method were best."
            tables.append(Table(caption, texts, tuple(winners), aside=True))
        caption = "Fixed choice of template and method."
        tables.append(Table(caption, numbers, tuple(fixed)))
        return tables + self._everything()

    def best(self, task: str, column: _Asked, metric: Metric) -> Way | None:
        """The way with the highest mean, the first of equal ones."""
        ways = self._own(task, column)
        if not ways or column.baseline:
            return ways[0] if ways else None
        return max(ways, key=lambda way: self.means[task, way, metric.name])

    def fixed(self, task: str, column: _Asked) -> Way | None:
        """Template 3, or the first there is, with the first method of the first of the column's models."""
        ways = self._own(task, column)
        if not ways or column.baseline:
            return ways[0] if ways else None
        model = next(model for model in column.models if any(way.line.model == model for way in ways))
        line = next(line for line in self.given.usable if any(way.line == line for way in ways) and line.model == model)
        templates = [way for way in ways if way.line == line]
        return next((way for way in templates if way.template == f"{task}/3"), templates[0])

    def _own(self, task: str, column: _Asked) -> list[Way]:
        """The column's ways in a task; all templates at once, called '', for a baseline."""
        own = [way for way in self.ways.get(task, {}) if way.line.model in column.models]
        return [Way(own[0].line, "")] if own and column.baseline else own

    def ids(self, task: str, way: Way) -> list[str]:
        """The questions that were answered in this way."""
        ways = self.ways[task]
        if way.template:
            return ways[way]
        return sorted(name for other, ids in ways.items() if other.line == way.line for name in ids)

    def _cells(self, task: str, ways: Sequence[Way | None], metric: Metric) -> list[Estimate | None]:
        return [None if way is None else self._estimate(task, way, metric) for way in ways]

    def _estimate(self, task: str, way: Way, metric: Metric) -> Estimate:
        key = (task, way, metric.name)
        if key not in self._estimates:
            ids = self.ids(task, way)
            # The seeds of the table of scores: a score is the same wherever it stands.
            group = (task, "template", way.template) if way.template else (task, "", "")
            seed = derived_seed(self.given.seed, *group, metric.name)
            values, clusters = self.given.values(way.line, ids, metric), self.given.cluster_ids(ids)
            self._estimates[key] = estimate(clustered_interval(values, clusters, seed=seed), len(ids))
        return self._estimates[key]

    def _everything(self) -> list[Table]:
        """For each task and model all templates, losses and methods."""
        tables = []
        bases = dict.fromkeys(base_model(model) for column in self.columns for model in column.models)
        for task, ways in self.ways.items():
            metrics = metrics_of(self.given, ways)
            columns = (
                *(Column("Template"), Column("Method")),
                *(Column(metric_label(metric), "share") for metric in metrics),
                Column("n", "count"),
            )
            for base in bases:
                rows: list[TableRow] = [
                    (
                        _template(way),
                        way.line.method,
                        *(self.means[task, way, metric.name] for metric in metrics),
                        len(ids),
                    )
                    for way, ids in ways.items()
                    if base_model(way.line.model) == base
                ]
                if rows and base not in self.given.baselines:
                    caption = f"{task}, {base}: all templates and methods."
                    tables.append(Table(caption, columns, tuple(rows), aside=True))
        return tables

    def sentences(self) -> list[str]:
        """Of each model with its fixed choice: where its MRR is above or below that of the first baseline, paired."""
        baseline = next((column for column in self.columns if column.baseline), None)
        if baseline is None:
            return []
        return [
            sentence
            for column in self.columns
            if not column.baseline and (sentence := self._against(column, baseline)) is not None
        ]

    def _against(self, column: _Asked, baseline: _Asked) -> str | None:
        told: dict[str, list[str]] = {"above": [], "below": [], "not told apart": []}
        for task in self.ways:
            way, other = self.fixed(task, column), self.fixed(task, baseline)
            if way is None or other is None:
                continue
            own = self._by_fact(task, way)
            base = self._by_fact(task, other)
            shared = np.array(sorted(own.keys() & base.keys()), dtype=np.int64)
            if len(shared) < 2:
                continue
            ahead = np.array([own[fact] - base[fact] for fact in shared.tolist()])
            seed = derived_seed(self.given.seed, "memorizing", task)
            interval = clustered_interval(ahead, shared, seed=seed)
            told["above" if interval.low > 0 else "below" if interval.high < 0 else "not told apart"].append(task)
        parts = "; ".join(f"{side} on {join_names(tasks)}" for side, tasks in told.items() if tasks)
        against = f"{column.title} (fixed choice) against {baseline.title} in MRR, paired by fact"
        return f"{against}: {parts}." if parts else None

    def _by_fact(self, task: str, way: Way) -> dict[int, float]:
        ids = self.ids(task, way)
        facts, index = np.unique(self.given.cluster_ids(ids), return_inverse=True)
        means = np.bincount(index, self.given.values(way.line, ids, MRR)) / np.bincount(index)
        return dict(zip(facts.tolist(), means.tolist(), strict=True))


def first_lines(given: AnalysisInput, ids: Sequence[str]) -> dict[str, Line]:
    """Of each model the first line that has answered one of these questions."""
    found: dict[str, Line] = {}
    for line, answers in given.usable.items():
        if line.model not in found and any(name in answers for name in ids):
            found[line.model] = line
    return found


def accuracy_of(given: AnalysisInput, line: Line) -> Metric:
    """Accuracy where candidates were ranked, exact match where the answer was written."""
    answers = given.usable[line]
    return ACCURACY if all(answer["gold_ranks"] for answer in answers.values()) else EXACT


def chance_of(given: AnalysisInput, ids: Sequence[str]) -> float:
    """How often guessing among the candidates is right."""
    asked = [given.questions_by_id[name] for name in ids]
    shares = [len(set(one.answers) & set(one.candidates)) / len(one.candidates) for one in asked if one.candidates]
    return float(np.mean(shares)) if shares else 0.0


def _choice_table(given: AnalysisInput) -> Table | None:
    """Accuracy in multiple choice: tasks by models, each with its first method."""
    by_task: dict[str, list[str]] = {task: [] for task in TASKS}
    for row in given.questions:
        if row["task"].endswith(CHOICE) and row["task"].removesuffix(CHOICE) in by_task:
            by_task[row["task"].removesuffix(CHOICE)].append(row["question_id"])
    lines = first_lines(given, [name for ids in by_task.values() for name in ids])
    rows: list[TableRow] = []
    for task, members in by_task.items():
        cells: list[Estimate | None] = []
        for line in lines.values():
            kept = sorted(name for name in members if name in given.usable[line])
            metric = accuracy_of(given, line)
            seed = derived_seed(given.seed, f"{task}{CHOICE}", "", "", metric.name)
            values, clusters = given.values(line, kept, metric), given.cluster_ids(kept)
            cells.append(estimate(clustered_interval(values, clusters, seed=seed), len(kept)) if kept else None)
        if any(cell is not None for cell in cells):
            rows.append((task, chance_of(given, members), *cells))
    if not rows:
        return None
    columns = (Column("Task"), Column("chance", "share"), *(Column(model, "share") for model in lines))
    return Table("Multiple choice: accuracy, by each model's first method.", columns, tuple(rows))


def _template(way: Way) -> str:
    loss = soft_loss(way.line.model)
    name = way.template.rpartition("/")[2]
    return name if loss is None else f"{name} ({loss})"


def _named(way: Way) -> str:
    return f"{_template(way)}, {way.line.method}"
