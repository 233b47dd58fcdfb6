"""Scores by task and class: function words, word senses, commonsense and facts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from merkhet.analysis._score_lookup import PRECISIONS, ScoreLookup, is_layer
from merkhet.analysis.types import Analysis, AnalysisInput, Column, Line, Table, label_lines, make_columns
from merkhet.core.text import join_names, metric_label

_AMONG = {
    "fill": "Answers ranked among the whole vocabulary",
    "rank": "Answers ranked among the candidates of each question",
}
_EXPLANATION = (
    "The share of questions whose right answer is the first (P@1) or among the first ten (P@10), for each task and "
    "for each class of a task that has several; the score of such a task is the mean over its classes. Ranking among "
    "the whole vocabulary is harder than among the candidates of a question, so the two scores are not comparable. Of "
    "two usages of a word, the one whose state is nearer to that of the first sentence is chosen: chance is 50%. 95% "
    "bootstrap intervals over facts."
)


def classes(inputs: AnalysisInput) -> Analysis | None:
    """Tabulate scores by task and class, word senses and unusable questions; None without P@k or sense tasks."""
    lookup = ScoreLookup(inputs)
    cloze_tasks = (task for task in lookup.tasks if task not in lookup.sense_tasks)
    clozes = [task for task in cloze_tasks if any(metric in PRECISIONS for metric in lookup.metrics(task))]
    probes = sorted(dict.fromkeys(line.probe for line in lookup.lines), key=lambda name: [*_AMONG, name].index(name))
    tables: list[Table] = []
    for probe in probes:
        among = _AMONG.get(probe, f"Answers by the probe {probe}")
        lines = [line for line in lookup.lines if line.probe == probe]
        tables += filter(None, [_task_table(lookup, lines, among, clozes)])
        tables += filter(None, [_class_table(lookup, lines, among, task) for task in clozes])
    tables += filter(None, [_sense_table(lookup)])
    if not tables:
        return None
    tables += filter(None, [_unusable_table(inputs)])
    sentences = _explain_rankings(lookup)
    explanation = _EXPLANATION + _explain_unusable(inputs)
    return Analysis("classes", "Knowledge by class", explanation, tuple(tables), sentences=tuple(sentences))


def _explain_rankings(lookup: ScoreLookup) -> list[str]:
    """Explain the methods of cloze tasks if words were ranked both among the vocabulary and among the answers."""
    methods = {
        probe: list(dict.fromkeys(line.method for line in lookup.lines if line.probe == probe)) for probe in _AMONG
    }
    if not all(methods.values()):
        return []
    return [
        f"By {join_names(methods['fill'])} a word is ranked among the model's whole vocabulary, by "
        f"{join_names(methods['rank'])} among the candidates of the question; scores of the two are not comparable."
    ]


def _explain_unusable(inputs: AnalysisInput) -> str:
    if not any(inputs.unusable.values()):
        return ""
    how = "count as wrong" if inputs.unusable_is_wrong else "are left out of the scores"
    return f" Questions that could not be asked {how}; the last table counts them."


def _task_table(lookup: ScoreLookup, lines: Sequence[Line], among: str, tasks: Sequence[str]) -> Table | None:
    """Tabulate scores with a row for each model, method and metric, and a column for each task."""
    labels = label_lines(lines)
    metrics = list(dict.fromkeys(metric for task in tasks for metric in lookup.metrics(task)))
    used = [task for task in tasks if any(lookup.cell(line, task, metric) for line in lines for metric in metrics)]
    rows = []
    for line in lines:
        for metric in metrics:
            cells = [lookup.cell(line, task, metric) for task in used]
            if any(cell is not None for cell in cells):
                rows.append((labels[line], metric_label(metric.name), *cells))
    columns = (Column("Model"), Column("Metric"), *(Column(task, "share") for task in used))
    return Table(f"{among}.", columns, tuple(rows)) if rows else None


def _class_table(lookup: ScoreLookup, lines: Sequence[Line], among: str, task: str) -> Table | None:
    """Tabulate scores with a row for each class, model and method, and a column for each metric."""
    labels, metrics = label_lines(lines), lookup.metrics(task)
    rows = []
    for name in lookup.classes(task):
        for line in lines:
            cells = [lookup.cell(line, task, metric, lookup.class_column, name) for metric in metrics]
            sizes = [cell.n for cell in cells if cell is not None]
            if sizes:
                rows.append((_class_name(lookup, name), labels[line], *cells, sizes[0]))
    shares = (Column(metric_label(metric.name), "share") for metric in metrics)
    columns = (*make_columns("Class", "Model"), *shares, Column("questions", "count"))
    return Table(f"{among}: the classes of {task}.", columns, tuple(rows)) if rows else None


def _sense_table(lookup: ScoreLookup) -> Table | None:
    rows = [
        (line.model, line.method, lookup.cell(line, task, metric), row["chance"])
        for task in lookup.tasks
        if task in lookup.sense_tasks
        for metric in lookup.metrics(task)
        for line in lookup.lines
        if not is_layer(line) and (row := lookup.row(line, task, metric)) is not None
    ]
    columns = make_columns("Model", "States of", "accuracy:share", "chance:share")
    caption = "Word senses: choice of the usage with the same sense."
    return Table(caption, columns, tuple(rows)) if rows else None


def _unusable_table(inputs: AnalysisInput) -> Table | None:
    rows = []
    for line, reasons in inputs.unusable.items():
        if is_layer(line):
            continue
        asked = Counter(inputs.questions_by_id[question_id].task for question_id in (*inputs.usable[line], *reasons))
        for task in inputs.tasks:
            ids = sorted(name for name in reasons if inputs.questions_by_id[name].task == task)
            if ids:
                rows.append((line.model, line.probe, line.method, task, len(ids), asked[task], reasons[ids[0]]))
    columns = make_columns("Model", "Probe", "Method", "Task", "unusable:count", "of:count", "such as")
    return Table("Questions that could not be asked.", columns, tuple(rows), aside=True) if rows else None


def _class_name(lookup: ScoreLookup, value: str) -> str:
    """Return the name of a class, followed by its name in the data card if that differs."""
    name = (lookup.inputs.data_card.get("names") or {}).get(value)
    return f"{value} ({name})" if name and name != value else value
