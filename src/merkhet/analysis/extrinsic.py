"""Correlation of a run's scores with scores on other tasks."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from merkhet.analysis._downstream_scores import Downstream, read_downstream
from merkhet.analysis._score_lookup import ScoreLookup
from merkhet.analysis.types import Analysis, AnalysisInput, Column, Estimate, Table, TableRow, make_columns
from merkhet.core.ids import derived_seed
from merkhet.core.text import counted, finite_or_none, join_names, join_some, metric_label, percent, quote_name
from merkhet.metrics.association import permutation_correlation
from merkhet.metrics.corrections import SIGNIFICANCE_LEVEL
from merkhet.metrics.ranks import FloatArray

_FEWEST = 3
_EXPLANATION = (
    "Intrinsic scores are the headline scores of this run, each by the model's first probe and method; extrinsic "
    "scores are those of the file, unchanged. Spearman's rho measures whether both rank the models alike. Its p is "
    "the share of all permutations of the models (of 10,000 random ones for more than 8 models) with a rho at least "
    "as far from 0, uncorrected. With n models no p can be below 2 / n! (n = 4: 0.083), so a few models show little, "
    "however high the rho. The spread is over the models that have both scores."
)


@dataclass(frozen=True)
class _Measure:
    """Scores of all models on one task and metric."""

    kind: str
    """``intrinsic`` (from the run) or ``extrinsic`` (from the file)."""
    name: str
    scores: Mapping[str, Estimate]
    """Scores by model."""
    share: bool
    """Whether the scores are shares between 0 and 1."""

    def values_of(self, models: Sequence[str]) -> FloatArray:
        """Return the scores of ``models``; models without a score are skipped."""
        return np.array([self.scores[model].value or 0.0 for model in models if model in self.scores])


def extrinsic(inputs: AnalysisInput) -> Analysis | None:
    """Compare intrinsic and extrinsic scores by rank correlation and spread; None without option ``downstream``."""
    path = inputs.options.downstream
    if path is None:
        return None
    downstream = read_downstream(path)
    measures = [*_intrinsic(inputs), *_extrinsic(downstream)]
    models = list(dict.fromkeys(row["model"] for row in inputs.scores))
    shared = [model for model in models if model in downstream.scores]
    columns = (Column("Model"), *(Column(measure.name, "share" if measure.share else "number") for measure in measures))
    rows: list[TableRow] = [
        (model, *(measure.scores.get(model) for measure in measures))
        for model in dict.fromkeys([*models, *downstream.scores])
    ]
    tables = [Table(f"Scores of this run, and those of {downstream.name}.", columns, tuple(rows))]
    sentences = [*_unmatched(inputs, downstream, models), *_name_methods(inputs, shared)]
    if len(shared) < _FEWEST:
        names = join_names([quote_name(model) for model in shared])
        who = f"Only {names} {'has' if len(shared) == 1 else 'have'}" if shared else "No model has"
        sentences.append(f"{who} scores of both kinds; a correlation needs at least {_FEWEST} models.")
    else:
        for table, added in (_correlate(inputs, measures, shared), _spread(measures, shared)):
            tables.append(table)
            sentences += added
    return Analysis("extrinsic", "Intrinsic against extrinsic", _EXPLANATION, tuple(tables), sentences=tuple(sentences))


def _name_methods(inputs: AnalysisInput, models: Sequence[str]) -> list[str]:
    """Name the methods whose scores are correlated, if a model has scores by several on a headline task."""
    lookup = ScoreLookup(inputs)
    tasks = dict.fromkeys(task for task, _ in inputs.headline)
    lines = [line for task in tasks for model in models if (line := lookup.first_line(model, task))]
    several = any(
        len({line for line in lookup.lines if line.model == model and lookup.cell(line, task, metric)}) > 1
        for task, metric in inputs.headline
        for model in models
    )
    names = list(dict.fromkeys(f"{line.probe}, {line.method}" for line in lines))
    return [f"Of several methods, the scores of this run are those by {join_some(names, 3)}."] if several else []


def _intrinsic(inputs: AnalysisInput) -> list[_Measure]:
    lookup = ScoreLookup(inputs)
    measures = []
    for task, metric in dict.fromkeys(inputs.headline):
        cells = {line.model: lookup.model_cell(line.model, task, metric) for line in lookup.lines}
        scores = {model: Estimate(cell.value, n=cell.n) for model, cell in cells.items() if cell is not None}
        if scores:
            measures.append(_Measure("intrinsic", f"{task} {metric_label(metric.name)}", scores, metric.share))
    return measures


def _extrinsic(downstream: Downstream) -> list[_Measure]:
    measures = []
    for task in downstream.tasks:
        scores = {model: scores[task] for model, scores in downstream.scores.items() if task in scores}
        estimates = {model: Estimate(score) for model, score in scores.items()}
        measures.append(_Measure("extrinsic", task, estimates, all(0 <= score <= 1 for score in scores.values())))
    return measures


def _unmatched(inputs: AnalysisInput, downstream: Downstream, models: Sequence[str]) -> list[str]:
    absent = [quote_name(model) for model in downstream.scores if model not in models]
    unscored = [
        quote_name(model) for model in models if model not in downstream.scores and model not in inputs.baselines
    ]
    sentences = []
    if absent:
        sentences.append(f"In {downstream.name} but not in this run: {join_names(absent)}.")
    if unscored:
        sentences.append(
            f"In this run but not in {downstream.name}: {join_names(unscored)}. Use the same names in both."
        )
    for task in downstream.tasks:
        values = [task_scores[task] for task_scores in downstream.scores.values() if task in task_scores]
        if any(value > 1 for value in values) and any(0 < value <= 1 for value in values):
            sentences.append(f"In {downstream.name}, {task} has scores up to 1 and above 1: check their scale.")
    return sentences


def _correlate(inputs: AnalysisInput, measures: Sequence[_Measure], shared: Sequence[str]) -> tuple[Table, list[str]]:
    """Correlate every intrinsic score with every extrinsic score, and describe the strongest correlation."""
    correlations = []
    intrinsic, extrinsic_measures = (
        [measure for measure in measures if measure.kind == kind] for kind in ("intrinsic", "extrinsic")
    )
    for first in intrinsic:
        for second in extrinsic_measures:
            models = [model for model in shared if model in first.scores and model in second.scores]
            seed = derived_seed(inputs.seed, "extrinsic", first.name, second.name)
            result = permutation_correlation(first.values_of(models), second.values_of(models), seed=seed)
            correlations.append((first.name, second.name, result))
    columns = make_columns("Intrinsic", "extrinsic", "models:count", "Spearman’s rho:correlation", "p:p")
    rows = tuple(
        (first_name, second_name, result.n, finite_or_none(result.rho), finite_or_none(result.p))
        for first_name, second_name, result in correlations
    )
    table = Table("Rank correlation over models.", columns, rows)
    known = [entry for entry in correlations if not math.isnan(entry[2].rho) and entry[2].n >= _FEWEST]
    if not known:
        return table, []
    first_name, second_name, best = max(known, key=lambda entry: (-entry[2].p, abs(entry[2].rho)))
    significant = best.p * len(known) < SIGNIFICANCE_LEVEL
    few = "" if significant else " This is not significant" + (" after correction." if len(known) > 1 else ".")
    return table, [
        f"Of {counted(len(known), 'pair')} the strongest correlation is {first_name} with {second_name}: rho "
        f"{best.rho:.2f} over {best.n} models (p = {best.p:.3f}, uncorrected).{few}"
    ]


def _spread(measures: Sequence[_Measure], shared: Sequence[str]) -> tuple[Table, list[str]]:
    """Tabulate the spread of the models' scores, and describe the coefficients of variation."""
    columns = make_columns(
        *("Score", "kind", "models:count", "lowest:number", "highest:number"),
        *("highest − lowest:number", "coefficient of variation:share"),
    )
    rows = []
    variations: dict[str, list[float]] = {"intrinsic": [], "extrinsic": []}
    for measure in measures:
        values = (100.0 if measure.share else 1.0) * measure.values_of(shared)
        if len(values):
            low, high, variation = float(values.min()), float(values.max()), _variation(values)
            rows.append((measure.name, measure.kind, len(values), low, high, high - low, variation))
            variations[measure.kind] += [] if variation is None else [variation]
    table = Table("Spread of the models’ scores: shares in percent, other scores unchanged.", columns, tuple(rows))
    if not all(variations.values()):
        return table, []
    ranges = []
    for kind, of_kind in variations.items():
        lowest, highest = percent(min(of_kind)), percent(max(of_kind))
        ranges.append(f"{lowest if lowest == highest else f'{lowest} to {highest}'} for the {kind} scores")
    return table, [f"Among the {len(shared)} models the coefficient of variation is {' and '.join(ranges)}."]


def _variation(values: FloatArray) -> float | None:
    """Compute the coefficient of variation (n - 1); None with fewer than two values or a mean that is not positive."""
    mean = float(np.mean(values))
    return float(np.std(values, ddof=1)) / mean if len(values) > 1 and mean > 0 else None
