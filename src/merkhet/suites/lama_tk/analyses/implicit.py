"""Analysis of implied knowledge: years inside an interval, in stored and other words, and order."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from merkhet.analysis.comparison import Comparison
from merkhet.analysis.memory_types import (
    INTERVALS,
    LABELS,
    STATEMENT,
    MemorizedModel,
    MemoryInput,
    describe_side,
    format_paired_difference,
    format_score,
    make_comparisons,
)
from merkhet.analysis.types import Analysis, Column, Estimate, Figure, Table, TableRow
from merkhet.core.text import quote_name
from merkhet.metrics.bootstrap import PairedDifference
from merkhet.metrics.recall_scores import align_recalls, recall_values, statement_clusters

IMPLICIT, ORDER = "implicit", "order"
WITHIN, PARAPHRASE = "within", "paraphrase"
_ORDERS = ("first", "last", "before", "after")
_EXPLANATION = (
    "Models stored facts with their start and end, and are asked what held in a year strictly inside: “within” in the "
    "words that were stored, but with the one year instead of the two times; “paraphrase” in words that they never "
    "saw. Every such fact has control facts of the same subject that were stored too and are wrong in that year, "
    "unless they hold in it as well: whatever holds is right. Order: who was the first or the last to hold something, "
    "and who came before or after somebody, of those known here, asked where it is decided. The two wordings are "
    "compared fact by fact. The baseline frequency gives what is masked most often in the stored statements of a "
    f"relation; chance is a random order of all symbols. {INTERVALS}"
)


def implicit(inputs: MemoryInput) -> Analysis | None:
    """Score implied facts by wording and order, and compare the wordings; None if none were asked."""
    conditions = [memorized for memorized in inputs.models if memorized.tasks & {IMPLICIT, ORDER}]
    if not conditions or not inputs.metrics:
        return None
    transfer = _compare_wordings(inputs, conditions)
    tables = [_score_table(inputs, conditions)]
    tables += [_difference_table(conditions, transfer)] if transfer else []
    sentences = [text for memorized in conditions for text in _describe_model(inputs, memorized, transfer)]
    return Analysis(
        "implicit",
        "Implicit knowledge",
        _EXPLANATION,
        tuple(tables),
        (_bar_figure(inputs, conditions),),
        tuple(sentences),
    )


def _shown_groups(inputs: MemoryInput, memorized: MemorizedModel) -> list[tuple[str, str, dict[str, str]]]:
    """List the groups of a model's scores to show: name, task and group columns."""
    groups_to_show: list[tuple[str, str, dict[str, str]]] = [("stored", STATEMENT, {})]
    groups_to_show += [(name, IMPLICIT, {"template": name}) for name in (WITHIN, PARAPHRASE)]
    groups_to_show += [(name, ORDER, {"template": name}) for name in _ORDERS]
    return [
        (name, task, groups)
        for name, task, groups in groups_to_show
        if any(inputs.cell(memorized.model, task, metric, **groups) is not None for metric in inputs.metrics)
    ]


def _score_table(inputs: MemoryInput, conditions: Sequence[MemorizedModel]) -> Table:
    rows: list[TableRow] = []
    for memorized in conditions:
        for name, task, groups in _shown_groups(inputs, memorized):
            cells = [inputs.cell(memorized.model, task, metric, **groups) for metric in inputs.metrics]
            baseline_cells = [inputs.baseline(memorized, task, metric, **groups) for metric in inputs.metrics]
            n = next((cell.n for cell in cells if cell is not None), None)
            chance = inputs.chance(memorized.model, task, inputs.metrics[0], **groups)
            first_and_last = (baseline_cells[0], baseline_cells[-1])
            rows.append(
                (
                    memorized.base,
                    name,
                    n,
                    *cells,
                    *(None if baseline_cell is None else baseline_cell.value for baseline_cell in first_and_last),
                    chance,
                )
            )
    first, last = LABELS[inputs.metrics[0]], LABELS[inputs.metrics[-1]]
    columns = (
        *(Column("Model"), Column("asked"), Column("n", "count")),
        *(Column(LABELS[metric], "share") for metric in inputs.metrics),
        *(Column(f"frequency {first}", "share"), Column(f"frequency {last}", "share")),
        Column(f"chance {first}", "share"),
    )
    caption = "Stored statements, years inside in stored words (within) and in others (paraphrase), and order."
    return Table(caption, columns, tuple(rows))


def _compare_wordings(inputs: MemoryInput, conditions: Sequence[MemorizedModel]) -> list[Comparison]:
    """Compare each model's paraphrases with its stored wording, on the same facts."""
    differences = {}
    for memorized in conditions:
        if IMPLICIT not in memorized.tasks:
            continue
        statements, recalls = memorized.tables_by_task[IMPLICIT]
        for metric in inputs.metrics:
            difference = _paired_wordings(statements, recalls, metric, inputs.seed_for("wordings", metric))
            if difference is not None:
                differences[IMPLICIT, metric, memorized.model, WITHIN] = difference
    return make_comparisons(differences)


def _paired_wordings(
    statements: pa.Table, recalls: pa.Table, metric: str, seed: int
) -> tuple[PairedDifference, int] | None:
    """Compute paraphrase minus within over the facts asked in both; each by its first statement."""
    recalls = align_recalls(statements, recalls)
    firsts = []
    for template in (PARAPHRASE, WITHIN):
        rows = np.flatnonzero(pc.equal(statements["template"], template).to_numpy())
        facts, first_rows = np.unique(
            np.array(statements["fact_id"].take(pa.array(rows)).to_pylist(), dtype=np.str_), True
        )
        firsts.append((facts, rows[first_rows]))
    shared, paraphrase_index, within_index = np.intersect1d(
        firsts[0][0], firsts[1][0], assume_unique=True, return_indices=True
    )
    if not len(shared):
        return None
    paraphrase, within = firsts[0][1][paraphrase_index], firsts[1][1][within_index]
    values = recall_values(recalls, metric)
    clusters = statement_clusters(statements).take(within)
    return clusters.difference(values[paraphrase], values[within], seed), len(shared)


def _difference_table(conditions: Sequence[MemorizedModel], differences: Sequence[Comparison]) -> Table:
    bases = {memorized.model: memorized.base for memorized in conditions}
    rows = tuple(
        (
            bases[paired.model],
            LABELS[paired.metric],
            Estimate(paired.difference, paired.low, paired.high, paired.n),
            paired.p,
            paired.n,
        )
        for paired in differences
    )
    columns = (
        *(Column("Model"), Column("Score"), Column("paraphrase against within", "points")),
        *(Column("p", "p"), Column("facts", "count")),
    )
    return Table("The same facts in words that were not stored against those that were.", columns, rows)


def _bar_figure(inputs: MemoryInput, conditions: Sequence[MemorizedModel]) -> Figure:
    metric = inputs.metrics[0]
    rows = [
        {"x": name, "bar": memorized.base, **vars(cell)}
        for memorized in conditions
        for name, task, groups in _shown_groups(inputs, memorized)
        if (cell := inputs.cell(memorized.model, task, metric, **groups)) is not None
    ]
    rows += [
        {"x": name, "bar": "frequency", **vars(cell)}
        for name, task, groups in _shown_groups(inputs, conditions[0])
        if (cell := inputs.baseline(conditions[0], task, metric, **groups)) is not None
    ]
    return Figure("bars", f"{LABELS[metric]} by what is asked.", tuple(rows), percent=True, y=LABELS[metric])


def _describe_model(inputs: MemoryInput, memorized: MemorizedModel, differences: Sequence[Comparison]) -> list[str]:
    sentences = []
    change = next(
        (
            difference
            for difference in differences
            if (difference.model, difference.metric) == (memorized.model, "acc@1")
        ),
        None,
    )
    cells = [inputs.cell(memorized.model, IMPLICIT, "acc@1", template=name) for name in (WITHIN, PARAPHRASE)]
    if change is not None:
        sentences.append(
            f"{quote_name(memorized.base)}, a year inside: Acc@1 {format_score(cells[0])} in stored words; "
            f"{format_score(cells[1])} in words "
            f"that it never saw, {describe_side(change)} the stored ones on the same facts "
            f"({format_paired_difference(change)})."
        )
    for task, topic in ((IMPLICIT, "on years inside"), (ORDER, "on order")):
        baseline_difference = inputs.above_baseline(memorized, task, "acc@1") if "acc@1" in inputs.metrics else None
        if baseline_difference is None or baseline_difference[0].p != baseline_difference[0].p:
            continue
        lead, n = baseline_difference
        cell = inputs.cell(memorized.model, task, "acc@1")
        sentences.append(
            f"{quote_name(memorized.base)} {topic} ({n:,} questions): Acc@1 {format_score(cell)}, "
            f"{describe_side(lead)} the "
            "baseline frequency "
            f"({format_paired_difference(lead)})."
        )
    return sentences
