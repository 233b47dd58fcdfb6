"""Choice of a run's headline scores from its plan, its questions and its scores."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple

import pyarrow as pa

from merkhet.engine.suite_card import HeadlineScore
from merkhet.reports.scoreboard import overall_rows

ACCURACY, EXACT = "accuracy", "exact"
ANSWER = "answer"
CHOOSERS = frozenset({"choose", "judge"})
"""Probes that pick one choice and give no full ranking."""
RANK_METRICS = frozenset({"mrr", "mrr_a", "mean-rank", "optimistic-rank", "pessimistic-rank", "rank-index"})
_CUT_OFFS = ("r@", "p@", "acc@", "hit@")
_REPLY_METRICS = frozenset({"no-answer", "refused"})


@dataclass(frozen=True)
class HeadlinePlan:
    """What a plan knows about the headline before questions are asked."""

    preferred: tuple[HeadlineScore, ...]
    """Headline scores of the suite, with metrics that the study computes."""
    metrics: tuple[str, ...] = ()
    """Metrics that the study computes, in order."""
    suite_metric: str | None = None
    """Metric of all headline scores of the suite, if it has one, for tasks of the suite outside its headline."""
    named: tuple[str, ...] = ()
    """Tasks that the study names; all tasks if empty."""
    own_tasks: bool = False
    """Whether tasks that the suite does not know have headline scores too: the questions are not the suite's."""
    known: tuple[str, ...] = ()
    """Tasks of the suite."""
    baselines: tuple[str, ...] = ()


class AskedTask(NamedTuple):
    """A task of the questions of a run."""

    name: str
    own_choices: bool
    """Whether every question of the task shows choices of its own."""


def asked_tasks(questions: pa.Table) -> list[AskedTask]:
    """List the tasks of a table of questions in order of appearance."""
    counts = (
        questions.select(["task", "choices"])
        .group_by("task", use_threads=False)
        .aggregate([("choices", "count"), ([], "count_all")])
    )
    return [AskedTask(row["task"], row["choices_count"] == row["count_all"]) for row in counts.to_pylist()]


def is_rank_metric(name: str) -> bool:
    """Return whether a metric needs a ranking of the candidates."""
    return name in RANK_METRICS or name.startswith(_CUT_OFFS)


def choice_metric(metrics: Sequence[str]) -> str | None:
    """Return the metric of probes that pick one choice: accuracy, else the first that needs no ranking."""
    usable = [name for name in metrics if not is_rank_metric(name) and name not in _REPLY_METRICS]
    return ACCURACY if ACCURACY in usable else next(iter(usable), None)


def choose_headline(plan: HeadlinePlan, tasks: Sequence[AskedTask], scores: pa.Table) -> tuple[HeadlineScore, ...]:
    """Choose the headline scores of a run.

    Tasks of the suite come in its order, then other tasks in order of appearance. A task outside the suite's headline
    has accuracy if its questions show choices of their own, else the first metric of the study; a task of the suite has
    the metric of the suite's other tasks. Where a probe took part that picks one choice, the task has accuracy, by
    which all its models are comparable. Metrics without scores are replaced. There is a headline score if there is a
    score.
    """
    scored = _scored_metrics(scores, plan.baselines)
    preferred: dict[str, list[str]] = {}
    for entry in plan.preferred:
        preferred.setdefault(entry.task, []).append(entry.metric)
    others = [task.name for task in tasks if task.name not in preferred]
    if plan.named:
        others = [task for task in others if task in plan.named]
    else:
        others = [task for task in others if plan.own_tasks and task not in plan.known]
    shown = [task for task in (*preferred, *others) if task in scored]
    if not shown:
        shown = [task for task in dict.fromkeys([*(task.name for task in tasks), *scored]) if task in scored]
    own_choices = {task.name for task in tasks if task.own_choices}
    headline = []
    for task in shown:
        main = ACCURACY if task in own_choices and ACCURACY in plan.metrics else next(iter(plan.metrics), ACCURACY)
        if task in plan.known:
            main = plan.suite_metric or main
        metrics = _select_metrics(preferred.get(task) or [main], plan.metrics, scored[task])
        headline += [HeadlineScore(task, metric) for metric in metrics]
    return tuple(headline)


def _select_metrics(wanted: Sequence[str], metrics: Sequence[str], by_probe: Mapping[str, Sequence[str]]) -> list[str]:
    """Select the metrics of a task, so that every probe has a score by one of them.

    Args:
        wanted: Preferred metrics.
        metrics: Metrics of the study, in order.
        by_probe: Metrics with scores of the task, by probe.
    """
    scored = [name for name in dict.fromkeys(chain(*by_probe.values())) if name not in _REPLY_METRICS]
    order = sorted(scored, key=lambda name: metrics.index(name) if name in metrics else len(metrics))
    if not CHOOSERS.isdisjoint(by_probe):
        wanted = [choice_metric(order) or wanted[0]]
    if ANSWER in by_probe and EXACT in scored:
        wanted = [EXACT] if set(by_probe) == {ANSWER} else [*wanted, EXACT]
    selected: dict[str, None] = {}
    for metric in wanted:
        replacements = [metric, *([ACCURACY] if metric == "r@1" else []), *order]
        selected |= dict.fromkeys([name for name in replacements if name in scored][:1])
    for names in by_probe.values():
        if selected.keys().isdisjoint(names):
            selected |= dict.fromkeys([name for name in order if name in names][:1])
    return list(selected)


def _scored_metrics(scores: pa.Table, baselines: Collection[str]) -> dict[str, dict[str, list[str]]]:
    """Return the metrics with scores by task and probe; those of baselines only for tasks that no model answered."""
    of_models: dict[str, dict[str, list[str]]] = {}
    of_baselines: dict[str, dict[str, list[str]]] = {}
    for row in overall_rows(scores):
        if row["value"] is not None:
            by_task = of_baselines if row["model"] in baselines else of_models
            metrics = by_task.setdefault(row["task"], {}).setdefault(row["probe"], [])
            metrics += [] if row["metric"] in metrics else [row["metric"]]
    return {**of_baselines, **of_models}
