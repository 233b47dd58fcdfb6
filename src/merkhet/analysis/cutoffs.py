"""How many answers to give: sets cut by a threshold on probability, and whether probabilities can be believed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from merkhet.analysis.memory_types import STATEMENT, MemorizedModel, MemoryInput, format_paired_difference
from merkhet.analysis.types import Analysis, Column, Estimate, Figure, Table, TableRow, estimate, quote_name
from merkhet.core.ids import derived_seed
from merkhet.metrics.ranks import FloatArray
from merkhet.metrics.recall_scores import (
    TOP_SYMBOLS,
    Clusters,
    align_recalls,
    encode_column,
    statement_clusters,
    top_symbols,
)

THRESHOLDS = (
    0.001,
    0.002,
    0.005,
    0.01,
    0.02,
    0.03,
    0.05,
    0.07,
    0.1,
    0.15,
    0.2,
    0.25,
    0.3,
    0.4,
    0.5,
    0.6,
    0.7,
    0.8,
    0.9,
)
_KINDS = ("all", "one", "several")
_BINS = 10
_EXPLANATION = (
    "How many answers a model should give is not told to it. Here it gives all symbols whose probability is at least a "
    "threshold, and one at least. The threshold with the best mean F1 is chosen on one half of the facts and tried on "
    "the other, which alone is shown; a prompt is counted once, however many right answers it has. Precision is the "
    "share of given answers that are right, recall the share of right answers that are given, F1 their harmonic mean, "
    "each the mean over prompts. “One” always gives the first answer only, “told” gives as many as there are right "
    f"ones. The first {TOP_SYMBOLS} answers of each prompt were kept: no set is larger, and of prompts with more "
    "right answers some are always missed. "
    "Probabilities can be believed if the first answer is the very symbol that was masked as "
    "often as its probability says; the expected calibration error is the mean distance of the two over ten equal "
    "bins. A right answer of several has a low probability and is right all the same. Intervals are of 95% over facts."
)
BoolArray = NDArray[np.bool_]


@dataclass(frozen=True)
class _Answered:
    """Prompts with their first answers: probabilities in descending order (0 where there is none) and what is right."""

    probabilities: FloatArray
    right: BoolArray
    golds: NDArray[np.int64]
    clusters: Clusters
    chosen_on: BoolArray
    prompts: NDArray[np.int64]
    """The prompt of each statement."""

    @cached_property
    def _found(self) -> NDArray[np.int64]:
        return np.cumsum(self.right, axis=1)

    def sizes(self, threshold: float) -> NDArray[np.int64]:
        """How many answers are given at a threshold."""
        found: NDArray[np.int64] = np.maximum(1, (self.probabilities >= threshold).sum(axis=1))
        return found

    def told(self) -> NDArray[np.int64]:
        """As many as are right, as far as there are answers."""
        found: NDArray[np.int64] = np.minimum(self.golds, self.sizes(np.nextafter(0.0, 1.0)))
        return found

    def judged(self, sizes: NDArray[np.int64]) -> dict[str, FloatArray]:
        """Precision, recall and F1 of the first so many answers of each prompt."""
        hits = self._found[np.arange(len(sizes)), sizes - 1]
        return {"precision": hits / sizes, "recall": hits / self.golds, "F1": 2.0 * hits / (sizes + self.golds)}

    def of(self, kind: str) -> BoolArray:
        """Which prompts are of a kind."""
        several: BoolArray = self.golds > 1
        return np.ones(len(several), bool) if kind == "all" else several if kind == "several" else ~several


def cutoffs(given: MemoryInput) -> Analysis | None:
    """Sets by threshold against one answer and against the right number; None where no prompt has several answers."""
    rows: list[TableRow] = []
    bins: list[TableRow] = []
    figures, sentences = [], []
    largest = {one.base: one for one in sorted(given.models, key=lambda one: one.facts or 0) if one.conflict}
    for one in given.models:
        if not one.conflict or STATEMENT not in one.tasks:
            continue
        statements, recalls = one.tables_by_task[STATEMENT]
        if not pc.any(statements["conflict"]).as_py():
            continue
        recalls = align_recalls(statements, recalls)
        # A sentence that was too long to be read has no answers.
        there = pc.greater(pc.list_value_length(recalls["top"]), 0)
        statements, recalls = statements.filter(there), recalls.filter(there)
        if not statements.num_rows:
            continue
        answered = _answered(statements, recalls, derived_seed(given.seed, "halves"))
        if answered.chosen_on.all() or not answered.chosen_on.any():
            continue
        curves = {t: answered.judged(answered.sizes(t))["F1"] for t in THRESHOLDS}
        best = max(THRESHOLDS, key=lambda t: float(curves[t][answered.chosen_on].mean()))
        rows += _policies(given, one, answered, best)
        bins += _reliability(one, statements, recalls, answered)
        if one is largest[one.base]:
            figures.append(_figure(one, answered, curves, best))
            sentences.append(_sentence(given, one, answered, best))
    if not rows:
        return None
    tables = (_policy_table(rows), _bin_table(bins))
    return Analysis("cutoffs", "How many answers to give", _EXPLANATION, tables, tuple(figures), tuple(sentences))


def _answered(statements: pa.Table, recalls: pa.Table, seed: int) -> _Answered:
    """The distinct prompts; each belongs to the first fact by name that it is asked for, and its half goes by that."""
    names = pc.coalesce(statements["fact_id"], statements["statement_id"])
    facts = names.unique()
    owners = pc.index_in(names, value_set=facts.take(pc.sort_indices(facts))).to_numpy()
    half = np.random.default_rng(seed).permutation(len(facts)) < len(facts) // 2
    _, prompts = np.unique(encode_column(statements["prompt"]), return_inverse=True)
    order = np.lexsort((owners, prompts))
    places = order[np.unique(prompts[order], return_index=True)[1]]
    statements, recalls = statements.take(pa.array(places)), recalls.take(pa.array(places))
    probabilities, right = _tops(statements, recalls)
    golds = pc.list_value_length(statements["answers"]).to_numpy().astype(np.int64)
    return _Answered(probabilities, right, golds, statement_clusters(statements), half[owners[places]], prompts)


def _tops(statements: pa.Table, recalls: pa.Table) -> tuple[FloatArray, BoolArray]:
    """Probabilities of the first answers, a row a statement, and whether they are right."""
    tops = recalls["top"].combine_chunks()
    lengths = pc.fill_null(pc.list_value_length(tops), 0).to_numpy(zero_copy_only=False).astype(np.int64)
    entries = tops.flatten()
    lines = np.repeat(np.arange(len(lengths)), lengths)
    columns = np.arange(len(lines)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    probabilities = np.zeros((len(lengths), max(TOP_SYMBOLS, int(lengths.max(initial=0)))))
    probabilities[lines, columns] = np.exp(entries.field("score").to_numpy(zero_copy_only=False).astype(np.float64))
    answers = statements["answers"]
    owners = np.repeat(np.arange(len(lengths)), pc.list_value_length(answers).to_numpy().astype(np.int64))
    given, wanted = entries.field("symbol"), pc.list_flatten(answers).combine_chunks()
    numbers = encode_column(pa.chunked_array([given, wanted], pa.string()))
    size = int(numbers.max(initial=0)) + 1
    right = np.zeros(probabilities.shape, bool)
    keys, known = lines * size + numbers[: len(given)], np.sort(owners * size + numbers[len(given) :])
    right[lines, columns] = known[np.minimum(np.searchsorted(known, keys), len(known) - 1)] == keys
    return probabilities, right


def _policies(given: MemoryInput, one: MemorizedModel, answered: _Answered, best: float) -> list[TableRow]:
    rows: list[TableRow] = []
    by_policy = {
        "threshold": answered.judged(answered.sizes(best)),
        "one": answered.judged(np.ones(len(answered.golds), dtype=np.int64)),
        "told": answered.judged(answered.told()),
    }
    for kind in _KINDS:
        chosen = np.flatnonzero(~answered.chosen_on & answered.of(kind))
        if not len(chosen):
            continue
        clusters = answered.clusters.take(chosen)

        def cell(values: FloatArray, chosen: NDArray[np.int64] = chosen, clusters: Clusters = clusters) -> Estimate:
            return estimate(clusters.interval(values[chosen], given.seed_for("cutoffs")), len(chosen))

        judged = by_policy["threshold"]
        ahead = clusters.difference(judged["F1"][chosen], by_policy["one"]["F1"][chosen], given.seed_for("cutoffs"))
        rows.append(
            (
                *(one.base, one.facts, best, kind, len(chosen), int((answered.golds[chosen] > TOP_SYMBOLS).sum())),
                *(cell(by_policy[name]["F1"]) for name in ("threshold", "one", "told")),
                Estimate(ahead.difference, ahead.low, ahead.high, len(chosen)),
                *(cell(judged[name]) for name in ("precision", "recall")),
            )
        )
    return rows


def _policy_table(rows: Sequence[TableRow]) -> Table:
    columns = (
        *(Column("Model"), Column("facts", "count"), Column("threshold", "number"), Column("right answers")),
        *(Column("n", "count"), Column(f"over {TOP_SYMBOLS} right", "count"), Column("F1", "share")),
        *(Column("F1 of one", "share"), Column("F1 if told", "share"), Column("F1 less that of one", "points")),
        *(Column("precision", "share"), Column("recall", "share")),
    )
    return Table("Sets of answers on the half of facts that the threshold was not chosen on.", columns, tuple(rows))


def _reliability(one: MemorizedModel, statements: pa.Table, recalls: pa.Table, answered: _Answered) -> list[TableRow]:
    """The first answer's probability against how often it is the masked symbol, by bins; the last row is of all."""
    firsts = top_symbols(recalls)
    exact = pc.fill_null(pc.equal(firsts, statements["target"]), False).to_numpy().astype(np.float64)
    sure, correct = (own[answered.prompts, 0].astype(np.float64) for own in (answered.probabilities, answered.right))
    places = np.minimum((sure * _BINS).astype(np.int64), _BINS - 1)
    rows: list[TableRow] = []
    error = 0.0
    for place in np.unique(places):
        inside = places == place
        error += abs(float(exact[inside].sum() - sure[inside].sum())) / len(sure)
        means = (float(values[inside].mean()) for values in (sure, exact, correct))
        name = f"{100 * place // _BINS}–{100 * (place + 1) // _BINS}%"
        rows.append((one.base, one.facts, name, int(inside.sum()), *means, None))
    rows.append((one.base, one.facts, "all", len(sure), *(float(v.mean()) for v in (sure, exact, correct)), error))
    return rows


def _bin_table(rows: Sequence[TableRow]) -> Table:
    columns = (
        *(Column("Model"), Column("facts", "count"), Column("probability of the first answer")),
        *(Column("statements", "count"), Column("mean probability", "share"), Column("is the masked one", "share")),
        *(Column("is right", "share"), Column("calibration error", "share")),
    )
    return Table("Whether probabilities can be believed, over all stored statements.", columns, tuple(rows), aside=True)


def _figure(one: MemorizedModel, answered: _Answered, curves: Mapping[float, FloatArray], best: float) -> Figure:
    rows = []
    for kind in _KINDS[1:]:
        chosen = ~answered.chosen_on & answered.of(kind)
        if chosen.any():
            rows += [
                {"x": t, "line": f"{kind} right", "value": float(values[chosen].mean()), "n": int(chosen.sum())}
                for t, values in curves.items()
            ]
    caption = f"{one.base}: F1 of sets by the threshold on probability ({best:g} was chosen on other facts)"
    return Figure("lines", caption, tuple(rows), "threshold", percent=True, log=True, y="F1")


def _sentence(given: MemoryInput, one: MemorizedModel, answered: _Answered, best: float) -> str:
    parts = []
    cut, alone = answered.judged(answered.sizes(best))["F1"], answered.judged(np.ones_like(answered.golds))["F1"]
    for kind in _KINDS[1:]:
        chosen = np.flatnonzero(~answered.chosen_on & answered.of(kind))
        if not len(chosen):
            continue
        ahead = answered.clusters.take(chosen).difference(cut[chosen], alone[chosen], given.seed_for("cutoffs"))
        parts.append(
            f"{format_paired_difference(ahead)} on the {len(chosen):,} prompts with {kind} right "
            f"answer{'s' * (kind != 'one')}"
        )
    more = int((answered.golds > TOP_SYMBOLS).sum())
    missed = (
        f" Of prompts with more than {TOP_SYMBOLS} right answers ({more:,}), some of these are always missed."
        if more
        else ""
    )
    return (
        f"{quote_name(one.model)}: giving every answer of probability {best:g} or more, against the first alone, "
        "changes the "
        f"F1 of answers by {'; '.join(parts)}.{missed}"
    )
