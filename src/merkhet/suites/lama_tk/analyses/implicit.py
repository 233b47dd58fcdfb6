"""Whether stored facts answer what they imply: a year inside a time, in the words stored and in others, and order."""

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
from merkhet.analysis.types import Analysis, Column, Estimate, Figure, Table, TableRow, quote_name
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


def implicit(given: MemoryInput) -> Analysis | None:
    """Scores of implied facts by wording, of order, and how well the one carries over; None where none was asked."""
    known = [one for one in given.models if one.tasks & {IMPLICIT, ORDER}]
    if not known or not given.metrics:
        return None
    transfer = _transfer(given, known)
    tables = [_scores(given, known)]
    tables += [_differences(known, transfer)] if transfer else []
    sentences = [text for one in known for text in _told(given, one, transfer)]
    return Analysis(
        "implicit",
        "Implicit knowledge",
        _EXPLANATION,
        tuple(tables),
        (_bars(given, known),),
        tuple(sentences),
    )


def _places(given: MemoryInput, one: MemorizedModel) -> list[tuple[str, str, dict[str, str]]]:
    """What is shown of a model: a name, the task and the group."""
    places: list[tuple[str, str, dict[str, str]]] = [("stored", STATEMENT, {})]
    places += [(name, IMPLICIT, {"template": name}) for name in (WITHIN, PARAPHRASE)]
    places += [(name, ORDER, {"template": name}) for name in _ORDERS]
    return [
        (name, task, groups)
        for name, task, groups in places
        if any(given.cell(one.model, task, metric, **groups) is not None for metric in given.metrics)
    ]


def _scores(given: MemoryInput, known: Sequence[MemorizedModel]) -> Table:
    rows: list[TableRow] = []
    for one in known:
        for name, task, groups in _places(given, one):
            cells = [given.cell(one.model, task, metric, **groups) for metric in given.metrics]
            counted = [given.baseline(one, task, metric, **groups) for metric in given.metrics]
            n = next((cell.n for cell in cells if cell is not None), None)
            chance = given.chance(one.model, task, given.metrics[0], **groups)
            ends = (counted[0], counted[-1])
            rows.append((one.base, name, n, *cells, *(None if end is None else end.value for end in ends), chance))
    first, last = LABELS[given.metrics[0]], LABELS[given.metrics[-1]]
    columns = (
        *(Column("Model"), Column("asked"), Column("n", "count")),
        *(Column(LABELS[metric], "share") for metric in given.metrics),
        *(Column(f"frequency {first}", "share"), Column(f"frequency {last}", "share")),
        Column(f"chance {first}", "share"),
    )
    caption = "Stored statements, years inside in stored words (within) and in others (paraphrase), and order."
    return Table(caption, columns, tuple(rows))


def _transfer(given: MemoryInput, known: Sequence[MemorizedModel]) -> list[Comparison]:
    """Each model's paraphrases against its stored words, on the same facts."""
    found = {}
    for one in known:
        if IMPLICIT not in one.tasks:
            continue
        statements, recalls = one.tables_by_task[IMPLICIT]
        for metric in given.metrics:
            pair = _paired_wordings(statements, recalls, metric, given.seed_for("wordings", metric))
            if pair is not None:
                found[IMPLICIT, metric, one.model, WITHIN] = pair
    return make_comparisons(found)


def _paired_wordings(
    statements: pa.Table, recalls: pa.Table, metric: str, seed: int
) -> tuple[PairedDifference, int] | None:
    """Paraphrase less within, over facts that were asked in both; the first statement of a fact in each."""
    recalls = align_recalls(statements, recalls)
    firsts = []
    for template in (PARAPHRASE, WITHIN):
        rows = np.flatnonzero(pc.equal(statements["template"], template).to_numpy())
        facts, places = np.unique(np.array(statements["fact_id"].take(pa.array(rows)).to_pylist(), dtype=np.str_), True)
        firsts.append((facts, rows[places]))
    shared, left, right = np.intersect1d(firsts[0][0], firsts[1][0], assume_unique=True, return_indices=True)
    if not len(shared):
        return None
    paraphrase, within = firsts[0][1][left], firsts[1][1][right]
    values = recall_values(recalls, metric)
    clusters = statement_clusters(statements).take(within)
    return clusters.difference(values[paraphrase], values[within], seed), len(shared)


def _differences(known: Sequence[MemorizedModel], transfer: Sequence[Comparison]) -> Table:
    bases = {one.model: one.base for one in known}
    rows = tuple(
        (bases[one.model], LABELS[one.metric], Estimate(one.difference, one.low, one.high, one.n), one.p, one.n)
        for one in transfer
    )
    columns = (
        *(Column("Model"), Column("Score"), Column("paraphrase against within", "points")),
        *(Column("p", "p"), Column("facts", "count")),
    )
    return Table("The same facts in words that were not stored against those that were.", columns, rows)


def _bars(given: MemoryInput, known: Sequence[MemorizedModel]) -> Figure:
    metric = given.metrics[0]
    rows = [
        {"x": name, "bar": one.base, **vars(cell)}
        for one in known
        for name, task, groups in _places(given, one)
        if (cell := given.cell(one.model, task, metric, **groups)) is not None
    ]
    rows += [
        {"x": name, "bar": "frequency", **vars(cell)}
        for name, task, groups in _places(given, known[0])
        if (cell := given.baseline(known[0], task, metric, **groups)) is not None
    ]
    return Figure("bars", f"{LABELS[metric]} by what is asked.", tuple(rows), percent=True, y=LABELS[metric])


def _told(given: MemoryInput, one: MemorizedModel, transfer: Sequence[Comparison]) -> list[str]:
    sentences = []
    change = next((two for two in transfer if (two.model, two.metric) == (one.model, "acc@1")), None)
    cells = [given.cell(one.model, IMPLICIT, "acc@1", template=name) for name in (WITHIN, PARAPHRASE)]
    if change is not None:
        sentences.append(
            f"{quote_name(one.base)}, a year inside: Acc@1 {format_score(cells[0])} in stored words; "
            f"{format_score(cells[1])} in words "
            f"that it never saw, {describe_side(change)} the stored ones on the same facts "
            f"({format_paired_difference(change)})."
        )
    for task, what in ((IMPLICIT, "on years inside"), (ORDER, "on order")):
        found = given.above_baseline(one, task, "acc@1") if "acc@1" in given.metrics else None
        if found is None or found[0].p != found[0].p:
            continue
        ahead, n = found
        cell = given.cell(one.model, task, "acc@1")
        sentences.append(
            f"{quote_name(one.base)} {what} ({n:,} questions): Acc@1 {format_score(cell)}, {describe_side(ahead)} the "
            "baseline frequency "
            f"({format_paired_difference(ahead)})."
        )
    return sentences
