"""Where in a model senses are told apart: accuracy by the layer whose states are compared."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from merkhet.analysis._score_lookup import ScoreLookup
from merkhet.analysis.types import (
    Analysis,
    AnalysisInput,
    Column,
    Estimate,
    Figure,
    Line,
    Table,
    TableRow,
    metric_label,
    percent,
    quote_name,
)
from merkhet.core.ids import derived_seed
from merkhet.metrics.bootstrap import PairedDifference, paired_difference
from merkhet.metrics.metrics import Metric

_METHOD = re.compile(r"^(?P<states>word|masked)(?:@(?P<layer>\d+))?$")
_LAST = "last"
_EXPLANATION = (
    "Accuracy when the states of one layer are compared; 0 is what the embeddings give. “word” compares the states of "
    "the word itself, “masked” those of the masks in its place. 95% bootstrap intervals over words. The best layer is "
    "chosen on the very questions it is shown for, and is flattered by that, the more so the more layers there are: "
    "its p against the last layer (paired sign flips) is multiplied by the number of layers it was chosen from, and "
    "“cross-checked” is how far the layer that is best on one half of the words is ahead of the last on the "
    "other half, the mean of both ways round."
)


@dataclass(frozen=True)
class _Stack:
    """The layers of one model by one kind of states: the place of each along the axis, and its line."""

    model: str
    label: str
    task: str
    lines: Mapping[int | str, Line]


def layers(given: AnalysisInput) -> Analysis | None:
    """Figures and tables of accuracy by layer; None where no single layer was asked for."""
    book = ScoreLookup(given)
    figures, tables, best, sentences = [], [], [], []
    for task in book.tasks:
        stacks = _stacks(given, book, task)
        for metric in book.metrics(task)[:1] if stacks else ():
            cells = {
                (stack.label, layer): cell
                for stack in stacks
                for layer, line in stack.lines.items()
                if (cell := book.cell(line, task, metric)) is not None
            }
            figure, table = _shown(task, metric, stacks, cells)
            figures.append(figure)
            tables.append(table)
            for stack in stacks:
                row, sentence = _best(given, stack, metric, cells)
                best.append(row)
                sentences += [] if stack.model in given.baselines else [sentence]
    if not figures:
        return None
    columns = (
        *(Column("Model"), Column("best layer"), Column("accuracy", "share"), Column("of the last", "share")),
        *(Column("ahead", "points"), Column("p", "p"), Column("cross-checked", "points")),
    )
    table = Table("The best layer against the last.", columns, tuple(best))
    return Analysis("layers", "Senses by layer", _EXPLANATION, (table, *tables), tuple(figures), tuple(sentences))


def _stacks(given: AnalysisInput, book: ScoreLookup, task: str) -> list[_Stack]:
    """The models and states of which at least two layers have a score.

    The last layer has a number where all before it were asked for, and its name alone where some are missing.
    """
    found: dict[tuple[str, str], dict[int, Line]] = {}
    for line in book.lines:
        method = _METHOD.match(line.method)
        scored = any(book.cell(line, task, metric) for metric in book.metrics(task)[:1])
        if method and line.probe == "compare" and scored:
            layer = -1 if method["layer"] is None else int(method["layer"])
            found.setdefault((line.model, method["states"]), {})[layer] = line
    several = {key: own for key, own in found.items() if len(own) > 1}
    numbered = all(set(own) - {-1} == set(range(max(own) + 1)) for own in several.values())
    stacks = []
    for (model, states), own in several.items():
        lines: dict[int | str, Line] = {layer: own[layer] for layer in sorted(own) if layer >= 0}
        if -1 in own:
            lines[max(own) + 1 if numbered else _LAST] = own[-1]
        alone = len({kind for _, kind in several}) == 1
        stacks.append(_Stack(model, model if alone else f"{model} ({states})", task, lines))
    return stacks


def _shown(
    task: str, metric: Metric, stacks: Sequence[_Stack], cells: Mapping[tuple[str, int | str], Estimate]
) -> tuple[Figure, Table]:
    places = sorted({layer for _, layer in cells}, key=lambda layer: (layer == _LAST, layer))
    caption = f"{task}: {metric_label(metric)} by layer"
    rows = tuple(
        {"x": layer, "line": stack.label, "model": stack.model, **vars(cells[stack.label, layer])}
        for layer in places
        for stack in stacks
        if (stack.label, layer) in cells
    )
    columns = (Column("Layer"), *(Column(stack.label, "share") for stack in stacks))
    lines = tuple((str(layer), *(cells.get((stack.label, layer)) for stack in stacks)) for layer in places)
    return Figure("lines", caption, rows, "layer", percent=True, y=metric_label(metric)), Table(
        f"{caption}.", columns, lines, aside=True
    )


def _best(
    given: AnalysisInput, stack: _Stack, metric: Metric, cells: Mapping[tuple[str, int | str], Estimate]
) -> tuple[TableRow, str]:
    """The best layer against the last of those asked for: a row and a sentence."""
    known = {layer: cells[stack.label, layer] for layer in stack.lines}
    last = list(known)[-1]
    best = max(known, key=lambda layer: (known[layer].value or 0.0, layer == last))
    high, end = known[best], known[last]
    head = (stack.label, str(best), high, end.value)
    of = f"Of {len(known)} layers of {quote_name(stack.label)}"
    if best == last:
        return (*head, None, None, None), f"{of}, the last has the best accuracy ({percent(end.value or 0.0)})."
    ids = sorted(set.intersection(*(set(given.counted_ids(line, stack.task)) for line in stack.lines.values())))
    values = {layer: given.counted_values(line, ids, metric) for layer, line in stack.lines.items()}
    weights, clusters = given.weights(ids), given.cluster_ids(ids)
    seed = derived_seed(given.seed, "layers", stack.task, metric.name)
    ahead = paired_difference(weights * values[best], weights * values[last], clusters, seed=seed)
    p = min(1.0, ahead.p * (len(known) - 1))
    halves = _other_half({layer: weights * own for layer, own in values.items()}, last, clusters, seed)
    row = (*head, Estimate(ahead.difference, ahead.low, ahead.high, len(ids)), p, halves)
    return row, f"{of}, layer {best} has the best accuracy{_ahead(high, end, ahead, p, halves)}."


def _ahead(high: Estimate, end: Estimate, ahead: PairedDifference, p: float, halves: float | None) -> str:
    numbers = f" ({percent(high.value or 0.0)}, the last {percent(end.value or 0.0)})"
    if p >= 0.05:
        return f"{numbers}, but chosen among so many it cannot be told from the last (p = {p:.3f})"
    half = "" if halves is None else f", {100 * halves:+.1f} on questions that it was not chosen by"
    exact = "p < 0.001" if p < 0.001 else f"p = {p:.3f}"
    return f"{numbers}, {100 * ahead.difference:.1f} points ahead of the last ({exact}{half})"


def _other_half(
    values: Mapping[int | str, np.ndarray], last: int | str, clusters: np.ndarray, seed: int
) -> float | None:
    """How far the layer that is best on one half of the clusters is ahead of the last on the other; both ways round."""
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
