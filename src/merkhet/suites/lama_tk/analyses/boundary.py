"""Analysis of starts and ends asked in other words, by the share of times left out in training."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

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
from merkhet.analysis.types import Analysis, Column, Estimate, Figure, Table, TableRow, estimate
from merkhet.core.text import quote_name
from merkhet.metrics.ranks import FloatArray
from merkhet.metrics.recall_scores import align_recalls, paired_recall_difference, statement_clusters, top_symbols

BOUNDARY = "boundary"
_TEMPLATES = {"begin": "start", "finish": "end"}
_EXPLANATION = (
    "Models stored statements with a start or an end masked, the other time being told, and are asked for both in "
    "words that they never saw (begin: when it began, finish: when it ended), no time being told. “Times left out” is "
    "the share of storing in which the other time was deleted from the statement. Right is every start (end) of the "
    "same subject with the same object. “The other end” is the share of first answers that are the fact's end where "
    "its start was asked for, or its start where its end was, and not right. The baseline frequency gives the times "
    f"that are stored most often. Differences are against the same model with no times left out. {INTERVALS}"
)


def boundaries(inputs: MemoryInput) -> Analysis | None:
    """Score starts and ends by the share of times left out; None if none were asked."""
    conditions = [
        memorized
        for memorized in inputs.models
        if BOUNDARY in memorized.tasks and memorized.condition.get("dynamic") is not None
    ]
    if not conditions or not inputs.metrics:
        return None
    differences = _compare_with_none(inputs, conditions)
    tables = [_score_table(inputs, conditions)]
    tables += [_difference_table(conditions, differences)] if differences else []
    tables += [table for table in (_conflict_table(inputs, conditions),) if table]
    sentences = [
        text for base, of_base in inputs.bases.items() for text in _describe_base(inputs, base, of_base, differences)
    ]
    return Analysis(
        "boundaries",
        "Starts and ends in other words",
        _EXPLANATION,
        tuple(tables),
        (_bar_figure(inputs, conditions),),
        tuple(sentences),
    )


def _left_out_share(memorized: MemorizedModel) -> str:
    return f"{memorized.condition['dynamic']:g}%"


def _shown_groups() -> dict[str, tuple[str, dict[str, str]]]:
    """List the groups of scores to show: task and group columns by name."""
    groups: dict[str, tuple[str, dict[str, str]]] = {"stored": (STATEMENT, {}), "both": (BOUNDARY, {})}
    return groups | {name: (BOUNDARY, {"template": name}) for name in _TEMPLATES}


def _score_table(inputs: MemoryInput, conditions: Sequence[MemorizedModel]) -> Table:
    rows: list[TableRow] = []
    for memorized in conditions:
        other_end = _other_end_shares(inputs, memorized)
        for name, (task, groups) in _shown_groups().items():
            cells = [inputs.cell(memorized.model, task, metric, **groups) for metric in inputs.metrics]
            if any(cell is not None for cell in cells):
                rows.append((memorized.base, _left_out_share(memorized), name, *cells, other_end.get(name)))
    first = conditions[0]
    for name, (task, groups) in _shown_groups().items():
        baseline_cells = [inputs.baseline(first, task, metric, **groups) for metric in inputs.metrics]
        if any(cell is not None for cell in baseline_cells):
            rows.append(("frequency", None, name, *baseline_cells, None))
    chances = (inputs.chance(first.model, BOUNDARY, metric) for metric in inputs.metrics)
    rows.append(("chance", None, "both", *chances, None))
    columns = (
        *(Column("Model"), Column("times left out"), Column("asked")),
        *(Column(LABELS[metric], "share") for metric in inputs.metrics),
        Column("the other end", "share"),
    )
    return Table("Stored statements, and starts and ends asked for in other words.", columns, tuple(rows))


def _compare_with_none(inputs: MemoryInput, conditions: Sequence[MemorizedModel]) -> list[Comparison]:
    """Compare every model with times left out with the same model without, on stored statements and boundaries."""
    differences = {}
    for memorized in conditions:
        twin = next(
            (
                candidate
                for candidate in conditions
                if candidate.base == memorized.base and not candidate.condition["dynamic"]
            ),
            None,
        )
        if twin is None or twin is memorized:
            continue
        for task, metric in ((STATEMENT, "acc@1"), (BOUNDARY, "acc@1"), (BOUNDARY, "hit@10")):
            if metric not in inputs.metrics or task not in memorized.tasks & twin.tasks:
                continue
            statements, recalls = memorized.tables_by_task[task]
            twin_recalls = twin.tables_by_task[task][1]
            parts = (
                {"stored": statements} if task == STATEMENT else {"both": statements, **_split_by_template(statements)}
            )
            for name, part in parts.items():
                difference = paired_recall_difference(
                    part, recalls, twin_recalls, metric, inputs.seed_for(name, metric)
                )
                differences[name, metric, memorized.model, twin.model] = difference
    return make_comparisons(differences)


def _split_by_template(statements: pa.Table) -> dict[str, pa.Table]:
    return {name: statements.filter(pc.equal(statements["template"], name)) for name in _TEMPLATES}


def _difference_table(conditions: Sequence[MemorizedModel], differences: Sequence[Comparison]) -> Table:
    by_name = {memorized.model: memorized for memorized in conditions}
    rows = tuple(
        (
            by_name[difference.model].base,
            _left_out_share(by_name[difference.model]),
            difference.task,
            LABELS[difference.metric],
            Estimate(difference.difference, difference.low, difference.high, difference.n),
            difference.p,
            difference.n,
        )
        for difference in differences
    )
    columns = (
        *(Column("Model"), Column("times left out"), Column("asked"), Column("Score")),
        *(Column("against none left out", "points"), Column("p", "p"), Column("n", "count")),
    )
    return Table("Times left out against none left out, on the same statements.", columns, rows)


def _conflict_table(inputs: MemoryInput, conditions: Sequence[MemorizedModel]) -> Table | None:
    """Tabulate statements with one start (end) and with several; without a time the latter are ambiguous."""
    metrics = [metric for metric in ("acc@1", "hit@10") if metric in inputs.metrics]
    rows = []
    for memorized in conditions:
        cells = [
            inputs.cell(memorized.model, BOUNDARY, metric, conflict=kind)
            for metric in metrics
            for kind in ("no", "yes")
        ]
        if any(cell is not None for cell in cells):
            rows.append((memorized.base, _left_out_share(memorized), *cells))
    columns = (
        *(Column("Model"), Column("times left out")),
        *(Column(f"{LABELS[metric]}, {kind}", "share") for metric in metrics for kind in ("one time", "several")),
    )
    caption = "Starts and ends of what has one, and of what has several (held again)."
    return Table(caption, columns, tuple(rows), aside=True) if rows else None


def _other_end_shares(inputs: MemoryInput, memorized: MemorizedModel) -> Mapping[str, Estimate]:
    """Compute how often the first answer is the fact's other end, by template and for both."""
    if STATEMENT not in memorized.tasks:
        return {}
    statements, recalls = memorized.tables_by_task[BOUNDARY]
    stored = memorized.tables_by_task[STATEMENT][0]
    if not statements.num_rows:
        return {}
    values, has_other_end = _other_end_hits(statements, align_recalls(statements, recalls), stored)
    clusters = statement_clusters(statements)
    shares = {}
    for name in ("both", *_TEMPLATES):
        inside = (
            np.ones(len(has_other_end), bool) if name == "both" else pc.equal(statements["template"], name).to_numpy()
        )
        chosen = np.flatnonzero(has_other_end & inside)
        if len(chosen):
            interval = clusters.take(chosen).interval(values[chosen], inputs.seed_for("other", name))
            shares[name] = estimate(interval, len(chosen))
    return shares


def _other_end_hits(
    statements: pa.Table, recalls: pa.Table, stored: pa.Table
) -> tuple[FloatArray, np.ndarray[tuple[int], np.dtype[np.bool_]]]:
    """Find first answers that are the fact's other end.

    Returns:
        Whether the first answer is the other end and wrong, and whether such a wrong other end exists.
    """
    firsts = top_symbols(recalls).to_pylist()
    ends = {
        (fact, mask): target
        for fact, mask, target in zip(
            *(stored[name].to_pylist() for name in ("fact_id", "mask", "target")), strict=True
        )
    }
    opposite = {"start": "end", "end": "start"}
    columns = (statements[name].to_pylist() for name in ("fact_id", "mask", "answers"))
    other_ends = [
        None if (end := ends.get((fact, opposite.get(mask)))) in answers else end
        for fact, mask, answers in zip(*columns, strict=True)
    ]
    has_other_end = np.array([end is not None for end in other_ends])
    hit = [end is not None and end == first for end, first in zip(other_ends, firsts, strict=True)]
    return np.array(hit, dtype=np.float64), has_other_end


def _bar_figure(inputs: MemoryInput, conditions: Sequence[MemorizedModel]) -> Figure:
    metric = inputs.metrics[0]
    rows = tuple(
        {"panel": memorized.base, "x": name, "bar": _left_out_share(memorized), **vars(cell)}
        for memorized in conditions
        for name, (task, groups) in _shown_groups().items()
        if name != "both" and (cell := inputs.cell(memorized.model, task, metric, **groups)) is not None
    )
    caption = f"{LABELS[metric]} of stored statements, and of starts and ends asked for in other words."
    return Figure("bars", caption, rows, legend="times left out", percent=True, y=LABELS[metric])


def _describe_base(
    inputs: MemoryInput, base: str, of_base: Sequence[MemorizedModel], differences: Sequence[Comparison]
) -> list[str]:
    sentences = []
    for memorized in of_base:
        cell = inputs.cell(memorized.model, BOUNDARY, "acc@1")
        if cell is None:
            continue
        text = (
            f"{quote_name(base)}, {_left_out_share(memorized)} of times left out: Acc@1 {format_score(cell)} for "
            "starts and ends in "
            "other words"
        )
        stored = inputs.cell(memorized.model, STATEMENT, "acc@1")
        text += "" if stored is None else f", {format_score(stored)} on what was stored"
        change = next(
            (
                difference
                for difference in differences
                if (difference.task, difference.metric, difference.model) == ("both", "acc@1", memorized.model)
            ),
            None,
        )
        if change is not None:
            text += f"; {describe_side(change)} the same with none left out ({format_paired_difference(change)})"
        baseline_difference = inputs.above_baseline(memorized, BOUNDARY, "acc@1")
        if baseline_difference is not None and baseline_difference[0].p == baseline_difference[0].p:
            lead, _ = baseline_difference
            text += f"; {describe_side(lead)} the baseline frequency ({format_paired_difference(lead)})"
        sentences.append(f"{text}.")
    return sentences
