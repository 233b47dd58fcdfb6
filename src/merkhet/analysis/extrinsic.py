"""Whether what a model knows goes with what it does: scores of the run against scores on other tasks."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

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
    join_names,
    metric_label,
    quote_name,
)
from merkhet.core.ids import derived_seed
from merkhet.metrics.association import PermutedCorrelation, permutation_correlation
from merkhet.metrics.metrics import Metric

_FEWEST = 3
_EXPLANATION = (
    "Intrinsic scores are the headline scores of this run, each by the model's first way of asking; extrinsic ones are "
    "those of the file, as they stand there. Spearman's rho says whether both put the models into the same order; its "
    "p is the share of all orders of the models (of 10,000 drawn ones where there are more than 8 models) with a rho "
    "as far from 0, not corrected for the number of pairs. With n models no p can be below 2 / n! (n = 4: 0.083), so "
    "a handful of models shows little, however high the rho. The spread is over the models that have both."
)


@dataclass(frozen=True)
class _Measure:
    """One column: what it is called, and the score of each model."""

    name: str
    scores: Mapping[str, Estimate]
    share: bool

    def over(self, models: Sequence[str]) -> list[float]:
        return [float(self.scores[model].value or 0.0) for model in models]

    def shared(self, models: Sequence[str]) -> list[str]:
        return [model for model in models if model in self.scores]


def extrinsic(given: AnalysisInput) -> Analysis | None:
    """Scores side by side, rank correlations and spreads; None without the option ``downstream``."""
    place = given.options.get("downstream")
    if place is None:
        return None
    file = read_downstream(Path(place))
    inner, outer = _intrinsic(given), _extrinsic(file)
    models = list(dict.fromkeys(row["model"] for row in given.scores))
    shared = [model for model in models if model in file.scores]
    columns = (Column("Model"), *(Column(one.name, "share" if one.share else "number") for one in (*inner, *outer)))
    rows: list[TableRow] = [
        (model, *(one.scores.get(model) for one in (*inner, *outer)))
        for model in dict.fromkeys([*models, *file.scores])
    ]
    tables = [Table(f"Scores of this run, and those of {file.name}.", columns, tuple(rows))]
    sentences = _unmatched(given, file, models)
    if len(shared) < _FEWEST:
        there = (
            "No model has"
            if not shared
            else f"Only {join_names([quote_name(model) for model in shared])} {'has' if len(shared) == 1 else 'have'}"
        )
        sentences.append(
            f"{there} scores of both kinds: there is nothing to correlate with fewer than {_FEWEST} models."
        )
    else:
        found = _correlations(given, inner, outer, shared)
        tables += [_correlation_table(found), _spread_table(inner, outer, shared)]
        sentences += _summary(found, inner, outer, shared)
    return Analysis("extrinsic", "Intrinsic against extrinsic", _EXPLANATION, tuple(tables), sentences=tuple(sentences))


def _intrinsic(given: AnalysisInput) -> list[_Measure]:
    book = ScoreLookup(given)
    models = dict.fromkeys(line.model for line in book.lines)
    found = []
    for task, metric in dict.fromkeys(given.headline):
        scores = {model: cell for model in models if (cell := _own(book, model, task, metric)) is not None}
        if scores:
            found.append(_Measure(f"{task} {metric_label(metric)}", scores, metric.share))
    return found


def _own(book: ScoreLookup, model: str, task: str, metric: Metric) -> Estimate | None:
    line = book.first_line(model, task)
    cell = None if line is None else book.cell(line, task, metric)
    return None if cell is None else Estimate(cell.value, n=cell.n)


def _extrinsic(file: Downstream) -> list[_Measure]:
    found = []
    for task in file.tasks:
        scores = {model: Estimate(own[task]) for model, own in file.scores.items() if task in own}
        found.append(_Measure(task, scores, all(0 <= (one.value or 0.0) <= 1 for one in scores.values())))
    return found


def _unmatched(given: AnalysisInput, file: Downstream, models: Sequence[str]) -> list[str]:
    absent = [quote_name(model) for model in file.scores if model not in models]
    unscored = [quote_name(model) for model in models if model not in file.scores and model not in given.baselines]
    sentences = []
    if absent:
        sentences.append(f"In {file.name} but not in this run: {join_names(absent)}.")
    if unscored:
        sentences.append(f"In this run but not in {file.name}: {join_names(unscored)}. Names must be the same in both.")
    for task in file.tasks:
        values = [own[task] for own in file.scores.values() if task in own]
        if any(value > 1 for value in values) and any(0 < value <= 1 for value in values):
            sentences.append(f"In {file.name}, {task} has scores up to 1 and above 1: are all on the same scale?")
    return sentences


Found = list[tuple[str, str, PermutedCorrelation]]


def _correlations(
    given: AnalysisInput, inner: Sequence[_Measure], outer: Sequence[_Measure], shared: Sequence[str]
) -> Found:
    found = []
    for own in inner:
        for other in outer:
            models = other.shared(own.shared(shared))
            columns = (np.array(one.over(models), dtype=np.float64) for one in (own, other))
            seed = derived_seed(given.seed, "extrinsic", own.name, other.name)
            found.append((own.name, other.name, permutation_correlation(*columns, seed=seed)))
    return found


def _correlation_table(found: Found) -> Table:
    columns = (
        *(Column("Intrinsic"), Column("extrinsic"), Column("models", "count")),
        *(Column("Spearman’s rho", "correlation"), Column("p", "p")),
    )
    rows = tuple((first, second, one.n, _finite(one.rho), _finite(one.p)) for first, second, one in found)
    return Table("Rank correlation over models.", columns, rows)


def _spread_table(inner: Sequence[_Measure], outer: Sequence[_Measure], shared: Sequence[str]) -> Table:
    columns = (
        *(Column("Score"), Column("kind"), Column("models", "count"), Column("lowest", "number")),
        *(
            Column("highest", "number"),
            Column("highest − lowest", "number"),
            Column("coefficient of variation", "share"),
        ),
    )
    rows: list[TableRow] = []
    for kind, measures in (("intrinsic", inner), ("extrinsic", outer)):
        for one in measures:
            values = (100.0 if one.share else 1.0) * np.array(one.over(one.shared(shared)), dtype=np.float64)
            if len(values):
                ends = float(values.min()), float(values.max())
                rows.append((one.name, kind, len(values), *ends, ends[1] - ends[0], _variation(values)))
    caption = "How far models lie apart: shares in percent, other scores as they are."
    return Table(caption, columns, tuple(rows))


def _variation(values: np.ndarray) -> float | None:
    """The standard deviation (over n - 1) against the mean; None where it is not told."""
    mean = float(np.mean(values)) if len(values) else 0.0
    return float(np.std(values, ddof=1)) / mean if len(values) > 1 and mean > 0 else None


def _summary(found: Found, inner: Sequence[_Measure], outer: Sequence[_Measure], shared: Sequence[str]) -> list[str]:
    sentences = []
    known = [entry for entry in found if not math.isnan(entry[2].rho) and entry[2].n >= _FEWEST]
    if known:
        first, second, one = max(known, key=lambda entry: (-entry[2].p, abs(entry[2].rho)))
        few = " With so few models any order may come about by chance." if one.p >= 0.05 else ""
        sentences.append(
            f"Of {len(known)} pairs the clearest is {first} with {second}: rho {one.rho:.2f} over {one.n} models "
            f"(p = {one.p:.3f}, uncorrected).{few}"
        )
    ranges = []
    for kind, measures in (("intrinsic", inner), ("extrinsic", outer)):
        spreads = [_variation(np.array(one.over(one.shared(shared)), dtype=np.float64)) for one in measures]
        known_spreads = sorted(spread for spread in spreads if spread is not None)
        if known_spreads:
            ranges.append(f"{_range(known_spreads)} for the {kind} scores")
    if len(ranges) == 2:
        sentences.append(f"Among the {len(shared)} models the coefficient of variation is {' and '.join(ranges)}.")
    return sentences


def _range(values: Sequence[float]) -> str:
    low, high = f"{100 * values[0]:.1f}%", f"{100 * values[-1]:.1f}%"
    return low if low == high else f"{low} to {high}"


def _finite(value: float) -> float | None:
    return None if math.isnan(value) else value
