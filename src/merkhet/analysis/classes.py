"""Scores by task and class: function words, word senses, commonsense and facts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from merkhet.analysis._score_lookup import PRECISIONS, ScoreLookup, is_layer
from merkhet.analysis.types import (
    Analysis,
    AnalysisInput,
    Column,
    Estimate,
    Line,
    Table,
    TableRow,
    make_columns,
    metric_label,
)
from merkhet.core.text import join_names, percent, quote_name
from merkhet.metrics.metrics import Metric

_AMONG = {
    "fill": "Answers ranked among the whole vocabulary",
    "rank": "Answers ranked among the answers of their task or class",
}
_EXPLANATION = (
    "The share of questions whose right answer is the first (P@1) or among the first ten (P@10), for each task and "
    "for each class of a task that has several; the score of such a task is the mean over its classes. Ranking among "
    "the whole vocabulary is harder than among the answers of the class, so the two scores are not comparable. Of two "
    "usages of a word, the one whose state is nearer to that of the first sentence is chosen: chance is 50%. 95% "
    "bootstrap intervals over facts."
)


def classes(inputs: AnalysisInput) -> Analysis | None:
    """Tabulate scores by probe, of word senses, and unusable questions; None without P@k or sense tasks."""
    lookup = ScoreLookup(inputs)
    cloze_tasks = (task for task in lookup.tasks if task not in lookup.sense_tasks)
    clozes = [task for task in cloze_tasks if any(metric in PRECISIONS for metric in lookup.metrics(task))]
    probes = sorted(dict.fromkeys(line.probe for line in lookup.lines), key=lambda name: [*_AMONG, name].index(name))
    tables: list[Table] = []
    for probe in probes:
        among = _AMONG.get(probe, f"Answers by the probe {probe}")
        probe_tables = [
            _task_table(lookup, probe, among, clozes),
            *(_class_table(lookup, probe, among, task) for task in clozes),
        ]
        tables += [table for table in probe_tables if table is not None]
    tables += [table for table in [_sense_table(lookup)] if table is not None]
    if not tables:
        return None
    tables += [table for table in [_unusable_table(inputs)] if table is not None]
    sentences = [
        sentence
        for model in dict.fromkeys(line.model for line in lookup.lines if line.model not in inputs.baselines)
        for sentence in (*_describe_classes(lookup, model, clozes, probes), *_describe_chance(lookup, model))
    ]
    sentences = [*_explain_rankings(lookup), *sentences]
    explanation = _EXPLANATION + _explain_unusable(inputs)
    return Analysis("classes", "Knowledge by class", explanation, tuple(tables), sentences=tuple(sentences))


def _explain_rankings(lookup: ScoreLookup) -> list[str]:
    """Explain the methods of cloze tasks, if words were ranked in two ways."""
    methods = {
        probe: list(dict.fromkeys(line.method for line in lookup.lines if line.probe == probe)) for probe in _AMONG
    }
    if not all(methods.values()):
        return []
    return [
        f"By {join_names(methods['fill'])} a word is ranked among the model's whole vocabulary, by "
        f"{join_names(methods['rank'])} among the answers of its class; scores of the two are not comparable."
    ]


def _explain_unusable(inputs: AnalysisInput) -> str:
    if not any(inputs.unusable.values()):
        return ""
    how = "count as wrong" if inputs.unusable_is_wrong else "are left out of the scores"
    return f" Questions that could not be asked {how}; the last table counts them."


def _task_table(lookup: ScoreLookup, probe: str, among: str, tasks: Sequence[str]) -> Table | None:
    """Tabulate lines and metrics by task."""
    lines = [line for line in lookup.lines if line.probe == probe]
    metrics = list(dict.fromkeys(metric for task in tasks for metric in lookup.metrics(task)))
    used = [task for task in tasks if any(lookup.cell(line, task, metric) for line in lines for metric in metrics)]
    rows: list[TableRow] = []
    for line in lines:
        for metric in metrics:
            cells = [lookup.cell(line, task, metric) for task in used]
            if any(cell is not None for cell in cells):
                rows.append((_label(lookup, line), metric_label(metric), *cells))
    columns = (Column("Model"), Column("Metric"), *(Column(task, "share") for task in used))
    return Table(f"{among}.", columns, tuple(rows)) if rows else None


def _class_table(lookup: ScoreLookup, probe: str, among: str, task: str) -> Table | None:
    """Tabulate classes and lines by metric, grouped by class."""
    metrics = lookup.metrics(task)
    rows: list[TableRow] = []
    for name in lookup.classes(task):
        for line in (line for line in lookup.lines if line.probe == probe):
            cells = [lookup.cell(line, task, metric, lookup.class_column, name) for metric in metrics]
            if any(cell is not None for cell in cells):
                size = next(cell.n for cell in cells if cell is not None)
                rows.append((_class_name(lookup, name), _label(lookup, line), *cells, size))
    shares = (Column(metric_label(metric), "share") for metric in metrics)
    columns = (*make_columns("Class", "Model"), *shares, Column("questions", "count"))
    return Table(f"{among}: the classes of {task}.", columns, tuple(rows)) if rows else None


def _label(lookup: ScoreLookup, line: Line) -> str:
    """Label a line by its model, with the method if the model was asked by several of the probe."""
    siblings = [
        sibling
        for sibling in lookup.lines
        if (sibling.model, sibling.probe) == (line.model, line.probe) and not is_layer(sibling)
    ]
    return f"{line.model} ({line.method})" if len(siblings) > 1 else line.model


def _sense_table(lookup: ScoreLookup) -> Table | None:
    rows: list[TableRow] = []
    for task in lookup.tasks:
        if task in lookup.sense_tasks:
            for metric in lookup.metrics(task):
                for line in lookup.lines:
                    row = None if is_layer(line) else lookup.row(line, task, metric)
                    if row is not None:
                        rows.append((line.model, line.method, lookup.cell(line, task, metric), row["chance"]))
    if not rows:
        return None
    columns = make_columns("Model", "States of", "accuracy:share", "chance:share")
    return Table("Word senses: choice of the usage with the same sense.", columns, tuple(rows))


def _unusable_table(inputs: AnalysisInput) -> Table | None:
    rows: list[TableRow] = []
    for line, reasons in inputs.unusable.items():
        if is_layer(line):
            continue
        asked_counts = Counter(
            inputs.questions_by_id[question_id].task for question_id in (*inputs.usable[line], *reasons)
        )
        for task in inputs.tasks:
            unusable_ids = sorted(
                question_id for question_id in reasons if inputs.questions_by_id[question_id].task == task
            )
            if unusable_ids:
                counts = (len(unusable_ids), asked_counts[task])
                rows.append((line.model, line.probe, line.method, task, *counts, reasons[unusable_ids[0]]))
    if not rows:
        return None
    columns = make_columns("Model", "Probe", "Method", "Task", "unusable:count", "of:count", "such as")
    return Table("Questions that could not be asked.", columns, tuple(rows), aside=True)


def _describe_classes(lookup: ScoreLookup, model: str, tasks: Sequence[str], probes: Sequence[str]) -> list[str]:
    """Word for each task which class the model knows best and which least, by the first probe with scores."""
    sentences = []
    for task in tasks:
        metric = lookup.metrics(task)[0]
        for probe in probes:
            line = next(
                (candidate for candidate in lookup.lines if (candidate.model, candidate.probe) == (model, probe)), None
            )
            names = lookup.classes(task) if line else ()
            cells = {name: lookup.cell(line, task, metric, lookup.class_column, name) for name in names} if line else {}
            known = {name: cell for name, cell in cells.items() if cell is not None and cell.value is not None}
            if len(known) > 1:
                sentences.append(_describe_extremes(lookup, quote_name(model), task, metric, probe, known))
                break
    return sentences


def _describe_extremes(
    lookup: ScoreLookup, model: str, task: str, metric: Metric, probe: str, known: dict[str, Estimate]
) -> str:
    best, worst = (choose(known, key=lambda name: known[name].value or 0.0) for choose in (max, min))
    among = " among the whole vocabulary" if probe == "fill" else " among the answers of the class"
    where = f"{metric_label(metric)}{among if probe in _AMONG else ''}"
    high, low = known[best], known[worst]
    if high.value == low.value:
        return f"{model} knows all classes of {task} alike ({percent(high.value or 0.0)}, {where})."
    apart = low.high is not None and high.low is not None and high.low > low.high
    return (
        f"Of {task}, {model} knows {_class_name(lookup, best)} best ({percent(high.value or 0.0)}) and "
        f"{_class_name(lookup, worst)} least ({percent(low.value or 0.0)}; {where}"
        f"{'' if apart else '; their intervals overlap'})."
    )


def _class_name(lookup: ScoreLookup, value: str) -> str:
    """Name a class, with the name of the data card if there is one."""
    name = (lookup.inputs.data_card.get("names") or {}).get(value)
    return f"{value} ({name})" if name and name != value else value


def _describe_chance(lookup: ScoreLookup, model: str) -> list[str]:
    sentences = []
    for task in lookup.tasks:
        line = lookup.first_line(model, task) if task in lookup.sense_tasks else None
        for metric in lookup.metrics(task) if line else ():
            row = lookup.row(line, task, metric) if line else None
            if row is None or row["chance"] is None or row["low"] is None:
                continue
            verdict = "does not differ significantly from chance"
            if row["low"] > row["chance"] or row["high"] < row["chance"]:
                verdict = f"is significantly {'above' if row['low'] > row['chance'] else 'below'} chance"
            sentences.append(
                f"On {task}, {quote_name(model)} ({percent(row['value'])}) {verdict} ({percent(row['chance'])})."
            )
    return sentences
