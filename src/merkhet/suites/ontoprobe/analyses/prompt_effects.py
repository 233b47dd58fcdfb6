"""What the wording does: soft and manual prompts, one mask or several, pooling, training losses, and how they learn."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from merkhet.analysis.resampled_means import (
    Group,
    Key,
    average_draws,
    estimate_from_draws,
    pool_groups,
    resampled_means,
)
from merkhet.analysis.types import Analysis, AnalysisInput, Column, Estimate, Figure, Table, TableRow, metric_label
from merkhet.suites.ontoprobe.analyses.premise_effects import CONTROL, RULES
from merkhet.suites.ontoprobe.analyses.task_scores import (
    METRICS,
    TASKS,
    Way,
    base_model,
    first_lines,
    metrics_of,
    ranked_ways,
    soft_loss,
)

MASKS, POOLINGS, LOSSES = ("multiple", "single"), ("mean", "max", "first"), ("bce", "nll")
CONJUNCTIONS = ("manual-manual", "soft-manual", "manual-soft", "soft-soft")
_EXPLANATION = (
    "Ways of asking against each other: unweighted means over tasks (or rules) and models, of those tasks and models "
    "only that were asked in all the ways compared; baselines are left out. Masks, pooling and loss are compared in "
    "the memorizing tasks, over all templates; MRR_a is over the tasks with several right answers to a question. In "
    "reasoning “soft-manual” stands for soft templates and a manual conjunction (“Therefore ,”), over all ways to give "
    "the premises but the control, by each model's first method. 95% intervals resample the facts of each task for all "
    "models and ways at once."
)
Ways = dict[str, dict[Way, list[str]]]


@dataclass(frozen=True)
class _Contrast:
    """What is set against each other: which way an answer belongs to, and which model, in which tasks."""

    title: str
    asked: Ways
    way_of: Callable[[Way], str]
    order: tuple[str, ...]
    model_of: Callable[[str], str]


def prompting(given: AnalysisInput) -> Analysis | None:
    """Templates, masks, pooling and losses compared, and curves of what was learned; None where there is neither."""
    memorized = ranked_ways(given, TASKS)
    contrasts = (
        _Contrast("Reasoning, templates-conjunction", _reasoned(given), _conjunction, CONJUNCTIONS, base_model),
        _Contrast("Memorizing, masks", memorized, _masks, MASKS, str),
        _Contrast("Memorizing, pooling", memorized, _pooling, POOLINGS, str),
        _Contrast("Memorizing by soft prompts, loss", memorized, _loss, LOSSES, base_model),
    )
    tables: list[Table] = []
    figures: list[Figure] = []
    for contrast in contrasts:
        found, cells = _compared(given, contrast)
        if found:
            tables.append(_table(contrast.title, found, cells))
            figures.append(_figure(contrast.title, found))
    tables += _learned_table(given.training_records)
    figures += _curves(given.training_records)
    if not tables:
        return None
    title = "Prompting: templates, masks, pooling and losses"
    return Analysis("prompting", title, _EXPLANATION, tuple(tables), tuple(figures))


def _reasoned(given: AnalysisInput) -> Ways:
    """Reasoning questions without the control, by each model's first method."""
    ways = ranked_ways(given, RULES)
    lines = first_lines(given, [name for own in ways.values() for ids in own.values() for name in ids])
    kept: Ways = {}
    for rule, own in ways.items():
        for way, ids in own.items():
            model = way.line.model
            rest = [name for name in ids if given.premise_settings.get((model, name)) != CONTROL]
            if rest and lines[model] == way.line:
                kept.setdefault(rule, {})[way] = rest
    return kept


def _conjunction(way: Way) -> str:
    return way.template.rpartition("/")[2]


def _masks(way: Way) -> str:
    return way.line.method.partition("-")[0]


def _pooling(way: Way) -> str:
    return way.line.method.rpartition("-")[2] if _masks(way) in MASKS else ""


def _loss(way: Way) -> str:
    return soft_loss(way.line.model) or ""


def _compared(given: AnalysisInput, contrast: _Contrast) -> tuple[dict[tuple[str, str], Estimate], int]:
    """Of each metric and way the mean over the tasks of models that have all ways, and how many these are."""
    groups: dict[tuple[str, str, str], list[tuple[Way, list[str]]]] = defaultdict(list)
    for task, own in contrast.asked.items():
        for way, ids in own.items():
            if way.line.model not in given.baselines:
                groups[task, contrast.model_of(way.line.model), contrast.way_of(way)].append((way, ids))
    names = [name for name in contrast.order if any(key[2] == name for key in groups)]
    pairs = dict.fromkeys((task, model) for task, model, _ in groups)
    cells = [pair for pair in pairs if all((*pair, name) in groups for name in names)]
    if len(names) < 2 or not cells:
        return {}, 0
    shown = {task: metrics_of(given, contrast.asked[task]) for task, _ in cells}
    parts: dict[Key, Group] = {}
    for task, model in cells:
        for name in names:
            members = groups[task, model, name]
            clusters = [given.cluster_ids(ids) for _, ids in members]
            for metric in shown[task]:
                values = [given.values(way.line, ids, metric) for way, ids in members]
                parts[task, model, name, metric.name] = pool_groups(list(zip(values, clusters, strict=True)))
    draws = resampled_means(parts, seed=given.seed)
    found = {}
    for metric in METRICS:
        for name in names:
            inside = [(task, model, name, metric.name) for task, model in cells if metric in shown[task]]
            if inside:
                n = sum(len(parts[key][0]) for key in inside)
                found[metric_label(metric), name] = estimate_from_draws(average_draws(draws[key] for key in inside), n)
    return found, len(cells)


def _table(title: str, found: Mapping[tuple[str, str], Estimate], cells: int) -> Table:
    metrics, names = (list(dict.fromkeys(key[place] for key in found)) for place in (0, 1))
    columns = (Column("Way"), *(Column(metric, "share") for metric in metrics))
    rows = tuple((name, *(found.get((metric, name)) for metric in metrics)) for name in names)
    over = "1 pair of a task and a model" if cells == 1 else f"{cells} pairs of a task and a model"
    return Table(f"{title}: means over {over}.", columns, rows)


def _figure(title: str, found: Mapping[tuple[str, str], Estimate]) -> Figure:
    rows = tuple(
        {"x": metric, "bar": name, "value": cell.value, "low": cell.low, "high": cell.high, "n": cell.n}
        for (metric, name), cell in found.items()
    )
    return Figure("bars", f"{title}.", rows, percent=True)


def _learned_table(learned: Sequence[Mapping[str, Any]]) -> list[Table]:
    rows: list[TableRow] = []
    for one in learned:
        epochs = list(one.get("epochs") or ())
        losses = [epoch["loss"] for epoch in epochs if epoch.get("loss") is not None]
        scores = [epoch["dev_mrr_a"] for epoch in epochs if epoch.get("dev_mrr_a") is not None]
        ends = (losses[0], losses[-1]) if losses else (None, None)
        head = (one.get("model"), one.get("task"), one.get("loss"), len(epochs))
        rows.append((*head, *ends, max(scores, default=None), one.get("kept_epoch")))
    if not rows:
        return []
    columns = (
        *(Column("Model"), Column("Task"), Column("Loss"), Column("epochs", "count")),
        *(Column("loss at first", "number"), Column("loss at last", "number")),
        *(Column("best MRR_a on dev", "share"), Column("epoch kept", "count")),
    )
    return [Table("What was learned.", columns, tuple(rows), aside=True)]


def _curves(learned: Sequence[Mapping[str, Any]]) -> list[Figure]:
    """For each model the loss of each task by epoch, and MRR_a on the dev questions where it was measured."""
    figures = []
    for model in dict.fromkeys(str(one.get("model")) for one in learned):
        for column, title, share in (("loss", "loss", False), ("dev_mrr_a", "MRR_a on the dev questions", True)):
            rows = tuple(
                {"x": place, "line": str(one.get("task")), "value": epoch[column]}
                for one in learned
                if str(one.get("model")) == model
                for place, epoch in enumerate(one.get("epochs") or (), 1)
                if epoch.get(column) is not None
            )
            if rows:
                figures.append(
                    Figure("lines", f"{model}: {title} while learning.", rows, "epoch", percent=share, y=title)
                )
    return figures
