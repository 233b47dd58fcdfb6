"""Whether a model that knows a fact knows it however it is asked: Q-sets all, partly or not at all right."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from merkhet.analysis.types import Analysis, AnalysisInput, Column, Estimate, Line, Table, TableRow, estimate, percent
from merkhet.core.ids import derived_seed
from merkhet.metrics.bootstrap import clustered_interval

ALL_TASKS = "all tasks"

_EXPLANATION = (
    "A Q-set holds all questions from one fact: its paraphrases, and the places they ask for. Within a task, and over "
    "all tasks, Q-sets of at least two answered questions are counted as all, partly or not at all right. An answer is "
    "right if it equals a right answer but for case, punctuation and articles; if several are tied for the first place "
    "it counts by the chance that a right one is drawn. If the questions of a Q-set were answered independently, each "
    "with its task's accuracy, the shares beside would be expected: a consistent model has more Q-sets "
    "all right, and more not at all, than these."
)
_COLUMNS = (
    Column("Model"),
    Column("Task"),
    Column("Q-sets", "count"),
    Column("questions right", "share"),
    Column("all right", "share"),
    Column("if independent", "share"),
    Column("partly right", "share"),
    Column("none right", "share"),
    Column("if independent", "share"),
)


def consistency(given: AnalysisInput) -> Analysis | None:
    """Shares of Q-sets all, partly and not at all right, with intervals over Q-sets; None where there is no Q-set."""
    sets = question_sets(given)
    rows: list[TableRow] = []
    sentences = []
    for line in given.usable:
        found = {task: row for task, groups in sets.items() if (row := _row(given, line, task, groups))}
        rows += found.values()
        if line.model not in given.baselines:
            sentences += [_sentence(row) for task, row in list(found.items())[-1:]]
    if not rows:
        return None
    caption = "Q-sets all, partly and not at all right; 95% bootstrap intervals over Q-sets."
    return Analysis(
        "consistency",
        "Consistency: one fact, several questions",
        _EXPLANATION,
        (Table(caption, _COLUMNS, tuple(rows)),),
        sentences=tuple(sentences),
    )


def question_sets(given: AnalysisInput) -> dict[str, list[list[str]]]:
    """The ids of the questions of each Q-set: within each task, and over all tasks if there are several."""
    by_task: dict[str, dict[str, list[str]]] = {task: defaultdict(list) for task in given.tasks}
    together: dict[str, list[str]] = defaultdict(list)
    for row in given.questions:
        if row["qset"] is not None:
            by_task[row["task"]][row["qset"]].append(row["question_id"])
            together[row["qset"]].append(row["question_id"])
    sets = {task: list(groups.values()) for task, groups in by_task.items()}
    return sets | ({ALL_TASKS: list(together.values())} if len(sets) > 1 else {})


def answered_sets(given: AnalysisInput, line: Line, groups: Sequence[Sequence[str]]) -> list[list[str]]:
    """Of each Q-set the questions that a line has answered, where these are two or more."""
    answers = given.usable[line]
    kept = ([name for name in group if name in answers] for group in groups)
    return [group for group in kept if len(group) > 1]


def _row(given: AnalysisInput, line: Line, task: str, groups: Sequence[Sequence[str]]) -> TableRow | None:
    kept = answered_sets(given, line, groups)
    if not kept:
        return None
    ids = [name for group in kept for name in group]
    right = dict(zip(ids, given.right_probabilities(line, ids).tolist(), strict=True))
    accuracy = _task_accuracy(given, right)
    every = np.array([np.prod([right[name] for name in group]) for group in kept])
    none = np.array([np.prod([1.0 - right[name] for name in group]) for group in kept])
    chances = [[accuracy[given.questions_by_id[name].task] for name in group] for group in kept]
    places = np.arange(len(kept))
    shares = []
    for name, values in (("all", every), ("partly", np.clip(1.0 - every - none, 0.0, 1.0)), ("none", none)):
        seed = derived_seed(given.seed, "consistency", task, name)
        shares.append(estimate(clustered_interval(values, places, seed=seed), len(kept)))
    return (
        given.labels[line],
        task,
        len(kept),
        float(np.mean(list(right.values()))),
        shares[0],
        float(np.mean([np.prod(chance) for chance in chances])),
        *shares[1:],
        float(np.mean([np.prod([1.0 - one for one in chance]) for chance in chances])),
    )


def _task_accuracy(given: AnalysisInput, right: dict[str, float]) -> dict[str, float]:
    by_task: dict[str, list[float]] = defaultdict(list)
    for name, value in right.items():
        by_task[given.questions_by_id[name].task].append(value)
    return {task: float(np.mean(values)) for task, values in by_task.items()}


def _sentence(row: TableRow) -> str:
    model, task, count, _, every, expected, *_ = row
    assert isinstance(every, Estimate) and every.value is not None and isinstance(expected, float)
    over = "" if task == ALL_TASKS else f" of {task}"
    return (
        f"{model} has {percent(every.value)} of {count:,} Q-sets{over} all right; "
        f"{percent(expected)} would be if its answers were independent."
    )
