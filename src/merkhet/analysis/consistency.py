"""Consistency of answers within Q-sets, the sets of questions about one fact."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from itertools import chain

import numpy as np

from merkhet.analysis.types import Analysis, AnalysisInput, Estimate, Line, Table, TableRow, estimate, make_columns
from merkhet.core.ids import derived_seed
from merkhet.core.text import counted, percent
from merkhet.metrics.bootstrap import clustered_interval
from merkhet.metrics.ranks import FloatArray

ALL_TASKS = "all tasks"
WITH_PREMISES = "conclusions and premises"

_EXPLANATION = (
    "A Q-set holds all questions about one fact: paraphrases, and questions for its different slots. Within a task, "
    "and over all tasks, Q-sets of at least two answered questions are counted as all, partly or not at all right. An "
    "answer is right if it equals a right answer up to case, punctuation and articles; if several are tied for the "
    "first rank, it counts by the probability of drawing a right one. “If independent” is the share expected if each "
    "question were answered independently with its task's accuracy: a consistent model has more Q-sets all right, and "
    "more none right. The Q-sets “conclusions and premises” join the closed-book questions about a conclusion with the "
    "completion questions of all premises of its proof."
)
_COLUMNS = make_columns(
    *("Model", "Task", "Q-sets:count", "questions right:share", "all right:share", "if independent:share"),
    *("partly right:share", "none right:share", "if independent:share"),
)


def consistency(inputs: AnalysisInput) -> Analysis | None:
    """Compute the shares of Q-sets that are all, partly and not at all right; None without Q-sets."""
    sets = question_sets(inputs)
    rows: list[TableRow] = []
    sentences = []
    for line in inputs.usable:
        row_by_task = {task: row for task, groups in sets.items() if (row := _row(inputs, line, task, groups))}
        rows += row_by_task.values()
        if line.model not in inputs.baselines:
            sentences += [_sentence(row) for task, row in list(row_by_task.items())[-1:]]
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


def question_sets(inputs: AnalysisInput) -> dict[str, list[list[str]]]:
    """Group question ids by Q-set, within each task and, if there are several tasks, over all tasks.

    Further Q-sets join the questions about a conclusion with the completion questions of its premises.
    """
    by_task: dict[str, dict[str, list[str]]] = {task: defaultdict(list) for task in inputs.tasks}
    together: dict[str, list[str]] = defaultdict(list)
    for row in inputs.questions:
        if row["qset"] is not None:
            by_task[row["task"]][row["qset"]].append(row["question_id"])
            together[row["qset"]].append(row["question_id"])
    sets = {task: list(groups.values()) for task, groups in by_task.items()}
    joined = _sets_with_premises(inputs)
    return (
        sets
        | ({WITH_PREMISES: joined} if joined else {})
        | ({ALL_TASKS: list(together.values())} if len(sets) > 1 else {})
    )


def _sets_with_premises(inputs: AnalysisInput) -> list[list[str]]:
    """Return Q-sets of closed-book questions about a conclusion and completion questions of its premises."""
    if not inputs.premises:
        return []
    about_fact: dict[str, list[str]] = defaultdict(list)
    conclusions: dict[str, list[str]] = defaultdict(list)
    for row in inputs.questions:
        if row["task"] == "completion" and row["facts"]:
            about_fact[row["facts"][0]].append(row["question_id"])
        elif row["task"] == "reasoning" and row["qset"] is not None and row["question_id"] in inputs.premises:
            conclusions[row["qset"]].append(row["question_id"])
    joined = []
    for questions in conclusions.values():
        facts = [fact for fact, _ in inputs.premises[questions[0]]]
        if all(fact in about_fact for fact in facts):
            joined.append([*questions, *(question for fact in facts for question in about_fact[fact])])
    return joined


def answered_sets(inputs: AnalysisInput, line: Line, groups: Sequence[Sequence[str]]) -> list[list[str]]:
    """Select the answered questions of each Q-set for one model, probe and method.

    Q-sets with fewer than two answered questions are skipped.
    """
    answers = inputs.usable[line]
    answered = ([question_id for question_id in group if question_id in answers] for group in groups)
    return [group for group in answered if len(group) > 1]


def right_by_set(inputs: AnalysisInput, line: Line, groups: Sequence[Sequence[str]]) -> list[list[float]]:
    """Return the probability that each answer of each Q-set is right."""
    ids = [question_id for group in groups for question_id in group]
    right = iter(inputs.right_probabilities(line, ids).tolist())
    return [[next(right) for _ in group] for group in groups]


def probability_of_all(groups: Sequence[Sequence[float]]) -> FloatArray:
    """Return the product of the probabilities of each group."""
    return np.array([np.prod(probabilities) for probabilities in groups])


def _row(inputs: AnalysisInput, line: Line, task: str, groups: Sequence[Sequence[str]]) -> TableRow | None:
    question_groups = answered_sets(inputs, line, groups)
    if not question_groups:
        return None
    right = right_by_set(inputs, line, question_groups)
    tasks = [[inputs.questions_by_id[question_id].task for question_id in group] for group in question_groups]
    by_task: dict[str, list[float]] = defaultdict(list)
    for task_name, value in zip(chain(*tasks), chain(*right), strict=True):
        by_task[task_name].append(value)
    accuracy = {task_name: float(np.mean(values)) for task_name, values in by_task.items()}
    expected = [[accuracy[task_name] for task_name in group] for group in tasks]
    all_right, none_right = probability_of_all(right), probability_of_all(_complements(right))
    partly_right = np.clip(1.0 - all_right - none_right, 0.0, 1.0)
    shares = []
    for name, values in (("all", all_right), ("partly", partly_right), ("none", none_right)):
        seed = derived_seed(inputs.seed, "consistency", task, name)
        shares.append(estimate(clustered_interval(values, np.arange(len(values)), seed=seed), len(values)))
    head = (inputs.labels[line], task, len(question_groups), float(np.mean(list(chain(*right)))))
    expected_all, expected_none = (
        float(np.mean(probability_of_all(groups))) for groups in (expected, _complements(expected))
    )
    return (*head, shares[0], expected_all, *shares[1:], expected_none)


def _complements(groups: Sequence[Sequence[float]]) -> list[list[float]]:
    return [[1.0 - probability for probability in group] for group in groups]


def _sentence(row: TableRow) -> str:
    model, task, count, _, all_right, expected, *_ = row
    assert (
        isinstance(count, int)
        and isinstance(all_right, Estimate)
        and all_right.value is not None
        and isinstance(expected, float)
    )
    of_task = "" if task == ALL_TASKS else f" of {task}"
    return (
        f"{model} has {percent(all_right.value)} of {counted(count, 'Q-set')}{of_task} all right; "
        f"{percent(expected)} would be if its answers were independent."
    )
