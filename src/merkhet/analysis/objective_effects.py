"""Effects of pre-training objectives on scores."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from merkhet.analysis._score_lookup import ScoreLookup
from merkhet.analysis.comparison import Comparison, correct_comparisons
from merkhet.analysis.finding_types import Finding
from merkhet.analysis.training_comparison import training_finding, training_findings
from merkhet.analysis.training_text import format_finding
from merkhet.analysis.types import Analysis, AnalysisInput, Column, Estimate, Figure, Table, make_columns
from merkhet.core.ids import derived_seed
from merkhet.core.text import join_names, metric_label
from merkhet.metrics.corrections import SIGNIFICANCE_LEVEL

OBJECTIVES = ("mlm", "mlm+sbo", "mlm+sop", "mlm+nsp")
_PLAIN = OBJECTIVES[0]
_TRAINED = re.compile(rf"^(?P<base>.+), (?P<objective>{'|'.join(map(re.escape, OBJECTIVES))})(?P<run> \(.+\))?$")
_EXPLANATION = (
    "One model, further pre-trained on the same texts by each objective: masked words alone (mlm), and with the "
    "boundaries of spans (sbo), the order of sentences (sop) or the next sentence (nsp). Scores have 95% bootstrap "
    "intervals over facts, for the first training. Each objective is compared with mlm on the same questions. With "
    "several trainings (learning.trainings), intervals of differences are Student's over trainings of the same seed, "
    "and p-values those of the paired t test, Holm-corrected over the table. With one training, intervals are over "
    "facts, and there is neither a p-value nor a verdict. This is further pre-training of a model, not pre-training "
    "from scratch as in the paper."
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
    trained_names = {model for trained in families.values() for model in trained.values()}
    if not inputs.trained >= trained_names:
        inputs = replace(inputs, trained=inputs.trained | trained_names)
    tables, sentences = [], []
    findings: list[Finding] = []
    for base, trained in families.items():
        by_objective = {name: trained[name] for name in OBJECTIVES if name in trained}
        tables.append(_score_table(lookup, base, by_objective))
        comparisons = _compare_objectives(inputs, lookup, by_objective)
        if comparisons:
            tables.append(_difference_table(base, comparisons))
            sentences += _describe_objectives(base, comparisons)
            findings += training_findings(map(asdict, comparisons))
    figures = tuple(_loss_figures(inputs.training_records))
    title = "Training objectives"
    return Analysis("objectives", title, _EXPLANATION, tuple(tables), figures, tuple(sentences), tuple(findings))


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
            for metric in lookup.metrics(task):
                seed = derived_seed(inputs.seed, "objectives", task, metric.name)
                compared = inputs.paired.difference((model, trained[_PLAIN]), task, metric, seed=seed)
                if compared is not None:
                    comparisons.append(compared)
    return correct_comparisons(comparisons)


def _difference_table(base: str, comparisons: Sequence[Comparison]) -> Table:
    columns = make_columns("Score", "Objective", "against mlm:points", "p:p", "n:count", "trainings:count")
    rows = []
    for comparison in comparisons:
        lead = Estimate(comparison.difference, comparison.low, comparison.high, comparison.n)
        objective = _objective(comparison.model)
        rows.append((_score_name(comparison), objective, lead, comparison.p, comparison.n, comparison.trainings))
    return Table(f"{base}: each objective against mlm alone, on the same questions.", columns, tuple(rows))


def _objective(model: str) -> str:
    parsed = parse_trained_model(model)
    return parsed[1] if parsed else model


def _score_name(comparison: Comparison) -> str:
    return f"{comparison.task} {metric_label(comparison.metric)}"


def _describe_objectives(base: str, comparisons: Sequence[Comparison]) -> list[str]:
    """Describe for each objective which scores are above, below or not significantly different from those of mlm.

    With one training of each, only the differences are given.
    """
    sentences = []
    for model in dict.fromkeys(comparison.model for comparison in comparisons):
        of_objective = [comparison for comparison in comparisons if comparison.model == model]
        untested = [comparison for comparison in of_objective if comparison.p is None]
        parts = [f"{side} {join_names(names)}" for side, names in _split_by_side(of_objective).items() if names]
        if parts:
            count = min(comparison.trainings or 1 for comparison in of_objective)
            sentences.append(f"{base} with {_objective(model)} is {'; '.join(parts)} (over {count} trainings).")
        if untested:
            numbers = (f"{_score_name(each)} {format_finding(training_finding(asdict(each)))}" for each in untested)
            sentences.append(f"{base} with {_objective(model)}, compared with mlm: {'; '.join(numbers)}.")
    return sentences


def _split_by_side(comparisons: Sequence[Comparison]) -> dict[str, list[str]]:
    """Split the tested scores of an objective by whether they are above, below or like those of mlm."""
    above, below, equal = "above mlm on", "below mlm on", "not significantly different from mlm on"
    sides: dict[str, list[str]] = {above: [], below: [], equal: []}
    tested = [comparison for comparison in comparisons if comparison.p is not None]
    for comparison in tested:
        p = comparison.p or 0.0
        side = equal if p >= SIGNIFICANCE_LEVEL else above if comparison.difference > 0 else below
        sides[side].append(_score_name(comparison))
    if tested and len(sides[equal]) == len(tested):
        sides[equal] = ["any score"]
    return sides


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
