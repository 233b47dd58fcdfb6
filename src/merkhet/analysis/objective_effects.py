"""What an objective does to knowledge: models that were trained further by several of them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from merkhet.analysis._score_lookup import ScoreLookup
from merkhet.analysis.comparison import Comparison, correct_comparisons
from merkhet.analysis.types import (
    Analysis,
    AnalysisInput,
    Column,
    Estimate,
    Figure,
    Line,
    Table,
    TableRow,
    join_names,
    metric_label,
)
from merkhet.core.ids import derived_seed
from merkhet.metrics.bootstrap import paired_difference
from merkhet.metrics.metrics import Metric

OBJECTIVES = ("mlm", "mlm+sbo", "mlm+sop", "mlm+nsp")
_PLAIN = OBJECTIVES[0]
_TRAINED = re.compile(rf"^(?P<base>.+), (?P<objective>{'|'.join(map(re.escape, OBJECTIVES))})(?P<run> \(.+\))?$")
_EXPLANATION = (
    "One model, trained further on the same texts by each objective: masked words alone (mlm), and with the boundaries "
    "of spans (sbo), the order of sentences (sop) or the next sentence (nsp). Scores have 95% bootstrap intervals over "
    "facts. Each objective is compared with mlm on the same questions (paired difference, p of a sign-flip permutation "
    "test, Holm-corrected over the table). This is further training of one model with one seed, not training from the "
    "beginning as in the paper."
)


def parse_trained_model(model: str) -> tuple[str, str] | None:
    """The model that was trained further (with its run, where that is told) and its objective; None for others."""
    found = _TRAINED.match(model)
    return (found["base"] + (found["run"] or ""), found["objective"]) if found else None


def objectives(given: AnalysisInput) -> Analysis | None:
    """Scores by objective, differences from mlm and curves of the loss; None where no model was trained further."""
    book = ScoreLookup(given)
    families: dict[str, dict[str, str]] = {}
    for model in dict.fromkeys(line.model for line in book.lines):
        found = parse_trained_model(model)
        if found is not None:
            families.setdefault(found[0], {})[found[1]] = model
    if not families:
        return None
    tables, sentences = [], []
    for base, trained in families.items():
        order = {name: trained[name] for name in OBJECTIVES if name in trained}
        tables.append(_scores(book, base, order))
        compared = _compared(given, book, order)
        if compared:
            tables.append(_differences(base, compared))
            sentences += _told(base, order, compared)
    return Analysis(
        "objectives",
        "Training objectives",
        _EXPLANATION,
        tuple(tables),
        tuple(_curves(given.training_records)),
        tuple(sentences),
    )


def _scores(book: ScoreLookup, base: str, trained: Mapping[str, str]) -> Table:
    models = {"before": base, **trained} if any(line.model == base for line in book.lines) else dict(trained)
    rows: list[TableRow] = []
    for task in book.tasks:
        for metric in book.metrics(task):
            cells = [_cell(book, model, task, metric) for model in models.values()]
            if any(cell is not None for cell in cells):
                rows.append((f"{task} {metric_label(metric)}", *cells))
    columns = (Column("Score"), *(Column(name, "share") for name in models))
    return Table(f"{base} trained further by each objective.", columns, tuple(rows))


def _cell(book: ScoreLookup, model: str, task: str, metric: Metric) -> Estimate | None:
    line = book.first_line(model, task)
    return None if line is None else book.cell(line, task, metric)


def _compared(given: AnalysisInput, book: ScoreLookup, trained: Mapping[str, str]) -> list[Comparison]:
    """Every other objective against mlm, by the same probe and method, on every task and metric."""
    found = []
    for name, model in trained.items():
        for task in book.tasks if name != _PLAIN and _PLAIN in trained else ():
            pair = _pair(book, model, trained[_PLAIN], task)
            ids = sorted(set(given.counted_ids(pair[0], task)) & set(given.counted_ids(pair[1], task))) if pair else []
            clusters = given.cluster_ids(ids)
            if pair is None or len(set(clusters.tolist())) < 2:
                continue
            weights = given.weights(ids)
            for metric in book.metrics(task):
                first, second = (weights * given.counted_values(line, ids, metric) for line in pair)
                seed = derived_seed(given.seed, "objectives", task, metric.name)
                one = paired_difference(first, second, clusters, seed=seed)
                head = (task, metric_label(metric), name, _PLAIN)
                found.append(Comparison(*head, one.difference, one.low, one.high, one.p, len(ids)))
    return correct_comparisons(found)


def _pair(book: ScoreLookup, model: str, other: str, task: str) -> tuple[Line, Line] | None:
    line = book.first_line(model, task)
    twin = None if line is None else Line(other, line.probe, line.method)
    return None if line is None or twin not in book.lines or twin is None else (line, twin)


def _differences(base: str, compared: Sequence[Comparison]) -> Table:
    columns = (
        *(Column("Score"), Column("Objective"), Column("against mlm", "points")),
        *(Column("p", "p"), Column("n", "count")),
    )
    rows = tuple(
        (f"{one.task} {one.metric}", one.model, Estimate(one.difference, one.low, one.high, one.n), one.p, one.n)
        for one in compared
    )
    return Table(f"{base}: each objective against mlm alone, on the same questions.", columns, rows)


def _told(base: str, trained: Mapping[str, str], compared: Sequence[Comparison]) -> list[str]:
    """Of each objective: where it is above mlm, where below, where neither can be told."""
    sentences = []
    for name in trained:
        above, below, equal = "above mlm on", "below mlm on", "not told apart from mlm on"
        sides: dict[str, list[str]] = {above: [], below: [], equal: []}
        own = [one for one in compared if one.model == name]
        for one in own:
            side = equal if one.p >= 0.05 else above if one.difference > 0 else below
            sides[side].append(f"{one.task} {one.metric}")
        parts = [
            f"{side} {'any score' if side == equal and len(places) == len(own) else join_names(places)}"
            for side, places in sides.items()
            if places
        ]
        if parts:
            sentences.append(f"{base} with {name} is {'; '.join(parts)}.")
    return sentences


def _curves(learned: Sequence[Mapping[str, Any]]) -> list[Figure]:
    """The loss of each model by step: of masked words, which all objectives share, and of all that was trained for."""
    titles = {"mlm": "loss of masked words while training", "loss": "whole loss while training"}
    figures = []
    for column, title in titles.items():
        rows = tuple(
            {"x": point["step"], "line": str(one.get("model")), "value": point[column]}
            for one in learned
            for point in one.get("curve") or ()
            if point.get("step") is not None and point.get(column) is not None
        )
        if rows:
            figures.append(Figure("lines", title, rows, "step", percent=False, y="loss"))
    return figures
