"""Accuracy on word senses by layer of the model."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from merkhet.analysis._score_lookup import ScoreLookup
from merkhet.analysis.differences import format_p
from merkhet.analysis.line_charts import Series, chart_series
from merkhet.analysis.types import Analysis, AnalysisInput, Column, Estimate, Line, Table, TableRow, make_columns
from merkhet.core.ids import derived_seed
from merkhet.core.text import counted, metric_label, percent, quote_name
from merkhet.metrics.bootstrap import paired_difference
from merkhet.metrics.metrics import Metric

_METHOD = re.compile(r"^(?P<states>word|masked)(?:@(?P<layer>\d+))?$")
_LAST = "last"
_EXPLANATION = (
    "Accuracy by the hidden states of one layer; layer 0 is the embeddings. “word” compares the states of the word "
    "itself, “masked” those of the masks in its place. 95% bootstrap intervals over words. The best layer is selected "
    "on the questions that it is evaluated on, which biases its score upwards, the more so the more layers there are. "
    "Therefore its p against the last layer (paired sign flips) is multiplied by the number of layers it was selected "
    "from. “Cross-validated” selects the best layer on one half of the words and takes its lead over the last layer "
    "on the other half, averaged over both directions."
)


@dataclass(frozen=True)
class _Stack:
    """Scored layers of one model, for one kind of hidden states."""

    model: str
    label: str
    task: str
    lines: Mapping[int | str, Line]
    """Model, probe and method of each layer, by the layer's number or "last"."""


def layers(inputs: AnalysisInput) -> Analysis | None:
    """Analyse accuracy by layer; None if no method uses a single layer."""
    lookup = ScoreLookup(inputs)
    figures, tables, best_rows, sentences = [], [], [], []
    for task in lookup.tasks:
        stacks = _stacks(lookup, task)
        for metric in lookup.metrics(task)[:1] if stacks else ():
            series = [
                Series(
                    stack.label,
                    stack.model,
                    {
                        layer: cell
                        for layer, line in stack.lines.items()
                        if (cell := lookup.cell(line, task, metric)) is not None
                    },
                )
                for stack in stacks
            ]
            order = sorted(
                {layer for line in series for layer in line.scores}, key=lambda layer: (layer == _LAST, layer)
            )
            label = metric_label(metric.name)
            rows: dict[int | str, TableRow] = {layer: (str(layer),) for layer in order}
            figure, table = chart_series(
                f"{task}: {label} by layer", series, [Column("Layer")], rows, x="layer", y=label
            )
            figures.append(figure)
            tables.append(table)
            for stack, line in zip(stacks, series, strict=True):
                row, sentence = _best_layer(inputs, stack, metric, line.scores)
                best_rows.append(row)
                sentences += [] if stack.model in inputs.baselines else [sentence]
    if not figures:
        return None
    columns = make_columns(
        *("Model", "best layer", "accuracy:share", "of the last:share"),
        *("difference:points", "p:p", "cross-validated:points"),
    )
    table = Table("The best layer against the last.", columns, tuple(best_rows))
    return Analysis("layers", "Senses by layer", _EXPLANATION, (table, *tables), tuple(figures), tuple(sentences))


def _stacks(lookup: ScoreLookup, task: str) -> list[_Stack]:
    """Collect the models and kinds of hidden states with scores of at least two layers.

    The last layer has a number if all layers before it have scores; otherwise it is called "last".
    """
    by_states: dict[tuple[str, str], dict[int, Line]] = {}
    for line in lookup.lines:
        method = _METHOD.match(line.method)
        scored = any(lookup.cell(line, task, metric) for metric in lookup.metrics(task)[:1])
        if method and line.probe == "compare" and scored:
            layer = -1 if method["layer"] is None else int(method["layer"])
            by_states.setdefault((line.model, method["states"]), {})[layer] = line
    several = {key: layer_lines for key, layer_lines in by_states.items() if len(layer_lines) > 1}
    numbered = all(set(layer_lines) - {-1} == set(range(max(layer_lines) + 1)) for layer_lines in several.values())
    stacks = []
    for (model, states), layer_lines in several.items():
        lines: dict[int | str, Line] = {layer: layer_lines[layer] for layer in sorted(layer_lines) if layer >= 0}
        if -1 in layer_lines:
            lines[max(layer_lines) + 1 if numbered else _LAST] = layer_lines[-1]
        single_kind = len({state_kind for _, state_kind in several}) == 1
        stacks.append(_Stack(model, model if single_kind else f"{model} ({states})", task, lines))
    return stacks


def _best_layer(
    inputs: AnalysisInput, stack: _Stack, metric: Metric, cells: Mapping[int | str, Estimate]
) -> tuple[TableRow, str]:
    """Compare the best layer with the last layer; return a table row and a sentence."""
    scores = {layer: cells[layer] for layer in stack.lines}
    last = list(scores)[-1]
    best = max(scores, key=lambda layer: (scores[layer].value or 0.0, layer == last))
    best_score, last_score = scores[best], scores[last]
    head = (stack.label, str(best), best_score, last_score.value)
    prefix = f"Of {counted(len(scores), 'layer')} of {quote_name(stack.label)}"
    if best == last:
        tied = sum(cell.value == last_score.value for cell in scores.values()) > 1
        claim = "no layer has a better accuracy than the last" if tied else "the last has the best accuracy"
        sentence = f"{prefix}, {claim} ({percent(last_score.value or 0.0)})."
        return (*head, None, None, None), sentence
    ids = sorted(set.intersection(*(set(inputs.counted_ids(line, stack.task)) for line in stack.lines.values())))
    weights, clusters = inputs.weights(ids), inputs.cluster_ids(ids)
    values = {layer: weights * inputs.values(line, ids, metric) for layer, line in stack.lines.items()}
    seed = derived_seed(inputs.seed, "layers", stack.task, metric.name)
    lead = paired_difference(values[best], values[last], clusters, seed=seed)
    p = min(1.0, lead.p * (len(scores) - 1))
    cross_checked = _cross_checked_gain(values, last, clusters, seed)
    row = (*head, Estimate(lead.difference, lead.low, lead.high, len(ids)), p, cross_checked)
    scores_clause = f"({percent(best_score.value or 0.0)}, the last {percent(last_score.value or 0.0)})"
    if p >= 0.05:
        verdict = f"but does not differ significantly from the last after correction (p = {p:.3f})"
    else:
        validated = "" if cross_checked is None else f", {100 * cross_checked:+.1f} cross-validated"
        verdict = f"{100 * lead.difference:.1f} points ahead of the last (p {format_p(p)}{validated})"
    return row, f"{prefix}, layer {best} has the best accuracy {scores_clause}, {verdict}."


def _cross_checked_gain(
    values: Mapping[int | str, np.ndarray], last: int | str, clusters: np.ndarray, seed: int
) -> float | None:
    """Select the best layer on one half of the clusters, and compute its lead over the last layer on the other half.

    Returns:
        The mean lead over the two assignments of the halves; None with fewer than two clusters.
    """
    names, index = np.unique(clusters, return_inverse=True)
    if len(names) < 2:
        return None
    order = np.random.default_rng([seed, 2]).permutation(len(names))
    half = np.isin(index, order[: len(names) // 2])
    gains = []
    for chosen_on in (half, ~half):
        best = max(values, key=lambda layer: (float(values[layer][chosen_on].mean()), layer == last))
        gains.append(float((values[best] - values[last])[~chosen_on].mean()))
    return float(np.mean(gains))
