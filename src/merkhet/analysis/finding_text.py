"""Sentences rendered from findings."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence

from merkhet.analysis.comparison import is_layer_method
from merkhet.analysis.control_text import render_controls, render_positions
from merkhet.analysis.design_text import capitalize, group_noun, render_designs
from merkhet.analysis.differences import format_p, format_range, format_size
from merkhet.analysis.finding_types import Finding, Kind, Verdict
from merkhet.analysis.training_text import describe_trainings
from merkhet.core import text as fmt
from merkhet.core.text import counted, join_names, join_some, metric_label, quote_name

_MOST_COMPARED = 8
_MOST_METHODS = 3
_MOST_TASKS = 8
_MOST_KINDS = 3
_VERDICTS = (Verdict.ABOVE_CHANCE, Verdict.AT_CHANCE, Verdict.BELOW_CHANCE)
_AHEAD_OR_NOT = (Verdict.AHEAD, Verdict.NO_DIFFERENCE, Verdict.EQUAL)

Label = Callable[[Finding], str]


def render(findings: Sequence[Finding]) -> list[str]:
    """Render findings as sentences: designs, scores, controls, positions, comparisons, trainings and so on.

    The sentences depend on the findings alone. A sentence may join several findings. A method is named wherever a model
    was asked by several, and a metric wherever a task has several.
    """
    by_kind: dict[Kind, list[Finding]] = defaultdict(list)
    for finding in findings:
        by_kind[finding.kind].append(finding)
    scores, groups, comparisons = (by_kind[kind] for kind in (Kind.SCORE, Kind.GROUP, Kind.COMPARISON))
    methods, metrics = _methods_by_model([*scores, *groups, *comparisons]), _metrics_by_task(findings)

    def task(finding: Finding) -> str:
        return _name_task(finding, metrics)

    sentences = render_designs(by_kind[Kind.DESIGN], task)
    for model in dict.fromkeys(finding.model for finding in scores):
        sentences += _render_scores([finding for finding in scores if finding.model == model], task)
    sentences += render_controls(by_kind[Kind.CONTROL], task)
    sentences += render_positions(by_kind[Kind.POSITION], task)
    sentences += _render_comparisons(comparisons, task, methods)
    sentences += describe_trainings(by_kind[Kind.TRAININGS])
    sentences += _render_unusable(by_kind[Kind.UNUSABLE])
    by_score: dict[tuple[str | None, ...], list[Finding]] = defaultdict(list)
    for finding in groups:
        by_score[finding.model, finding.task, finding.metric, finding.probe, finding.method].append(finding)
    for rows in by_score.values():
        sentences += _render_groups(rows, task(rows[0]), _name_model(rows[0], methods))
    sentences += [finding.reason or "" for finding in by_kind[Kind.REMARK]]
    return list(dict.fromkeys(sentences))


_Methods = dict[tuple[str | None, str | None], set[tuple[str | None, str | None]]]


def _methods_by_model(findings: Iterable[Finding]) -> _Methods:
    """Return the probes and methods that each model was asked by, by model and task."""
    methods: _Methods = defaultdict(set)
    for finding in findings:
        methods[finding.model, finding.task].add((finding.probe, finding.method))
        if finding.other is not None:
            method = finding.method if finding.other_method is None else finding.other_method
            methods[finding.other, finding.task].add((finding.probe, method))
    return methods


def _metrics_by_task(findings: Iterable[Finding]) -> dict[str | None, set[str]]:
    metrics: dict[str | None, set[str]] = defaultdict(set)
    for finding in findings:
        if finding.metric is not None:
            metrics[finding.task].add(finding.metric)
    return metrics


def _name_task(finding: Finding, metrics: dict[str | None, set[str]]) -> str:
    several = finding.metric is not None and len(metrics.get(finding.task, ())) > 1
    return f"{finding.task} {metric_label(finding.metric or '')}" if several else str(finding.task)


def _name_method(finding: Finding) -> str:
    return f"{finding.probe}, {finding.method}"


def _name_model(finding: Finding, methods: _Methods) -> str:
    name = quote_name(finding.model or "")
    return f"{name} ({_name_method(finding)})" if len(methods[finding.model, finding.task]) > 1 else name


def _number(finding: Finding, value: float | None) -> str:
    return f"{fmt.score(value, percent=finding.share)}{'%' * finding.share}"


def _against_chance(finding: Finding, *, interval: bool = False) -> str:
    """Format a score with its chance level, such as ``9.0% [6.3, 13.0], chance 4.3%``."""
    ends = f" {fmt.interval(finding.low, finding.high, percent=finding.share)}" if interval else ""
    return f"{_number(finding, finding.value)}{ends}, chance {_number(finding, finding.chance)}"


def _render_scores(findings: Sequence[Finding], task: Label) -> list[str]:
    """Say in one sentence on which tasks a model is above chance, at chance and below chance."""
    by_task: dict[str, list[Finding]] = defaultdict(list)
    for finding in findings:
        by_task[task(finding)].append(finding)
    clauses = []
    for verdict in _VERDICTS:
        for better in (True, False):
            items = [
                _score_item(name, having, rows)
                for name, rows in by_task.items()
                if (having := [row for row in _select_methods(rows) if row.verdict is verdict])
                and rows[0].higher_is_better is better
            ]
            if items:
                clauses.append(f"{_chance_phrase(verdict, better=better)} on {join_some(items, _MOST_TASKS)}")
    return [f"{quote_name(findings[0].model or '')} {'; it '.join(clauses)}."] if clauses else []


def _select_methods(rows: Sequence[Finding]) -> list[Finding]:
    """Leave out methods that use a single layer, unless there are no others."""
    return [row for row in rows if not is_layer_method(row.method or "")] or list(rows)


def _chance_phrase(verdict: Verdict, *, better: bool) -> str:
    if verdict is Verdict.AT_CHANCE:
        return "does not differ significantly from chance"
    above = verdict is Verdict.ABOVE_CHANCE
    side = ("above" if above else "below") if better else ("better than" if above else "worse than")
    return f"is significantly {side} chance"


def _score_item(name: str, having: Sequence[Finding], rows: Sequence[Finding]) -> str:
    """Name a task with its score; with several methods, also those that the verdict is about."""
    if len(rows) == 1:
        return f"{name} ({_against_chance(having[0], interval=True)})"
    if len(having) == 1:
        return f"{name} by {_name_method(having[0])} ({_against_chance(having[0], interval=True)})"
    methods = join_some([_name_method(row) for row in having], _MOST_METHODS)
    every = "both methods" if len(rows) == 2 else f"all {len(rows)} methods"
    who = every if len(having) == len(rows) else f"{len(having)} of {len(rows)} methods, {methods}"
    ranges = (
        format_range([_number(row, number) for row, number in sorted(zip(having, numbers, strict=True), key=_second)])
        for numbers in ([row.value or 0.0 for row in having], [row.chance or 0.0 for row in having])
    )
    return f"{name} by {who} ({', chance '.join(ranges)})"


def _second(pair: tuple[Finding, float]) -> float:
    return pair[1]


def _render_groups(rows: Sequence[Finding], task: str, model: str) -> list[str]:
    """Say in how many groups a model is above chance, at chance and below, and name the best and the weakest."""
    noun = group_noun(rows[0].group_column or "group", len(rows))
    clauses: list[str] = []
    for verdict in _VERDICTS:
        having = [row for row in rows if row.verdict is verdict]
        is_descending = rows[0].higher_is_better is (verdict is Verdict.ABOVE_CHANCE)
        having.sort(key=lambda row: row.value or 0.0, reverse=is_descending)
        if not having:
            continue
        shown = having[:2] if verdict is Verdict.ABOVE_CHANCE else having[:1]
        items = join_names([f"{_group_name(row)} ({_against_chance(row)})" for row in shown])
        best = "highest" if is_descending else "lowest"
        link = ": " if len(having) == len(shown) else f", {best} on "
        of = "" if clauses else f" of {counted(len(rows), noun, noun)}"
        phrase = _chance_phrase(verdict, better=rows[0].higher_is_better)
        clauses.append(f"{phrase} in {len(having):,}{of}{link}{items}")
    if len(rows) < 2 or not clauses:
        return []
    return [f"On {task}, {model} {'; it '.join(clauses)}."]


def _group_name(finding: Finding) -> str:
    return quote_name(finding.group_name or finding.group or "")


def _render_comparisons(findings: Sequence[Finding], task: Label, methods: _Methods) -> list[str]:
    """Describe which models are ahead.

    Of many comparisons, only the most significant ones are described, and the others are counted. If two models do not
    differ significantly, the smallest detectable difference is given, once per pair and task.
    """
    judged = [finding for finding in findings if finding.verdict in _AHEAD_OR_NOT]
    single = len(judged) == 1
    alike = [finding for finding in judged if finding.verdict is Verdict.NO_DIFFERENCE]
    if len(findings) <= _MOST_COMPARED:
        first = {(finding.task, finding.model, finding.other): finding for finding in reversed(alike)}
        return [
            _render_comparison(
                finding,
                task(finding),
                methods,
                _describe_detectable([finding], single) if finding in first.values() else "",
            )
            for finding in findings
        ]
    ahead = [finding for finding in judged if finding.verdict is Verdict.AHEAD]
    ahead.sort(key=lambda finding: (1.0 if finding.p is None else finding.p, -(finding.value or 0.0)))
    sentences = [_render_comparison(finding, task(finding), methods) for finding in ahead[:_MOST_COMPARED]]
    remaining = len(ahead) - _MOST_COMPARED
    if remaining > 0:
        which = "1 more comparison" if remaining == 1 else f"{remaining:,} more comparisons"
        sentences.append(f"In {which} one of two models is ahead.")
    if alike:
        detectable = _describe_detectable(alike, single)
        sentences.append(
            f"In {len(alike):,} of {counted(len(findings), 'comparison')} two models do not differ significantly"
            f"{detectable}."
        )
    equal = sum(finding.verdict is Verdict.EQUAL for finding in judged)
    if equal:
        sentences.append(
            f"In {equal:,} of {counted(len(findings), 'comparison')} two models score the same on every question."
        )
    reasons = Counter(finding.reason for finding in findings if finding not in judged)
    sentences += [f"{counted(n, 'comparison')} without a verdict: {reason}." for reason, n in reasons.items()]
    return sentences


def _render_comparison(finding: Finding, task: str, methods: _Methods, detectable: str = "") -> str:
    model, other = quote_name(finding.model or ""), quote_name(finding.other or "")
    how = "paired"
    if any(len(methods[name, finding.task]) > 1 for name in (finding.model, finding.other)):
        against = "" if finding.other_method is None else f" against {finding.other_method}"
        how = f"{_name_method(finding)}{against}; paired"
    size = format_gap(finding)
    if finding.verdict is Verdict.EQUAL:
        return f"On {task}, {model} and {other} score the same on every question ({how})."
    if finding.verdict is Verdict.NONE:
        return f"On {task}, {model} is {size} ahead of {other} ({how}), without a verdict: {finding.reason}."
    p = "p unknown" if finding.p is None else f"p {format_p(finding.p)}"
    if finding.verdict is Verdict.AHEAD:
        return f"{model} is ahead of {other} on {task} by {size} ({how}, {p})."
    return f"On {task}, {model} and {other} do not differ significantly ({size}, {how}, {p}){detectable}."


def format_gap(finding: Finding) -> str:
    """Format the difference of a finding in points, or in the unit of a metric that is not a share."""
    value = finding.value or 0.0
    return f"{fmt.score(value)} points" if finding.share else f"{value:.2f} in {finding.metric}"


def _describe_detectable(findings: Sequence[Finding], single: bool) -> str:
    """Return the end of a sentence on the difference that the tests can detect; empty if it is unknown."""
    shares = [finding for finding in findings if finding.share]
    sizes = sorted({format_size(row.detectable) for row in shares if row.detectable is not None}, key=float)
    if not sizes:
        facts = min((finding.facts for finding in shares if finding.facts is not None), default=None)
        if facts is None or len(findings) > 1:
            return ""
        return f"; {counted(facts, 'fact')} {'is' if facts == 1 else 'are'} too few to detect a difference"
    tests = f"{'' if single else 'without correction '}{'the test has' if len(findings) == 1 else 'the tests have'}"
    plural = "a difference" if len(sizes) == 1 else "differences"
    unit = "point" if sizes == ["1.0"] else "points"
    return f"; {tests} 80% power to detect {plural} of {format_range(sizes)} {unit}"


def _render_unusable(findings: Sequence[Finding]) -> list[str]:
    """Count the unusable answers by model and reason; without any, say how many questions were asked."""
    lost = sorted((finding for finding in findings if finding.reason), key=lambda finding: -(finding.n or 0))
    if not lost:
        asked = [finding for finding in findings if finding.total]
        if not asked:
            return []
        if all(finding.count == finding.total for finding in asked):
            return ["Every question could be asked of every model."]
        parts = [
            f"{quote_name(finding.model or '')} was asked {finding.count:,} of "
            f"{counted(finding.total or 0, 'question')}"
            for finding in asked
            if finding.count != finding.total
        ]
        return [f"Every answer is usable; {join_some(parts, _MOST_KINDS)}."]
    parts = [f"{finding.n:,} of {quote_name(finding.model or '')} ({finding.reason})" for finding in lost[:_MOST_KINDS]]
    more = len(lost) - len(parts)
    tail = f" and {counted(more, 'more kind')}" if more > 0 else ""
    total = sum(finding.n or 0 for finding in lost)
    verb = "answer was" if total == 1 else "answers were"
    wrong = all(finding.value is not None for finding in lost)
    scored = f"{'counts' if total == 1 else 'count'} as wrong" if wrong else "left out of the scores"
    return [capitalize(f"{total:,} {verb} unusable and {scored}: {', '.join(parts)}{tail}.")]
