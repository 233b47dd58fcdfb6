"""Sentences on the findings of a run: best and weakest groups, comparisons of models, unusable questions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from merkhet.analysis.comparison import Condition, compare_models, is_layer_method
from merkhet.analysis.comparison_text import describe_comparisons
from merkhet.analysis.question_sets import describe_question_sets, withhold_verdicts
from merkhet.analysis.training_comparison import training_findings
from merkhet.analysis.training_text import describe_trainings
from merkhet.analysis.types import Row
from merkhet.core.records import Question
from merkhet.core.schemas import SCORES
from merkhet.core.text import join_names, percent
from merkhet.metrics.answer_table import AnswerTable
from merkhet.metrics.metrics import Metric

_CLOSE = 1e-9

ALL_ASKED = "Every question could be asked of every model."
"""Sentence of a run without unusable answers."""


def summarize_findings(
    *,
    scores: Sequence[Row],
    answers: AnswerTable | pa.Table | Sequence[Row],
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
    trained: Collection[str] = (),
    repeated: Sequence[pa.Table] = (),
) -> dict[str, Any]:
    """Summarize the findings of a run.

    If models were trained under several conditions, only models that differ in one respect are compared. The sentences
    then compare only models with the same condition; analyses describe the effects of conditions.

    Args:
        clusters: Fact of each question, by question id.
        headline: Tasks and their metrics.
        about: Names of relations and domains for sentences.
        classes: Class of each question, if scores are means over classes.
        statements: Whether questions are statements; see :class:`merkhet.analysis.comparison.PairedModels`.
        conditions: Training condition of each model.
        trained: Models that the run has trained; see :class:`merkhet.analysis.comparison.PairedModels`.
        repeated: Answers of these models after further trainings.

    Returns:
        ``sentences``, ``comparisons`` (paired comparisons of all models except baselines) and ``unusable`` (counts by
        model and reason).
    """
    scores = _select_first_method(scores)
    answers = answers if isinstance(answers, AnswerTable) else AnswerTable(answers, questions)
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
        trained=trained,
        repeated=repeated,
    )
    comparisons = withhold_verdicts(comparisons, conditions or {}, answers)
    unusable = _count_unusable(answers)
    rows = [asdict(comparison) for comparison in comparisons]
    question_sets = describe_question_sets(answers, rows, "statements" if statements else "questions")
    sentences: list[str] = []
    if conditions:
        labels = {name: condition.label for name, condition in conditions.items()}
        same = [entry for entry in comparisons if labels.get(entry.model) == labels.get(entry.other)]
        sentences += describe_trainings(training_findings(map(asdict, same)))
    else:
        for model in models:
            sentences += _describe_knowledge(model, scores, headline, about)
            sentences += _describe_chance_level(model, scores, headline)
        sentences += _describe_missing_intervals(scores, headline, models)
        sentences += describe_comparisons([entry for entry in comparisons if entry.trainings is None])
        sentences += describe_trainings(training_findings(map(asdict, comparisons)))
        sentences.append(_describe_unusable(unusable, wrong=unusable_is_wrong))
    sentences += question_sets
    return {
        "sentences": sentences,
        "comparisons": rows,
        "unusable": [
            {"model": model, "reason": reason, "count": count} for (model, reason), count in sorted(unusable.items())
        ],
    }


def _count_unusable(answers: AnswerTable | pa.Table | Sequence[Row]) -> Counter[tuple[str, str]]:
    """Count the unusable answers by model and kind of reason."""
    answers = answers.table if isinstance(answers, AnswerTable) else answers
    if isinstance(answers, pa.Table):
        columns = ["model", "method", "unusable"]
        answers = answers.select(columns).filter(pc.is_valid(answers["unusable"])).to_pylist()
    return Counter(
        (answer["model"], _reason_kind(answer["unusable"]))
        for answer in answers
        if answer["unusable"] is not None and not is_layer_method(answer["method"])
    )


def _select_first_method(scores: Sequence[Row]) -> list[Row]:
    """Select the scores of each model and task by the first probe and method; single-layer methods come last."""
    first: dict[tuple[str, str], tuple[str, str]] = {}
    for row in sorted(scores, key=lambda row: is_layer_method(row["method"])):
        first.setdefault((row["model"], row["task"]), (row["probe"], row["method"]))
    return [row for row in scores if first[row["model"], row["task"]] == (row["probe"], row["method"])]


def _is_overall(row: Row) -> bool:
    """Return whether a score row is over all questions of a task, without a group."""
    return not any(value for column, value in row.items() if column not in SCORES.schema.names)


def _overall_rows(model: str, scores: Sequence[Row], headline: Sequence[tuple[str, Metric]]) -> list[Row]:
    """Select a model's headline scores over all questions of each task."""
    return [
        row
        for task, metric in headline
        for row in scores
        if (row["model"], row["task"], row["metric"]) == (model, task, metric.name) and _is_overall(row)
    ]


def _is_above_chance(row: Row) -> bool:
    return row["low"] is not None and row["chance"] is not None and row["low"] > row["chance"] + _CLOSE


def _describe_knowledge(
    model: str, scores: Sequence[Row], headline: Sequence[tuple[str, Metric]], about: Mapping[str, str]
) -> list[str]:
    """Describe a model's best and weakest relations (or domains) on the first headline task, relative to chance."""
    if not headline:
        return []
    task, metric = headline[0]
    group = "relation" if any(row.get("relation") for row in scores) else "domain"
    rows = [
        row
        for row in scores
        if (row["model"], row["task"], row["metric"]) == (model, task, metric.name)
        and row.get(group)
        and None not in (row["value"], row["low"], row["chance"])
    ]
    known = sorted(filter(_is_above_chance, rows), key=lambda row: -row["value"])[:2]
    unknown = sorted((row for row in rows if not _is_above_chance(row)), key=lambda row: row["value"])[:1]
    if known:
        parts = [f"{about.get(row[group], row[group])} ({percent(row['value'], 0)})" for row in known]
        rest = "".join(
            f"; it is not significantly above chance on {about.get(row[group], row[group])} ({_against_chance(row)})"
            for row in unknown
        )
        return [f"{model} scores highest on {join_names(parts)}{rest}."]
    if len(rows) < 2:
        return []
    for row in filter(_is_above_chance, _overall_rows(model, scores, headline[:1])):
        return [
            f"{model} is significantly above chance on {task} ({_against_chance(row)}), but no single {group} has "
            "enough questions to show it."
        ]
    return [f"{model} is not significantly above chance on {task} in any {group}."]


def _against_chance(row: Row) -> str:
    return f"{percent(row['value'], 0)}, chance {percent(row['chance'], 0)}"


def _describe_chance_level(model: str, scores: Sequence[Row], headline: Sequence[tuple[str, Metric]]) -> list[str]:
    """Describe the tasks on which a model's interval contains the chance level or lies below it.

    Free answers are skipped, because they are not chosen among candidates and have no chance level.
    """
    at_chance: dict[str, None] = {}
    below: dict[str, None] = {}
    for row in _overall_rows(model, scores, headline):
        if row["probe"] in ("write", "answer") or None in (row["chance"], row["high"]):
            continue
        if row["high"] < row["chance"]:
            below[row["task"]] = None
        elif row["low"] is not None and row["low"] <= row["chance"]:
            at_chance[row["task"]] = None
    sentences = []
    if at_chance:
        sentences.append(f"{model} does not differ significantly from chance on {join_names(list(at_chance))}.")
    if below:
        sentences.append(
            f"{model} is significantly below chance on {join_names(list(below))}: it prefers wrong answers."
        )
    return sentences


def _describe_missing_intervals(
    scores: Sequence[Row], headline: Sequence[tuple[str, Metric]], models: Sequence[str]
) -> list[str]:
    """Describe the tasks whose scores have no interval because all questions are about one fact."""
    rows = [row for model in models for row in _overall_rows(model, scores, headline)]
    missing = {row["task"] for row in rows if row["value"] is not None and row["low"] is None}
    tasks = list(dict.fromkeys(task for task, _ in headline if task in missing))
    if not tasks:
        return []
    names = join_names(tasks)
    verb, scores_have = ("asks", "its score has") if len(tasks) == 1 else ("ask", "their scores have")
    return [f"{names[:1].upper()}{names[1:]} {verb} about a single fact, so {scores_have} no interval."]


def _describe_unusable(unusable: Counter[tuple[str, str]], *, wrong: bool) -> str:
    if not unusable:
        return ALL_ASKED
    parts = [f"{count} of {model} ({reason})" for (model, reason), count in unusable.most_common(3)]
    more = len(unusable) - len(parts)
    tail = f" and {more} more {'kind' if more == 1 else 'kinds'}" if more > 0 else ""
    total = sum(unusable.values())
    verb = "answer was" if total == 1 else "answers were"
    counted = f"{'counts' if total == 1 else 'count'} as wrong" if wrong else "left out of the scores"
    return f"{total} {verb} unusable and {counted}: {', '.join(parts)}{tail}."


def _reason_kind(text: str) -> str:
    """Generalize a reason by dropping the candidate and the numbers that it mentions."""
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
