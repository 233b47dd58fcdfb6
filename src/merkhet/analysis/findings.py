"""Findings of a run in words: known and unknown groups, comparisons of models, unusable questions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from merkhet.analysis.comparison import Comparison, Condition, compare_models, is_layer_method
from merkhet.analysis.difference_text import format_size
from merkhet.analysis.types import join_names, quote_name
from merkhet.core.records import Question
from merkhet.core.schemas import SCORES
from merkhet.metrics.answer_table import LazyRows
from merkhet.metrics.corrections import SIGNIFICANCE_LEVEL
from merkhet.metrics.metrics import Metric, get_metric, is_metric

Row = dict[str, Any]
_MOST_COMPARED = 8


def summarize_findings(
    *,
    scores: Sequence[Row],
    answers: pa.Table | Sequence[Row],
    questions: Mapping[str, Question],
    clusters: Mapping[str, str],
    headline: Sequence[tuple[str, Metric]],
    about: Mapping[str, str],
    baselines: set[str],
    seed: int,
    classes: Mapping[str, str] | None = None,
    unusable_is_wrong: bool = False,
    statements: bool = False,
    conditions: Mapping[str, Condition] | None = None,
) -> dict[str, Any]:
    """Summarize a run.

    Models that were trained under several conditions are compared where these differ in one respect. The sentences are
    about models under one condition only; analyses describe the effects of conditions.

    Args:
        clusters: The fact of each question.
        headline: Tasks with their metrics.
        about: Names of relations and domains for sentences.
        classes: The class of each question, if scores are means over classes.
        statements: Whether questions are statements; see :class:`merkhet.analysis.comparison.PairedModels`.
        conditions: Conditions that models were trained under.

    Returns:
        ``sentences``, ``comparisons`` (paired, of the models without baselines) and ``unusable`` (counts by model and
        reason).
    """
    scores = _select_first_method(scores)
    models = list(dict.fromkeys(row["model"] for row in scores if row["model"] not in baselines))
    comparisons = compare_models(
        answers,
        questions,
        clusters,
        headline,
        seed=seed,
        models=models,
        conditions=conditions,
        classes=classes,
        unusable_is_wrong=unusable_is_wrong,
        statements=statements,
    )
    unusable = _count_unusable(answers)
    sentences = []
    if conditions:
        labels = {name: condition.label for name, condition in conditions.items()}
        sentences += describe_comparisons(
            [entry for entry in comparisons if labels.get(entry.model) == labels.get(entry.other)]
        )
    else:
        for model in models:
            sentences += _describe_knowledge(model, scores, headline, about)
            sentences += _describe_chance_level(model, scores, headline)
        sentences += _describe_missing_intervals(scores, headline, models)
        sentences += describe_comparisons(comparisons)
        sentences.append(_describe_unusable(unusable, wrong=unusable_is_wrong))
    return {
        "sentences": sentences,
        "comparisons": [asdict(comparison) for comparison in comparisons],
        "unusable": [
            {"model": model, "reason": reason, "count": count} for (model, reason), count in sorted(unusable.items())
        ],
    }


def _count_unusable(answers: pa.Table | Sequence[Row]) -> Counter[tuple[str, str]]:
    """Count the unusable answers by model and kind of reason."""
    answers = answers.table if isinstance(answers, LazyRows) and answers.table is not None else answers
    if isinstance(answers, pa.Table):
        columns = ["model", "method", "unusable"]
        answers = answers.select(columns).filter(pc.is_valid(answers["unusable"])).to_pylist()
    return Counter(
        (answer["model"], _reason_kind(answer["unusable"]))
        for answer in answers
        if answer["unusable"] is not None and not is_layer_method(answer["method"])
    )


def _select_first_method(scores: Sequence[Row]) -> list[Row]:
    """Select the scores of each model by its first probe and method, by which it is compared."""
    first: dict[tuple[str, str], tuple[str, str]] = {}
    for row in sorted(scores, key=lambda row: is_layer_method(row["method"])):
        first.setdefault((row["model"], row["task"]), (row["probe"], row["method"]))
    return [row for row in scores if first[row["model"], row["task"]] == (row["probe"], row["method"])]


def _is_overall(row: Row) -> bool:
    """Tell whether a row is over all questions of a task: no group column is set."""
    return not any(value for column, value in row.items() if column not in SCORES.schema.names)


def _describe_knowledge(
    model: str, scores: Sequence[Row], headline: Sequence[tuple[str, Metric]], about: Mapping[str, str]
) -> list[str]:
    """Word the best and the weakest relations (or domains) of the first headline task, against chance."""
    if not headline:
        return []
    task, metric = headline[0]
    group = "relation" if any(row.get("relation") for row in scores) else "domain"
    rows = [
        row
        for row in scores
        if row["model"] == model
        and row["task"] == task
        and row["metric"] == metric.name
        and row.get(group)
        and row["value"] is not None
        and row["low"] is not None
        and row["chance"] is not None
    ]
    known = sorted((row for row in rows if row["low"] > row["chance"] + 1e-9), key=lambda row: -row["value"])[:2]
    unknown = sorted((row for row in rows if row["low"] <= row["chance"] + 1e-9), key=lambda row: row["value"])[:1]
    if not known:
        return [_describe_overall(model, scores, task, metric, group)] if len(rows) > 1 else []
    parts = [f"{about.get(row[group], row[group])} ({_percent(row['value'])})" for row in known]
    sentence = f"{model} knows {join_names(parts)} best"
    for row in unknown:
        name = about.get(row[group], row[group])
        sentence += f", and not {name} ({_percent(row['value'])}, chance {_percent(row['chance'])})"
    return [sentence + "."]


def _describe_overall(model: str, scores: Sequence[Row], task: str, metric: Metric, group: str) -> str:
    """What is said where no group is above chance: perhaps all of them together are."""
    for row in scores:
        if (row["model"], row["task"], row["metric"]) == (model, task, metric.name) and _is_overall(row):
            value, low, chance = row["value"], row["low"], row["chance"]
            if low is not None and chance is not None and low > chance + 1e-9:
                return (
                    f"{model} is above guessing in {task} ({_percent(value)}, chance {_percent(chance)}), though no "
                    f"{group} has enough questions to show it alone."
                )
    return f"{model} shows no {task} knowledge beyond chance in any {group}."


def _describe_chance_level(model: str, scores: Sequence[Row], headline: Sequence[tuple[str, Metric]]) -> list[str]:
    """Word the tasks where a model's interval contains the chance level, or lies below it.

    Free answers are no choice among candidates, so they have no chance level to compare with.
    """
    at_chance, below = [], []
    for task, metric in headline:
        for row in scores:
            if (row["model"], row["task"], row["metric"]) != (model, task, metric.name) or not _is_overall(row):
                continue
            if row["probe"] in ("write", "answer"):
                continue
            if row["low"] is not None and row["chance"] is not None and row["low"] <= row["chance"] <= row["high"]:
                at_chance.append(task)
            elif row["high"] is not None and row["chance"] is not None and row["high"] < row["chance"]:
                below.append(task)
    sentences = []
    if at_chance:
        sentences.append(f"{model} cannot be told from guessing in {join_names(list(dict.fromkeys(at_chance)))}.")
    if below:
        sentences.append(
            f"{model} is below guessing in {join_names(list(dict.fromkeys(below)))}: it prefers wrong names."
        )
    return sentences


def _describe_missing_intervals(
    scores: Sequence[Row], headline: Sequence[tuple[str, Metric]], models: Sequence[str]
) -> list[str]:
    """Word the tasks whose scores have no interval because they are about a single fact."""
    tasks = [
        task
        for task, metric in headline
        if any(
            (row["task"], row["metric"]) == (task, metric.name) and row["value"] is not None and row["low"] is None
            for row in scores
            if row["model"] in models and _is_overall(row)
        )
    ]
    if not tasks:
        return []
    verb = "was" if len(set(tasks)) == 1 else "were"
    about = join_names(list(dict.fromkeys(tasks)))
    return [
        f"{about[:1].upper()}{about[1:]} {verb} asked about one fact only: a score without an interval says little."
    ]


def describe_comparisons(comparisons: Sequence[Comparison]) -> list[str]:
    """Word which models are ahead; of many pairs, the most significant, and the number without a clear difference.

    Where two models do not differ clearly, name the smallest difference that these questions could have shown, once per
    pair and task.
    """
    single = len(comparisons) == 1
    alike = [comparison for comparison in comparisons if comparison.p >= SIGNIFICANCE_LEVEL]
    if len(comparisons) <= _MOST_COMPARED:
        first = {(comparison.task, comparison.model, comparison.other): comparison for comparison in reversed(alike)}
        return [
            _describe_comparison(
                comparison, _describe_power([comparison], single) if comparison in first.values() else ""
            )
            for comparison in comparisons
        ]
    clear = sorted(
        (comparison for comparison in comparisons if comparison.p < SIGNIFICANCE_LEVEL),
        key=lambda comparison: (comparison.p, -comparison.difference),
    )
    remaining = len(clear) - _MOST_COMPARED
    sentences = [_describe_comparison(comparison) for comparison in clear[:_MOST_COMPARED]]
    if remaining > 0:
        sentences.append(f"In {remaining} more comparisons one of two models is ahead.")
    if alike:
        power = _describe_power(alike, single)
        sentences.append(f"In {len(alike)} of {len(comparisons)} comparisons two models do not differ clearly{power}.")
    return sentences


def _describe_comparison(comparison: Comparison, power: str = "") -> str:
    p = f"p = {comparison.p:.3f}" if comparison.p >= 0.001 else "p < 0.001"
    if comparison.p >= SIGNIFICANCE_LEVEL:
        pair = f"{quote_name(comparison.model)} and {quote_name(comparison.other)}"
        return f"On {comparison.task}, {pair} do not differ clearly ({_format_gap(comparison)}, paired, {p}){power}."
    return (
        f"{quote_name(comparison.model)} is ahead of {quote_name(comparison.other)} on {comparison.task} by "
        f"{_format_gap(comparison)} (paired, {p})."
    )


def _format_gap(comparison: Comparison) -> str:
    """Format a difference in points, or in units of the metric if it is not a share."""
    return (
        f"{100 * comparison.difference:.1f} points"
        if _is_share(comparison)
        else f"{comparison.difference:.2f} in {comparison.metric}"
    )


def _describe_power(comparisons: Sequence[Comparison], single: bool) -> str:
    """Word what these comparisons could have shown, as the end of a sentence; empty if unknown."""
    in_points = [comparison for comparison in comparisons if _is_share(comparison)]
    sizes = sorted(
        {format_size(comparison.detectable) for comparison in in_points if comparison.detectable is not None}, key=float
    )
    if not sizes:
        facts = min((comparison.facts for comparison in in_points if comparison.facts is not None), default=None)
        return "" if facts is None or len(comparisons) > 1 else f"; {facts} facts are too few to show one"
    size_range = sizes[0] if len(sizes) == 1 else f"{sizes[0]} to {sizes[-1]}"
    difference = (
        f"a true difference of {size_range} points or more"
        if len(sizes) == 1
        else f"true differences of {size_range} points"
    )
    return f"; {'' if single else 'tested alone, '}{difference} would have been found about four times of five"


def _is_share(comparison: Comparison) -> bool:
    return get_metric(comparison.metric).share if is_metric(comparison.metric) else True


def _describe_unusable(unusable: Counter[tuple[str, str]], *, wrong: bool) -> str:
    if not unusable:
        return "Every question could be asked of every model."
    parts = [f"{count} of {model} ({reason})" for (model, reason), count in unusable.most_common(3)]
    more = len(unusable) - len(parts)
    tail = f" and {more} more {'kind' if more == 1 else 'kinds'}" if more > 0 else ""
    total = sum(unusable.values())
    verb = "answer was" if total == 1 else "answers were"
    counted = f"{'counts' if total == 1 else 'count'} as wrong" if wrong else "left out of the scores"
    return f"{total} {verb} unusable and {counted}: {', '.join(parts)}{tail}."


def _reason_kind(text: str) -> str:
    """Generalize a reason: drop the candidate and the numbers in it."""
    if text.startswith("too long"):
        return "too long for the model"
    if "holds a token that this model does not know" in text:
        subject = next((subject for subject in ("answer", "word") if text.startswith(f"the {subject} ")), "candidate")
        return f"{'an' if subject == 'answer' else 'a'} {subject} holds an unknown token"
    if "has no token" in text:
        return "a candidate has no token"
    if "have the same tokens" in text:
        return "a right and a wrong candidate have the same tokens"
    return text


def _percent(value: float) -> str:
    return f"{100 * value:.0f}%"
