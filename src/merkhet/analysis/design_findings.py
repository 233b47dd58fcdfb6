"""Findings on designs that limit what scores mean: easy baselines, high chance levels and few questions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from merkhet.analysis.chance_findings import FREE_PROBES, group_columns, main_group_column
from merkhet.analysis.finding_types import (
    ALL_RIGHT,
    BASELINE_CEILING,
    CHANCE_CEILING,
    FEW,
    FEW_QUESTIONS,
    NEAR_CEILING,
    SINGLE_FACT,
    UNDECIDABLE,
    Finding,
    Kind,
    Verdict,
)
from merkhet.analysis.types import Row
from merkhet.core.records import Question
from merkhet.core.text import finite_or_none
from merkhet.metrics.metrics import Metric

_CLOSE = 1e-9


def find_designs(
    scores: Sequence[Row],
    headline: Sequence[tuple[str, Metric]],
    baselines: set[str],
    questions: Mapping[str, Question],
    judged: Sequence[Finding],
    names: Mapping[str, str],
) -> list[Finding]:
    """Find what limits the meaning of the headline scores.

    Args:
        judged: Findings on the models' headline scores, whose reasons are repeated here once for each task.
        names: Readable names of groups, by group.
    """
    metrics = {(task, metric.name): metric for task, metric in headline}
    rows = [row for row in scores if (row["task"], row["metric"]) in metrics]
    wholes = [row for row in rows if not group_columns(row)]
    groups: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in rows:
        columns = group_columns(row)
        if len(columns) == 1:
            groups[row["task"], columns[0]].append(row)
    column = main_group_column(scores)
    shares = {key for key, metric in metrics.items() if metric.share and metric.higher_is_better}
    found = [
        *_find_baseline_ceilings(wholes, groups, column, baselines, shares, names),
        *_find_chance_ceilings(wholes, groups, column, shares, names),
    ]
    known = {finding.task for finding in found if finding.reason == CHANCE_CEILING and finding.group is None}
    unjudged = list(_find_unjudged_tasks(judged))
    small = {finding.task for finding in unjudged if finding.reason != UNDECIDABLE}
    return [
        *found,
        *_find_all_right(questions, list(dict.fromkeys(task for task, _ in metrics if task not in known))),
        *unjudged,
        *_find_small_groups({key: rows for key, rows in groups.items() if key[0] not in small}),
    ]


def _find_baseline_ceilings(
    wholes: Sequence[Row],
    groups: Mapping[tuple[str, str], Sequence[Row]],
    column: str,
    baselines: set[str],
    shares: set[tuple[str, str]],
    names: Mapping[str, str],
) -> Iterator[Finding]:
    """Yield the tasks, and the groups of other tasks, on which a baseline is near the ceiling."""

    def is_high(row: Row) -> bool:
        value = finite_or_none(row["value"])
        is_share = (row["task"], row["metric"]) in shares
        return row["model"] in baselines and is_share and row["n"] >= FEW_QUESTIONS and (value or 0.0) >= NEAR_CEILING

    high = [row for row in wholes if is_high(row)]
    yield from (_row_finding(row, BASELINE_CEILING) for row in high)
    whole = {(row["model"], row["task"], row["metric"]) for row in high}
    for (_, group_column), rows in groups.items():
        if group_column == column:
            total = len({row[column] for row in rows})
            for row in rows:
                if is_high(row) and (row["model"], row["task"], row["metric"]) not in whole:
                    yield _row_finding(row, BASELINE_CEILING, column, names, total)


def _find_chance_ceilings(
    wholes: Sequence[Row],
    groups: Mapping[tuple[str, str], Sequence[Row]],
    column: str,
    shares: set[tuple[str, str]],
    names: Mapping[str, str],
) -> Iterator[Finding]:
    """Yield the tasks, and the groups of other tasks, whose chance level is near the ceiling."""

    def is_high(row: Row) -> bool:
        chance = finite_or_none(row["chance"])
        is_share = (row["task"], row["metric"]) in shares
        return is_share and row["probe"] not in FREE_PROBES and (chance or 0.0) >= NEAR_CEILING

    seen: set[tuple[str, ...]] = set()
    for row in filter(is_high, wholes):
        key = (row["task"], row["metric"])
        if key not in seen:
            seen.add(key)
            yield _row_finding(row, CHANCE_CEILING, of_model=False)
    for (task, group_column), rows in groups.items():
        if group_column == column:
            total = len({row[column] for row in rows})
            for row in filter(is_high, rows):
                group_key = (task, row["metric"], row[column])
                if group_key not in seen and group_key[:2] not in seen:
                    seen.add(group_key)
                    yield _row_finding(row, CHANCE_CEILING, column, names, total, of_model=False)


def _row_finding(
    row: Row,
    reason: str,
    column: str | None = None,
    names: Mapping[str, str] | None = None,
    total: int | None = None,
    *,
    of_model: bool = True,
) -> Finding:
    group = None if column is None else str(row[column])
    name = (names or {}).get(group) if group is not None else None
    value, low, high = (finite_or_none(row[number]) if of_model else None for number in ("value", "low", "high"))
    return Finding(
        Kind.DESIGN,
        Verdict.NONE,
        model=row["model"] if of_model else None,
        task=row["task"],
        metric=row["metric"],
        probe=row["probe"] if of_model else None,
        method=row["method"] if of_model else None,
        group_column=column,
        group=group,
        group_name=None if name == group else name,
        n=row["n"],
        chance=finite_or_none(row["chance"]),
        total=total,
        reason=reason,
        value=value,
        low=low,
        high=high,
    )


def _find_all_right(questions: Mapping[str, Question], tasks: Sequence[str]) -> Iterator[Finding]:
    """Yield the tasks in which all options are right in nearly every question."""
    counts: dict[str, list[int]] = {task: [0, 0] for task in tasks}
    for question in questions.values():
        if question.task in counts and question.candidates:
            counts[question.task][0] += set(question.candidates) <= set(question.answers)
            counts[question.task][1] += 1
    for task, (right, asked) in counts.items():
        if asked and right >= NEAR_CEILING * asked:
            yield Finding(Kind.DESIGN, Verdict.NONE, task=task, count=right, total=asked, reason=ALL_RIGHT)


def _find_unjudged_tasks(judged: Sequence[Finding]) -> Iterator[Finding]:
    """Yield the tasks without a verdict on any model because of their questions."""
    by_task: dict[str, list[Finding]] = defaultdict(list)
    for finding in judged:
        by_task[finding.task or ""].append(finding)
    for task, findings in by_task.items():
        for reason in (SINGLE_FACT, FEW, UNDECIDABLE):
            having = [finding for finding in findings if finding.reason == reason]
            if having and all(finding.verdict is Verdict.NONE for finding in findings):
                largest = max(having, key=lambda finding: finding.n or 0)
                n, chance = largest.n, largest.chance
                yield Finding(Kind.DESIGN, Verdict.NONE, task=task, n=n, chance=chance, reason=reason)
                break


def _find_small_groups(groups: Mapping[tuple[str, str], Sequence[Row]]) -> Iterator[Finding]:
    """Yield, for each task and column, the number of groups with too few questions for a verdict."""
    for (task, column), rows in groups.items():
        sizes: dict[str, int] = {}
        for row in rows:
            sizes[row[column]] = max(sizes.get(row[column], 0), row["n"])
        small = sum(size < FEW_QUESTIONS for size in sizes.values())
        if small:
            yield Finding(
                Kind.DESIGN,
                Verdict.NONE,
                task=task,
                group_column=column,
                count=small,
                total=len(sizes),
                reason=FEW,
            )
