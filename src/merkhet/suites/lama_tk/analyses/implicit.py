"""Analysis of implied knowledge: what held in a year inside an interval, and the order of facts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from merkhet.analysis.comparison import Comparison, correct_comparisons
from merkhet.analysis.memorized_run import (
    INTERVALS,
    LABELS,
    STATEMENT,
    MemorizedModel,
    MemorizedRun,
    Recalled,
    describe_side,
    difference_cells,
    drop_missing_baseline,
    format_score,
)
from merkhet.analysis.training_comparison import compare_trainings, training_findings
from merkhet.analysis.types import Analysis, AnalysisInput, Column, Figure, Table, TableRow
from merkhet.core.text import quote_name

IMPLICIT, ORDER = "implicit", "order"
WITHIN, PARAPHRASE = "within", "paraphrase"
_ORDERS = ("first", "last", "before", "after")
_EXPLANATION = (
    "Models stored facts with their start and end, and are asked what held in a year strictly between: “within” in "
    "the stored words, with the year instead of the two times; “paraphrase” in words that they never saw. Every such "
    "fact has stored control facts of the same subject. A control fact is wrong unless it also held in that year. "
    "Order: who was the first or the last to hold something, and who came before or after somebody, among the known "
    "facts and where they decide it. The two wordings are compared fact by fact. The baseline frequency ranks symbols "
    "by how often they are masked in statements of other facts of the relation, if there are any; chance is a random "
    "order of all symbols. "
    f"{INTERVALS}"
)


def implicit(inputs: AnalysisInput) -> Analysis | None:
    """Analyze recall of implied facts and of order, and compare stored with unseen wordings.

    Return None if no model was asked for implied facts or order.
    """
    run = MemorizedRun(inputs)
    conditions = [memorized for memorized in run.models if memorized.tasks & {IMPLICIT, ORDER}]
    if not conditions or not run.metrics:
        return None
    transfer = _compare_wordings(run, conditions)
    tables = [_score_table(run, conditions)]
    tables += [_difference_table(conditions, transfer)] if transfer else []
    sentences = [text for memorized in conditions for text in _describe_model(run, memorized, transfer)]
    return Analysis(
        "implicit",
        "Implicit knowledge",
        _EXPLANATION,
        tuple(tables),
        (_bar_figure(run, conditions),),
        tuple(sentences),
        training_findings(map(asdict, transfer.values())),
    )


def _shown_groups(run: MemorizedRun, memorized: MemorizedModel) -> list[tuple[str, str, dict[str, str]]]:
    """Return the name, task and grouping columns of each group of a model's scores to show."""
    groups_to_show: list[tuple[str, str, dict[str, str]]] = [("stored", STATEMENT, {})]
    groups_to_show += [(name, IMPLICIT, {"template": name}) for name in (WITHIN, PARAPHRASE)]
    groups_to_show += [(name, ORDER, {"template": name}) for name in _ORDERS]
    return [
        (name, task, groups)
        for name, task, groups in groups_to_show
        if any(run.cell(memorized.model, task, metric, **groups) is not None for metric in run.metrics)
    ]


def _score_table(run: MemorizedRun, conditions: Sequence[MemorizedModel]) -> Table:
    rows: list[TableRow] = []
    for memorized in conditions:
        for name, task, groups in _shown_groups(run, memorized):
            cells = [run.cell(memorized.model, task, metric, **groups) for metric in run.metrics]
            baseline_cells = [run.baseline(memorized, task, metric, **groups) for metric in run.metrics]
            n = next((cell.n for cell in cells if cell is not None), None)
            chance = run.chance(memorized.model, task, run.metrics[0], **groups)
            first_and_last = (baseline_cells[0], baseline_cells[-1])
            baseline_values = (
                None if baseline_cell is None else baseline_cell.value for baseline_cell in first_and_last
            )
            rows.append((memorized.base, name, n, *cells, *baseline_values, chance))
    first, last = LABELS[run.metrics[0]], LABELS[run.metrics[-1]]
    columns = (
        *(Column("Model"), Column("asked"), Column("n", "count")),
        *(Column(LABELS[metric], "share") for metric in run.metrics),
        *(Column(f"frequency {first}", "share"), Column(f"frequency {last}", "share")),
        Column(f"chance {first}", "share"),
    )
    caption = (
        "Stored statements, years inside an interval in stored words (within) and in others (paraphrase), and order."
    )
    return drop_missing_baseline(Table(caption, columns, tuple(rows)))


def _compare_wordings(run: MemorizedRun, conditions: Sequence[MemorizedModel]) -> dict[tuple[str, str], Comparison]:
    """Compare scores in the unseen wording with those in the stored wording on the same facts, by model and metric."""
    differences: dict[tuple[str, str], Comparison] = {}
    for memorized in conditions:
        if IMPLICIT not in memorized.tasks:
            continue
        repeated = run.repeated(memorized.model, IMPLICIT)
        for metric in run.metrics:
            compared = _paired_wordings(repeated, metric, run.seed_for("wordings", metric))
            if compared is not None:
                names = (IMPLICIT, metric, f"{memorized.model}, {PARAPHRASE}", f"{memorized.model}, {WITHIN}")
                differences[memorized.model, metric] = Comparison(*names, **compared)
    return dict(zip(differences, correct_comparisons(list(differences.values())), strict=True))


def _paired_wordings(repeated: Sequence[Recalled], metric: str, seed: int) -> dict[str, Any] | None:
    """Compute the score of ``paraphrase`` minus that of ``within`` over the trainings, on facts asked in both wordings.

    The first statement of a fact in each wording counts. Return None if too few facts were asked in both.

    Args:
        repeated: The same statements with the answers after each training.
    """
    recalled = repeated[0]
    rows: dict[str, dict[str, int]] = {PARAPHRASE: {}, WITHIN: {}}
    for row, (fact, template) in enumerate(zip(recalled.facts, recalled.template_parts(1), strict=True)):
        if template in rows:
            rows[template].setdefault(fact, row)
    shared = sorted(rows[PARAPHRASE].keys() & rows[WITHIN].keys())
    if not shared:
        return None
    paraphrase, within = (np.array([rows[name][fact] for fact in shared]) for name in (PARAPHRASE, WITHIN))
    values = [training.values(metric) for training in repeated]
    sides = [(of_training[paraphrase], of_training[within]) for of_training in values]
    compared = compare_trainings(sides, recalled.clusters.take(within), seed)
    return None if compared is None else {**compared, "n": len(shared)}


def _difference_table(conditions: Sequence[MemorizedModel], differences: Mapping[tuple[str, str], Comparison]) -> Table:
    bases = {memorized.model: memorized.base for memorized in conditions}
    rows = tuple((bases[model], *difference_cells(compared)) for (model, _), compared in differences.items())
    columns = (
        *(Column("Model"), Column("Score"), Column("paraphrase against within", "points")),
        *(Column("p", "p"), Column("facts", "count"), Column("trainings", "count")),
    )
    return Table("The same facts in another wording, compared with the stored wording.", columns, rows)


def _bar_figure(run: MemorizedRun, conditions: Sequence[MemorizedModel]) -> Figure:
    metric = run.metrics[0]
    rows = [
        {"x": name, "bar": memorized.base, **vars(cell)}
        for memorized in conditions
        for name, task, groups in _shown_groups(run, memorized)
        if (cell := run.cell(memorized.model, task, metric, **groups)) is not None
    ]
    rows += [
        {"x": name, "bar": "frequency", **vars(cell)}
        for name, task, groups in _shown_groups(run, conditions[0])
        if (cell := run.baseline(conditions[0], task, metric, **groups)) is not None
    ]
    return Figure("bars", f"{LABELS[metric]} by what is asked.", tuple(rows), percent=True, y=LABELS[metric])


def _describe_model(
    run: MemorizedRun, memorized: MemorizedModel, differences: Mapping[tuple[str, str], Comparison]
) -> list[str]:
    sentences = []
    change = differences.get((memorized.model, "acc@1"))
    cells = [run.cell(memorized.model, IMPLICIT, "acc@1", template=name) for name in (WITHIN, PARAPHRASE)]
    if change is not None:
        sentences.append(
            f"{quote_name(memorized.base)}, a year inside: Acc@1 {format_score(cells[0])} in stored words; "
            f"{format_score(cells[1])} in words that it never saw, on the same facts "
            f"{describe_side(change, 'the stored ones')}."
        )
    for task, topic in ((IMPLICIT, "on years inside"), (ORDER, "on order")):
        lead = run.above_baseline(memorized, task, "acc@1") if "acc@1" in run.metrics else None
        cell = run.cell(memorized.model, task, "acc@1")
        if cell is None:
            continue
        against = ""
        if lead is not None:
            against = f", {describe_side(lead, 'the baseline frequency')}"
        sentences.append(
            f"{quote_name(memorized.base)} {topic} ({cell.n:,} questions): Acc@1 {format_score(cell)}{against}."
        )
    return sentences
