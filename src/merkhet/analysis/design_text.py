"""Sentences on designs that limit what scores mean."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace

from merkhet.analysis.finding_types import (
    ALL_RIGHT,
    BASELINE_CEILING,
    CHANCE_CEILING,
    FEW,
    NEAR_CEILING,
    NO_QUESTIONS,
    SINGLE_FACT,
    UNDECIDABLE,
    Finding,
)
from merkhet.core.text import counted, join_names, join_some, percent, quote_name

_MOST_NAMED = 6
_MOST_GROUPS = 2
_NO_EVIDENCE = "a high score there is no evidence of knowledge"
_NOUNS = {
    "relation": ("relation", "relations"),
    "domain": ("domain", "domains"),
    "rule": ("rule", "rules"),
    "template": ("template", "templates"),
    "split": ("split", "splits"),
    "premises": ("premise setting", "premise settings"),
    "rule+premises": ("premise setting of a rule", "premise settings of rules"),
}
"""Singular and plural of what a group column divides questions into."""

Label = Callable[[Finding], str]


def group_noun(column: str, number: int) -> str:
    """Return the noun for ``number`` groups of a column, such as ``relations``."""
    singular, plural = _NOUNS.get(column, (f"group by {column}", f"groups by {column}"))
    return singular if number == 1 else plural


def capitalize(sentence: str) -> str:
    """Write the first letter of a sentence as a capital."""
    return sentence[:1].upper() + sentence[1:]


def render_designs(findings: Sequence[Finding], task: Label) -> list[str]:
    """Render findings on the design, one sentence for each reason; an unknown reason is a sentence by itself."""
    by_reason: dict[str, list[Finding]] = defaultdict(list)
    for finding in findings:
        by_reason[finding.reason or ""].append(finding)
    sentences = []
    for reason, render in _RENDERERS.items():
        if by_reason[reason]:
            sentences += render(by_reason[reason], task)
    return [*sentences, *(reason for reason in by_reason if reason and reason not in _RENDERERS)]


def _baseline_ceilings(findings: Sequence[Finding], task: Label) -> list[str]:
    by_model: dict[str, list[Finding]] = defaultdict(list)
    for finding in findings:
        by_model[quote_name(finding.model or "")].append(finding)
    sentences = []
    for model, rows in by_model.items():
        items = [
            f"{percent(row.value or 0.0)} on {task(row)}{_by_method(row, rows)}" for row in rows if row.group is None
        ]
        items += _group_items([row for row in rows if row.group is not None], task, lambda row: row.value)
        sentences.append(f"The baseline {model} scores {join_some(items, _MOST_NAMED)}: {_NO_EVIDENCE}.")
    return sentences


def _by_method(row: Finding, rows: Sequence[Finding]) -> str:
    """Name the method if the baseline was asked a task by several."""
    methods = {(other.probe, other.method) for other in rows if (other.task, other.metric) == (row.task, row.metric)}
    return f" ({row.probe}, {row.method})" if len(methods) > 1 else ""


def _chance_ceilings(findings: Sequence[Finding], task: Label) -> list[str]:
    items = [f"{percent(row.chance or 0.0)} on {task(row)}" for row in findings if row.group is None]
    items += _group_items([row for row in findings if row.group is not None], task, lambda row: row.chance)
    return [f"Guessing scores {join_some(items, _MOST_NAMED)}: {_NO_EVIDENCE}."]


def _group_items(findings: Sequence[Finding], task: Label, number: Callable[[Finding], float | None]) -> list[str]:
    """Count the groups of each task and method, and name the first of them."""
    by_task: dict[tuple[str, ...], list[Finding]] = defaultdict(list)
    for row in findings:
        by_task[task(row), row.probe or "", row.method or "", row.group_column or ""].append(row)
    items = []
    for (name, probe, method, column), rows in by_task.items():
        several = len({key[1:3] for key in by_task if key[0] == name}) > 1
        how = f" ({probe}, {method})" if several else ""
        shown = [
            f"{quote_name(row.group_name or row.group or '')} {percent(number(row) or 0.0)}"
            for row in rows[:_MOST_GROUPS]
        ]
        more = "such as " if len(rows) > _MOST_GROUPS else ""
        total = rows[0].total or len(rows)
        items.append(
            f"at least {NEAR_CEILING:.0%} on {len(rows):,} of {total:,} {group_noun(column, total)} of {name}{how} "
            f"({more}{join_names(shown)})"
        )
    return items


def _all_right(findings: Sequence[Finding], task: Label) -> list[str]:
    items = [f"{row.count:,} of {counted(row.total or 0, 'question')} of {task(row)}" for row in findings]
    return [f"All options are right in {join_some(items, _MOST_NAMED)}: {_NO_EVIDENCE}."]


def _single_facts(findings: Sequence[Finding], task: Label) -> list[str]:
    tasks = list(dict.fromkeys(task(row) for row in findings))
    verb, scores_have = ("asks", "its score has") if len(tasks) == 1 else ("ask", "their scores have")
    return [capitalize(f"{join_some(tasks, _MOST_NAMED)} {verb} about a single fact, so {scores_have} no interval.")]


def _few_questions(findings: Sequence[Finding], task: Label) -> list[str]:
    items = [f"{task(row)} ({row.n or 0:,})" for row in findings if row.group_column is None]
    items += _count_groups_once([row for row in findings if row.group_column is not None], task)
    return [f"{capitalize(FEW)}, too few for a verdict: {join_some(items, _MOST_NAMED)}."]


def _undecidable(findings: Sequence[Finding], task: Label) -> list[str]:
    items = [
        f"{task(row)} ({counted(row.n or 0, 'question')}, chance {percent(row.chance or 0.0)})" for row in findings
    ]
    return [f"Even a perfect score would be within chance on {join_some(items, _MOST_NAMED)}: there is no verdict."]


def _no_questions(findings: Sequence[Finding], task: Label) -> list[str]:
    items = _count_groups_once(findings, task)
    return [f"Without any question: {join_some(items, _MOST_NAMED)}."]


def _count_groups_once(findings: Sequence[Finding], task: Label) -> list[str]:
    """Count the groups of each finding; findings that only differ in the model are said once, of all these models."""
    models: dict[Finding, list[str]] = defaultdict(list)
    for row in findings:
        models[replace(row, model=None)].append(row.model or "")
    items = []
    for row, names in models.items():
        alike = len(names) > 1
        items.append(_count_groups(row if alike else replace(row, model=names[0] or None), task))
        items[-1] += f" for each of {len(names)} models" if alike else ""
    return items


def _count_groups(row: Finding, task: Label) -> str:
    """Count the groups of a finding, such as ``12 of 40 relations of completion``, and name them if it does."""
    total = row.total or 0
    of = f" of {task(row)}" if row.task else ""
    asked = f" for {quote_name(row.model)}" if row.model else ""
    which = f" ({row.group})" if row.group else ""
    return f"{row.count or 0:,} of {total:,} {group_noun(row.group_column or 'group', total)}{of}{asked}{which}"


_RENDERERS: dict[str, Callable[[Sequence[Finding], Label], list[str]]] = {
    BASELINE_CEILING: _baseline_ceilings,
    CHANCE_CEILING: _chance_ceilings,
    ALL_RIGHT: _all_right,
    SINGLE_FACT: _single_facts,
    UNDECIDABLE: _undecidable,
    NO_QUESTIONS: _no_questions,
    FEW: _few_questions,
}
"""Function that renders the findings of each reason, in the order of the sentences."""
