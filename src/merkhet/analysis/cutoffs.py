"""Answer sets chosen by a probability threshold, and calibration of the probabilities."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from merkhet.analysis.differences import format_points
from merkhet.analysis.finding_types import FEW_QUESTIONS
from merkhet.analysis.memorized_run import STATEMENT, MemorizedModel, MemorizedRun, Recalled
from merkhet.analysis.types import Analysis, AnalysisInput, Column, Estimate, Figure, Table, TableRow, estimate
from merkhet.core.ids import derived_seed
from merkhet.core.text import counted, quote_name
from merkhet.metrics.answer_table import flatten_lists
from merkhet.metrics.clusters import Clusters, sorted_codes
from merkhet.metrics.ranks import FloatArray
from merkhet.metrics.recalls import TOP_SYMBOLS

THRESHOLDS = (
    *(0.001, 0.002, 0.005, 0.01, 0.02, 0.03, 0.05, 0.07),
    *(0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9),
)
_PROMPT_KINDS = ("all", "one", "several")
_BINS = 10
_EXPLANATION = (
    "A model does not know how many answers a prompt has. Here it gives all symbols whose probability is at least a "
    "threshold, and at least one. The threshold with the best mean F1 is chosen on one half of the facts; the scores "
    "are of the other half. A prompt counts once, however many right answers it has. Precision is the share of given "
    "answers that are right, recall the share of right answers that are given, F1 their harmonic mean, each the mean "
    "over prompts. “One” always gives the first answer only; “told” is told the number of right answers. The first "
    f"{TOP_SYMBOLS} answers of each prompt are kept: no set is larger, and prompts with more right answers always miss "
    "some. Probabilities are calibrated if the first answer is the masked symbol as often as its probability says; the "
    "expected calibration error is the mean distance of the two over ten equal bins. Each of several "
    "right answers has a low probability, although it is right. 95% intervals are over facts, for the first training."
)
BoolArray = NDArray[np.bool_]


@dataclass(frozen=True)
class _PromptAnswers:
    """Distinct prompts with their most probable answers."""

    probabilities: FloatArray
    """Probabilities of each prompt's top answers, in descending order; 0 if there are fewer answers."""
    right: BoolArray
    """Whether each top answer is right, in the shape of ``probabilities``."""
    golds: NDArray[np.int64]
    """Number of right answers of each prompt."""
    clusters: Clusters
    chosen_on: BoolArray
    """Whether each prompt is in the half that is used to choose the threshold."""
    prompts: NDArray[np.int64]
    """Index of each statement's prompt."""

    @cached_property
    def _cumulative_hits(self) -> NDArray[np.int64]:
        return np.cumsum(self.right, axis=1)

    def sizes(self, threshold: float) -> NDArray[np.int64]:
        """Return the number of answers with at least this probability, at least 1 per prompt."""
        counts: NDArray[np.int64] = np.maximum(1, (self.probabilities >= threshold).sum(axis=1))
        return counts

    def gold_counts(self) -> NDArray[np.int64]:
        """Return the number of right answers of each prompt, at most the number of available answers."""
        counts: NDArray[np.int64] = np.minimum(self.golds, self.sizes(np.nextafter(0.0, 1.0)))
        return counts

    def evaluate(self, sizes: NDArray[np.int64]) -> dict[str, FloatArray]:
        """Compute precision, recall and F1 of the top ``sizes`` answers of each prompt."""
        hits = self._cumulative_hits[np.arange(len(sizes)), sizes - 1]
        return {"precision": hits / sizes, "recall": hits / self.golds, "F1": 2.0 * hits / (sizes + self.golds)}

    def select(self, kind: str) -> BoolArray:
        """Return a mask of the prompts of a kind: ``one`` right answer, ``several`` right answers, or ``all``."""
        several: BoolArray = self.golds > 1
        return np.ones(len(several), bool) if kind == "all" else several if kind == "several" else ~several


def cutoffs(inputs: AnalysisInput) -> Analysis | None:
    """Compare three numbers of answers to give: by a probability threshold, always one, and the right number.

    Return None if there is nothing to compare, for example no prompt with several right answers.
    """
    run = MemorizedRun(inputs)
    rows: list[TableRow] = []
    bins: list[TableRow] = []
    figures, sentences = [], []
    with_conflict = [memorized for memorized in run.models if memorized.conflict]
    largest = {
        memorized.base: memorized for memorized in sorted(with_conflict, key=lambda memorized: memorized.facts or 0)
    }
    for memorized in with_conflict:
        if STATEMENT not in memorized.tasks:
            continue
        recalled = run.recalled(memorized.model, STATEMENT)
        if all(len(answers) == 1 for answers in recalled.column("answers")):
            continue
        # Statements that were too long for the model have no answers.
        recalled = recalled.take(np.flatnonzero(flatten_lists(recalled.ranked)[0]))
        if not recalled.ids:
            continue
        prompts = _collect_prompts(recalled, derived_seed(run.seed, "halves"))
        if prompts.chosen_on.all() or not prompts.chosen_on.any():
            continue
        curves = {threshold: prompts.evaluate(prompts.sizes(threshold))["F1"] for threshold in THRESHOLDS}
        best = max(THRESHOLDS, key=lambda threshold: float(curves[threshold][prompts.chosen_on].mean()))
        rows += _policy_rows(run, memorized, prompts, best)
        bins += _reliability_rows(memorized, recalled, prompts)
        if memorized is largest[memorized.base]:
            figures.append(_figure(memorized, prompts, curves, best))
            sentences.append(_describe_gain(run, memorized, prompts, best))
    if not rows:
        return None
    tables = (_policy_table(rows), _bin_table(bins))
    return Analysis("cutoffs", "How many answers to give", _EXPLANATION, tables, tuple(figures), tuple(sentences))


def _collect_prompts(recalled: Recalled, seed: int) -> _PromptAnswers:
    """Collect the distinct prompts; the first of a prompt's sorted facts determines its cluster and its half."""
    owners = sorted_codes(recalled.facts)
    fact_count = int(owners.max()) + 1
    first_half = np.random.default_rng(seed).permutation(fact_count) < fact_count // 2
    prompts = sorted_codes(recalled.column("prompt"))
    order = np.lexsort((owners, prompts))
    first_rows = order[np.unique(prompts[order], return_index=True)[1]]
    distinct = recalled.take(first_rows)
    probabilities, right = _top_answers(distinct)
    golds = np.array([len(answers) for answers in distinct.column("answers")], dtype=np.int64)
    return _PromptAnswers(probabilities, right, golds, distinct.clusters, first_half[owners[first_rows]], prompts)


def _top_answers(recalled: Recalled) -> tuple[FloatArray, BoolArray]:
    """Return the probabilities of each statement's top answers, and whether these answers are right."""
    lengths, entries = flatten_lists(recalled.ranked)
    row_ids = np.repeat(np.arange(len(lengths)), lengths)
    column_ids = np.arange(len(row_ids)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    probabilities = np.zeros((len(lengths), max(TOP_SYMBOLS, int(lengths.max(initial=0)))))
    probabilities[row_ids, column_ids] = np.exp(entries.field("score").to_numpy(zero_copy_only=False))
    answers = recalled.column("answers")
    right = np.zeros(probabilities.shape, bool)
    right[row_ids, column_ids] = [
        name in answers[row] for row, name in zip(row_ids.tolist(), entries.field("candidate").to_pylist(), strict=True)
    ]
    return probabilities, right


def _policy_rows(run: MemorizedRun, memorized: MemorizedModel, prompts: _PromptAnswers, best: float) -> list[TableRow]:
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
            return estimate(clusters.interval(values[rows_of_kind], run.seed_for("cutoffs")), len(rows_of_kind))

        by_threshold = by_policy["threshold"]
        gain = clusters.difference(
            by_threshold["F1"][rows_of_kind], by_policy["one"]["F1"][rows_of_kind], run.seed_for("cutoffs")
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
    return Table("Sets of answers, on the half of the facts not used to choose the threshold.", columns, tuple(rows))


def _reliability_rows(memorized: MemorizedModel, recalled: Recalled, prompts: _PromptAnswers) -> list[TableRow]:
    """Compare the top answer's probability with how often it is the masked symbol, by bins of probability.

    The last row is over all bins.
    """
    counts, entries = flatten_lists(recalled.ranked)
    firsts = entries.field("candidate").take(pa.array(np.cumsum(counts) - counts)).to_pylist()
    exact = np.array([name == target for name, target in zip(firsts, recalled.column("target"), strict=True)], float)
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
    means = (float(values.mean()) for values in (confidence, exact, correct))
    rows.append((memorized.base, memorized.facts, "all", len(confidence), *means, error))
    return rows


def _bin_table(rows: Sequence[TableRow]) -> Table:
    columns = (
        *(Column("Model"), Column("facts", "count"), Column("probability of the first answer")),
        *(Column("statements", "count"), Column("mean probability", "share"), Column("is the masked one", "share")),
        *(Column("is right", "share"), Column("calibration error", "share")),
    )
    return Table("Calibration of probabilities, over all stored statements.", columns, tuple(rows), aside=True)


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
    caption = f"{memorized.base}: F1 of answer sets by probability threshold ({best:g} was chosen on other facts)"
    return Figure("lines", caption, tuple(rows), "threshold", percent=True, log=True, y="F1")


def _describe_gain(run: MemorizedRun, memorized: MemorizedModel, prompts: _PromptAnswers, best: float) -> str:
    parts = []
    threshold_f1, single_f1 = (
        prompts.evaluate(prompts.sizes(best))["F1"],
        prompts.evaluate(np.ones_like(prompts.golds))["F1"],
    )
    for kind in _PROMPT_KINDS[1:]:
        selected = np.flatnonzero(~prompts.chosen_on & prompts.select(kind))
        if len(selected) < FEW_QUESTIONS:
            continue
        gain = prompts.clusters.take(selected).difference(
            threshold_f1[selected], single_f1[selected], run.seed_for("cutoffs")
        )
        parts.append(
            f"{format_points(vars(gain))} on {counted(len(selected), 'prompt')} with {kind} right "
            f"answer{'s' * (kind != 'one')}"
        )
    too_many = int((prompts.golds > TOP_SYMBOLS).sum())
    missed = (
        f" Prompts with more than {TOP_SYMBOLS} right answers ({too_many:,}) always miss some of them."
        if too_many
        else ""
    )
    if not parts:
        return f"{quote_name(memorized.model)}: there are too few prompts to choose a number of answers.{missed}"
    return (
        f"{quote_name(memorized.model)}: giving every answer of probability ≥ {best:g} instead of the first answer "
        f"only changes F1 by {'; '.join(parts)}.{missed}"
    )
