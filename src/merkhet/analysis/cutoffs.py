"""Answer sets cut by a probability threshold, and calibration of the probabilities."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from merkhet.analysis.memory_types import STATEMENT, MemorizedModel, MemoryInput, format_paired_difference
from merkhet.analysis.types import Analysis, Column, Estimate, Figure, Table, TableRow, estimate
from merkhet.core.ids import derived_seed
from merkhet.core.text import quote_name
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
_PROMPT_KINDS = ("all", "one", "several")
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
class _PromptAnswers:
    """Distinct prompts with their top answers."""

    probabilities: FloatArray
    """Per prompt, in descending order; 0 where there is no answer."""
    right: BoolArray
    """Whether each of these answers is right."""
    golds: NDArray[np.int64]
    """Number of right answers per prompt."""
    clusters: Clusters
    chosen_on: BoolArray
    """Whether a prompt is in the half on which the threshold is chosen."""
    prompts: NDArray[np.int64]
    """The prompt of each statement."""

    @cached_property
    def _cumulative_hits(self) -> NDArray[np.int64]:
        return np.cumsum(self.right, axis=1)

    def sizes(self, threshold: float) -> NDArray[np.int64]:
        """Count the answers of at least this probability; at least one per prompt."""
        counts: NDArray[np.int64] = np.maximum(1, (self.probabilities >= threshold).sum(axis=1))
        return counts

    def gold_counts(self) -> NDArray[np.int64]:
        """Count the right answers, up to the number of available answers."""
        counts: NDArray[np.int64] = np.minimum(self.golds, self.sizes(np.nextafter(0.0, 1.0)))
        return counts

    def evaluate(self, sizes: NDArray[np.int64]) -> dict[str, FloatArray]:
        """Compute precision, recall and F1 of the top ``sizes`` answers of each prompt."""
        hits = self._cumulative_hits[np.arange(len(sizes)), sizes - 1]
        return {"precision": hits / sizes, "recall": hits / self.golds, "F1": 2.0 * hits / (sizes + self.golds)}

    def select(self, kind: str) -> BoolArray:
        """Select the prompts with one right answer, several, or all."""
        several: BoolArray = self.golds > 1
        return np.ones(len(several), bool) if kind == "all" else several if kind == "several" else ~several


def cutoffs(inputs: MemoryInput) -> Analysis | None:
    """Compare threshold sets with one answer and with the right number; None if no prompt has several answers."""
    rows: list[TableRow] = []
    bins: list[TableRow] = []
    figures, sentences = [], []
    largest = {
        memorized.base: memorized
        for memorized in sorted(inputs.models, key=lambda memorized: memorized.facts or 0)
        if memorized.conflict
    }
    for memorized in inputs.models:
        if not memorized.conflict or STATEMENT not in memorized.tasks:
            continue
        statements, recalls = memorized.tables_by_task[STATEMENT]
        if not pc.any(statements["conflict"]).as_py():
            continue
        recalls = align_recalls(statements, recalls)
        # A sentence that was too long to be read has no answers.
        has_answers = pc.greater(pc.list_value_length(recalls["top"]), 0)
        statements, recalls = statements.filter(has_answers), recalls.filter(has_answers)
        if not statements.num_rows:
            continue
        prompts = _collect_prompts(statements, recalls, derived_seed(inputs.seed, "halves"))
        if prompts.chosen_on.all() or not prompts.chosen_on.any():
            continue
        curves = {threshold: prompts.evaluate(prompts.sizes(threshold))["F1"] for threshold in THRESHOLDS}
        best = max(THRESHOLDS, key=lambda threshold: float(curves[threshold][prompts.chosen_on].mean()))
        rows += _policy_rows(inputs, memorized, prompts, best)
        bins += _reliability_rows(memorized, statements, recalls, prompts)
        if memorized is largest[memorized.base]:
            figures.append(_figure(memorized, prompts, curves, best))
            sentences.append(_describe_gain(inputs, memorized, prompts, best))
    if not rows:
        return None
    tables = (_policy_table(rows), _bin_table(bins))
    return Analysis("cutoffs", "How many answers to give", _EXPLANATION, tables, tuple(figures), tuple(sentences))


def _collect_prompts(statements: pa.Table, recalls: pa.Table, seed: int) -> _PromptAnswers:
    """Collect the distinct prompts; each belongs to its first fact by name, which also decides its half."""
    facts_or_statements = pc.coalesce(statements["fact_id"], statements["statement_id"])
    distinct_facts = facts_or_statements.unique()
    owners = pc.index_in(facts_or_statements, value_set=distinct_facts.take(pc.sort_indices(distinct_facts))).to_numpy()
    first_half = np.random.default_rng(seed).permutation(len(distinct_facts)) < len(distinct_facts) // 2
    _, prompts = np.unique(encode_column(statements["prompt"]), return_inverse=True)
    order = np.lexsort((owners, prompts))
    first_rows = order[np.unique(prompts[order], return_index=True)[1]]
    statements, recalls = statements.take(pa.array(first_rows)), recalls.take(pa.array(first_rows))
    probabilities, right = _top_answers(statements, recalls)
    golds = pc.list_value_length(statements["answers"]).to_numpy().astype(np.int64)
    return _PromptAnswers(
        probabilities, right, golds, statement_clusters(statements), first_half[owners[first_rows]], prompts
    )


def _top_answers(statements: pa.Table, recalls: pa.Table) -> tuple[FloatArray, BoolArray]:
    """Collect the probabilities of the top answers, one row per statement, and whether these are right."""
    tops = recalls["top"].combine_chunks()
    lengths = pc.fill_null(pc.list_value_length(tops), 0).to_numpy(zero_copy_only=False).astype(np.int64)
    entries = tops.flatten()
    row_ids = np.repeat(np.arange(len(lengths)), lengths)
    column_ids = np.arange(len(row_ids)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    probabilities = np.zeros((len(lengths), max(TOP_SYMBOLS, int(lengths.max(initial=0)))))
    probabilities[row_ids, column_ids] = np.exp(
        entries.field("score").to_numpy(zero_copy_only=False).astype(np.float64)
    )
    answers = statements["answers"]
    owners = np.repeat(np.arange(len(lengths)), pc.list_value_length(answers).to_numpy().astype(np.int64))
    answered_symbols, right_symbols = entries.field("symbol"), pc.list_flatten(answers).combine_chunks()
    symbol_codes = encode_column(pa.chunked_array([answered_symbols, right_symbols], pa.string()))
    size = int(symbol_codes.max(initial=0)) + 1
    right = np.zeros(probabilities.shape, bool)
    keys, right_keys = (
        row_ids * size + symbol_codes[: len(answered_symbols)],
        np.sort(owners * size + symbol_codes[len(answered_symbols) :]),
    )
    right[row_ids, column_ids] = right_keys[np.minimum(np.searchsorted(right_keys, keys), len(right_keys) - 1)] == keys
    return probabilities, right


def _policy_rows(
    inputs: MemoryInput, memorized: MemorizedModel, prompts: _PromptAnswers, best: float
) -> list[TableRow]:
    rows: list[TableRow] = []
    by_policy = {
        "threshold": prompts.evaluate(prompts.sizes(best)),
        "one": prompts.evaluate(np.ones(len(prompts.golds), dtype=np.int64)),
        "told": prompts.evaluate(prompts.gold_counts()),
    }
    for kind in _PROMPT_KINDS:
        rows_of_kind = np.flatnonzero(~prompts.chosen_on & prompts.select(kind))
        if not len(rows_of_kind):
            continue
        clusters = prompts.clusters.take(rows_of_kind)

        def cell(
            values: FloatArray, rows_of_kind: NDArray[np.int64] = rows_of_kind, clusters: Clusters = clusters
        ) -> Estimate:
            return estimate(clusters.interval(values[rows_of_kind], inputs.seed_for("cutoffs")), len(rows_of_kind))

        by_threshold = by_policy["threshold"]
        gain = clusters.difference(
            by_threshold["F1"][rows_of_kind], by_policy["one"]["F1"][rows_of_kind], inputs.seed_for("cutoffs")
        )
        rows.append(
            (
                *(
                    memorized.base,
                    memorized.facts,
                    best,
                    kind,
                    len(rows_of_kind),
                    int((prompts.golds[rows_of_kind] > TOP_SYMBOLS).sum()),
                ),
                *(cell(by_policy[name]["F1"]) for name in ("threshold", "one", "told")),
                Estimate(gain.difference, gain.low, gain.high, len(rows_of_kind)),
                *(cell(by_threshold[name]) for name in ("precision", "recall")),
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


def _reliability_rows(
    memorized: MemorizedModel, statements: pa.Table, recalls: pa.Table, prompts: _PromptAnswers
) -> list[TableRow]:
    """Bin the top answer's probability against how often it is the masked symbol; the last row covers all bins."""
    firsts = top_symbols(recalls)
    exact = pc.fill_null(pc.equal(firsts, statements["target"]), False).to_numpy().astype(np.float64)
    confidence, correct = (
        values[prompts.prompts, 0].astype(np.float64) for values in (prompts.probabilities, prompts.right)
    )
    bins = np.minimum((confidence * _BINS).astype(np.int64), _BINS - 1)
    rows: list[TableRow] = []
    error = 0.0
    for bin_index in np.unique(bins):
        inside = bins == bin_index
        error += abs(float(exact[inside].sum() - confidence[inside].sum())) / len(confidence)
        means = (float(values[inside].mean()) for values in (confidence, exact, correct))
        name = f"{100 * bin_index // _BINS}–{100 * (bin_index + 1) // _BINS}%"
        rows.append((memorized.base, memorized.facts, name, int(inside.sum()), *means, None))
    rows.append(
        (
            memorized.base,
            memorized.facts,
            "all",
            len(confidence),
            *(float(values.mean()) for values in (confidence, exact, correct)),
            error,
        )
    )
    return rows


def _bin_table(rows: Sequence[TableRow]) -> Table:
    columns = (
        *(Column("Model"), Column("facts", "count"), Column("probability of the first answer")),
        *(Column("statements", "count"), Column("mean probability", "share"), Column("is the masked one", "share")),
        *(Column("is right", "share"), Column("calibration error", "share")),
    )
    return Table("Whether probabilities can be believed, over all stored statements.", columns, tuple(rows), aside=True)


def _figure(
    memorized: MemorizedModel, prompts: _PromptAnswers, curves: Mapping[float, FloatArray], best: float
) -> Figure:
    rows = []
    for kind in _PROMPT_KINDS[1:]:
        selected = ~prompts.chosen_on & prompts.select(kind)
        if selected.any():
            rows += [
                {
                    "x": threshold,
                    "line": f"{kind} right",
                    "value": float(values[selected].mean()),
                    "n": int(selected.sum()),
                }
                for threshold, values in curves.items()
            ]
    caption = f"{memorized.base}: F1 of sets by the threshold on probability ({best:g} was chosen on other facts)"
    return Figure("lines", caption, tuple(rows), "threshold", percent=True, log=True, y="F1")


def _describe_gain(inputs: MemoryInput, memorized: MemorizedModel, prompts: _PromptAnswers, best: float) -> str:
    parts = []
    threshold_f1, single_f1 = (
        prompts.evaluate(prompts.sizes(best))["F1"],
        prompts.evaluate(np.ones_like(prompts.golds))["F1"],
    )
    for kind in _PROMPT_KINDS[1:]:
        selected = np.flatnonzero(~prompts.chosen_on & prompts.select(kind))
        if not len(selected):
            continue
        gain = prompts.clusters.take(selected).difference(
            threshold_f1[selected], single_f1[selected], inputs.seed_for("cutoffs")
        )
        parts.append(
            f"{format_paired_difference(gain)} on the {len(selected):,} prompts with {kind} right "
            f"answer{'s' * (kind != 'one')}"
        )
    too_many = int((prompts.golds > TOP_SYMBOLS).sum())
    missed = (
        f" Of prompts with more than {TOP_SYMBOLS} right answers ({too_many:,}), some of these are always missed."
        if too_many
        else ""
    )
    return (
        f"{quote_name(memorized.model)}: giving every answer of probability {best:g} or more, against the first alone, "
        "changes the "
        f"F1 of answers by {'; '.join(parts)}.{missed}"
    )
