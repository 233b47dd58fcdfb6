"""How much a model can store: recall by the number of facts, with conflicting statements and without, and unseen."""

from __future__ import annotations

from collections.abc import Sequence

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
from merkhet.analysis.types import Analysis, Column, Estimate, Figure, Table, TableRow, join_names, percent, quote_name
from merkhet.metrics.bootstrap import PairedDifference
from merkhet.metrics.recall_scores import paired_recall_differences

UNSEEN = "unseen"
_ENOUGH = 0.95
_MASKS = ("subject", "object", "start", "end", "time")
_EXPLANATION = (
    "Models are asked what they stored. Acc@k: a right answer is among the first k symbols; Hit@k: the very one that "
    "was masked is, so that of a statement with several right answers all must stand high. “With” stores all "
    "statements of the facts; “without” leaves out those with several right answers, and is asked the others only: "
    "its scores over all statements are those of easier ones. What conflict costs is therefore told on the statements "
    "with one right answer, which both stored. Who stores with conflict also has more statements to store, and may "
    "have seen each as often or less often: a difference is of all that together. “Static” facts are stored without "
    "their times. The baseline frequency gives what is masked most often in the stored statements of a relation; "
    f"chance is a random order of all symbols. {INTERVALS}"
)


def storage(given: MemoryInput) -> Analysis | None:
    """The curve of storage, what conflict costs, and what is said of unseen facts; None where nothing was stored."""
    known = [one for one in given.models if one.facts is not None and STATEMENT in one.tasks]
    if not known or not given.metrics:
        return None
    tables = [_every(given, known)]
    cost = _cost(given, known)
    if cost:
        tables.append(_cost_table(given, known, cost))
    more = (_unseen, _by_conflict, _by_mask, _training)
    tables += [table for make in more if (table := make(given, known)) is not None]
    figures = [_curve(given, known, metric) for metric in ("acc@1", "hit@10") if metric in given.metrics]
    sentences = [text for base in given.bases for text in _told(given, base, known, cost)]
    return Analysis("storage", "Storage capacity", _EXPLANATION, tuple(tables), tuple(figures), tuple(sentences))


def _kind(one: MemorizedModel) -> str:
    return f"{'with' if one.conflict else 'without'}{', static' if one.static else ''}"


def _head(one: MemorizedModel) -> TableRow:
    return one.base, one.facts, _kind(one)


_HEAD = (Column("Model"), Column("facts", "count"), Column("conflict"))


def _every(given: MemoryInput, known: Sequence[MemorizedModel]) -> Table:
    rows: list[TableRow] = []
    for one in known:
        cells = [given.cell(one.model, STATEMENT, metric) for metric in given.metrics]
        statements = one.record.get("statements") or next((cell.n for cell in cells if cell is not None), None)
        rows.append((*_head(one), statements, *cells))
    columns = (
        *(*_HEAD, Column("statements", "count")),
        *(Column(LABELS[metric], "share") for metric in given.metrics),
    )
    return Table("What was stored, asked again.", columns, tuple(rows))


def _training(given: MemoryInput, known: Sequence[MemorizedModel]) -> Table:
    """What storing took, and what would be right without it."""
    rows: list[TableRow] = []
    ends = list(dict.fromkeys((given.metrics[0], given.metrics[-1])))
    for one in known:
        counted = (given.baseline(one, STATEMENT, metric) for metric in ends)
        chances = (given.chance(one.model, STATEMENT, metric) for metric in ends)
        rows.append((*_head(one), one.record.get("epochs"), one.record.get("seconds"), *counted, *chances))
    columns = (
        *(*_HEAD, Column("epochs", "count"), Column("seconds", "count")),
        *(Column(f"{name} {LABELS[metric]}", "share") for name in ("frequency", "chance") for metric in ends),
    )
    return Table("What storing took, and what the baseline and guessing have.", columns, tuple(rows), aside=True)


def _curve(given: MemoryInput, known: Sequence[MemorizedModel], metric: str) -> Figure:
    alone = len({one.base for one in known}) == 1
    rows = []
    for one in sorted(known, key=lambda one: (one.base, _kind(one), one.facts or 0)):
        cell = given.cell(one.model, STATEMENT, metric)
        if cell is not None:
            own = f"{_kind(one)} conflict".replace(", static conflict", " conflict, static")
            line = own if alone else f"{one.base}, {_kind(one)}"
            rows.append({"x": one.facts, "line": line, "model": one.model, **vars(cell)})
    several = "" if alone else ", with conflicting statements and without"
    caption = f"{LABELS[metric]} on stored statements by the number of facts{several}"
    return Figure("lines", caption, tuple(rows), "facts stored", percent=True, log=True, zero=False, y=LABELS[metric])


def _cost(given: MemoryInput, known: Sequence[MemorizedModel]) -> list[Comparison]:
    """What storing conflicting statements too costs those with one right answer, by model, size and metric."""
    found: dict[tuple[str, str, str, str], tuple[PairedDifference, int]] = {}
    for one in known:
        twin = _twin(known, one)
        if twin is None:
            continue
        statements, recalls = one.tables_by_task[STATEMENT]
        statements = statements.filter(pc.invert(statements["conflict"]))
        others = twin.tables_by_task[STATEMENT][1]
        seed = given.seed_for("conflict")
        pairs, n = paired_recall_differences(statements, recalls, others, _apart(given.metrics), seed)
        found |= {(STATEMENT, metric, one.model, twin.model): (pair, n) for metric, pair in pairs.items()}
    return make_comparisons(found)


def _twin(known: Sequence[MemorizedModel], one: MemorizedModel) -> MemorizedModel | None:
    """The same model with as many facts that left conflicting statements out."""
    if not one.conflict:
        return None
    same = (one.base, one.facts, one.static)
    return next((two for two in known if not two.conflict and (two.base, two.facts, two.static) == same), None)


def _apart(metrics: Sequence[str]) -> list[str]:
    """With one right answer Acc@k is Hit@k: one of the two is enough."""
    return [metric for metric in metrics if metric != "hit@5" or "acc@5" not in metrics]


def _cost_table(given: MemoryInput, known: Sequence[MemorizedModel], cost: Sequence[Comparison]) -> Table:
    by_name = {one.model: one for one in known}
    rows = tuple(
        (
            by_name[one.model].base,
            by_name[one.model].facts,
            LABELS[one.metric],
            *(given.cell(name, STATEMENT, one.metric, conflict="no") for name in (one.other, one.model)),
            Estimate(one.difference, one.low, one.high, one.n),
            one.p,
            one.n,
        )
        for one in cost
    )
    columns = (
        *(Column("Model"), Column("facts", "count"), Column("Score"), Column("stored without", "share")),
        *(Column("stored with", "share"), Column("difference", "points"), Column("p", "p"), Column("n", "count")),
    )
    caption = (
        "Statements with one right answer, stored with and without conflicting ones beside them; with one right answer "
        "Acc@5 is Hit@5."
    )
    return Table(caption, columns, rows)


def _unseen(given: MemoryInput, known: Sequence[MemorizedModel]) -> Table | None:
    rows: list[TableRow] = []
    metrics = [metric for metric in ("acc@1", "hit@10") if metric in given.metrics]
    for one in known:
        cells = [
            (
                given.cell(one.model, UNSEEN, metric),
                given.baseline(one, UNSEEN, metric),
                given.chance(one.model, UNSEEN, metric),
            )
            for metric in metrics
        ]
        if any(cell is not None for cell, _, _ in cells):
            n = next((cell.n for cell, _, _ in cells if cell is not None), None)
            rows.append((*_head(one), n, *(value for triple in cells for value in triple)))
    columns = (
        *(*_HEAD, Column("statements", "count")),
        *(
            Column(name, "share")
            for metric in metrics
            for name in (LABELS[metric], f"frequency {LABELS[metric]}", f"chance {LABELS[metric]}")
        ),
    )
    return Table("Facts that were not stored.", columns, tuple(rows)) if rows else None


def _by_conflict(given: MemoryInput, known: Sequence[MemorizedModel]) -> Table | None:
    metrics = [metric for metric in ("acc@1", "hit@10") if metric in given.metrics]
    rows: list[TableRow] = []
    for one in known:
        cells = {
            (metric, kind): given.cell(one.model, STATEMENT, metric, conflict=kind)
            for metric in metrics
            for kind in ("no", "yes")
        }
        several = [cell for (_, kind), cell in cells.items() if kind == "yes" and cell is not None]
        if several:
            rows.append((*_head(one), several[0].n, *cells.values()))
    names = {"no": "one right answer", "yes": "several"}
    columns = (
        *(*_HEAD, Column("with several", "count")),
        *(Column(f"{LABELS[metric]}, {name}", "share") for metric in metrics for name in names.values()),
    )
    caption = "Statements with one right answer and with several, where both were stored."
    return Table(caption, columns, tuple(rows)) if rows else None


def _by_mask(given: MemoryInput, known: Sequence[MemorizedModel]) -> Table | None:
    metric = given.metrics[0]
    cells = {
        (one.model, mask): cell
        for one in known
        for mask in _MASKS
        if (cell := given.cell(one.model, STATEMENT, metric, mask=mask)) is not None
    }
    masks = [mask for mask in _MASKS if any(own == mask for _, own in cells)]
    rows = tuple((*_head(one), *(cells.get((one.model, mask)) for mask in masks)) for one in known)
    columns = (*_HEAD, *(Column(mask, "share") for mask in masks))
    return Table(f"{LABELS[metric]} by what is masked.", columns, rows, aside=True) if masks else None


def _told(given: MemoryInput, base: str, known: Sequence[MemorizedModel], cost: Sequence[Comparison]) -> list[str]:
    own = [one for one in known if one.base == base]
    sentences = []
    for kind in dict.fromkeys(_kind(one) for one in own):
        sentences += _capacity(
            given, sorted((one for one in own if _kind(one) == kind), key=lambda one: one.facts or 0)
        )
    sentences += _cost_told(base, own, cost)
    unseen = [one for one in own if UNSEEN in one.tasks and one.conflict and not one.static]
    unseen = unseen or [one for one in own if UNSEEN in one.tasks]
    if unseen:
        sentences += _unseen_told(given, max(unseen, key=lambda one: one.facts or 0))
    return sentences


def _capacity(given: MemoryInput, line: Sequence[MemorizedModel]) -> list[str]:
    """What the largest size came to, and the most facts of which enough were kept."""
    metric = given.metrics[0]
    cells = {one.facts or 0: given.cell(one.model, STATEMENT, metric) for one in line}
    values = {facts: cell.value for facts, cell in cells.items() if cell is not None and cell.value is not None}
    if not values:
        return []
    most, one = max(values), line[0]
    what = f"{_kind(one)} conflict" if not one.static else "without times"
    text = (
        f"{quote_name(one.base)}, {most:,} facts {what}: {LABELS[metric]} {format_score(cells[most])} on what was "
        "stored"
    )
    if len(values) == 1 or metric != "acc@1":
        return [f"{text}."]
    kept = [facts for facts, value in sorted(values.items()) if value >= _ENOUGH]
    if len(kept) == len(values):
        return [f"{text}; at least {percent(_ENOUGH)} at every size that was tried."]
    if not kept:
        return [f"{text}; below {percent(_ENOUGH)} at every size that was tried."]
    tried = join_names([f"{facts:,}" for facts in sorted(values)])
    return [f"{text}; {max(kept):,} is the most of {tried} facts at which it is at least {percent(_ENOUGH)}."]


def _cost_told(base: str, own: Sequence[MemorizedModel], cost: Sequence[Comparison]) -> list[str]:
    by_name = {one.model: one for one in own}
    found = {by_name[one.model].facts or 0: one for one in cost if one.model in by_name and one.metric == "acc@1"}
    if not found:
        return []
    most = max(found)
    at = found[most]
    lead = (
        f"{quote_name(base)}, {most:,} facts: on the {at.n:,} statements with one right answer, storing the "
        "conflicting ones "
        f"too makes a difference of {format_paired_difference(at)} in Acc@1"
    )
    if at.p >= 0.05:
        reach = max(0.0, -at.low)
        verdict = f"no cost is visible, and one of more than {100 * reach:.1f} points is ruled out"
    else:
        verdict = "it costs accuracy" if at.difference < 0 else "it costs no accuracy but adds to it"
    lower = sum(one.difference < 0 and one.p < 0.05 for one in found.values())
    sizes = f" (a cost is visible at {lower} of {len(found)} sizes)" if len(found) > 1 else ""
    return [f"{lead}: {verdict}{sizes}."]


def _unseen_told(given: MemoryInput, one: MemorizedModel) -> list[str]:
    found = given.above_baseline(one, UNSEEN, "acc@1")
    cell, counted = given.cell(one.model, UNSEEN, "acc@1"), given.baseline(one, UNSEEN, "acc@1")
    if found is None or cell is None or found[0].p != found[0].p:
        return []
    ahead, _ = found
    against = "" if counted is None else f" ({format_score(counted)})"
    return [
        f"{quote_name(one.model)}: of facts that were not stored, Acc@1 is {format_score(cell)}, "
        f"{describe_side(ahead)} the baseline "
        f"frequency{against}: {format_paired_difference(ahead)}."
    ]
