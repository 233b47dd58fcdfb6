"""Effects of pre-training objectives on scores."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from merkhet.analysis._score_lookup import ScoreLookup
from merkhet.analysis.comparison import Comparison, correct_comparisons
from merkhet.analysis.types import Analysis, AnalysisInput, Column, Estimate, Figure, Line, Table, make_columns
from merkhet.core.ids import derived_seed
from merkhet.core.text import join_names, metric_label
from merkhet.metrics.bootstrap import paired_difference

OBJECTIVES = ("mlm", "mlm+sbo", "mlm+sop", "mlm+nsp")
_PLAIN = OBJECTIVES[0]
_TRAINED = re.compile(rf"^(?P<base>.+), (?P<objective>{'|'.join(map(re.escape, OBJECTIVES))})(?P<run> \(.+\))?$")
_EXPLANATION = (
    "One model, further pre-trained on the same texts by each objective: masked words alone (mlm), and with the "
    "boundaries of spans (sbo), the order of sentences (sop) or the next sentence (nsp). Scores have 95% bootstrap "
    "intervals over facts. Each objective is compared with mlm on the same questions (paired difference, p of a "
    "sign-flip permutation test, Holm-corrected over the table). This is further pre-training of one model with one "
    "seed, not pre-training from scratch as in the paper."
)


def parse_trained_model(model: str) -> tuple[str, str] | None:
    """Split a model's name into base model and objective; None if the model was not further pre-trained.

    The base model includes the name of the training run, if any.
    """
    match = _TRAINED.match(model)
    return (match["base"] + (match["run"] or ""), match["objective"]) if match else None


def objectives(inputs: AnalysisInput) -> Analysis | None:
    """Show scores by objective, differences from mlm and loss curves; None without further pre-training."""
    lookup = ScoreLookup(inputs)
    families: dict[str, dict[str, str]] = {}
    for model in dict.fromkeys(line.model for line in lookup.lines):
        parsed = parse_trained_model(model)
        if parsed is not None:
            families.setdefault(parsed[0], {})[parsed[1]] = model
    if not families:
        return None
    tables, sentences = [], []
    for base, trained in families.items():
        by_objective = {name: trained[name] for name in OBJECTIVES if name in trained}
        tables.append(_score_table(lookup, base, by_objective))
        comparisons = _compare_objectives(inputs, lookup, by_objective)
        if comparisons:
            tables.append(_difference_table(base, comparisons))
            sentences += _describe_objectives(base, by_objective, comparisons)
    figures = tuple(_loss_figures(inputs.training_records))
    return Analysis("objectives", "Training objectives", _EXPLANATION, tuple(tables), figures, tuple(sentences))


def _score_table(lookup: ScoreLookup, base: str, trained: Mapping[str, str]) -> Table:
    models = {"before": base, **trained} if any(line.model == base for line in lookup.lines) else dict(trained)
    rows = []
    for task in lookup.tasks:
        for metric in lookup.metrics(task):
            cells = [lookup.model_cell(model, task, metric) for model in models.values()]
            if any(cell is not None for cell in cells):
                rows.append((f"{task} {metric_label(metric.name)}", *cells))
    columns = (Column("Score"), *(Column(name, "share") for name in models))
    return Table(f"{base} after further pre-training by each objective.", columns, tuple(rows))


def _compare_objectives(inputs: AnalysisInput, lookup: ScoreLookup, trained: Mapping[str, str]) -> list[Comparison]:
    """Compare every objective with mlm alone, by the same probe and method, on every task and metric."""
    comparisons = []
    for name, model in trained.items():
        for task in lookup.tasks if name != _PLAIN and _PLAIN in trained else ():
            line = lookup.first_line(model, task)
            twin = Line(trained[_PLAIN], line.probe, line.method) if line else None
            if line is None or twin is None or twin not in lookup.lines:
                continue
            ids = sorted(set(inputs.counted_ids(line, task)) & set(inputs.counted_ids(twin, task)))
            clusters = inputs.cluster_ids(ids)
            if len(set(clusters.tolist())) < 2:
                continue
            weights = inputs.weights(ids)
            for metric in lookup.metrics(task):
                first, second = (weights * inputs.values(each, ids, metric) for each in (line, twin))
                seed = derived_seed(inputs.seed, "objectives", task, metric.name)
                paired = paired_difference(first, second, clusters, seed=seed)
                key = (task, metric_label(metric.name), name, _PLAIN)
                comparisons.append(Comparison(*key, **vars(paired), n=len(ids)))
    return correct_comparisons(comparisons)


def _difference_table(base: str, comparisons: Sequence[Comparison]) -> Table:
    columns = make_columns("Score", "Objective", "against mlm:points", "p:p", "n:count")
    rows = []
    for comparison in comparisons:
        lead = Estimate(comparison.difference, comparison.low, comparison.high, comparison.n)
        score = f"{comparison.task} {comparison.metric}"
        rows.append((score, comparison.model, lead, comparison.p, comparison.n))
    return Table(f"{base}: each objective against mlm alone, on the same questions.", columns, tuple(rows))


def _describe_objectives(base: str, trained: Mapping[str, str], comparisons: Sequence[Comparison]) -> list[str]:
    """Describe for each objective which scores are above, below or not significantly different from those of mlm."""
    sentences = []
    for name in trained:
        above, below, equal = "above mlm on", "below mlm on", "not significantly different from mlm on"
        sides: dict[str, list[str]] = {above: [], below: [], equal: []}
        of_objective = [comparison for comparison in comparisons if comparison.model == name]
        for comparison in of_objective:
            side = equal if comparison.p >= 0.05 else above if comparison.difference > 0 else below
            sides[side].append(f"{comparison.task} {comparison.metric}")
        if len(sides[equal]) == len(of_objective):
            sides[equal] = ["any score"] if of_objective else []
        parts = [f"{side} {join_names(score_names)}" for side, score_names in sides.items() if score_names]
        if parts:
            sentences.append(f"{base} with {name} is {'; '.join(parts)}.")
    return sentences


def _loss_figures(training_records: Sequence[Mapping[str, Any]]) -> list[Figure]:
    """Make figures of each model's loss by step: the loss on masked words, and the total loss."""
    titles = {"mlm": "Training loss of masked words", "loss": "Total training loss"}
    figures = []
    for column, title in titles.items():
        rows = tuple(
            {"x": point["step"], "line": str(record.get("model")), "value": point[column]}
            for record in training_records
            for point in record.get("curve") or ()
            if point.get("step") is not None and point.get(column) is not None
        )
        if rows:
            figures.append(Figure("lines", title, rows, "step", percent=False, y="loss"))
    return figures
