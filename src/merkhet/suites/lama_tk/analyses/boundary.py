"""Whether stored times answer questions in other words, and what leaving out the other time while storing does."""

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
from merkhet.analysis.types import Analysis, Column, Estimate, Figure, Table, TableRow, estimate, quote_name
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


def boundaries(given: MemoryInput) -> Analysis | None:
    """Scores of starts and ends by the share of times left out; None where no such question was asked."""
    known = [one for one in given.models if BOUNDARY in one.tasks and one.condition.get("dynamic") is not None]
    if not known or not given.metrics:
        return None
    against = _against(given, known)
    tables = [_scores(given, known)]
    tables += [_differences(known, against)] if against else []
    tables += [table for table in (_by_conflict(given, known),) if table]
    sentences = [text for base, own in given.bases.items() for text in _told(given, base, own, against)]
    return Analysis(
        "boundaries",
        "Starts and ends in other words",
        _EXPLANATION,
        tuple(tables),
        (_bars(given, known),),
        tuple(sentences),
    )


def _share(one: MemorizedModel) -> str:
    return f"{one.condition['dynamic']:g}%"


def _places() -> dict[str, tuple[str, dict[str, str]]]:
    """What is shown: by its name, the task and the group."""
    own: dict[str, tuple[str, dict[str, str]]] = {"stored": (STATEMENT, {}), "both": (BOUNDARY, {})}
    return own | {name: (BOUNDARY, {"template": name}) for name in _TEMPLATES}


def _scores(given: MemoryInput, known: Sequence[MemorizedModel]) -> Table:
    rows: list[TableRow] = []
    for one in known:
        other = _other_end(given, one)
        for name, (task, groups) in _places().items():
            cells = [given.cell(one.model, task, metric, **groups) for metric in given.metrics]
            if any(cell is not None for cell in cells):
                rows.append((one.base, _share(one), name, *cells, other.get(name)))
    first = known[0]
    for name, (task, groups) in _places().items():
        counted = [given.baseline(first, task, metric, **groups) for metric in given.metrics]
        if any(cell is not None for cell in counted):
            rows.append(("frequency", None, name, *counted, None))
    chances = (given.chance(first.model, BOUNDARY, metric) for metric in given.metrics)
    rows.append(("chance", None, "both", *chances, None))
    columns = (
        *(Column("Model"), Column("times left out"), Column("asked")),
        *(Column(LABELS[metric], "share") for metric in given.metrics),
        Column("the other end", "share"),
    )
    return Table("Stored statements, and starts and ends asked for in other words.", columns, tuple(rows))


def _against(given: MemoryInput, known: Sequence[MemorizedModel]) -> list[Comparison]:
    """Every model with times left out against the same with none: on stored statements, begin and finish."""
    found = {}
    for one in known:
        twin = next((two for two in known if two.base == one.base and not two.condition["dynamic"]), None)
        if twin is None or twin is one:
            continue
        for task, metric in ((STATEMENT, "acc@1"), (BOUNDARY, "acc@1"), (BOUNDARY, "hit@10")):
            if metric not in given.metrics or task not in one.tasks & twin.tasks:
                continue
            statements, recalls = one.tables_by_task[task]
            others = twin.tables_by_task[task][1]
            parts = {"stored": statements} if task == STATEMENT else {"both": statements, **_split(statements)}
            for name, part in parts.items():
                pair = paired_recall_difference(part, recalls, others, metric, given.seed_for(name, metric))
                found[name, metric, one.model, twin.model] = pair
    return make_comparisons(found)


def _split(statements: pa.Table) -> dict[str, pa.Table]:
    return {name: statements.filter(pc.equal(statements["template"], name)) for name in _TEMPLATES}


def _differences(known: Sequence[MemorizedModel], against: Sequence[Comparison]) -> Table:
    by_name = {one.model: one for one in known}
    rows = tuple(
        (
            by_name[one.model].base,
            _share(by_name[one.model]),
            one.task,
            LABELS[one.metric],
            Estimate(one.difference, one.low, one.high, one.n),
            one.p,
            one.n,
        )
        for one in against
    )
    columns = (
        *(Column("Model"), Column("times left out"), Column("asked"), Column("Score")),
        *(Column("against none left out", "points"), Column("p", "p"), Column("n", "count")),
    )
    return Table("Times left out against none left out, on the same statements.", columns, rows)


def _by_conflict(given: MemoryInput, known: Sequence[MemorizedModel]) -> Table | None:
    """One start (end) or several of the same subject and object: with no time told the latter cannot be told apart."""
    metrics = [metric for metric in ("acc@1", "hit@10") if metric in given.metrics]
    rows = []
    for one in known:
        cells = [given.cell(one.model, BOUNDARY, metric, conflict=kind) for metric in metrics for kind in ("no", "yes")]
        if any(cell is not None for cell in cells):
            rows.append((one.base, _share(one), *cells))
    columns = (
        *(Column("Model"), Column("times left out")),
        *(Column(f"{LABELS[metric]}, {kind}", "share") for metric in metrics for kind in ("one time", "several")),
    )
    caption = "Starts and ends of what has one, and of what has several (held again)."
    return Table(caption, columns, tuple(rows), aside=True) if rows else None


def _other_end(given: MemoryInput, one: MemorizedModel) -> Mapping[str, Estimate]:
    """How often the first answer is the fact's other end, by template and for both."""
    if STATEMENT not in one.tasks:
        return {}
    statements, recalls = one.tables_by_task[BOUNDARY]
    stored = one.tables_by_task[STATEMENT][0]
    if not statements.num_rows:
        return {}
    values, asked = _answered_by_the_other(statements, align_recalls(statements, recalls), stored)
    clusters = statement_clusters(statements)
    found = {}
    for name in ("both", *_TEMPLATES):
        inside = np.ones(len(asked), bool) if name == "both" else pc.equal(statements["template"], name).to_numpy()
        chosen = np.flatnonzero(asked & inside)
        if len(chosen):
            interval = clusters.take(chosen).interval(values[chosen], given.seed_for("other", name))
            found[name] = estimate(interval, len(chosen))
    return found


def _answered_by_the_other(
    statements: pa.Table, recalls: pa.Table, stored: pa.Table
) -> tuple[FloatArray, np.ndarray[tuple[int], np.dtype[np.bool_]]]:
    """Whether the first answer is the other end of the fact and wrong; and whether such an end is known and wrong."""
    firsts = top_symbols(recalls).to_pylist()
    ends = {
        (fact, mask): target
        for fact, mask, target in zip(
            *(stored[name].to_pylist() for name in ("fact_id", "mask", "target")), strict=True
        )
    }
    opposite = {"start": "end", "end": "start"}
    columns = (statements[name].to_pylist() for name in ("fact_id", "mask", "answers"))
    others = [
        None if (end := ends.get((fact, opposite.get(mask)))) in answers else end
        for fact, mask, answers in zip(*columns, strict=True)
    ]
    known = np.array([end is not None for end in others])
    hit = [end is not None and end == first for end, first in zip(others, firsts, strict=True)]
    return np.array(hit, dtype=np.float64), known


def _bars(given: MemoryInput, known: Sequence[MemorizedModel]) -> Figure:
    metric = given.metrics[0]
    rows = tuple(
        {"panel": one.base, "x": name, "bar": _share(one), **vars(cell)}
        for one in known
        for name, (task, groups) in _places().items()
        if name != "both" and (cell := given.cell(one.model, task, metric, **groups)) is not None
    )
    caption = f"{LABELS[metric]} of stored statements, and of starts and ends asked for in other words."
    return Figure("bars", caption, rows, legend="times left out", percent=True, y=LABELS[metric])


def _told(given: MemoryInput, base: str, own: Sequence[MemorizedModel], against: Sequence[Comparison]) -> list[str]:
    sentences = []
    for one in own:
        cell = given.cell(one.model, BOUNDARY, "acc@1")
        if cell is None:
            continue
        text = (
            f"{quote_name(base)}, {_share(one)} of times left out: Acc@1 {format_score(cell)} for starts and ends in "
            "other words"
        )
        stored = given.cell(one.model, STATEMENT, "acc@1")
        text += "" if stored is None else f", {format_score(stored)} on what was stored"
        change = next(
            (two for two in against if (two.task, two.metric, two.model) == ("both", "acc@1", one.model)), None
        )
        if change is not None:
            text += f"; {describe_side(change)} the same with none left out ({format_paired_difference(change)})"
        counted = given.above_baseline(one, BOUNDARY, "acc@1")
        if counted is not None and counted[0].p == counted[0].p:
            ahead, _ = counted
            text += f"; {describe_side(ahead)} the baseline frequency ({format_paired_difference(ahead)})"
        sentences.append(f"{text}.")
    return sentences
