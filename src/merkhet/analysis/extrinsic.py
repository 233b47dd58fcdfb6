"""Correlation of a run's scores with scores on other tasks."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from merkhet.analysis._downstream_scores import Downstream, read_downstream
from merkhet.analysis._score_lookup import ScoreLookup
from merkhet.analysis.types import (
    Analysis,
    AnalysisInput,
    Column,
    Estimate,
    Table,
    TableRow,
    make_columns,
    metric_label,
)
from merkhet.core.ids import derived_seed
from merkhet.core.text import finite_or_none, join_names, percent, quote_name
from merkhet.metrics.association import PermutedCorrelation, permutation_correlation
from merkhet.metrics.metrics import Metric
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
    """One column of scores."""

    name: str
    scores: Mapping[str, Estimate]
    """The score of each model."""
    share: bool
    """Whether scores lie between 0 and 1."""

    def values_of(self, models: Sequence[str]) -> FloatArray:
        return np.array([self.scores[model].value or 0.0 for model in models], dtype=np.float64)

    def scored_models(self, models: Sequence[str]) -> list[str]:
        return [model for model in models if model in self.scores]


def extrinsic(inputs: AnalysisInput) -> Analysis | None:
    """Compare intrinsic with extrinsic scores by rank correlation and spread; None without option ``downstream``."""
    path = inputs.options.downstream
    if path is None:
        return None
    downstream = read_downstream(path)
    intrinsic, extrinsic_measures = _intrinsic(inputs), _extrinsic(downstream)
    models = list(dict.fromkeys(row["model"] for row in inputs.scores))
    shared = [model for model in models if model in downstream.scores]
    measures = (*intrinsic, *extrinsic_measures)
    kinds = (Column(measure.name, "share" if measure.share else "number") for measure in measures)
    columns = (Column("Model"), *kinds)
    rows: list[TableRow] = [
        (model, *(measure.scores.get(model) for measure in measures))
        for model in dict.fromkeys([*models, *downstream.scores])
    ]
    tables = [Table(f"Scores of this run, and those of {downstream.name}.", columns, tuple(rows))]
    sentences = _unmatched(inputs, downstream, models)
    if len(shared) < _FEWEST:
        names = join_names([quote_name(model) for model in shared])
        who = f"Only {names} {'has' if len(shared) == 1 else 'have'}" if shared else "No model has"
        sentences.append(f"{who} scores of both kinds; a correlation needs at least {_FEWEST} models.")
    else:
        correlations = _correlations(inputs, intrinsic, extrinsic_measures, shared)
        tables += [_correlation_table(correlations), _spread_table(intrinsic, extrinsic_measures, shared)]
        sentences += _summary(correlations, intrinsic, extrinsic_measures, shared)
    return Analysis("extrinsic", "Intrinsic against extrinsic", _EXPLANATION, tuple(tables), sentences=tuple(sentences))


def _intrinsic(inputs: AnalysisInput) -> list[_Measure]:
    lookup = ScoreLookup(inputs)
    models = dict.fromkeys(line.model for line in lookup.lines)
    measures = []
    for task, metric in dict.fromkeys(inputs.headline):
        scores = {model: cell for model in models if (cell := _headline_score(lookup, model, task, metric)) is not None}
        if scores:
            measures.append(_Measure(f"{task} {metric_label(metric)}", scores, metric.share))
    return measures


def _headline_score(lookup: ScoreLookup, model: str, task: str, metric: Metric) -> Estimate | None:
    line = lookup.first_line(model, task)
    cell = None if line is None else lookup.cell(line, task, metric)
    return None if cell is None else Estimate(cell.value, n=cell.n)


def _extrinsic(downstream: Downstream) -> list[_Measure]:
    measures = []
    for task in downstream.tasks:
        scores = {
            model: Estimate(task_scores[task])
            for model, task_scores in downstream.scores.items()
            if task in task_scores
        }
        measures.append(_Measure(task, scores, all(0 <= (score.value or 0.0) <= 1 for score in scores.values())))
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


Correlations = list[tuple[str, str, PermutedCorrelation]]


def _correlations(
    inputs: AnalysisInput, inner: Sequence[_Measure], outer: Sequence[_Measure], shared: Sequence[str]
) -> Correlations:
    correlations = []
    for inner_measure in inner:
        for outer_measure in outer:
            models = outer_measure.scored_models(inner_measure.scored_models(shared))
            columns = (measure.values_of(models) for measure in (inner_measure, outer_measure))
            seed = derived_seed(inputs.seed, "extrinsic", inner_measure.name, outer_measure.name)
            correlations.append((inner_measure.name, outer_measure.name, permutation_correlation(*columns, seed=seed)))
    return correlations


def _correlation_table(correlations: Correlations) -> Table:
    columns = make_columns("Intrinsic", "extrinsic", "models:count", "Spearman’s rho:correlation", "p:p")
    rows = tuple(
        (first, second, correlation.n, finite_or_none(correlation.rho), finite_or_none(correlation.p))
        for first, second, correlation in correlations
    )
    return Table("Rank correlation over models.", columns, rows)


def _spread_table(inner: Sequence[_Measure], outer: Sequence[_Measure], shared: Sequence[str]) -> Table:
    columns = make_columns(
        *("Score", "kind", "models:count", "lowest:number", "highest:number"),
        *("highest − lowest:number", "coefficient of variation:share"),
    )
    rows: list[TableRow] = []
    for kind, measures in (("intrinsic", inner), ("extrinsic", outer)):
        for measure in measures:
            values = (100.0 if measure.share else 1.0) * measure.values_of(measure.scored_models(shared))
            if len(values):
                ends = float(values.min()), float(values.max())
                rows.append((measure.name, kind, len(values), *ends, ends[1] - ends[0], _variation(values)))
    return Table("Spread of the models’ scores: shares in percent, other scores unchanged.", columns, tuple(rows))


def _variation(values: FloatArray) -> float | None:
    """Compute the coefficient of variation, with n - 1; None for fewer than two values or a mean of 0."""
    mean = float(np.mean(values)) if len(values) else 0.0
    return float(np.std(values, ddof=1)) / mean if len(values) > 1 and mean > 0 else None


def _summary(
    correlations: Correlations, inner: Sequence[_Measure], outer: Sequence[_Measure], shared: Sequence[str]
) -> list[str]:
    sentences = []
    known = [entry for entry in correlations if not math.isnan(entry[2].rho) and entry[2].n >= _FEWEST]
    if known:
        first, second, correlation = max(known, key=lambda entry: (-entry[2].p, abs(entry[2].rho)))
        few = " This is not significant." if correlation.p >= 0.05 else ""
        sentences.append(
            f"Of {len(known)} pairs the strongest correlation is {first} with {second}: rho {correlation.rho:.2f} over "
            f"{correlation.n} models (p = {correlation.p:.3f}, uncorrected).{few}"
        )
    ranges = []
    for kind, measures in (("intrinsic", inner), ("extrinsic", outer)):
        spreads = [_variation(measure.values_of(measure.scored_models(shared))) for measure in measures]
        known_spreads = [spread for spread in spreads if spread is not None]
        if known_spreads:
            low, high = percent(min(known_spreads)), percent(max(known_spreads))
            ranges.append(f"{low if low == high else f'{low} to {high}'} for the {kind} scores")
    if len(ranges) == 2:
        sentences.append(f"Among the {len(shared)} models the coefficient of variation is {' and '.join(ranges)}.")
    return sentences
