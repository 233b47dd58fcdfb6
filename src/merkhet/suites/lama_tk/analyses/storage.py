"""Analysis of storage capacity: recall by number of stored facts, cost of conflict, and scores on unseen facts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace

from merkhet.analysis.comparison import Comparison
from merkhet.analysis.differences import is_significant
from merkhet.analysis.finding_types import Finding, Kind, Verdict
from merkhet.analysis.memorized_run import (
    INTERVALS,
    LABELS,
    STATEMENT,
    MemorizedModel,
    MemorizedRun,
    describe_side,
    difference_cells,
    drop_missing_baseline,
    format_score,
    make_comparisons,
)
from merkhet.analysis.training_comparison import is_measurable, training_finding
from merkhet.analysis.training_text import format_finding
from merkhet.analysis.types import Analysis, AnalysisInput, Column, Figure, Table, TableRow
from merkhet.core.text import join_names, percent, quote_name

UNSEEN = "unseen"
_TARGET_ACCURACY = 0.95
_MASKS = ("subject", "object", "start", "end", "time")
_EXPLANATION = (
    "Models are asked what they stored. Acc@k: a right answer is among the first k symbols; Hit@k: the masked symbol "
    "itself is, so that all right answers of a statement must rank high. “With” stores all statements of the facts; "
    "“without” leaves out those with several right answers and is asked only the others, which are easier. The cost of "
    "conflict is therefore measured on the statements with one right answer, which both stored. A model that stores "
    "with conflict has more statements to store and may have seen each less often; a difference combines these "
    "effects. “Static” facts are stored without their times. The baseline frequency ranks symbols by how often they "
    "are masked in statements of facts of the relation that no question asks about, if there are any; chance is a "
    "random order of all symbols. "
    f"{INTERVALS}"
)


def storage(inputs: AnalysisInput) -> Analysis | None:
    """Analyze recall by number of stored facts, the cost of conflicting statements, and scores on unseen facts.

    Return None if no model stored facts.
    """
    run = MemorizedRun(inputs)
    conditions = [memorized for memorized in run.models if memorized.facts is not None and STATEMENT in memorized.tasks]
    if not conditions or not run.metrics:
        return None
    tables = [_score_table(run, conditions)]
    costs = _conflict_costs(run, conditions)
    if costs:
        tables.append(_cost_table(run, conditions, costs))
    optional_tables = (_unseen_table, _conflict_table, _mask_table, _training_table)
    tables += [table for make_table in optional_tables if (table := make_table(run, conditions)) is not None]
    figures = [_curve_figure(run, conditions, metric) for metric in ("acc@1", "hit@10") if metric in run.metrics]
    sentences = [text for base in run.bases for text in _describe_base(run, base, conditions, costs)]
    findings = _cost_findings(run, conditions, costs)
    title = "Storage capacity"
    return Analysis("storage", title, _EXPLANATION, tuple(tables), tuple(figures), tuple(sentences), findings)


def _condition_kind(memorized: MemorizedModel) -> str:
    return f"{'with' if memorized.conflict else 'without'}{', static' if memorized.static else ''}"


def _head_cells(memorized: MemorizedModel) -> TableRow:
    return memorized.base, memorized.facts, _condition_kind(memorized)


_HEAD_COLUMNS = (Column("Model"), Column("facts", "count"), Column("conflict"))


def _score_table(run: MemorizedRun, conditions: Sequence[MemorizedModel]) -> Table:
    rows: list[TableRow] = []
    for memorized in conditions:
        cells = [run.cell(memorized.model, STATEMENT, metric) for metric in run.metrics]
        statements = memorized.record.get("statements") or next((cell.n for cell in cells if cell is not None), None)
        rows.append((*_head_cells(memorized), statements, *cells))
    columns = (
        *(*_HEAD_COLUMNS, Column("statements", "count")),
        *(Column(LABELS[metric], "share") for metric in run.metrics),
    )
    return Table("Recall of stored statements.", columns, tuple(rows))


def _training_table(run: MemorizedRun, conditions: Sequence[MemorizedModel]) -> Table:
    """Tabulate training effort, and the scores of the frequency baseline and of chance."""
    rows: list[TableRow] = []
    first_and_last = list(dict.fromkeys((run.metrics[0], run.metrics[-1])))
    for memorized in conditions:
        baseline_cells = (run.baseline(memorized, STATEMENT, metric) for metric in first_and_last)
        chances = (run.chance(memorized.model, STATEMENT, metric) for metric in first_and_last)
        effort = (memorized.record.get("epochs"), memorized.record.get("seconds"))
        rows.append((*_head_cells(memorized), *effort, *baseline_cells, *chances))
    columns = (
        *(*_HEAD_COLUMNS, Column("epochs", "count"), Column("seconds", "count")),
        *(Column(f"{name} {LABELS[metric]}", "share") for name in ("frequency", "chance") for metric in first_and_last),
    )
    caption = "Training effort, and scores of the baseline and of chance."
    return drop_missing_baseline(Table(caption, columns, tuple(rows), aside=True))


def _curve_figure(run: MemorizedRun, conditions: Sequence[MemorizedModel], metric: str) -> Figure:
    single_base = len({memorized.base for memorized in conditions}) == 1
    rows = []
    for memorized in sorted(
        conditions, key=lambda memorized: (memorized.base, _condition_kind(memorized), memorized.facts or 0)
    ):
        cell = run.cell(memorized.model, STATEMENT, metric)
        if cell is not None:
            kind_label = f"{_condition_kind(memorized)} conflict".replace(", static conflict", " conflict, static")
            line = kind_label if single_base else f"{memorized.base}, {_condition_kind(memorized)}"
            rows.append({"x": memorized.facts, "line": line, "model": memorized.model, **vars(cell)})
    several = "" if single_base else ", with conflicting statements and without"
    caption = f"{LABELS[metric]} on stored statements by the number of facts{several}"
    return Figure("lines", caption, tuple(rows), "facts stored", percent=True, log=True, zero=False, y=LABELS[metric])


def _conflict_costs(run: MemorizedRun, conditions: Sequence[MemorizedModel]) -> list[Comparison]:
    """Compare models that stored conflicting statements with models that did not, by model, facts and metric.

    Only statements with one right answer are scored. Where too few statements conflict, there is no p-value.
    """
    differences = []
    for memorized in conditions:
        twin = _find_twin(conditions, memorized)
        if twin is None:
            continue
        for metric in _distinct_metrics(run.metrics):
            pair, only = (memorized.model, twin.model), ("answers", lambda answers: len(answers) == 1)
            compared = run.difference(pair, STATEMENT, metric, "conflict", metric, only=only)
            if compared is not None and not is_measurable(*run.count_conflicts(memorized)):
                compared = replace(compared, p=None, p_raw=None, detectable=None)
            differences.append((STATEMENT, compared))
    return make_comparisons(differences)


def _cost_findings(
    run: MemorizedRun, conditions: Sequence[MemorizedModel], costs: Sequence[Comparison]
) -> tuple[Finding, ...]:
    """Make the findings of the costs of conflict, or of the design where too few statements conflict."""
    by_name = {memorized.model: memorized for memorized in conditions}
    findings: list[Finding] = []
    for cost in costs:
        counts = run.count_conflicts(by_name[cost.model])
        if is_measurable(*counts):
            findings.append(training_finding(asdict(cost)))
        elif not any(finding.model == cost.model and finding.kind is Kind.DESIGN for finding in findings):
            reason = _describe_few_conflicts(by_name[cost.model], *counts)
            findings.append(
                Finding(
                    Kind.DESIGN,
                    Verdict.NONE,
                    model=cost.model,
                    task=STATEMENT,
                    other=cost.other,
                    count=counts[0],
                    total=counts[1],
                    reason=reason,
                )
            )
    return tuple(findings)


def _describe_few_conflicts(memorized: MemorizedModel, count: int, of: int) -> str:
    verb = "conflicts: its" if count == 1 else "conflict: their"
    return (
        f"{quote_name(memorized.base)}, {memorized.facts or 0:,} facts: only {count:,} of {of:,} statements {verb} "
        "effect cannot be measured here."
    )


def _find_twin(conditions: Sequence[MemorizedModel], memorized: MemorizedModel) -> MemorizedModel | None:
    """Find the same base model with the same number of facts but without conflicting statements; None if missing."""
    key = (memorized.base, memorized.facts, memorized.static)
    without = (candidate for candidate in conditions if memorized.conflict and not candidate.conflict)
    return next((twin for twin in without if (twin.base, twin.facts, twin.static) == key), None)


def _distinct_metrics(metrics: Sequence[str]) -> list[str]:
    """Drop Hit@5 if Acc@5 is present, because the two are equal for statements with one right answer."""
    return [metric for metric in metrics if metric != "hit@5" or "acc@5" not in metrics]


def _cost_table(run: MemorizedRun, conditions: Sequence[MemorizedModel], costs: Sequence[Comparison]) -> Table:
    by_name = {memorized.model: memorized for memorized in conditions}
    rows = tuple(
        (
            by_name[paired.model].base,
            by_name[paired.model].facts,
            LABELS[paired.metric],
            *(run.cell(name, STATEMENT, paired.metric, conflict="no") for name in (paired.other, paired.model)),
            *difference_cells(paired)[1:],
        )
        for paired in costs
    )
    columns = (
        *(Column("Model"), Column("facts", "count"), Column("Score"), Column("stored without", "share")),
        *(Column("stored with", "share"), Column("difference", "points"), Column("p", "p"), Column("n", "count")),
        Column("trainings", "count"),
    )
    caption = (
        "Statements with one right answer, stored with and without conflicting ones beside them; with one right answer "
        "Acc@5 is Hit@5."
    )
    return Table(caption, columns, rows)


def _unseen_table(run: MemorizedRun, conditions: Sequence[MemorizedModel]) -> Table | None:
    rows: list[TableRow] = []
    metrics = [metric for metric in ("acc@1", "hit@10") if metric in run.metrics]
    for memorized in conditions:
        cells = [
            (
                run.cell(memorized.model, UNSEEN, metric),
                run.baseline(memorized, UNSEEN, metric),
                run.chance(memorized.model, UNSEEN, metric),
            )
            for metric in metrics
        ]
        if any(cell is not None for cell, _, _ in cells):
            n = next((cell.n for cell, _, _ in cells if cell is not None), None)
            rows.append((*_head_cells(memorized), n, *(value for triple in cells for value in triple)))
    columns = (
        *(*_HEAD_COLUMNS, Column("statements", "count")),
        *(
            Column(name, "share")
            for metric in metrics
            for name in (LABELS[metric], f"frequency {LABELS[metric]}", f"chance {LABELS[metric]}")
        ),
    )
    return drop_missing_baseline(Table("Facts that were not stored.", columns, tuple(rows))) if rows else None


def _conflict_table(run: MemorizedRun, conditions: Sequence[MemorizedModel]) -> Table | None:
    metrics = [metric for metric in ("acc@1", "hit@10") if metric in run.metrics]
    rows: list[TableRow] = []
    for memorized in conditions:
        cells = {
            (metric, kind): run.cell(memorized.model, STATEMENT, metric, conflict=kind)
            for metric in metrics
            for kind in ("no", "yes")
        }
        conflict_cells = [cell for (_, kind), cell in cells.items() if kind == "yes" and cell is not None]
        if conflict_cells:
            rows.append((*_head_cells(memorized), conflict_cells[0].n, *cells.values()))
    names = {"no": "one right answer", "yes": "several"}
    columns = (
        *(*_HEAD_COLUMNS, Column("with several", "count")),
        *(Column(f"{LABELS[metric]}, {name}", "share") for metric in metrics for name in names.values()),
    )
    caption = "Statements with one right answer and with several, where both were stored."
    return Table(caption, columns, tuple(rows)) if rows else None


def _mask_table(run: MemorizedRun, conditions: Sequence[MemorizedModel]) -> Table | None:
    metric = run.metrics[0]
    cells = {
        (memorized.model, mask): cell
        for memorized in conditions
        for mask in _MASKS
        if (cell := run.cell(memorized.model, STATEMENT, metric, mask=mask)) is not None
    }
    masks = [mask for mask in _MASKS if any(cell_mask == mask for _, cell_mask in cells)]
    rows = tuple(
        (*_head_cells(memorized), *(cells.get((memorized.model, mask)) for mask in masks)) for memorized in conditions
    )
    columns = (*_HEAD_COLUMNS, *(Column(mask, "share") for mask in masks))
    return Table(f"{LABELS[metric]} by what is masked.", columns, rows, aside=True) if masks else None


def _describe_base(
    run: MemorizedRun, base: str, conditions: Sequence[MemorizedModel], costs: Sequence[Comparison]
) -> list[str]:
    of_base = [memorized for memorized in conditions if memorized.base == base]
    sentences = []
    for kind in dict.fromkeys(_condition_kind(memorized) for memorized in of_base):
        sentences += _describe_capacity(
            run,
            sorted(
                (memorized for memorized in of_base if _condition_kind(memorized) == kind),
                key=lambda memorized: memorized.facts or 0,
            ),
        )
    sentences += _describe_cost(run, base, of_base, costs)
    unseen = [
        memorized for memorized in of_base if UNSEEN in memorized.tasks and memorized.conflict and not memorized.static
    ]
    unseen = unseen or [memorized for memorized in of_base if UNSEEN in memorized.tasks]
    if unseen:
        sentences += _describe_unseen(run, max(unseen, key=lambda memorized: memorized.facts or 0))
    return sentences


def _describe_capacity(run: MemorizedRun, by_size: Sequence[MemorizedModel]) -> list[str]:
    """Describe the score with the most stored facts, and the largest number of facts with sufficient accuracy."""
    metric = run.metrics[0]
    cells = {memorized.facts or 0: run.cell(memorized.model, STATEMENT, metric) for memorized in by_size}
    values = {facts: cell.value for facts, cell in cells.items() if cell is not None and cell.value is not None}
    if not values:
        return []
    largest, memorized = max(values), by_size[0]
    condition = f"{_condition_kind(memorized)} conflict" if not memorized.static else "without times"
    text = (
        f"{quote_name(memorized.base)}, {largest:,} facts {condition}: {LABELS[metric]} {format_score(cells[largest])} "
        "on stored statements"
    )
    if len(values) == 1 or metric != "acc@1":
        return [f"{text}."]
    sufficient = [facts for facts, value in sorted(values.items()) if value >= _TARGET_ACCURACY]
    if len(sufficient) == len(values):
        return [f"{text}; at least {percent(_TARGET_ACCURACY)} at every size that was tried."]
    if not sufficient:
        return [f"{text}; below {percent(_TARGET_ACCURACY)} at every size that was tried."]
    tried = join_names([f"{facts:,}" for facts in sorted(values)])
    return [
        f"{text}; of {tried} facts, {max(sufficient):,} is the largest number with at least "
        f"{percent(_TARGET_ACCURACY)}."
    ]


def _describe_cost(
    run: MemorizedRun, base: str, of_base: Sequence[MemorizedModel], costs: Sequence[Comparison]
) -> list[str]:
    """Describe the cost of conflict for the most facts; a verdict needs several trainings and enough conflicts."""
    by_name = {memorized.model: memorized for memorized in of_base}
    by_size = {
        by_name[cost.model].facts or 0: cost for cost in costs if cost.model in by_name and cost.metric == "acc@1"
    }
    if not by_size:
        return []
    largest = max(by_size)
    cost = by_size[largest]
    lead = f"{quote_name(base)}, {largest:,} facts: "
    counts = run.count_conflicts(by_name[cost.model])
    if not is_measurable(*counts):
        return [_describe_few_conflicts(by_name[cost.model], *counts)]
    by_size = {size: cost for size, cost in by_size.items() if is_measurable(*run.count_conflicts(by_name[cost.model]))}
    finding = training_finding(asdict(cost))
    numbers = format_finding(replace(finding, value=cost.difference, low=cost.low, high=cost.high))
    text = (
        f"{lead}on the {cost.n:,} statements with one right answer, storing the {counts[0]:,} conflicting ones too "
        f"makes a difference of {numbers} in Acc@1"
    )
    if finding.verdict is Verdict.NONE:
        return [f"{text}."]
    verdict = "it costs accuracy" if cost.difference < 0 else "it increases accuracy"
    if finding.verdict is Verdict.NO_DIFFERENCE:
        ruled_out = max(0.0, -(cost.low or 0.0))
        verdict = f"no cost is visible, and one of more than {100 * ruled_out:.1f} points is ruled out"
    lower = sum(cost.difference < 0 and is_significant(asdict(cost)) for cost in by_size.values())
    sizes = f" (a cost is visible at {lower} of {len(by_size)} sizes)" if len(by_size) > 1 else ""
    return [f"{text}: {verdict}{sizes}."]


def _describe_unseen(run: MemorizedRun, memorized: MemorizedModel) -> list[str]:
    lead = run.above_baseline(memorized, UNSEEN, "acc@1")
    cell, baseline_cell = run.cell(memorized.model, UNSEEN, "acc@1"), run.baseline(memorized, UNSEEN, "acc@1")
    if cell is None:
        return []
    if lead is None:
        return [f"{quote_name(memorized.model)}: of facts that were not stored, Acc@1 is {format_score(cell)}."]
    against = "" if baseline_cell is None else f" of {format_score(baseline_cell)}"
    return [
        f"{quote_name(memorized.model)}: of facts that were not stored, Acc@1 is {format_score(cell)}, "
        f"{describe_side(lead, f'the baseline frequency{against}')}."
    ]
