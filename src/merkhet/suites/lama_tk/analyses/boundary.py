"""Analysis of queries for starts and ends in unseen wordings, by the share of times left out in training."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import partial

import numpy as np
from numpy.typing import NDArray

from merkhet.analysis.comparison import Comparison
from merkhet.analysis.memorized_run import (
    INTERVALS,
    LABELS,
    STATEMENT,
    MemorizedModel,
    MemorizedRun,
    Recalled,
    describe_side,
    difference_cells,
    format_score,
    make_comparisons,
    template_part,
)
from merkhet.analysis.training_comparison import training_findings
from merkhet.analysis.types import Analysis, AnalysisInput, Column, Estimate, Figure, Table, TableRow, estimate
from merkhet.core.text import quote_name
from merkhet.metrics.ranks import FloatArray

BOUNDARY = "boundary"
_TEMPLATES = {"begin": "start", "finish": "end"}
_EXPLANATION = (
    "Models stored statements with a masked start or end that state the other time. They are asked for both in words "
    "that they never saw (begin: when it began, finish: when it ended), without any time. “Times left out” is the "
    "share of training examples without the other time. Every start (end) of the same subject with the same object is "
    "right. “The other end” is the share of first answers that are the fact's end where its start was asked for, or "
    "its start where its end was, and that are wrong. The baseline frequency ranks times by how often they "
    "occur in facts that no question asks about, if there are any. "
    f"Differences compare with the same model with no times left out. {INTERVALS}"
)


def boundaries(inputs: AnalysisInput) -> Analysis | None:
    """Analyze recall of starts and ends by the share of times left out in training.

    Return None if no model was asked for starts and ends.
    """
    run = MemorizedRun(inputs)
    conditions = [
        memorized
        for memorized in run.models
        if BOUNDARY in memorized.tasks and memorized.condition.get("dynamic") is not None
    ]
    if not conditions or not run.metrics:
        return None
    differences = _compare_with_none(run, conditions)
    tables = [_score_table(run, conditions)]
    tables += [_difference_table(conditions, differences)] if differences else []
    tables += [table for table in (_conflict_table(run, conditions),) if table]
    sentences = [
        text for base, of_base in run.bases.items() for text in _describe_base(run, base, of_base, differences)
    ]
    return Analysis(
        "boundaries",
        "Starts and ends in other words",
        _EXPLANATION,
        tuple(tables),
        (_bar_figure(run, conditions),),
        tuple(sentences),
        training_findings(map(asdict, differences)),
    )


def _left_out_share(memorized: MemorizedModel) -> str:
    return f"{memorized.condition['dynamic']:g}%"


def _shown_groups() -> dict[str, tuple[str, dict[str, str]]]:
    """Return the task and the grouping columns of each group of scores to show, by its name."""
    groups: dict[str, tuple[str, dict[str, str]]] = {"stored": (STATEMENT, {}), "both": (BOUNDARY, {})}
    return groups | {name: (BOUNDARY, {"template": name}) for name in _TEMPLATES}


def _score_table(run: MemorizedRun, conditions: Sequence[MemorizedModel]) -> Table:
    rows: list[TableRow] = []
    for memorized in conditions:
        other_end = _other_end_shares(run, memorized)
        for name, (task, groups) in _shown_groups().items():
            cells = [run.cell(memorized.model, task, metric, **groups) for metric in run.metrics]
            if any(cell is not None for cell in cells):
                rows.append((memorized.base, _left_out_share(memorized), name, *cells, other_end.get(name)))
    first = conditions[0]
    for name, (task, groups) in _shown_groups().items():
        baseline_cells = [run.baseline(first, task, metric, **groups) for metric in run.metrics]
        if any(cell is not None for cell in baseline_cells):
            rows.append(("frequency", None, name, *baseline_cells, None))
    chances = (run.chance(first.model, BOUNDARY, metric) for metric in run.metrics)
    rows.append(("chance", None, "both", *chances, None))
    columns = (
        *(Column("Model"), Column("times left out"), Column("asked")),
        *(Column(LABELS[metric], "share") for metric in run.metrics),
        Column("the other end", "share"),
    )
    return Table("Stored statements, and starts and ends asked for in other words.", columns, tuple(rows))


def _compare_with_none(run: MemorizedRun, conditions: Sequence[MemorizedModel]) -> list[Comparison]:
    """Compare each model trained with times left out to the same base model trained with none left out."""
    differences = []
    for memorized in conditions:
        same_base = (candidate for candidate in conditions if candidate.base == memorized.base)
        twin = next((candidate for candidate in same_base if not candidate.condition["dynamic"]), None)
        if twin is None or twin is memorized:
            continue
        for task, metric in ((STATEMENT, "acc@1"), (BOUNDARY, "acc@1"), (BOUNDARY, "hit@10")):
            if metric not in run.metrics or task not in memorized.tasks & twin.tasks:
                continue
            pair = (memorized.model, twin.model)
            for name in ("stored",) if task == STATEMENT else ("both", *_TEMPLATES):
                only = ("template", partial(_has_name, name=name)) if name in _TEMPLATES else None
                differences.append((name, run.difference(pair, task, metric, name, metric, only=only)))
    return make_comparisons(differences)


def _has_name(template: str | None, name: str) -> bool:
    return template_part(template, 1) == name


def _difference_table(conditions: Sequence[MemorizedModel], differences: Sequence[Comparison]) -> Table:
    by_name = {memorized.model: memorized for memorized in conditions}
    rows = tuple(
        (
            by_name[paired.model].base,
            _left_out_share(by_name[paired.model]),
            paired.task,
            *difference_cells(paired),
        )
        for paired in differences
    )
    columns = (
        *(Column("Model"), Column("times left out"), Column("asked"), Column("Score")),
        *(Column("against none left out", "points"), Column("p", "p"), Column("n", "count")),
        Column("trainings", "count"),
    )
    return Table("Models with times left out, compared with none left out on the same statements.", columns, rows)


def _conflict_table(run: MemorizedRun, conditions: Sequence[MemorizedModel]) -> Table | None:
    """Tabulate scores of queries with one right start (end) and with several; None if no query was scored."""
    metrics = [metric for metric in ("acc@1", "hit@10") if metric in run.metrics]
    rows = []
    for memorized in conditions:
        cells = [
            run.cell(memorized.model, BOUNDARY, metric, conflict=kind) for metric in metrics for kind in ("no", "yes")
        ]
        if any(cell is not None for cell in cells):
            rows.append((memorized.base, _left_out_share(memorized), *cells))
    columns = (
        *(Column("Model"), Column("times left out")),
        *(Column(f"{LABELS[metric]}, {kind}", "share") for metric in metrics for kind in ("one time", "several")),
    )
    caption = "Starts and ends where there is one, and where there are several (held again)."
    return Table(caption, columns, tuple(rows), aside=True) if rows else None


def _other_end_shares(run: MemorizedRun, memorized: MemorizedModel) -> Mapping[str, Estimate]:
    """Compute how often a model answers with the end instead of the start, or with the start instead of the end.

    The keys are ``begin``, ``finish``, and ``both`` for all queries.
    """
    if STATEMENT not in memorized.tasks:
        return {}
    recalled = run.recalled(memorized.model, BOUNDARY)
    hits, has_other_end = _other_end_hits(recalled, run.recalled(memorized.model, STATEMENT))
    templates = recalled.template_parts(1)
    shares = {}
    for name in ("both", *_TEMPLATES):
        inside = (
            has_other_end
            if name == "both"
            else has_other_end & np.array([part == name for part in templates], dtype=bool)
        )
        chosen = np.flatnonzero(inside)
        if len(chosen):
            interval = recalled.clusters.take(chosen).interval(hits[chosen], run.seed_for("other", name))
            shares[name] = estimate(interval, len(chosen))
    return shares


def _other_end_hits(recalled: Recalled, stored: Recalled) -> tuple[FloatArray, NDArray[np.bool_]]:
    """Find queries for a start whose first answer is the fact's end, and the reverse ("the other end").

    Returns:
        Two arrays over the queries: whether the first answer is the other end and wrong (1.0 or 0.0), and whether the
        fact has another end that would be wrong.
    """
    stored_ends = zip(stored.facts, stored.template_parts(2), strict=True)
    ends = dict(zip(stored_ends, stored.column("target"), strict=True))
    opposite = {"start": "end", "end": "start"}
    hits, has_other_end = [], []
    asked = (recalled.facts, recalled.template_parts(2), recalled.column("answers"), recalled.ranked.to_pylist())
    for fact, mask, answers, ranked in zip(*asked, strict=True):
        other_end = ends.get((fact, opposite.get(mask, "")))
        wrong = other_end is not None and other_end not in answers
        has_other_end.append(wrong)
        hits.append(bool(wrong and ranked and ranked[0]["candidate"] == other_end))
    return np.array(hits, dtype=np.float64), np.array(has_other_end, dtype=bool)


def _bar_figure(run: MemorizedRun, conditions: Sequence[MemorizedModel]) -> Figure:
    metric = run.metrics[0]
    rows = tuple(
        {"panel": memorized.base, "x": name, "bar": _left_out_share(memorized), **vars(cell)}
        for memorized in conditions
        for name, (task, groups) in _shown_groups().items()
        if name != "both" and (cell := run.cell(memorized.model, task, metric, **groups)) is not None
    )
    caption = f"{LABELS[metric]} of stored statements, and of starts and ends asked for in other words."
    return Figure("bars", caption, rows, legend="times left out", percent=True, y=LABELS[metric])


def _describe_base(
    run: MemorizedRun, base: str, of_base: Sequence[MemorizedModel], differences: Sequence[Comparison]
) -> list[str]:
    sentences = []
    for memorized in of_base:
        cell = run.cell(memorized.model, BOUNDARY, "acc@1")
        if cell is None:
            continue
        text = (
            f"{quote_name(base)}, {_left_out_share(memorized)} of times left out: Acc@1 {format_score(cell)} for "
            "starts and ends in other words"
        )
        stored = run.cell(memorized.model, STATEMENT, "acc@1")
        text += "" if stored is None else f", {format_score(stored)} on stored statements"
        key = ("both", "acc@1", memorized.model)
        change = next((paired for paired in differences if (paired.task, paired.metric, paired.model) == key), None)
        if change is not None:
            text += f"; {describe_side(change, 'the same with none left out')}"
        if (lead := run.above_baseline(memorized, BOUNDARY, "acc@1")) is not None:
            text += f"; {describe_side(lead, 'the baseline frequency')}"
        sentences.append(f"{text}.")
    return sentences
