"""What a run says in words: what each model knows, who is ahead, what could not be asked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from merkhet.analysis.comparison import Comparison, compare_models, is_a_layer
from merkhet.analysis.types import told
from merkhet.core.records import Question
from merkhet.core.schemas import SCORES
from merkhet.metrics.corrections import CLEAR
from merkhet.metrics.metrics import Metric, get_metric, is_metric

Row = dict[str, Any]
_MOST_COMPARED = 8


def summarize_findings(
    *,
    scores: Sequence[Row],
    answers: Sequence[Row],
    questions: Mapping[str, Question],
    clusters: Mapping[str, str],
    headline: Sequence[tuple[str, Metric]],
    about: Mapping[str, str],
    baselines: set[str],
    seed: int,
    classes: Mapping[str, str] | None = None,
    unusable_is_wrong: bool = False,
) -> dict[str, Any]:
    """Sentences, paired comparisons of the models (not of baselines), and unusable questions by model and reason."""
    scores = _first_method(scores)
    models = list(dict.fromkeys(row["model"] for row in scores if row["model"] not in baselines))
    found = compare_models(
        [answer for answer in answers if answer["model"] in models],
        questions,
        clusters,
        headline,
        seed=seed,
        classes=classes,
        unusable_is_wrong=unusable_is_wrong,
    )
    unusable = Counter(
        (answer["model"], _reason(answer["unusable"]))
        for answer in answers
        if answer["unusable"] is not None and not is_a_layer(answer["method"])
    )
    sentences = []
    for model in models:
        sentences += _knows(model, scores, headline, about)
        sentences += _at_chance(model, scores, headline)
    sentences += _too_few(scores, headline, models)
    sentences += compared(found)
    sentences.append(_unusable(unusable, wrong=unusable_is_wrong))
    return {
        "sentences": sentences,
        "comparisons": [asdict(one) for one in found],
        "unusable": [{"model": m, "reason": r, "count": n} for (m, r), n in sorted(unusable.items())],
    }


def _first_method(scores: Sequence[Row]) -> list[Row]:
    """The scores of each model by its first probe and method: the one it is compared by."""
    first: dict[tuple[str, str], tuple[str, str]] = {}
    for row in sorted(scores, key=lambda row: is_a_layer(row["method"])):
        first.setdefault((row["model"], row["task"]), (row["probe"], row["method"]))
    return [row for row in scores if first[row["model"], row["task"]] == (row["probe"], row["method"])]


def _overall(row: Row) -> bool:
    """Whether a row is over all questions of a task: none of the group columns is filled."""
    return not any(value for column, value in row.items() if column not in SCORES.schema.names)


def _knows(
    model: str, scores: Sequence[Row], headline: Sequence[tuple[str, Metric]], about: Mapping[str, str]
) -> list[str]:
    """The best and the weakest relations (or domains) of the first headline task, against chance."""
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
        return [_no_group_alone(model, scores, task, metric, group)] if len(rows) > 1 else []
    parts = [f"{about.get(row[group], row[group])} ({_percent(row['value'])})" for row in known]
    sentence = f"{model} knows {_listed(parts)} best"
    for row in unknown:
        name = about.get(row[group], row[group])
        sentence += f", and not {name} ({_percent(row['value'])}, chance {_percent(row['chance'])})"
    return [sentence + "."]


def _no_group_alone(model: str, scores: Sequence[Row], task: str, metric: Metric, group: str) -> str:
    """What is said where no group is above chance: perhaps all of them together are."""
    for row in scores:
        if (row["model"], row["task"], row["metric"]) == (model, task, metric.name) and _overall(row):
            value, low, chance = row["value"], row["low"], row["chance"]
            if low is not None and chance is not None and low > chance + 1e-9:
                return (
                    f"{model} is above guessing in {task} ({_percent(value)}, chance {_percent(chance)}), though no "
                    f"{group} has enough questions to show it alone."
                )
    return f"{model} shows no {task} knowledge beyond chance in any {group}."


def _at_chance(model: str, scores: Sequence[Row], headline: Sequence[tuple[str, Metric]]) -> list[str]:
    """Tasks where a model's interval holds the chance level, or lies below it.

    What a model wrote by itself is no choice among names, and so is not compared with a guess among them.
    """
    near, below = [], []
    for task, metric in headline:
        for row in scores:
            if (row["model"], row["task"], row["metric"]) != (model, task, metric.name) or not _overall(row):
                continue
            if row["probe"] in ("write", "answer"):
                continue
            if row["low"] is not None and row["chance"] is not None and row["low"] <= row["chance"] <= row["high"]:
                near.append(task)
            elif row["high"] is not None and row["chance"] is not None and row["high"] < row["chance"]:
                below.append(task)
    sentences = []
    if near:
        sentences.append(f"{model} cannot be told from guessing in {_listed(list(dict.fromkeys(near)))}.")
    if below:
        sentences.append(f"{model} is below guessing in {_listed(list(dict.fromkeys(below)))}: it prefers wrong names.")
    return sentences


def _too_few(scores: Sequence[Row], headline: Sequence[tuple[str, Metric]], models: Sequence[str]) -> list[str]:
    """Tasks whose scores have no interval, for they are about a single fact."""
    tasks = [
        task
        for task, metric in headline
        if any(
            (row["task"], row["metric"]) == (task, metric.name) and row["value"] is not None and row["low"] is None
            for row in scores
            if row["model"] in models and _overall(row)
        )
    ]
    if not tasks:
        return []
    verb = "was" if len(set(tasks)) == 1 else "were"
    about = _listed(list(dict.fromkeys(tasks)))
    return [
        f"{about[:1].upper()}{about[1:]} {verb} asked about one fact only: a score without an interval says little."
    ]


def compared(comparisons: Sequence[Comparison]) -> list[str]:
    """Who is ahead of whom; where there are many pairs, the clearest, and how many do not differ.

    Where two models do not differ clearly, the smallest difference that these questions could have shown is told, once
    for a pair and task.
    """
    alone = len(comparisons) == 1
    alike = [one for one in comparisons if one.p >= CLEAR]
    if len(comparisons) <= _MOST_COMPARED:
        first = {(one.task, one.model, one.other): one for one in reversed(alike)}
        return [_ahead(one, _could_be_seen([one], alone) if one in first.values() else "") for one in comparisons]
    clear = sorted((one for one in comparisons if one.p < CLEAR), key=lambda one: (one.p, -one.difference))
    more = len(clear) - _MOST_COMPARED
    said = [_ahead(one) for one in clear[:_MOST_COMPARED]]
    if more > 0:
        said.append(f"In {more} more comparisons one of two models is ahead.")
    if alike:
        seen = _could_be_seen(alike, alone)
        said.append(f"In {len(alike)} of {len(comparisons)} comparisons two models do not differ clearly{seen}.")
    return said


def _ahead(one: Comparison, could_be_seen: str = "") -> str:
    p = f"p = {one.p:.3f}" if one.p >= 0.001 else "p < 0.001"
    if one.p >= CLEAR:
        pair = f"{told(one.model)} and {told(one.other)}"
        return f"On {one.task}, {pair} do not differ clearly ({_gap(one)}, paired, {p}){could_be_seen}."
    return f"{told(one.model)} is ahead of {told(one.other)} on {one.task} by {_gap(one)} (paired, {p})."


def _gap(one: Comparison) -> str:
    """A difference in points, or by the metric's own measure where it is no share."""
    return f"{100 * one.difference:.1f} points" if _is_share(one) else f"{one.difference:.2f} in {one.metric}"


def _could_be_seen(comparisons: Sequence[Comparison], alone: bool) -> str:
    """What these comparisons could have shown, as the end of a sentence; nothing where that is not known."""
    known = [one for one in comparisons if _is_share(one)]
    points = sorted({_in_points(one.detectable) for one in known if one.detectable is not None}, key=float)
    if not points:
        few = min((one.facts for one in known if one.facts is not None), default=None)
        return "" if few is None or len(comparisons) > 1 else f"; {few} facts are too few to show one"
    far = points[0] if len(points) == 1 else f"{points[0]} to {points[-1]}"
    what = f"a true difference of {far} points or more" if len(points) == 1 else f"true differences of {far} points"
    return f"; {'' if alone else 'tested alone, '}{what} would have been found about four times of five"


def _in_points(share: float) -> str:
    """A size in points, without more digits than one would say."""
    return f"{100 * share:.0f}" if share >= 0.0995 else f"{100 * share:.1f}"


def _is_share(one: Comparison) -> bool:
    return get_metric(one.metric).share if is_metric(one.metric) else True


def _unusable(unusable: Counter[tuple[str, str]], *, wrong: bool) -> str:
    if not unusable:
        return "Every question could be asked of every model."
    parts = [f"{count} of {model} ({reason})" for (model, reason), count in unusable.most_common(3)]
    more = len(unusable) - len(parts)
    tail = f" and {more} more {'kind' if more == 1 else 'kinds'}" if more > 0 else ""
    total = sum(unusable.values())
    verb = "answer was" if total == 1 else "answers were"
    counted = f"{'counts' if total == 1 else 'count'} as wrong" if wrong else "left out of the scores"
    return f"{total} {verb} unusable and {counted}: {', '.join(parts)}{tail}."


def _reason(text: str) -> str:
    """The kind of a reason, without the candidate or the numbers in it."""
    if text.startswith("too long"):
        return "too long for the model"
    if "holds a token that this model does not know" in text:
        what = next((what for what in ("answer", "word") if text.startswith(f"the {what} ")), "candidate")
        return f"{'an' if what == 'answer' else 'a'} {what} holds an unknown token"
    if "has no token" in text:
        return "a candidate has no token"
    if "have the same tokens" in text:
        return "a right and a wrong candidate have the same tokens"
    return text


def _listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _percent(value: float) -> str:
    return f"{100 * value:.0f}%"
