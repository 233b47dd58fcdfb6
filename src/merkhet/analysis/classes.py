"""What a model knows of each class: function words, word senses, commonsense and facts, as far as they were asked."""

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
    join_names,
    metric_label,
    percent,
    quote_name,
)
from merkhet.metrics.metrics import Metric

_AMONG = {
    "fill": "Answers ranked among the whole vocabulary",
    "rank": "Answers ranked among the answers of their task or class",
}
_EXPLANATION = (
    "The share of questions whose right answer is the first (P@1) or among the first ten (P@10), for each task and for "
    "each class of a task that has several; the score of such a task is the mean over its classes. A rank among the "
    "whole vocabulary is harder to win than one among the answers of the class, so the two are not to be compared. Of "
    "two usages of a word the one whose state is nearer to that of the first sentence is taken: guessing is right in "
    "half of the questions. 95% bootstrap intervals over facts."
)


def classes(given: AnalysisInput) -> Analysis | None:
    """Tables by way of ranking, of senses and of what could not be asked; None where nothing has P@k or senses."""
    book = ScoreLookup(given)
    asked = (task for task in book.tasks if task not in book.sense_tasks)
    clozes = [task for task in asked if any(metric in PRECISIONS for metric in book.metrics(task))]
    probes = sorted(dict.fromkeys(line.probe for line in book.lines), key=lambda name: [*_AMONG, name].index(name))
    tables: list[Table] = []
    for probe in probes:
        among = _AMONG.get(probe, f"Answers by the probe {probe}")
        found = [_task_table(book, probe, among, clozes), *(_class_table(book, probe, among, task) for task in clozes)]
        tables += [table for table in found if table is not None]
    tables += [table for table in [_sense_table(book)] if table is not None]
    if not tables:
        return None
    tables += [table for table in [_unusable_table(given)] if table is not None]
    sentences = [
        sentence
        for model in dict.fromkeys(line.model for line in book.lines if line.model not in given.baselines)
        for sentence in (*_best_and_worst(book, model, clozes, probes), *_against_guessing(book, model))
    ]
    sentences = [*_two_rankings(book), *sentences]
    return Analysis(
        "classes", "Knowledge by class", _EXPLANATION + _counting(given), tuple(tables), sentences=tuple(sentences)
    )


def _two_rankings(book: ScoreLookup) -> list[str]:
    """What the methods of clozes mean, where words were ranked in two ways."""
    methods = {
        probe: list(dict.fromkeys(line.method for line in book.lines if line.probe == probe)) for probe in _AMONG
    }
    if not all(methods.values()):
        return []
    return [
        f"By {join_names(methods['fill'])} a word is ranked among the model's whole vocabulary, by "
        f"{join_names(methods['rank'])} among the answers of its class: only the latter can be compared with one "
        "another."
    ]


def _counting(given: AnalysisInput) -> str:
    if not any(given.unusable.values()):
        return ""
    how = "count as wrong" if given.unusable_is_wrong else "are left out of the scores"
    return f" Questions that could not be asked {how}; the last table counts them."


def _task_table(book: ScoreLookup, probe: str, among: str, tasks: Sequence[str]) -> Table | None:
    """Lines and metrics by task."""
    lines = [line for line in book.lines if line.probe == probe]
    metrics = list(dict.fromkeys(metric for task in tasks for metric in book.metrics(task)))
    used = [task for task in tasks if any(book.cell(line, task, metric) for line in lines for metric in metrics)]
    rows: list[TableRow] = []
    for line in lines:
        for metric in metrics:
            cells = [book.cell(line, task, metric) for task in used]
            if any(cell is not None for cell in cells):
                rows.append((_label(book, line), metric_label(metric), *cells))
    columns = (Column("Model"), Column("Metric"), *(Column(task, "share") for task in used))
    return Table(f"{among}.", columns, tuple(rows)) if rows else None


def _class_table(book: ScoreLookup, probe: str, among: str, task: str) -> Table | None:
    """Classes and lines by metric: the models of a class one below the other."""
    metrics = book.metrics(task)
    rows: list[TableRow] = []
    for name in book.classes(task):
        for line in (line for line in book.lines if line.probe == probe):
            cells = [book.cell(line, task, metric, book.class_column, name) for metric in metrics]
            if any(cell is not None for cell in cells):
                size = next(cell.n for cell in cells if cell is not None)
                rows.append((_name(book, name), _label(book, line), *cells, size))
    columns = (
        *(Column("Class"), Column("Model")),
        *(Column(metric_label(metric), "share") for metric in metrics),
        Column("questions", "count"),
    )
    return Table(f"{among}: the classes of {task}.", columns, tuple(rows)) if rows else None


def _label(book: ScoreLookup, line: Line) -> str:
    """The model, with its method where it was asked by several of the probe."""
    others = [one for one in book.lines if (one.model, one.probe) == (line.model, line.probe) and not is_layer(one)]
    return f"{line.model} ({line.method})" if len(others) > 1 else line.model


def _sense_table(book: ScoreLookup) -> Table | None:
    rows: list[TableRow] = []
    for task in book.tasks:
        if task in book.sense_tasks:
            for metric in book.metrics(task):
                for line in book.lines:
                    row = None if is_layer(line) else book.row(line, task, metric)
                    if row is not None:
                        rows.append((line.model, line.method, book.cell(line, task, metric), row["chance"]))
    if not rows:
        return None
    columns = (Column("Model"), Column("States of"), Column("accuracy", "share"), Column("chance", "share"))
    return Table("Word senses: the usage with the same sense is taken.", columns, tuple(rows))


def _unusable_table(given: AnalysisInput) -> Table | None:
    rows: list[TableRow] = []
    for line, reasons in given.unusable.items():
        if is_layer(line):
            continue
        asked = Counter(given.questions_by_id[name].task for name in (*given.usable[line], *reasons))
        for task in given.tasks:
            own = sorted(name for name in reasons if given.questions_by_id[name].task == task)
            if own:
                rows.append((line.model, line.probe, line.method, task, len(own), asked[task], reasons[own[0]]))
    if not rows:
        return None
    columns = (
        *(Column("Model"), Column("Probe"), Column("Method"), Column("Task")),
        *(Column("unusable", "count"), Column("of", "count"), Column("such as")),
    )
    return Table("Questions that could not be asked.", columns, tuple(rows), aside=True)


def _best_and_worst(book: ScoreLookup, model: str, tasks: Sequence[str], probes: Sequence[str]) -> list[str]:
    """Of each task with classes: which one the model knows best and which least, by the first probe that tells."""
    sentences = []
    for task in tasks:
        metric = book.metrics(task)[0]
        for probe in probes:
            line = next((one for one in book.lines if (one.model, one.probe) == (model, probe)), None)
            names = book.classes(task) if line else ()
            named = {name: book.cell(line, task, metric, book.class_column, name) for name in names} if line else {}
            known = {name: cell for name, cell in named.items() if cell is not None and cell.value is not None}
            if len(known) > 1:
                sentences.append(_known(book, quote_name(model), task, metric, probe, known))
                break
    return sentences


def _known(book: ScoreLookup, model: str, task: str, metric: Metric, probe: str, known: dict[str, Estimate]) -> str:
    best, worst = (choose(known, key=lambda name: known[name].value or 0.0) for choose in (max, min))
    among = " among the whole vocabulary" if probe == "fill" else " among the answers of the class"
    where = f"{metric_label(metric)}{among if probe in _AMONG else ''}"
    high, low = known[best], known[worst]
    if high.value == low.value:
        return f"{model} knows all classes of {task} alike ({percent(high.value or 0.0)}, {where})."
    apart = low.high is not None and high.low is not None and high.low > low.high
    return (
        f"Of {task}, {model} knows {_name(book, best)} best ({percent(high.value or 0.0)}) and {_name(book, worst)} "
        f"least ({percent(low.value or 0.0)}; {where}{'' if apart else '; their intervals overlap'})."
    )


def _name(book: ScoreLookup, value: str) -> str:
    """A class with its name, where the card says what it is."""
    name = (book.inputs.data_card.get("names") or {}).get(value)
    return f"{value} ({name})" if name and name != value else value


def _against_guessing(book: ScoreLookup, model: str) -> list[str]:
    sentences = []
    for task in book.tasks:
        line = book.first_line(model, task) if task in book.sense_tasks else None
        for metric in book.metrics(task) if line else ():
            row = book.row(line, task, metric) if line else None
            if row is None or row["chance"] is None or row["low"] is None:
                continue
            side = "is above" if row["low"] > row["chance"] else "is below" if row["high"] < row["chance"] else ""
            verdict = f"{side} guessing" if side else "cannot be told from guessing"
            sentences.append(
                f"On {task}, {quote_name(model)} ({percent(row['value'])}) {verdict} ({percent(row['chance'])})."
            )
    return sentences
