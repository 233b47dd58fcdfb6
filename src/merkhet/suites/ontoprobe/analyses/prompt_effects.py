"""Effects of prompts: soft and manual templates, number of masks, pooling, training losses, and learning curves."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, get_args

from merkhet.analysis.resampled_means import (
    Group,
    Key,
    average_draws,
    estimate_from_draws,
    pool_groups,
    resampled_means,
)
from merkhet.analysis.types import (
    Analysis,
    AnalysisInput,
    Estimate,
    Figure,
    Table,
    TableRow,
    make_columns,
)
from merkhet.core.text import counted, metric_label
from merkhet.suites.ontoprobe.analyses.premise_effects import CONTROL
from merkhet.suites.ontoprobe.analyses.task_scores import (
    METRICS,
    TASKS,
    TaskVariants,
    Variant,
    base_model,
    first_lines,
    ranked_variants,
    soft_loss,
    task_metrics,
)
from merkhet.suites.ontoprobe.options import RULES, Combination, Loss

MASKS, POOLINGS = ("multiple", "single"), ("mean", "max", "first")
_EXPLANATION = (
    "Comparisons of prompts and scoring methods. Means over tasks (or rules) and models are unweighted and include "
    "only the tasks and models that were asked in all compared ways; baselines are left out. Masks, pooling and loss "
    "are compared in the memorizing tasks, over all templates; MRR_a is over the tasks with several right answers to a "
    "question. In reasoning, “soft-manual” means soft templates with a manual conjunction (“Therefore ,”), over all "
    "premise settings but the control, by each model's first method. 95% intervals resample the facts of each task for "
    "all models and ways at once. Soft prompts are those of the first training: intervals do not cover the variation "
    "between trainings."
)


@dataclass(frozen=True)
class _Contrast:
    """Comparison of the levels of one prompting factor, such as the number of masks."""

    title: str
    variants: TaskVariants
    """Ids of the answered questions, by task and variant."""
    level_of: Callable[[Variant], str]
    """Function that returns the level of a variant, such as ``single``."""
    order: tuple[str, ...]
    """Levels in the order of the table's rows."""
    model_of: Callable[[str], str]
    """Function that maps the model of a variant to the model that its answers count for."""


def prompting(inputs: AnalysisInput) -> Analysis | None:
    """Compare templates, masks, pooling and losses, and show learning curves.

    Returns:
        The analysis, or None if there is neither a comparison nor a training record.
    """
    reasoning, memorized = _reasoning_variants(inputs), ranked_variants(inputs, TASKS)
    contrasts = (
        _Contrast("Reasoning, templates-conjunction", reasoning, _conjunction, get_args(Combination), base_model),
        _Contrast("Memorizing, masks", memorized, _masks, MASKS, str),
        _Contrast("Memorizing, pooling", memorized, _pooling, POOLINGS, str),
        _Contrast("Memorizing by soft prompts, loss", memorized, _loss, get_args(Loss), base_model),
    )
    tables: list[Table] = []
    figures: list[Figure] = []
    for contrast in contrasts:
        estimates, cells = _estimate_levels(inputs, contrast)
        if estimates:
            tables.append(_table(contrast.title, estimates, cells))
            bars = ({"x": metric, "bar": name, **asdict(cell)} for (metric, name), cell in estimates.items())
            figures.append(Figure("bars", f"{contrast.title}.", tuple(bars), percent=True))
    if inputs.training_records:
        tables.append(_training_table(inputs.training_records))
    figures += _learning_curves(inputs.training_records)
    if not tables:
        return None
    title = "Prompting: templates, masks, pooling and losses"
    return Analysis("prompting", title, _EXPLANATION, tuple(tables), tuple(figures))


def _reasoning_variants(inputs: AnalysisInput) -> TaskVariants:
    """Return the variants of reasoning questions with each model's first method, without control questions."""
    variants = ranked_variants(inputs, tuple(RULES))
    asked = [name for rule_variants in variants.values() for ids in rule_variants.values() for name in ids]
    lines = first_lines(inputs, asked)
    first_method_variants: TaskVariants = {}
    for rule, rule_variants in variants.items():
        for variant, ids in rule_variants.items():
            model = variant.line.model
            without_controls = [name for name in ids if inputs.premise_settings.get((model, name)) != CONTROL]
            if without_controls and lines[model] == variant.line:
                first_method_variants.setdefault(rule, {})[variant] = without_controls
    return first_method_variants


def _conjunction(variant: Variant) -> str:
    return variant.template.rpartition("/")[2]


def _masks(variant: Variant) -> str:
    return variant.line.method.partition("-")[0]


def _pooling(variant: Variant) -> str:
    return variant.line.method.rpartition("-")[2] if _masks(variant) in MASKS else ""


def _loss(variant: Variant) -> str:
    return soft_loss(variant.line.model) or ""


def _estimate_levels(inputs: AnalysisInput, contrast: _Contrast) -> tuple[dict[tuple[str, str], Estimate], int]:
    """Average each metric at each level over the pairs of task and model that have all levels.

    Returns:
        Means by metric and level, and the number of pairs.
    """
    groups: dict[tuple[str, str, str], list[tuple[Variant, list[str]]]] = defaultdict(list)
    for task, task_variants in contrast.variants.items():
        for variant, ids in task_variants.items():
            if variant.line.model not in inputs.baselines:
                groups[task, contrast.model_of(variant.line.model), contrast.level_of(variant)].append((variant, ids))
    levels = [level for level in contrast.order if any(key[2] == level for key in groups)]
    pairs = dict.fromkeys((task, model) for task, model, _ in groups)
    cells = [pair for pair in pairs if all((*pair, level) in groups for level in levels)]
    if len(levels) < 2 or not cells:
        return {}, 0
    metrics = {task: task_metrics(inputs, contrast.variants[task]) for task, _ in cells}
    groups_of_values: dict[Key, Group] = {}
    for task, model in cells:
        for level in levels:
            members = groups[task, model, level]
            clusters = [inputs.cluster_ids(ids) for _, ids in members]
            for metric in metrics[task]:
                values = [inputs.values(variant.line, ids, metric) for variant, ids in members]
                pooled = pool_groups(list(zip(values, clusters, strict=True)))
                groups_of_values[task, model, level, metric.name] = pooled
    draws = resampled_means(groups_of_values, seed=inputs.seed)
    estimates = {}
    for metric in METRICS:
        for level in levels:
            keys = [(task, model, level, metric.name) for task, model in cells if metric in metrics[task]]
            if keys:
                n = sum(len(groups_of_values[key][0]) for key in keys)
                mean = average_draws(draws[key] for key in keys)
                estimates[metric_label(metric.name), level] = estimate_from_draws(mean, n)
    return estimates, len(cells)


def _table(title: str, estimates: Mapping[tuple[str, str], Estimate], cells: int) -> Table:
    metrics, names = (list(dict.fromkeys(key[index] for key in estimates)) for index in (0, 1))
    rows = tuple((name, *(estimates.get((metric, name)) for metric in metrics)) for name in names)
    count = counted(cells, "pair of a task and a model", "pairs of a task and a model")
    return Table(f"{title}: means over {count}.", make_columns("Way", *(f"{name}:share" for name in metrics)), rows)


def _training_table(records: Sequence[Mapping[str, Any]]) -> Table:
    rows: list[TableRow] = []
    for record in records:
        epochs = list(record.get("epochs") or ())
        losses = [epoch["loss"] for epoch in epochs if epoch.get("loss") is not None]
        scores = [epoch["dev_mrr_a"] for epoch in epochs if epoch.get("dev_mrr_a") is not None]
        ends = (losses[0], losses[-1]) if losses else (None, None)
        head = (record.get("model"), record.get("task"), record.get("loss"), len(epochs))
        rows.append((*head, *ends, max(scores, default=None), record.get("kept_epoch")))
    columns = make_columns(
        *("Model", "Task", "Loss", "epochs:count", "loss at first:number", "loss at last:number"),
        *("best MRR_a on dev:share", "epoch kept:count"),
    )
    return Table("Training of soft prompts.", columns, tuple(rows), aside=True)


def _learning_curves(records: Sequence[Mapping[str, Any]]) -> Iterator[Figure]:
    """Plot the training loss by epoch for each model, and MRR_a on the dev questions if it was measured."""
    for model in dict.fromkeys(str(record.get("model")) for record in records):
        for column, title, share in (("loss", "loss", False), ("dev_mrr_a", "MRR_a on the dev questions", True)):
            rows = tuple(
                {"x": epoch_number, "line": str(record.get("task")), "value": epoch[column]}
                for record in records
                if str(record.get("model")) == model
                for epoch_number, epoch in enumerate(record.get("epochs") or (), 1)
                if epoch.get(column) is not None
            )
            if rows:
                caption = f"{model}: {title} by epoch of training."
                yield Figure("lines", caption, rows, "epoch", percent=share, y=title)
